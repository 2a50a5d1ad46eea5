/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Downloads are governed by the windows that sockets advertise, which every sender obeys, whatever its law is
 * (law/download.h). Data that answer a grant arrive at ingress: there the law is called, as at an ACK. Egress notes
 * what an ACK grants. And just before the stack chooses the window of an ACK, with the socket's lock held, it gets the
 * greatest window allowed.
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
#include "trace.h"
#define DOWNLOAD_LAW_OF_FLOW(f) setup.download_law
#include "law/download.h"

#define DOWNLOAD_UNIT 256	/* bytes: the unit of windows */
/* bytes, the clamp at connect: windows up to twice as large have that unit */
#define DOWNLOAD_SCALED (8 << 20)
#define DOWNLOAD_ROOM 2		/* segments: tcp_grow_window() makes room for as many when one arrives */
#define TCP_FLAG_SYN 2
#define TCP_FLAG_PSH 8
#define TCP_FLAG_ACK 16
#define TCP_STAMPED 32		/* bytes of header that hold the timestamps, if they come first */

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
	__type(value, struct lt_download_flow);
} download_flows SEC(".maps");

/* Of connections that share none. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lt_download_flow);
} download_own_flows SEC(".maps");

_Static_assert(sizeof(struct lt_download) < SK_STORAGE_MOST, "a connection's record");
_Static_assert(sizeof(struct lt_download_flow) < SK_STORAGE_MOST, "a connection's own flow");

/* A connection during a trace. */
struct download_traced {
	struct traced round;
	u64 round_end_us;
	u64 reduced;		/* the law had its window reduced */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct download_traced);
} downloads_traced SEC(".maps");

u64 download_numbers = 0;

static inline bool downloads_are_governed(u64 now_ns)
{
	return (steering.download_held || steering.download_weight_q16 < Q16_ONE) && controller_alive(now_ns);
}

static const u64 no_download_yet[sizeof(struct lt_download_flow) / sizeof(u64)];

