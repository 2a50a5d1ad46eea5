/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What laws of marks have in common, without kernel access: counts and averages of marks, and growth other than a
 * segment per RTT.
 */
#ifndef LOWTIDE_MARKS_H
#define LOWTIDE_MARKS_H

#include "law.h"

#define PART_ONE (1U << 30)	/* parts of one are units of 2^-30 */

/* Segments delivered since counting began, and those of them with CE. */
struct marks {
	u32 delivered;
	u32 marked;
};

static inline void marks_count(struct marks *m, const struct law_ack *a)
{
	m->delivered += a->packets;
	m->marked += a->marked;
}

/* The marked part. Counting starts over. */
static inline u32 marks_take(struct marks *m)
{
	u64 part = ((u64)m->marked << 30) / at_least(m->delivered, 1);

	m->delivered = m->marked = 0;
	return part < PART_ONE ? part : PART_ONE;
}

/* The congestion price of the marked part with a weight: inflated before it is averaged, at most one per round. */
static inline u32 marks_price(u32 part, const struct law_weight *weight)
{
	u64 w = (weight->weight_q16 * weight->ratio_q16) >> 16, price;

	if (!weight->weight_q16 || w >= Q16_ONE)
		return part;
	price = ((u64)part << 16) / at_least(w, 1);
	return price < PART_ONE ? price : PART_ONE;
}

static inline u32 marks_average(u32 alpha, u32 part, u32 gain_q16)
{
	return ((u64)alpha * (Q16_ONE - gain_q16) + (u64)part * gain_q16) >> 16;
}

/* A part of a window of up to 2^28 segments. */
static inline u64 part_of(u64 window_q16, u32 part)
{
	return (window_q16 * (part >> 10)) >> 20;
}

/*
 * Grows by `step_q24` segments per RTT, up to 2^16. Remainders below 2^-16 segments are carried on, in 2^-24: a step of
 * a hundredth of a segment is not more than that per ACK.
 */
static inline u64 law_step(u64 cwnd_q16, u64 acked_q16, u64 step_q24, u32 *carry)
{
	u64 cwnd = at_least(cwnd_q16, 1), gained;

	if (step_q24 >> 32)
		return acked_q16 * (step_q24 >> 40 ? ~0U : step_q24 >> 8) / cwnd;
	gained = acked_q16 * step_q24 / cwnd + *carry;
	*carry = gained & 255;
	return gained >> 8;
}

#endif
