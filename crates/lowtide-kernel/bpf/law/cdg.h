/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CDG, CAIA Delay-Gradient: the law, without kernel access. Compiled natively by the tests, included by cdg_ops.h for the kernel.
 *
 * D. A. Hayes, G. Armitage, "Revisiting TCP congestion control using delay gradients", 2011, in the behaviour of the
 * mainline Linux module (net/ipv4/tcp_cdg.c). Notable differences:
 *   - The scale G is not a global parameter but follows the price weight w of the transfer: a round with smoothed
 *     gradient g backs off with probability 1 - exp(-(g/G0)(1/w - 1)), so none do at w = 1 and G is about G0*w for small w.
 *   - The sockets of a transfer are one flow (budget.h): one round, one gradient, one decision for all of them.
 *   - A round in which the queue was empty (queue.h) has no hazard: with G below a millisecond the noise of the gradients alone would
 *     keep a flow from filling an idle link. A floor of 0 gives CDG as published.
 *   - 64-bit products: window sums and scales do not wrap.
 */
#ifndef LOWTIDE_CDG_H
#define LOWTIDE_CDG_H

#include "fixed.h"
#include "queue.h"

#define CDG_WINDOW_MAX 256	/* gradients averaged at most */
#define CDG_CREDIT_MAX 5	/* delayed-ACK filter */
#define CDG_RESET_US (-32)	/* falling gradient sum that ends a run of ineffectual back-offs */
#define CDG_HYSTART_TRAIN 1
#define CDG_HYSTART_DELAY 2
#define CDG_HYSTART_SAMPLES 8
#define CDG_TRAIN_GAP_US 3000
#define CDG_HYSTART_MIN_US 125
#define CDG_NO_VALUE ((s64)(1ULL << 63))	/* LAW_NO_VALUE */

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
	u32 shadow;		/* segments */
	u32 credit;
	u32 delay_min_us;
	u32 train_start_us, train_last_us;
	u32 hystart_samples;
	struct cdg_gradients ring[CDG_WINDOW_MAX];	/* entries count once written: `filled` or below `tail` */
};

static inline void cdg_reset(struct cdg *c, u32 cwnd)
{
	__builtin_memset(c, 0, __builtin_offsetof(struct cdg, ring));
	c->shadow = cwnd;
}

/* Whether an ACK of `acked` segments may have waited for the receiver's timer rather than in the queue. `holes`: SACK blocks are outstanding. */
static inline bool cdg_ack_was_delayed(struct cdg *c, u32 acked, bool holes)
{
	if (holes)
		return false;
	if (acked == 1 && c->credit > 0) {
		c->credit--;
		return true;
	}
	if (acked > 1 && c->credit < CDG_CREDIT_MAX)
		c->credit++;
	return false;
}

/* Folds a sample into the round. A delayed one can only be too large. */
static inline void cdg_fold(struct cdg_extremes *cur, u32 delay_us, bool delayed)
{
	if (delayed ? cur->min && delay_us < cur->min : !cur->min || delay_us < cur->min)
		cur->min = delay_us;
	if (!delayed && delay_us > cur->max)
		cur->max = delay_us;
}

/* An RTT sample that came with an ACK of `acked` segments; true if the ACK was delayed. */
static inline bool cdg_sample(struct cdg *c, u32 rtt_us, u32 acked, bool holes)
{
	bool delayed = cdg_ack_was_delayed(c, acked, holes);

	if (!c->delay_min_us || rtt_us < c->delay_min_us)
		c->delay_min_us = rtt_us;
	cdg_fold(&c->cur, rtt_us, delayed);
	return delayed;
}

/* Slow start should end here (Hybrid Slow Start in the form that CDG uses). `detect`: CDG_HYSTART_* bits. */
static inline bool cdg_hystart(struct cdg *c, u32 detect, u32 now_us)
{
	u32 threshold;

	if (!c->delay_min_us)
		return false;
	if (detect & CDG_HYSTART_TRAIN) {
		threshold = c->delay_min_us / 2;
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
	if (detect & CDG_HYSTART_DELAY) {
		threshold = c->delay_min_us + c->delay_min_us / 8;
		if (threshold < CDG_HYSTART_MIN_US)
			threshold = CDG_HYSTART_MIN_US;
		if (c->hystart_samples < CDG_HYSTART_SAMPLES)
			c->hystart_samples++;
		if (c->hystart_samples == CDG_HYSTART_SAMPLES && c->cur.min > threshold)
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

/*
 * Folds the round that ends into the averages. Returns the sum of the last `window` gradients in us (the smoothed
 * gradient times `window`): of the round minima if it rises, else of the maxima. A ring that is not full is extrapolated.
 */
static inline s64 cdg_gradient(struct cdg *c, u32 window, bool tolerance)
{
	struct cdg_gradients *slot = &c->ring[c->tail & (CDG_WINDOW_MAX - 1)];
	struct cdg_gradients d;
	s64 g;

	if (!c->prev.min)
		return 0;
	d.min = c->cur.min - c->prev.min;
	d.max = c->cur.max - c->prev.max;
	c->sum.min += d.min - (c->filled ? slot->min : 0);
	c->sum.max += d.max - (c->filled ? slot->max : 0);
	*slot = d;
	c->tail = (c->tail + 1) & (window - 1) & (CDG_WINDOW_MAX - 1);
	g = c->sum.min > 0 ? c->sum.min : c->sum.max;
	if (!c->filled) {
		if (c->tail == 0)
			c->filled = 1;
		else if (g > 0)
			g = (u64)g * window / c->tail;
	}
	if (c->sum.min <= CDG_RESET_US || c->sum.max <= CDG_RESET_US)
		c->ineff = 0;
	if (tolerance) {
		s32 lo = (c->sum.min + 32) >> 6, hi = (c->sum.max + 32) >> 6;

		if (lo > 0 && hi <= 0)
			c->queue = CDG_FULL;
		else if ((lo > 0 && hi > 0) || hi < 0)
			c->queue = CDG_NONFULL;
	}
	return g;
}

/* 2^23 us is a gradient of over a second a round: its hazard is past any doubt, and products stay in 64 bits. */
static inline u64 cdg_bounded(u64 gradient_sum_us)
{
	return gradient_sum_us >> 23 ? (1 << 23) - 1 : gradient_sum_us;
}

/* What a round's delay costs, g/G0, in 2^-32. */
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

/* Whether a round with this hazard backs off; `random` is uniform over 32 bits. */
static inline bool cdg_backs_off(struct cdg *c, u64 hazard_q16, u32 use_ineff, u32 random)
{
	if (random <= exp_neg_q32(hazard_q16))
		return false;
	if (use_ineff && ++c->ineff > use_ineff)
		return false;
	return true;
}

/* For a trace, as X_inspect of law.h. `hazard_q16`: of the latest round. The gradients are means, in 2^-16 us. */
static inline u32 cdg_inspect(const struct cdg *c, u32 window, u64 hazard_q16, s64 *values)
{
	s64 part_q16 = 65536 / (window ? window : 1);

	values[0] = c->sum.min * part_q16;
	values[1] = c->sum.max * part_q16;
	values[2] = hazard_q16;
	values[3] = c->delay_min_us ? c->delay_min_us : CDG_NO_VALUE;
	values[4] = c->shadow;
	values[5] = c->queue;
	values[6] = c->ineff;
	return 7;
}

#endif
