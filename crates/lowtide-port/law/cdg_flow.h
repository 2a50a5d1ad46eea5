/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * CDG of one socket in the frame of law.h, without kernel access, for the tests and the simulator: the same as
 * cdg_ops.h with one socket per transfer. A weight sets the hazard: 1/w - 1 of G0 = 125 ms, instead of 1 of the
 * parameter's G.
 *
 * Beyond the frame it uses `random` and `holes` of an ACK, and counts the random numbers that it has used. It does not
 * get losses and marks within the episode of a delay back-off or a mark (the stack does not ask), but it gets timeouts:
 * X_answered.
 */
#ifndef LOWTIDE_CDG_FLOW_H
#define LOWTIDE_CDG_FLOW_H

#include "law.h"
#include "cdg.h"

#define CDG_G0_US 125000

struct cdg_flow_parameters {
	struct cdg_parameters cdg;
};

struct cdg_flow {
	u32 draws;		/* random numbers used */
	u32 round_end;		/* sequence number */
	u32 timeout;		/* the recovery of a timeout goes on */
	u32 unused;
	struct cdg cdg;
};

static inline void cdg_flow_begin(struct cdg_flow *f, const struct cdg_flow_parameters *p, struct law_window *w, u32 nxt)
{
	f->draws = f->timeout = 0;
	f->round_end = nxt;
	cdg_reset(&f->cdg, w->cwnd_q16);
}

static inline void cdg_flow_sample(struct cdg_flow *f, const struct cdg_flow_parameters *p, const struct law_ack *a)
{
	if (a->rtt_us)
		cdg_round_trip(&f->cdg, &p->cdg, a->rtt_us, a->packets, a->holes);
}

/* Whether the round that ends with this ACK backs off. */
static inline bool cdg_flow_round(struct cdg_flow *f, const struct cdg_parameters *p, const struct law_weight *weight,
				  const struct law_window *w, const struct law_ack *a)
{
	bool empty = queue_is_empty(f->cdg.cur.min, f->cdg.delay_min_us, p->floor_us);
	u64 gradient = cdg_end_round(&f->cdg, p, cdg_in_slow_start(p, w->cwnd_q16, w->ssthresh_q16), empty);
	u64 surplus_q16 = Q16_ONE;

	f->round_end = a->nxt;
	if (weight->weight_q16)
		surplus_q16 = weight->weight_q16 < Q16_ONE ? (1ULL << 32) / weight->weight_q16 - Q16_ONE : 0;
	if (!gradient || !surplus_q16)
		return false;
	f->draws++;
	return cdg_backs_off(&f->cdg, p, cdg_hazard_q16(gradient, p->window, weight->weight_q16 ? CDG_G0_US : p->g0_us, surplus_q16),
			     w->cwnd_q16, a->random);
}

static inline bool cdg_flow_ack(struct cdg_flow *f, const struct cdg_flow_parameters *parameters, const struct law_weight *weight,
				struct law_window *w, const struct law_ack *a)
{
	const struct cdg_parameters *p = &parameters->cdg;
	struct cdg *c = &f->cdg;
	bool over = (s32)(a->una - f->round_end) > 0 && c->cur.min;

	if (law_in_slow_start(w) && p->hystart && a->rtt_us && cdg_hystart(c, p, a->now_us, a->window_limited))
		w->ssthresh_q16 = w->cwnd_q16;
	if (over && cdg_flow_round(f, p, weight, w, a)) {
		w->ssthresh_q16 = cdg_cut_by_delay(c, p, w->cwnd_q16, weight->kept_q16, 1);
		if (w->cwnd_q16 > w->ssthresh_q16)
			w->cwnd_q16 = w->ssthresh_q16;
		return true;
	}
	if (a->window_limited)
		IN_PLACE w->cwnd_q16 = cdg_grow(c, p, w->cwnd_q16, w->ssthresh_q16, a->packets, over, Q16_ONE, 1, a->now_us);
	else
		cdg_unused(c, w->cwnd_q16);
	return false;
}

static inline void cdg_flow_reduce(struct cdg_flow *f, const struct cdg_flow_parameters *p, const struct law_weight *weight,
				   struct law_window *w, enum law_signal signal, u32 random)
{
	bool loss = signal == LAW_LOSS || signal == LAW_TIMEOUT;

	f->timeout = signal == LAW_TIMEOUT;
	w->ssthresh_q16 = w->cwnd_q16;
	if (!cdg_excuses(&f->cdg, &p->cdg, !loss))
		w->ssthresh_q16 = cdg_cut_by_congestion(&f->cdg, &p->cdg, w->cwnd_q16, weight->kept_q16, 1, loss);
	if (w->cwnd_q16 > w->ssthresh_q16)
		w->cwnd_q16 = w->ssthresh_q16;
	if (f->timeout) {
		cubic_growth_timed_out(&f->cdg.growth);
		w->cwnd_q16 = Q16_ONE;
	}
}

static inline void cdg_flow_answered(struct cdg_flow *f)
{
	f->timeout = 1;
	cubic_growth_timed_out(&f->cdg.growth);
}

/* The samples of the episode are the round before the next one. */
static inline void cdg_flow_recovered(struct cdg_flow *f, struct law_window *w, u32 nxt)
{
	bool timeout = f->timeout;

	f->timeout = 0;
	if (timeout)
		return;
	f->cdg.queue = CDG_UNKNOWN;
	cdg_next_round(&f->cdg);
	f->round_end = nxt;
}

static inline void cdg_flow_undone(struct cdg_flow *f)
{
	cubic_growth_undone(&f->cdg.growth);
}

static inline void cdg_flow_restart(struct cdg_flow *f, struct law_window *w, u32 nxt, u64 idle_us)
{
	cdg_restart_from(&f->cdg, w->cwnd_q16);
	cubic_growth_restart(&f->cdg.growth, idle_us);
	f->round_end = nxt;
}

/* The hazard of the latest round is not kept here. */
static inline u32 cdg_flow_inspect(const struct cdg_flow *f, const struct cdg_flow_parameters *p, const struct law_weight *weight, s64 *values)
{
	u32 count = cdg_inspect(&f->cdg, p->cdg.window, 0, values);

	values[2] = LAW_NO_VALUE;
	return count;
}

#endif
