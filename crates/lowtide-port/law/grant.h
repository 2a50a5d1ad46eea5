/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A receiver's window as a control law's actuator, without kernel access: the data that answer the window become the
 * ACKs of a law (law.h).
 *
 * Each ACK that leaves grants the sender an edge, up to which it may send. Data that echo that ACK's timestamp answer
 * the grant. And a byte beyond an edge was sent after the next grant left. Both are upper bounds of the RTT: the first
 * is exact to a tick of our clock, the second to the microsecond. So "acknowledged" reads "granted and answered". The
 * window is what has been granted and has not arrived.
 *
 * The law controls the queue on the forward path, from the sender to us. The sender's timestamps measure the delay of
 * that path (owd.h; to it that is the return path). Where they do not, the whole RTT counts.
 *
 * Egress writes the grants, ingress reads them. Each writes only its own part, as they may run at the same time.
 */
#ifndef LOWTIDE_GRANT_H
#define LOWTIDE_GRANT_H

#include "law.h"
#include "owd.h"

#define GRANTS 128		/* grants under way */
#define GRANTS_PER_ROUND_TRIP 64
#define GRANT_STEPS 32		/* grants looked at per packet, at most */
#define GRANT_REORDERED 3	/* segments that may overtake one (RFC 5681, section 3.2) */
/* drift of clocks, 30 ppm, unless more is seen; so a queue of 30 ms that stands for 15 minutes is forgotten */
#define GRANT_DRIFT_SHIFT 15
#define GRANT_BACK_MOST 16	/* base RTTs: the longest wait of ACKs that counts */
#define GRANT_WAIT_ROUNDS 2	/* RTTs for which ACKs wait before that counts */
/* of the base RTT: if the wait of ACKs falls by more, the data that are released cause a queue */
#define GRANT_FREED_PART 8
#define GRANT_HELD_BACK 4	/* segments that Linux may hold back to send more at once (tcp_tso_should_defer()) */
#define GRANT_LEAST_WINDOW 1152	/* bytes: Linux offers no less */

/* A segment that arrives. */
struct segment {
	u64 now_us;
	u32 seq;
	u32 payload;		/* bytes */
	u32 size;		/* payload bytes of each packet that it was put together from */
	u32 pushed;		/* PSH: the sender had no more to send then, so it may be shorter than a full segment */
	u32 tsval, tsecr;
	u32 marked;		/* with CE */
};

struct grant {
	u64 at_us;		/* when its ACK left */
	u64 next_us;		/* when the next grant moved the edge; 0: there is none yet */
	u32 tsval;
	u32 edge;		/* sequence number */
	u32 received;		/* bytes received when it left */
	u32 sent_us;		/* sending time of the latest of these, by the sender's clock (owd.h) */
};

struct grants {
	/* written by egress */
	u32 made;		/* grants so far */
	u32 edge;		/* the newest */
	struct grant ring[GRANTS];
	/* written by ingress */
	u32 answered;		/* the grant whose timestamp came back last */
	u32 received;		/* bytes */
	u32 next_seq;
	u32 begun;
	u32 mss;		/* payload bytes of a full segment */
	u32 part;		/* bytes received that are no whole segment yet */
	u32 srtt_us;
	u32 missing;		/* segments that have been overtaken */
	u32 overtaken;		/* segments that have overtaken these */
	u32 blind;		/* a packet was not seen */
	u32 back_us;		/* how long ACKs wait on the return path */
	u32 waits_us;		/* the least wait since `waits_since_us` */
	u64 waits_since_us;
	u32 freed_from_us;	/* how long ACKs waited before they waited less */
	u32 freed_us;		/* how much less they wait now */
	u64 freed_until_us;	/* when the data that this has released have arrived */
	u64 limited_us;		/* when data last came near the edge; 0: never */
	u64 used_up_us;		/* when data last came up to the edge; 0: never */
	s64 offset_us;		/* our clock less the sender's, with an empty forward path */
	u64 rose_us;		/* when that last rose for drift */
	u32 clocked;		/* it is known */
	u32 look_rtt_us;	/* the RTT when the sender's clock was first looked at; 0: not known */
	struct owd owd;
};

