/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tide (law/tide.h) as a TCP congestion control of the kernel. It differs from the laws of window_ops.h: the
 * connections of a transfer over one path are one flow to it (flows.h). It acts at every ACK, in reduction episodes
 * too, in which the stack moves its window itself. Most losses leave the window as it is. It sets its own pace, and
 * how many segments leave at once.
 */
#ifndef LOWTIDE_TIDE_OPS_H
#define LOWTIDE_TIDE_OPS_H

#include "window_ops.h"
#include "burst_pacing.h"
#include "flows.h"

VERIFIED_APART u32 tide_values(const struct lt_flow *f, const struct lt_socket *s, struct lt_trace_record *r)
{
	struct law_weight weight;

	if (!f || !s || !r)
		return 0;
	weight = weight_on(s);
	return tide_inspect(&f->tide, PARAMETERS, &weight, r->values);
}

static __noinline void tide_trace(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	struct lt_trace_record *r = trace_record(s, tp, event);

	if (!r)
		return;
	r->values_count = tide_values(flow_of(s), s, r);
	bpf_ringbuf_submit(r, 0);
}

#define UNPACED_SEGMENTS 10	/* Linux paces a connection only after these */
#define TIDE_PACE_PART 64	/* changes of the pace by less than 1/64 are not applied */
#define TIDE_PACE_EXACTLY (1U << 31)	/* check probes: their distance differs by less than that */

/* The flow's window, which the stack does not change. */
static inline struct law_window tide_window_at(const struct lt_flow *f, u64 now_us)
{
	struct law_window w = { .cwnd_q16 = f->tide.shown_q16, .least_q16 = WINDOW_MIN_Q16, .ssthresh_q16 = LAW_NO_THRESHOLD_Q16 };

	w.nxt = now_us;
	return w;
}

static inline struct law_window tide_window(const struct lt_flow *f, const struct tcp_sock *tp)
{
	return tide_window_at(f, tp->tcp_mstamp);
}

static inline u64 tide_part_of_window(const struct lt_socket *s)
{
	return s->member.waits ? PACED_BELOW_Q16 : s->member.part.grant_q16;
}

/* Sets the stack's window to the connection's part of the flow's window. */
static inline void tide_take(const struct lt_flow *f, struct lt_socket *s, struct tcp_sock *tp)
{
	struct law_window w = { .cwnd_q16 = tide_part_of_window(s), .ssthresh_q16 = LAW_NO_THRESHOLD_Q16 };

	take_window_after_episode(s, tp, &w);
	if (in_episode(tp))
		return;
	if (s->member.waits)	/* one segment at a time: when it leaves, the connection may take the token */
		tp->snd_cwnd = 1;
	/* nothing paces the first segments; a probe's window is whole segments */
	else if (tp->data_segs_out < UNPACED_SEGMENTS || flow_probes(f))
		tp->snd_cwnd = at_most(tp->snd_cwnd, at_least(w.cwnd_q16 >> 16, 1));
}

/* The weight of the transfer that presses. */
static __always_inline struct law_weight flow_weight(const struct lt_flow *f, const struct lt_socket *s)
{
	struct law_weight weight = weight_on(s);

	weight.weight_q16 = f->weight_q16;
	return weight;
}

/* Congestion. The flow's window is reduced if the loss is news to it, and with it the connection's part. */
static __noinline void tide_congested(struct lt_flow *f, struct lt_socket *s, const struct tcp_sock *tp, u32 signal)
{
	struct law_weight weight = flow_weight(f, s);
	struct law_window w = tide_window(f, tp);
	u64 before = w.cwnd_q16;

	s->member.owes = 0;
	if (aggregate_others_want(&f->all, &s->member.part) && !aggregate_loses_anew(&f->all, tp->tcp_mstamp))
		return;
	f->all.reduced_us = tp->tcp_mstamp;
	tide_reduce(&f->tide, PARAMETERS, &weight, &w, signal, 0);
	aggregate_scale(&f->all, &s->member.part, before, w.cwnd_q16);
}

static inline u32 tide_answer(struct lt_socket *s, const struct tcp_sock *tp)
{
	u32 signal = s->signal, event = reduction_event(signal, tp), answer;
	struct law_window w = window_after_episode(s, tp);
	struct lt_flow *f;

	s->signal = SIGNAL_NONE;
	if (!s->begun || !controller_alive(clock_ns(tp))) {
		w.cwnd_q16 = at_least(w.cwnd_q16 / 2, WINDOW_MIN_Q16);
	} else {
		f = flow_of(s);
		if (flow_enter(f, clock_ns(tp))) {
			tide_congested(f, s, tp, law_signal(signal, tp));
			flow_exit(f);
		} else {
			s->member.owes = 1;
		}
		w.cwnd_q16 = tide_part_of_window(s);
	}
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
	s->noted_delivered = tp->delivered;
	s->lost = tp->lost;
	flow_begin(s, &sk->__sk_common);
}

