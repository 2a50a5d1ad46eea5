/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Data Center TCP (RFC 8257), without kernel access: the window is reduced by half of the marked part. With
 * acceleration and overload mode it is Misund's dctcp-fast. The reference is law/dctcp.rs of lowtide-cc, with the same
 * differences from the RFC.
 *
 * A loss reduces the window in every case, as in Linux (tcp_dctcp.c). If recovery begins in an episode that marks
 * began, the stack does not ask for ssthresh again. So the law lowers the threshold that PRR walks to. It does the same
 * if overload mode detects its round within an episode.
 */
#ifndef LOWTIDE_DCTCP_H
#define LOWTIDE_DCTCP_H

#include "transients.h"

struct dctcp_parameters {
	u32 gain_q16;		/* g */
	u32 alpha_q16;		/* alpha at the start */
	u32 beta_q16;		/* kept at a loss */
	u32 cwr_increase;	/* grows in the RTT after a mark, too */
	struct transients_parameters transients;
};

struct dctcp {
	u64 before_q16, before_ssthresh_q16;	/* values before the latest reduction */
	struct transients transients;
	struct marks marks;
	u32 alpha;		/* marked part, averaged */
	u32 round_end;
	u32 carry;		/* of law_step() */
	u32 recovering;		/* from a loss */
	u32 undoable;		/* the latest reduction was for a loss or timeout */
};

static inline void dctcp_begin(struct dctcp *d, const struct dctcp_parameters *p, struct law_window *w, u32 nxt)
{
	d->before_q16 = w->cwnd_q16;
	d->before_ssthresh_q16 = w->ssthresh_q16;
	transients_begin(&d->transients, nxt);
	d->marks.delivered = d->marks.marked = 0;
	d->alpha = p->alpha_q16 << 14;
	d->round_end = nxt;
	d->carry = d->recovering = d->undoable = 0;
}

static inline void dctcp_sample(struct dctcp *d, const struct dctcp_parameters *p, const struct law_ack *a)
{
}

static inline void dctcp_grow(struct dctcp *d, const struct dctcp_parameters *p, struct law_window *w, const struct law_ack *a)
{
	u64 left;

	if (!a->window_limited || (a->reducing && (!p->cwr_increase || d->recovering)))
		return;
	left = law_slow_start(w, a->packets);
	w->cwnd_q16 += law_step(w->cwnd_q16, left, d->transients.acceleration.a_q16 << 8, &d->carry);
}

static inline void dctcp_lower(struct dctcp *d, struct law_window *w, u32 left)
{
	d->before_q16 = w->cwnd_q16;
	d->before_ssthresh_q16 = w->ssthresh_q16;
	w->cwnd_q16 = w->ssthresh_q16 = at_least(part_of(w->cwnd_q16, left), w->least_q16);
}

static inline bool dctcp_ack(struct dctcp *d, const struct dctcp_parameters *p, const struct law_weight *weight,
			     struct law_window *w, const struct law_ack *a)
{
	u64 before = w->cwnd_q16;
	u32 left;

	dctcp_grow(d, p, w, a);
	marks_count(&d->marks, a);
	if (law_next_round(&d->round_end, a))
		d->alpha = marks_average(d->alpha, marks_price(marks_take(&d->marks), weight), p->gain_q16);
	left = transients_ack(&d->transients, &p->transients, w, a, d->recovering);
	if (left >= PART_ONE || w->cwnd_q16 <= w->least_q16)
		return false;
	d->undoable = 0;
	dctcp_lower(d, w, left);
	return w->cwnd_q16 < before;	/* false if this ACK's own growth was more */
}

static inline void dctcp_reduce(struct dctcp *d, const struct dctcp_parameters *p, const struct law_weight *weight,
				struct law_window *w, enum law_signal signal, u32 random)
{
	bool lost = signal == LAW_LOSS || signal == LAW_TIMEOUT;
	u32 left = lost ? p->beta_q16 << 14 : PART_ONE - d->alpha / 2;

	if (!lost && transients_is_answered(&d->transients))
		return;
	d->undoable = lost;
	if (signal == LAW_TIMEOUT) {
		d->recovering = 0;
		transients_reset(&d->transients);
	} else {
		d->recovering |= lost;
		transients_reaction(&d->transients, &p->transients, left, law_in_slow_start(w));
	}
	dctcp_lower(d, w, ((u64)left * weight->kept_q16) >> 16);
	if (signal == LAW_TIMEOUT)
		w->cwnd_q16 = Q16_ONE;
}

static inline void dctcp_answered(struct dctcp *d)
{
	d->recovering = 0;
	transients_reset(&d->transients);
}

static inline void dctcp_recovered(struct dctcp *d, struct law_window *w, u32 nxt)
{
	d->recovering = 0;
}

static inline void dctcp_undone(struct dctcp *d, struct law_window *w)
{
	if (d->undoable) {
		w->cwnd_q16 = at_least(w->cwnd_q16, d->before_q16);
		w->ssthresh_q16 = at_least(w->ssthresh_q16, d->before_ssthresh_q16);
	}
	d->undoable = 0;
}

static inline void dctcp_restart(struct dctcp *d, struct law_window *w, u32 nxt, u64 idle_us)
{
	transients_reset(&d->transients);
}

static inline u32 dctcp_inspect(const struct dctcp *d, const struct dctcp_parameters *p, const struct law_weight *weight, s64 *values)
{
	values[0] = d->alpha;
	transients_inspect(&d->transients, values + 1);
	return 6;
}

#endif
