/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * TCP CUBIC as in RFC 9438, in Linux (net/ipv4/tcp_cubic.c), or in the paper of 2008, without kernel access. The window
 * is a cubic function of the time since the last reduction, flat around the window at which that came, and at least
 * what Reno's would be. Other laws use its growth (cubic_growth), too.
 *
 * Notable differences from RFC 9438, which the reference (lowtide-cc, law/cubic.rs and part/cubic.rs) shares: slow
 * start ends by Hybrid Slow Start; the threshold is a part of the window, not of what is in flight; the function is
 * evaluated one minimum RTT ahead; and while no saturation point is known the window grows by 5 % per RTT (Linux). A
 * window that is not the limit does not grow.
 *
 * In the kernel its sockets are paced, so `paced=on` is usual: Hybrid Slow Start then takes a train of ACKs for a sign
 * of a full BDP only if it is as long as the RTT. Growth is 65 536 segments per RTT at most, and the curve ends after
 * 4095 s. The cube root is exact. K is right to a millionth and a microsecond, the window to 0.1 % and 0.01 segments of
 * the reference's. Where the window is a last bit (2^-16) below Wmax instead of at it, K is 34 ms instead of 0, and the
 * curve that much later: a cube root is that steep.
 */
#ifndef LOWTIDE_CUBIC_H
#define LOWTIDE_CUBIC_H

#include "law.h"
#include "hystart.h"

#define CUBIC_LONGEST_US 4095000000ULL	/* the curve ends there */
#define CUBIC_MOST_Q16 (1ULL << 47)	/* greatest difference of the curve from its plateau */

enum cubic_variant { CUBIC_RFC9438, CUBIC_LINUX, CUBIC_2008 };

/* Parameters of the growth. */
struct cubic_shape {
	u32 variant;		/* enum cubic_variant */
	u32 beta_q32;		/* kept at congestion */
	u32 c_q22;		/* C, segments per second cubed */
	u32 fast_convergence;
	u32 reno_friendly;
};

struct cubic_parameters {
	struct cubic_shape shape;
	u32 whole_segments;
	u32 hystart;		/* HYSTART_* bits */
	u32 low_window_q16;
	u32 paced;
};

struct cubic_point {
	u64 w_max_q16;		/* where congestion is expected; 0: not known */
	u64 prior_q16;		/* the window before the latest reduction */
	/* congestion avoidance since the reduction */
	u64 start_us;
	u64 plateau_q16;
	u64 w_est_q24;		/* what Reno's window would be */
	u64 k_q20;		/* time from the start until the plateau, 2^-20 s */
	u32 begun;		/* the four fields above count */
	u32 unused;
};

struct cubic_growth {
	struct cubic_point at, before;	/* `before` the latest reduction */
	u32 rtt_min_us;		/* minimum RTT; 0: none */
	u32 undoable;		/* the latest reduction was for a loss */
	/* part by which Reno's growth and the search are reduced, for a flow that grows less than an ordinary one */
	u32 less_q16;
	u32 unused;
};

struct cubic {
	struct cubic_growth growth;
	struct hystart hystart;
};

/* Shifts x != 0 left until its topmost bit is set; returns by how many bits. */
static inline u32 cubic_normalise(u64 *x)
{
	u32 shift = 0;

	for (int bit = 5; bit >= 0; bit--) {
		u32 by = is_at_most(*x >> (64 - (1 << bit)), 0) << bit;

		*x <<= by;
		shift += by;
	}
	return shift;
}

/*
 * The cube root of x >= 2^61, rounded down: 21 bits. Newton's method from above begins with 2^22, at most 3.2 times the
 * root. Its steps leave 2.2, 1.5, 1.2, 1.02, 1.0004 and 1.0000002 times the root. The eighth step or the comparison
 * corrects the last bit.
 */
static inline u64 cubic_root(u64 x)
{
	u64 root = 1 << 22;

	for (int i = 0; i < 8; i++)
		root = (2 * root + x / (root * root)) / 3;
	return root - (x / (root * root) < root);
}

/*
 * K = cbrt(below/C) in 2^-20 s. The quotient is below 2^31/1e-4 and at least 2^-16/1000. It is shifted to 2^61 .. 2^64
 * by a multiple of three bits, so that the root is exact to 2^-20 of itself, and K to that and 2^-20 s.
 */
static inline u64 cubic_k_q20(u64 below_q16, u32 c_q22)
{
	u64 x = below_q16, k;
	u32 shift = 0;

	if (!x)
		return 0;
	if (x > CUBIC_MOST_Q16)
		x = CUBIC_MOST_Q16;
	shift = cubic_normalise(&x);
	x /= at_least(c_q22, 1);
	shift += cubic_normalise(&x) - 6;	/* x 2^-shift: 16 bits of the window, 22 of C */
	x >>= shift % 3;
	k = (cubic_root(x) << 20) >> (shift / 3);
	return k >> 32 ? ~0U : k;
}

