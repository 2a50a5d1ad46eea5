/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A ramp's packets leave in bursts, which come apart where others are served in turn, without kernel access (the reference: lowtide-cc,
 * law/tide/bursts.rs).
 */
#ifndef LOWTIDE_TIDE_BURSTS_H
#define LOWTIDE_TIDE_BURSTS_H

#include "law.h"

#define TIDE_BURST 4			/* packets that leave together: two ACKs tell whether they arrived together */
#define TIDE_BURST_PACKET (1000ULL << 8)	/* of a link with packets of a longer time a burst would be a queue for others */
#define TIDE_BURSTS_APART_Q24 14680064	/* 0.875: the first ACK of each comes apart in any case */

struct tide_bursts {
	u64 acknowledged_us;
	u32 on;
	u32 from, to;		/* of the data that left so the first byte, and the last */
	u32 coming;		/* not all of that has been acknowledged */
	u32 heard;		/* the latest ACK was for such data */
	s32 apart_q24;		/* part of the ACKs that came apart, smoothed */
};

/*
 * Whether so many packets took longer than 1.4 of what the link takes for them: another's packet after each of its own makes two, after every other
 * one 1.5, and a link that gives a little less than it did is none.
 */
static inline bool tide_bursts_apart(u64 us, u32 packets, u64 whole_q32)
{
	return 5 * at_most(us, 1 << 20) * whole_q32 > (u64)(7 * packets) << 32;
}

/* From the byte `nxt` on a ramp's packets, of such a time each, leave so, or no longer. */
VERIFIED_APART int tide_bursts_leave(struct tide_bursts *b, int ramps, u64 packet, u32 nxt)
{
	bool on = ramps && packet <= TIDE_BURST_PACKET;

	if (!b)
		return 0;
	if (on && !b->on) {
		b->from = nxt;
		b->apart_q24 = 0;
		b->coming = 1;
	} else if (!on && b->on) {
		b->to = nxt;
	}
	b->on = on;
	return 0;
}

/* An ACK. Whether bursts come apart on a link that carries so many packets per second. */
VERIFIED_APART int tide_bursts_ack(struct tide_bursts *b, const struct law_ack *a, u64 whole_q32)
{
	u64 passed;
	s32 apart;

	if (!b || !a)
		return 0;
	passed = a->now_us - b->acknowledged_us;
	b->acknowledged_us = a->now_us;
	if (b->coming && !b->on && (s32)(a->una - b->to) > 0)
		b->coming = 0;
	b->heard = b->coming && (s32)(a->una - b->from) > 0;
	/* one ACK for all of a burst tells nothing */
	if (!b->heard || !a->window_limited || a->reducing || a->app_limited || a->packets < 1 || a->packets > 2) {
		b->apart_q24 = 0;
		return 0;
	}
	b->from = a->una - 1;	/* numbers come again */
	apart = tide_bursts_apart(passed, a->packets, whole_q32) ? 1 << 24 : 0;
	b->apart_q24 += (apart - b->apart_q24) / 8;
	return b->apart_q24 > TIDE_BURSTS_APART_Q24;
}

static inline u32 tide_bursts_burst(const struct tide_bursts *b)
{
	return b->on ? TIDE_BURST : 1;
}

/* How long the last one of a burst waits for the others. */
static inline u64 tide_bursts_wait(const struct tide_bursts *b, u64 packet)
{
	return b->on ? (TIDE_BURST - 1) * packet : 0;
}

#endif