SEC("struct_ops")
void BPF_PROG(tide_release_on, struct sock *sk)
{
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (s)
		flow_leave(s);
}

#define TIDE_LONGEST_ACKS 64	/* ACKs in which `longest` falls to about a third, at most */
#define TIDE_SHORT_Q4 15	/* a segment below 15/16 of `longest` is short */

/*
 * Whether this ACK is for shorter segments than most. They take less time on the link, and would make the base RTT too
 * short: on 5 Mbit/s by up to 2.4 ms, which is as much as the queue that a good probe may find.
 */
static inline bool tide_is_short(struct lt_socket *s, u32 mss)
{
	u32 length = s->ack.bytes / at_least(s->ack.packets, 1), longest = s->member.longest ?: mss;

	s->member.longest = at_least(longest - longest / TIDE_LONGEST_ACKS, length);
	return length * 16 < s->member.longest * TIDE_SHORT_Q4;
}

/* Payload that this ACK has newly told of. With SACK blocks `bytes_acked` is behind, and jumps as a hole is filled. */
static inline u32 tide_payload(const struct lt_socket *s, const struct tcp_sock *tp)
{
	u64 most = (u64)s->ack.packets * tp->mss_cache;

	return tp->sacked_out ? most : at_most(tp->bytes_acked - s->member.acked, most);
}

/* Notes what an ACK says of this connection. */
static inline void tide_note(struct lt_socket *s, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	note_ack(s, tp, sample);
	note_delivery(s, tp);
	s->ack.lost = tp->lost - s->lost;
	s->lost = tp->lost;
	/* the delivery rate as of the ACK before: the stack computes that of this ACK after pkts_acked */
	s->ack.rate_delivered = tp->rate_delivered;
	s->ack.rate_interval_us = tp->rate_interval_us;
	s->ack.rate_app_limited = BPF_CORE_READ_BITFIELD(tp, rate_app_limited);
	s->ack.app_limited = tp->app_limited != 0;
	s->ack.bytes = tide_payload(s, tp);
	/* SACK blocks do not tell the length: a short segment is at the end of what a program has written */
	if (tp->sacked_out ? tp->write_seq == tp->snd_nxt : tide_is_short(s, tp->mss_cache))
		s->ack.rtt_us = 0;
	s->member.acked = tp->bytes_acked;
}

/* The law acts on an ACK. 1: FILL ends. */
VERIFIED_APART u32 tide_law_acts(struct lt_flow *f, struct lt_socket *s)
{
	struct law_weight weight;
	struct law_window w;
	u32 listened;

	if (!f || !s)
		return 0;
	weight = flow_weight(f, s);
	w = tide_window_at(f, s->ack.now_us);
	listened = f->tide.listens;
	aggregate_ack(&f->all, &s->ack, s->member.number);
	tide_sample(&f->tide, PARAMETERS, &s->ack);
	tide_ack(&f->tide, PARAMETERS, &weight, &w, &s->ack);
	return f->tide.listens && !listened;
}

/* The connection's part of the window after its ACK. `waited`: it waited for the token before that. */
VERIFIED_APART u32 tide_divide(struct lt_flow *f, struct lt_socket *s, u32 use, bool waited, bool has_data)
{
	struct aggregate_member *part;

	if (!f || !s)
		return 0;
	part = &s->member.part;
	if (flow_probes(f)) {
		part->grant_q16 = f->tide.shown_q16;
		aggregate_count(&f->all, part, 0, has_data ? AGGREGATE_WANTS : AGGREGATE_MODEST);
	} else if (!s->member.waits) {
		aggregate_grant(&f->all, part, f->tide.shown_q16, waited ? 0 : s->ack.packets, use);
		if (use == AGGREGATE_YIELDS && part->grant_q16 < PACED_BELOW_Q16)
			flow_waits(f, s, 1);
	}
	if (s->member.waits)
		aggregate_leave(&f->all, part);
	return 0;
}

