/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The network's own congestion signals, told from ours, without kernel access: the price that the controller goes by.
 *
 * The stack reduces a window in episodes, and keeps in high_seq what was sent when one began. An episode is looked at
 * with each segment that leaves. Recovery retransmits, so none passes unseen. A signal of ours begins an episode too,
 * but neither recovery nor a mark. All losses and marks of one window of data are one event, as they are to a law: a
 * timeout within recovery is part of it.
 */
#ifndef LOWTIDE_PRICE_H
#define LOWTIDE_PRICE_H

/* net/tcp.h: the stack's states */
enum { PRICE_CWR = 2, PRICE_RECOVERY = 3 };

struct price {
	u32 end;		/* sequence number: the latest event's window of data ends here */
	u32 open;		/* until that is acknowledged, what comes belongs to it */
	u32 delivered_ce;	/* the stack's count of segments acknowledged with a mark */
};

static inline bool price_before(u32 a, u32 b)
{
	return (s32)(a - b) < 0;
}

/* Whether this look, with a segment that leaves, is the first at a new event. `state`: the stack's icsk_ca_state. */
static inline bool price_new_event(struct price *p, u32 state, u32 high_seq, u32 snd_una, u32 delivered_ce)
{
	bool marked = delivered_ce != p->delivered_ce;
	bool known;

	p->delivered_ce = delivered_ce;
	if (state < PRICE_CWR) {
		if (!price_before(snd_una, p->end))
			p->open = 0;	/* now, as sequence numbers wrap */
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
