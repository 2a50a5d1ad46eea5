/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Eclipse (Adhari, Dreibholz, Werner, Rathgeb: "Eclipse: A New Dynamic Delay-based Congestion Control Algorithm for
 * Background Traffic"), without kernel access: keeps the delay at a small part of the range that was measured.
 *
 * What the paper leaves open is as in the reference (lowtide-cc, law/eclipse.rs), which has the reasons. With a price
 * weight delta follows from it (law/eclipse/weighted.rs). Delays are units of 2^-8 us above the first one, and may be
 * up to 8 s apart. Each socket of a transfer has a part of cwnd_min. Windows are within 0.1 % and 0.01 segments of the
 * reference's. Parameters are rounded to 2^-16, beta to 2^-32.
 */
#ifndef LOWTIDE_ECLIPSE_H
#define LOWTIDE_ECLIPSE_H

#include "law.h"

#define ECLIPSE_SAMPLES 8			/* before slow start may end by delay */
#define ECLIPSE_DRAIN_PAUSE 9			/* least pause between two drains, in lengths of a drain */
#define ECLIPSE_RANGE_MOST ((1ULL << 31) - 1)
#define ECLIPSE_INFINITE (1ULL << 55)		/* above all delays */
#define ECLIPSE_FLOOR (2000ULL << 8)		/* least delta with a weight: CDG's floor */

enum eclipse_mu { ECLIPSE_MU_ADAPTIVE, ECLIPSE_MU_LITERAL, ECLIPSE_MU_FIXED };

struct eclipse_parameters {
	u32 beta_q32;
	u32 alpha_q16;
	u32 cwnd_min_q16;	/* segments */
	u32 mu;			/* enum eclipse_mu */
	u32 mu_initial_us, mu_min_us, mu_rtts_q16, mu_max_us;
	u32 stable_us;
	u32 delta_min_us, delta_floor_q16;
	u32 guard;
	u32 drain_us, drain_rtts_q16;
	u32 slow_start;		/* 0: ends by delay, 1: by congestion only */
	u32 beta_loss_q16;	/* kept at a loss */
};

/* An adaptation interval: the extremes of the delay, and when they occurred, from its start. */
struct eclipse_interval {
	u64 start_us;
	s64 min, max;
	u64 min_at_us, max_at_us;
	u32 open;
};

struct eclipse {
	struct eclipse_interval interval;
	s64 origin_us;		/* the first delay */
	s64 tau;		/* the latest delay */
	s64 s_min, s_max;
	u64 delta;
	u64 mu_q16;		/* us */
	s64 arrived_us;		/* arrival of the latest segment, from an unknown origin */
	u64 segment_gap;	/* least time between two arrivals in this interval; ~0: none yet */
	u64 drain_us;		/* when the latest drain began or ended; 0: never */
	u32 samples;
	u32 base_rtt_us;	/* 0: none yet */
	u32 fresh;		/* this ACK had a delay */
	u32 draining;
};

static inline void eclipse_begin(struct eclipse *e, const struct eclipse_parameters *p, struct law_window *w, u32 nxt)
{
	__builtin_memset(e, 0, sizeof(*e));
	e->delta = (u64)p->delta_min_us << 8;
	e->mu_q16 = (u64)p->mu_initial_us << 16;
	e->segment_gap = ~0ULL;
	w->cwnd_q16 = at_least(w->cwnd_q16, p->cwnd_min_q16);
}

static inline u64 eclipse_distance(s64 high, s64 low)
{
	u64 distance = high > low ? high - low : 0;

	return distance < ECLIPSE_RANGE_MOST ? distance : ECLIPSE_RANGE_MOST;
}

/* The packet time at the present rate. */
static inline u64 eclipse_packet_time(const struct law_ack *a)
{
	return ((u64)a->srtt_us << 24) / at_least(a->cwnd_q16, 1);
}

/*
 * Bounds the packet time of the slowest link from above, by arrivals. Segments that arrive at one time give no bound.
 */
static inline void eclipse_segment_gap(struct eclipse *e, const struct law_ack *a)
{
	s64 arrived_us = a->now_us - a->rtt_us + a->delay_us;
	u64 gap = eclipse_distance(arrived_us << 8, e->arrived_us << 8) / at_least(a->packets, 1);

	if (e->samples && arrived_us > e->arrived_us && gap < e->segment_gap)
		e->segment_gap = gap;
	e->arrived_us = arrived_us;
}

/* The delay of a segment that was sent once (Karn). False: there is none. */
static inline bool eclipse_delay(struct eclipse *e, const struct law_ack *a)
{
	if (!a->rtt_us)
		return false;
	if (!e->base_rtt_us || a->rtt_us < e->base_rtt_us)
		e->base_rtt_us = a->rtt_us;
	if (!a->has_delay)
		return false;
	if (!e->samples)
		e->origin_us = a->delay_us;
	eclipse_segment_gap(e, a);
	if (e->samples < ECLIPSE_SAMPLES)
		e->samples++;
	e->tau = (a->delay_us - e->origin_us) << 8;
	return true;
}

/*
 * The next interval, before its bounds: half of this one if the delay was stable, twice this one if a trend runs
 * through it, else the rise of the delay.
 */
static inline u64 eclipse_next_mu(const struct eclipse *e, const struct eclipse_interval *i, u64 now_us, u64 stable)
{
	u64 length = now_us - i->start_us, first, last, rise, shorter = e->mu_q16 - e->mu_q16 / 8;

	if (eclipse_distance(i->max, i->min) < stable)
		return e->mu_q16 / 2;
	first = i->min_at_us < i->max_at_us ? i->min_at_us : i->max_at_us;
	last = i->min_at_us < i->max_at_us ? i->max_at_us : i->min_at_us;
	if (first * 10 <= length && last * 10 >= length * 9)
		return e->mu_q16 * 2;
	rise = i->max_at_us - i->min_at_us + (i->max_at_us < i->min_at_us ? length : 0);
	return at_least(rise << 16, shorter);
}

static inline void eclipse_end_interval(struct eclipse *e, const struct eclipse_parameters *p, const struct law_ack *a)
{
	const struct eclipse_interval *i = &e->interval;
	u64 own = p->guard || a->weight_q16 ? e->delta + e->delta / 4 : 0;
	u64 stable, packet, gap = e->segment_gap, least, most = (u64)p->mu_max_us << 16, mu;

	e->segment_gap = ~0ULL;
	if (i->min > e->s_min && eclipse_distance(i->min, e->s_min) > own)
		e->s_min += (eclipse_distance(i->min, e->s_min) * p->alpha_q16 + (1 << 15)) >> 16;
	if (i->max < e->s_max)
		e->s_max -= (eclipse_distance(e->s_max, i->max) * p->alpha_q16 + (1 << 15)) >> 16;
	if (p->mu == ECLIPSE_MU_FIXED)
		return;
	if (p->mu == ECLIPSE_MU_LITERAL) {
		mu = i->max_at_us > i->min_at_us ? i->max_at_us - i->min_at_us : i->min_at_us - i->max_at_us;
		e->mu_q16 = mu << 16;
		return;
	}
	/* Beside cross traffic an own packet takes far longer than the link needs for it, which would hide changes. */
	packet = eclipse_packet_time(a);
	stable = at_least((u64)p->stable_us << 8, packet < gap ? packet : gap);
	least = at_least((u64)p->mu_min_us << 16, (u64)p->mu_rtts_q16 * a->srtt_us);
	mu = at_least(eclipse_next_mu(e, i, a->now_us, stable), least);
	e->mu_q16 = mu < most ? mu : most;
}

static inline u64 eclipse_delta(const struct eclipse *e, const struct eclipse_parameters *p, const struct law_ack *a)
{
	u64 range = eclipse_distance(e->s_max, e->s_min), w = a->weight_q16;
	u64 floor = (u64)p->delta_min_us << 8, delta;

	if (p->delta_floor_q16)
		floor = at_least(floor, (p->delta_floor_q16 * eclipse_packet_time(a)) >> 16);
	if (!w)
		return at_least(((range * p->beta_q32) + (1ULL << 31)) >> 32, floor);
	if (w >= Q16_ONE)
		return ECLIPSE_INFINITE;
	delta = range * w / (Q16_ONE - w);
	return at_least(at_least(delta, floor), at_least(ECLIPSE_FLOOR, (u64)e->base_rtt_us << 4));
}

/* Updates the smoothed extremes and delta (sections III-A and III-C) by a delay. */
static inline void eclipse_sample(struct eclipse *e, const struct eclipse_parameters *p, const struct law_ack *a)
{
	struct eclipse_interval *i = &e->interval;

	e->fresh = eclipse_delay(e, a);
	if (!e->fresh)
		return;
	if (e->tau < e->s_min)
		e->s_min = e->tau;
	if (e->tau > e->s_max)
		e->s_max = e->tau;
	if (!i->open) {
		i->open = 1;
		i->start_us = a->now_us;
		i->min = i->max = e->tau;
		i->min_at_us = i->max_at_us = 0;
	} else if (e->tau < i->min) {
		i->min = e->tau;
		i->min_at_us = a->now_us - i->start_us;
	} else if (e->tau > i->max) {
		i->max = e->tau;
		i->max_at_us = a->now_us - i->start_us;
	}
	if ((a->now_us - i->start_us) << 16 >= e->mu_q16) {
		i->open = 0;
		eclipse_end_interval(e, p, a);
	}
	e->delta = eclipse_delta(e, p, a);
}

/* Begins and ends drains. Slow start leads back to the window before. */
static inline void eclipse_drain(struct eclipse *e, const struct eclipse_parameters *p, struct law_window *w, const struct law_ack *a)
{
	u64 length_q16 = (u64)a->srtt_us * p->drain_rtts_q16, since_q16;

	if (!e->drain_us)
		e->drain_us = a->now_us;
	since_q16 = (a->now_us - e->drain_us) << 16;
	if (e->draining) {
		if (since_q16 >= length_q16) {
			e->draining = 0;
			e->drain_us = a->now_us;
		}
	} else if (since_q16 >= at_least((u64)p->drain_us << 16, length_q16 * ECLIPSE_DRAIN_PAUSE) && !law_in_slow_start(w)) {
		e->draining = 1;
		e->drain_us = a->now_us;
		w->ssthresh_q16 = w->cwnd_q16;
		if (w->cwnd_q16 > law_minimum(w, p->cwnd_min_q16))
			w->cwnd_q16 = law_minimum(w, p->cwnd_min_q16);
	}
}

/* 1 - d/delta segments per RTT (section III-B), not below -(1/beta - 1), or with a weight half of the window. */
static inline void eclipse_steer(const struct eclipse *e, const struct eclipse_parameters *p, const struct law_weight *weight,
				 struct law_window *w, const struct law_ack *a)
{
	u64 delta = at_least(e->delta, 1);
	u64 off = ((eclipse_distance(e->tau, e->s_min) << 24) + delta / 2) / delta;
	u64 most = weight->weight_q16 ? w->cwnd_q16 << 7 : (1ULL << 56) / at_least(p->beta_q32, 1) - Q24_ONE;
	u64 minimum = law_minimum(w, p->cwnd_min_q16), change;

	if (off <= Q24_ONE) {
		if (a->window_limited)
			w->cwnd_q16 += law_in_round(w, Q24_ONE - off, a->packets);
		return;
	}
	off -= Q24_ONE;
	change = law_in_round(w, off < most ? off : most, a->packets);
	if (minimum > w->cwnd_q16)
		minimum = w->cwnd_q16;
	w->cwnd_q16 = w->cwnd_q16 > change ? at_least(w->cwnd_q16 - change, minimum) : minimum;
	if (w->ssthresh_q16 > w->cwnd_q16)
		w->ssthresh_q16 = w->cwnd_q16;	/* no slow start back */
}

static inline bool eclipse_ack(struct eclipse *e, const struct eclipse_parameters *p, const struct law_weight *weight,
			       struct law_window *w, const struct law_ack *a)
{
	if (p->drain_us)
		eclipse_drain(e, p, w, a);
	if (e->draining)
		return false;
	if (!law_in_slow_start(w)) {
		if (e->fresh)
			eclipse_steer(e, p, weight, w, a);
	} else if (e->fresh && e->samples >= ECLIPSE_SAMPLES && !p->slow_start && eclipse_distance(e->tau, e->s_min) > e->delta) {
		w->ssthresh_q16 = w->cwnd_q16;
	} else if (a->window_limited) {
		law_slow_start(w, a->packets);
	}
	return false;
}

static inline void eclipse_reduce(struct eclipse *e, const struct eclipse_parameters *p, const struct law_weight *weight,
				  struct law_window *w, enum law_signal signal, u32 random)
{
	law_lower_to(w, weight, (w->cwnd_q16 * p->beta_loss_q16) >> 16, law_minimum(w, p->cwnd_min_q16), signal);
}

static inline void eclipse_answered(struct eclipse *e)
{
}

static inline void eclipse_recovered(struct eclipse *e, struct law_window *w, u32 nxt)
{
}

static inline void eclipse_undone(struct eclipse *e)
{
}

/* After a long idle time only the least delay is known. */
static inline void eclipse_restart(struct eclipse *e, struct law_window *w, u32 nxt, u64 idle_us)
{
	if (idle_us << 16 > e->mu_q16) {
		e->interval.open = 0;
		e->s_max = e->s_min;
	}
}

static inline u32 eclipse_inspect(const struct eclipse *e, const struct eclipse_parameters *p, const struct law_weight *weight, s64 *values)
{
	bool known = e->samples;

	values[0] = known ? e->tau : LAW_NO_VALUE;
	values[1] = known ? e->s_min : LAW_NO_VALUE;
	values[2] = known ? e->s_max : LAW_NO_VALUE;
	values[3] = e->delta < ECLIPSE_INFINITE ? (s64)e->delta : LAW_NO_VALUE;
	values[4] = e->mu_q16;
	values[5] = e->draining;
	return 6;
}

#endif
