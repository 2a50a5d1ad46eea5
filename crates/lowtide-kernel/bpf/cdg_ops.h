/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * lt_cdg: CDG as a TCP congestion control of the kernel. law/cdg.h decides, this file connects it. A delay back-off has
 * to become a window-reduction episode (CWR), and there is no kfunc for that. So the law leaves a signal in the
 * socket's record, and the egress program (egress.h) passes it to the stack with the next segment. The stack then calls
 * ssthresh() for the target.
 */
#ifndef LOWTIDE_CDG_OPS_H
#define LOWTIDE_CDG_OPS_H

#include "state.h"
#include "tcp.h"

#define CDG_PARAMETERS ((const struct cdg_parameters *)law_parameters)

static __noinline void trace_cdg(struct lt_socket *s, const struct tcp_sock *tp, u32 event)
{
	struct lt_trace_record *r = trace_record(s, tp, event);

	if (!r)
		return;
	r->values_count = cdg_inspect(&s->cdg, CDG_PARAMETERS->window, s->hazard_q16, r->values);
	bpf_ringbuf_submit(r, 0);
}

/* The threshold with its fraction, unless the stack has changed it. */
static inline u64 cdg_ssthresh_q16(const struct lt_socket *s, const struct tcp_sock *tp)
{
	return s->ssthresh == tp->snd_ssthresh ? s->ssthresh_q16 : (u64)tp->snd_ssthresh << 16;
}

static inline u32 answer(struct lt_socket *s, u64 ssthresh_q16)
{
	s->ssthresh_q16 = ssthresh_q16;
	return s->ssthresh = budget_cwnd(ssthresh_q16);
}

static inline u32 reduction(struct lt_socket *s, const struct tcp_sock *tp, u64 now)
{
	u32 signal = s->signal, n = sharing_sockets();
	u64 kept = pressure_on(s)->kept_q16, left;

	s->signal = SIGNAL_NONE;
	if (!controller_alive(now))
		return answer(s, (u64)tp->snd_cwnd << 15);
	resync_window(s, tp);

	if (signal == SIGNAL_DELAY || signal == SIGNAL_GROUP_DELAY) {
		left = cdg_cut_by_delay(&s->cdg, CDG_PARAMETERS, s->window_q16, kept, n);
		remember_reduction(s, true);
		count(delay_backoffs, signal == SIGNAL_DELAY);
	} else {
		if (signal == SIGNAL_NONE) {	/* a real loss or ECN */
			if (!announce_reduction(s, SIGNAL_GROUP_LOSS, srtt_us(tp), now) && s->taken == group.epoch)
				return answer(s, s->window_q16);	/* reduced already, with the other sockets */
			s->epoch = group.epoch;
			if (cdg_excuses(&s->cdg, CDG_PARAMETERS, !tp->lost_out))
				return answer(s, s->window_q16);
			remember_reduction(s, false);
		}
		left = cdg_cut_by_congestion(&s->cdg, CDG_PARAMETERS, s->window_q16, kept, n, signal == SIGNAL_NONE && tp->lost_out);
	}
	s->taken = s->epoch;
	if (s->window_q16 > left)
		s->window_q16 = left;
	return answer(s, left);
}

/*
 * The target of a reduction. The stack calls for it at the start of every episode, after a loss or a signal of Lowtide.
 */
static inline u32 reduce(struct lt_socket *s, const struct tcp_sock *tp, u64 now)
{
	u32 event = reduction_event(s->signal, tp), ssthresh = reduction(s, tp, now);

	TRACE(trace_cdg, s, tp, event);
	return ssthresh;
}

/*
 * A reduction that the law decides. A window is reduced in an episode of the stack (CWR), which begins with the signal
 * in the next segment. A paced share needs no episode, since its cwnd stays. It learns of the group's reductions only
 * every few RTTs, so it makes up for all that it has missed.
 */
static inline void begin_reduction(struct lt_socket *s, struct tcp_sock *tp, u32 signal, u32 missed, u64 now)
{
	u64 ssthresh_q16 = s->ssthresh_q16;
	u32 ssthresh = s->ssthresh;

	s->signal = signal;
	if (s->window_q16 >= PACED_BELOW_Q16) {
		if (setup.whole_machine) {	/* no program turns the signal into an episode */
			tp->snd_ssthresh = reduce(s, tp, now);
			tp->snd_cwnd = at_least(tp->snd_ssthresh, 1);
		}
		return;
	}
	if (missed > 8)
		missed = 8;
	for (u32 i = 0; i < missed; i++) {
		s->signal = signal;
		reduce(s, tp, now);
	}
	s->ssthresh = ssthresh;	/* the stack did not get it */
	s->ssthresh_q16 = ssthresh_q16;
}

