/* SPDX-License-Identifier: GPL-2.0-only */
/* A record per live socket of the transfer, for the controller to read. */
#ifndef LOWTIDE_OBSERVE_H
#define LOWTIDE_OBSERVE_H

#include "state.h"
#include "goal.h"
#include "download.h"

#define PATH_EVIDENCE 16	/* segments delivered before a connection's path counts as one of the transfer's */

static __always_inline int observe(struct bpf_iter_meta *meta, struct sock *sk, struct lt_socket *s)
{
	struct lt_socket_record record = {};
	struct tcp_sock *tp;
	u8 state;

	if (!sk || !s || s->closed)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	state = sk->__sk_common.skc_state;
	/* an accepted connection that only receives has had nothing acknowledged, but counts */
	if (!tp || state == BPF_TCP_SYN_SENT || state == BPF_TCP_LISTEN || state == BPF_TCP_CLOSE)
		return 0;
	goal_observed(s, &record);
	record.acked = tp->bytes_acked - s->acked_base;
	record.acked -= record.acked && fin_is_acked(state, tp->snd_una, tp->write_seq);
	record.received = tp->bytes_received - s->received_base;
	record.retransmitted = tp->bytes_retrans - s->retransmitted_base;
	record.last_sent_ns = s->last_sent_ns;
	record.window_q16 = s->window_q16;
	record.srtt_us = tp->srtt_us >> 3;
	record.min_rtt_us = tp->rtt_min.s[0].v;
	record.cwnd = tp->snd_cwnd;
	record.packets_out = tp->packets_out;
	record.unsent = tp->write_seq - tp->snd_nxt;
	record.mss = tp->mss_cache;
	record.own_law = s->own_law;
	record.held = s->held && record.unsent;
	record.delays = s->owd.use;
	if (s->member.number && tp->delivered >= PATH_EVIDENCE)
		record.path = s->member.path;
	download_observed(sk, &record);
	bpf_seq_write(meta->seq, &record, sizeof(record));
	return 0;
}

/* The sockets of all network namespaces. */
SEC("iter/bpf_sk_storage_map")
int lt_observe(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	return observe(ctx->meta, ctx->sk, ctx->value);
}

/* Those of the namespace of the process that opens it, where the kernel refuses the other one (src/observer.rs). */
SEC("iter/tcp")
int lt_observe_tcp(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct sock *sk = common ? (struct sock *)bpf_skc_to_tcp_sock(common) : NULL;

	return observe(ctx->meta, sk, sk ? bpf_sk_storage_get(&sockets, sk, NULL, 0) : NULL);
}

#endif
