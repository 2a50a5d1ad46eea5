/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What every law of the window kind gets and gives, without kernel access. The kernel (window_ops.h of lowtide-kernel)
 * and the native port for tests and simulator (src/port.rs) call the same functions in the same order:
 *
 *   X_begin    once; cwnd is the initial window
 *   X_sample   for each ACK that acknowledges something, in reduction episodes too
 *   X_ack      after it, outside of them: the window moves; true: it came down for congestion that the law found by
 *              itself
 *   X_reduce   congestion: the window comes down to ssthresh; the stack walks there by PRR
 *   X_answered  a loss that belongs to a reduction made already
 *   X_recovered  the episode is over
 *   X_undone   the loss or timeout was none; the window is restored already
 *   X_restart  the sender was idle, for so long
 *   X_inspect  what it knows and decided, for a trace: so many values, in the order of the law's entry in
 *              src/table.rs, which has their scales; LAW_NO_VALUE where there is none
 *   X_timed_out  of a law of timeouts: a loss or a recovery has become one (where X_reduce hears of a timeout as such,
 *              it is called from there)
 *
 * A law of marks (marks.h) hears of more, for its rounds and its reactions go on in reduction episodes:
 *
 *   X_ack      in them too; the window is then the one that the stack walks to
 *   X_reduce   for each loss and each timeout, also where marks have begun an episode already
 *   X_answered  a loss has become a timeout
 *   X_undone   restores the window itself
 *
 * A law that paces itself is one of those, without their marks, and says how fast:
 *
 *   X_pace     bytes per second; 0: not known yet
 *   X_least_burst  segments that leave at once at the least
 *
 * Windows are units of 2^-16 segments, times microseconds, parameters u32 in the order of the law's entry in
 * src/table.rs.
 */
#ifndef LOWTIDE_LAW_H
#define LOWTIDE_LAW_H

#include "fixed.h"
#include "budget.h"

#define LAW_PARAMETERS 24	/* of one law, at most */
/* segments that any flow begins with (RFC 6928), and at the most after a pause (RFC 5681, section 4.1) */
#define LAW_INITIAL_WINDOW 10
#define LAW_NO_THRESHOLD_Q16 (0x7fffffffULL << 16)	/* TCP_INFINITE_SSTHRESH */
#define LAW_SHORT_Q16 6	/* 1e-4 */
#define LAW_PACKETS_MAX (1 << 15)	/* of one ACK that count */
#define LAW_VALUES 8		/* of one law in a trace, at most */
#define LAW_NO_VALUE ((s64)(1ULL << 63))

enum law_signal { LAW_LOSS, LAW_ECN, LAW_PHANTOM, LAW_TIMEOUT };

struct law_ack {
	u64 now_us;
	u32 packets;		/* segments newly acknowledged, selectively too */
	u32 marked;		/* of those, with CE */
	u32 rtt_us;		/* 0: no sample */
	u32 srtt_us;
	/* of the newest segment to the receiver's clock (owd.h), or its round trip; only differences mean anything */
	s64 delay_us;
	u32 has_delay;
	u32 una, nxt;		/* sequence numbers */
	u32 in_flight;		/* segments, before this ACK */
	u32 window_limited;
	u64 cwnd_q16;		/* the window, before this ACK */
	u64 weight_q16;		/* w; 0: none */
	u32 reducing;		/* in a reduction episode that goes on; not after a timeout */
	u32 mss;		/* payload bytes of a full segment */
	u32 lost;		/* segments newly marked lost */
	/* the latest rate sample: so many segments in so much time; an interval of 0: none */
	u32 rate_delivered, rate_interval_us, rate_app_limited;
	u32 app_limited;	/* segments are on their way that the program had no more of */
	u32 latency_us;		/* LOWTIDE_LATENCY: Q of a law with acceleration, 0: the law's own */
	u32 holes;		/* SACK blocks are outstanding; for cdg_flow.h alone, as what follows */
	u32 random;		/* uniform over 32 bits */
	u32 senders;		/* connections whose ACKs these are, where several are one flow (aggregate.h) */
	u32 burst;		/* segments that connections of that flow began with at once: one waits for the other */
	/*
	 * segments of other connections of that flow, outside of its window, that may have met those that tell of the
	 * queue
	 */
	u32 beside;
};