/* C t^3 in segments, for t in 2^-20 s, below 2^32; CUBIC_MOST_Q16 at most. */
static inline u64 cubic_curve_q16(u32 c_q22, u64 t_q20)
{
	u64 square_q16 = (t_q20 * t_q20) >> 24, rate_q16 = (c_q22 * t_q20) >> 26;

	if (rate_q16 && square_q16 > (CUBIC_MOST_Q16 << 16) / rate_q16)
		return CUBIC_MOST_Q16;
	return (square_q16 * rate_q16) >> 16;
}

/* The part beta_q32 of a window. */
static inline u64 cubic_part(u64 window_q16, u32 beta_q32)
{
	return ((window_q16 >> 16) * beta_q32 >> 16) + ((window_q16 & 0xffff) * beta_q32 >> 32);
}

static inline void cubic_growth_begin(struct cubic_growth *g)
{
	__builtin_memset(g, 0, sizeof(*g));
}

static inline void cubic_growth_sample(struct cubic_growth *g, u32 rtt_us)
{
	if (rtt_us && (!g->rtt_min_us || rtt_us < g->rtt_min_us))
		g->rtt_min_us = rtt_us;
}

static inline void cubic_growth_start(struct cubic_growth *g, const struct cubic_shape *p, u64 cwnd_q16, u64 now_us)
{
	struct cubic_point *at = &g->at;
	u64 below = 0;

	at->plateau_q16 = cwnd_q16;
	if (at->w_max_q16 > cwnd_q16) {
		at->plateau_q16 = at->w_max_q16;
		below = at->w_max_q16 - (p->variant == CUBIC_2008 ? cubic_part(at->w_max_q16, p->beta_q32) : cwnd_q16);
	}
	at->k_q20 = cubic_k_q20(below, p->c_q22);
	at->w_est_q24 = cwnd_q16 << 8;
	at->start_us = now_us;
	at->begun = 1;
}

/*
 * Reno's growth per RTT that gives the same mean window with beta (RFC 9438, section 4.3, figure 4), in 2^-20 segments.
 */
static inline u64 cubic_slope_q20(const struct cubic_point *at, const struct cubic_shape *p)
{
	u64 beta_q24 = ((u64)p->beta_q32 + (1 << 7)) >> 8;

	if (p->variant == CUBIC_RFC9438 && at->w_est_q24 >= at->prior_q16 << 8)
		return 1 << 20;
	return ((3 * (Q24_ONE - beta_q24)) << 20) / (Q24_ONE + beta_q24);
}

static inline u64 cubic_growth_part(const struct cubic_growth *g, u64 growth)
{
	return growth * (Q16_ONE - g->less_q16) >> 16;
}

/* The window that the curve has one minimum RTT from now. */
static inline u64 cubic_target_q16(const struct cubic_growth *g, const struct cubic_shape *p, u64 cwnd_q16, u64 now_us)
{
	const struct cubic_point *at = &g->at;
	u64 t_us = now_us - at->start_us + g->rtt_min_us, t_q20, away, target;

	if (now_us < at->start_us || t_us > CUBIC_LONGEST_US)
		t_us = now_us < at->start_us ? g->rtt_min_us : CUBIC_LONGEST_US;
	t_q20 = (t_us << 14) / 15625;
	if (t_q20 < at->k_q20) {
		away = cubic_curve_q16(p->c_q22, at->k_q20 - t_q20);
		target = at->plateau_q16 > away ? at->plateau_q16 - away : 0;
	} else {
		target = at->plateau_q16 + cubic_curve_q16(p->c_q22, t_q20 - at->k_q20);
	}
	if (!at->w_max_q16 && p->variant != CUBIC_2008)	/* search for the saturation point */
		target = at_least(target, cwnd_q16 + cubic_growth_part(g, cwnd_q16 / 20));
	return target;
}

/* The window after `acked_q16` segments outside of slow start: at most 65536 segments more per RTT. */
VERIFIED_APART u64 cubic_growth_ack(struct cubic_growth *g, const struct cubic_shape *p, u64 cwnd_q16, u64 acked_q16, u64 now_us)
{
	u64 cwnd = at_least(cwnd_q16, 1), room, gain, reno;
	u64 most;

	if (!g || !p || !acked_q16)
		return cwnd_q16;
	/* at most one and a half times the window per RTT, in the paper of 2008 twice */
	most = p->variant == CUBIC_2008 ? acked_q16 : acked_q16 / 2;
	if (!g->at.begun)
		cubic_growth_start(g, p, cwnd, now_us);
	room = cubic_target_q16(g, p, cwnd, now_us);
	room = room > cwnd ? room - cwnd : 0;
	if (room >> 32)
		room = ~0U;
	gain = (acked_q16 * room + cwnd / 2) / cwnd;
	if (gain > most)
		gain = most;
	if (p->reno_friendly) {
		g->at.w_est_q24 += (((cubic_growth_part(g, cubic_slope_q20(&g->at, p)) * acked_q16) << 4) + cwnd / 2) / cwnd;
		reno = g->at.w_est_q24 >> 8;
		reno = reno > cwnd ? reno - cwnd : 0;
		gain = at_least(gain, reno < most ? reno : most);
	}
	return cwnd + gain;
}

