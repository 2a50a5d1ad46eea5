/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * A law at the receiver, without kernel access: what it makes of data that answer grants (grant.h), and the window that
 * each connection offers for it. Tide is the usual law; download_law.h has the others. The BPF programs (bpf/download.h
 * of lowtide-kernel) and the simulator's receiver call the same functions:
 *
 *   download_arrives  data have arrived
 *   download_clamp    the greatest window of the ACK that is about to leave
 *   download_leaves   an ACK has left
 *   download_leave    the connection ends
 *   download_inspect  values for a trace
 */
#ifndef LOWTIDE_LAW_DOWNLOAD_H
#define LOWTIDE_LAW_DOWNLOAD_H

#include "download_law.h"
#include "flow.h"
#include "grant.h"
#include "network.h"

#define DOWNLOAD_WINDOW_MOST (1 << 30)	/* bytes: no limit by Lowtide */
#define DOWNLOAD_IDLE_US 1000000	/* idle time, or four RTTs, after which cross traffic may have begun */
/* bytes of a flow that arrive without probes first, as in slow start, unless cross traffic is known or data are lost */
#define DOWNLOAD_SHORT (256 << 10)
#define DOWNLOAD_PARTED_Q16 (2 * Q16_ONE)	/* least part of the window that keeps up a flow of ACKs */

/* What the connections of a transfer share over one path: to the network they are one flow. */
struct lt_download_flow {
	struct lt_flow flow;	/* with Tide's state */
	struct download_law law;	/* that of another law */
	u64 window_q16;		/* of whichever law */
	u64 whole;		/* segments in the windows of its connections */
	u64 started;		/* bytes that came before Tide (re)started */
	u64 number;		/* enum law_number */
};

/* In BPF a constant: bpf/download.h of lowtide-kernel. */
#ifndef DOWNLOAD_LAW_OF_FLOW
#define DOWNLOAD_LAW_OF_FLOW(f) ((f)->number)
#endif

/* A connection. */
struct lt_download {
	struct grants grants;
	struct law_ack ack;
	struct lt_path path;
	struct aggregate_member part;
	u64 number;		/* among those that share a flow, from 1; 0: it has a flow of its own */
	u64 wanted_ns;		/* when its part of the window last limited it */
	u64 arrived_ns;		/* when data last arrived; 0: never */
	u64 due_us;		/* when the next probe is due */
	u32 loop_us;		/* RTT of the latest answer to a grant; 0: not known */
	u32 begun;
	u32 stamped;		/* 1: data had timestamps, and a flow; 2: it has none */
	u32 waits;		/* for the token */
	u32 probes;		/* it probes, with `pause_us` between probes */
	u32 pause_us;
	u32 want;		/* window, bytes */
	u32 burst;		/* step of the edge, bytes */
	u32 clamped;		/* its window is limited by Lowtide */
	u32 granted;		/* window in the latest ACK, bytes */
	u32 whole;		/* segments of the flow's window that it may have in flight */
	u32 delay_us;		/* delay of the forward path, as an RTT */
};

static inline bool download_by_tide(const struct lt_download_flow *f)
{
	return DOWNLOAD_LAW_OF_FLOW(f) == LAW_NUMBER_tide;
}

static inline u32 download_bytes(const struct lt_download *d, u64 segments_q16)
{
	return at_most((at_most(segments_q16, 1ULL << 36) * d->grants.mss) >> 16, DOWNLOAD_WINDOW_MOST);
}

/*
 * The time between two probes. The law has a pace for probes, but nothing is paced here: so the pause is the time of a
 * probe at that pace. If it is little more than an RTT probes follow each other, since the pieces of segments that come
 * meanwhile take longer.
 */
static inline u32 download_pause_us(const struct lt_flow *f, const void *p, u32 burst_bytes)
{
	u64 pace = tide_pace(&f->tide, p), pause_us = pace ? (u64)burst_bytes * 1000000 / pace : 0;

	return pause_us > 2 * aggregate_srtt_us(&f->all) ? pause_us : 0;
}

/*
 * How the connection uses its part of the window. It needs the token if one connection is enough, or if the parts of
 * all would be too small for a flow of ACKs.
 */