/* The flow's part in an ACK: the law, the token, and the window of the connection. */
static __noinline void tide_flow_ack(struct lt_flow *f, struct lt_socket *s, struct tcp_sock *tp, const struct ack_sample *sample)
{
	struct aggregate_member *part = &s->member.part;
	bool limited, has_data = tp->write_seq != tp->snd_nxt, probes, waited;
	u32 use;

	tide_note(s, tp, sample);
	flow_press(f, s, clock_ns(tp));
	/* without further data it counts as 0: the others are paced, and send no faster than these data arrive */
	part->in_flight = has_data ? s->ack.in_flight : 0;
	limited = s->ack.window_limited;
	if (!f->begun)
		tide_starts(f, PARAMETERS, s->ack.now_us, srtt_us(tp));
	if (s->member.owes)
		tide_congested(f, s, tp, LAW_LOSS);
	probes = flow_probes(f);
	s->ack.window_limited = limited && (probes || aggregate_is_full(&f->all, f->tide.shown_q16));
	waited = s->member.waits;
	use = flow_use_of_grant(f, s, probes || waited ? has_data : limited, !has_data, clock_ns(tp));
	if (waited || s->member.waits) {	/* the ACK of a single segment may be delayed */
		f->all.delivered += s->ack.bytes;
	} else if (tide_law_acts(f, s)) {
		count(delay_backoffs, 1);
		TRACE(tide_trace, s, tp, LT_TRACE_BACKOFF);
	}
	tide_divide(f, s, use, waited, has_data);
	if (!limited && tp->app_limited)
		aggregate_has_no_data(&f->all, s->ack.mss);
	tide_take(f, s, tp);
}

/*
 * A socket without a pace of Lowtide is not to be paced by the stack, which would not end that itself. The qdisc fq has
 * its own status.
 */
static inline void tide_set_pacing_status(struct sock *sk, const struct lt_socket *s)
{
	if (sk->sk_pacing_status == SK_PACING_NEEDED && s->pacing == PACING_UNLIMITED)
		sk->sk_pacing_status = SK_PACING_NONE;
	else if (sk->sk_pacing_status == SK_PACING_NONE && s->pacing && s->pacing != PACING_UNLIMITED)
		sk->sk_pacing_status = SK_PACING_NEEDED;
}

/* The connection's present pace, bytes per second. */
VERIFIED_APART u32 tide_pace_of(const struct lt_flow *f, const struct lt_socket *s, u32 mss)
{
	if (!f || !s)
		return 0;
	if (s->member.waits)
		return flow_waiting_pace(f, s->member.number, mss);
	if (flow_probes(f))
		return flow_pace(f, PARAMETERS);
	return flow_part_pace(f, s, PARAMETERS, mss);
}

SEC("struct_ops")
void BPF_PROG(tide_acked_on, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct lt_flow *f;
	bool exactly;

	if (!s)
		return;
	trace_owner(&s->traced, sk);
	s->begun = 1;	/* sequence numbers are valid */
	if (ssthresh_missed(s, tp)) {
		tp->snd_ssthresh = tide_answer(s, tp);
		TRACE(tide_trace, s, tp, LT_TRACE_MISSED);
	}
	mend_window(s, tp);
	if (!controller_alive(clock_ns(tp))) {
		if (!s->let_go)	/* others of its group may share the flow */
			flow_leave(s);
		let_go(tp, s);
		pace(sk, s, PACING_NONE);
		return;
	}
	s->let_go = 0;
	flow_choose(s);
	f = flow_of(s);
	if (!flow_enter(f, clock_ns(tp)))
		return;
	tide_flow_ack(f, s, tp, sample);
	flow_exit(f);
	TRACE_ACK(tide_trace, s, tp, s->ack.rtt_us, true);
	exactly = !s->member.waits && tide_paces_exactly(&f->tide);
	pace_within(sk, s, tide_pace_of(f, s, tp->mss_cache), exactly ? TIDE_PACE_EXACTLY : TIDE_PACE_PART);
	tide_set_pacing_status(sk, s);
}

/* The window is set already, but for a socket without a live controller. */
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
	struct lt_flow *f;

	if (!s || !s->begun)
		return;
	if (state == TCP_CA_LOSS)
		get_past_empty_segment(tp);
	if (!controller_alive(clock_ns(tp)))
		return;
	f = flow_of(s);
	if (state == TCP_CA_LOSS) {
		/*
		 * One of several connections may lose its last segments. While others are acknowledged that is a loss.
		 */
		if ((!aggregate_others_want(&f->all, &s->member.part) || tp->tcp_mstamp - f->all.acked_us >= rto_us(tp)) &&
		    flow_enter(f, clock_ns(tp))) {
			tide_timed_out(&f->tide, tp->tcp_mstamp, tp->tcp_mstamp);
			flow_exit(f);
		}
		TRACE(tide_trace, s, tp, LT_TRACE_TIMEOUT);
	}
	if (before >= TCP_CA_CWR && state < TCP_CA_CWR) {
		f->tide.before_q16 = 0;
		tide_take(f, s, tp);
		TRACE(tide_trace, s, tp, LT_TRACE_RECOVERED);
	}
}

