/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What of a full link a weight is worth to Tide (lowtide-cc, law/tide/share.rs), without kernel access: the window of an ordinary CUBIC flow
 * that grows less and gives way more.
 */
#ifndef LOWTIDE_TIDE_SHARE_H
#define LOWTIDE_TIDE_SHARE_H

#include "law.h"
#include "cubic.h"
#include "hystart.h"
#include "tide_path.h"

#define TIDE_SHARE_LEAST 2		/* of an ordinary flow */
#define TIDE_SHARE_LOW_WINDOW 16	/* from which its slow start ends by delay (Linux) */
#define TIDE_SHARE_SLOWEST_Q16 (Q16_ONE / 16)
#define TIDE_SHARE_BETA_Q32 3006477107U	/* RFC 9438, section 4.6 */
#define TIDE_SHARE_C_Q22 1677722U	/* 0.4 segments per second cubed */
#define TIDE_SHARE_REST 3		/* rounds that one back-off of others can take to show */

struct tide_share {
	struct cubic_growth growth;
	struct hystart hystart;
	u64 cwnd_q16, ssthresh_q16;	/* below the least: that */
	u64 peak;		/* the greatest queue of a round since the latest reduction, 2^-8 us; while it rests, that of the latest round */
	u64 weight_q16;
	u32 part_q16;		/* of an ordinary flow's growth */
	u32 rest;		/* rounds until a fall of the queue counts again, and until one that it waits to know is over at the latest */
	u32 paid;		/* the next back-off of others is paid for, by a loss of its own */
	u32 falls;		/* the queue does: it is not known yet for what */
};

/* The root of less than 2^62, rounded down. */
VERIFIED_APART u64 tide_root(u64 x)
{
	u64 root = 0;

	for (int bit = 30; bit >= 0; bit--) {
		u64 next = root | 1ULL << bit;

		root |= is_at_most(next * next, x) << bit;
	}
	return root;
}

/* The fifth root of at most 1, in 2^-12. */
static inline u64 tide_fifth_root_q12(u64 x_q16)
{
	u64 root = 0;

	for (int bit = 12; bit >= 0; bit--) {
		u64 next = root | 1ULL << bit;

		root |= is_at_most(next * next * next * next * next, x_q16 << 44) << bit;
	}
	return root;
}

static inline u64 tide_share_least_q16(const struct tide_share *s)
{
	return s->weight_q16 ? at_least(TIDE_SHARE_LEAST * s->weight_q16, TIDE_SHARE_SLOWEST_Q16) : 0;
}

/* 0: there is no weight. */
static inline u64 tide_share_q16(const struct tide_share *s)
{
	return at_least(s->cwnd_q16, tide_share_least_q16(s));
}

static inline u64 tide_scaled(u64 x, u64 by, u64 over)
{
	return over ? x / over * by + x % over * by / over : x;
}

/*
 * What stands goes with the weight at once, since small windows take long to grow. Growth goes with the weight to the power 1.2: so the share
 * of a link beside one CUBIC flow is nearly the weight's.
 */
VERIFIED_APART int tide_share_set(struct tide_share *s, u64 weight_q16)
{
	u64 before;

	if (!s)
		return 0;
	before = s->weight_q16;
	s->weight_q16 = at_most(weight_q16, Q16_ONE);
	if (!before) {
		s->cwnd_q16 = LAW_INITIAL_WINDOW * s->weight_q16;
		s->ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
	} else {
		s->cwnd_q16 = tide_scaled(s->cwnd_q16, s->weight_q16, before);
		if (s->ssthresh_q16 != LAW_NO_THRESHOLD_Q16)
			s->ssthresh_q16 = tide_scaled(s->ssthresh_q16, s->weight_q16, before);
	}
	s->growth.at.w_max_q16 = tide_scaled(s->growth.at.w_max_q16, s->weight_q16, before);
	s->growth.at.prior_q16 = tide_scaled(s->growth.at.prior_q16, s->weight_q16, before);
	s->growth.at.plateau_q16 = tide_scaled(s->growth.at.plateau_q16, s->weight_q16, before);
	s->growth.at.w_est_q24 = tide_scaled(s->growth.at.w_est_q24, s->weight_q16, before);
	s->part_q16 = s->weight_q16 * tide_fifth_root_q12(s->weight_q16) >> 12;
	s->growth.less_q16 = Q16_ONE - s->part_q16;
	return 0;
}

static inline void tide_share_weight(struct tide_share *s, u64 weight_q16)
{
	if (weight_q16 && weight_q16 != s->weight_q16)
		tide_share_set(s, weight_q16);
}

/* This window fills the path. Its part of that at once, as a small one takes long to grow, but no more than an ordinary flow has at the least. */
static inline void tide_share_begin(struct tide_share *s, u64 window_q16)
{
	s->cwnd_q16 = at_least(s->cwnd_q16, at_most((window_q16 >> 8) * s->weight_q16 >> 8, 2 * Q16_ONE));
}

