/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Overload mode (Misund's paper, sections 1 and 6.2), without kernel access: one large reduction if the queue is
 * unusually long. What the paper leaves open is defined in the reference, part/overload.rs of lowtide-cc. Times are
 * microseconds.
 */
#ifndef LOWTIDE_OVERLOAD_H
#define LOWTIDE_OVERLOAD_H

#include "acceleration.h"

struct overload_parameters {
	u32 on;
	u32 q;		/* overshoot Q */
	u32 gain_q16;
	u32 aqm_us;	/* standing queue of an AQM, which is no overload */
	u32 base_us;	/* how long a minimum RTT counts; 0: for the connection's life */
	u32 every;	/* judges the round after an overload, too, by marks alone */
};

struct overload {
	u64 since_us;		/* when the present half of the base window began */
	u64 q_max_q16;		/* average of the greatest delays of the cycles */
	u32 current_us, previous_us;	/* minimum RTTs of the window's halves */
	u32 round_us;		/* minimum RTT of this round */
	u32 peak_us;		/* greatest delay since the last reaction */
	u32 left;		/* part of the window that is left after this round's reductions */
	u8 has_current, has_previous, has_round, has_q_max;
	u8 answered;		/* this round began with a reduction for overload */
	u8 delay_used;		/* delay was reacted to just now: not two rounds in a row */
};

static inline void overload_reset(struct overload *o)
{
	o->peak_us = 0;
	o->left = PART_ONE;
	o->has_round = o->answered = 0;
}

static inline void overload_begin(struct overload *o)
{
	o->has_current = o->has_previous = o->has_q_max = o->delay_used = 0;
	overload_reset(o);
}

static inline void overload_sample(struct overload *o, const struct overload_parameters *p, const struct law_ack *a)
{
	if (!a->rtt_us)
		return;
	if (p->base_us && o->has_current && a->now_us - o->since_us > p->base_us / 2) {
		o->previous_us = o->current_us;
		o->has_previous = 1;
		o->has_current = 0;
	}
	if (!o->has_current)
		o->since_us = a->now_us;
	if (!o->has_current || a->rtt_us < o->current_us)
		o->current_us = a->rtt_us;
	if (!o->has_round || a->rtt_us < o->round_us)
		o->round_us = a->rtt_us;
	o->has_current = o->has_round = 1;
}

static inline void overload_learn(struct overload *o, const struct overload_parameters *p, u32 q_us)
{
	u64 q = (u64)q_us << 16;

	o->q_max_q16 = o->has_q_max ? (o->q_max_q16 * (Q16_ONE - p->gain_q16) + q * p->gain_q16) >> 16 : q;
	o->has_q_max = 1;
}

/*
 * A round ended, with `marked` the marked part of its segments. Returns the part of the window that is left: with
 * overload 1 - max(F/2, r_q), less what the law itself reduced in that round; else PART_ONE. `*judged`: there was
 * overload.
 */
static inline u32 overload_round(struct overload *o, const struct overload_parameters *p, u32 marked, u32 latency_us, bool *judged)
{
	u64 already = at_least(o->left, 1), left, q, base, by_delay = 0, r = marked / 2;
	bool answered = o->answered, had_round = o->has_round;

	*judged = false;
	o->left = PART_ONE;
	o->answered = 0;
	if (!o->has_current)
		return PART_ONE;
	o->has_round = 0;
	if (!had_round)
		return PART_ONE;
	base = o->has_previous && o->previous_us < o->current_us ? o->previous_us : o->current_us;
	q = o->round_us > base ? o->round_us - base : 0;
	if (q > o->peak_us)
		o->peak_us = q;
	if (answered && !p->every) {
		o->delay_used = 0;
		return PART_ONE;
	}
	if (!o->has_q_max)
		return PART_ONE;
	if (!marked || q << 16 <= o->q_max_q16 + (overshoot_us(p->q, latency_us, base) << 16)) {
		o->delay_used = 0;
		return PART_ONE;
	}
	if (!o->delay_used && q > p->aqm_us)
		by_delay = ((q - p->aqm_us) << 30) / (base + q);
	if (by_delay > r)
		r = by_delay;
	o->delay_used = !o->delay_used;
	o->answered = 1;
	overload_learn(o, p, q);
	*judged = true;
	left = ((PART_ONE - r) << 30) / already;
	return left < PART_ONE ? left : PART_ONE;
}

/* The law reduced its window to the part `left`. `cycle`: that ends a cycle of congestion avoidance. */
static inline void overload_reaction(struct overload *o, const struct overload_parameters *p, u32 left, bool cycle)
{
	o->left = ((u64)o->left * left) >> 30;
	if (cycle)
		overload_learn(o, p, o->peak_us);
	o->peak_us = 0;
}

#endif
