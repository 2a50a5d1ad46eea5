/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * One flow's budget for all sockets of a transfer, without kernel access.
 *
 * Each of n sending sockets holds a share of one window. The share grows by 1/n of what one flow's window would per
 * RTT. A reduction of one socket is taken by all, once per RTT. The sum then behaves like one flow by construction,
 * whatever the law's exponent is. Shares are fractions of a segment. A small share is a pace, not a cwnd. TCP cannot
 * hold less than two segments in flight. And Linux sends at most half a cwnd at once: below four these are single
 * segments, which meet the receiver's delayed-ACK timer, whose 40 ms would hide every delay that CDG measures. With a
 * cwnd of four they leave in pairs.
 */
#ifndef LOWTIDE_BUDGET_H
#define LOWTIDE_BUDGET_H

#include "fixed.h"

#define WINDOW_MIN_SEGMENTS 2	/* of the whole budget */
#define WINDOW_MIN_Q16 (WINDOW_MIN_SEGMENTS * Q16_ONE)
#define PACED_BELOW_SEGMENTS 4
#define PACED_BELOW_Q16 (PACED_BELOW_SEGMENTS * Q16_ONE)
#define PACING_UNLIMITED (~0U)	/* bytes per second; removes a limit, but does not switch pacing on */
#define PACING_SWITCHED_ON (~0U - 1)	/* switches pacing on, without a limit */
#define PACING_NONE 0		/* pacing is not switched on; if it is, it has no limit */
/* Linux's pacing sends what one millisecond carries at once, so shorter RTTs are not paced */
#define PACING_RTT_MIN_US 1000
#define PACING_FLOOR_SECONDS 4	/* programs may give up a connection that sends less often */

static inline u64 at_least(u64 value, u64 floor)
{
	return value < floor ? floor : value;
}

static inline u64 at_most(u64 value, u64 ceiling)
{
	return value < ceiling ? value : ceiling;
}

/*
 * A small share changes much between two ACKs, so the increase per ACK is integrated: dW/dACK = 1/(n W) gives W^2 + 2
 * acked/n. The root is by Newton's method from above: 14 steps come within a fraction of a segment from anywhere.
 */
static inline u64 budget_grow_small(u64 window_q16, u64 gained_q16)
{
	u64 square = window_q16 * window_q16 + (gained_q16 << 17);
	u64 root = window_q16 + (2 * Q16_ONE) + gained_q16;

	for (int i = 0; i < 14; i++)
		root = (root + square / root) / 2;
	return root < window_q16 ? window_q16 : root;
}

/* Slow start of a share up to ssthresh, by `acked` more segments. Returns what it leaves of them, in 2^-16. */
static inline u64 budget_slow_start(u64 *window_q16, u64 ssthresh_q16, u32 acked)
{
	u64 acked_q16 = (u64)(acked < 1 << 15 ? acked : 1 << 15) << 16, room;

	if (*window_q16 >= ssthresh_q16 || ssthresh_q16 <= PACED_BELOW_Q16)
		return acked_q16;
	room = ssthresh_q16 - *window_q16;
	room = acked_q16 < room ? acked_q16 : room;
	*window_q16 += room;
	return acked_q16 - room;
}

/*
 * Congestion avoidance of a share: 1/n of the increase per RTT. The increase is one segment. A weight above 1 is a
 * lower congestion price, and Reno's rate is proportional to the root of increase/price: then it is w segments.
 */
static inline u64 budget_reno(u64 window_q16, u64 acked_q16, u64 increase_q16, u32 sockets)
{
	u64 gained_q16 = ((acked_q16 >> 8) * increase_q16 >> 8) / at_least(sockets, 1);

	if (window_q16 >= PACED_BELOW_Q16)
		return window_q16 + (gained_q16 << 16) / window_q16;
	return budget_grow_small(window_q16, gained_q16);
}

/* Slow start, then congestion avoidance. */
static inline u64 budget_grow(u64 window_q16, u32 ssthresh, u32 acked, u64 increase_q16, u32 sockets)
{
	u64 left_q16 = budget_slow_start(&window_q16, (u64)ssthresh << 16, acked);

	return budget_reno(window_q16, left_q16, increase_q16, sockets);
}

/*
 * The share of a socket that joins n - 1 others after their slow start: 1/n of the whole window, at most an initial
 * window.
 */
static inline u64 budget_join(u64 total_q16, u32 initial, u32 sockets)
{
	u64 n = at_least(sockets, 1), share = at_least(total_q16, WINDOW_MIN_Q16) / n;

	return share < (u64)initial << 16 ? share : (u64)initial << 16;
}

/*
 * The share after a reduction to `keep_q10`/1024, of which `kept_q16` is kept: 1, or the weight where it scales the
 * decrease factor (the DA-LBE framework, section III-D: cwnd = max(2, beta w cwnd)). All shares together keep two
 * segments.
 */
static inline u64 budget_cut(u64 window_q16, u32 keep_q10, u64 kept_q16, u32 sockets)
{
	u64 left = (((window_q16 * keep_q10) >> 10) * kept_q16) >> 16;

	return at_least(left, WINDOW_MIN_Q16 / at_least(sockets, 1));
}

/* Whole segments that TCP may hold in flight for that share. */
static inline u32 budget_cwnd(u64 window_q16)
{
	return at_least(window_q16, PACED_BELOW_Q16) >> 16;
}

/*
 * Bytes per second for a share below PACED_BELOW_SEGMENTS. Else PACING_UNLIMITED, or PACING_NONE on a short path, where
 * pacing only costs processor time.
 */
static inline u32 budget_pacing(u64 window_q16, u32 mss, u32 srtt_us)
{
	u64 rate;

	if (!srtt_us)
		return PACING_UNLIMITED;
	if (window_q16 >= PACED_BELOW_Q16)
		return srtt_us < PACING_RTT_MIN_US ? PACING_NONE : PACING_UNLIMITED;
	rate = ((window_q16 * mss * 1000000) >> 16) / srtt_us;
	rate = at_least(rate, at_least(mss / PACING_FLOOR_SECONDS, 1));
	return rate >= PACING_UNLIMITED ? PACING_UNLIMITED : rate;
}

#endif
