/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Downloads are governed by the windows that sockets advertise, which every sender obeys, whatever its law is. Data
 * that answer a grant (law/grant.h) arrive at ingress: there the law is called, as at an ACK. Egress notes what an ACK
 * grants. And just before the stack chooses the window of an ACK, with the socket's lock held, it gets the greatest
 * window allowed.
 *
 * The connections of a transfer over one path are one flow here, too, but its law has another state than that of
 * uploads. A waiting connection gets a window of less than a segment: its sender then sends a piece of a segment
 * whenever its persist timer expires. The same holds in LISTEN between probes, since nothing is paced here.
 *
 * These programs stay with the group when the controller ends. Then they give all windows back, each at the next ACK.
 */
#ifndef LOWTIDE_DOWNLOAD_H
#define LOWTIDE_DOWNLOAD_H

#include "state.h"
#include "flows.h"
#include "law/grant.h"

#define DOWNLOAD_UNIT 256	/* bytes: the unit of windows */
/* bytes, the clamp at connect: windows up to twice as large have that unit */
#define DOWNLOAD_SCALED (8 << 20)
#define DOWNLOAD_WINDOW_MOST (1 << 30)	/* bytes: no limit by Lowtide */
#define DOWNLOAD_IDLE_US 1000000	/* idle time, or four RTTs, after which cross traffic may have begun */
/* bytes of a flow that arrive without probes first, as in slow start, unless cross traffic is known */
#define DOWNLOAD_SHORT (256 << 10)
#define DOWNLOAD_PARTED_Q16 (2 * Q16_ONE)	/* least part of the window that keeps up a flow of ACKs */
#define DOWNLOAD_ROOM 2		/* segments: tcp_grow_window() makes room for as many when one arrives */
#define TCP_FLAG_SYN 2
#define TCP_FLAG_PSH 8
#define TCP_FLAG_ACK 16
#define TCP_STAMPED 32		/* bytes of header that hold the timestamps, if they come first */

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

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lt_download);
} downloads SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FLOWS);
	__type(key, struct lt_path);
	__type(value, struct lt_flow);
} download_flows SEC(".maps");

u64 download_numbers = 0;

#define DOWNLOAD_PARAMETERS ((const void *)law_parameters)

static inline bool downloads_are_governed(u64 now_ns)
{
	return (steering.download_held || steering.download_weight_q16 < Q16_ONE) && controller_alive(now_ns);
}

static __always_inline struct lt_flow *download_flow(struct lt_download *d)
{
	struct lt_flow *f = d->number ? bpf_map_lookup_elem(&download_flows, &d->path) : NULL;

	return f ? f : &d->flow;
}

/*
 * Reads the headers of a packet as its receiver or sender needs them. False: it is no TCP segment. `stamped`: it has
 * timestamps.
 */
