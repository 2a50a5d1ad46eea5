/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Eight delays in units of 2^-8 us, and their median. No kernel access. */
#ifndef LOWTIDE_TIDE_EIGHT_H
#define LOWTIDE_TIDE_EIGHT_H

#include "law.h"

#define TIDE_MS (1000ULL << 8)
#define TIDE_EIGHT 8
#define TIDE_SAME (TIDE_MS / 4)		/* RTTs that differ by less are alike */

struct tide_eight {
	u64 of[TIDE_EIGHT];
};

static inline u64 tide_differ(u64 a, u64 b)
{
	return at_least(a, b) - at_most(a, b);
}

/*
 * The fifth smallest; of equal values the earlier one is smaller. The loops are unrolled, since a verifier would walk
 * them once for each value of the sum.
 */
VERIFIED_APART u64 tide_median(const struct tide_eight *eight)
{
	u64 median = 0;

	if (!eight)
		return 0;
#pragma GCC unroll 8
	for (u32 i = 0; i < TIDE_EIGHT; i++) {
		u64 it = eight->of[i], below = 0;

#pragma GCC unroll 8
		for (u32 j = 0; j < TIDE_EIGHT; j++)
			below += is_at_most(eight->of[j] + (j > i), it);
		median |= it & -is_at_most(below ^ (TIDE_EIGHT / 2 + 1), 0);
	}
	return median;
}

#endif
