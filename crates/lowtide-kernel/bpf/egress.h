/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every packet that the transfer's sockets send or receive passes here. CONGESTED makes the stack call tcp_enter_cwr()
 * on the sender. That is the phantom congestion signal of the framework, and CDG's way to a real reduction episode.
 */
#ifndef LOWTIDE_EGRESS_H
#define LOWTIDE_EGRESS_H

#include "state.h"
#include "tcp.h"
#include "trace.h"

#define PASS 1
#define CONGESTED 3
#define PROTO_TCP 6
#define PROTO_UDP 17
#define IPV4_HEADER 20	/* bytes, without options */
#define IPV6_HEADER 40
#define TCP_HEADER 20

struct packet {
	u32 protocol;
	u32 payload;	/* bytes after the TCP header */
};

/* The headers of a packet to or from a socket are in its linear part. */
static inline bool parse(struct __sk_buff *skb, struct packet *packet)
{
	const u8 *ip = (void *)(long)skb->data, *end = (void *)(long)skb->data_end, *tcp;
	bool v4;
	u32 to_payload;

	if (ip + IPV4_HEADER > end)
		return false;
	v4 = ip[0] >> 4 == 4;
	packet->protocol = v4 ? ip[9] : ip[6];
	packet->payload = 0;
	if (packet->protocol != PROTO_TCP)
		return true;
	tcp = ip + (v4 ? (ip[0] & 15) * 4 : IPV6_HEADER);
	if (tcp + TCP_HEADER > end)
		return false;
	to_payload = tcp - ip + (tcp[12] >> 4) * 4;
	if (skb->len > to_payload)
		packet->payload = skb->len - to_payload;
	return true;
}

/* Trace of a law of the kernel, as far as it can be seen from here. */
static __noinline void trace_kernel_law(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	struct lt_trace_record *r = trace_record(s, tp, event);

	if (!r)
		return;
	if (!setup.ours)
		r->values_count = phantom_inspect(&s->phantom, pressure_on(s)->phantom_q32, r->time_ns, r->values);
	bpf_ringbuf_submit(r, 0);
}

static inline bool has_kernel_law(const struct lt_socket *s)
{
	return (!setup.ours || s->without_ecn) && !s->own_law;
}

static inline u32 congestion_event(u32 ca_state)
{
	return ca_state == TCP_CA_LOSS ? LT_TRACE_TIMEOUT : ca_state == TCP_CA_RECOVERY ? LT_TRACE_LOSS : LT_TRACE_MARK;
}

/* Counts a socket that starts or resumes sending among those that share the budget. The controller recounts. */
static inline void note_activity(struct lt_socket *s, u64 now, u32 srtt_us)
{
	u64 idle = 4 * srtt_us * NSEC_PER_USEC;

	if (idle < IDLE_MIN_NS)
		idle = IDLE_MIN_NS;
	if (!s->last_sent_ns)
		s->phantom.start_ns = now;
	if (!s->last_sent_ns || now - s->last_sent_ns > idle)
		__sync_fetch_and_add(&steering.sockets, 1);
	s->last_sent_ns = now;
}

static inline void note_losses(struct lt_socket *s, const struct tcp_sock *tp, u32 ca_state, u64 now)
{
	if (!price_new_event(&s->price, ca_state, tp->high_seq, tp->snd_una, tp->delivered_ce))
		return;
	phantom_real_signal(&s->phantom, now);
	if (has_kernel_law(s))
		TRACE(trace_kernel_law, s, tp, congestion_event(ca_state));
	if (!setup.one_window || first_of_the_group(tp->srtt_us >> 3, now))
		count(losses, 1);
}

static inline bool phantom_signal(struct lt_socket *s, const struct tcp_sock *tp, u32 segments, u64 now)
{
	u64 chance;

	phantom_rtt(&s->phantom, tp->rack.rtt_us);
	if (seq_after(tp->snd_una, s->phantom.round_end)) {
		phantom_next_round(&s->phantom);
		s->phantom.round_end = tp->snd_nxt;
	}
	if (setup.weighs_marks && !s->without_ecn)
		return false;
	if (setup.by_delay && !s->without_ecn && (!s->phantom.last_real_ns || !delay_has_no_grip(s)))
		return false;
	chance = phantom_chance_q32(&s->phantom, now, tp->srtt_us >> 3, tp->rtt_min.s[0].v, tp->snd_cwnd < tp->snd_ssthresh,
				    pressure_on(s)->surplus_q16, pressure_on(s)->phantom_q32, segments);
	return bpf_get_prandom_u32() < chance;
}

SEC("cgroup_skb/egress")
int lt_egress(struct __sk_buff *skb)
{
	struct packet packet;
	struct bpf_sock *sk = skb->sk;
	struct lt_socket *s;
	struct tcp_sock *tp;
	u32 segments, ca_state;
	u64 now;

	if (!parse(skb, &packet))
		return PASS;
	if (packet.protocol == PROTO_UDP)
		count(udp_sent, skb->len);
	if (packet.protocol != PROTO_TCP || !packet.payload || !sk || !setup.uploads)
		return PASS;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return PASS;
	s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	tp = bpf_skc_to_tcp_sock(sk);
	if (!s || !tp)
		return PASS;

	now = clock_ns(tp);
	segments = skb->gso_segs ? skb->gso_segs : 1;
	ca_state = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	count(segments, segments);
	if (has_kernel_law(s))
		trace_owner(&s->traced, &tp->inet_conn.icsk_inet.sk);
	note_activity(s, now, tp->srtt_us >> 3);
	note_losses(s, tp, ca_state, now);
	if (has_kernel_law(s))
		TRACE_ACK(trace_kernel_law, s, tp, tp->rack.rtt_us, true);

	/* one reduction per RTT: no signal within an episode */
	if (ca_state >= TCP_CA_CWR || !controller_alive(now) || s->own_law) {
		s->signal = SIGNAL_NONE;
		return PASS;
	}
	if (s->signal == SIGNAL_NONE && phantom_signal(s, tp, segments, now)) {
		if (setup.one_window && !announce_reduction(s, SIGNAL_GROUP_LOSS, tp->srtt_us >> 3, now))
			return PASS;
		s->signal = SIGNAL_PHANTOM;
		count(phantoms, 1);
		if (has_kernel_law(s))
			TRACE(trace_kernel_law, s, tp, LT_TRACE_PHANTOM);
	}
	if (s->signal == SIGNAL_NONE)
		return PASS;
	if (!setup.ours || s->without_ecn)
		s->signal = SIGNAL_NONE;	/* a law of the kernel does not read it back */
	return CONGESTED;
}

SEC("cgroup_skb/ingress")
int lt_ingress(struct __sk_buff *skb)
{
	struct packet packet;

	if (parse(skb, &packet) && packet.protocol == PROTO_UDP)
		count(udp_received, skb->len);
	return PASS;
}

#endif
