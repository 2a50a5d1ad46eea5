/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * CDG, CAIA Delay-Gradient: the law, without kernel access. The tests compile it natively; cdg_ops.h includes it for
 * the kernel.
 *
 * The source is D. A. Hayes, G. Armitage, "Revisiting TCP congestion control using delay gradients", 2011. The
 * behaviour is that of the mainline Linux module (net/ipv4/tcp_cdg.c), or with `variant` that of the thesis behind it
 * (K. K. Jonassen, 2015, appendix B). The reference is lowtide-cc's CDG (law/cdg). Notable differences:
 *
 * - The scale G is not a global parameter but follows the price weight w of the transfer. A round with smoothed
 *   gradient g backs off with probability 1 - exp(-(g/G0)(1/w - 1)). So none do at w = 1, and G is about G0*w for small
 *   w.
 * - The sockets of a transfer are one flow (budget.h): one round, one gradient, one decision for all of them.
 * - A round with an empty queue (queue.h) has no hazard: with G below a millisecond the noise of the gradients alone
 *   would keep a flow from filling an idle link. A floor of 0 gives CDG as published.
 * - 64-bit products: window sums and scales do not wrap.
 * - Growth can be CUBIC's (cubic.h), of the window that all sockets have together; each gets its part.
 * - The shadow window, ineffectual back-offs and the tolerance of losses are off unless requested, as both Linux
 *   sources advise for background use (shadow=on,ineff=5,tolerance=on). Beta is mainline's, 724/1024.
 *
 * For the same random numbers it backs off in the same rounds as the reference, but for those that fall between the two
 * exponentials, which are 2e-5 apart: at most two of some ten thousand rounds in the tests. Windows are within 1 % and
 * two segments (four after a timeout, in the thesis's version): a share below four segments is paced, has no slow
 * start, and grows by the integral of its ACKs. An idle time keeps the base RTT, and one that keeps the window does not
 * reach the law.
 */
#ifndef LOWTIDE_CDG_H
#define LOWTIDE_CDG_H

#include "fixed.h"
#include "queue.h"
#include "cubic.h"

#define CDG_WINDOW_MAX 256	/* gradients averaged at most */
#define CDG_CREDIT_MAX 5	/* delayed-ACK filter */
#define CDG_RESET_US (-32)	/* falling gradient sum that ends a run of ineffectual back-offs */
#define CDG_TOLERANCE 64	/* mainline divides sums by this before it takes their signs */
#define CDG_HYSTART_TRAIN 1
#define CDG_HYSTART_DELAY 2
#define CDG_HYSTART_SAMPLES 8
#define CDG_TRAIN_GAP_US 3000
#define CDG_HYSTART_MIN_US 125
#define CDG_NO_VALUE ((s64)(1ULL << 63))	/* LAW_NO_VALUE */

enum cdg_variant { CDG_MAINLINE, CDG_THESIS };
enum cdg_increase { CDG_RENO, CDG_CUBIC, CDG_ROUND };

struct cdg_parameters {
	u32 variant;		/* enum cdg_variant: the rules that no other parameter names */
	u32 window;		/* gradients averaged, a power of two <= CDG_WINDOW_MAX */
	u32 g0_us;		/* G; G0 with a weight */
	u32 floor_us;		/* queueing delay that counts as none; 0: every gradient counts */
	u32 beta_q10;		/* kept at a delay back-off */
	u32 use_shadow;		/* losses leave at least half of the shadow window */
	u32 use_ineff;		/* back-offs without a falling delay before further ones are held; 0: any number */
	u32 hold;		/* how many are held then; 0: all until the delay falls */
	u32 use_tolerance;	/* losses do not count while the queue does not seem full */
	u32 hystart;		/* CDG_HYSTART_* bits */
	u32 paced;		/* ACKs are spread over the RTT, which is no train */
	u32 filter;		/* leave out samples of ACKs that were probably delayed */
	u32 extrapolate;	/* a part-filled ring is extrapolated, else padded with zeros */
	u32 unsmoothed;		/* unsmoothed gradients are preferred in slow start */
	/* enum cdg_increase: a segment per RTT, CUBIC's, or a segment at the end of a round */
	u32 increase;
};

enum cdg_queue { CDG_UNKNOWN, CDG_NONFULL, CDG_FULL, CDG_BACKOFF };

struct cdg_extremes {		/* of a round's RTT samples, us; 0: no sample yet */
	u32 min;
	u32 max;
};

struct cdg_gradients {		/* us */
	s32 min;
	s32 max;
};

struct cdg {
	struct cdg_extremes cur, prev;
	struct cdg_gradients sum;
	u32 tail;
	u32 filled;
	u32 queue;		/* enum cdg_queue */
	u32 ineff;		/* back-offs since the last falling gradient */
	u64 shadow_q16;		/* the window that a loss-based flow would have, segments */
	struct cubic_growth growth;	/* of all sockets together */
	u32 credit;
	u32 delay_min_us;
	u32 train_start_us, train_last_us;
	u32 hystart_samples;
	struct cdg_gradients ring[CDG_WINDOW_MAX];	/* entries count once written: `filled` or below `tail` */
};

static inline void cdg_reset(struct cdg *c, u64 window_q16)
{
	__builtin_memset(c, 0, __builtin_offsetof(struct cdg, ring));
	c->shadow_q16 = window_q16;
}

/* CUBIC with CDG's beta: RFC 9438 with the factor of a delay back-off. */
static inline struct cubic_shape cdg_cubic(const struct cdg_parameters *p)
{
	u32 beta_q10 = p->beta_q10 < 1024 ? p->beta_q10 : 1023;
	struct cubic_shape shape = {
		.variant = CUBIC_RFC9438,
		.beta_q32 = beta_q10 << 22,
		.c_q22 = 1677722,	/* 0.4 */
		.fast_convergence = 1,
		.reno_friendly = 1,
	};

	return shape;
}

/*
 * Whether an ACK of `acked` segments may have waited for the receiver's delayed-ACK timer, not in the queue. `holes`:
 * SACK blocks are outstanding.
 */
static inline bool cdg_ack_was_delayed(struct cdg *c, const struct cdg_parameters *p, u32 acked, bool holes)
{
	if (!p->filter || holes)
		return false;
	if (acked == 1 && c->credit > 0) {
		c->credit--;
		return true;
	}
	if (acked > 1 && c->credit < CDG_CREDIT_MAX)
		c->credit++;
	return false;
}

/* Adds a sample to the round. A delayed one can only be too large. */
static inline void cdg_fold(struct cdg_extremes *cur, u32 delay_us, bool delayed)
{
	if (delayed ? cur->min && delay_us < cur->min : !cur->min || delay_us < cur->min)
		cur->min = delay_us;
	if (!delayed && delay_us > cur->max)
		cur->max = delay_us;
}

/* An RTT sample that came with an ACK of `acked` segments; true if the ACK was delayed. */
static inline bool cdg_round_trip(struct cdg *c, const struct cdg_parameters *p, u32 rtt_us, u32 acked, bool holes)
{
	bool delayed = cdg_ack_was_delayed(c, p, acked, holes);

	cubic_growth_sample(&c->growth, rtt_us);
	if (!c->delay_min_us || rtt_us < c->delay_min_us)
		c->delay_min_us = rtt_us;
	cdg_fold(&c->cur, rtt_us, delayed);
	return delayed;
}

/*
 * Whether slow start should end (Hybrid Slow Start in CDG's form). ACKs form a train only if the window is the limit.
 */
static inline bool cdg_hystart(struct cdg *c, const struct cdg_parameters *p, u32 now_us, bool window_limited)
{
	u32 threshold;

	if (!c->delay_min_us)
		return false;
	if (!window_limited)
		c->train_last_us = 0;
	if (p->hystart & CDG_HYSTART_TRAIN) {
		threshold = p->paced ? c->delay_min_us : c->delay_min_us / 2;
		if (threshold < CDG_HYSTART_MIN_US)
			threshold = CDG_HYSTART_MIN_US;
		if (!c->train_last_us)
			c->train_start_us = now_us;
		if (!c->train_last_us || now_us - c->train_last_us < CDG_TRAIN_GAP_US) {
			c->train_last_us = now_us;
			if (now_us - c->train_start_us > threshold)
				return true;
		}
	}
	if (p->hystart & CDG_HYSTART_DELAY) {
		threshold = c->delay_min_us + c->delay_min_us / 8;
		if (threshold < CDG_HYSTART_MIN_US)
			threshold = CDG_HYSTART_MIN_US;
		if (c->hystart_samples < CDG_HYSTART_SAMPLES)
			c->hystart_samples++;
		else if (c->cur.min > threshold)
			return true;
	}
	return false;
}

static inline void cdg_next_round(struct cdg *c)
{
	c->prev = c->cur;
	c->cur.min = 0;
	c->cur.max = 0;
	c->train_last_us = 0;
	c->hystart_samples = 0;
}

/* The quotient, rounded to nearest and away from zero (DIV_ROUND_CLOSEST); BPF has no signed division. */
static inline s32 cdg_rounded(s32 sum, u32 divisor)
{
	u32 size = sum < 0 ? -(u32)sum : (u32)sum;

	size = (size + divisor / 2) / divisor;
	return sum < 0 ? -(s32)size : (s32)size;
}

/* A sum over `entries` gradients, times window/entries. The thesis uses means in whole microseconds. */
static inline s64 cdg_scaled(const struct cdg_parameters *p, s32 sum, u32 entries)
{
	if (p->variant == CDG_THESIS)
		return (s64)cdg_rounded(sum, entries) * p->window;
	return sum > 0 ? (s64)((u64)sum * p->window / entries) : sum;
}

/* Mainline takes the signs of divided and rounded sums, the thesis those of means. */
static inline void cdg_read_queue(struct cdg *c, s64 min, s64 max)
{
	if (min > 0 && max <= 0)
		c->queue = CDG_FULL;
	else if ((min > 0 && max > 0) || max < 0)
		c->queue = CDG_NONFULL;
}

/*
 * Adds the round that ends to the averages. Returns the sum of the last `window` gradients in us (the smoothed gradient
 * times `window`): of the round minima if it rises, else of the maxima.
 */
static inline s64 cdg_gradient(struct cdg *c, const struct cdg_parameters *p, bool slow_start)
{
	struct cdg_gradients *slot = &c->ring[c->tail & (CDG_WINDOW_MAX - 1)];
	bool raw = slow_start && p->unsmoothed;
	struct cdg_gradients d;
	u32 entries = p->window;
	s64 min, max;

	if (!c->prev.min)
		return 0;
	d.min = c->cur.min - c->prev.min;
	d.max = c->cur.max - c->prev.max;
	c->sum.min += d.min - (c->filled ? slot->min : 0);
	c->sum.max += d.max - (c->filled ? slot->max : 0);
	*slot = d;
	c->tail = (c->tail + 1) & (p->window - 1) & (CDG_WINDOW_MAX - 1);
	if (c->tail == 0)
		c->filled = 1;
	if (p->extrapolate && !c->filled)
		entries = c->tail;
	entries = at_least(entries, 1);
	min = cdg_scaled(p, c->sum.min, entries);
	max = cdg_scaled(p, c->sum.max, entries);
	if (p->variant == CDG_THESIS) {
		cdg_read_queue(c, min, max);
		if (min < 0 || max < 0)
			c->ineff = 0;
		if (min >= 0 && max < 0)	/* no competing flows */
			c->shadow_q16 = 0;
	} else {
		cdg_read_queue(c, cdg_rounded(c->sum.min, CDG_TOLERANCE), cdg_rounded(c->sum.max, CDG_TOLERANCE));
		if (c->sum.min <= CDG_RESET_US || c->sum.max <= CDG_RESET_US)
			c->ineff = 0;
	}
	if (raw && d.min > 0)
		return (s64)d.min * p->window;
	if (min > 0)
		return min;
	return raw && d.max > 0 ? (s64)d.max * p->window : max;
}

/* Ends a round. Returns the gradient sum that has a price; 0: none. `empty`: there was no queue. */
VERIFIED_APART u64 cdg_end_round(struct cdg *c, const struct cdg_parameters *p, bool slow_start, bool empty)
{
	s64 gradient;

	if (!c || !p)
		return 0;
	gradient = cdg_gradient(c, p, slow_start);
	cdg_next_round(c);
	return gradient <= 0 || empty ? 0 : gradient;
}

/* 2^23 us is a gradient of over a second per round. Its hazard is certain, and products stay in 64 bits. */
static inline u64 cdg_bounded(u64 gradient_sum_us)
{
	return gradient_sum_us >> 23 ? (1 << 23) - 1 : gradient_sum_us;
}

/* The congestion price of a round's delay, g/G0, in 2^-32. */
static inline u64 cdg_price_q32(u64 gradient_sum_us, u32 window, u32 g0_us)
{
	u64 scale = (u64)window * g0_us;

	return scale ? (cdg_bounded(gradient_sum_us) << 32) / scale : 0;
}

/* The delay hazard of a round, (g/G0)(1/w - 1), in 2^-16. */
static inline u64 cdg_hazard_q16(u64 gradient_sum_us, u32 window, u32 g0_us, u64 surplus_q16)
{
	u64 scale = (u64)window * g0_us;

	if (surplus_q16 >> 40)
		surplus_q16 = (1ULL << 40) - 1;
	return scale ? cdg_bounded(gradient_sum_us) * surplus_q16 / scale : 0;
}

/*
 * Whether a round with this hazard backs off; `random` is uniform over 32 bits. After `use_ineff` back-offs without
 * effect the next ones are held: all of them, or `hold`, and then it starts over. The thesis's shadow also remembers
 * the window of a held one.
 */
static inline bool cdg_backs_off(struct cdg *c, const struct cdg_parameters *p, u64 hazard_q16, u64 window_q16, u32 random)
{
	if (random <= exp_neg_q32(hazard_q16))
		return false;
	if (!p->use_ineff || ++c->ineff <= p->use_ineff)
		return true;
	if (p->hold && c->ineff >= p->use_ineff + p->hold)
		c->ineff = 0;
	if (p->variant == CDG_THESIS)
		c->shadow_q16 = at_least(c->shadow_q16, window_q16);
	return false;
}

/*
 * Shares with a threshold at which they are paced have no slow start. In the thesis a window at its threshold is in
 * slow start.
 */
static inline bool cdg_in_slow_start(const struct cdg_parameters *p, u64 window_q16, u64 ssthresh_q16)
{
	if (ssthresh_q16 <= PACED_BELOW_Q16)
		return false;
	return window_q16 < ssthresh_q16 || (p->variant == CDG_THESIS && window_q16 == ssthresh_q16);
}

/* Whether a loss or a mark does not count, since the queue is hardly full. */
static inline bool cdg_excuses(struct cdg *c, const struct cdg_parameters *p, bool mark)
{
	if (mark && p->variant == CDG_THESIS)
		c->queue = CDG_UNKNOWN;
	return p->use_tolerance && c->queue == CDG_NONFULL;
}

/* The share after a delay back-off. */
static inline u64 cdg_cut_by_delay(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 kept_q16, u32 sockets)
{
	struct cubic_shape shape = cdg_cubic(p);

	c->shadow_q16 = at_least(c->shadow_q16, window_q16);
	c->queue = CDG_BACKOFF;
	cubic_growth_reduce(&c->growth, &shape, window_q16 * sockets, false);
	return budget_cut(window_q16, p->beta_q10, kept_q16, sockets);
}

/* The threshold after congestion; above the window if half of the shadow is. `loss`: it may turn out to be spurious. */
static inline u64 cdg_cut_by_congestion(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 kept_q16, u32 sockets, bool loss)
{
	struct cubic_shape shape = cdg_cubic(p);
	u64 left = budget_cut(window_q16, 512, kept_q16, sockets);

	c->shadow_q16 /= 2;
	if (p->variant == CDG_MAINLINE && c->shadow_q16 > window_q16)
		c->shadow_q16 = window_q16;
	if (p->use_shadow)
		left = at_least(left, c->shadow_q16);
	c->growth.undoable = 0;
	if (left < window_q16)
		cubic_growth_reduce(&c->growth, &shape, window_q16 * sockets, loss);
	return left;
}

/*
 * The share after `acked` more segments. CUBIC gets the windows and ACKs of all sockets together; each socket gets its
 * part of the gain. `round_over`: with this ACK.
 */
static inline u64 cdg_grow(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 ssthresh_q16, u32 acked, bool round_over,
			   u64 increase_q16, u32 sockets, u64 now_us)
{
	bool slow_start = cdg_in_slow_start(p, window_q16, ssthresh_q16);
	struct cubic_shape shape = cdg_cubic(p);
	u64 before = window_q16, left, total;

	left = budget_slow_start(&window_q16, ssthresh_q16, acked);
	if (p->increase == CDG_CUBIC) {
		total = window_q16 * sockets;
		left *= sockets;
		if (left > (u64)LAW_PACKETS_MAX << 16)
			left = (u64)LAW_PACKETS_MAX << 16;
		total = cubic_growth_ack(&c->growth, &shape, total, left, now_us) - total;
		window_q16 += (total * increase_q16 >> 16) / sockets;
	} else if (p->increase == CDG_RENO) {
		window_q16 = budget_reno(window_q16, left, increase_q16, sockets);
	} else if (slow_start && window_q16 >= ssthresh_q16) {
		window_q16 = ssthresh_q16 + Q16_ONE / sockets;	/* the end of the thesis's slow start */
	} else if (round_over && !slow_start) {
		window_q16 += increase_q16 / sockets;
	}
	if (p->variant == CDG_MAINLINE)
		c->shadow_q16 += window_q16 - before;
	else if (c->shadow_q16 && (slow_start || round_over))
		c->shadow_q16 = at_least(c->shadow_q16 + Q16_ONE / sockets, window_q16);
	return window_q16;
}

/* The window was not the limit, so a larger shadow window is not justified. */
static inline void cdg_unused(struct cdg *c, u64 window_q16)
{
	if (c->shadow_q16 > window_q16)
		c->shadow_q16 = window_q16;
}

/* The path may have changed. The base RTT stays: it is the path's, not the burst's. */
static inline void cdg_restart_from(struct cdg *c, u64 window_q16)
{
	struct cubic_growth growth = c->growth;
	u32 base = c->delay_min_us;

	cdg_reset(c, window_q16);
	c->delay_min_us = base;
	c->growth = growth;
}

/* For a trace, as X_inspect of law.h. `hazard_q16`: of the latest round. The gradients are means, in 2^-16 us. */
static inline u32 cdg_inspect(const struct cdg *c, u32 window, u64 hazard_q16, s64 *values)
{
	s64 part_q16 = 65536 / (window ? window : 1);

	values[0] = c->sum.min * part_q16;
	values[1] = c->sum.max * part_q16;
	values[2] = hazard_q16;
	values[3] = c->delay_min_us ? c->delay_min_us : CDG_NO_VALUE;
	values[4] = c->shadow_q16;
	values[5] = c->queue;
	values[6] = c->ineff;
	return 7;
}

#endif
