/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Tide, without kernel access: uses spare capacity, and leaves the link to cross traffic. The reference, lowtide-cc,
 * law/tide.rs, says why; docs/tide.md has the states and thresholds. The parts have the same names here.
 *
 * Tide keeps its own windows and shows the larger one. It notices at the next ACK if the shown one was reduced from
 * outside. Delays are 2^-8 us, rates segments per microsecond in 2^-32, growth and windows 2^-16.
 */
#ifndef LOWTIDE_TIDE_H
#define LOWTIDE_TIDE_H

#include "law.h"
#include "tide_fill.h"
#include "tide_verdict.h"
#include "tide_state.h"

/* Whether probes are out of step with cross traffic, for which their pace has to be exact. */
static inline bool tide_paces_exactly(const struct tide *t)
{
	return t->listens && (t->listen.whole_q32 || t->listen.check_probes);
}

/* Whether the spread is still measured after the first few probes, which were not alike. */
static inline bool tide_still_measures_spread(const struct tide *t)
{
	return t->listens && t->listen.in_a_row >= TIDE_FEW && tide_spread_is_due(&t->path.spread);
}

/* In FILL a packet leaves alone: the second of two would find a queue, which on a slow link is all of own_queue. */
static inline u32 tide_least_burst(const struct tide *t)
{
	if (tide_is_ordinary(t))
		return 2;
	if (t->listens)
		return tide_probe_burst(&t->listen);
	return at_least(tide_fair_burst(&t->fair), tide_bursts_burst(&t->fill.bursts));
}

/*
 * Whether a probe leaves as soon as the one before is acknowledged: while the spread is measured, but not anew. Two
 * probes in flight make rounds of two round trips: these take twice as long, and show the shorter RTT.
 */
static inline bool tide_is_ack_clocked(const struct tide *t)
{
	return tide_measures_spread(t) && !t->listen.remeasured && tide_probe_burst(&t->listen) < 4;
}

static inline void tide_show(struct tide *t, struct law_window *w)
{
	u64 held_back = tide_fair_held_back_q16(&t->fair), alone = t->window_q16;

	if (t->listens) {
		alone = (t->srtt_us && !tide_is_ack_clocked(t) ? 2ULL : 1ULL) * tide_probe_burst(&t->listen) << 16;
	} else {
		alone = at_least(alone > held_back ? alone - held_back : 0, TIDE_LEAST_Q16);
	}
	t->shown_q16 = w->cwnd_q16 = at_least(alone, tide_share_q16(&t->share));
	w->ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
}

static inline void tide_begin(struct tide *t, const struct tide_parameters *p, struct law_window *w, u32 nxt)
{
	/* a BPF compiler clears no more than a kilobyte at a time, and joins what is not kept apart */
	__builtin_memset(&t->path, 0, sizeof(t->path));
	__asm__ volatile("" ::: "memory");
	__builtin_memset(&t->round, 0, __builtin_offsetof(struct tide, fair) - __builtin_offsetof(struct tide, round));
	__asm__ volatile("" ::: "memory");
	__builtin_memset(&t->fair, 0, sizeof(*t) - __builtin_offsetof(struct tide, fair));
	t->window_q16 = TIDE_LEAST_Q16;
	t->round.end = nxt;
	t->listens = 1;
	t->listen.stale = t->listen.first = 1;
	t->listen.trains = TIDE_TRAINS;
	tide_show(t, w);
}

/* Adds an RTT sample to the round and to the path. */
VERIFIED_APART int tide_sample_rtt(struct tide *t, const struct law_ack *a)
{
	struct tide_round *r;
	u64 rtt;

	if (!t || !a)
		return 0;
	r = &t->round;
	rtt = (u64)a->rtt_us << 8;
	if (tide_path_sample(&t->path, a->now_us, a->rtt_us, t->window_q16, a->senders > 1 || a->burst))
		tide_forget(t);
	if (!r->samples)
		r->least = r->last = rtt;
	r->least = at_most(r->least, rtt);
	r->steps += rtt > r->last ? rtt - r->last : r->last - rtt;
	r->last = rtt;
	r->samples++;
	r->sum += rtt;
	return 0;
}