/* An ACK leaves with this timestamp and edge. */
static inline void grant_leaves(struct grants *g, u64 now_us, u32 tsval, u32 edge)
{
	struct grant *last = &g->ring[(g->made - 1) & (GRANTS - 1)], *next = &g->ring[g->made & (GRANTS - 1)];
	bool moves = !g->made || (s32)(edge - g->edge) > 0;

	if (moves && g->made && !last->next_us)
		last->next_us = now_us;
	if (moves)
		g->edge = edge;
	if (g->made && (now_us - last->at_us < g->srtt_us / GRANTS_PER_ROUND_TRIP || (tsval == last->tsval && !moves)))
		return;
	next->at_us = now_us;
	next->next_us = 0;
	next->tsval = tsval;
	next->edge = g->edge;
	next->received = g->received;
	next->sent_us = g->owd.clock_us;
	__sync_fetch_and_add(&g->made, 1);	/* after all that it covers is written */
}

/*
 * The latest grant that these data can answer. `at_us`: when the first ACK left that they can answer; 0: not known. Not
 * every ACK is in the ring. Data that echo another one were sent later than the latest in the ring before that.
 */
static inline const struct grant *grant_answered_by(struct grants *g, const struct segment *s, u64 *at_us)
{
	u32 made = g->made, it = g->answered, end = s->seq + s->payload, looked;
	const struct grant *grant;

	if (made - it >= GRANTS)	/* older ones are overwritten, and one is being written */
		it = made - (GRANTS - 1);
	g->answered = it;
	for (looked = 0; looked < GRANT_STEPS && it + 1 != made; looked++) {
		grant = &g->ring[++it & (GRANTS - 1)];
		if ((s32)(grant->tsval - s->tsecr) > 0)
			break;
		if (grant->tsval != g->ring[g->answered & (GRANTS - 1)].tsval)	/* the first of those within one tick */
			g->answered = it;
	}
	it = g->answered;
	grant = &g->ring[it & (GRANTS - 1)];
	*at_us = looked < GRANT_STEPS && (s32)(s->tsecr - grant->tsval) >= 0 ? grant->at_us : 0;
	for (u32 i = 0; i < GRANT_STEPS && *at_us && it + 1 != made; i++, it++) {
		grant = &g->ring[it & (GRANTS - 1)];
		if ((s32)(end - grant->edge) <= 0 || !grant->next_us)
			break;
		*at_us = at_least(*at_us, grant->next_us);
	}
	return &g->ring[it & (GRANTS - 1)];
}

/*
 * Segments that are lost before this one: missing, and overtaken by more than GRANT_REORDERED. A retransmission comes
 * later.
 */
static inline u32 grant_lost(struct grants *g, const struct segment *s, u32 segments)
{
	s32 ahead = s->seq - g->next_seq;
	u32 lost = 0;

	if (g->blind)
		ahead = 0;
	g->blind = 0;
	if (ahead < 0)
		g->missing -= at_most(segments, g->missing);
	else if (ahead > 0)
		g->missing += at_least(ahead / g->mss, 1);
	g->overtaken = g->missing ? g->overtaken + segments : 0;
	if (g->overtaken > GRANT_REORDERED) {
		lost = g->missing;
		g->missing = g->overtaken = 0;
	}
	return lost;
}

static inline s64 grant_later(s64 a, s64 b)
{
	return a > b ? a : b;
}

/* Lower bound of the offset, by what was seen when the sender's clock was first looked at. */
static inline s64 grant_look_offset_us(const struct grants *g)
{
	const struct owd *o = &g->owd;
	s64 clock_us = o->clock_us - (s64)(s32)(o->tsval - o->look_tsval) * o->tick_us;
	u32 least_us = at_most(o->rtt_min_us, g->look_rtt_us);

	return (s64)o->look_us - clock_us - (g->look_rtt_us - least_us) - o->tick_us;
}

/*
 * Updates the offset of our clock from the sender's, with an empty forward path. At first the return path is taken to
 * be empty. The offset falls with each packet that comes sooner. It rises if the RTT leaves no room for so long a
 * forward delay, and with drift. If a clock has stepped owd.h starts over.
 */
static inline void grant_note_offset(struct grants *g, u64 now_us, u32 rtt_us)
{
	const struct owd *o = &g->owd;
	s64 offset = (s64)now_us - o->clock_us, queue = (s64)rtt_us - o->rtt_min_us;

	if (!g->clocked) {
		g->offset_us = offset - queue;
		/* a queue on the return path may have begun since */
		if (g->look_rtt_us)
			g->offset_us = grant_later(g->offset_us, grant_look_offset_us(g));
		g->rose_us = now_us;
		g->clocked = 1;
	}
	if (rtt_us && offset - queue - o->tick_us > g->offset_us)
		g->offset_us = offset - queue - o->tick_us;
	if (now_us - g->rose_us >= 1 << GRANT_DRIFT_SHIFT) {
		g->offset_us += (now_us - g->rose_us) >> GRANT_DRIFT_SHIFT;
		g->rose_us = now_us;
	}
	if (offset < g->offset_us)
		g->offset_us = offset;
}

