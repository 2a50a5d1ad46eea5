/* SPDX-License-Identifier: GPL-2.0-only */
/* Gives every TCP socket of the group its law and its DSCP, and counts what it has moved when it closes. */
#ifndef LOWTIDE_SOCKOPS_H
#define LOWTIDE_SOCKOPS_H

#include "state.h"
#include "goal.h"
#include "flows.h"
#include "takeover.h"

static inline void set_traffic_class(struct bpf_sock_ops *ops)
{
	int tos = setup.tos;

	if (!setup.set_tos)
		return;
	bpf_setsockopt(ops, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
	if (ops->family == AF_INET6)
		bpf_setsockopt(ops, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
}

static inline struct lt_socket *socket_of(struct bpf_sock_ops *ops, u64 flags)
{
	struct bpf_sock *sk = ops->sk;

	return sk ? bpf_sk_storage_get(&sockets, sk, NULL, flags) : NULL;
}

/*
 * A client whose law needs ECN requests it with ECT on its SYN, which a listener grants only if its own law needs ECN,
 * too. Either then echoes every mark. Another client may request ECN without ECT, but it echoes a mark until it sees
 * CWR.
 */
static inline bool peer_echoes_marks(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp = ops->sk ? bpf_skc_to_tcp_sock(ops->sk) : NULL;
	u8 syn[2];	/* of the IP header */
	long length;

	if (!tp || !(tp->ecn_flags & TCP_ECN_OK))
		return false;
	if (ops->op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return true;
	length = bpf_getsockopt(ops, IPPROTO_TCP, TCP_BPF_SYN_IP, syn, sizeof(syn));
	if (length < 0 && length != -ENOSPC)
		return false;
	return (syn[0] >> 4 == 6 ? syn[1] >> 4 : syn[1]) & 3;
}

/*
 * Whether this is one of the connections of an MPTCP socket. A kernel without MPTCP does not have the field, and its
 * verifier does not see what depends on it.
 */
static inline bool is_subflow(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp = ops->sk ? bpf_skc_to_tcp_sock(ops->sk) : NULL;

	return tp && bpf_core_field_exists(tp->is_mptcp) && tp->is_mptcp;
}

/* The MPTCP socket, on which the program sets its options. */
static inline struct lt_socket *whole_of(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;
	struct mptcp_sock *whole = sk && is_subflow(ops) ? bpf_skc_to_mptcp_sock(sk) : NULL;

	return whole ? bpf_sk_storage_get(&sockets, whole, NULL, 0) : NULL;
}

/* Whether the program has chosen a law, and may: before it connected, or for all connections of an MPTCP socket. */
static inline bool has_own_law(struct bpf_sock_ops *ops, struct lt_socket *s)
{
	struct lt_socket *whole;

	if (s && s->own_law)
		return true;
	whole = whole_of(ops);
	if (!whole || !whole->own_law)
		return false;
	if (s)
		s->own_law = 1;
	return true;
}

static inline void adopt(struct bpf_sock_ops *ops)
{
	struct lt_socket *s = socket_of(ops, setup.group_id ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	char law[LT_CC_NAME];
	int yes = 1;

	if (setup.group_id && s)
		remember_former(ops, s);
	if (!setup.uploads)
		return;
	set_traffic_class(ops);
	if (has_own_law(ops, s))
		return;
	law_name(law);
	if (setup.needs_ecn && ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB)
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_SAVE_SYN, &yes, sizeof(yes));
	if (bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, law, sizeof(law)))
		count(law_refused, 1);
}

/* A connection that shares a flow begins with its part of the flow's window. */
static inline void established_in_flow(struct bpf_sock_ops *ops, struct lt_socket *s)
{
	struct lt_flow *f = flow_of(s);
	int iw;

	if (!controller_alive(bpf_ktime_get_ns()))
		return;
	flow_join(f, s, bpf_ktime_get_ns());
	s->window_q16 = s->member.part.grant_q16;
	/* the stack does not pace an initial window */
	iw = s->member.waits ? 1 : at_least(at_most(s->window_q16 >> 16, LAW_INITIAL_WINDOW), 1);
	bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_IW, &iw, sizeof(iw));
	if (s->member.waits)
		pace(ops, s, flow_waiting_pace(f, s->member.number, ops->mss_cache));
	else
		pace(ops, s, budget_pacing(s->window_q16, ops->mss_cache, ops->srtt_us >> 3));
}

/* The socket connects, perhaps not for the first time. The programs need its end, even if it never is a connection. */
static inline void connects(struct bpf_sock_ops *ops)
{
	struct lt_socket *s = socket_of(ops, 0);

	bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG);
	if (!s || !s->closed)
		return;
	s->closed = 0;
	if (!s->goal_place)	/* a goal belongs to its connection */
		goal_clear(s);
}

