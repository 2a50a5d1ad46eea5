/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Window laws (law/law.h) as TCP congestion controls of the kernel. They decide, window_law.h connects them. Each
 * socket is on its own: the controller divides the transfer's weight among them. CDG, whose sockets share one window,
 * has its own file (cdg_ops.h).
 */
#ifndef LOWTIDE_WINDOW_OPS_H
#define LOWTIDE_WINDOW_OPS_H

#include "state.h"
#include "tcp.h"
#include "window.h"

static __always_inline struct law_weight weight_on(const struct lt_socket *s)
{
	const struct lt_pressure *pressure = pressure_on(s);
	struct law_weight weight = {
		.weight_q16 = pressure->weight_q16,
		.ratio_q16 = pressure->ratio_q16,
		.kept_q16 = pressure->kept_q16,
	};

	return weight;
}

/* The socket gets the law, which begins with the first ACK. */
static inline void begin_socket(struct lt_socket *s, const struct tcp_sock *tp)
{
	take_parameters(s);
	s->window_q16 = (u64)tp->snd_cwnd << 16;
	s->signal = SIGNAL_NONE;
	s->delivered = tp->delivered;
	s->begun = 0;
	__builtin_memset(&s->owd, 0, sizeof(s->owd));
}

/* The signal of a reduction that the law did not request. */
static inline enum law_signal law_signal(u32 signal, const struct tcp_sock *tp)
{
	return signal == SIGNAL_PHANTOM ? LAW_PHANTOM : tp->lost_out ? LAW_LOSS : LAW_ECN;
}

/*
 * Notes what an ACK says, but for what is known only when the law acts: the segments acknowledged, and whether the
 * window was the limit.
 */
static inline void note_ack(struct lt_socket *s, const struct tcp_sock *tp, const struct ack_sample *sample)
{
	struct law_ack *a = &s->ack;

	a->now_us = tp->tcp_mstamp;	/* when it arrived */
	a->rtt_us = sample->rtt_us > 0 ? sample->rtt_us : 0;
	a->delay_us = owd_delay(&s->owd, BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp), tp->rx_opt.rcv_tsval, a->now_us, a->rtt_us);
	a->has_delay = a->rtt_us != 0;
	a->srtt_us = srtt_us(tp);
	a->una = tp->snd_una;
	a->nxt = tp->snd_nxt;
	a->mss = tp->mss_cache;
	a->latency_us = s->latency_us;
	a->in_flight = in_flight(tp) + tp->delivered - s->delivered;
	/* the stack may hold back what does not fill a large packet, and then also reports the window as the limit */
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		a->in_flight = at_least(a->in_flight, tp->snd_cwnd);
	a->cwnd_q16 = s->window_q16;
	a->weight_q16 = pressure_on(s)->weight_q16;
	s->delivered = tp->delivered;
}

/* The rest of an ACK, known when the law acts: the segments that it covers, how many of them were marked, the limit. */
static inline void note_delivery(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_ack *a = &s->ack;

	a->packets = tp->delivered - s->noted_delivered;
	a->marked = tp->delivered_ce - s->noted_ce;
	s->noted_delivered = tp->delivered;
	s->noted_ce = tp->delivered_ce;
	a->una = tp->snd_una;
	a->nxt = tp->snd_nxt;
	a->reducing = episode_goes_on(tp);
	a->window_limited = window_limited(tp, s);
}

/* Time since the latest ACK. The stack's own clock does not move while it is idle. */
static inline u64 idle_us(const struct lt_socket *s)
{
	u64 now_us = bpf_ktime_get_ns() / NSEC_PER_USEC;

	return now_us - at_most(s->ack.now_us, now_us);
}

#define LAW_PASTE(a, b) a##_##b
#define LAW_EXPAND(a, b) LAW_PASTE(a, b)
#define OF_LAW(function) LAW_EXPAND(LAW, function)
#define LAW_OPS LAW_EXPAND(lt, LAW)
#define LAW_QUOTE(name) #name
#define LAW_STRING(name) LAW_QUOTE(name)
#define LAW_PROGRAM(name, args...) BPF_PROG(name, args)
#define LAW_PROG(name, args...) LAW_PROGRAM(OF_LAW(name), args)
#define PARAMETERS ((const void *)s->parameters)

#include "marks_ops.h"

/* window_law.h for each law; crates/lowtide-port/build.rs writes it from the table of laws */
#include <window_laws.h>

#endif
