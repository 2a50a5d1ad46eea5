/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Bursts where the stack hands down fewer bytes at once than a burst has, and paces each part by itself. No kernel
 * access.
 */
#ifndef LOWTIDE_BURST_H
#define LOWTIDE_BURST_H

#include "law.h"

/* within a burst, 1 Gbit/s: the stack calls the law before each segment, which it would not without a pause */
#define BURST_PACING 125000000ULL

/*
 * The pace of what leaves next, at most `handed` bytes, in bytes per second. The burst has `length` bytes and ends at
 * `*end`. The pause of the whole burst follows its last bytes, hardly one follows the others.
 */
static inline u64 burst_pace(u64 pace, u32 *end, u32 nxt, u32 length, u32 handed)
{
	u32 left = *end - nxt;

	if (!left || left > length) {
		left = length;
		*end = nxt + length;
	}
	/* by what may be sent, not by what is left: after a segment that was not full that is less than the next one */
	return left > handed ? BURST_PACING : at_least(pace * handed / length, 1);
}

#endif
