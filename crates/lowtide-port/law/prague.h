/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * TCP Prague (L4STeam/linux, net/ipv4/tcp_prague.c, v0.6 and v0.7; RFC 9331, section 4), without kernel access: DCTCP
 * that does not depend on short RTTs, grows by unmarked segments only, and does so in reduction episodes, too. The
 * reference is law/prague of lowtide-cc. It also has the detection of classic queues, and pacing. Here pacing is the
 * stack's: 120 % of cwnd/srtt (200 % in slow start), where the source has 100 % and bursts of at most 250 us. Windows
 * below four segments are paced exactly, as with all laws here. Growth within an episode raises the threshold that PRR
 * walks to.
 */
#ifndef LOWTIDE_PRAGUE_H
#define LOWTIDE_PRAGUE_H

#include "transients.h"

#define PRAGUE_MTU 1500			/* segment size in which v0.7 counts the increase, bytes with headers */
#define PRAGUE_HEADERS 52
#define PRAGUE_LEAST_RATE_Q16 (Q16_ONE / 60)	/* segments per second, unless min_rate is set */
#define PRAGUE_MIN_CWND_Q16 (2 * Q16_ONE)
#define PRAGUE_FLOOR_Q16 (Q16_ONE / 64)
#define PRAGUE_RATE_MOST_Q16 (1ULL << 40)	/* 16 million segments per second */
#define PRAGUE_R0_US 16384		/* scales of PRAGUE_SCALABLE */
#define PRAGUE_R1_US 1536

enum prague_variant { PRAGUE_V06, PRAGUE_V07 };
enum prague_alpha { PRAGUE_HALVE, PRAGUE_ONE };
enum prague_mode { PRAGUE_NONE, PRAGUE_RATE, PRAGUE_SCALABLE, PRAGUE_ADDITIVE };
enum prague_steering { PRAGUE_BY_WINDOW, PRAGUE_BY_RATE, PRAGUE_SWITCH };

struct prague_parameters {
	u32 variant;		/* enum prague_variant */
	u32 gain_q16;
	u32 alpha_mode;		/* enum prague_alpha */
	u32 beta_q16;		/* kept at a loss */
	u32 mode;		/* enum prague_mode */
	u32 target_us;		/* shorter RTTs are scaled to it */
	u32 transition;		/* RTTs after slow start until then */
	u32 max_rtt_us;		/* with a longer RTT the increase is not scaled */
	u32 cwnd_mode;		/* enum prague_steering */
	u32 cwnd_transit_q16;	/* PRAGUE_SWITCH: by rate up to this window, in units of PRAGUE_MTU */
	u32 min_rate;		/* bits per second */
	struct transients_parameters transients;
};

struct prague {
	u64 before_q16, before_ssthresh_q16;	/* values before the latest reduction for a loss or timeout */
	u64 rate_q16;		/* segments per second */
	u64 now_us;		/* the latest ACK */
	u64 updated_us;		/* when alpha was updated, if has_updated */
	u64 reduced_us;		/* when the window was reduced for a mark, if has_reduced */
	u64 slow_srtt_q8;	/* long-term average of RTTs, microseconds; 0: none */
	struct transients transients;
	struct marks marks;
	u32 alpha;
	u32 period_end;		/* sequence number */
	u32 periods;		/* since slow start */
	u32 srtt_us;
	u32 mss;
	u32 carry;		/* of law_step() */
	u8 saw_ce, halved, in_loss, undoable, chosen, has_updated, has_reduced;
};

static inline void prague_begin(struct prague *g, const struct prague_parameters *p, struct law_window *w, u32 nxt)
{
	bool one = p->alpha_mode == PRAGUE_ONE;

	transients_begin(&g->transients, nxt);
	g->marks.delivered = g->marks.marked = 0;
	g->before_q16 = g->before_ssthresh_q16 = 0;
	g->now_us = g->updated_us = g->reduced_us = g->slow_srtt_q8 = 0;
	g->rate_q16 = 0;
	g->alpha = one ? PART_ONE : 0;
	g->halved = one;
	g->period_end = nxt;
	g->periods = g->srtt_us = g->mss = g->carry = 0;
	g->saw_ce = g->in_loss = g->undoable = g->has_updated = g->has_reduced = 0;
	g->chosen = p->cwnd_mode == PRAGUE_BY_RATE;
}

