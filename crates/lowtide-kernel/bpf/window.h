/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The window of a law and that of the stack, in both directions: with the fraction that the stack does not have, and in
 * reduction episodes, in which the stack moves its window itself.
 */
#ifndef LOWTIDE_WINDOW_H
#define LOWTIDE_WINDOW_H

#include "state.h"
#include "tcp.h"

/* The window for the law: with its fraction, unless the stack has changed it meanwhile. */
static __always_inline struct law_window window_of(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_window w;

	resync_window(s, tp);
	if (s->ssthresh != tp->snd_ssthresh)
		s->ssthresh_q16 = (u64)tp->snd_ssthresh << 16;
	w.cwnd_q16 = s->window_q16;
	w.ssthresh_q16 = s->ssthresh_q16;
	w.least_q16 = WINDOW_MIN_Q16 / sharing_sockets();
	return w;
}

static inline void take_window(struct lt_socket *s, struct tcp_sock *tp, const struct law_window *w)
{
	u64 clamp = (u64)tp->snd_cwnd_clamp << 16;

	s->window_q16 = w->cwnd_q16 < clamp ? w->cwnd_q16 : clamp;
	s->ssthresh_q16 = w->ssthresh_q16;
	tp->snd_cwnd = budget_cwnd(s->window_q16);
	tp->snd_ssthresh = s->ssthresh = w->ssthresh_q16 >> 16;
}

/*
 * The answer to the stack's call for ssthresh. The stack's window approaches it in the episode that follows, and after
 * a timeout from one segment.
 */
static inline u32 reduced_to(struct lt_socket *s, const struct law_window *w)
{
	s->window_q16 = s->ssthresh_q16 = w->cwnd_q16;
	return s->ssthresh = budget_cwnd(w->cwnd_q16);
}

/* Whether the stack is in a reduction episode: by PRR its window approaches its ssthresh. */
static inline bool in_episode(const struct tcp_sock *tp)
{
	u32 state = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state);

	return state == TCP_CA_CWR || state == TCP_CA_RECOVERY;
}

/* Whether the episode goes on after this ACK. CWR ends above high_seq, recovery at it. */
static inline bool episode_goes_on(const struct tcp_sock *tp)
{
	bool recovers = BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) == TCP_CA_RECOVERY;

	return in_episode(tp) && (recovers ? seq_after(tp->high_seq, tp->snd_una) : !seq_after(tp->snd_una, tp->high_seq));
}

/* The window for a law that acts in episodes, too: there it is the one that the stack's window approaches. */
static __always_inline struct law_window window_after_episode(struct lt_socket *s, const struct tcp_sock *tp)
{
	struct law_window w = { .cwnd_q16 = s->window_q16, .ssthresh_q16 = s->ssthresh_q16, .least_q16 = WINDOW_MIN_Q16 / sharing_sockets() };

	return in_episode(tp) ? w : window_of(s, tp);
}

static inline void take_window_after_episode(struct lt_socket *s, struct tcp_sock *tp, const struct law_window *w)
{
	if (!in_episode(tp)) {
		take_window(s, tp, w);
		return;
	}
	s->window_q16 = w->cwnd_q16;
	s->ssthresh_q16 = w->ssthresh_q16;
	tp->snd_ssthresh = s->ssthresh = budget_cwnd(w->cwnd_q16);
}

#endif
