/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * One flow's budget for all sockets of a transfer, without kernel access.
 *
 * Each of n sending sockets holds a share of one window: it grows by 1/n of what one flow's would per round trip, and a
 * reduction that any of them has is taken by all, once per round trip. The sum then behaves like one flow by
 * construction, whatever the law's exponent is. Shares are fractions of a segment. A small one is not held by cwnd but
 * paced: below two segments because TCP cannot hold less in flight, below four because Linux sends at most half a cwnd
 * at once, and single segments meet the receiver's delayed-ACK timer, whose 40 ms would drown every delay that CDG
 * looks for. With a cwnd of four they leave in pairs.
 */
#ifndef LOWTIDE_BUDGET_H
#define LOWTIDE_BUDGET_H

#include "fixed.h"

#define WINDOW_MIN_SEGMENTS 2	/* of the whole budget */
#define WINDOW_MIN_Q16 (WINDOW_MIN_SEGMENTS * Q16_ONE)
#define PACED_BELOW_SEGMENTS 4
#define PACED_BELOW_Q16 (PACED_BELOW_SEGMENTS * Q16_ONE)
#define PACING_UNLIMITED (~0U)	/* bytes per second; it takes a limit away, but does not switch pacing on */
#define PACING_SWITCHED_ON (~0U - 1)	/* that does */
#define PACING_NONE 0		/* not switched on; where it is, without a limit */
/* Linux' pacing sends a millisecond's worth at once, so a shorter round trip is not paced by it at all */
#define PACING_RTT_MIN_US 1000
#define PACING_FLOOR_SECONDS 4	/* a connection that sends less than this often is as good as dead to its program */

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
 * acked/n. The root by Newton's method, from above; a dozen steps bring it to a fraction of a segment from anywhere.
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
 * The share after so much more: 1/n of the increase per round trip. The increase is one segment; a weight above 1 is a
 * lower price, and Reno's rate goes with the root of increase/price, so it is w segments then.
 */
static inline u64 budget_reno(u64 window_q16, u64 acked_q16, u64 increase_q16, u32 sockets)
{
	u64 gained_q16 = ((acked_q16 >> 8) * increase_q16 >> 8) / at_least(sockets, 1);

	if (window_q16 >= PACED_BELOW_Q16)
		return window_q16 + (gained_q16 << 16) / window_q16;
	return budget_grow_small(window_q16, gained_q16);
}

/* Both. */
static inline u64 budget_grow(u64 window_q16, u32 ssthresh, u32 acked, u64 increase_q16, u32 sockets)
{
	u64 left_q16 = budget_slow_start(&window_q16, (u64)ssthresh << 16, acked);

	return budget_reno(window_q16, left_q16, increase_q16, sockets);
}

/*
 * The share of a socket that joins n - 1 others past their slow start: what one flow would give it, but no more than an
 * initial window.
 */
static inline u64 budget_join(u64 total_q16, u32 initial, u32 sockets)
{
	u64 n = at_least(sockets, 1), share = at_least(total_q16, WINDOW_MIN_Q16) / n;

	return share < (u64)initial << 16 ? share : (u64)initial << 16;
}

/*
 * The share after a reduction that keeps `keep_q10`/1024 of it, and of that `kept_q16`: 1, or the weight where it
 * scales the decrease factor (the DA-LBE framework, section III-D: cwnd = max(2, beta w cwnd)). All shares together
 * keep two segments.
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
 * Bytes per second for a share below PACED_BELOW_SEGMENTS, else PACING_UNLIMITED, or PACING_NONE on a short path, where
 * it would only cost.
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