/*
 * The delay of the forward path, as an RTT with an empty return path. A sender that had nothing to send makes the RTT
 * longer, but not this.
 */
static inline u32 grant_delay_us(struct grants *g, const struct segment *s, u32 rtt_us)
{
	struct owd *o = &g->owd;
	u64 looked_us = o->look_us, heard_us = o->heard_us, over;

	IN_PLACE owd_delay(o, true, s->tsval, s->now_us, rtt_us);
	/* owd.h measures the sender's clock anew */
	if (o->look_us != looked_us)
		g->look_rtt_us = rtt_us;
	if (o->use != OWD_ONE_WAY || o->look_us != looked_us || s->now_us - heard_us > OWD_GAP_US)
		g->clocked = 0;
	if (o->use != OWD_ONE_WAY || (!rtt_us && !g->clocked))
		return rtt_us;
	grant_note_offset(g, s->now_us, rtt_us);
	over = o->rtt_min_us + ((s64)s->now_us - o->clock_us - g->offset_us);
	return rtt_us ? at_most(rtt_us, over) : over;
}

/*
 * Updates how long ACKs wait: it falls at once, and rises to the least wait of some time. An RTT has the stalls of the
 * sender, too, and all data of one window may show the same stall. The data after these do not.
 *
 * If the wait falls, data granted for the sake of that wait arrive at once. Until they have, they are a self-induced
 * queue on the forward path.
 */
static inline void grant_note_back(struct grants *g, u64 now_us, u32 loop_us, u32 rtt_us)
{
	u32 waited = loop_us > rtt_us ? loop_us - rtt_us : 0;

	if (now_us >= g->freed_until_us)
		g->freed_from_us = g->freed_us = 0;
	g->waits_us = at_most(g->waits_us, waited);
	if (waited < g->back_us) {
		if (g->back_us - waited > g->owd.rtt_min_us / GRANT_FREED_PART) {
			g->freed_from_us = at_least(g->freed_from_us, g->back_us);
			g->freed_until_us = now_us + loop_us + g->back_us;
		}
		g->back_us = waited;
	} else if (now_us - g->waits_since_us > (u64)GRANT_WAIT_ROUNDS * loop_us) {
		g->back_us = g->waits_us;
		g->waits_us = waited;
		g->waits_since_us = now_us;
	}
	g->freed_us = g->freed_from_us > g->back_us ? g->freed_from_us - g->back_us : 0;
}

/* Stretches a window for a path with an empty return path, so that it carries the same if ACKs wait. */
static inline u64 grant_stretched(const struct grants *g, u64 window)
{
	u32 empty_us = g->owd.rtt_min_us;

	return empty_us ? window + window * at_most(g->back_us, GRANT_BACK_MOST * empty_us) / empty_us : window;
}

/* The reverse, for what is delivered per RTT. */
static inline u32 grant_without_back(const struct grants *g, u32 value)
{
	u64 empty_us = g->owd.rtt_min_us;

	return empty_us ? value * empty_us / (empty_us + at_most(g->back_us, GRANT_BACK_MOST * empty_us)) : value;
}

/*
 * The longer of the times to send and to receive what has come since a grant left: after a scheduling stall a host
 * takes in much at once (draft-ietf-ccwg-bbr, section 4.1.2.3).
 */
static inline u32 grant_interval_us(const struct grants *g, const struct grant *grant, u32 loop_us)
{
	u32 sending_us = (u32)g->owd.clock_us - grant->sent_us;

	return g->clocked && loop_us && sending_us < OWD_GAP_US ? at_least(loop_us, sending_us) : loop_us;
}

/*
 * Data arrive. Fills in `a` for the law. False: the data answer no grant that is known, so the law gets no ACK. The
 * times in `a` are those of a flow of connections (aggregate.h). `loop_us` is the whole RTT, `a->rtt_us` the part of it
 * that the forward path explains.
 */
