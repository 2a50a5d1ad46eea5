/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Several connections over one path as one flow (the Congestion Manager, RFC 3124), without kernel access. The law gets
 * the ACKs of all of them as those of one flow, and its window is divided among them by what they have to send.
 *
 * Sequence numbers of different connections cannot be compared, but times can. So the law's `una` is the time when the
 * latest acknowledged segment left, of any connection, and its `nxt` is now: microseconds, modulo 2^32. The delivery
 * rate is that of all together.
 */
#ifndef LOWTIDE_AGGREGATE_H
#define LOWTIDE_AGGREGATE_H

#include "law.h"

#define AGGREGATE_MARKS 32	/* marks kept: delivery rates are measured from them, four RTTs back */
#define AGGREGATE_SPACING 8	/* marks per RTT */

/* The state of the aggregate at an ACK. */
struct aggregate_mark {
	u64 at_us;
	u32 sent;		/* when the latest acknowledged segment left */
	u32 delivered;		/* bytes delivered so far */
	u32 app_limited;	/* the rate was application-limited */
	u32 unused;
};

struct aggregate {
	u64 acked_us;		/* the latest ACK of a segment */
	u64 acked_of;		/* number of its connection; 0: none yet */
	u64 mixed_us;		/* the latest ACK that followed one of another connection */
	u64 started_us;		/* when a connection without data in flight last began to send */
	u64 reduced_us;		/* the latest reduction */
	u64 delivered;		/* bytes delivered: a short segment takes less time on the link than another one */
	u64 granted_q16;	/* the part of the window that connections use, or may use at once */
	u64 modest_q16;		/* of that, the part of connections that use less than their grant */
	u64 wanting;		/* connections that use up their grant: WANTS or HOLDS_TOKEN */
	u32 srtt_us8;		/* smoothed RTT over the samples of all connections, in eighths */
	u32 sent;		/* `una` - 1 */
	u32 app_limited;	/* application-limited until `delivered` exceeds this; 0: it is not */
	/* segments outside of the window, sent in this RTT and in the two before */
	u32 beside, beside_before, beside_earlier;
	u32 burst, burst_before;	/* segments of initial windows, which left at once, in the same RTTs */
	u64 counts_us;		/* when this RTT began */
	u32 last, from;		/* marks: the latest, and the one from which the latest rate was measured */
	struct aggregate_mark marks[AGGREGATE_MARKS];
};

/*
 * How a connection uses its grant. MODEST: it uses less. WANTS: it would use more. YIELDS: it leaves its part to
 * others. HOLDS_TOKEN: it uses at once what others do not use of the window, as it is paced.
 */
enum aggregate_use { AGGREGATE_MODEST, AGGREGATE_WANTS, AGGREGATE_YIELDS, AGGREGATE_HOLDS_TOKEN };

/* A connection's part of the window. */
struct aggregate_member {
	u64 grant_q16;		/* segments that it may have in flight; a small grant is a pace (budget.h) */
	u64 counted_q16;	/* the part of it in `granted_q16` */
	u32 use;		/* enum aggregate_use */
	u32 in_flight;		/* segments before its latest ACK; 0 if it had no more to send */
};

static inline void aggregate_begin(struct aggregate *g, u64 now_us, u32 srtt_us)
{
	g->acked_us = g->started_us = now_us;
	g->sent = now_us - 1;
	g->srtt_us8 = 8 * srtt_us;
	g->last = g->from = g->app_limited = 0;
	g->marks[0].at_us = now_us;
	g->marks[0].sent = g->sent;
	g->marks[0].delivered = g->delivered;
}

static inline u32 aggregate_srtt_us(const struct aggregate *g)
{
	return g->srtt_us8 / 8;
}

/* Whether several connections have been acknowledged within an RTT. */
static inline bool aggregate_is_mixed(const struct aggregate *g, u64 now_us)
{
	return g->mixed_us && now_us - g->mixed_us <= aggregate_srtt_us(g);
}

/*
 * The delivery rate since the segment left that this ACK is for, as of one flow: the longer of the times to send and to
 * acknowledge counts (draft-ietf-ccwg-bbr, section 4.1.2.3). If one connection alone is acknowledged, the stack's own
 * sample is better, and stays.
 */
