/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus), without kernel access: LEDBAT on RTTs, with a gain that depends on the
 * base delay, a multiplicative decrease, and slowdowns in which the queue drains and the base delay can be measured.
 * The differences from the draft are those of the reference (lowtide-cc, law/ledbatpp.rs). A slowdown whose condition
 * is barely met can begin one ACK later than there, and then all later ones do: in 3 of 20 flows of 500 000 ACKs.
 */
#ifndef LOWTIDE_LEDBATPP_H
#define LOWTIDE_LEDBATPP_H

#include "law.h"
#include "delay.h"

struct ledbatpp_parameters {
	u32 target_us;
	u32 max_divisor;
	u32 constant_q16;
	u32 slow_start_exit_q16;
	u32 slowdown;
	u32 slowdown_delay_q16, slowdown_hold_q16, slowdown_interval_q16;
	u32 min_cwnd_q16, init_cwnd_q16;	/* segments */
	u32 base_history, current_filter;
	u32 beta_q16;				/* kept at a loss */
};

/* Between slowdowns a flow is steady. In a slowdown it is held at the minimum window, then it grows back. */
enum ledbatpp_phase { LEDBATPP_INITIAL, LEDBATPP_STEADY, LEDBATPP_HELD, LEDBATPP_RAMP };

struct ledbatpp {
	struct base_delay base;
	struct current_delay current;
	u64 queuing_us;
	u64 now_us;		/* the latest ACK, or the end of an idle time */
	u64 since_us;		/* when the slowdown began */
	u64 until_us;		/* steady: when the next one begins; held: when it ends */
	u64 back_q16;		/* the window after a slowdown */
	u32 srtt_us;
	u32 divisor;		/* GAIN is one over it */
	u32 phase;		/* enum ledbatpp_phase */
	u32 known;		/* there is a delay */
	/* remainder of divisions in slow start, so that thirds of a segment add up to whole ones */
	u32 rest;
};

static inline void ledbatpp_begin(struct ledbatpp *l, const struct ledbatpp_parameters *p, struct law_window *w, u32 nxt)
{
	__builtin_memset(l, 0, sizeof(*l));
	base_delay_begin(&l->base);
	current_delay_begin(&l->current);
	l->divisor = p->max_divisor;
	w->cwnd_q16 = at_least(p->init_cwnd_q16, p->min_cwnd_q16);
}

static inline void ledbatpp_sample(struct ledbatpp *l, const struct ledbatpp_parameters *p, const struct law_ack *a)
{
	s64 base, current;
	u64 divisor;

	l->now_us = a->now_us;
	l->srtt_us = a->srtt_us;
	if (a->rtt_us) {
		base_delay_sample(&l->base, p->base_history, a->now_us, a->rtt_us);
		current_delay_sample(&l->current, p->current_filter, a->now_us, a->rtt_us);
	}
	base = base_delay(&l->base);
	if (base == NO_DELAY)
		return;
	current = current_delay(&l->current, a->now_us, ~0ULL);
	l->known = 1;
	l->queuing_us = current > base ? current - base : 0;
	divisor = at_least((2 * (u64)p->target_us + base - 1) / at_least(base, 1), 1);
	l->divisor = divisor < p->max_divisor ? divisor : p->max_divisor;
}

static inline u64 ledbatpp_round_trips(const struct ledbatpp *l, u32 count_q16)
{
	return ((u64)l->srtt_us * count_q16) >> 16;
}

/* The decrease per RTT for delay, in 2^-24 segments: Constant W (q/TARGET - 1), at most W. */
static inline u64 ledbatpp_decrease(const struct ledbatpp *l, const struct ledbatpp_parameters *p, u64 cwnd_q16)
{
	u64 target = at_least(p->target_us, 1), over, part_q24;

	if (l->queuing_us <= target)
		return 0;
	over = l->queuing_us - target;
	if (over >> 16 > target)	/* Constant is 2^-16 at least, or 0 */
		over = target << 16;
	part_q24 = ((((over << 24) + target / 2) / target) * p->constant_q16) >> 16;
	return (cwnd_q16 * (part_q24 < Q24_ONE ? part_q24 : Q24_ONE)) >> 16;
}

static inline void ledbatpp_control(struct ledbatpp *l, const struct ledbatpp_parameters *p, struct law_window *w, const struct law_ack *a)
{
	u64 acked = a->packets < LAW_PACKETS_MAX ? a->packets : LAW_PACKETS_MAX;
	u64 divisor = at_least(l->divisor, 1), gain = Q24_ONE / divisor, half = w->cwnd_q16 << 7, less, change, grown;

	if (law_starts(w)) {
		if (a->window_limited) {
			grown = (acked << 16) + l->rest;
			l->rest = grown % divisor;
			w->cwnd_q16 += grown / divisor;
			if (w->cwnd_q16 > w->ssthresh_q16)
				w->cwnd_q16 = w->ssthresh_q16;
		}
		return;
	}
	less = ledbatpp_decrease(l, p, w->cwnd_q16);
	if (less > gain) {
		less -= gain;
		change = law_in_round(w, less < half ? less : half, a->packets);
		w->cwnd_q16 = w->cwnd_q16 > change ? w->cwnd_q16 - change : 0;
	} else if (a->window_limited) {
		w->cwnd_q16 += law_in_round(w, gain - less, a->packets);
	} else {
		return;
	}
	w->cwnd_q16 = at_least(w->cwnd_q16, law_minimum(w, p->min_cwnd_q16));
	if (w->ssthresh_q16 > w->cwnd_q16)	/* else slow start would restore it at once */
		w->ssthresh_q16 = w->cwnd_q16;
}

