/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A ramp sends bursts. Behind fair queues they come apart if there is cross traffic. No kernel access. The reference is
 * law/tide/bursts.rs of lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_BURSTS_H
#define LOWTIDE_TIDE_BURSTS_H

#include "law.h"

#define TIDE_BURST 4			/* packets that leave together: two ACKs show whether they arrived together */
/* longest packet time for bursts, 2^-8 us: with longer ones they are a queue to cross traffic */
#define TIDE_BURST_PACKET (1000ULL << 8)
#define TIDE_BURSTS_APART_Q24 14680064	/* 0.875: the first ACK of a burst comes apart in any case */

struct tide_bursts {
	u64 acknowledged_us;	/* the latest ACK */
	u32 on;			/* packets leave in bursts */
	u32 from, to;		/* the first byte sent in bursts, and the end of the last ones */
	u32 coming;		/* not all of these data are acknowledged */
	u32 acks_burst;		/* the latest ACK was for such data */
	s32 apart_q24;		/* part of the ACKs that came apart, smoothed */
};

/*
 * Whether an ACK came more than 1.4 packet times per packet after the one before. A packet of cross traffic after each
 * own packet makes that 2, one after every other 1.5. A link that is a little slower than before stays below.
 */
static inline bool tide_bursts_apart(u64 us, u32 packets, u64 whole_q32)
{
	return 5 * at_most(us, 1 << 20) * whole_q32 > (u64)(7 * packets) << 32;
}

/* From the byte `nxt` on packets leave in bursts if `ramps` and the packet time (2^-8 us) is short, else alone. */
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

/* An ACK. True: bursts come apart on a link of this rate. */
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
	b->acks_burst = b->coming && (s32)(a->una - b->from) > 0;
	/* one ACK for a whole burst shows no spacing */
	if (!b->acks_burst || !a->window_limited || a->reducing || a->app_limited || a->packets < 1 || a->packets > 2) {
		b->apart_q24 = 0;
		return 0;
	}
	b->from = a->una - 1;	/* sequence numbers wrap */
	apart = tide_bursts_apart(passed, a->packets, whole_q32) ? 1 << 24 : 0;
	b->apart_q24 += (apart - b->apart_q24) / 8;
	return b->apart_q24 > TIDE_BURSTS_APART_Q24;
}

static inline u32 tide_bursts_burst(const struct tide_bursts *b)
{
	return b->on ? TIDE_BURST : 1;
}

/* How long the last packet of a burst waits for the others, 2^-8 us. */
static inline u64 tide_bursts_wait(const struct tide_bursts *b, u64 packet)
{
	return b->on ? (TIDE_BURST - 1) * packet : 0;
}

#endif