static __always_inline bool download_parse(struct __sk_buff *skb, struct segment *s, u32 *flags, bool *stamped)
{
	const u8 *ip = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *tcp;
	u32 to_payload;
	bool v4;

	if (ip + IPV4_HEADER > end)
		return false;
	v4 = ip[0] >> 4 == 4;
	if ((v4 ? ip[9] : ip[6]) != PROTO_TCP)
		return false;
	s->marked = ((v4 ? ip[1] : ip[1] >> 4) & 3) == 3;
	tcp = ip + (v4 ? (ip[0] & 15) * 4 : IPV6_HEADER);
	if (tcp + TCP_HEADER > end)
		return false;
	to_payload = tcp - ip + (tcp[12] >> 4) * 4;
	s->payload = skb->len > to_payload ? skb->len - to_payload : 0;
	s->size = skb->gso_size ? skb->gso_size : s->payload;
	s->seq = bpf_ntohl(*(u32 *)(tcp + 4));
	*flags = tcp[13];
	s->pushed = (tcp[13] & TCP_FLAG_PSH) != 0;
	*stamped = false;
	if (tcp + TCP_STAMPED > end || (tcp[12] >> 4) * 4 < TCP_STAMPED)
		return true;
	/* as all present senders order them: two no-operations, then the timestamps */
	if (tcp[20] != 1 || tcp[21] != 1 || tcp[22] != 8 || tcp[23] != 10)
		return true;
	s->tsval = bpf_ntohl(*(u32 *)(tcp + 24));
	s->tsecr = bpf_ntohl(*(u32 *)(tcp + 28));
	*stamped = true;
	return true;
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
static inline u32 download_pause_us(const struct lt_flow *f, u32 burst_bytes)
{
	u64 pace = tide_pace(&f->tide, DOWNLOAD_PARAMETERS), pause_us = pace ? (u64)burst_bytes * 1000000 / pace : 0;

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
static inline void download_decide(struct lt_flow *f, struct lt_download *d)
{
	u32 burst = tide_least_burst(&f->tide);

	d->probes = flow_probes(f);
	d->burst = download_bytes(d, (u64)burst << 16);
	if (d->probes || d->waits)
		download_take(f, d, 0);
	if (d->probes) {
		d->want = d->burst;
		d->pause_us = download_pause_us(f, d->burst);
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

static inline struct law_weight download_weight(void)
{
	struct law_weight weight = { .weight_q16 = steering.download_weight_q16, .ratio_q16 = Q16_ONE, .kept_q16 = Q16_ONE };

	return weight;
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
static __noinline int download_hears(struct lt_flow *f, struct lt_download *d, bool full)
{
	struct law_weight weight = download_weight();
	struct law_ack *a = &d->ack;
	struct law_window w;
	u32 delay_us = a->rtt_us;

	if (!f || !d)
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
	tide_sample(&f->tide, DOWNLOAD_PARAMETERS, a);
	if (a->lost && aggregate_loses_anew(&f->all, a->now_us)) {
		f->all.reduced_us = a->now_us;
		tide_reduce(&f->tide, DOWNLOAD_PARAMETERS, &weight, &w, LAW_LOSS, 0);
	}
	IN_PLACE tide_ack(&f->tide, DOWNLOAD_PARAMETERS, &weight, &w, a);
	return 0;
}

/* The flow's part in data that answer a grant. */
static __noinline int download_flow_ack(struct lt_flow *f, struct lt_download *d, u64 now_ns)
{
	struct law_ack *a = &d->ack;
	struct law_window w;
	bool limited, full;
	u32 use;

	if (!f || !d)
		return 0;
	if (!f->begun)
		tide_starts(f, DOWNLOAD_PARAMETERS, a->now_us, d->grants.srtt_us);
	if (!flow_probes(f) && a->now_us - f->all.acked_us > at_least(4 * d->grants.srtt_us, DOWNLOAD_IDLE_US)) {
		w = download_window(f, a->now_us);
		w.cwnd_q16 = at_most(w.cwnd_q16, LAW_INITIAL_WINDOW * Q16_ONE);
		tide_restart(&f->tide, &w, a->now_us, a->now_us - f->all.acked_us);
		f->started = f->all.delivered;
	}
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
		download_hears(f, d, full);
		if (flow_probes(f)) {
			d->part.grant_q16 = f->tide.shown_q16;
			aggregate_count(&f->all, &d->part, 0, use);
		} else {
			aggregate_grant(&f->all, &d->part, f->tide.shown_q16, a->packets, use);
		}
	}
	download_decide(f, d);
	return 0;
}

/* Data have arrived. */
static __always_inline void download_arrives(struct lt_download *d, const struct segment *s, u64 now_ns)
{
	struct lt_flow *f = download_flow(d);

	d->arrived_ns = now_ns;
	if (!flow_enter(f, now_ns)) {
		grant_unseen(&d->grants);
		return;
	}
	/* while downloads are held, what arrives says nothing about the link */
	if (grant_arrives(&d->grants, s, &d->ack, &d->loop_us) && d->ack.now_us && !steering.download_held) {
		d->delay_us = d->ack.rtt_us ? d->ack.rtt_us : d->delay_us;
		d->ack.random = 0;
		download_flow_ack(f, d, now_ns);
		d->begun = 1;
	}
	flow_exit(f);
}

SEC("cgroup_skb/ingress")
int lt_download_in(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct lt_download *d;
	struct segment s = {};
	u64 now_ns;
	bool stamped;
	u32 flags;

	if (!sk || !download_parse(skb, &s, &flags, &stamped) || !s.payload)
		return PASS;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return PASS;
	d = bpf_sk_storage_get(&downloads, sk, NULL, 0);
	if (!d)
		return PASS;
	if (!stamped) {
		if (!d->stamped) {
			d->stamped = 2;
			count(unstamped, 1);
		}
		return PASS;
	}
	d->stamped = 1;
	now_ns = bpf_ktime_get_ns();
	s.now_us = now_ns / NSEC_PER_USEC;
	download_arrives(d, &s, now_ns);
	return PASS;
}

SEC("cgroup_skb/egress")
int lt_download_out(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct lt_download *d;
	struct tcp_sock *tp;
	struct segment s = {};
	u32 flags, edge;
	bool stamped;
	u64 now_ns, now_us;

	if (!sk || !download_parse(skb, &s, &flags, &stamped) || !stamped || flags & TCP_FLAG_SYN || !(flags & TCP_FLAG_ACK))
		return PASS;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return PASS;
	d = bpf_sk_storage_get(&downloads, sk, NULL, 0);
	if (!d)
		return PASS;
	now_ns = bpf_ktime_get_ns();
	/* a connection that only sends needs no grant: other ACKs leave before an answer comes */
	if (s.payload && now_ns - d->arrived_ns > DOWNLOAD_IDLE_US * NSEC_PER_USEC)
		return PASS;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return PASS;
	now_us = now_ns / NSEC_PER_USEC;
	edge = tp->rcv_wup + tp->rcv_wnd;
	d->granted = edge - tp->rcv_nxt;
	if (d->probes && (s32)(edge - d->grants.edge) >= (s32)d->grants.mss)	/* a probe is requested */
		d->due_us = now_us + d->pause_us;
	grant_leaves(&d->grants, now_us, s.tsval, edge);
	return PASS;
}

static inline void download_set(struct bpf_sock_ops *ops, u32 bytes)
{
	int clamp = bytes;

	bpf_setsockopt(ops, IPPROTO_TCP, TCP_WINDOW_CLAMP, &clamp, sizeof(clamp));
}

/*
 * Sets the window that the stack offers. The stack raises a window only by what it has made room for when data arrived,
 * two segments at most, and below the clamp. Without room a greater window comes with the ACK after next, for which the
 * sender's persist timer may have to expire. The room also makes the stack acknowledge a single segment of a small
 * window at once, since it can double that. If the clamp rises the stack goes back to its last window, so a window that
 * shrinks gets no room.
 */
static inline void download_offer(struct bpf_sock_ops *ops, const struct tcp_sock *tp, u32 bytes, u32 mss)
{
	download_set(ops, bytes);
	if (tp->rcv_wnd < bytes + DOWNLOAD_UNIT)
		download_set(ops, bytes + DOWNLOAD_ROOM * mss);
}

/* A connection begins: from the next segment on the stack calls before it chooses a window. */
static inline void download_begins(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct lt_download *d = sk ? bpf_sk_storage_get(&downloads, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) : NULL;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	bool path;

	if (!d || !tp)
		return;
	IN_PLACE path = path_of(&tp->inet_conn.icsk_inet.sk.__sk_common, &d->path);
	if (path && flow_exists(&download_flows, &d->path))
		d->number = __sync_fetch_and_add(&download_numbers, 1) + 1;
	d->clamped = 1;	/* at connect */
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
}

/*
 * The window of a download that may be short, bytes; 0: it is not. It does not wait for probes, which would take longer
 * than its data. Its window grows as in slow start. Connections that begin together have the first DOWNLOAD_SHORT bytes
 * together: many times as much would stand in the queue for seconds, and be taken for cross traffic.
 */
static inline u32 download_short(const struct lt_download *d, const struct lt_flow *f)
{
	u32 arrived = f->all.delivered - (u32)f->started, mss = d->grants.mss;

	if ((u64)arrived * mss >= DOWNLOAD_SHORT || (f->tide.listens && !f->tide.listen.first))
		return 0;
	return at_most(LAW_INITIAL_WINDOW * mss + d->grants.received, DOWNLOAD_SHORT);
}

/* The stack is about to choose the window of a segment. */
static inline void download_clamp(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct lt_download *d = sk ? bpf_sk_storage_get(&downloads, sk, NULL, 0) : NULL;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	u64 now_ns = bpf_ktime_get_ns(), now_us = now_ns / NSEC_PER_USEC;
	u32 held, want, mss;

	if (!d || !tp)
		return;
	/* one without timestamps never begins, but a pause holds it, too */
	if (!downloads_are_governed(now_ns) || (!d->begun && !steering.download_held)) {
		if (d->clamped)
			download_set(ops, DOWNLOAD_WINDOW_MOST);
		d->clamped = 0;
		return;
	}
	held = tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt;
	held = held > DOWNLOAD_WINDOW_MOST ? 0 : held;
	mss = d->grants.mss;
	want = d->want;
	if (d->waits || (d->probes && now_us < d->due_us))
		want = GRANT_LEAST_WINDOW;
	if (d->probes && held >= mss)	/* one probe at a time */
		want = held;
	want = at_least(want, download_short(d, download_flow(d)));
	if (steering.download_held)
		want = GRANT_LEAST_WINDOW;
	d->clamped = 1;
	download_offer(ops, tp, grant_clamp(want, held, d->burst, mss), mss);
}

/*
 * Gives connections their full windows back when their controller is gone, even if they send no ACK. Another version's
 * programs may have made the record, so nothing of it is read.
 */
SEC("iter/tcp")
int lt_download_free(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;
	struct sock *sk = (struct sock *)tp;
	int most = DOWNLOAD_WINDOW_MOST;

	if (tp && bpf_sk_storage_get(&downloads, sk, NULL, 0))
		bpf_setsockopt(sk, IPPROTO_TCP, TCP_WINDOW_CLAMP, &most, sizeof(most));
	return 0;
}

/* Values for the controller. */
static inline void download_observed(struct sock *sk, struct lt_socket_record *record)
{
	struct lt_download *d = bpf_sk_storage_get(&downloads, sk, NULL, 0);
	struct lt_flow *f;

	if (!d)
		return;
	f = download_flow(d);
	record->arrived_ns = d->arrived_ns;
	record->window = d->granted;
	record->download_srtt_us = d->grants.srtt_us;
	record->download_delay_us = d->delay_us;
	record->download_base_us = tide_base(&f->tide.path) >> 8;
	record->download_mss = d->grants.mss;
	if (d->number && d->begun)
		record->download_path = d->path;
	if (d->begun)
		record->download_limited = bpf_ktime_get_ns() - d->wanted_ns < flow_unused_ns(f);
	if (d->begun)
		record->download_state = !d->clamped ? LT_DOWNLOAD_FREE : f->tide.listens ? LT_DOWNLOAD_YIELDS : LT_DOWNLOAD_FILLS;
}

static inline void download_ends(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct lt_download *d = sk ? bpf_sk_storage_get(&downloads, sk, NULL, 0) : NULL;
	struct lt_flow *f;

	if (!d || ops->args[1] != BPF_TCP_CLOSE || !d->number)
		return;
	f = bpf_map_lookup_elem(&download_flows, &d->path);
	if (!f)
		return;
	aggregate_leave(&f->all, &d->part);
	download_take(f, d, 0);
	__sync_val_compare_and_swap(&f->token_holder, d->number, 0);
}

SEC("sockops")
int lt_download_ops(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_RWND_INIT:
		if (downloads_are_governed(bpf_ktime_get_ns()))
			ops->reply = LAW_INITIAL_WINDOW;
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		if (downloads_are_governed(bpf_ktime_get_ns()))
			download_set(ops, DOWNLOAD_SCALED);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		download_begins(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		download_clamp(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		download_ends(ops);
		break;
	}
	return 1;
}

#endif
