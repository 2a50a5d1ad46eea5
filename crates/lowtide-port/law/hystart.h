/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Hybrid Slow Start (Ha and Rhee, 2008) as in Linux's CUBIC (net/ipv4/tcp_cubic.c), without kernel access. Slow start
 * ends if a round's ACKs form one train longer than the forward delay, or if the RTT has risen. CDG has another form
 * (cdg.h).
 *
 * Notable differences from Linux, which the reference (lowtide-cc, part/hystart.rs) shares: no allowance for large
 * packets (hystart_ack_delay), and the minimum RTT also takes samples of the first second after a reduction.
 */
#ifndef LOWTIDE_HYSTART_H
#define LOWTIDE_HYSTART_H

#include "law.h"

#define HYSTART_TRAIN 1		/* bits of `detect` */
#define HYSTART_DELAY 2
#define HYSTART_SAMPLES 8	/* samples of a round before its minimum counts */
#define HYSTART_GAP_US 2000	/* greatest distance of two ACKs of a train */
#define HYSTART_RISE_MIN_US 4000
#define HYSTART_RISE_MAX_US 16000

struct hystart {
	u64 train_start_us, train_last_us;
	u32 min_us;		/* minimum RTT; 0: none */
	u32 round_min_us;	/* minimum RTT of this round */
	u32 samples;		/* of this round */
	u32 round_end;		/* sequence number */
	u32 begun;		/* the round and its train have begun */
	u32 found;		/* slow start ends by it once, until the next timeout */
};

/* At first, and after a timeout, as the path may have changed. */
static inline void hystart_begin(struct hystart *h)
{
	__builtin_memset(h, 0, sizeof(*h));
}

static inline bool hystart_train_is_long(struct hystart *h, u64 now_us, bool paced)
{
	if (now_us - h->train_last_us > HYSTART_GAP_US)
		return false;
	h->train_last_us = now_us;
	return now_us - h->train_start_us > (paced ? h->min_us : h->min_us / 2);
}

static inline bool hystart_delay_has_risen(struct hystart *h, u32 rtt_us)
{
	u32 rise = h->min_us / 8;

	if (!h->round_min_us || rtt_us < h->round_min_us)
		h->round_min_us = rtt_us;
	if (h->samples < HYSTART_SAMPLES) {
		h->samples++;
		return false;
	}
	rise = rise < HYSTART_RISE_MIN_US ? HYSTART_RISE_MIN_US : rise > HYSTART_RISE_MAX_US ? HYSTART_RISE_MAX_US : rise;
	return h->round_min_us - h->min_us > rise;
}

/* For each ACK outside of reduction episodes, before the window grows. `low_q16`: the least window at which it acts. */
static inline void hystart_ack(struct hystart *h, u32 detect, u64 low_q16, bool paced, struct law_window *w, const struct law_ack *a)
{
	bool full = false;

	if (!a->rtt_us)
		return;
	if (!h->min_us || a->rtt_us < h->min_us)
		h->min_us = a->rtt_us;
	if (!detect || !law_in_slow_start(w) || h->found)
		return;
	if (!h->begun)
		h->round_end = a->una - 1;
	if (law_next_round(&h->round_end, a)) {
		h->train_start_us = h->train_last_us = a->now_us;
		h->begun = 1;
		h->round_min_us = h->samples = 0;
	}
	if (w->cwnd_q16 < low_q16)
		return;
	if (detect & HYSTART_TRAIN)
		full = hystart_train_is_long(h, a->now_us, paced);
	if (detect & HYSTART_DELAY)
		full |= hystart_delay_has_risen(h, a->rtt_us);
	if (full) {
		h->found = 1;
		w->ssthresh_q16 = w->cwnd_q16;
	}
}

#endif