static inline void prague_sample(struct prague *g, const struct prague_parameters *p, const struct law_ack *a)
{
}

/* The RTT that the flow behaves like. */
static inline u64 prague_target_us(const struct prague *g, const struct prague_parameters *p)
{
	return p->mode == PRAGUE_ADDITIVE ? (u64)p->target_us + g->srtt_us : p->target_us;
}

static inline bool prague_is_independent(const struct prague *g, const struct prague_parameters *p, const struct law_window *w)
{
	return p->mode != PRAGUE_NONE && !law_in_slow_start(w) && g->periods >= p->transition;
}

static inline bool prague_steers_by_rate(const struct prague *g, const struct prague_parameters *p, const struct law_window *w)
{
	return g->chosen && g->srtt_us && prague_is_independent(g, p, w);
}

static inline bool prague_within_target(const struct prague *g, const struct prague_parameters *p, u64 since_us)
{
	return g->now_us - since_us < prague_target_us(g, p);
}

/* The additive increase, 2^-24 segments per RTT. */
static inline u64 prague_increase_q24(const struct prague *g, const struct prague_parameters *p)
{
	u64 target = prague_target_us(g, p), srtt = g->srtt_us, part, delay;

	if (p->mode == PRAGUE_NONE || g->periods < p->transition || !srtt || srtt > p->max_rtt_us)
		return ROUND_ONE;
	if (p->mode == PRAGUE_SCALABLE) {
		delay = srtt > PRAGUE_R1_US ? srtt - PRAGUE_R1_US : 0;
		delay = PRAGUE_R0_US / 8 + (delay < PRAGUE_R0_US ? delay : PRAGUE_R0_US);
		return (delay * srtt) >> 4;	/* divided by R0 squared, 2^28 */
	}
	if (srtt >= target)
		return ROUND_ONE;
	part = (srtt << 30) / target;
	return (part * part) >> 36;
}

static inline u64 prague_size_q16(const struct prague *g, const struct prague_parameters *p)
{
	return p->variant == PRAGUE_V07 ? (PRAGUE_MTU * Q16_ONE) / (g->mss + PRAGUE_HEADERS) : Q16_ONE;
}

static inline u64 prague_least_rate_q16(const struct prague *g, const struct prague_parameters *p)
{
	return at_least(((u64)p->min_rate << 13) / at_least(g->mss, 1), PRAGUE_LEAST_RATE_Q16);
}

/* Least window after a reduction. `least`: that of the stack. */
static inline u64 prague_floor_q16(const struct prague *g, const struct prague_parameters *p, u64 least_q16)
{
	u64 floor;

	if (p->variant == PRAGUE_V06)
		return least_q16;
	floor = at_least(prague_least_rate_q16(g, p) * g->srtt_us / 1000000, PRAGUE_FLOOR_Q16);
	return floor < least_q16 ? floor : least_q16;
}

/* The rate of a window, and the window of a rate; the least rate if there is no RTT yet. */
static inline u64 prague_rate_of_q16(const struct prague *g, u64 cwnd_q16)
{
	return g->slow_srtt_q8 ? cwnd_q16 * 16000000 / at_least(g->slow_srtt_q8 >> 4, 1) : g->rate_q16;
}

static inline u64 prague_window_of_q16(const struct prague *g, u64 rate_q16)
{
	return rate_q16 * (g->slow_srtt_q8 >> 4) / 16000000;
}