/* The initial slow start is over. */
static inline void ledbatpp_leave_initial(struct ledbatpp *l, const struct ledbatpp_parameters *p)
{
	l->phase = LEDBATPP_STEADY;
	l->until_us = l->now_us + ledbatpp_round_trips(l, p->slowdown_delay_q16);
}

static inline void ledbatpp_hold(const struct ledbatpp_parameters *p, struct law_window *w)
{
	u64 minimum = law_minimum(w, p->min_cwnd_q16);

	if (w->cwnd_q16 > minimum)
		w->cwnd_q16 = minimum;
}

/* Begins and ends slowdowns. */
static inline void ledbatpp_slow_down(struct ledbatpp *l, const struct ledbatpp_parameters *p, struct law_window *w)
{
	u64 now = l->now_us;

	if (l->phase == LEDBATPP_INITIAL) {
		if (l->queuing_us << 16 > (u64)p->target_us * p->slow_start_exit_q16) {
			w->ssthresh_q16 = w->cwnd_q16;
			ledbatpp_leave_initial(l, p);
		}
	} else if (l->phase == LEDBATPP_STEADY) {
		if (p->slowdown && now >= l->until_us && !law_starts(w)) {
			w->ssthresh_q16 = l->back_q16 = w->cwnd_q16;
			ledbatpp_hold(p, w);
			l->phase = LEDBATPP_HELD;
			l->since_us = now;
			l->until_us = now + ledbatpp_round_trips(l, p->slowdown_hold_q16);
		}
	} else if (l->phase == LEDBATPP_HELD) {
		if (now >= l->until_us)
			l->phase = LEDBATPP_RAMP;
	} else if (!law_starts(w)) {
		l->phase = LEDBATPP_STEADY;
		l->until_us = now + (((now - l->since_us) * p->slowdown_interval_q16) >> 16);
	}
}

static inline bool ledbatpp_ack(struct ledbatpp *l, const struct ledbatpp_parameters *p, const struct law_weight *weight,
				struct law_window *w, const struct law_ack *a)
{
	if (!l->known)
		return false;
	if (l->phase == LEDBATPP_HELD)
		ledbatpp_hold(p, w);	/* also after a reduction was undone */
	else
		ledbatpp_control(l, p, w, a);
	ledbatpp_slow_down(l, p, w);
	return false;
}

/* A loss while the window is held also reduces the window after the slowdown. */
static inline void ledbatpp_reduce(struct ledbatpp *l, const struct ledbatpp_parameters *p, const struct law_weight *weight,
				   struct law_window *w, enum law_signal signal, u32 random)
{
	u64 used = l->phase == LEDBATPP_HELD ? w->ssthresh_q16 : w->cwnd_q16;

	law_lower_to(w, weight, (used * p->beta_q16) >> 16, law_minimum(w, p->min_cwnd_q16), signal);
	l->back_q16 = w->ssthresh_q16;
	if (l->phase == LEDBATPP_INITIAL)
		ledbatpp_leave_initial(l, p);
	else if (l->phase == LEDBATPP_HELD && signal == LAW_TIMEOUT)
		l->phase = LEDBATPP_RAMP;
}

static inline void ledbatpp_answered(struct ledbatpp *l)
{
}

/* The stack has one value for the end of an episode and for the threshold. */
static inline void ledbatpp_recovered(struct ledbatpp *l, struct law_window *w, u32 nxt)
{
	if (l->phase == LEDBATPP_HELD || l->phase == LEDBATPP_RAMP)
		w->ssthresh_q16 = at_least(w->ssthresh_q16, l->back_q16);
}

static inline void ledbatpp_undone(struct ledbatpp *l)
{
}

/* Idle time does not count for slowdowns. */
static inline void ledbatpp_restart(struct ledbatpp *l, struct law_window *w, u32 nxt, u64 idle_us)
{
	l->now_us += idle_us;
	l->since_us += idle_us;
	l->until_us += idle_us;
}

static inline u32 ledbatpp_inspect(const struct ledbatpp *l, const struct ledbatpp_parameters *p, const struct law_weight *weight, s64 *values)
{
	values[0] = l->known ? base_delay(&l->base) : LAW_NO_VALUE;
	values[1] = l->known ? (s64)l->queuing_us : LAW_NO_VALUE;
	values[2] = p->target_us;
	values[3] = l->divisor;
	values[4] = l->phase;
	return 5;
}

#endif
