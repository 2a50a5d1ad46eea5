/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Whether the queue is empty, without kernel access. */
#ifndef LOWTIDE_QUEUE_H
#define LOWTIDE_QUEUE_H

#define QUEUE_FLOOR_US 2000	/* below the 5 ms that CoDel and PIE aim at, above the noise of a minimum RTT */

/*
 * The minimum RTT of a round is near the base RTT: the queue was empty. An empty queue has no congestion price, and
 * zero times 1/w is zero. So neither the noise of a gradient nor an old loss may hold a flow down.
 */
static inline bool queue_is_empty(u32 round_min_us, u32 min_rtt_us, u32 floor_us)
{
	u32 slack = min_rtt_us / 16;

	if (slack < floor_us)
		slack = floor_us;
	return floor_us && round_min_us && round_min_us <= min_rtt_us + slack;
}

#endif