/*
 * The path is idle if no connection had anything to send for an RTO. A connection may also be without data in flight
 * because it is paced. Detect idle restarts here: tcp_slow_start_after_idle may be off.
 */
static inline void tide_resumes(struct lt_flow *f, const struct tcp_sock *tp, u64 now_us)
{
	u64 latest_us = at_least(f->all.acked_us, f->all.started_us), idle_us = now_us - at_most(latest_us, now_us);
	struct law_window w = tide_window(f, tp);

	f->all.started_us = now_us;
	if (idle_us >= rto_us(tp)) {
		w.cwnd_q16 = at_most(w.cwnd_q16, LAW_INITIAL_WINDOW * Q16_ONE);
		tide_restart(&f->tide, &w, now_us, idle_us);
	}
}

/*
 * A segment leaves a connection with none in flight: one that was idle, or that waits. It may take the token with it,
 * before the stack computes how long the next segment has to wait.
 */
static __noinline void tide_leaves(struct lt_flow *f, struct lt_socket *s, struct tcp_sock *tp, bool resumes)
{
	bool has_data = tp->write_seq - tp->snd_nxt > tp->mss_cache;
	u32 use;

	if (resumes)
		tide_resumes(f, tp, bpf_ktime_get_ns() / NSEC_PER_USEC);
	flow_press(f, s, clock_ns(tp));
	use = flow_sends(f, s, has_data, clock_ns(tp));
	if (s->member.waits) {
		f->all.beside++;
	} else if (flow_probes(f)) {
		s->member.part.grant_q16 = f->tide.shown_q16;
	} else {
		aggregate_grant(&f->all, &s->member.part, f->tide.shown_q16, 0, use);
	}
	tide_take(f, s, tp);
}

/* Pairs if the grant is a pace; single segments among the packets of other connections. */
static inline u32 tide_burst(const struct lt_flow *f, const struct lt_socket *s)
{
	if (s->member.waits)
		return 1;
	if (!flow_probes(f) && s->member.part.grant_q16 < PACED_BELOW_Q16)
		return 2;
	if (f->tide.senders > 1 && !f->tide.listens && !tide_is_ordinary(&f->tide))
		return 1;
	return tide_least_burst(&f->tide);
}

SEC("struct_ops")
void BPF_PROG(tide_event_on, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct lt_flow *f;
	bool resumes;

	if (!s || !s->begun || event != CA_EVENT_TX_START || !controller_alive(clock_ns(tp)) ||
	    BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) >= TCP_CA_RECOVERY)
		return;
	resumes = tp->app_limited && idle_us(s) >= rto_us(tp);
	f = flow_of(s);
	if (!f->begun || !flow_enter(f, clock_ns(tp)))
		return;
	tide_leaves(f, s, tp, resumes);
	flow_exit(f);
	if (resumes)
		TRACE(tide_trace, s, tp, LT_TRACE_RESTART);
	pace_within(sk, s, tide_pace_of(f, s, tp->mss_cache), TIDE_PACE_PART);
	tide_set_pacing_status(sk, s);
	sk->sk_pacing_rate = s->pacing;	/* for this segment: the stack raises its rate at the next ACK only */
	keep_together(sk, s, tp, tide_burst(f, s));	/* the stack asked for min_tso_segs before this event */
}

SEC("struct_ops")
u32 BPF_PROG(tide_undo_on, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	struct law_window w;
	struct lt_flow *f;
	u64 before;

	if (!s || !s->begun || !controller_alive(clock_ns(tp)))
		return at_least(tp->snd_cwnd, tp->prior_cwnd);
	f = flow_of(s);
	if (flow_enter(f, clock_ns(tp))) {
		w = tide_window(f, tp);
		before = w.cwnd_q16;
		tide_undone(&f->tide, &w);
		aggregate_scale(&f->all, &s->member.part, before, w.cwnd_q16);
		flow_exit(f);
	}
	s->window_q16 = tide_part_of_window(s);
	TRACE(tide_trace, s, tp, LT_TRACE_UNDONE);
	return at_least(tp->snd_cwnd, budget_cwnd(s->window_q16));
}

SEC("struct_ops")
u32 BPF_PROG(tide_burst_on, struct sock *sk)
{
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	u32 burst;

	if (!s)
		return 2;
	burst = tide_burst(flow_of(s), s);
	keep_together(sk, s, tcp_sk(sk), burst);
	return burst;
}

/* The controller puts the transfer's own name here before loading. */
SEC(".struct_ops.link")
struct tcp_congestion_ops lt_tide = {
	.init = (void *)tide_begin_on,
	.release = (void *)tide_release_on,
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
