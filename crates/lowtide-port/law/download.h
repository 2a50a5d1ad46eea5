/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Tide at the receiver, without kernel access: what it makes of data that answer grants (grant.h), and the window that
 * each connection offers for it. The BPF programs (bpf/download.h of lowtide-kernel) and the simulator's receiver call
 * the same functions:
 *
 *   download_arrives  data have arrived
 *   download_clamp    the greatest window of the ACK that is about to leave
 *   download_leaves   an ACK has left
 *   download_leave    the connection ends
 */
#ifndef LOWTIDE_LAW_DOWNLOAD_H
#define LOWTIDE_LAW_DOWNLOAD_H

#include "flow.h"
#include "grant.h"
#include "network.h"

/* Checked by the verifier where it is called, but no part of its caller: that would be too long. */
#ifdef __bpf__
#define NOT_INLINE __attribute__((noinline))
#else
#define NOT_INLINE inline
#endif

#define DOWNLOAD_WINDOW_MOST (1 << 30)	/* bytes: no limit by Lowtide */
#define DOWNLOAD_IDLE_US 1000000	/* idle time, or four RTTs, after which cross traffic may have begun */
/* bytes of a flow that arrive without probes first, as in slow start, unless cross traffic is known or data are lost */
#define DOWNLOAD_SHORT (256 << 10)
#define DOWNLOAD_PARTED_Q16 (2 * Q16_ONE)	/* least part of the window that keeps up a flow of ACKs */