static inline void tide_sample(struct tide *t, const struct tide_parameters *p, const struct law_ack *a)
{
	t->now_us = a->now_us;
	t->srtt_us = a->srtt_us;
	t->mss = a->mss;
	t->senders = at_least(a->senders, 1);
	t->round.packets += a->packets;
	t->round.lost += a->lost;
	if (a->rtt_us)
		tide_sample_rtt(t, a);
}

static inline bool tide_ack(struct tide *t, const struct tide_parameters *p, const struct law_weight *weight,
			    struct law_window *w, const struct law_ack *a)
{
	if (!t->listens && w->cwnd_q16 < t->shown_q16)
		t->window_q16 = at_least(at_most(t->window_q16, w->cwnd_q16 + tide_fair_held_back_q16(&t->fair)), TIDE_LEAST_Q16);
	tide_share_weight(&t->share, weight->weight_q16);
	if (t->listens)
		tide_listen_ack(t, a);
	else
		tide_fill_ack(t, p, a);
	tide_show(t, w);
	return false;
}

/* A timeout. The stack has asked for ssthresh before, so the share is reduced already. */
VERIFIED_APART int tide_timed_out(struct tide *t, u64 now_us, u32 nxt)
{
	if (!t)
		return 0;
	if (t->ruled)
		tide_share_timed_out(&t->share);
	if (t->listens)
		return 0;
	t->before_q16 = t->window_q16;
	tide_begin_listen(t, now_us, nxt, 0);
	return 0;
}

/* A loss or a mark. A loss counts only with a self-induced queue, with a window above the BDP, or in a small BDP. */
VERIFIED_APART int tide_congestion(struct tide *t, u32 signal, u32 nxt)
{
	struct tide_fill *f;
	u64 bdp, queue;
	bool queued;

	if (!t)
		return 0;
	f = &t->fill;
	t->ruled = tide_share_rules(t);
	if (t->ruled)
		tide_share_reduce(&t->share);
	if (t->listens)
		return 0;
	bdp = tide_link_bdp_q16(&t->path);
	queued = tide_filtered_queue(&t->path, &t->path.fast, &queue) && queue * 4 > tide_own_queue(&t->path) * 3;
	t->before_q16 = t->window_q16;
	if (!f->growth_q16 && !f->settling && bdp && bdp < TIDE_SMALL_BDP_Q16) {
		tide_begin_listen(t, t->now_us, nxt, 0);
	} else if (queued || (bdp && t->window_q16 > bdp) || signal != LAW_LOSS) {
		if (bdp && bdp < t->window_q16)
			t->window_q16 = bdp;
		t->window_q16 = at_least(tide_part_q16(t->window_q16, TIDE_PART_Q16(0.95)), TIDE_LEAST_Q16);
		f->growth_q16 = 0;
		f->drain = 0;
	}
	return 0;
}

/*
 * A loss shows a full queue: RTTs that differ as it fills and drains are no spread of the path. Unless own growth
 * explains the loss, the spread is measured anew.
 */
static inline void tide_lost(struct tide *t)
{
	t->fill.lost = 1;
	if (t->listens)
		t->listen.in_a_row = 0;
	else if (!t->fill.growth_q16 && !t->fill.settling)
		tide_spread_forget(&t->path.spread);
}

static inline void tide_reduce(struct tide *t, const struct tide_parameters *p, const struct law_weight *weight, struct law_window *w,
			       enum law_signal signal, u32 random)
{
	tide_share_weight(&t->share, weight->weight_q16);
	tide_lost(t);
	if (signal == LAW_TIMEOUT) {
		t->ruled = tide_share_rules(t);
		if (t->ruled)
			tide_share_reduce(&t->share);
		tide_timed_out(t, t->now_us, w->nxt);
	} else {
		tide_congestion(t, signal, w->nxt);
	}
	tide_show(t, w);
}

static inline void tide_answered(struct tide *t)
{
}

static inline void tide_recovered(struct tide *t, struct law_window *w, u32 nxt)
{
	t->before_q16 = 0;
}

static inline void tide_undone(struct tide *t, struct law_window *w)
{
	t->window_q16 = at_least(t->window_q16, t->before_q16);
	t->before_q16 = 0;
	tide_show(t, w);
}