SEC("struct_ops")
void BPF_PROG(cdg_init, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!s)
		return;
	cdg_reset(&s->cdg, (u64)tp->snd_cwnd << 16);
	if (!s->joins)	/* an accepted socket is established before init is called */
		s->window_q16 = (u64)tp->snd_cwnd << 16;
	s->round_end = tp->snd_nxt;
	s->epoch = s->taken = group.epoch;
	s->history = HISTORY_MASK;
	s->signal = SIGNAL_NONE;
}

/* The gradient sum of this connection's round if this ACK ends it, else 0. */
static inline u64 own_round(struct lt_socket *s, const struct tcp_sock *tp, u32 ack)
{
	struct cdg *c = &s->cdg;

	if (!seq_after(ack, s->round_end) || !c->cur.min)
		return 0;
	s->round_end = tp->snd_nxt;
	s->hazard_q16 = 0;
	return cdg_end_round(c, CDG_PARAMETERS, cdg_in_slow_start(CDG_PARAMETERS, s->window_q16, cdg_ssthresh_q16(s, tp)),
			     queue_is_empty(c->cur.min, c->delay_min_us, CDG_PARAMETERS->floor_us));
}

/*
 * The gradient sum of the transfer's round if it is over, else 0. The first socket after its end ends it. Own rounds of
 * a small share would be too long, with too few samples. Other processors may add a sample meanwhile; at worst that one
 * is lost.
 */
static inline u64 group_round(const struct lt_socket *s, u32 srtt_us, u64 now)
{
	struct cdg *c = &group.cdg;
	u64 end = group.round_end_ns;
	u32 base = s->cdg.delay_min_us;

	if (now < end || !c->cur.min ||
	    __sync_val_compare_and_swap(&group.round_end_ns, end, now + srtt_us * NSEC_PER_USEC) != end)
		return 0;
	if (group.fresh) {
		group.fresh = 0;
		cdg_next_round(c);
		return 0;
	}
	return cdg_end_round(c, CDG_PARAMETERS, false, queue_is_empty(base + c->cur.min - 1, base, CDG_PARAMETERS->floor_us));
}

SEC("struct_ops")
void BPF_PROG(cdg_cong_avoid, struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	const struct cdg_parameters *p = CDG_PARAMETERS;
	u32 n = sharing_sockets(), clamp, round_end;
	u64 now = clock_ns(tp), gradient, hazard = 0;

	if (!s)
		return;
	if (!controller_alive(now)) {
		s->signal = SIGNAL_NONE;
		let_go(tp, s);
		pace(sk, s, PACING_NONE);
		if (window_limited(tp, s))
			reno(tp, s, acked);
		return;
	}
	s->let_go = 0;
	if (s->joins) {
		s->joins = 0;
		tp->snd_ssthresh = answer(s, s->window_q16);
		tp->snd_cwnd = tp->snd_ssthresh;
	}
	resync_window(s, tp);

	if (tp->snd_cwnd < tp->snd_ssthresh && p->hystart && cdg_hystart(&s->cdg, p, now / NSEC_PER_USEC, window_limited(tp, s))) {
		tp->snd_ssthresh = s->ssthresh = tp->snd_cwnd;
		s->ssthresh_q16 = s->window_q16;
	}

	round_end = s->round_end;
	gradient = own_round(s, tp, ack);
	if (n > 1)
		gradient = group_round(s, srtt_us(tp), now);
	if (gradient) {
		count(delay_price_q32, cdg_price_q32(gradient, p->window, p->g0_us));
		hazard = cdg_hazard_q16(gradient, p->window, p->g0_us, pressure_on(s)->hazard_q16);
	}
	if (hazard)
		s->hazard_q16 = hazard;
	if (s->round_end != round_end)	/* CDG's own round, for its trace */
		TRACE(trace_cdg, s, tp, LT_TRACE_ROUND);
	if (hazard && cdg_backs_off(&s->cdg, p, hazard, s->window_q16, bpf_get_prandom_u32()) &&
	    announce_reduction(s, SIGNAL_GROUP_DELAY, srtt_us(tp), now)) {
		begin_reduction(s, tp, SIGNAL_DELAY, 1, now);
		return;
	}
	if (setup.one_window && s->epoch != group.epoch) {
		u32 missed = group.epoch - s->epoch;

		s->epoch = group.epoch;
		begin_reduction(s, tp, group.signal, missed, now);
		return;
	}
	if (window_limited(tp, s)) {
		IN_PLACE s->window_q16 = cdg_grow(&s->cdg, p, s->window_q16, cdg_ssthresh_q16(s, tp), acked, s->round_end != round_end,
					 pressure_on(s)->increase_q16, n, now / NSEC_PER_USEC);
		clamp = tp->snd_cwnd_clamp;
		if (s->window_q16 >> 16 > clamp)
			s->window_q16 = (u64)clamp << 16;
		tp->snd_cwnd = budget_cwnd(s->window_q16);
	} else {
		cdg_unused(&s->cdg, s->window_q16);
	}
}