static __always_inline struct lt_download_flow *download_flow(struct lt_download *d, void *sk)
{
	return d->number ? bpf_map_lookup_elem(&download_flows, &d->path) : bpf_sk_storage_get(&download_own_flows, sk, NULL, 0);
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

static inline u32 download_state(const struct lt_download_flow *f, const struct lt_download *d)
{
	return !d->clamped ? LT_DOWNLOAD_FREE : f->flow.tide.listens ? LT_DOWNLOAD_YIELDS : LT_DOWNLOAD_FILLS;
}

static __noinline void download_record(struct lt_download *d, struct lt_download_flow *f, const struct sock *sk, struct traced *round, u32 event)
{
	const struct lt_tracing *t = traces(sk);
	struct lt_trace_record *r;
	u32 mss = d->grants.mss;

	if (!t || !mss)
		return;
	r = trace_reserve(t, sk, round, event);
	if (!r)
		return;
	r->cwnd_q16 = ((u64)d->want << 16) / mss;
	r->ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
	r->weight = steering.download_weight_q16;
	r->srtt_us = d->grants.srtt_us;
	r->delivered = (d->grants.received - round->delivered) / mss;
	r->marked = round->delivered_ce;
	r->in_flight = (d->grants.edge - d->grants.next_seq) / mss;
	r->stack_cwnd = d->granted / mss;
	r->state = download_state(f, d);
	r->receives = 1;
	r->values_count = download_inspect(f, law_parameters, steering.download_weight_q16, r->values);
	bpf_ringbuf_submit(r, 0);
}

/*
 * Data have arrived during a trace. The program that calls this keeps nothing for it: with the law, it needs all of the
 * stack that Linux 6.1 allows.
 */
static __noinline void download_trace(struct __sk_buff *skb)
{
	struct bpf_sock *bpf_sk = skb->sk ? bpf_sk_fullsock(skb->sk) : NULL;
	struct download_traced *traced;
	const struct law_ack *a;
	struct lt_download_flow *f;
	struct lt_download *d;
	struct tcp_sock *tp;
	struct traced *round;
	struct sock *sk;
	bool reduced;

	if (!bpf_sk)
		return;
	d = bpf_sk_storage_get(&downloads, bpf_sk, NULL, 0);
	traced = bpf_sk_storage_get(&downloads_traced, bpf_sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	tp = bpf_skc_to_tcp_sock(bpf_sk);
	if (!d || !traced || !tp || !d->begun)
		return;
	sk = (struct sock *)tp;
	f = download_flow(d, bpf_sk);
	if (!f)
		return;
	a = &d->ack;
	round = &traced->round;
	trace_owner(round, sk);
	if (!round->connection)
		round->connection = trace_next_connection();
	trace_rtt(round, d->loop_us);
	round->delivered_ce += a->marked;
	reduced = download_is_reduced(f);
	if (a->lost)
		download_record(d, f, sk, round, LT_TRACE_LOSS);
	else if (reduced && !traced->reduced)
		download_record(d, f, sk, round, a->marked ? LT_TRACE_MARK : LT_TRACE_BACKOFF);
	traced->reduced = reduced;
	if (a->now_us < traced->round_end_us)
		return;
	if (traced->round_end_us)
		download_record(d, f, sk, round, LT_TRACE_ROUND);
	traced->round_end_us = a->now_us + d->grants.srtt_us;
	round->rtt_min_us = round->rtt_max_us = round->delivered_ce = 0;
	round->delivered = d->grants.received;
}

/* Data have arrived. */
static __always_inline void download_data(struct lt_download *d, struct bpf_sock *sk, const struct segment *s, u64 now_ns)
{
	struct lt_download_flow *f = download_flow(d, sk);

	if (!f)
		return;
	d->stamped = 1;
	d->arrived_ns = now_ns;
	if (!flow_enter(&f->flow, now_ns)) {
		grant_unseen(&d->grants);
		return;
	}
	IN_PLACE download_arrives(f, d, s, law_parameters, steering.download_weight_q16, steering.download_held, bpf_get_prandom_u32());
	flow_exit(&f->flow);
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
	now_ns = bpf_ktime_get_ns();
	s.now_us = now_ns / NSEC_PER_USEC;
	download_data(d, sk, &s, now_ns);
	if (tracing())
		download_trace(skb);
	return PASS;
}

SEC("cgroup_skb/egress")
int lt_download_out(struct __sk_buff *skb)
{
	struct bpf_sock *sk = skb->sk;
	struct lt_download *d;
	struct tcp_sock *tp;
	struct segment s = {};
	u32 flags;
	bool stamped;
	u64 now_ns;

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
	download_leaves(d, now_ns / NSEC_PER_USEC, s.tsval, tp->rcv_wup + tp->rcv_wnd, tp->rcv_nxt);
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
	if (path && flow_exists(&download_flows, &d->path, no_download_yet))
		d->number = __sync_fetch_and_add(&download_numbers, 1) + 1;
	else
		bpf_sk_storage_get(&download_own_flows, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	d->clamped = 1;	/* at connect */
	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
}

/* The stack is about to choose the window of a segment. */
static inline void download_chooses(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct lt_download *d = sk ? bpf_sk_storage_get(&downloads, sk, NULL, 0) : NULL;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	u64 now_ns = bpf_ktime_get_ns();
	struct lt_download_flow *f;
	u32 held, window;

	if (!d || !tp)
		return;
	/* one without timestamps never begins, but a pause holds it, too */
	if (!downloads_are_governed(now_ns) || (!d->begun && !steering.download_held)) {
		if (d->clamped)
			download_set(ops, DOWNLOAD_WINDOW_MOST);
		d->clamped = 0;
		return;
	}
	f = download_flow(d, sk);
	if (!f)
		return;
	held = tp->rcv_wup + tp->rcv_wnd - tp->rcv_nxt;
	held = held > DOWNLOAD_WINDOW_MOST ? 0 : held;
	window = download_clamp(f, d, now_ns / NSEC_PER_USEC, held, steering.download_held);
	d->clamped = 1;
	download_offer(ops, tp, window, d->grants.mss);
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

static inline bool download_is_measured(const struct lt_download *d)
{
	return d && d->stamped == 1;
}

/* Values for the controller. */
static inline void download_observed(struct sock *sk, struct lt_socket_record *record)
{
	struct lt_download *d = bpf_sk_storage_get(&downloads, sk, NULL, 0);
	struct lt_download_flow *f;

	f = d ? download_flow(d, sk) : NULL;
	if (!f)
		return;
	record->download_measured = download_is_measured(d);
	record->arrived_ns = d->arrived_ns;
	record->window = d->granted;
	record->download_srtt_us = d->grants.srtt_us;
	record->download_delay_us = d->delay_us;
	record->download_base_us = download_base_us(f, d);
	record->download_mss = d->grants.mss;
	if (d->number && d->begun)
		record->download_path = d->path;
	if (d->begun)
		record->download_limited = bpf_ktime_get_ns() - d->wanted_ns < flow_unused_ns(&f->flow);
	if (d->begun)
		record->download_state = download_state(f, d);
}

static inline void download_ends(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct lt_download *d = sk ? bpf_sk_storage_get(&downloads, sk, NULL, 0) : NULL;
	struct lt_download_flow *f;

	if (ops->args[1] != BPF_TCP_CLOSE)
		return;
	if (!download_is_measured(d))
		count(closed_unmeasured, ops->bytes_received);
	if (!d || !d->number)
		return;
	f = bpf_map_lookup_elem(&download_flows, &d->path);
	if (!f)
		return;
	download_leave(f, d);
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
		download_chooses(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		download_ends(ops);
		break;
	}
	return 1;
}

#endif
