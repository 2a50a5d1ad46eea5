/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What laws of marks (law/marks.h) need of the kernel beyond other laws: negotiated ECN, a receiver that echoes every
 * mark, and a call at each ACK, in reduction episodes too.
 */
#ifndef LOWTIDE_MARKS_OPS_H
#define LOWTIDE_MARKS_OPS_H

#include "state.h"
#include "tcp.h"

/*
 * Without negotiated ECN the stack would send ECT all the same, so the socket leaves the law. The group's sockets do so
 * when they are established (sockops.h). This is for sockets that get the law from a program itself, whose first call
 * comes then.
 */
static inline void leaves_for_lack_of_ecn(struct sock *sk, struct tcp_sock *tp, struct lt_socket *s)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (tp->ecn_flags & TCP_ECN_OK || (state != BPF_TCP_ESTABLISHED && state != BPF_TCP_SYN_RECV))
		return;
	note_without_ecn(s);
	bpf_setsockopt(sk, IPPROTO_TCP, TCP_CONGESTION, LAW_WITHOUT_ECN, sizeof(LAW_WITHOUT_ECN));
}

/*
 * The receiver's part (RFC 8257, section 3.2): ACKs carry ECE if and only if the segments that they acknowledge had CE.
 * If that changes, the earlier segments are acknowledged at once, since a delayed ACK would mix them with the new one.
 */
static inline void echo_marks(struct sock *sk, bool ce)
{
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct tcp_sock *tp = tcp_sk(sk);
	u8 with = tp->ecn_flags | TCP_ECN_DEMAND_CWR, without = tp->ecn_flags & ~TCP_ECN_DEMAND_CWR;

	if (!s)
		return;
	if (s->received_ce != ce) {
		if (tp->inet_conn.icsk_ack.pending & ICSK_ACK_TIMER) {
			tp->ecn_flags = ce ? without : with;
			bpf_tcp_send_ack(tp, s->received_to);
		}
		tp->inet_conn.icsk_ack.pending |= ICSK_ACK_NOW;
	}
	s->received_ce = ce;
	s->received_to = tp->rcv_nxt;
	tp->ecn_flags = ce ? with : without;
}

/* Whether the stack walks to its ssthresh, by PRR. */
static inline bool is_walking(const struct tcp_sock *tp)
{
	u32 state = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);

	return state == TCP_CA_CWR || state == TCP_CA_RECOVERY;
}

/* Whether it still walks after this ACK. CWR ends above high_seq, recovery at it. */
static inline bool walks_on(const struct tcp_sock *tp)
{
	bool recovers = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_RECOVERY;

	return is_walking(tp) && (recovers ? seq_after(tp->high_seq, tp->snd_una) : !seq_after(tp->snd_una, tp->high_seq));
}

/* The law's window: in an episode the one at its end. */
static __always_inline struct law_window walking_window(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_window w = { .cwnd_q16 = s->window_q16, .ssthresh_q16 = s->ssthresh_q16, .least_q16 = WINDOW_MIN_Q16 / sharing_sockets() };

	return is_walking(tp) ? w : window_of(s, tp);
}

static inline void take_walking_window(struct lt_socket *s, struct tcp_sock *tp, const struct law_window *w)
{
	if (!is_walking(tp)) {
		take_window(s, tp, w);
		return;
	}
	s->window_q16 = w->cwnd_q16;
	s->ssthresh_q16 = w->ssthresh_q16;
	tp->snd_ssthresh = s->ssthresh = budget_cwnd(w->cwnd_q16);
}

static inline void hear_marks(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_ack *a = &s->ack;

	a->packets = tp->delivered - s->heard;
	a->marked = tp->delivered_ce - s->heard_ce;
	s->heard = tp->delivered;
	s->heard_ce = tp->delivered_ce;
	a->una = tp->snd_una;
	a->nxt = tp->snd_nxt;
	a->reducing = walks_on(tp);
	a->window_limited = window_limited(tp, s);
}

#endif