SEC("struct_ops")
u32 BPF_PROG(cdg_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (!s)
		return at_least(tp->snd_cwnd >> 1, WINDOW_MIN_SEGMENTS);
	return reduce(s, tp, clock_ns(tp));
}

SEC("struct_ops")
void BPF_PROG(cdg_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	bool delayed;

	if (!s)
		return;
	trace_owner(&s->traced, sk);
	if (ssthresh_missed(s, tp)) {
		tp->snd_ssthresh = reduce(s, tp, clock_ns(tp));
		TRACE(trace_cdg, s, tp, LT_TRACE_MISSED);
	}
	TRACE_ACK(trace_cdg, s, tp, sample->rtt_us > 0 ? sample->rtt_us : 0, law_skips_ack(tp));
	mend_window(s, tp);
	if (sample->rtt_us > 0) {
		delayed = cdg_round_trip(&s->cdg, CDG_PARAMETERS, sample->rtt_us, sample->pkts_acked, tp->sacked_out != 0);
		if (steering.sockets > 1)	/* 0: none yet, hence the 1 */
			cdg_fold(&group.cdg.cur, sample->rtt_us - s->cdg.delay_min_us + 1, delayed);
	}
	/* at each ACK, not only with growth, so that a reduction slows sending at once */
	if (controller_alive(clock_ns(tp)))
		pace(sk, s, budget_pacing(s->window_q16, tp->mss_cache, srtt_us(tp)));
}

SEC("struct_ops")
void BPF_PROG(cdg_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (!s)
		return;
	if (event == CA_EVENT_LOSS) {
		cubic_growth_timed_out(&s->cdg.growth);
		TRACE(trace_cdg, s, tp, LT_TRACE_TIMEOUT);
	} else if (event == CA_EVENT_COMPLETE_CWR) {
		s->cdg.queue = CDG_UNKNOWN;
		cdg_next_round(&s->cdg);
		s->round_end = tp->snd_nxt;
		TRACE(trace_cdg, s, tp, LT_TRACE_RECOVERED);
	} else if (event == CA_EVENT_CWND_RESTART) {
		cdg_restart_from(&s->cdg, s->window_q16);
		s->round_end = tp->snd_nxt;
		TRACE(trace_cdg, s, tp, LT_TRACE_RESTART);
	}
}

SEC("struct_ops")
u32 BPF_PROG(cdg_undo_cwnd, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct lt_socket *s = bpf_sk_storage_get(&sockets, sk, NULL, 0);

	if (s) {
		cubic_growth_undone(&s->cdg.growth);
		TRACE(trace_cdg, s, tp, LT_TRACE_UNDONE);
	}
	return at_least(tp->snd_cwnd, tp->prior_cwnd);
}

/* The controller puts the transfer's own name here before loading. */
SEC(".struct_ops.link")
struct tcp_congestion_ops lt_cdg = {
	.init = (void *)cdg_init,
	.ssthresh = (void *)cdg_ssthresh,
	.cong_avoid = (void *)cdg_cong_avoid,
	.pkts_acked = (void *)cdg_pkts_acked,
	.cwnd_event = (void *)cdg_cwnd_event,
	.undo_cwnd = (void *)cdg_undo_cwnd,
	.name = "lt_cdg",
};

#endif
