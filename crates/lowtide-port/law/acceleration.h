/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Acceleration mode (J. Misund, "Delay based additive increase for scalable congestion controls", section 3), without
 * kernel access: faster additive increase while congestion signals are rare. Names are those of the paper. The
 * reference is part/acceleration.rs of lowtide-cc, with the same differences from the paper. Rounds and increments are
 * units of 2^-24, so that averages of whole rounds compare as real numbers do.
 */
#ifndef LOWTIDE_ACCELERATION_H
#define LOWTIDE_ACCELERATION_H

#include "marks.h"

#define ROUND_ONE (1ULL << 24)
#define ROUNDS_MOST (1ULL << 47)
#define OVERSHOOT_PART (1U << 31)	/* if set, Q is a part of the RTT in 2^-24, else microseconds */

struct acceleration_parameters {
	u32 on;
	u32 q;		/* overshoot Q */
	u32 gain_q16;
	u32 cycles;	/* that must have been seen before it accelerates */
	u32 literal;	/* exactly as the paper prints it */
};

struct acceleration {
	u64 i;		/* I: increments since the last reaction */
	u64 i_a;	/* Ia, its average */
	u64 i_m;	/* Im, its mean deviation */
	u64 a_q16;	/* a: the increase is multiplied by it */
	u32 c;		/* C: rounds since the last reaction */
	u32 cycles;
};

static inline void acceleration_reset(struct acceleration *x)
{
	x->i = x->c = 0;
	x->a_q16 = Q16_ONE;
}

static inline void acceleration_begin(struct acceleration *x)
{
	x->i_a = x->i_m = x->cycles = 0;
	acceleration_reset(x);
}

/* Q at this RTT, microseconds. */
static inline u64 overshoot_us(u32 q, u32 latency_us, u32 rtt_us)
{
	if (latency_us)
		return latency_us;
	return q & OVERSHOOT_PART ? ((u64)(q & ~OVERSHOOT_PART) * rtt_us) >> 24 : q;
}

/* `tested` Q/R, for a window of up to 2^24 segments. */
static inline u64 acceleration_scale_q16(u64 tested_q16, u32 q, u32 latency_us, u32 srtt_us)
{
	if (!latency_us && q & OVERSHOOT_PART)
		return ((tested_q16 >> 4) * (q & ~OVERSHOOT_PART)) >> 20;
	return tested_q16 * overshoot_us(q, latency_us, srtt_us) / srtt_us;
}

static inline bool acceleration_is_open_loop(const struct acceleration *x, const struct acceleration_parameters *p)
{
	return x->cycles >= p->cycles && x->c * ROUND_ONE > x->i_a + 2 * x->i_m;
}

/* A round of congestion avoidance has ended without a reaction. */
static inline void acceleration_round(struct acceleration *x, const struct acceleration_parameters *p, u64 cwnd_q16, const struct law_ack *a)
{
	u64 added = p->literal ? Q16_ONE : x->a_q16, tested = cwnd_q16 > added ? cwnd_q16 - added : 0;

	x->c++;
	x->i += x->a_q16 << 8;
	if (x->i > ROUNDS_MOST)
		x->i = ROUNDS_MOST;
	x->a_q16 = Q16_ONE;
	if (!a->srtt_us || !acceleration_is_open_loop(x, p))
		return;
	x->a_q16 = acceleration_scale_q16(tested, p->q, a->latency_us, a->srtt_us);
	if (x->a_q16 > cwnd_q16)
		x->a_q16 = cwnd_q16;
	if (!p->literal)
		x->a_q16 = at_least(x->a_q16, Q16_ONE);
}

/* Rounded up: an average of whole numbers must not fall below one that it equals. */
static inline u64 acceleration_average(u64 average, u64 value, u32 gain_q16)
{
	return (average * (Q16_ONE - gain_q16) + value * gain_q16 + 0xffff) >> 16;
}

/* The window is reduced: a cycle is over. */
static inline void acceleration_reaction(struct acceleration *x, const struct acceleration_parameters *p)
{
	if (!x->cycles && !p->literal) {
		x->i_a = x->i;
		x->i_m = x->i / 2;
	} else {
		x->i_m = acceleration_average(x->i_m, x->i_a > x->i ? x->i_a - x->i : x->i - x->i_a, p->gain_q16);
		x->i_a = acceleration_average(x->i_a, x->i, p->gain_q16);
	}
	x->cycles++;
	acceleration_reset(x);
}

#endif
