/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bursts where the stack hands down fewer segments at once: through IPsec, and to devices with a small gso_max_segs. It paces each by itself there,
 * and the second of a pair of probes would leave when the receiver no longer waits for it.
 */
#ifndef LOWTIDE_BURSTS_H
#define LOWTIDE_BURSTS_H

#include "state.h"

#define BURST_PACING 125000000	/* 1 Gbit/s: the stack asks before each segment, which it would not without a pause */

/* Called before something is sent: what leaves next has the burst's pause after it if it ends the burst, and hardly one otherwise. */
static inline void keep_together(struct sock *sk, struct lt_socket *s, const struct tcp_sock *tp, u32 burst)
{
	u64 length = (u64)burst * tp->mss_cache, next = (u64)sk->sk_gso_max_segs * tp->mss_cache, left;

	if (next >= length || !s->pacing || s->pacing == PACING_UNLIMITED)
		return;
	left = s->burst_end - tp->snd_nxt;
	if (!left || left > length) {
		left = length;
		s->burst_end = tp->snd_nxt + length;
	}
	/* by what may be sent, and not by what is left: after a segment that was not full that is less than the next one */
	sk->sk_pacing_rate = left > next ? BURST_PACING : at_least(s->pacing * next / length, 1);
}

#endif