static NOT_INLINE bool grant_arrives(struct grants *g, const struct segment *s, struct law_ack *a, u32 *loop_us)
{
	u32 end = s->seq + s->payload, segments, window;
	const struct grant *grant;
	s32 unused;
	bool whole;
	u64 at_us;

	/*
	 * A pushed segment may be short. If it set `mss`, the RTTs of short segments would count, which take less time
	 * on the link.
	 */
	if (!s->pushed || s->size < s->payload)
		g->mss = at_least(g->mss, s->size);
	if (!g->mss)
		return false;
	if (!g->begun) {
		g->next_seq = s->seq;
		g->begun = 1;
	}
	g->part += s->payload;
	segments = g->part / g->mss;
	g->part -= segments * g->mss;
	a->lost = grant_lost(g, s, segments);
	if ((s32)(end - g->next_seq) > 0)
		g->next_seq = end;
	g->received += s->payload;
	a->now_us = s->now_us;
	a->packets = segments;
	a->bytes = segments * g->mss;
	a->marked = s->marked ? segments : 0;
	a->mss = g->mss;
	if (!g->made)
		return false;
	grant = grant_answered_by(g, s, &at_us);
	*loop_us = at_us ? at_least(s->now_us - at_us, 1) : 0;
	/* a short segment may have waited for the sender's persist timer, and takes less time on the link */
	whole = s->payload >= g->mss;
	if (*loop_us && whole)
		g->srtt_us = g->srtt_us ? g->srtt_us - g->srtt_us / 8 + *loop_us / 8 : *loop_us;
	a->rtt_us = grant_delay_us(g, s, *loop_us);
	if (!whole)
		a->rtt_us = 0;
	else if (*loop_us)
		grant_note_back(g, s->now_us, *loop_us, a->rtt_us);
	if (a->rtt_us && s->now_us < g->freed_until_us)
		a->rtt_us -= at_most(g->freed_us, a->rtt_us - at_most(g->owd.rtt_min_us, a->rtt_us));
	a->delay_us = a->rtt_us;
	a->has_delay = a->rtt_us != 0;
	a->srtt_us = g->srtt_us;
	window = g->edge - end;
	unused = grant->edge - end;
	if (unused <= (s32)at_least(2 * g->mss, at_most(window, 1 << 30) / 8))
		g->limited_us = s->now_us;
	if (unused <= (s32)at_least(GRANT_HELD_BACK * g->mss, at_most(window, 1 << 30) / GRANTS_PER_ROUND_TRIP))
		g->used_up_us = s->now_us;
	a->window_limited = g->limited_us && s->now_us - g->limited_us <= g->srtt_us;
	a->app_limited = a->rate_app_limited = !a->window_limited;
	a->in_flight = at_most(window, 1 << 30) / g->mss + segments;
	a->rate_interval_us = grant_without_back(g, grant_interval_us(g, grant, *loop_us));
	a->rate_delivered = grant_without_back(g, g->received - grant->received) / g->mss;
	return true;
}

/* What the delays in `a` are exact to: a tick of the sender's clock where it measures them. */
static inline u32 grant_tick_us(const struct grants *g)
{
	return g->owd.use == OWD_ONE_WAY ? g->owd.tick_us : 0;
}

/* Whether the sender has used all of its window in the latest RTT, but for what one ACK grants. */
static inline bool grant_used_up(const struct grants *g, u64 now_us)
{
	return g->used_up_us && now_us - g->used_up_us <= g->srtt_us;
}

/* A packet passed while another processor was at the flow: segments that are missing then are not lost. */
static inline void grant_unseen(struct grants *g)
{
	g->blind = 1;
}

/*
 * A connection's part of a window in whole segments, as senders send no less. Parts are rounded up as long as they fit
 * into the window with the `others`. If all were rounded down a window for many connections would be used in part, and
 * equal parts would all grow by a segment at once.
 */
static inline u64 grant_whole(u64 part_q16, u64 window_q16, u64 others)
{
	u64 whole = part_q16 >> 16, window = (window_q16 + Q16_ONE / 2) >> 16;

	return whole + ((part_q16 & (Q16_ONE - 1)) && whole + others < window);
}

/*
 * The clamp of the window for the ACK at hand, bytes: `want`, but never below `held`, what has been granted and has not
 * arrived. The edge moves by `burst` bytes at once, so that these leave together: to the nearest segment, as `held` may
 * be more than whole segments by what a window is rounded up. It moves sooner if less than two segments are to come,
 * since the ACK of a single one would be delayed.
 */
static inline u32 grant_clamp(u32 want, u32 held, u32 burst, u32 mss)
{
	if (want <= held || (want - held + mss / 2 < burst && held >= 2 * mss))
		return at_least(held, GRANT_LEAST_WINDOW);
	return at_least(want, GRANT_LEAST_WINDOW);
}

#endif
