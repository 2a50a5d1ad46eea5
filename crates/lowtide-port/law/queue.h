/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Whether there is a queue at all, without kernel access. */
#ifndef LOWTIDE_QUEUE_H
#define LOWTIDE_QUEUE_H

#define QUEUE_FLOOR_US 2000	/* below the 5 ms that CoDel and PIE aim at, above the noise of a smallest round trip */

/*
 * The smallest round trip of a round is (nearly) the smallest ever seen: the queue was empty. An empty queue has no
 * price, and nothing times 1/w is nothing: neither the noise of a gradient nor a loss of long ago may hold a flow down
 * then.
 */
static inline bool queue_is_empty(u32 round_min_us, u32 min_rtt_us, u32 floor_us)
{
	u32 slack = min_rtt_us / 16;

	if (slack < floor_us)
		slack = floor_us;
	return floor_us && round_min_us && round_min_us <= min_rtt_us + slack;
}

#endif