VERIFIED_APART int aggregate_rate(struct aggregate *g, struct law_ack *a)
{
	struct aggregate_mark *mark;
	u32 interval, sending;
	u64 sent_us;

	if (!g || !a)
		return 0;
	if (!aggregate_is_mixed(g, a->now_us))
		return 0;
	sent_us = a->now_us - a->rtt_us;
	a->rate_interval_us = 0;
	if (!a->rtt_us)
		return 0;
	if (g->last - g->from >= AGGREGATE_MARKS)
		g->from = g->last - AGGREGATE_MARKS + 1;
	for (u32 i = 0; i < AGGREGATE_MARKS; i++) {
		if (g->from == g->last || g->marks[(g->from + 1) & (AGGREGATE_MARKS - 1)].at_us > sent_us)
			break;
		g->from++;
	}
	mark = &g->marks[g->from & (AGGREGATE_MARKS - 1)];
	if (mark->at_us > sent_us)
		return 0;
	interval = a->now_us - mark->at_us;
	sending = (u32)sent_us - mark->sent;
	a->rate_interval_us = at_least(interval, sending);
	a->rate_delivered = ((u32)g->delivered - mark->delivered) / at_least(a->mss, 1);
	a->rate_app_limited = mark->app_limited;
	return 0;
}

/* Turns the ACK of the connection of this number into one of the aggregate. */
VERIFIED_APART int aggregate_ack(struct aggregate *g, struct law_ack *a, u64 number)
{
	struct aggregate_mark *mark;
	u32 sent;

	if (!g || !a)
		return 0;
	mark = &g->marks[g->last & (AGGREGATE_MARKS - 1)];
	sent = a->now_us - a->rtt_us;
	g->delivered += a->bytes;
	if (a->packets) {
		if (g->acked_of && g->acked_of != number)
			g->mixed_us = a->now_us;
		g->acked_of = number;
		g->acked_us = a->now_us;
	}
	if (a->rtt_us) {
		g->srtt_us8 = g->srtt_us8 ? g->srtt_us8 - g->srtt_us8 / 8 + a->rtt_us : 8 * a->rtt_us;
		if ((s32)(sent - g->sent) > 0)
			g->sent = sent;
	}
	aggregate_rate(g, a);
	if (g->app_limited && (s32)((u32)g->delivered - g->app_limited) > 0)
		g->app_limited = 0;
	if (a->now_us - mark->at_us >= aggregate_srtt_us(g) / AGGREGATE_SPACING) {
		g->last++;
		mark = &g->marks[g->last & (AGGREGATE_MARKS - 1)];
		mark->at_us = a->now_us;
		mark->sent = g->sent;
		mark->delivered = g->delivered;
		mark->app_limited = g->app_limited != 0;
	}
	a->srtt_us = aggregate_srtt_us(g);
	a->una = g->sent + 1;
	a->nxt = a->now_us;
	if (aggregate_is_mixed(g, a->now_us))
		a->app_limited = g->app_limited != 0;
	a->senders = g->wanting;
	if (a->now_us - g->counts_us > aggregate_srtt_us(g)) {
		g->beside_earlier = g->beside_before;
		g->beside_before = g->beside;
		g->burst_before = g->burst;
		g->beside = g->burst = 0;
		g->counts_us = a->now_us;
	}
	/* packets that waited behind them are acknowledged up to two RTTs later */
	a->beside = g->beside_before + at_least(g->beside, g->beside_earlier);
	a->burst = g->burst + g->burst_before;
	return 0;
}

/* No connection has more to send. Until what is in flight is delivered the rate is application-limited. */
static inline void aggregate_has_no_data(struct aggregate *g, u32 mss)
{
	if (!g->wanting)
		g->app_limited = ((u32)g->delivered + (u32)(g->granted_q16 >> 16) * mss) ?: 1;
}

/*
 * Whether the lost segment was sent after the latest reduction: several connections may lose segments in one overflow.
 */
static inline bool aggregate_loses_anew(const struct aggregate *g, u64 now_us)
{
	return now_us - at_most(aggregate_srtt_us(g), now_us) > g->reduced_us;
}

static inline bool aggregate_wants(u32 use)
{
	return use == AGGREGATE_WANTS || use == AGGREGATE_HOLDS_TOKEN;
}

/* Whether another connection would use more. */
static inline bool aggregate_others_want(const struct aggregate *g, const struct aggregate_member *m)
{
	return g->wanting > aggregate_wants(m->use);
}