/* A connection. */
struct lt_download {
	struct grants grants;
	struct law_ack ack;
	struct lt_path path;
	struct aggregate_member part;
	u64 number;		/* among those that share a flow, from 1; 0: a flow by itself */
	u64 wanted_ns;		/* when its part of the window last limited it */
	u64 arrived_ns;		/* when data last arrived; 0: never */
	u64 due_us;		/* when the next probe is due */
	u32 loop_us;		/* RTT of the latest answer to a grant; 0: not known */
	u32 begun;
	u32 stamped;		/* 1: it has timestamps, 2: it has none */
	u32 waits;		/* for the token */
	u32 probes;		/* it probes, with `pause_us` between probes */
	u32 pause_us;
	u32 want;		/* window, bytes */
	u32 burst;		/* step of the edge, bytes */
	u32 clamped;		/* its window is limited by Lowtide */
	u32 granted;		/* window in the latest ACK, bytes */
	u32 whole;		/* segments of the flow's window that it may have in flight */
	u32 delay_us;		/* delay of the forward path, as an RTT */
	struct lt_flow flow;	/* its own */
};

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
static inline u32 download_use(struct lt_flow *f, struct lt_download *d, bool limited, u64 now_ns)
{
	u64 wanting = at_least(f->all.wanting, 1);
	bool wants, probes = flow_probes(f), token, over;

	if (limited)
		d->wanted_ns = now_ns;
	wants = limited || now_ns - d->wanted_ns < flow_unused_ns(f);
	token = d->number && (probes || f->tide.shown_q16 < wanting * DOWNLOAD_PARTED_Q16);
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
static inline void download_take(struct lt_flow *f, struct lt_download *d, u32 whole)
{
	__sync_fetch_and_add(&f->whole, (u64)whole - d->whole);
	d->whole = whole;
}

/* The connection's part of the flow's window, segments. */
static inline u32 download_part(struct lt_flow *f, struct lt_download *d)
{
	u64 part = grant_stretched(&d->grants, d->part.grant_q16), window = grant_stretched(&d->grants, f->tide.shown_q16);
	u64 whole = at_least(grant_whole(part, window, f->whole - d->whole), 2);

	download_take(f, d, d->part.use == AGGREGATE_MODEST ? at_most(whole, d->part.in_flight) : whole);
	return whole;
}

/* Sets the connection's window from now on. */
static inline void download_decide(struct lt_flow *f, struct lt_download *d, const void *p)
{
	u32 burst = tide_least_burst(&f->tide);

	d->probes = flow_probes(f);
	d->burst = download_bytes(d, (u64)burst << 16);
	if (d->probes || d->waits)
		download_take(f, d, 0);
	if (d->probes) {
		d->want = d->burst;
		d->pause_us = download_pause_us(f, p, d->burst);
	} else {
		d->want = download_bytes(d, (u64)download_part(f, d) << 16);
		d->pause_us = 0;
	}
}

static inline struct law_window download_window(const struct lt_flow *f, u32 now_us)
{
	struct law_window w = { .cwnd_q16 = f->tide.shown_q16, .least_q16 = WINDOW_MIN_Q16, .ssthresh_q16 = LAW_NO_THRESHOLD_Q16 };

	w.nxt = now_us;
	return w;
}

/*
 * A window that senders do not use must not be left to them until cross traffic has the link. It is reduced to a
 * quarter more than they use (RFC 7661 does this for a sender).
 */
static inline u64 download_used_q16(const struct lt_flow *f)
{
	u64 used = f->all.granted_q16;

	return at_most(f->tide.shown_q16, used + used / 4 + LAW_INITIAL_WINDOW * Q16_ONE);
}

/* The law acts on what has arrived. `full`: its window is used. */
static NOT_INLINE int download_hears(struct lt_flow *f, struct lt_download *d, const void *p, u64 weight_q16, bool full)
{
	struct law_weight weight = { .weight_q16 = weight_q16, .ratio_q16 = Q16_ONE, .kept_q16 = Q16_ONE };
	struct law_ack *a = &d->ack;
	struct law_window w;
	u32 delay_us = a->rtt_us;

	if (!f || !d || !p)
		return 0;
	/* rounds last until a window has an effect, so they use the whole RTT */
	a->rtt_us = d->loop_us;
	aggregate_ack(&f->all, a);
	a->rtt_us = delay_us;
	w = download_window(f, a->now_us);
	if (!full && !f->tide.listens)
		w.cwnd_q16 = download_used_q16(f);
	a->cwnd_q16 = w.cwnd_q16;
	f->tide.path.unspaced = 1;
	tide_sample(&f->tide, p, a);
	if (a->lost && aggregate_loses_anew(&f->all, a->now_us)) {
		f->all.reduced_us = a->now_us;
		tide_reduce(&f->tide, p, &weight, &w, LAW_LOSS, 0);
	}
	IN_PLACE tide_ack(&f->tide, p, &weight, &w, a);
	return 0;
}

/* The flow's part in data that answer a grant. */
static NOT_INLINE int download_flow_ack(struct lt_flow *f, struct lt_download *d, const void *p, u64 weight_q16, u64 now_ns)
{
	struct law_ack *a = &d->ack;
	struct law_window w;
	bool limited, full;
	u32 use;

	if (!f || !d || !p)
		return 0;
	if (!f->begun)
		tide_starts(f, p, a->now_us, d->grants.srtt_us);
	if (!flow_probes(f) && a->now_us - f->all.acked_us > at_least(4 * d->grants.srtt_us, DOWNLOAD_IDLE_US)) {
		w = download_window(f, a->now_us);
		w.cwnd_q16 = at_most(w.cwnd_q16, LAW_INITIAL_WINDOW * Q16_ONE);
		tide_restart(&f->tide, &w, a->now_us, a->now_us - f->all.acked_us);
		f->started = f->all.delivered;
	}
	if (a->lost)	/* the link is full: a short download, too, waits for probes */
		f->started = f->all.delivered - DOWNLOAD_SHORT;
	limited = a->window_limited;
	d->part.in_flight = a->rate_delivered;
	/* the stack has not opened the window as far as it may */
	if (!d->probes && d->granted + 2 * d->grants.mss < d->want)
		a->window_limited = 0;
	full = aggregate_is_full(&f->all, f->tide.shown_q16);
	if (!flow_probes(f) && !full)
		a->window_limited = 0;
	use = download_use(f, d, limited, now_ns);
	if (d->waits || (d->probes && !a->rtt_us)) {	/* parts of segments say nothing about the link */
		f->all.delivered += a->packets;
		if (d->waits)
			aggregate_leave(&f->all, &d->part);
	} else {
		download_hears(f, d, p, weight_q16, full);
		if (flow_probes(f)) {
			d->part.grant_q16 = f->tide.shown_q16;
			aggregate_count(&f->all, &d->part, 0, use);
		} else {
			aggregate_grant(&f->all, &d->part, f->tide.shown_q16, a->packets, use);
		}
	}
	download_decide(f, d, p);
	return 0;
}

/* Data have arrived. While downloads are paused they say nothing about the link. `p`: Tide's parameters. */
static inline void download_arrives(struct lt_flow *f, struct lt_download *d, const struct segment *s, const void *p, u64 weight_q16,
				    bool paused)
{
	if (!grant_arrives(&d->grants, s, &d->ack, &d->loop_us) || !d->ack.now_us || paused)
		return;
	d->delay_us = d->ack.rtt_us ? d->ack.rtt_us : d->delay_us;
	d->ack.random = 0;
	download_flow_ack(f, d, p, weight_q16, s->now_us * NSEC_PER_USEC);
	d->begun = 1;
}

/*
 * The window of a download that may be short, bytes; 0: it is not. It does not wait for probes, which would take longer
 * than its data. Its window grows as in slow start, until data are lost: a sender with BBR would go on. Connections
 * that begin together have the first DOWNLOAD_SHORT bytes together: many times as much would stand in the queue for
 * seconds, and be taken for cross traffic.
 */
static inline u32 download_short(const struct lt_download *d, const struct lt_flow *f)
{
	u32 arrived = f->all.delivered - (u32)f->started, mss = d->grants.mss;

	if ((u64)arrived * mss >= DOWNLOAD_SHORT || (f->tide.listens && !f->tide.listen.first))
		return 0;
	return at_most(LAW_INITIAL_WINDOW * mss + d->grants.received, DOWNLOAD_SHORT);
}

/*
 * The greatest window of the ACK that is about to leave, bytes. `held`: what has been granted and has not arrived.
 */
static inline u32 download_clamp(const struct lt_flow *f, const struct lt_download *d, u64 now_us, u32 held, bool paused)
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

/* The connection ends. */
static inline void download_leave(struct lt_flow *f, struct lt_download *d)
{
	aggregate_leave(&f->all, &d->part);
	download_take(f, d, 0);
	__sync_val_compare_and_swap(&f->token_holder, d->number, 0);
}

#endif
