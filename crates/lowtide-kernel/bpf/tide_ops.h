/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tide (law/tide.h) as a TCP congestion control of the kernel. It differs from the laws of window_ops.h in what it hears and in what it says:
 * it takes its turn at every ACK, in reduction episodes too, where the stack walks to its window; most losses leave that as it is; it paces
 * itself, and says how many segments leave at once.
 */
#ifndef LOWTIDE_TIDE_OPS_H
#define LOWTIDE_TIDE_OPS_H

#include "window_ops.h"
#include "bursts.h"
#include "turns.h"

static __noinline void tide_trace(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	struct law_weight weight = weight_on(s);
	struct lt_trace_record *r = trace_record(s, tp, event);

	if (!r)
		return;
	r->values_count = tide_inspect(&s->tide, PARAMETERS, &weight, r->values);
	bpf_ringbuf_submit(r, 0);
}

#define TIDE_PACE_PART 64	/* its pace is a tenth above what the window needs */
#define TIDE_PACE_EXACTLY (1U << 31)	/* a part of a packet's time in the distance of probes is less */

/* Bytes per second. On a short path only probes are paced. */
static inline u32 tide_pacing(const struct lt_socket *s, const struct tcp_sock *tp)
{
	u64 rate = tide_pace(&s->tide, PARAMETERS), fresh;

	if (!rate || (!s->tide.listens && srtt_us(tp) < PACING_RTT_MIN_US))
		return PACING_UNLIMITED;
	fresh = turn_fresh_pacing(s, tp);
	return at_most(fresh ? fresh : rate, PACING_UNLIMITED);
}

static inline u32 tide_answer(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_weight weight = weight_on(s);
	struct law_window w = walking_window(s, tp);
	u32 signal = s->signal, event = reduction_event(signal, tp), answer;

	s->signal = SIGNAL_NONE;
	w.nxt = tp->snd_nxt;
	if (!s->begun || !controller_alive(clock_ns(tp)))
		w.cwnd_q16 = at_least(w.cwnd_q16 / 2, WINDOW_MIN_Q16);
	else
		tide_reduce(&s->tide, PARAMETERS, &weight, &w, law_signal(signal, tp), 0);
	turn_window(s, &w);
	answer = reduced_to(s, &w);
	TRACE(tide_trace, s, tp, event);
	return answer;
}

SEC("struct_ops")
void BPF_PROG(tide_begin_on, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!s)
		return;
	begin_socket(s, tp);
	s->heard = tp->delivered;
	s->lost = tp->lost;
	/* here, as the verifier has enough to do with the program for ACKs; the addresses are known before the first segment leaves */
	s->hint_us = known_base_us(&sk->__sk_common);
	turn_begin(s, &sk->__sk_common);
}

/* The parameter, the transfer's or the program's, is as good as what other connections know. */
VERIFIED_APART int tide_choose_hint(struct lt_socket *s)
{
	const struct tide_parameters *p;

	if (!s)
		return 0;
	p = PARAMETERS;
	if (p->base_rtt_us)
		s->hint_us = p->base_rtt_us;
	tide_hint(&s->tide, s->hint_us);
	s->wrong_hint_us = 0;
	return 0;
}

/* For the controller. */
VERIFIED_APART int tide_tell(struct lt_socket *s)
{
	if (!s)
		return 0;
	s->base_us = tide_measured_us(&s->tide);
	if (tide_refutes_hint(&s->tide))
		s->wrong_hint_us = s->hint_us;
	return 0;
}

/* What an ACK brings. The rate sample is that of the one before: the stack takes it after this. */
static inline void tide_note(struct lt_socket *s, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	struct law_ack *a = &s->ack;

	note_ack(s, tp, sample);
	hear_marks(s, tp);
	a->lost = tp->lost - s->lost;
	s->lost = tp->lost;
	a->rate_delivered = tp->rate_delivered;
	a->rate_interval_us = tp->rate_interval_us;
	a->rate_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	a->app_limited = tp->app_limited != 0;
}

/* Whether it is another connection's turn; it then sends no more than that it is heard of. */
static __noinline int tide_waits(struct lt_socket *s, struct tcp_sock *tp)
{
	struct turn_view view;
	struct law_window w;

	if (!s->turn.number)	/* no turns are taken */
		return 0;
	view = (struct turn_view){
		.now_ns = clock_ns(tp),
		.srtt_ns = srtt_us(tp) * NSEC_PER_USEC,
		.mss = tp->mss_cache,
		.una = tp->snd_una,
		.nxt = tp->snd_nxt,
		.limited = window_limited(tp, s),
		.unsent = tp->write_seq != tp->snd_nxt,
	};
	if (!turn_waits(s, &view))
		return 0;
	w = walking_window(s, tp);
	turn_window(s, &w);
	w.ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
	take_walking_window(s, tp, &w);
	return 1;
}

