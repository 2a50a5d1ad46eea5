/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The spread of a path: how much longer than the base RTT the RTTs of a free link are, as probes measured. Delays are
 * in 2^-8 us. No kernel access. The reference is law/tide/spread.rs of lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_SPREAD_H
#define LOWTIDE_TIDE_SPREAD_H

#include "law.h"
#include "tide_eight.h"

#define TIDE_SPREAD_PROBES (2 * TIDE_EIGHT)	/* probes that may measure it */
#define TIDE_SPREAD_FIRST_PROBES 12		/* least number of probes of the first LISTEN with a spread: three readings */
/*
 * Quarters of the spread by which the base RTT may fall. If an RTT is the sum of two random delays, one per direction,
 * the readings are about half of its range. The least of sixteen such RTTs exceeds three quarters of that with a
 * probability of 1 %. Then it is more likely that probes met a queue of cross traffic.
 */
#define TIDE_SPREAD_FALL_QUARTERS 3
/*
 * How often these may ask, as a measurement takes probes. The first one may find none by chance. With several
 * connections there may be none, as the probes of LISTEN meet their packets.
 */
#define TIDE_SPREAD_ASKS 2

struct tide_spread {
	u64 longer;		/* how much longer RTTs were than the base RTT; 0: no more, or unknown */
	u64 base;		/* the base RTT when that was measured */
	u32 probes;		/* probes that were to measure it; above TIDE_SPREAD_PROBES: that is over */
	u32 asked;		/* how often noise, or a shorter RTT, asked for a measurement, since the latest spread was found */
};

/* None, for the rest of the run unless noise shows one. */
#define TIDE_SPREAD_NONE ((struct tide_spread){ .probes = TIDE_SPREAD_PROBES + 1 })

/* Whether probes may still measure it. What they have not found by then is cross traffic. */
static inline bool tide_spread_is_due(const struct tide_spread *s)
{
	return !s->longer && s->probes <= TIDE_SPREAD_PROBES;
}

/* Whether probes have found none. */
static inline bool tide_spread_is_none(const struct tide_spread *s)
{
	return !s->longer && s->probes > TIDE_SPREAD_PROBES;
}

/*
 * A probe was measured. `reading`: the spread that the latest ones show; 1: there is none; 0: no reading. Readings
 * differ by chance, so each is averaged with the one before. `unsure`: they may show one, so more are needed.
 */
static inline void tide_spread_probe(struct tide_spread *s, u64 reading, u64 base, bool unsure)
{
	if (tide_spread_is_none(s))
		return;
	if (s->probes <= TIDE_SPREAD_PROBES)
		s->probes += !unsure;
	if (!reading)
		return;
	s->longer = s->longer ? (s->longer + reading) / 2 : reading > 1 ? reading : 0;
	s->base = base;
	s->probes = TIDE_SPREAD_PROBES + 1;
}

/* What probes measured was a queue: it is measured anew. */
static inline void tide_spread_forget(struct tide_spread *s)
{
	if (s->longer)
		s->longer = s->probes = s->asked = 0;
}

/* Probes have found none, and the link is not free for long: they measure it anew. */
static inline void tide_spread_measure_again(struct tide_spread *s)
{
	if (tide_spread_is_none(s))
		s->probes = 0;
}

/* RTTs differ in FILL, and no spread is known; or none was found in a queue. Whether it is to be measured. */
static inline bool tide_spread_ask(struct tide_spread *s)
{
	if (s->longer || s->asked >= TIDE_SPREAD_ASKS)
		return false;
	s->asked++;
	tide_spread_measure_again(s);
	return true;
}

/* How much the base RTT has fallen since the spread was measured. */
static inline u64 tide_spread_fell(const struct tide_spread *s, u64 base)
{
	return at_least(s->base, base) - base;
}

/* The base RTT is `base` now. Forgets the spread if that is too far below the one that it was measured with. */
static inline void tide_spread_base(struct tide_spread *s, u64 base)
{
	if (4 * tide_spread_fell(s, base) > TIDE_SPREAD_FALL_QUARTERS * s->longer)
		tide_spread_forget(s);
}

/* The spread. Probes measured the longest RTT, which stays as it is if the base RTT falls. */
static inline u64 tide_spread_of(const struct tide_spread *s, u64 base)
{
	return at_most(s->longer + tide_spread_fell(s, base), base) * is_at_most(1, s->longer);
}

#endif