static inline u32 download_use(struct lt_download_flow *flow, struct lt_download *d, bool limited, u64 now_ns)
{
	struct lt_flow *f = &flow->flow;
	u64 wanting = at_least(f->all.wanting, 1);
	bool wants, probes = flow_probes(f), token, over;

	if (limited)
		d->wanted_ns = now_ns;
	wants = limited || now_ns - d->wanted_ns < flow_unused_ns(f);
	token = d->number && (probes || flow->window_q16 < wanting * DOWNLOAD_PARTED_Q16);
	d->waits = 0;
	if (!wants)
		__sync_val_compare_and_swap(&f->token_holder, d->number, 0);
	if (!wants)
		return AGGREGATE_MODEST;
	if (!token)
		return AGGREGATE_WANTS;
	over = !probes && now_ns - f->token_since_ns > flow_token_ns(f);
	if (f->token_holder != d->number) {
		d->waits = f->token_holder && now_ns < f->token_until_ns && !over;
		if (d->waits)
			return AGGREGATE_YIELDS;
		f->token_holder = d->number;
		f->token_since_ns = now_ns;
	}
	f->token_until_ns = now_ns + flow_unused_ns(f) + FLOW_SILENCE_NS;
	return AGGREGATE_WANTS;
}

/* The connection's window takes this many segments of the flow's. */
static inline void download_take(struct lt_download_flow *f, struct lt_download *d, u32 whole)
{
	__sync_fetch_and_add(&f->whole, (u64)whole - d->whole);
	d->whole = whole;
}

/* The connection's part of the flow's window, segments. */
static inline u32 download_part(struct lt_download_flow *f, struct lt_download *d)
{
	u64 part = grant_stretched(&d->grants, d->part.grant_q16), window = grant_stretched(&d->grants, f->window_q16);
	u64 whole = at_least(grant_whole(part, window, f->whole - d->whole), 2);

	download_take(f, d, d->part.use == AGGREGATE_MODEST ? at_most(whole, d->part.in_flight) : whole);
	return whole;
}

/* Sets the connection's window from now on. */
static inline void download_decide(struct lt_download_flow *f, struct lt_download *d, const void *p)
{
	u32 burst = download_by_tide(f) ? tide_least_burst(&f->flow.tide) : 1;

	d->probes = flow_probes(&f->flow);
	d->burst = download_bytes(d, (u64)burst << 16);
	if (d->probes || d->waits)
		download_take(f, d, 0);
	if (d->probes) {
		d->want = d->burst;
		d->pause_us = download_pause_us(&f->flow, p, d->burst);
	} else {
		d->want = download_bytes(d, (u64)download_part(f, d) << 16);
		d->pause_us = 0;
	}
}

/* The BDP of the link that Tide knows; 0: none. */
static inline u64 download_bdp_q16(const struct lt_download_flow *f)
{
	return download_by_tide(f) ? tide_link_bdp_q16(&f->flow.tide.path) : 0;
}

/*
 * Whether the connection uses its window. Beyond the BDP the window adds to the queue, so there all of it has to be in
 * use: a sender with BBR that keeps to the BDP for a while would fill the rest at once.
 */
static inline bool download_uses_window(const struct lt_download_flow *f, const struct lt_download *d)
{
	u64 bdp = download_bdp_q16(f);

	return !bdp || f->window_q16 <= bdp || grant_used_up(&d->grants, d->ack.now_us);
}

/*
 * A window that senders do not use must not be left to them until cross traffic has the link. It is reduced to a
 * quarter more than they use (RFC 7661 does this for a sender), and beyond the BDP soon to what they use: the rest
 * would become a queue that the law cannot reduce.
 */
static inline u64 download_used_q16(const struct lt_download_flow *f, const struct lt_download *d, bool full)
{
	u64 used = f->flow.all.granted_q16, most = f->window_q16;

	if (!full)
		most = at_most(most, used + used / 4 + LAW_INITIAL_WINDOW * Q16_ONE);
	if (download_uses_window(f, d))
		return most;
	used = used - d->part.counted_q16 + ((u64)(d->part.in_flight + GRANT_HELD_BACK) << 16);
	return at_most(most, at_least(download_bdp_q16(f), used));
}

static inline struct law_window download_window(const struct lt_download_flow *f, u32 now_us)
{
	struct law_window w = { .cwnd_q16 = f->window_q16, .least_q16 = WINDOW_MIN_Q16, .ssthresh_q16 = LAW_NO_THRESHOLD_Q16 };

	w.nxt = now_us;
	return w;
}

/* Tide acts on what has arrived. */
static inline void download_tide_hears(struct lt_download_flow *f, struct lt_download *d, const void *p, u64 weight_q16, bool full)
{
	struct law_ack *a = &d->ack;
	struct law_weight weight = download_weight(weight_q16);
	struct law_window w = download_window(f, a->now_us);
	struct tide *t = &f->flow.tide;

	if (!t->listens)
		w.cwnd_q16 = download_used_q16(f, d, full);
	a->cwnd_q16 = w.cwnd_q16;
	t->path.unspaced = 1;
	t->path.tick = grant_tick_us(&d->grants) << 8;
	tide_sample(t, p, a);
	if (a->lost && aggregate_loses_anew(&f->flow.all, a->now_us)) {
		f->flow.all.reduced_us = a->now_us;
		tide_reduce(t, p, &weight, &w, LAW_LOSS, 0);
	}
	IN_PLACE tide_ack(t, p, &weight, &w, a);
	f->window_q16 = t->shown_q16;
}

