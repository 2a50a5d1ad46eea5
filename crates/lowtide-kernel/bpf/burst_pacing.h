/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bursts where the stack hands down fewer segments at once: through IPsec, and to devices with a small gso_max_segs.
 * There it paces each segment by itself, and the second packet of a probe would leave after the receiver's delayed ACK.
 */
#ifndef LOWTIDE_BURST_PACING_H
#define LOWTIDE_BURST_PACING_H

#include "law/burst.h"
#include "state.h"

/* Called before data are sent. */
static inline void keep_together(struct sock *sk, struct lt_socket *s, const struct tcp_sock *tp, u32 burst)
{
	u64 length = (u64)burst * tp->mss_cache, handed = (u64)sk->sk_gso_max_segs * tp->mss_cache;

	if (handed >= length || !s->pacing || s->pacing == PACING_UNLIMITED)
		return;
	/* retransmissions belong to no burst: one call counts for all of them */
	if (BPF_CORE_READ_BITFIELD(tp, inet_conn.icsk_ca_state) >= TCP_CA_RECOVERY) {
		sk->sk_pacing_rate = s->pacing;
		return;
	}
	sk->sk_pacing_rate = burst_pace(s->pacing, &s->burst_end, tp->snd_nxt, length, handed);
}

#endif