static inline void established(struct bpf_sock_ops *ops)
{
	struct lt_socket *s = socket_of(ops, BPF_SK_STORAGE_GET_F_CREATE);
	u32 n = steering.sockets + 1;	/* including this one */
	u64 share;
	int iw, calls;

	calls = ops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG;
	if (setup.uploads && (!setup.ours || is_subflow(ops)))
		calls |= BPF_SOCK_OPS_RTT_CB_FLAG;	/* pace_kernel_law(), keep_subflow() */
	bpf_sock_ops_cb_flags_set(ops, calls);
	count(sockets_opened, 1);
	if (!s)
		return;
	if (setup.uploads && setup.needs_ecn && !has_own_law(ops, s) && !peer_echoes_marks(ops)) {
		note_without_ecn(s);
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_CONGESTION, LAW_WITHOUT_ECN, sizeof(LAW_WITHOUT_ECN));
	}
	s->acked_base = ops->bytes_acked;
	s->received_base = s->retransmitted_base = 0;
	/* at connect, when the law was set, there was no sequence number yet */
	s->round_end = s->phantom.round_end = ops->snd_nxt;
	s->begun = 0;
	if (!setup.uploads)
		return;
	if (setup.ours && !s->without_ecn)
		s->window_q16 = (u64)ops->snd_cwnd << 16;
	if (s->member.number) {
		established_in_flow(ops, s);
		return;
	}
	if (n > 1 && controller_alive(bpf_ktime_get_ns())) {
		/*
		 * Others are sending. The transfer has one slow start for all: after the first reduction a new
		 * connection begins with its share.
		 */
		share = ((u64)LAW_INITIAL_WINDOW << 16) / n;
		if (setup.one_window && group.epoch) {
			share = budget_join(steering.window_q16, LAW_INITIAL_WINDOW, n);
			s->window_q16 = share;
			s->joins = 1;
		}
		iw = budget_cwnd(share);
		bpf_setsockopt(ops, IPPROTO_TCP, TCP_BPF_IW, &iw, sizeof(iw));
	}
	pace(ops, s, budget_pacing(s->joins ? s->window_q16 : PACED_BELOW_Q16, ops->mss_cache, ops->srtt_us >> 3));
}

static inline void closed(struct bpf_sock_ops *ops, u32 from, u32 to)
{
	struct lt_socket *s = socket_of(ops, 0);
	struct bpf_sock *sk = ops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;
	u64 acked;

	if (to != BPF_TCP_CLOSE || !s || s->closed)
		return;
	s->closed = 1;
	flow_leave(s);
	acked = ops->bytes_acked - s->acked_base;
	acked -= acked && tp && fin_is_acked(from, ops->snd_una, tp->write_seq);
	count(closed_acked, acked);
	if (s->own_law)
		count(closed_own_law, acked);
	count(closed_received, ops->bytes_received - s->received_base);
	count(closed_one_way, s->owd.use == OWD_ONE_WAY);
	count(closed_round_trips, s->owd.use == OWD_ROUND_TRIPS);
	goal_closed(s, acked);
	if (tp)
		count(closed_retransmitted, tp->bytes_retrans - s->retransmitted_base);
}

/*
 * Called once per RTT. A law of the kernel cannot go below two segments in flight. So while it is there under recent
 * congestion, n sockets are paced to one flow's two segments per RTT.
 */
static inline void pace_kernel_law(struct bpf_sock_ops *ops)
{
	struct lt_socket *s = socket_of(ops, 0);
	u32 n = sharing_sockets(), limit = budget_pacing(PACED_BELOW_Q16, ops->mss_cache, ops->srtt_us >> 3);
	u64 now = bpf_ktime_get_ns();

	if (!s)
		return;
	if (n > 1 && pressure_on(s)->surplus_q16 && controller_alive(now) && ops->snd_cwnd <= WINDOW_MIN_SEGMENTS &&
	    s->phantom.last_real_ns && now - s->phantom.last_real_ns < PHANTOM_V * s->phantom.tau_ns &&
	    !queue_is_empty(s->phantom.past_min_us, ops->rtt_min, QUEUE_FLOOR_US))
		limit = budget_pacing(WINDOW_MIN_Q16 / n, ops->mss_cache, ops->srtt_us >> 3);
	pace(ops, s, limit);
}

/*
 * A connection that joins an MPTCP socket gets that socket's law and DSCP from the stack, which may come after
 * Lowtide's.
 */
static inline void keep_subflow(struct bpf_sock_ops *ops)
{
	struct lt_socket *s = socket_of(ops, 0);

	if (s && !s->without_ecn && is_subflow(ops))
		adopt(ops);
}

/*
 * Whether Lowtide leaves the socket as it is. A listener's connections inherit what it has, so nothing could be
 * restored.
 */
static inline bool is_left_alone(struct bpf_sock_ops *ops)
{
	struct tcp_sock *tp;

	if (!setup.group_id)
		return false;
	if (ops->op == BPF_SOCK_OPS_TCP_LISTEN_CB)
		return true;
	tp = setup.selective && ops->sk ? bpf_skc_to_tcp_sock(ops->sk) : NULL;
	return tp && !is_meant(&((struct sock *)tp)->__sk_common);
}

SEC("sockops")
int lt_sockops(struct bpf_sock_ops *ops)
{
	if (is_left_alone(ops))
		return 1;
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
		connects(ops);
		adopt(ops);
		break;
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		adopt(ops);
		break;
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		adopt(ops);
		established(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		established(ops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		closed(ops, ops->args[0], ops->args[1]);
		break;
	case BPF_SOCK_OPS_RTT_CB:
		keep_subflow(ops);
		if (!setup.ours)
			pace_kernel_law(ops);
		break;
	}
	return 1;
}

#endif
