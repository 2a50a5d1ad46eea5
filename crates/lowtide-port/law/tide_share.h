/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The weighted share: Tide's window on a full link. It is that of an ordinary CUBIC flow that grows more slowly, and
 * backs off when competing flows do. No kernel access. The reference is law/tide/share.rs of lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_SHARE_H
#define LOWTIDE_TIDE_SHARE_H

#include "law.h"
#include "cubic.h"
#include "hystart.h"
#include "tide_path.h"

#define TIDE_SHARE_LEAST 2		/* least window of an ordinary flow */
#define TIDE_SHARE_LOW_WINDOW 16	/* its slow start ends by delay or ACK trains from here on (Linux) */
#define TIDE_SHARE_SLOWEST_Q16 (Q16_ONE / 16)	/* a segment per 16 RTTs: negligible */
#define TIDE_SHARE_BETA_Q32 3006477107U	/* RFC 9438, section 4.6 */
#define TIDE_SHARE_C_Q22 1677722U	/* 0.4 segments per second cubed */
#define TIDE_SHARE_REST 3		/* rounds that a back-off of competing flows takes to show at most */

struct tide_share {
	struct cubic_growth growth;
	struct hystart hystart;
	u64 cwnd_q16, ssthresh_q16;	/* a window below tide_share_least_q16 counts as that */
	/* longest queue of a round since the latest reduction, 2^-8 us; with `rest` that of the latest round */
	u64 peak;
	u64 weight_q16;		/* w */
	u32 part_q16;		/* w^1.2: growth as a part of an ordinary flow's */
	/* rounds until a fall of the queue counts again; a fall that shows ends with them at the latest */
	u32 rest;
	u32 paid;		/* an own loss has paid for the next back-off of competing flows */
	u32 falls;		/* the queue falls: an own loss may still explain it */
};

/* The square root of x < 2^62, rounded down. */
VERIFIED_APART u64 tide_root(u64 x)
{
	u64 root = 0;

	for (int bit = 30; bit >= 0; bit--) {
		u64 next = root | 1ULL << bit;

		root |= is_at_most(next * next, x) << bit;
	}
	return root;
}

/* The fifth root of x <= 1, 2^-12. */
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

/* The window of the share; 0: there is no weight. */
static inline u64 tide_share_q16(const struct tide_share *s)
{
	return at_least(s->cwnd_q16, tide_share_least_q16(s));
}

static inline u64 tide_scaled(u64 x, u64 by, u64 over)
{
	return over ? x / over * by + x % over * by / over : x;
}

/*
 * The window changes with the weight at once, since small windows grow slowly. Growth is proportional to w^1.2: the
 * share of a link beside one CUBIC flow is then nearly w.
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

/*
 * `window_q16` fills the path. The share rises to w times that at once, since it grows slowly, but to at most 2
 * segments.
 */
static inline void tide_share_begin(struct tide_share *s, u64 window_q16)
{
	s->cwnd_q16 = at_least(s->cwnd_q16, at_most((window_q16 >> 8) * s->weight_q16 >> 8, 2 * Q16_ONE));
}

/* The growth of an ordinary flow, times a part that depends on the weight. */
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
	/* what was acknowledged beyond the share's window were probes */
	s->cwnd_q16 = cubic_growth_ack(&s->growth, &shape, w.cwnd_q16, at_most(left, before), a->now_us);
	return 0;
}

static inline void tide_share_ack(struct tide_share *s, const struct law_ack *a)
{
	if (s->weight_q16 && !a->reducing)
		tide_share_grow(s, a);
}

/* Reduces the window to this part. The queue that falls now is the same back-off. */
static inline void tide_share_lower(struct tide_share *s, u64 part_q32, bool own)
{
	struct cubic_shape shape = { .beta_q32 = TIDE_SHARE_BETA_Q32, .fast_convergence = own };

	cubic_growth_reduce(&s->growth, &shape, s->cwnd_q16, true);
	s->cwnd_q16 = s->ssthresh_q16 = at_least(cubic_part(s->cwnd_q16, part_q32), tide_share_least_q16(s));
	s->peak = 0;
	s->rest = TIDE_SHARE_REST;
}

/*
 * A fall of the queue, if there was one, is over: the share backs off, too. An ordinary flow would not see that, so it
 * counts less, the larger the weight is.
 */
static inline void tide_share_follow(struct tide_share *s)
{
	u64 given_up_q32 = ((1ULL << 32) - TIDE_SHARE_BETA_Q32) * (Q16_ONE - s->weight_q16) >> 16;

	if (s->falls && !s->paid && given_up_q32)
		tide_share_lower(s, (1ULL << 32) - given_up_q32, false);
	s->paid &= !s->falls;
	s->falls = 0;
}

/* FILL ends with this window. */
static inline void tide_share_enter(struct tide_share *s, u64 window_q16)
{
	u64 part = (window_q16 >> 8) * s->weight_q16 >> 8;

	tide_share_follow(s);
	s->cwnd_q16 = at_least(s->cwnd_q16, part);
	s->peak = 0;
	s->rest = 0;
}

/*
 * A round of LISTEN has ended with this least queue. If it has fallen by 15 % and 1 ms a competing flow has left or
 * backed off: which one, shows when the fall is over.
 */
static inline void tide_share_round(struct tide_share *s, const struct tide_path *path, u64 queue)
{
	bool over;

	if (!s->weight_q16 || s->weight_q16 == Q16_ONE)
		return;
	if (s->rest) {
		/* an empty queue may mean that competing flows are gone */
		over = s->rest == 1 || (queue >= s->peak && queue >= tide_free_link_queue(path));
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

/* An own loss, or a timeout. It pays for the fall that shows, or for the next one. */
static inline void tide_share_reduce(struct tide_share *s)
{
	s->paid |= !s->falls;
	s->falls = 0;
	tide_share_lower(s, TIDE_SHARE_BETA_Q32, true);
}

/* After the reduction of a timeout the window begins at the least. */
static inline void tide_share_timed_out(struct tide_share *s)
{
	cubic_growth_timed_out(&s->growth);
	s->cwnd_q16 = tide_share_least_q16(s);
}

/* After an idle time: `left_q16` is left of the window (RFC 2861, section 3.1). */
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
