/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the laws have in common in the kernel: how they see the stack's window, and what they do if the stack has
 * changed it.
 */
#ifndef LOWTIDE_TCP_H
#define LOWTIDE_TCP_H

#include "state.h"
#include "trace.h"

static inline u32 srtt_us(const struct tcp_sock *tp)
{
	return tp->srtt_us >> 3;
}

/* The RTO, and the idle time after which the stack restarts; without its exponential backoff. */
static inline u32 rto_us(const struct tcp_sock *tp)
{
	return srtt_us(tp) + tp->rttvar_us;
}

/*
 * The stack's latest reading of the clock, for the present ACK or segment: bpf_ktime_get_ns() without reading the clock
 * again.
 */
static inline u64 clock_ns(const struct tcp_sock *tp)
{
	return tp->tcp_mstamp * NSEC_PER_USEC;
}

/* Applies what the kernel has done to cwnd meanwhile (PRR, RTO, undo, idle restart). Else the fraction stays. */
static inline void resync_window(struct lt_socket *s, const struct tcp_sock *tp)
{
	u64 cwnd_q16 = (u64)tp->snd_cwnd << 16;

	if (budget_cwnd(s->window_q16) == tp->snd_cwnd)
		return;
	/* a timeout's cwnd of one does not concern a share that is even smaller */
	if (cwnd_q16 < PACED_BELOW_Q16 && s->window_q16 < cwnd_q16)
		return;
	s->window_q16 = cwnd_q16;
}

/*
 * The controller is gone: from here on this is Reno. It begins at the present window. Slow start up to an old ssthresh
 * would overrun the queue on all connections at once.
 */
static inline void let_go(struct tcp_sock *tp, struct lt_socket *s)
{
	if (s->let_go)
		return;
	s->let_go = 1;
	if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) < TCP_CA_CWR && tp->snd_cwnd < tp->snd_ssthresh)
		tp->snd_ssthresh = s->ssthresh = at_least(tp->snd_cwnd, WINDOW_MIN_SEGMENTS);
}

static inline void reno(struct tcp_sock *tp, struct lt_socket *s, u32 acked)
{
	s->window_q16 = budget_grow((u64)tp->snd_cwnd << 16 | (s->window_q16 & 0xffff), tp->snd_ssthresh, acked, Q16_ONE, 1);
	tp->snd_cwnd = at_least(s->window_q16 >> 16, WINDOW_MIN_SEGMENTS);
}

/*
 * Whether the window is the limit, as only then it grows. A paced share does not fill its cwnd, so unsent data count
 * there.
 */
static inline bool window_limited(const struct tcp_sock *tp, const struct lt_socket *s)
{
	if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_LOSS)
		return true;	/* the rest may be retransmissions only */
	if (s->window_q16 < PACED_BELOW_Q16)
		return tp->write_seq != tp->snd_nxt;
	if (tp->snd_cwnd < tp->snd_ssthresh)
		return tp->snd_cwnd < 2 * tp->max_packets_out;
	return BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited);
}

/*
 * Skipped struct_ops callbacks. Under preemption a kernel skips the program (seen on 6.18, a few times a minute with
 * eight sockets), and takes what happens to be on its stack as the answer. A wild ssthresh then becomes a wild window
 * within one ACK. So before the stack uses it, check that the episode's ssthresh is the law's; if not, the law answers
 * again. And check that the window is one that the law or an undo can have set.
 */
static inline bool ssthresh_missed(const struct lt_socket *s, const struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) < TCP_CA_CWR || tp->snd_ssthresh == s->ssthresh)
		return false;
	count(law_missed, 1);
	return true;
}

static inline void mend_window(struct lt_socket *s, struct tcp_sock *tp)
{
	u32 most = at_least(at_least(budget_cwnd(s->window_q16), tp->prior_cwnd), LAW_INITIAL_WINDOW);

	if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) >= TCP_CA_CWR || tp->snd_cwnd <= most)
		return;
	tp->snd_cwnd = budget_cwnd(s->window_q16);
	count(law_missed, 1);
}

#define TOO_OLD (1U << 30)	/* bytes: more than any window (RFC 7323, section 2.3) */

/*
 * A skipped min_tso_segs callback may give the stack 0, which then makes an empty segment. It sends that when its probe
 * timer expires, and nothing else before it is acknowledged, which by itself it never is. Any ACK will do. The peer
 * sends one for an ACK that is far too old (RFC 5961, section 5.2).
 */
static inline void get_past_empty_segment(struct tcp_sock *tp)
{
	if (!tp->packets_out || tp->snd_una != tp->snd_nxt)
		return;
	bpf_tcp_send_ack(tp, tp->rcv_nxt - TOO_OLD);
	count(law_missed, 1);
}

/* The trace event for a reduction. */
static inline u32 reduction_event(u32 signal, const struct tcp_sock *tp)
{
	switch (signal) {
	case SIGNAL_DELAY:
	case SIGNAL_LAW:
		return LT_TRACE_BACKOFF;
	case SIGNAL_PHANTOM:
		return LT_TRACE_PHANTOM;
	case SIGNAL_GROUP_DELAY:
	case SIGNAL_GROUP_LOSS:
		return LT_TRACE_SHARED;
	default:
		return tp->lost_out ? LT_TRACE_LOSS : LT_TRACE_MARK;
	}
}

#endif