/* A reduction of the window follows (RFC 9438, sections 4.6 and 4.7). */
static inline void cubic_growth_reduce(struct cubic_growth *g, const struct cubic_shape *p, u64 cwnd_q16, bool loss)
{
	u64 w_max = cwnd_q16;

	g->before = g->at;
	if (p->fast_convergence && cwnd_q16 < g->at.w_max_q16)
		w_max = (cwnd_q16 + cubic_part(cwnd_q16, p->beta_q32)) / 2;
	g->at.w_max_q16 = w_max;
	g->at.prior_q16 = cwnd_q16;
	g->at.begun = 0;
	g->undoable = loss;
}

/* A timeout: the next plateau is where slow start ends (section 4.8). */
static inline void cubic_growth_timed_out(struct cubic_growth *g)
{
	g->at.w_max_q16 = 0;
	g->at.begun = 0;
}

/* The last reduction was spurious, if it was for a loss (section 4.9). */
static inline void cubic_growth_undone(struct cubic_growth *g)
{
	if (g->undoable)
		g->at = g->before;
	g->undoable = 0;
}

/* Idle time does not count (section 5.8). */
static inline void cubic_growth_restart(struct cubic_growth *g, u64 idle_us)
{
	g->at.start_us += idle_us;
}

static inline void cubic_begin(struct cubic *c, const struct cubic_parameters *p, struct law_window *w, u32 nxt)
{
	cubic_growth_begin(&c->growth);
	hystart_begin(&c->hystart);
}

static inline void cubic_sample(struct cubic *c, const struct cubic_parameters *p, const struct law_ack *a)
{
}

VERIFIED_APART int cubic_hystart(struct cubic *c, const struct cubic_parameters *p, struct law_window *w, const struct law_ack *a)
{
	if (c && p && w && a)
		hystart_ack(&c->hystart, p->hystart, p->low_window_q16, p->paced, w, a);
	return 0;
}

static inline bool cubic_ack(struct cubic *c, const struct cubic_parameters *p, const struct law_weight *weight,
			     struct law_window *w, const struct law_ack *a)
{
	u64 left = 0;

	cubic_hystart(c, p, w, a);
	cubic_growth_sample(&c->growth, a->rtt_us);
	if (a->window_limited)
		left = law_slow_start(w, a->packets);
	w->cwnd_q16 = cubic_growth_ack(&c->growth, &p->shape, w->cwnd_q16, left, a->now_us);
	return false;
}

static inline void cubic_timed_out(struct cubic *c)
{
	cubic_growth_timed_out(&c->growth);
	hystart_begin(&c->hystart);
}

static inline void cubic_reduce(struct cubic *c, const struct cubic_parameters *p, const struct law_weight *weight,
				struct law_window *w, enum law_signal signal, u32 random)
{
	u64 left = cubic_part(w->cwnd_q16, p->shape.beta_q32);

	if (p->whole_segments)	/* beta is rounded to 2^-32: keeps whole segments whole */
		left = ((w->cwnd_q16 >> 16) * (p->shape.beta_q32 + 1ULL) >> 32) << 16;
	cubic_growth_reduce(&c->growth, &p->shape, w->cwnd_q16, signal == LAW_LOSS || signal == LAW_TIMEOUT);
	if (signal == LAW_TIMEOUT)
		cubic_timed_out(c);
	law_reduce_to(w, weight, left, signal);
}

static inline void cubic_answered(struct cubic *c)
{
}

static inline void cubic_recovered(struct cubic *c, struct law_window *w, u32 nxt)
{
}

static inline void cubic_undone(struct cubic *c)
{
	cubic_growth_undone(&c->growth);
}

static inline void cubic_restart(struct cubic *c, struct law_window *w, u32 nxt, u64 idle_us)
{
	cubic_growth_restart(&c->growth, idle_us);
}

static inline u32 cubic_inspect(const struct cubic *c, const struct cubic_parameters *p, const struct law_weight *weight, s64 *values)
{
	const struct cubic_point *at = &c->growth.at;

	values[0] = c->growth.rtt_min_us ? c->growth.rtt_min_us : LAW_NO_VALUE;
	values[1] = at->w_max_q16 ? (s64)at->w_max_q16 : LAW_NO_VALUE;
	values[2] = at->begun ? (s64)at->k_q20 : LAW_NO_VALUE;
	values[3] = at->begun ? (s64)at->w_est_q24 : LAW_NO_VALUE;
	return 4;
}

#endif