/* The growth of an ordinary flow, of which a weight leaves a part. */
VERIFIED_APART int tide_share_grow(struct tide_share *s, const struct law_ack *a)
{
	struct cubic_shape shape = {
		.variant = CUBIC_LINUX, .beta_q32 = TIDE_SHARE_BETA_Q32, .reno_friendly = 1,
	};
	struct law_window w;
	u64 before, left = 0;

	if (!s || !a)
		return 0;
	w.cwnd_q16 = before = tide_share_q16(s);
	w.ssthresh_q16 = s->ssthresh_q16;
	w.least_q16 = tide_share_least_q16(s);
	hystart_ack(&s->hystart, HYSTART_TRAIN | HYSTART_DELAY, TIDE_SHARE_LOW_WINDOW * Q16_ONE, false, &w, a);
	if (a->window_limited)
		left = law_slow_start(&w, a->packets);
	if (w.cwnd_q16 > before)
		w.cwnd_q16 = before + ((w.cwnd_q16 - before) * s->weight_q16 >> 16);
	s->ssthresh_q16 = w.ssthresh_q16;
	cubic_growth_sample(&s->growth, a->rtt_us);
	shape.c_q22 = at_least((u64)TIDE_SHARE_C_Q22 * s->part_q16 >> 16, 1);
	s->cwnd_q16 = cubic_growth_ack(&s->growth, &shape, w.cwnd_q16, at_most(left, before), a->now_us);	/* the rest was probes */
	return 0;
}

static inline void tide_share_ack(struct tide_share *s, const struct law_ack *a)
{
	if (s->weight_q16 && !a->reducing)
		tide_share_grow(s, a);
}

/* This part is left of the window. What falls now is the same back-off. */
static inline void tide_share_lower(struct tide_share *s, u64 part_q32, bool own)
{
	struct cubic_shape shape = { .beta_q32 = TIDE_SHARE_BETA_Q32, .fast_convergence = own };

	cubic_growth_reduce(&s->growth, &shape, s->cwnd_q16, true);
	s->cwnd_q16 = s->ssthresh_q16 = at_least(cubic_part(s->cwnd_q16, part_q32), tide_share_least_q16(s));
	s->peak = 0;
	s->rest = TIDE_SHARE_REST;
}

/* An ordinary flow does not see others' back-offs. What only a scavenger would heed counts the less, the more the weight is. */
static inline void tide_share_follow(struct tide_share *s)
{
	u64 given_up_q32 = ((1ULL << 32) - TIDE_SHARE_BETA_Q32) * (Q16_ONE - s->weight_q16) >> 16;

	if (s->falls && !s->paid && given_up_q32)
		tide_share_lower(s, (1ULL << 32) - given_up_q32, false);
	s->paid &= !s->falls;
	s->falls = 0;
}

/* Tide leaves a link that it filled with this window. */
static inline void tide_share_enter(struct tide_share *s, u64 window_q16)
{
	u64 part = (window_q16 >> 8) * s->weight_q16 >> 8;

	tide_share_follow(s);
	s->cwnd_q16 = at_least(s->cwnd_q16, part);
	s->peak = 0;
	s->rest = 0;
}

/*
 * A round is over that found at least this queue. One that falls by 15 % and a millisecond has lost somebody; whether to a back-off shows when the
 * fall is over.
 */
static inline void tide_share_round(struct tide_share *s, const struct tide_path *path, u64 queue)
{
	bool over;

	if (!s->weight_q16 || s->weight_q16 == Q16_ONE)
		return;
	if (s->rest) {
		/* an empty queue may stay so: then Tide fills the link by itself */
		over = s->rest == 1 || (queue >= s->peak && queue >= tide_middle(path));
		s->rest--;
		s->peak = queue;
		if (over)
			tide_share_follow(s);
		return;
	}
	s->peak = at_least(s->peak, queue);
	if (queue + s->peak * 3 / 20 + (1000 << 8) >= s->peak)
		return;
	s->falls = 1;
	s->peak = queue;
	s->rest = TIDE_SHARE_REST;
}

/* A loss of its own, or a timeout: it pays for the fall that is waited for, or for the next. */
static inline void tide_share_reduce(struct tide_share *s)
{
	s->paid |= !s->falls;
	s->falls = 0;
	tide_share_lower(s, TIDE_SHARE_BETA_Q32, true);
}

/* After a reduction: it begins anew from the least. */
static inline void tide_share_timed_out(struct tide_share *s)
{
	cubic_growth_timed_out(&s->growth);
	s->cwnd_q16 = tide_share_least_q16(s);
}

/* After a pause this much is left of a window (RFC 2861, section 3.1). */
static inline void tide_share_restart(struct tide_share *s, u64 left_q16, u64 idle_us)
{
	if (!s->weight_q16)
		return;
	cubic_growth_restart(&s->growth, idle_us);
	if (left_q16 < s->cwnd_q16) {
		s->ssthresh_q16 = at_least(s->ssthresh_q16, s->cwnd_q16 - s->cwnd_q16 / 4);
		s->cwnd_q16 = left_q16;
	}
	s->peak = 0;
	s->rest = 0;
	s->falls = 0;
}

#endif