/* A segment per virtual RTT. The window follows, but no faster than slow start. */
static inline void prague_grow_rate(struct prague *g, const struct prague_parameters *p, struct law_window *w, u64 acked_q16, u64 segments_q16)
{
	u64 rtt = at_least(prague_target_us(g, p), g->srtt_us), virtual, window;

	virtual = (g->rate_q16 * rtt / 1000000 + 0xffff) >> 16;
	if (virtual)
		g->rate_q16 += segments_q16 * 1000000 / rtt / virtual;
	if (g->rate_q16 > PRAGUE_RATE_MOST_Q16)
		g->rate_q16 = PRAGUE_RATE_MOST_Q16;
	window = prague_window_of_q16(g, g->rate_q16);
	if (window > w->cwnd_q16 + acked_q16)
		window = w->cwnd_q16 + acked_q16;
	w->cwnd_q16 = at_least(w->cwnd_q16, window);
}

static inline void prague_grow(struct prague *g, const struct prague_parameters *p, struct law_window *w, const struct law_ack *a)
{
	u32 unmarked = a->packets > a->marked ? a->packets - a->marked : 0;
	u64 acked, step, segments, gained;

	if (!unmarked || g->in_loss || !a->window_limited)
		return;
	acked = law_slow_start(w, unmarked);
	step = (g->transients.acceleration.a_q16 * prague_size_q16(g, p)) >> 16;
	step = step < 1ULL << 32 ? step : ~0U;
	if (prague_steers_by_rate(g, p, w)) {
		segments = (acked * step) >> 16;
		prague_grow_rate(g, p, w, acked, segments < 1ULL << 40 ? segments : 1ULL << 40);
		return;
	}
	gained = law_step(w->cwnd_q16, acked, (step * prague_increase_q24(g, p)) >> 16, &g->carry);
	w->cwnd_q16 += gained < acked ? gained : acked;
}

/* Once per RTT; once independent of RTTs, not before the target RTT has passed. */
static inline void prague_update(struct prague *g, const struct prague_parameters *p, const struct law_weight *weight,
				 struct law_window *w, const struct law_ack *a)
{
	u64 srtt_q8 = (u64)g->srtt_us << 8;
	u32 part;

	if ((prague_is_independent(g, p, w) && g->has_updated && prague_within_target(g, p, g->updated_us)) || !law_next_round(&g->period_end, a))
		return;
	part = marks_take(&g->marks);
	if (g->saw_ce) {
		g->alpha = marks_average(g->alpha, marks_price(part, weight), p->gain_q16);
		g->updated_us = g->now_us;
		g->has_updated = 1;
	}
	g->slow_srtt_q8 = (g->slow_srtt_q8 * 127 + srtt_q8) / 128;
	if (!law_in_slow_start(w) && g->periods < ~0U)
		g->periods++;
}

static inline void prague_lower(struct prague *g, const struct prague_parameters *p, struct law_window *w, u32 left)
{
	u64 floor = prague_floor_q16(g, p, w->least_q16);

	g->undoable = 0;
	floor = floor < w->cwnd_q16 ? floor : w->cwnd_q16;
	w->cwnd_q16 = w->ssthresh_q16 = at_least(part_of(w->cwnd_q16, left), floor);
	g->rate_q16 = at_least(part_of(g->rate_q16, left), prague_least_rate_q16(g, p));
}

static inline void prague_choose(struct prague *g, const struct prague_parameters *p, const struct law_window *w)
{
	u64 whole = (at_least(w->cwnd_q16, PRAGUE_MIN_CWND_Q16) + 0xffff) & ~0xffffULL;

	if (p->cwnd_mode == PRAGUE_SWITCH)
		g->chosen = g->saw_ce && whole <= (u64)p->cwnd_transit_q16 * PRAGUE_MTU / (g->mss + PRAGUE_HEADERS);
}

static inline bool prague_ack(struct prague *g, const struct prague_parameters *p, const struct law_weight *weight,
			      struct law_window *w, const struct law_ack *a)
{
	u64 before = w->cwnd_q16;
	bool reduced = false;
	u32 left;

