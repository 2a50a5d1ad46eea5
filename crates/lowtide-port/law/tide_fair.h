/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* Whether Tide has its fair part of a link that others want, too (the reference: lowtide-cc, law/tide/fair.rs). Times are microseconds. */
#ifndef LOWTIDE_TIDE_FAIR_H
#define LOWTIDE_TIDE_FAIR_H

#include "law.h"
#include "tide_bursts.h"

/* Looked at together. */
#define TIDE_FAIR_ROUNDS 4
#define TIDE_FAIR_PACKETS 64
#define TIDE_FAIR_LOOKS 2		/* in a row tell a part from chance */
#define TIDE_FAIR_TOLERANCE 20		/* a 20th of a part */
#define TIDE_FAIR_PARTS 4
#define TIDE_FAIR_TEST 3		/* rounds: packets are held back, leave together, have arrived */
#define TIDE_FAIR_BURST 6		/* packets that leave together: two ACKs in a row are close then */
#define TIDE_FAIR_US_MOST (1ULL << 28)

struct tide_fair {
	u64 ended_us;		/* the latest round; 0: none yet */
	u64 us;
	u64 acknowledged_us;
	u32 rounds, packets;
	u32 found;		/* looks in a row that found a part */
	u32 test;		/* rounds of the test that are left */
	u32 close;		/* ACKs in a row that came as close as the link's rate allows */
	u32 together;		/* packets did arrive together */
};

/* Whatever was seen has nothing to do with what comes. */
static inline void tide_fair_restart(struct tide_fair *f)
{
	__builtin_memset(f, 0, sizeof(*f));
}

/* Whether these packets, which left together, arrived in this time with nobody else's between them: 1.25 of what the link takes. */
static inline bool tide_fair_together(u64 us, u32 packets, u64 whole_q32)
{
	return at_most(us, TIDE_FAIR_US_MOST >> 4) * whole_q32 / 5 <= (u64)packets << 30;
}

VERIFIED_APART int tide_fair_ack(struct tide_fair *f, const struct law_ack *a, u64 whole_q32)
{
	if (!f || !a)
		return 0;
	if (f->test && f->test < TIDE_FAIR_TEST && a->packets && whole_q32) {
		f->close = tide_bursts_apart(a->now_us - f->acknowledged_us, a->packets, whole_q32) ? 0 : f->close + 1;
		/* where that says nothing, nothing is found */
		f->together |= f->close >= 2 || a->reducing || a->app_limited || a->packets > TIDE_FAIR_BURST / 2;
	}
	f->acknowledged_us = a->now_us;
	return 0;
}

/* A round is over in which so many packets arrived. True where the link gives no more than a fair part of the whole rate. */
VERIFIED_APART int tide_fair_round(struct tide_fair *f, u64 now_us, u32 packets, u32 queued, u64 whole_q32)
{
	u64 began_us, parts, nearest;
	bool fair;

	if (!f)
		return 0;
	if (f->test) {
		f->test--;
		if (f->test)
			return 0;
		fair = !f->together;
		tide_fair_restart(f);
		return fair;
	}
	began_us = f->ended_us;
	f->ended_us = now_us;
	if (!began_us || !queued)
		return 0;
	f->rounds++;
	f->packets += packets;
	f->us += now_us - began_us;
	if (f->rounds < TIDE_FAIR_ROUNDS || f->packets < TIDE_FAIR_PACKETS)
		return 0;
	parts = (at_most(f->us, TIDE_FAIR_US_MOST) * whole_q32 / at_least(f->packets, 1)) >> 16;
	nearest = (parts + Q16_ONE / 2) >> 16;
	fair = nearest >= 2 && nearest <= TIDE_FAIR_PARTS &&
	       (parts > nearest << 16 ? parts - (nearest << 16) : (nearest << 16) - parts) * TIDE_FAIR_TOLERANCE < nearest << 16;
	f->found = fair ? f->found + 1 : 0;
	f->test = f->found >= TIDE_FAIR_LOOKS ? TIDE_FAIR_TEST : 0;
	f->us = f->rounds = f->packets = f->close = f->together = 0;
	return 0;
}

/* Puts the link to the test with the next round, where what is held back is a fifth of the window at the most. */
static inline void tide_fair_put_to_test(struct tide_fair *f, u64 window_q16)
{
	u64 acknowledged_us = f->acknowledged_us;

	if (f->test || window_q16 < 5 * TIDE_FAIR_BURST << 16)
		return;
	tide_fair_restart(f);
	f->acknowledged_us = acknowledged_us;
	f->test = TIDE_FAIR_TEST + 1;
}

static inline u32 tide_fair_burst(const struct tide_fair *f)
{
	return f->test ? TIDE_FAIR_BURST : 1;
}

/* Packets that are held back until they leave together. */
static inline u64 tide_fair_held_back_q16(const struct tide_fair *f)
{
	return f->test == TIDE_FAIR_TEST ? TIDE_FAIR_BURST << 16 : 0;
}

#endif
