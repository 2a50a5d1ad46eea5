/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One window law as a TCP congestion control of the kernel. window_laws.h includes this for each law, with its name in
 * LAW.
 */

static __noinline void OF_LAW(trace)(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	struct law_weight weight = weight_on(s);
	struct lt_trace_record *r = trace_record(s, tp, event);

	if (!r)
		return;
	r->values_count = OF_LAW(inspect)(&s->LAW, PARAMETERS, &weight, r->values);
	bpf_ringbuf_submit(r, 0);
}

/*
 * A function has five arguments at the most: since Linux 7 those that the compiler has taken out count, too. It has a
 * result, as the verifier takes what is left in that register for one, and refuses an address of the stack.
 */
static NOT_INLINE u64 OF_LAW(cut)(struct lt_socket *s, struct law_window *w, u32 signal)
{
	struct law_weight weight = weight_on(s);

	IN_PLACE OF_LAW(reduce)(&s->LAW, PARAMETERS, &weight, w, signal, bpf_get_prandom_u32());
	return w->cwnd_q16;
}

static inline u32 OF_LAW(answer)(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_window w = window_of(s, tp);
	u32 signal = s->signal, event = reduction_event(signal, tp), answer;

	s->signal = SIGNAL_NONE;
	if (!s->begun || !controller_alive(clock_ns(tp)))
		w.cwnd_q16 = at_least(w.cwnd_q16 / 2, WINDOW_MIN_Q16);
	else if (signal == SIGNAL_LAW)
		w.cwnd_q16 = s->target_q16;
	else
		w.cwnd_q16 = OF_LAW(cut)(s, &w, law_signal(signal, tp));
#ifdef LAW_OF_MARKS
	if (signal == SIGNAL_LAW && tp->lost_out)
		w.cwnd_q16 = OF_LAW(cut)(s, &w, LAW_LOSS);
#endif
	answer = reduced_to(s, &w);
	TRACE(OF_LAW(trace), s, tp, event);
	return answer;
}

SEC("struct_ops")
void LAW_PROG(begin_on, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!s)
		return;
	begin_socket(s, tp);
#ifdef LAW_OF_MARKS
	s->noted_delivered = tp->delivered;
	s->noted_ce = tp->delivered_ce;
	s->received_ce = 0;
	s->received_to = tp->rcv_nxt;
	leaves_for_lack_of_ecn(sk, tp, s);
#endif
}

SEC("struct_ops")
void LAW_PROG(acked_on, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_window w;

	if (!s)
		return;
	trace_owner(&s->traced, sk);
	if (!s->begun) {	/* only now sequence numbers are valid */
		w = window_of(s, tp);
		OF_LAW(begin)(&s->LAW, PARAMETERS, &w, tp->snd_nxt);
		take_window(s, tp, &w);
		s->begun = 1;
	}
	if (ssthresh_missed(s, tp)) {
		tp->snd_ssthresh = OF_LAW(answer)(s, tp);
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_MISSED);
	}
	mend_window(s, tp);
	note_ack(s, tp, sample);
#ifndef LAW_OF_MARKS	/* marks are not known yet */
	OF_LAW(sample)(&s->LAW, PARAMETERS, &s->ack);
#endif
	TRACE_ACK(OF_LAW(trace), s, tp, s->ack.rtt_us, law_skips_ack(tp));
	if (controller_alive(clock_ns(tp)))
		pace(sk, s, budget_pacing(s->window_q16, tp->mss_cache, srtt_us(tp)));
}

/* The law acts on an ACK. */
static inline void OF_LAW(acts)(struct lt_socket *s, struct tcp_sock *tp)
{
	struct law_weight weight = weight_on(s);
	struct law_window w = window_after_episode(s, tp);

	if (OF_LAW(ack)(&s->LAW, PARAMETERS, &weight, &w, &s->ack)) {
		count(delay_backoffs, 1);
		/* an episode begins with the next segment */
		if (s->window_q16 >= PACED_BELOW_Q16 && !in_episode(tp) && !setup.whole_machine) {
			s->target_q16 = w.cwnd_q16;
			s->signal = SIGNAL_LAW;
			return;
		}
		take_window_after_episode(s, tp, &w);
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_BACKOFF);
		return;
	}
	take_window_after_episode(s, tp, &w);
}

SEC("struct_ops")
void LAW_PROG(avoid_on, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (!s || !s->begun)
		return;
	if (!controller_alive(clock_ns(tp))) {
		let_go(tp, s);
		pace(sk, s, PACING_NONE);
		if (window_limited(tp, s))
			reno(tp, s, acked);
		return;
	}
	s->let_go = 0;
#ifndef LAW_OF_MARKS
	s->ack.packets = acked;
	s->ack.window_limited = window_limited(tp, s);
	OF_LAW(acts)(s, tp);
	TRACE_ACK(OF_LAW(trace), s, tp, 0, true);
#endif
}

