/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * TCP Reno (RFC 5681), without kernel access: a segment per round trip, and congestion leaves a constant part of the
 * window. The reference (lowtide-cc, law/reno.rs) has Hybrid Slow Start and whole segments besides.
 */
#ifndef LOWTIDE_RENO_H
#define LOWTIDE_RENO_H

#include "law.h"

struct reno_parameters {
	u32 beta_q16;		/* kept at congestion */
};

struct reno {
	u32 base_us;		/* least round trip of the connection, 0: none */
	u32 reductions;
};

static inline void reno_begin(struct reno *r, const struct reno_parameters *p, struct law_window *w, u32 nxt)
{
	r->base_us = 0;
	r->reductions = 0;
}

static inline void reno_sample(struct reno *r, const struct reno_parameters *p, const struct law_ack *a)
{
	if (a->rtt_us && (!r->base_us || a->rtt_us < r->base_us))
		r->base_us = a->rtt_us;
}

static inline bool reno_ack(struct reno *r, const struct reno_parameters *p, const struct law_weight *weight,
			    struct law_window *w, const struct law_ack *a)
{
	law_grow(w, a);
	return false;
}

static inline void reno_reduce(struct reno *r, const struct reno_parameters *p, const struct law_weight *weight,
			       struct law_window *w, enum law_signal signal, u32 random)
{
	r->reductions++;
	law_reduce_to(w, weight, (w->cwnd_q16 * p->beta_q16) >> 16, signal);
}

static inline void reno_answered(struct reno *r)
{
}

static inline void reno_recovered(struct reno *r, struct law_window *w, u32 nxt)
{
}

static inline void reno_undone(struct reno *r)
{
}

static inline void reno_restart(struct reno *r, struct law_window *w, u32 nxt, u64 idle_us)
{
}

static inline u32 reno_inspect(const struct reno *r, const struct reno_parameters *p, const struct law_weight *weight,
			       s64 *values)
{
	values[0] = r->base_us ? r->base_us : LAW_NO_VALUE;
	values[1] = r->reductions;
	values[2] = p->beta_q16;
	return 3;
}

#endif