	g->now_us = a->now_us;
	g->srtt_us = a->srtt_us;
	g->mss = a->mss;
	g->rate_q16 = at_least(g->rate_q16, prague_least_rate_q16(g, p));
	if (!g->slow_srtt_q8)
		g->slow_srtt_q8 = (u64)g->srtt_us << 8;
	g->saw_ce |= a->marked > 0;
	marks_count(&g->marks, a);
	prague_grow(g, p, w, a);
	prague_update(g, p, weight, w, a);
	left = transients_ack(&g->transients, &p->transients, w, a, g->in_loss);
	if (left < PART_ONE && w->cwnd_q16 > prague_floor_q16(g, p, w->least_q16)) {
		g->reduced_us = g->now_us;
		g->has_reduced = 1;
		prague_lower(g, p, w, left);
		reduced = w->cwnd_q16 < before;	/* false if this ACK's own growth was more */
	}
	prague_choose(g, p, w);
	if (!prague_steers_by_rate(g, p, w))
		g->rate_q16 = at_least(prague_rate_of_q16(g, w->cwnd_q16), prague_least_rate_q16(g, p));
	return reduced;
}

static inline void prague_mark(struct prague *g, const struct prague_parameters *p, const struct law_weight *weight, struct law_window *w)
{
	bool slow_start = law_in_slow_start(w), first = !g->halved;
	u32 left;

	g->halved = 1;
	if (!first && g->has_reduced && prague_is_independent(g, p, w) && prague_within_target(g, p, g->reduced_us)) {
		transients_reaction(&g->transients, &p->transients, PART_ONE, slow_start);
		return;
	}
	g->reduced_us = g->now_us;
	g->has_reduced = 1;
	left = first ? PART_ONE / 2 : PART_ONE - g->alpha / 2;
	transients_reaction(&g->transients, &p->transients, left, slow_start);
	prague_lower(g, p, w, ((u64)left * weight->kept_q16) >> 16);
}

static inline void prague_reduce(struct prague *g, const struct prague_parameters *p, const struct law_weight *weight,
				 struct law_window *w, enum law_signal signal, u32 random)
{
	u64 cwnd = w->cwnd_q16, ssthresh = w->ssthresh_q16;
	u32 left = p->beta_q16 << 14;

	if (signal == LAW_ECN || signal == LAW_PHANTOM) {
		if (!transients_is_answered(&g->transients))
			IN_PLACE prague_mark(g, p, weight, w);
		return;
	}
	g->in_loss = signal == LAW_LOSS;
	if (signal == LAW_TIMEOUT)
		transients_reset(&g->transients);
	else
		transients_reaction(&g->transients, &p->transients, left, law_in_slow_start(w));
	prague_lower(g, p, w, ((u64)left * weight->kept_q16) >> 16);
	g->before_q16 = cwnd;
	g->before_ssthresh_q16 = ssthresh;
	g->undoable = 1;
	if (signal == LAW_TIMEOUT && w->cwnd_q16 > Q16_ONE)
		w->cwnd_q16 = Q16_ONE;
}

static inline void prague_answered(struct prague *g)
{
	g->in_loss = 0;
	transients_reset(&g->transients);
}

static inline void prague_recovered(struct prague *g, struct law_window *w, u32 nxt)
{
	g->in_loss = 0;
}

static inline void prague_undone(struct prague *g, struct law_window *w)
{
	g->in_loss = 0;
	if (g->undoable) {
		w->cwnd_q16 = at_least(w->cwnd_q16, g->before_q16);
		w->ssthresh_q16 = at_least(w->ssthresh_q16, g->before_ssthresh_q16);
		g->rate_q16 = prague_rate_of_q16(g, w->cwnd_q16);
	}
	g->undoable = 0;
}

static inline void prague_restart(struct prague *g, struct law_window *w, u32 nxt, u64 idle_us)
{
	g->now_us += idle_us;
	g->rate_q16 = prague_rate_of_q16(g, w->cwnd_q16);
	transients_reset(&g->transients);
}

static inline u32 prague_inspect(const struct prague *g, const struct prague_parameters *p, const struct law_weight *weight, s64 *values)
{
	values[0] = g->alpha;
	transients_inspect(&g->transients, values + 1);
	values[6] = g->rate_q16;
	values[7] = prague_increase_q24(g, p);
	return 8;
}

#endif
