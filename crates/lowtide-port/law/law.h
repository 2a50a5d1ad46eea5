/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The interface of every window law, without kernel access. The kernel (window_ops.h of lowtide-kernel) and the native
 * port for tests and simulator (src/port.rs) call the same functions in the same order:
 *
 *   X_begin    once; cwnd is the initial window
 *   X_sample   for each ACK that acknowledges something, in reduction episodes too
 *   X_ack      after it, outside of episodes: changes the window. True: it was reduced, as the law found congestion
 *              without a signal
 *   X_reduce   congestion: the window is reduced to ssthresh; the stack walks there by PRR
 *   X_answered  a loss that belongs to a reduction made already
 *   X_recovered  the episode is over
 *   X_undone   the loss or timeout was spurious; the window is restored already
 *   X_restart  the sender was idle for `idle_us`
 *   X_inspect  values for a trace, in the order of the law's entry in src/table.rs, which has their scales; returns
 *              their number; LAW_NO_VALUE: none
 *   X_timed_out  of a law with timeouts: a loss or a recovery has become a timeout (X_reduce calls it if it gets
 *              timeouts as such)
 *
 * A law of marks (marks.h) is called for more, since its rounds and reactions go on in reduction episodes:
 *
 *   X_ack      in episodes too; the window is then the one that the stack walks to
 *   X_reduce   for each loss and each timeout, also if marks have begun an episode already
 *   X_answered  a loss has become a timeout
 *   X_undone   restores the window itself
 *
 * A law with its own pace is called like these, without marks, and has:
 *
 *   X_pace     bytes per second; 0: not known yet
 *   X_least_burst  least number of segments that leave at once
 *
 * Windows are units of 2^-16 segments, times microseconds. Parameters are u32 in the order of the law's entry in
 * src/table.rs.
 */
#ifndef LOWTIDE_LAW_H
#define LOWTIDE_LAW_H

#include "fixed.h"
#include "budget.h"

#define LAW_PARAMETERS 24	/* of one law, at most */
/* initial window of any flow (RFC 6928), and greatest window after an idle time (RFC 5681, section 4.1), segments */
#define LAW_INITIAL_WINDOW 10
#define LAW_NO_THRESHOLD_Q16 (0x7fffffffULL << 16)	/* TCP_INFINITE_SSTHRESH */
#define LAW_SHORT_Q16 6	/* 1e-4 */
#define LAW_PACKETS_MAX (1 << 15)	/* more segments in one ACK count as this */
#define LAW_VALUES 8		/* of one law in a trace, at most */
#define LAW_NO_VALUE ((s64)(1ULL << 63))

enum law_signal { LAW_LOSS, LAW_ECN, LAW_PHANTOM, LAW_TIMEOUT };

struct law_ack {
	u64 now_us;
	u32 packets;		/* segments newly acknowledged, by SACK too */
	u32 marked;		/* of those, segments with CE */
	u32 rtt_us;		/* 0: no sample */
	u32 srtt_us;
	/* from the newest segment to the receiver's clock (owd.h), or its RTT; the origin is unknown */
	s64 delay_us;
	u32 has_delay;
	u32 una, nxt;		/* sequence numbers */
	u32 in_flight;		/* segments, before this ACK */
	u32 window_limited;
	u32 bytes;		/* payload of `packets` */
	u64 cwnd_q16;		/* the window, before this ACK */
	u64 weight_q16;		/* w; 0: none */
	u32 reducing;		/* in a reduction episode; not after a timeout */
	u32 mss;		/* payload bytes of a full segment */
	u32 lost;		/* segments newly marked lost */
	/* the latest delivery-rate sample: segments, us (0: none), and whether it was application-limited */
	u32 rate_delivered, rate_interval_us, rate_app_limited;
	u32 app_limited;	/* application-limited segments are in flight */
	u32 latency_us;		/* LOWTIDE_LATENCY: Q of a law with acceleration; 0: the law's own */
	u32 holes;		/* SACK blocks are outstanding; this and `random` are for cdg_flow.h only */
	u32 random;		/* uniform over 32 bits */
	u32 senders;		/* connections that fill the window, if several are one flow (aggregate.h) */
	/* segments of initial windows of that flow's connections, which left at once and queue behind each other */
	u32 burst;
	/*
	 * segments of other connections of that flow, outside of its window, that the measured packets may have met in
	 * the queue
	 */
	u32 beside;
};

