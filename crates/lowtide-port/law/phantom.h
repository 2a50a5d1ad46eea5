/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Phantom congestion signals, without kernel access. A sender that must behave as if the congestion price were 1/w of
 * the measured loss p gets p(1/w - 1) more signals per segment than the network gives, as long as a real one is recent.
 */
#ifndef LOWTIDE_PHANTOM_H
#define LOWTIDE_PHANTOM_H

#include "fixed.h"
#include "queue.h"

#define PHANTOM_V 3			/* v: phantom signals end v mean intervals after the last real one */
#define PHANTOM_EARLY_Q32 (1ULL << 30)	/* 0.25 per segment until the first real signal */
#define PHANTOM_TAU0_NS 1000000000ULL

struct phantom {
	u64 start_ns;		/* time of the first data segment */
	u64 last_real_ns;	/* time of the latest real signal; 0: none so far */
	u64 tau_ns;		/* EWMA of the intervals between real signals */
	u32 round_end;		/* sequence number */
	u32 round_min_us;	/* minimum RTT of this round; 0: none */
	u32 past_min_us;	/* minimum RTT of the round before */
};

/* A real congestion signal. The first interval is the time since sending began. */
static inline void phantom_real_signal(struct phantom *p, u64 now_ns)
{
	u64 since = now_ns - (p->last_real_ns ? p->last_real_ns : p->start_ns);

	p->tau_ns = p->last_real_ns ? p->tau_ns - p->tau_ns / 8 + since / 8 : since;
	p->last_real_ns = now_ns;
}

static inline void phantom_rtt(struct phantom *p, u32 rtt_us)
{
	if (rtt_us && (!p->round_min_us || rtt_us < p->round_min_us))
		p->round_min_us = rtt_us;
}

static inline void phantom_next_round(struct phantom *p)
{
	p->past_min_us = p->round_min_us;
	p->round_min_us = 0;
}

/*
 * The probability, in 2^-32, that `segments` sent now get a phantom signal. `chance_q32`: p(1/w - 1). There is none
 * with an empty queue: else a suppressed flow cannot tell its own silence from the network's, and tau, which it
 * measures itself, grows with every suppression.
 */
static inline u64 phantom_chance_q32(const struct phantom *p, u64 now_ns, u32 srtt_us, u32 min_rtt_us, bool slow_start,
				     u64 surplus_q16, u64 chance_q32, u32 segments)
{
	u64 tau0;

	if (!surplus_q16 || queue_is_empty(p->past_min_us, min_rtt_us, QUEUE_FLOOR_US))
		return 0;
	if (p->last_real_ns) {
		if (now_ns - p->last_real_ns >= PHANTOM_V * p->tau_ns)
			return 0;
	} else {
		tau0 = 10ULL * srtt_us * 1000;
		if (tau0 < PHANTOM_TAU0_NS)
			tau0 = PHANTOM_TAU0_NS;
		if (!slow_start || now_ns - p->start_ns >= PHANTOM_V * tau0)
			return 0;
		chance_q32 = surplus_q16 << 16;
		if (chance_q32 > PHANTOM_EARLY_Q32)
			chance_q32 = PHANTOM_EARLY_Q32;
	}
	return chance_q32 * segments;
}

/* For a trace of a law of the kernel, as X_inspect of law.h. `chance_q32`: p(1/w - 1). */
static inline u32 phantom_inspect(const struct phantom *p, u64 chance_q32, u64 now_ns, s64 *values)
{
	const s64 none = 1ULL << 63;

	values[0] = chance_q32;
	values[1] = p->tau_ns ? (s64)p->tau_ns : none;
	values[2] = p->last_real_ns ? (s64)(now_ns - p->last_real_ns) : none;
	return 3;
}

#endif
