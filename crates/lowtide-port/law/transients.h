/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Acceleration and overload mode as one part of a law of marks, without kernel access. Both count the same rounds. */
#ifndef LOWTIDE_TRANSIENTS_H
#define LOWTIDE_TRANSIENTS_H

#include "overload.h"

struct transients_parameters {
	struct acceleration_parameters acceleration;
	struct overload_parameters overload;
};

struct transients {
	struct acceleration acceleration;
	struct overload overload;
	struct marks marks;
	u32 round_end;
	u32 reacted;	/* in this round */
};

static inline void transients_begin(struct transients *t, u32 nxt)
{
	acceleration_begin(&t->acceleration);
	overload_begin(&t->overload);
	t->marks.delivered = t->marks.marked = 0;
	t->round_end = nxt;
	t->reacted = 0;
}

static inline void transients_reset(struct transients *t)
{
	acceleration_reset(&t->acceleration);
	overload_reset(&t->overload);
}

static inline void transients_end_cycle(struct transients *t, const struct transients_parameters *p, bool slow_start)
{
	t->reacted = 1;
	if (slow_start)
		acceleration_reset(&t->acceleration);
	else
		acceleration_reaction(&t->acceleration, &p->acceleration);
}

/* The law reduced its window to the part `left`. `slow_start`: that ended slow start. */
static inline void transients_reaction(struct transients *t, const struct transients_parameters *p, u32 left, bool slow_start)
{
	transients_end_cycle(t, p, slow_start);
	overload_reaction(&t->overload, &p->overload, left, !slow_start);
}

/*
 * An ACK, after the law has grown its window by it. Returns the part of the window that is left: PART_ONE without
 * overload.
 */
static inline u32 transients_ack(struct transients *t, const struct transients_parameters *p, const struct law_window *w,
				 const struct law_ack *a, bool recovering)
{
	bool reacted = t->reacted, overloaded = false;
	u32 marked, left = PART_ONE;

	marks_count(&t->marks, a);
	overload_sample(&t->overload, &p->overload, a);
	if (!law_next_round(&t->round_end, a))
		return PART_ONE;
	marked = marks_take(&t->marks);
	t->reacted = 0;
	if (recovering) {
		transients_reset(t);
		return PART_ONE;
	}
	if (p->overload.on)
		left = overload_round(&t->overload, &p->overload, marked, a->latency_us, &overloaded);
	if (overloaded)
		transients_end_cycle(t, p, law_in_slow_start(w));
	else if (p->acceleration.on && !law_in_slow_start(w) && !reacted && a->window_limited)
		acceleration_round(&t->acceleration, &p->acceleration, w->cwnd_q16, a);
	return left;
}

/* Whether a reduction for overload has answered these marks already. */
static inline bool transients_is_answered(const struct transients *t)
{
	return t->overload.answered;
}

/* The trace values of acceleration and overload mode, which follow the law's alpha. Writes five values. */
static inline void transients_inspect(const struct transients *t, s64 *values)
{
	const struct overload *o = &t->overload;

	values[0] = t->acceleration.a_q16;
	values[1] = t->acceleration.c;
	values[2] = t->acceleration.i_a;
	values[3] = o->answered;
	values[4] = o->has_q_max ? (s64)o->q_max_q16 : LAW_NO_VALUE;
}

#endif