#ifdef LAW_OF_MARKS
/* After an ACK has been counted, before it begins or ends an episode. */
SEC("struct_ops")
void LAW_PROG(counted_on, struct sock *sk, u32 flags)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (!s || !s->begun)
		return;
	note_delivery(s, tp);
	OF_LAW(sample)(&s->LAW, PARAMETERS, &s->ack);
	if (controller_alive(clock_ns(tp)))
		OF_LAW(acts)(s, tp);
	TRACE_ACK(OF_LAW(trace), s, tp, 0, true);
	s->ack.rtt_us = 0;	/* not every ACK has one */
}
#endif

SEC("struct_ops")
u32 LAW_PROG(ssthresh_on, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	return s ? OF_LAW(answer)(s, tp) : at_least(tp->snd_cwnd >> 1, WINDOW_MIN_SEGMENTS);
}

#ifdef LAW_OF_MARKS
/* A loss in an episode that marks began. */
static inline void OF_LAW(lose)(struct lt_socket *s, struct tcp_sock *tp)
{
	struct law_window w = window_after_episode(s, tp);

	w.cwnd_q16 = OF_LAW(cut)(s, &w, LAW_LOSS);
	take_window_after_episode(s, tp, &w);
	TRACE(OF_LAW(trace), s, tp, LT_TRACE_LOSS);
}
#endif

SEC("struct_ops")
void LAW_PROG(state_on, struct sock *sk, u8 state)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	u32 before = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);
	struct law_window w;

	if (!s || !s->begun)
		return;
#ifdef LAW_OF_MARKS
	/* from other states the stack has asked for ssthresh */
	if (state == TCP_CA_RECOVERY && before == TCP_CA_CWR)
		OF_LAW(lose)(s, tp);
	if (state == TCP_CA_LOSS)
		OF_LAW(answered)(&s->LAW);
#else
	if (state >= TCP_CA_RECOVERY)
		OF_LAW(answered)(&s->LAW);
#endif
#ifdef LAW_OF_TIMEOUTS
	if (state == TCP_CA_LOSS)
		OF_LAW(timed_out)(&s->LAW);
#endif
	if (state == TCP_CA_LOSS)
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_TIMEOUT);
	if (before >= TCP_CA_CWR && state < TCP_CA_CWR) {
		w = window_of(s, tp);
		OF_LAW(recovered)(&s->LAW, &w, tp->snd_nxt);
		take_window(s, tp, &w);
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_RECOVERED);
	}
}

SEC("struct_ops")
void LAW_PROG(event_on, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_window w;

#ifdef LAW_OF_MARKS
	if (event == CA_EVENT_ECN_IS_CE || event == CA_EVENT_ECN_NO_CE)
		echo_marks(sk, event == CA_EVENT_ECN_IS_CE);
#endif
	if (!s || !s->begun || event != CA_EVENT_CWND_RESTART)
		return;
	w = window_of(s, tp);
	OF_LAW(restart)(&s->LAW, &w, tp->snd_nxt, idle_us(s));
	TRACE(OF_LAW(trace), s, tp, LT_TRACE_RESTART);
}

SEC("struct_ops")
u32 LAW_PROG(undo_on, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

#ifdef LAW_OF_MARKS
	struct law_window w;

	if (s && s->begun) {
		w = window_after_episode(s, tp);
		OF_LAW(undone)(&s->LAW, &w);
		s->window_q16 = w.cwnd_q16;
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_UNDONE);
		return at_least(tp->snd_cwnd, budget_cwnd(w.cwnd_q16));
	}
#else
	if (s && s->begun) {
		OF_LAW(undone)(&s->LAW);
		TRACE(OF_LAW(trace), s, tp, LT_TRACE_UNDONE);
	}
#endif
	return at_least(tp->snd_cwnd, tp->prior_cwnd);
}

/* The controller puts the transfer's own name here before loading. */
SEC(".struct_ops.link")
struct tcp_congestion_ops LAW_OPS = {
	.init = (void *)OF_LAW(begin_on),
	.ssthresh = (void *)OF_LAW(ssthresh_on),
	.cong_avoid = (void *)OF_LAW(avoid_on),
	.pkts_acked = (void *)OF_LAW(acked_on),
	.set_state = (void *)OF_LAW(state_on),
	.cwnd_event = (void *)OF_LAW(event_on),
	.undo_cwnd = (void *)OF_LAW(undo_on),
#ifdef LAW_OF_MARKS
	.in_ack_event = (void *)OF_LAW(counted_on),
	.flags = TCP_CONG_NEEDS_ECN,
#endif
	.name = "lt_" LAW_STRING(LAW),
};

#undef LAW