struct law_window {
	u64 cwnd_q16;
	u64 least_q16;		/* that a reduction leaves */
	u64 ssthresh_q16;	/* LAW_NO_THRESHOLD_Q16: none yet */
	u32 nxt;		/* the sequence number to be sent next, for X_reduce of a law that paces */
};

/* What a price weight comes to on this socket. */
struct law_weight {
	u64 weight_q16;		/* w; 0: the law is as published */
	u64 ratio_q16;		/* phi: prices of ordinary flows over ours */
	u64 kept_q16;		/* the part kept of what a reduction leaves: 1, or w (beta scaling) */
};

static inline bool law_in_slow_start(const struct law_window *w)
{
	return w->cwnd_q16 < w->ssthresh_q16;
}

/*
 * The same where real numbers would be there: a window just below its threshold, by what thirds of a segment lack of
 * whole ones, is at it.
 */
static inline bool law_starts(const struct law_window *w)
{
	return w->cwnd_q16 + LAW_SHORT_Q16 < w->ssthresh_q16;
}

/* The socket's part of the least window that a law has; the stack's own is two segments. */
static inline u64 law_minimum(const struct law_window *w, u32 least_q16)
{
	return (least_q16 * w->least_q16) / WINDOW_MIN_Q16;
}

/* Whether `una` is past this round's end, which then becomes `nxt`. */
static inline bool law_next_round(u32 *end, const struct law_ack *a)
{
	if ((s32)(*end - a->una) >= 0)
		return false;
	*end = a->nxt;
	return true;
}

/* Slow start; returns what it leaves to congestion avoidance, in 2^-16 segments. */
static inline u64 law_slow_start(struct law_window *w, u32 packets)
{
	u64 acked = (u64)(packets < LAW_PACKETS_MAX ? packets : LAW_PACKETS_MAX) << 16, room;

	if (!law_in_slow_start(w))
		return acked;
	room = w->ssthresh_q16 - w->cwnd_q16;
	if (acked <= room) {
		w->cwnd_q16 += acked;
		return 0;
	}
	w->cwnd_q16 = w->ssthresh_q16;
	return acked - room;
}

/* Congestion avoidance of Reno: a segment per round trip. */
static inline void law_reno(struct law_window *w, u64 acked_q16)
{
	w->cwnd_q16 += (acked_q16 << 16) / at_least(w->cwnd_q16, 1);
}

/* Both, for a window that is used. */
static inline void law_grow(struct law_window *w, const struct law_ack *a)
{
	if (a->window_limited)
		law_reno(w, law_slow_start(w, a->packets));
}

/*
 * What so many segments acknowledged come to of `per_round`, the window's change in a round trip. It is finer than
 * windows are, since what its rounding loses adds up: at most 2^16 segments.
 */
static inline u64 law_in_round(const struct law_window *w, u64 per_round_q24, u32 packets)
{
	u64 cwnd = at_least(w->cwnd_q16, 1), acked = packets < LAW_PACKETS_MAX ? packets : LAW_PACKETS_MAX;

	if (per_round_q24 >> 40)
		per_round_q24 = (1ULL << 40) - 1;
	return (((per_round_q24 * acked) << 8) + cwnd / 2) / cwnd;
}

/*
 * The threshold comes down to `left`, of which a weight may keep a part, but not below `least`; the window to the
 * threshold, but not up to it.
 */
static inline void law_lower_to(struct law_window *w, const struct law_weight *weight, u64 left_q16, u64 least_q16, enum law_signal signal)
{
	w->ssthresh_q16 = at_least((left_q16 * weight->kept_q16) >> 16, least_q16);
	if (signal == LAW_TIMEOUT)
		w->cwnd_q16 = Q16_ONE;
	else if (w->cwnd_q16 > w->ssthresh_q16)
		w->cwnd_q16 = w->ssthresh_q16;
}

/* The same, and up to it. */
static inline void law_reduce_to(struct law_window *w, const struct law_weight *weight, u64 left_q16, enum law_signal signal)
{
	law_lower_to(w, weight, left_q16, w->least_q16, signal);
	if (signal != LAW_TIMEOUT)
		w->cwnd_q16 = w->ssthresh_q16;
}

#endif