SEC("struct_ops")
void BPF_PROG(tide_acked_on, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_weight weight;
	struct law_window w;
	u32 listened;

	if (!s)
		return;
	if (!s->begun) {	/* not before there are sequence numbers */
		w = window_of(s, tp);
		tide_begin(&s->tide, PARAMETERS, &w, tp->snd_nxt);
		tide_choose_hint(s);
		take_window(s, tp, &w);
		s->begun = 1;
	}
	if (ssthresh_missed(s, tp)) {
		tp->snd_ssthresh = tide_answer(s, tp);
		TRACE(tide_trace, s, tp, LT_TRACE_MISSED);
	}
	mend_window(s, tp);
	tide_note(s, tp, sample);
	if (!controller_alive(clock_ns(tp))) {
		pace(sk, s, PACING_NONE);
		return;
	}
	if (tide_waits(s, tp)) {
		pace_within(sk, s, turn_pacing(s, tp, PARAMETERS), TIDE_PACE_PART);
		return;
	}
	weight = weight_on(s);
	w = walking_window(s, tp);
	listened = s->tide.listens;
	tide_sample(&s->tide, PARAMETERS, &s->ack);
	tide_ack(&s->tide, PARAMETERS, &weight, &w, &s->ack);
	take_walking_window(s, tp, &w);
	tide_tell(s);
	if (s->tide.listens && !listened) {
		count(delay_backoffs, 1);
		TRACE(tide_trace, s, tp, LT_TRACE_BACKOFF);
	}
	TRACE_ACK(tide_trace, s, tp, s->ack.rtt_us, true);
	pace_within(sk, s, tide_pacing(s, tp), tide_looks_closer(&s->tide) ? TIDE_PACE_EXACTLY : TIDE_PACE_PART);
}

/* The window has been set already, but for a socket that nobody governs any more. */
SEC("struct_ops")
void BPF_PROG(tide_avoid_on, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (s && s->begun && !controller_alive(clock_ns(tp)) && window_limited(tp, s))
		reno(tp, s, acked);
}

SEC("struct_ops")
u32 BPF_PROG(tide_ssthresh_on, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	return s ? tide_answer(s, tp) : at_least(tp->snd_cwnd >> 1, WINDOW_MIN_SEGMENTS);
}

SEC("struct_ops")
void BPF_PROG(tide_state_on, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	u32 before = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	struct law_window w;

	if (!s || !s->begun)
		return;
	if (state == TCP_CA_LOSS) {
		get_past_empty_segment(tp);
		tide_timed_out(&s->tide, tp->tcp_mstamp, tp->snd_nxt);
		TRACE(tide_trace, s, tp, LT_TRACE_TIMEOUT);
	}
	if (before >= TCP_CA_CWR && state < TCP_CA_CWR) {
		w = window_of(s, tp);
		tide_recovered(&s->tide, &w, tp->snd_nxt);
		turn_window(s, &w);
		w.ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
		take_window(s, tp, &w);
		TRACE(tide_trace, s, tp, LT_TRACE_RECOVERED);
	}
}

/*
 * Where it fills the link an idle time is one whatever the stack thinks (tcp_slow_start_after_idle), and is over with the first segment: what the
 * stack does of its own is done by then. The program had nothing to send: it was not the pace, or another connection's turn.
 */
static inline bool tide_was_idle(const struct lt_socket *s, const struct tcp_sock *tp, u64 idle)
{
	return idle >= rto_us(tp) && tp->app_limited && !s->turn.waits && !s->turn.claims &&
	       BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) < TCP_CA_RECOVERY;
}

SEC("struct_ops")
void BPF_PROG(tide_event_on, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_window w;
	u64 idle;

	if (!s || !s->begun || event != (s->tide.listens ? CA_EVENT_CWND_RESTART : CA_EVENT_TX_START) || !controller_alive(clock_ns(tp)))
		return;
	idle = idle_us(s);
	if (!s->tide.listens && !tide_was_idle(s, tp, idle))
		return;
	w = window_of(s, tp);
	tide_restart(&s->tide, &w, tp->snd_nxt, idle);
	turn_window(s, &w);
	take_window(s, tp, &w);
	TRACE(tide_trace, s, tp, LT_TRACE_RESTART);
}

SEC("struct_ops")
u32 BPF_PROG(tide_undo_on, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_window w;

	if (!s || !s->begun)
		return at_least(tp->snd_cwnd, tp->prior_cwnd);
	w = walking_window(s, tp);
	tide_undone(&s->tide, &w);
	turn_window(s, &w);
	s->window_q16 = w.cwnd_q16;
	TRACE(tide_trace, s, tp, LT_TRACE_UNDONE);
	return at_least(tp->snd_cwnd, budget_cwnd(w.cwnd_q16));
}

SEC("struct_ops")
u32 BPF_PROG(tide_burst_on, struct sock *sk)
{
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	u32 burst;

	if (!s)
		return 2;
	if (s->turn.waits)
		return 1;
	burst = tide_least_burst(&s->tide);
	keep_together(sk, s, tcp_sk(sk), burst);
	return burst;
}

/* The controller puts the transfer's own name here before loading. */
SEC(".struct_ops.link")
struct tcp_congestion_ops lt_tide = {
	.init = (void *)tide_begin_on,
	.ssthresh = (void *)tide_ssthresh_on,
	.cong_avoid = (void *)tide_avoid_on,
	.pkts_acked = (void *)tide_acked_on,
	.set_state = (void *)tide_state_on,
	.cwnd_event = (void *)tide_event_on,
	.undo_cwnd = (void *)tide_undo_on,
	.min_tso_segs = (void *)tide_burst_on,
	.name = "lt_tide",
};

#endif
