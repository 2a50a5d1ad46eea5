/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * LEDBAT (RFC 6817): keeps the queueing delay at TARGET by a linear controller, without kernel access.
 *
 * Notable differences from the RFC, which the reference (lowtide-cc, law/ledbat.rs) shares: the window follows the
 * delay outside of reduction episodes only, the congestion timeout is TCP's, and slow start, if enabled, ends at
 * TARGET. In the kernel the first flight is TCP's initial window; INIT_CWND counts from its first ACK.
 *
 * Each socket of a transfer has a part of min_cwnd. Linux holds back what does not fill a large packet, and reports the
 * window as the limit. Then it counts as full here, too, or LEDBAT stays at 63 of 130 segments (measured, 20 Mbit/s, 40
 * ms). base_history is at most 32 minutes, current_filter 16 samples. Windows are within 0.1 % and 0.01 segments of the
 * reference's. Rounding errors add up, so changes per RTT have 24 fractional bits.
 */
#ifndef LOWTIDE_LEDBAT_H
#define LOWTIDE_LEDBAT_H

#include "law.h"
#include "delay.h"

struct ledbat_parameters {
	u32 target_us;
	u32 gain_q16, allowed_increase_q16;
	u32 min_cwnd_q16, init_cwnd_q16;	/* segments */
	u32 base_history, current_filter;
	u32 beta_q16;				/* kept at a loss */
	u32 slow_start;
};

struct ledbat {
	struct base_delay base;
	struct current_delay current;
	u64 queuing_us;
	u32 known;		/* there are recent delays */
};

static inline void ledbat_begin(struct ledbat *l, const struct ledbat_parameters *p, struct law_window *w, u32 nxt)
{
	__builtin_memset(l, 0, sizeof(*l));
	base_delay_begin(&l->base);
	current_delay_begin(&l->current);
	w->cwnd_q16 = at_least(p->init_cwnd_q16, p->min_cwnd_q16);
}

static inline void ledbat_sample(struct ledbat *l, const struct ledbat_parameters *p, const struct law_ack *a)
{
	s64 base, current;

	if (a->has_delay) {
		base_delay_sample(&l->base, p->base_history, a->now_us, a->delay_us);
		current_delay_sample(&l->current, p->current_filter, a->now_us, a->delay_us);
	}
	base = base_delay(&l->base);
	current = current_delay(&l->current, a->now_us, a->srtt_us);
	l->known = base != NO_DELAY && current != NO_DELAY;
	if (l->known)
		l->queuing_us = current > base ? current - base : 0;
}

/*
 * GAIN off_target acked/cwnd, of either sign (RFC 6817, section 2.4.2). What is in flight bounds the window, so that it
 * does not grow unused.
 */
static inline void ledbat_follow(struct ledbat *l, const struct ledbat_parameters *p, struct law_window *w, const struct law_ack *a)
{
	u64 target = at_least(p->target_us, 1);
	bool above = l->queuing_us > target;
	u64 off = above ? l->queuing_us - target : target - l->queuing_us;
	u64 allowed = ((u64)a->in_flight << 16) + p->allowed_increase_q16;
	u64 off_q24, change;

	if (off >> 39)
		off = (1ULL << 39) - 1;
	off_q24 = ((off << 24) + target / 2) / target;
	if (off_q24 >> 40)
		off_q24 = (1ULL << 40) - 1;
	change = law_in_round(w, (off_q24 * p->gain_q16) >> 16, a->packets);
	if (above)
		w->cwnd_q16 = w->cwnd_q16 > change ? w->cwnd_q16 - change : 0;
	else
		w->cwnd_q16 += change;
	if (w->cwnd_q16 > allowed)
		w->cwnd_q16 = allowed;
	w->cwnd_q16 = at_least(w->cwnd_q16, law_minimum(w, p->min_cwnd_q16));
}

static inline bool ledbat_in_slow_start(const struct ledbat_parameters *p, const struct law_window *w)
{
	return p->slow_start && law_starts(w);
}

static inline bool ledbat_ack(struct ledbat *l, const struct ledbat_parameters *p, const struct law_weight *weight,
			      struct law_window *w, const struct law_ack *a)
{
	if (!l->known)
		return false;
	if (ledbat_in_slow_start(p, w) && l->queuing_us >= p->target_us)
		w->ssthresh_q16 = w->cwnd_q16;
	if (!ledbat_in_slow_start(p, w))
		ledbat_follow(l, p, w, a);
	else if (a->window_limited)
		law_slow_start(w, a->packets);
	return false;
}

/* The one segment after a timeout is below the minimum. */
static inline void ledbat_reduce(struct ledbat *l, const struct ledbat_parameters *p, const struct law_weight *weight,
				 struct law_window *w, enum law_signal signal, u32 random)
{
	law_lower_to(w, weight, (w->cwnd_q16 * p->beta_q16) >> 16, law_minimum(w, p->min_cwnd_q16), signal);
}

static inline void ledbat_answered(struct ledbat *l)
{
}

static inline void ledbat_recovered(struct ledbat *l, struct law_window *w, u32 nxt)
{
}

static inline void ledbat_undone(struct ledbat *l)
{
}

static inline void ledbat_restart(struct ledbat *l, struct law_window *w, u32 nxt, u64 idle_us)
{
}

static inline u32 ledbat_inspect(const struct ledbat *l, const struct ledbat_parameters *p, const struct law_weight *weight, s64 *values)
{
	s64 base = base_delay(&l->base);

	values[0] = base != NO_DELAY ? base : LAW_NO_VALUE;
	values[1] = l->known ? (s64)l->queuing_us : LAW_NO_VALUE;
	values[2] = p->target_us;
	return 3;
}

#endif