struct law_window {
	u64 cwnd_q16;
	u64 least_q16;		/* least window after a reduction */
	u64 ssthresh_q16;	/* LAW_NO_THRESHOLD_Q16: none yet */
	u32 nxt;		/* the next sequence number to be sent, for X_reduce of a law with its own pace */
};

/* What a price weight means for this socket. */
struct law_weight {
	u64 weight_q16;		/* w; 0: the law is as published */
	u64 ratio_q16;		/* phi: the congestion price of ordinary flows over that of this one */
	u64 kept_q16;		/* part of the window that a reduction leaves which is kept: 1, or w (beta scaling) */
};

static inline bool law_in_slow_start(const struct law_window *w)
{
	return w->cwnd_q16 < w->ssthresh_q16;
}

/*
 * The same with an allowance for rounding: a window below its threshold only by what rounded thirds of segments lose is
 * at it.
 */
static inline bool law_starts(const struct law_window *w)
{
	return w->cwnd_q16 + LAW_SHORT_Q16 < w->ssthresh_q16;
}

/* The socket's part of the minimum window of a law; that of the stack is two segments. */
static inline u64 law_minimum(const struct law_window *w, u32 least_q16)
{
	return (least_q16 * w->least_q16) / WINDOW_MIN_Q16;
}

/* Whether `una` is past the end of this round. If so the next round ends at `nxt`. */
static inline bool law_next_round(u32 *end, const struct law_ack *a)
{
	if ((s32)(*end - a->una) >= 0)
		return false;
	*end = a->nxt;
	return true;
}

/* Slow start. Returns what it leaves to congestion avoidance, in 2^-16 segments. */
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

/* Reno's congestion avoidance: a segment per RTT. */
static inline void law_reno(struct law_window *w, u64 acked_q16)
{
	w->cwnd_q16 += (acked_q16 << 16) / at_least(w->cwnd_q16, 1);
}

/* Slow start and congestion avoidance, if the window is the limit. */
static inline void law_grow(struct law_window *w, const struct law_ack *a)
{
	if (a->window_limited)
		law_reno(w, law_slow_start(w, a->packets));
}

/*
 * The change of the window for `packets` acknowledged, of `per_round_q24`, its change per RTT. That is finer than
 * windows are, since rounding errors add up. At most 2^16 segments.
 */
static inline u64 law_in_round(const struct law_window *w, u64 per_round_q24, u32 packets)
{
	u64 cwnd = at_least(w->cwnd_q16, 1), acked = packets < LAW_PACKETS_MAX ? packets : LAW_PACKETS_MAX;

	if (per_round_q24 >> 40)
		per_round_q24 = (1ULL << 40) - 1;
	return (((per_round_q24 * acked) << 8) + cwnd / 2) / cwnd;
}

/*
 * Reduces the threshold to `left`, or to the part of it that a weight keeps, but not below `least`. The window falls to
 * the threshold, but does not rise to it.
 */
static inline void law_lower_to(struct law_window *w, const struct law_weight *weight, u64 left_q16, u64 least_q16, enum law_signal signal)
{
	w->ssthresh_q16 = at_least((left_q16 * weight->kept_q16) >> 16, least_q16);
	if (signal == LAW_TIMEOUT)
		w->cwnd_q16 = Q16_ONE;
	else if (w->cwnd_q16 > w->ssthresh_q16)
		w->cwnd_q16 = w->ssthresh_q16;
}

/* The same, but the window also rises to the threshold. */
static inline void law_reduce_to(struct law_window *w, const struct law_weight *weight, u64 left_q16, enum law_signal signal)
{
	law_lower_to(w, weight, left_q16, w->least_q16, signal);
	if (signal != LAW_TIMEOUT)
		w->cwnd_q16 = w->ssthresh_q16;
}

#endif
