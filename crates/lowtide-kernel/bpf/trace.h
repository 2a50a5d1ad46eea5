/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records for `lowtide trace`: the state of laws once per RTT and at each event, in a ring buffer that a tracing
 * process puts into lt_trace. Else there is none, and programs only read one number. Records that do not fit are
 * counted.
 *
 * The laws do not depend on it: each has X_inspect (law/law.h). The code that connects a law calls TRACE at events.
 */
#ifndef LOWTIDE_TRACE_H
#define LOWTIDE_TRACE_H

#include "state.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct lt_tracing);
} lt_tracing SEC(".maps");

struct lt_trace_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 16);	/* a template; the real one has its own size */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct lt_trace_ring);
} lt_trace SEC(".maps");

/* Records that did not fit. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} lt_trace_drops SEC(".maps");

u64 trace_connections = 0;

static __always_inline const struct lt_tracing *tracing(void)
{
	u32 zero = 0;
	const struct lt_tracing *t = bpf_map_lookup_elem(&lt_tracing, &zero);

	return t && t->until_ns && bpf_ktime_get_ns() < t->until_ns ? t : NULL;
}

/*
 * Notes the owner of a socket, at the head of a program. Records do not look it up: the kernel's verifier searches all
 * its types by name for each pointer that is followed, which took a third of the time to load Tide.
 */
static inline void trace_owner(struct traced *round, const struct sock *sk)
{
	if (round->inode)
		return;
	round->cgroup = sk->sk_cgrp_data.cgroup->kn->id;
	if (sk->sk_socket && sk->sk_socket->file)	/* none before accept() */
		round->inode = sk->sk_socket->file->f_inode->i_ino;
}

static inline void trace_rtt(struct traced *round, u32 rtt_us)
{
	if (rtt_us && (!round->rtt_min_us || rtt_us < round->rtt_min_us))
		round->rtt_min_us = rtt_us;
	if (rtt_us > round->rtt_max_us)
		round->rtt_max_us = rtt_us;
}

static inline u32 trace_next_connection(void)
{
	return __sync_fetch_and_add(&trace_connections, 1) + 1;
}

/* Notes the RTT sample of an ACK; 0: none. True if it ended a round. Called only during a trace. */
static inline bool trace_ack(struct lt_socket *s, const struct tcp_sock *tp, u32 rtt_us)
{
	trace_rtt(&s->traced, rtt_us);
	if (s->traced.connection)
		return seq_after(tp->snd_una, s->traced.round_end);
	s->traced.round_end = tp->snd_nxt;	/* the trace began later than the connection */
	s->traced.delivered = tp->delivered;
	s->traced.delivered_ce = tp->delivered_ce;
	s->traced.connection = trace_next_connection();
	return false;
}

static inline void trace_next_round(struct lt_socket *s, const struct tcp_sock *tp)
{
	s->traced.round_end = tp->snd_nxt;
	s->traced.rtt_min_us = s->traced.rtt_max_us = 0;
	s->traced.delivered = tp->delivered;
	s->traced.delivered_ce = tp->delivered_ce;
}

static inline void trace_address(struct lt_trace_record *r, const struct sock_common *sk)
{
	__builtin_memset(r->remote, 0, sizeof(r->remote));
	r->local_port = sk->skc_num;
	r->remote_port = bpf_ntohs(sk->skc_dport);
	r->ipv6 = sk->skc_family == AF_INET6;
	if (!r->ipv6)
		*(u32 *)r->remote = sk->skc_daddr;
	else if (bpf_core_field_exists(sk->skc_v6_daddr))
		*(struct in6_addr *)r->remote = sk->skc_v6_daddr;
}

/* Whether connections of this socket are traced. */
static __always_inline const struct lt_tracing *traces(const struct sock *sk)
{
	const struct lt_tracing *t = tracing();

	if (!t || (t->port && t->port != sk->__sk_common.skc_num && t->port != bpf_ntohs(sk->__sk_common.skc_dport)))
		return NULL;
	return t;
}

/* A record with what connections of both directions have, to be filled in and submitted; NULL: none. */
static __always_inline struct lt_trace_record *trace_reserve(const struct lt_tracing *t, const struct sock *sk, const struct traced *round, u32 event)
{
	struct lt_trace_record *r;
	u32 zero = 0;
	u64 *drops;
	void *ring;

	ring = bpf_map_lookup_elem(&lt_trace, &zero);
	if (!ring)
		return NULL;
	r = bpf_ringbuf_reserve(ring, sizeof(*r), 0);
	/* Test once and return: Linux 6.1 forgets that a record is not NULL if a second test is compiled. */
	if (!r) {
		drops = bpf_map_lookup_elem(&lt_trace_drops, &zero);
		if (drops)
			(*drops)++;
		return NULL;
	}
	r->time_ns = bpf_ktime_get_ns();
	r->inode = round->inode;
	r->cgroup = round->cgroup;
	r->source = t->source;
	r->connection = round->connection;
	r->event = event;
	r->rtt_min_us = round->rtt_min_us;
	r->rtt_max_us = round->rtt_max_us;
	r->values_count = 0;
	trace_address(r, &sk->__sk_common);
	__builtin_memset(r->values, 0, sizeof(r->values));
	return r;
}

/* A record without the law's own values, to be submitted; NULL: none. */
static __always_inline struct lt_trace_record *trace_record(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	const struct sock *sk = &tp->inet_conn.icsk_inet.sk;
	const struct lt_tracing *t = traces(sk);
	struct lt_trace_record *r;
	struct traced round;

	if (!t)
		return NULL;
	trace_ack(s, tp, 0);	/* this may be the connection's first event in the trace */
	round = s->traced;
	if (event == LT_TRACE_ROUND)
		trace_next_round(s, tp);
	r = trace_reserve(t, sk, &round, event);
	if (!r)
		return NULL;
	r->cwnd_q16 = setup.ours && !s->without_ecn && !s->own_law ? s->window_q16 : (u64)tp->snd_cwnd << 16;
	r->ssthresh_q16 = (u64)tp->snd_ssthresh << 16;
	r->weight = s->decision.governed ? s->decision.weight : steering.weight;
	r->srtt_us = tp->srtt_us >> 3;
	r->delivered = tp->delivered - round.delivered;
	r->marked = tp->delivered_ce - round.delivered_ce;
	r->in_flight = in_flight(tp);
	r->stack_cwnd = tp->snd_cwnd;
	r->state = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	r->receives = 0;
	return r;
}

/*
 * `law`: a function trace_LAW(socket, tcp socket, event) that writes a record of a law. There is one copy of it for all
 * callers.
 */
#define TRACE(law, s, tp, event)                                                                                      \
	do {                                                                                                          \
		if (tracing())                                                                                        \
			law(s, tp, event);                                                                            \
	} while (0)

/*
 * An ACK with this RTT sample; 0: none. Writes a record if it ends a round. `over`: the law has acted on the ACK
 * already.
 */
#define TRACE_ACK(law, s, tp, rtt_us, over)                                                                           \
	do {                                                                                                          \
		if (tracing() && trace_ack(s, tp, rtt_us) && (over))                                                  \
			law(s, tp, LT_TRACE_ROUND);                                                                   \
	} while (0)

/*
 * Whether the law does not act on this ACK: it acts only outside of episodes, and not on ACKs that are only selective.
 */
static inline bool law_skips_ack(const struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) != TCP_CA_OPEN;
}

#endif
