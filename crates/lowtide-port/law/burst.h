/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Bursts where the stack hands down fewer bytes at once than a burst has, without kernel access: it paces each by
 * itself there.
 */
#ifndef LOWTIDE_BURST_H
#define LOWTIDE_BURST_H

#include "law.h"

/* 1 Gbit/s: the stack asks before each segment, which it would not without a pause */
#define BURST_PACING 125000000ULL

/*
 * The pace, bytes per second, of what leaves next, `handed` bytes at the most: such that the burst's pause comes after
 * it if it ends the burst of `length` bytes, which ends at `*end`, and hardly one otherwise.
 */
static inline u64 burst_pace(u64 pace, u32 *end, u32 nxt, u32 length, u32 handed)
{
	u32 left = *end - nxt;

	if (!left || left > length) {
		left = length;
		*end = nxt + length;
	}
	/*
	 * by what may be sent, and not by what is left: after a segment that was not full that is less than the next
	 * one
	 */
	return left > handed ? BURST_PACING : at_least(pace * handed / length, 1);
}

#endif
