/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * TCP Vegas (Brakmo and Peterson, IEEE JSAC 13(8), 1995) as in Linux (net/ipv4/tcp_vegas.c), without kernel access.
 * Once per RTT the window is compared with the BDP. The difference is kept between alpha and beta segments.
 *
 * Notable differences from Linux, which the reference (lowtide-cc, law/vegas.rs) shares:
 *
 * - alpha follows the price weight: clamp(w phi alpha_base, 1, alpha_max), and beta = alpha + gap (the DA-LBE
 *   framework, section IV-B). At weight 1 and with phi above 1 it answers only every phi-th loss: it pays the rest in
 *   delay.
 * - A window that is not the limit does not grow.
 * - Windows have fractions while Vegas is off after a loss and Reno grows them.
 */
#ifndef LOWTIDE_VEGAS_H
#define LOWTIDE_VEGAS_H

#include "law.h"

#define VEGAS_TOO_FEW 2		/* with so few samples of a round all may be from delayed ACKs */

struct vegas_parameters {
	u32 alpha_q16, beta_q16, gamma_q16;	/* segments */
	u32 backoff_q16;			/* kept at a loss */
	u32 alpha_base_q16, alpha_max_q16, gap_q16;
};

struct vegas {
	u32 base_us;		/* base RTT; 0: none */
	u32 min_us;		/* minimum RTT of this round; 0: none */
	u32 samples;		/* of this round */
	u32 round_end;		/* sequence number */
	u32 diff;		/* segments in the queue at the latest decision */
	u32 enabled;		/* off from a loss until the recovery ends: Reno then */
};

static inline void vegas_new_round(struct vegas *v)
{
	v->min_us = 0;
	v->samples = 0;
}

static inline void vegas_enable(struct vegas *v, u32 nxt)
{
	v->enabled = 1;
	v->round_end = nxt;
	vegas_new_round(v);
}

static inline void vegas_begin(struct vegas *v, const struct vegas_parameters *p, struct law_window *w, u32 nxt)
{
	v->base_us = 0;
	v->diff = 0;
	vegas_enable(v, nxt);
}

static inline void vegas_sample(struct vegas *v, const struct vegas_parameters *p, const struct law_ack *a)
{
	u32 rtt_us = a->rtt_us + 1;	/* as in Linux, so that no RTT is zero */

	if (!a->rtt_us)
		return;
	if (!v->base_us || rtt_us < v->base_us)
		v->base_us = rtt_us;
	if (!v->min_us || rtt_us < v->min_us)
		v->min_us = rtt_us;
	v->samples++;
}

/* w phi, in 2^-16, with a bound so that products stay in 64 bits. */
static inline u64 vegas_mu_q16(const struct law_weight *weight)
{
	u64 mu = (weight->weight_q16 * weight->ratio_q16) >> 16;

	return mu >> 32 ? ~0U : mu;
}

static inline u64 vegas_alpha_q16(const struct vegas_parameters *p, const struct law_weight *weight)
{
	u64 alpha;

	if (!weight->weight_q16)
		return p->alpha_q16;
	alpha = at_least((vegas_mu_q16(weight) * p->alpha_base_q16) >> 16, Q16_ONE);
	return alpha < p->alpha_max_q16 ? alpha : p->alpha_max_q16;
}

/* The threshold is at least three quarters of a window that has grown (Linux's tcp_current_ssthresh()). */
static inline void vegas_avoid(struct vegas *v, const struct vegas_parameters *p, const struct law_weight *weight,
			       struct law_window *w, bool window_limited)
{
	u64 alpha = vegas_alpha_q16(p, weight), beta = weight->weight_q16 ? alpha + p->gap_q16 : p->beta_q16;
	u64 diff_q16 = (u64)v->diff << 16;

	if (diff_q16 > beta) {
		if (w->cwnd_q16 > Q16_ONE)
			w->cwnd_q16 = at_least(w->cwnd_q16 - Q16_ONE, Q16_ONE);
		if (w->ssthresh_q16 > w->cwnd_q16)
			w->ssthresh_q16 = w->cwnd_q16;
	} else if (diff_q16 < alpha && window_limited) {
		w->cwnd_q16 += Q16_ONE;
	}
	w->ssthresh_q16 = at_least(w->ssthresh_q16, w->cwnd_q16 - w->cwnd_q16 / 4);
}

/*
 * The expected rate of the window less the actual one, in segments. That is more than the queue holds, by the factor
 * rtt/base.
 */
static inline void vegas_round(struct vegas *v, const struct vegas_parameters *p, const struct law_weight *weight,
			       struct law_window *w, const struct law_ack *a)
{
	u64 cwnd = w->cwnd_q16, fit;

	if (v->samples <= VEGAS_TOO_FEW || !v->base_us) {
		law_grow(w, a);
	} else {
		v->diff = (cwnd * (v->min_us - v->base_us) / v->base_us) >> 16;
		if (!law_in_slow_start(w)) {
			vegas_avoid(v, p, weight, w, a->window_limited);
		} else if ((u64)v->diff << 16 > p->gamma_q16) {
			fit = ((cwnd * v->base_us / at_least(v->min_us, 1)) & ~0xffffULL) + Q16_ONE;
			if (fit < cwnd)
				w->cwnd_q16 = fit;
			if (w->ssthresh_q16 > w->cwnd_q16)
				w->ssthresh_q16 = w->cwnd_q16;
		} else if (a->window_limited) {
			law_slow_start(w, a->packets);
		}
	}
	w->cwnd_q16 = at_least(w->cwnd_q16, w->least_q16);
	vegas_new_round(v);
}

static inline bool vegas_ack(struct vegas *v, const struct vegas_parameters *p, const struct law_weight *weight,
			     struct law_window *w, const struct law_ack *a)
{
	if (!v->enabled)
		law_grow(w, a);
	else if (law_next_round(&v->round_end, a))
		vegas_round(v, p, weight, w, a);
	else if (a->window_limited)
		law_slow_start(w, a->packets);
	return false;
}

/* `random`: uniform over 32 bits. */
static inline void vegas_reduce(struct vegas *v, const struct vegas_parameters *p, const struct law_weight *weight,
				struct law_window *w, enum law_signal signal, u32 random)
{
	u64 mu = vegas_mu_q16(weight);
	bool network = signal == LAW_LOSS || signal == LAW_ECN;

	v->enabled = 0;
	if (network && weight->weight_q16 >= Q16_ONE && mu > Q16_ONE && random < (1ULL << 32) - (1ULL << 48) / mu)
		return;
	law_reduce_to(w, weight, (w->cwnd_q16 * p->backoff_q16) >> 16, signal);
}

static inline void vegas_answered(struct vegas *v)
{
	v->enabled = 0;
}

static inline void vegas_recovered(struct vegas *v, struct law_window *w, u32 nxt)
{
	vegas_enable(v, nxt);
}

static inline void vegas_undone(struct vegas *v)
{
	v->enabled = 1;
	vegas_new_round(v);
}

/* The path may have changed: the base RTT is measured anew. */
static inline void vegas_restart(struct vegas *v, struct law_window *w, u32 nxt, u64 idle_us)
{
	v->base_us = 0;
	vegas_enable(v, nxt);
}

static inline u32 vegas_inspect(const struct vegas *v, const struct vegas_parameters *p, const struct law_weight *weight, s64 *values)
{
	values[0] = v->base_us ? v->base_us : LAW_NO_VALUE;
	values[1] = v->diff;
	values[2] = vegas_alpha_q16(p, weight);
	values[3] = v->enabled;
	return 4;
}

#endif
