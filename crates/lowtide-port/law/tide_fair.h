/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Whether Tide has only its fair share of a link with fair queues. No kernel access. The reference is law/tide/fair.rs
 * of lowtide-cc. Times are microseconds.
 */
#ifndef LOWTIDE_TIDE_FAIR_H
#define LOWTIDE_TIDE_FAIR_H

#include "law.h"
#include "tide_bursts.h"

/* Least rounds and packets of a reading. */
#define TIDE_FAIR_ROUNDS 4
#define TIDE_FAIR_PACKETS 64
#define TIDE_FAIR_READINGS 2		/* readings in a row that tell a part of the rate from chance */
#define TIDE_FAIR_TOLERANCE 20		/* a part may be off by 1/20 */
#define TIDE_FAIR_PARTS 4	/* the least part: a quarter */
/* rounds of the test: packets are held back, leave together, are acknowledged */
#define TIDE_FAIR_TEST 3
#define TIDE_FAIR_BURST 6		/* packets that leave together: two ACKs in a row are then close */
#define TIDE_FAIR_US_MOST (1ULL << 28)	/* longer times count as this, so that products fit into 64 bits */

struct tide_fair {
	u64 ended_us;		/* end of the latest round; 0: none yet */
	u64 us;			/* of the reading so far */
	u64 acknowledged_us;
	u32 rounds, packets;	/* of the reading so far */
	u32 found;		/* readings in a row that found a part of the rate */
	u32 test;		/* rounds of the test left; above TIDE_FAIR_TEST: it begins with the next round */
	u32 close_acks;		/* ACKs in a row as close as the rate of the whole link allows */
	u32 together;		/* packets did arrive together, or the ACKs cannot show it */
};

/* Earlier rounds say nothing about what follows. */
static inline void tide_fair_restart(struct tide_fair *f)
{
	__builtin_memset(f, 0, sizeof(*f));
}

/* Whether packets that left together arrived without cross traffic between them: within 1.25 packet times each. */
static inline bool tide_fair_together(u64 us, u32 packets, u64 whole_q32)
{
	return at_most(us, TIDE_FAIR_US_MOST >> 4) * whole_q32 / 5 <= (u64)packets << 30;
}

VERIFIED_APART int tide_fair_ack(struct tide_fair *f, const struct law_ack *a, u64 whole_q32)
{
	if (!f || !a)
		return 0;
	if (f->test && f->test < TIDE_FAIR_TEST && a->packets && whole_q32) {
		f->close_acks = tide_bursts_apart(a->now_us - f->acknowledged_us, a->packets, whole_q32) ? 0 : f->close_acks + 1;
		/* ACKs that cannot show it count as close: the test then finds nothing */
		f->together |= f->close_acks >= 2 || a->reducing || a->app_limited || a->packets > TIDE_FAIR_BURST / 2;
	}
	f->acknowledged_us = a->now_us;
	return 0;
}

/*
 * A round of FILL has ended. `packets` were acknowledged in it; `queued`: it had a queue. True: the test found packets
 * apart. Two readings in a row of a half, a third or a quarter of `whole_q32` start the test.
 */
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
	f->test = f->found >= TIDE_FAIR_READINGS ? TIDE_FAIR_TEST : 0;
	f->us = f->rounds = f->packets = f->close_acks = f->together = 0;
	return 0;
}

/* Starts the test with the next round, if the packets held back are at most a fifth of the window. */
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

/* Segments by which the window is reduced, so that they leave together in the next round. */
static inline u64 tide_fair_held_back_q16(const struct tide_fair *f)
{
	return f->test == TIDE_FAIR_TEST ? TIDE_FAIR_BURST << 16 : 0;
}

#endif