/* Another law does. */
static inline void download_other_hears(struct lt_download_flow *f, struct lt_download *d, const void *p, u64 weight_q16, bool full)
{
	struct law_ack *a = &d->ack;
	struct download_law *l = &f->law;

	l->window.cwnd_q16 = download_used_q16(f, d, full);
	a->cwnd_q16 = l->window.cwnd_q16;
	a->weight_q16 = weight_q16;
	/* LEDBAT's window grows by what is in flight, which is at least what connections may have in flight */
	a->in_flight = at_least(a->in_flight, f->flow.all.granted_q16 >> 16);
	download_law_hears(DOWNLOAD_LAW_OF_FLOW(f), l, p, weight_q16, a);
	f->window_q16 = l->window.cwnd_q16;
}

/* The law acts on what has arrived. `full`: its window is used. */
static NOT_INLINE int download_hears(struct lt_download_flow *f, struct lt_download *d, const void *p, u64 weight_q16, bool full)
{
	struct law_ack *a = &d->ack;
	u32 delay_us = a->rtt_us;

	if (!f || !d || !p)
		return 0;
	/* rounds last until a window has an effect, so they use the whole RTT */
	a->rtt_us = d->loop_us;
	aggregate_ack(&f->flow.all, a, d->number);
	a->rtt_us = delay_us;
	if (download_by_tide(f))
		download_tide_hears(f, d, p, weight_q16, full);
	else
		download_other_hears(f, d, p, weight_q16, full);
	return 0;
}

/* The first connection of a path. */
static inline void download_starts(struct lt_download_flow *f, struct lt_download *d, const void *p)
{
	u64 now_us = d->ack.now_us;

	if (download_by_tide(f)) {
		tide_starts(&f->flow, p, now_us, d->grants.srtt_us);
		f->window_q16 = f->flow.tide.shown_q16;
		return;
	}
	aggregate_begin(&f->flow.all, now_us, d->grants.srtt_us);
	f->window_q16 = LAW_INITIAL_WINDOW * Q16_ONE;
	f->law.window = download_window(f, now_us);
	f->flow.begun = 1;
}

/* The path was idle for so long. */
static inline void download_restarts(struct lt_download_flow *f, u64 now_us, u64 idle_us)
{
	struct law_window w;

	if (!download_by_tide(f)) {
		download_law_restarts(DOWNLOAD_LAW_OF_FLOW(f), &f->law, now_us, idle_us);
		f->window_q16 = f->law.window.cwnd_q16;
		return;
	}
	w = download_window(f, now_us);
	w.cwnd_q16 = at_most(w.cwnd_q16, LAW_INITIAL_WINDOW * Q16_ONE);
	tide_restart(&f->flow.tide, &w, now_us, idle_us);
	f->window_q16 = f->flow.tide.shown_q16;
	f->started = f->flow.all.delivered;
}

/* The flow's part in data that answer a grant. */
static NOT_INLINE int download_flow_ack(struct lt_download_flow *f, struct lt_download *d, const void *p, u64 weight_q16, u64 now_ns)
{
	struct aggregate *all = &f->flow.all;
	struct law_ack *a = &d->ack;
	bool limited, full, uses;
	u64 idle_us;
	u32 use;

	if (!f || !d || !p)
		return 0;
	if (!f->flow.begun)
		download_starts(f, d, p);
	idle_us = a->now_us - all->acked_us;
	if (!flow_probes(&f->flow) && idle_us > at_least(4 * d->grants.srtt_us, DOWNLOAD_IDLE_US))
		download_restarts(f, a->now_us, idle_us);
	if (a->lost)	/* the link is full: a short download, too, waits for probes */
		f->started = all->delivered - DOWNLOAD_SHORT;
	uses = download_uses_window(f, d);
	limited = a->window_limited && uses;
	d->part.in_flight = a->rate_delivered;
	/* the stack has not opened the window as far as it may, in steps of `burst` */
	if (!d->probes && d->granted + at_least(2 * d->grants.mss, d->burst) < d->want)
		a->window_limited = 0;
	full = aggregate_is_full(all, f->window_q16);
	if (!uses || (!flow_probes(&f->flow) && !full))
		a->window_limited = 0;
	use = download_use(f, d, limited, now_ns);
	if (d->waits || (d->probes && !a->rtt_us)) {	/* parts of segments say nothing about the link */
		all->delivered += a->packets;
		if (d->waits)
			aggregate_leave(all, &d->part);
	} else {
		download_hears(f, d, p, weight_q16, full);
		if (flow_probes(&f->flow)) {
			d->part.grant_q16 = f->window_q16;
			aggregate_count(all, &d->part, 0, use);
		} else {
			aggregate_grant(all, &d->part, f->window_q16, a->packets, use);
		}
	}
	download_decide(f, d, p);
	return 0;
}

