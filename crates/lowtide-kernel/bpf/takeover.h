/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A group that Lowtide did not make. Its open connections get the law by an iterator, read once per network namespace.
 * At the end all of its connections get back what they had before. A selective transfer takes only some connections;
 * the others have no record, and stay as they are.
 */
#ifndef LOWTIDE_TAKEOVER_H
#define LOWTIDE_TAKEOVER_H

#include "state.h"
#include "flows.h"

#define GROUP_DEPTH 64

static inline bool within(const struct lt_address *a, const volatile struct lt_address *network, u32 bits)
{
	for (u32 i = 0; i < 4; i++) {
		u32 here = bits > 32 * i ? bits - 32 * i : 0;
		u32 mask = here >= 32 ? ~0U : here ? ~0U << (32 - here) : 0;

		if ((a->word[i] ^ network->word[i]) & IN_NETWORK_ORDER(mask))
			return false;
	}
	return true;
}

/* Whether the transfer takes this connection. */
static inline bool is_meant(const struct sock_common *sk)
{
	struct lt_address remote = {};

	if (!setup.selective)
		return true;
	if (setup.port && setup.port != sk->skc_num && setup.port != bpf_ntohs(sk->skc_dport))
		return false;
	if (sk->skc_family != AF_INET6)
		remote = address_of_v4(sk->skc_daddr);
	else if (bpf_core_field_exists(sk->skc_v6_daddr))
		*(struct in6_addr *)&remote = sk->skc_v6_daddr;
	return within(&remote, &setup.peer, setup.peer_bits);
}

/* Whether the socket was made in the group, or below it. */
static inline bool is_in_group(const struct sock *sk)
{
	struct cgroup *group = sk->sk_cgrp_data.cgroup, *above;
	struct cgroup **ancestors;
	int level;

	if (!group)
		return false;
	level = group->level;
	ancestors = (void *)group + bpf_core_field_offset(struct cgroup, ancestors);
	for (int i = 0; i < GROUP_DEPTH; i++) {
		if (i > level || bpf_probe_read_kernel(&above, sizeof(above), ancestors + i) || !above)
			return false;
		if (BPF_CORE_READ(above, kn, id) == setup.group_id)
			return true;
	}
	return false;
}

/* Notes what a socket has before it gets the law. `ctx`: the context for bpf_getsockopt. */
#define remember_former(ctx, s)                                                                                       \
	({                                                                                                            \
		struct former *f = &(s)->former;                                                                      \
		if (!f->known && !bpf_getsockopt(ctx, IPPROTO_TCP, TCP_CONGESTION, f->law, sizeof(f->law))) {         \
			bpf_getsockopt(ctx, IPPROTO_IP, IP_TOS, &f->tos, sizeof(f->tos));                             \
			bpf_getsockopt(ctx, IPPROTO_IPV6, IPV6_TCLASS, &f->tclass, sizeof(f->tclass));                \
			f->known = 1;                                                                                 \
		}                                                                                                     \
	})

static inline bool can_be_taken(u8 state)
{
	return state == BPF_TCP_ESTABLISHED || state == BPF_TCP_SYN_SENT || state == BPF_TCP_FIN_WAIT1 || state == BPF_TCP_CLOSE_WAIT;
}

/* Enables the callbacks at the socket's end, and with a law of the kernel at each RTT. */
static inline long follow(struct sock *sk, const struct tcp_sock *tp)
{
	int flags = tp->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_STATE_CB_FLAG;

	if (!setup.ours)
		flags |= BPF_SOCK_OPS_RTT_CB_FLAG;
	return bpf_setsockopt(sk, IPPROTO_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS_SET, &flags, sizeof(flags));
}

static inline long take(struct sock *sk, struct tcp_sock *tp)
{
	char law[LT_CC_NAME];
	int tos = setup.tos;
	u64 limit = sk->sk_max_pacing_rate;
	struct lt_socket *s;
	long error;

	error = follow(sk, tp);
	if (error)
		return error;
	s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return -ENOMEM;
	remember_former(sk, s);
	s->program_pacing = limit == ~0UL ? 0 : limit;
	/* earlier data do not count */
	s->acked_base = tp->bytes_acked;
	s->received_base = tp->bytes_received;
	s->retransmitted_base = tp->bytes_retrans;
	s->round_end = s->phantom.round_end = tp->snd_nxt;
	law_name(law);
	error = bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, law, sizeof(law));
	if (error)
		return error;
	if (setup.set_tos) {
		bpf_setsockopt(sk, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
		bpf_setsockopt(sk, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	}
	if (sk->__sk_common.skc_state == BPF_TCP_SYN_SENT)
		return 0;
	count(sockets_opened, 1);
	if (s->member.number) {
		flow_join(flow_of(s), s, bpf_ktime_get_ns());
		s->window_q16 = s->member.part.grant_q16;
	}
	return 0;
}

/* Takes over the open sockets of the group in a network namespace. */
SEC("iter/tcp")
int lt_take(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;
	struct sock *sk = (struct sock *)tp;
	struct lt_taken answer = {};

	if (!tp || !can_be_taken(sk->__sk_common.skc_state) || !is_in_group(sk) || !is_meant(&sk->__sk_common))
		return 0;
	if (bpf_sk_storage_get(&sockets, sk, NULL, 0))
		return 0;
	answer.error = take(sk, tp);
	answer.taken = !answer.error;
	if (answer.error) {
		bpf_sk_storage_delete(&sockets, sk);
		count(law_refused, 1);
	}
	bpf_seq_write(ctx->meta->seq, &answer, sizeof(answer));
	return 0;
}

/* If its law no longer exists, as that of another transfer that was killed, the socket gets plain Reno. */
static inline long give_law_back(struct sock *sk, const struct lt_socket *s)
{
	char law[LT_CC_NAME];

	__builtin_memcpy(law, s->former.law, sizeof(law));
	if (!bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, law, sizeof(law)))
		return 0;
	return bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, LAW_WITHOUT_ECN, sizeof(LAW_WITHOUT_ECN));
}

/* Gives back a socket's law, DSCP and pacing limit. */
SEC("iter/tcp")
int lt_give_back(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tp = common ? bpf_skc_to_tcp_sock(common) : NULL;
	struct sock *sk = (struct sock *)tp;
	struct lt_taken answer = {};
	struct lt_socket *s;
	u32 limit;
	int tos;

	s = tp ? bpf_sk_storage_get(&sockets, sk, NULL, 0) : NULL;
	if (!s || !s->former.known || s->own_law)
		return 0;
	answer.error = give_law_back(sk, s);
	limit = s->program_pacing ? at_most(s->program_pacing, PACING_SWITCHED_ON) : PACING_UNLIMITED;
	bpf_setsockopt(sk, SOL_SOCKET, SO_MAX_PACING_RATE, &limit, sizeof(limit));
	if (setup.set_tos) {
		tos = s->former.tos;
		bpf_setsockopt(sk, IPPROTO_IP, IP_TOS, &tos, sizeof(tos));
		tos = s->former.tclass;
		bpf_setsockopt(sk, IPPROTO_IPV6, IPV6_TCLASS, &tos, sizeof(tos));
	}
	s->former.known = 0;
	answer.taken = !answer.error;
	bpf_seq_write(ctx->meta->seq, &answer, sizeof(answer));
	return 0;
}

#endif
