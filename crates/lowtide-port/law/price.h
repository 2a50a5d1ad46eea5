/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The network's congestion signals, without those of Lowtide, and without kernel access: the congestion price for the
 * controller.
 *
 * The stack reduces a window in episodes, and high_seq is what was sent when one began. Each segment that leaves checks
 * for an episode. Recovery retransmits, so none is missed. A signal of Lowtide begins an episode, too, but neither
 * recovery nor a mark. All losses and marks of one window of data are one event, as to a law: a timeout within recovery
 * is part of it.
 */
#ifndef LOWTIDE_PRICE_H
#define LOWTIDE_PRICE_H

/* net/tcp.h: the stack's states */
enum { PRICE_CWR = 2, PRICE_RECOVERY = 3 };

struct price {
	u32 end;		/* sequence number: the end of the latest event's window of data */
	u32 open;		/* until that is acknowledged, signals belong to that event */
	u32 delivered_ce;	/* the stack's count of segments acknowledged with a mark */
};

static inline bool price_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Whether this segment is the first that leaves in a new event. `state`: the stack's icsk_ca_state. */
static inline bool price_new_event(struct price *p, u32 state, u32 high_seq, u32 snd_una, u32 delivered_ce)
{
	bool marked = delivered_ce != p->delivered_ce;
	bool known;

	p->delivered_ce = delivered_ce;
	if (state < PRICE_CWR) {
		if (!price_before(snd_una, p->end))
			p->open = 0;	/* cleared here, as sequence numbers wrap */
		return false;
	}
	if (state == PRICE_CWR && !marked)
		return false;
	known = p->open && (high_seq == p->end || price_before(snd_una, p->end));
	p->end = high_seq;
	p->open = 1;
	return !known;
}

#endif
