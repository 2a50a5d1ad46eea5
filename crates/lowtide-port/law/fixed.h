/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Fixed-point arithmetic without kernel access; compiled natively by the tests. */
#ifndef LOWTIDE_FIXED_H
#define LOWTIDE_FIXED_H

#define Q16_ONE (1ULL << 16)
#define Q24_ONE (1ULL << 24)

/* A function that the kernel's verifier checks once by itself: one with many paths, called from another such one. */
#ifdef __bpf__
#define VERIFIED_APART __attribute__((noinline))
#else
#define VERIFIED_APART static inline
#endif

/*
 * Checked by the verifier where it is called, but no part of its caller: that would be too long, or take too much of
 * the stack for the calls below it (512 bytes for all).
 */
#ifdef __bpf__
#define NOT_INLINE __attribute__((noinline))
#else
#define NOT_INLINE inline
#endif

/* Before a call that must stay inline: the kernel limits the depth of calls to eight. */
#ifdef __bpf__
#define IN_PLACE [[clang::always_inline]]
#else
#define IN_PLACE
#endif

/*
 * 1 if a <= b, else 0, for numbers below 2^63. There is no branch, of which the verifier would follow both sides each
 * time. The asm keeps the compiler from making one. Newer verifiers would also follow both values of a mask of all ones
 * or none.
 */
static inline u64 is_at_most(u64 a, u64 b)
{
	u64 above = b - a;

	asm volatile("" : "+r"(above));
	above >>= 63;
	asm volatile("" : "+r"(above));
	return above ^ 1;
}

/*
 * exp(-x) in units of 2^-32, for x in units of 2^-16. At most 2^32 - 1, so that a 32-bit random number X < exp(-x) is
 * always true only for x = 0. exp(-x) = 2^-(k + f): k is a shift, 2^-f its Taylor series to the sixth power, in 2^-30.
 * The absolute error is below 2e-5, about that of the integer exponential in the thesis on CDG in Linux (Fig. 3.4).
 */
static inline u32 exp_neg_q32(u64 x_q16)
{
	u64 y, f, r;

	if (x_q16 == 0)
		return ~0U;
	if (x_q16 >= 23 * Q16_ONE)	/* exp(-23) < 2^-32 */
		return 0;
	y = (x_q16 * 6196328019ULL) >> 16;	/* times log2(e), in 2^-32 */
	f = y & 0xffffffff;
	r = 165394;			/* ln(2)^6/6! ... ln(2)^1/1! */
	r = 1431680 - ((f * r) >> 32);
	r = 10327387 - ((f * r) >> 32);
	r = 59597083 - ((f * r) >> 32);
	r = 257941248 - ((f * r) >> 32);
	r = 744261118 - ((f * r) >> 32);
	r = (1ULL << 30) - ((f * r) >> 32);
	r = (r << 2) >> (y >> 32);
	return r > ~0U ? ~0U : (u32)r;
}

#endif
