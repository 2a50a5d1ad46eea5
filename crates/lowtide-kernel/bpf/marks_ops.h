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

#endif