/* Adds atomically, since a connection may leave during the ACK of another one. */
static inline void aggregate_count(struct aggregate *g, struct aggregate_member *m, u64 counted_q16, u32 use)
{
	u64 modest = use == AGGREGATE_MODEST ? counted_q16 : 0, was_modest = m->use == AGGREGATE_MODEST ? m->counted_q16 : 0;
	u64 wants = aggregate_wants(use), wanted = aggregate_wants(m->use);

	if (counted_q16 != m->counted_q16)
		__sync_fetch_and_add(&g->granted_q16, counted_q16 - m->counted_q16);
	if (modest != was_modest)
		__sync_fetch_and_add(&g->modest_q16, modest - was_modest);
	if (wants != wanted)
		__sync_fetch_and_add(&g->wanting, wants - wanted);
	m->counted_q16 = counted_q16;
	m->use = use;
}

/* Whether the connections use all of the window, but for parts of segments. */
static inline bool aggregate_is_full(const struct aggregate *g, u64 window_q16)
{
	return g->granted_q16 + 2 * Q16_ONE >= window_q16 - window_q16 / 16;
}

static inline void aggregate_leave(struct aggregate *g, struct aggregate_member *m)
{
	m->in_flight = 0;
	aggregate_count(g, m, 0, AGGREGATE_MODEST);
}

/* The part of the window that the other connections leave. */
static inline u64 aggregate_left_q16(const struct aggregate *g, const struct aggregate_member *m, u64 window_q16)
{
	u64 others = g->granted_q16 - m->counted_q16;

	return window_q16 > others ? window_q16 - others : 0;
}

/* An equal part of the window for connections that would use more; 0 for one that yields. */
static inline u64 aggregate_equal_q16(const struct aggregate *g, const struct aggregate_member *m, u64 window_q16, u32 use)
{
	u64 modest = g->modest_q16 - (m->use == AGGREGATE_MODEST ? m->counted_q16 : 0);
	u64 wanting = g->wanting - aggregate_wants(m->use) + 1;

	if (use == AGGREGATE_YIELDS)
		return 0;
	return (window_q16 > modest ? window_q16 - modest : 0) / at_least(wanting, 1);
}

/*
 * A connection's part at its ACK for `packets` segments. It grows by what is acknowledged, as in slow start, into what
 * the parts of others leave free. It has its equal part at once, up to an initial window. If others would use more, a
 * part above the equal one is reduced by half of what is acknowledged.
 */
VERIFIED_APART int aggregate_grant(struct aggregate *g, struct aggregate_member *m, u64 window_q16, u32 packets, u32 use)
{
	u64 equal, least, grown, left, acked = (u64)at_most(packets, LAW_PACKETS_MAX) << 16;
	bool others;

	if (!g || !m)
		return 0;
	others = aggregate_others_want(g, m);
	equal = aggregate_equal_q16(g, m, window_q16, use);
	left = aggregate_left_q16(g, m, window_q16);
	least = at_most(equal, LAW_INITIAL_WINDOW * Q16_ONE);
	grown = use == AGGREGATE_HOLDS_TOKEN ? left : use == AGGREGATE_YIELDS && others ? m->grant_q16 : m->grant_q16 + acked;
	m->grant_q16 = at_least(least, at_most(grown, left));
	if (m->grant_q16 > equal && others)
		m->grant_q16 = at_least(equal, m->grant_q16 - at_most(acked / 2, m->grant_q16));
	aggregate_count(g, m, use == AGGREGATE_MODEST ? at_most(m->grant_q16, (u64)m->in_flight << 16) : m->grant_q16, use);
	return 0;
}

/* A connection begins, or resumes after an idle time: with an initial window at most. */
static inline void aggregate_join(struct aggregate *g, struct aggregate_member *m, u64 window_q16)
{
	m->grant_q16 = 0;
	aggregate_grant(g, m, window_q16, 0, AGGREGATE_WANTS);
	g->burst += (m->grant_q16 + 49 * Q16_ONE / 100) >> 16;	/* nearest integer, half rounds down */
}

/* The flow's window was changed at once: the connection's part is scaled alike. */
static inline void aggregate_scale(struct aggregate *g, struct aggregate_member *m, u64 from_q16, u64 to_q16)
{
	m->grant_q16 = m->grant_q16 * at_least(to_q16 >> 8, 1) / at_least(from_q16 >> 8, 1);
	aggregate_count(g, m, at_most(m->counted_q16, m->grant_q16), m->use);
}

#endif