/* Cross traffic may have begun during the idle time. */
static inline void tide_restart(struct tide *t, struct law_window *w, u32 nxt, u64 idle_us)
{
	if (!t->listens) {
		tide_begin_fill(t, Q16_ONE, t->now_us + idle_us);
		t->window_q16 = at_most(t->window_q16, LAW_INITIAL_WINDOW * Q16_ONE);
	}
	t->vanished = 0;
	tide_share_restart(&t->share, w->cwnd_q16, idle_us);
	tide_path_restart(&t->path);
	tide_fair_restart(&t->fair);
	tide_start_round(t, nxt);
	tide_show(t, w);
}

/* The rate of probes while they find queues. Segments per microsecond, 2^-32. */
static inline u64 tide_seldom_q32(const struct tide *t, const struct tide_parameters *p, u32 burst)
{
	u64 rate = tide_rate_q32(&t->path) ?: (1ULL << 40) / tide_packet(&t->path);
	u64 part = rate * (p->probe_share_q32 >> 12) >> 20;

	return at_least(part, ((u64)p->probe_rate_milli * burst << 32) / 1000000000);
}

static inline u64 tide_bytes_per_second(u64 segments_q32, u32 mss)
{
	return at_least(((segments_q32 * mss) >> 12) * 1000000 >> 20, 1);
}

/* The pace. Segments per microsecond, 2^-32. */
VERIFIED_APART u64 tide_pace_q32(const struct tide *t, const struct tide_parameters *p)
{
	u64 srtt, share, gain, often;

	if (!t || !p)
		return 0;
	srtt = at_least(t->srtt_us, 1);
	share = tide_share_q16(&t->share);
	if (tide_is_ordinary(t))
		return TIDE_UNPACED * (share << 16) / srtt;
	if (!t->listens) {
		gain = t->fill.growth_q16 >= TIDE_GROWS_Q16 ? TIDE_PART_Q16(1.25) : TIDE_PART_Q16(1.1);
		return at_least(t->window_q16, share) * gain / srtt;
	}
	share = share * TIDE_PART_Q16(1.2) / srtt;
	if (tide_is_ack_clocked(t))
		return at_least((TIDE_ACK_CLOCKED << 32) / at_least(tide_base(&t->path) >> 8, 1), share);
	often = ((tide_probe_burst(&t->listen) == 4 ? 3ULL : 2ULL) << 32) / at_least(tide_base(&t->path) >> 8, 1);
	if (t->listen.probes < 4 || t->listen.good || t->listen.empty)
		return at_least(often, share);
	if (tide_measures_spread(t))
		return at_least(t->listen.remeasured ? often * TIDE_PART_Q16(TIDE_REMEASURE_PACE) >> 16 : often, share);
	return tide_out_of_step_q32(&t->listen, at_least(at_most(tide_seldom_q32(t, p, tide_probe_burst(&t->listen)), often), share));
}

/* The pace in bytes per second; 0: not known yet. */
static inline u64 tide_pace(const struct tide *t, const struct tide_parameters *p)
{
	if (!t->srtt_us)
		return 0;
	return tide_bytes_per_second(tide_pace_q32(t, p), t->mss);
}

static inline u32 tide_inspect(const struct tide *t, const struct tide_parameters *p, const struct law_weight *weight, s64 *values)
{
	u64 queue;

	values[0] = t->path.base.current ? (s64)tide_base(&t->path) : LAW_NO_VALUE;
	values[1] = tide_noise(&t->path);
	values[2] = tide_own_queue(&t->path);
	values[3] = tide_rate_q32(&t->path) ? (s64)tide_rate_q32(&t->path) : LAW_NO_VALUE;
	values[4] = tide_safe_q16(t) ? (s64)tide_safe_q16(t) : LAW_NO_VALUE;
	values[5] = t->listens ? LAW_NO_VALUE : (s64)t->fill.growth_q16;
	values[6] = tide_filtered_queue(&t->path, &t->path.slow, &queue) ? (s64)queue : LAW_NO_VALUE;
	values[7] = tide_share_q16(&t->share);
	return 8;
}

#endif