/*
 * Data have arrived. While downloads are paused they say nothing about the link. `p`: the law's parameters. `random`:
 * uniform over 32 bits.
 */
static inline void download_arrives(struct lt_download_flow *f, struct lt_download *d, const struct segment *s, const void *p,
				    u64 weight_q16, bool paused, u32 random)
{
	if (!grant_arrives(&d->grants, s, &d->ack, &d->loop_us) || !d->ack.now_us || paused)
		return;
	d->delay_us = d->ack.rtt_us ? d->ack.rtt_us : d->delay_us;
	d->ack.random = random;
	download_flow_ack(f, d, p, weight_q16, s->now_us * NSEC_PER_USEC);
	d->begun = 1;
}

/*
 * The window of a download that may be short, bytes; 0: it is not. It does not wait for Tide's probes, which would take
 * longer than its data. Its window grows as in slow start, until data are lost: a sender with BBR would go on.
 * Connections that begin together have the first DOWNLOAD_SHORT bytes together: many times as much would stand in the
 * queue for seconds, and be taken for cross traffic.
 */
static inline u32 download_short(const struct lt_download *d, const struct lt_download_flow *f)
{
	u64 arrived = f->flow.all.delivered - f->started;
	u32 mss = d->grants.mss;
	const struct tide *t = &f->flow.tide;

	if (!download_by_tide(f) || arrived >= DOWNLOAD_SHORT || (t->listens && !t->listen.first))
		return 0;
	return at_most(LAW_INITIAL_WINDOW * mss + d->grants.received, DOWNLOAD_SHORT);
}

/*
 * The greatest window of the ACK that is about to leave, bytes. `held`: what has been granted and has not arrived.
 */
static inline u32 download_clamp(const struct lt_download_flow *f, const struct lt_download *d, u64 now_us, u32 held, bool paused)
{
	u32 mss = d->grants.mss, want = d->want, burst = d->burst, slow_start = download_short(d, f);

	if (d->waits || (d->probes && now_us < d->due_us))
		want = GRANT_LEAST_WINDOW;
	if (d->probes && held >= mss)	/* one probe at a time */
		want = held;
	if (slow_start > want) {	/* its edge moves with each ACK, as a sender's does */
		want = slow_start;
		burst = 0;
	}
	if (paused)
		want = GRANT_LEAST_WINDOW;
	return grant_clamp(want, held, burst, mss);
}

/* An ACK of what came before `nxt` has left, with this timestamp and edge. */
static inline void download_leaves(struct lt_download *d, u64 now_us, u32 tsval, u32 edge, u32 nxt)
{
	d->granted = edge - nxt;
	if (d->probes && (s32)(edge - d->grants.edge) >= (s32)d->grants.mss)	/* a probe is requested */
		d->due_us = now_us + d->pause_us;
	grant_leaves(&d->grants, now_us, tsval, edge);
}

/* The delay of an empty forward path, as an RTT; 0: not known. */
static inline u32 download_base_us(const struct lt_download_flow *f, const struct lt_download *d)
{
	return download_by_tide(f) ? tide_base(&f->flow.tide.path) >> 8 : d->grants.owd.rtt_min_us;
}

/* Whether the law keeps its window reduced: Tide has left the link, another law is in an episode. */
static inline bool download_is_reduced(const struct lt_download_flow *f)
{
	return download_by_tide(f) ? f->flow.tide.listens : f->law.reducing;
}

/* For a trace, as X_inspect of law.h. */
static NOT_INLINE u32 download_inspect(const struct lt_download_flow *f, const void *p, u64 weight_q16, s64 *values)
{
	struct law_weight weight = download_weight(weight_q16);

	if (!f || !p || !values)
		return 0;
	if (download_by_tide(f))
		return tide_inspect(&f->flow.tide, p, &weight, values);
	return download_law_inspect(DOWNLOAD_LAW_OF_FLOW(f), &f->law, p, &weight, values);
}

/* The connection ends. */
static inline void download_leave(struct lt_download_flow *f, struct lt_download *d)
{
	aggregate_leave(&f->flow.all, &d->part);
	download_take(f, d, 0);
	__sync_val_compare_and_swap(&f->flow.token_holder, d->number, 0);
}

#endif
