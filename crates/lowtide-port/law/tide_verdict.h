/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * LISTEN: what Tide concludes from its probes: cross traffic, a free link, or a changed path. No kernel access. The
 * reference is law/tide/verdict.rs of lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_VERDICT_H
#define LOWTIDE_TIDE_VERDICT_H

#include "tide_state.h"

#define TIDE_GOOD 3			/* good probes in a row that end LISTEN */
/* the same in a fair-queue LISTEN: competing fair queues are empty now and then */
#define TIDE_GOOD_APART 6
#define TIDE_TWO_OF 4			/* of so many probes two have to be short */
#define TIDE_ACK_DELAY_US 30000		/* an ACK that comes later may be a delayed one */
#define TIDE_FAIR_WAIT_US 300000000ULL	/* the longest fair-queue LISTEN */

/*
 * All trains are acknowledged. With the packet time, the weighted share can rise to its part of the window that fills
 * the path.
 */
static inline void tide_measured(struct tide *t, u64 now_us, u64 whole, bool empty)
{
	struct tide_listen *l = &t->listen;

	tide_path_train(&t->path, now_us, (l->least_us << 8) / l->least_packets);
	tide_share_begin(&t->share, ((u64)t->srtt_us << 24) / tide_packet(&t->path));
	/* trains found no queue, but cross traffic: it has a fair queue of its own */
	if (empty && whole && tide_comes_apart(l))
		l->whole_q32 = whole;
}

enum tide_found { TIDE_TOGETHER, TIDE_APART, TIDE_STALE };

/*
 * Whether cross traffic was between the packets of the latest probe; STALE: unknown, as the round began before LISTEN.
 * Only where `whole()` is known. `empty`: probes find no queue.
 */
VERIFIED_APART int tide_apart(struct tide *t, u64 now_us, int empty)
{
	struct tide_listen *l;
	bool probes_only;
	u64 fair_rate, whole;
	int found = TIDE_TOGETHER;

	if (!t)
		return 0;
	l = &t->listen;
	/* while noise is unknown jitter may have taken the packets apart */
	if (l->whole_q32 && now_us - l->began_us > (t->path.noise ? TIDE_FAIR_WAIT_US : TIDE_REMEASURE_US)) {
		l->whole_q32 = 0;
		tide_path_forget_rate(&t->path);
	}
	probes_only = tide_share_q16(&t->share) < TIDE_PAIRS_Q16;
	if (!probes_only)
		l->check_probes = l->trains = l->confirms = 0;
	whole = tide_whole_q32(t);
	if (tide_train(l, whole))
		tide_measured(t, now_us, whole, empty);
	/* packets of a weighted share of TIDE_PAIRS or more do not leave together */
	fair_rate = l->whole_q32 ?: (tide_confirming(l) ? whole : 0);
	fair_rate = probes_only ? fair_rate : 0;
	if (fair_rate && l->stale)
		found = TIDE_STALE;
	else if (fair_rate && l->packets >= 2 && !tide_fair_together(l->us, l->packets, fair_rate))
		found = TIDE_APART;
	if (found == TIDE_APART && !l->whole_q32) {
		l->whole_q32 = fair_rate;
		l->began_us = now_us;
	}
	tide_measure(l, tide_packet(&t->path));
	l->us = l->packets = l->stale = 0;
	return found;
}

/* From LISTEN to FILL. */
static inline void tide_return_to_fill(struct tide *t, const struct law_ack *a, u64 growth_q16)
{
	u64 bdp = tide_bdp_q16(&t->path);

	tide_begin_fill(t, growth_q16, a->now_us);
	t->fill.stale = 1;
	t->fill.sent = a->nxt;
	/* BDP/16 if that is less */
	t->window_q16 = at_least(at_most(LAW_INITIAL_WINDOW * Q16_ONE, bdp ? bdp / 16 : ~0ULL), TIDE_LEAST_Q16);
	t->loss_q24 = 0;
	tide_path_restart(&t->path);
	tide_start_round(t, a->nxt);
	tide_set_bursts(t, a->nxt);
}

VERIFIED_APART int tide_renew_if_changed(struct tide *t, const struct law_ack *a)
{
	u64 least, range;
	bool stays;

	if (!t || !a)
		return 0;
	least = tide_least_rtt(&t->listen);
	range = tide_range(&t->listen, least);
	stays = !tide_spread(&t->path) && tide_stays(&t->listen, a->now_us, least, range, tide_noise(&t->path), tide_whole_q32(t));
	if (!tide_path_changed(&t->listen, range) && !stays)
		return 0;
	tide_path_renew(&t->path, a->now_us, least);
	tide_forget(t);
	tide_return_to_fill(t, a, Q16_ONE);
	return 0;
}

VERIFIED_APART int tide_note_probe(struct tide *t, u64 now_us, u64 rtt, u64 alone)
{
	u64 base, reading;

	if (!t)
		return 0;
	base = tide_base(&t->path);
	tide_record_probe(&t->listen, rtt, base, alone);
	if (alone) {
		reading = tide_spread_reading(&t->listen, base, tide_packet(&t->path));
		tide_spread_probe(&t->path.spread, reading, base, tide_is_unsure(&t->listen));
		/* they have found none, but were not alike either */
		if (!reading && tide_spread_is_none(&t->path.spread) && tide_has_noise(&t->path))
			tide_spread_ask(&t->path.spread);
	}
	if (tide_share_q16(&t->share) < TIDE_PAIRS_Q16 && tide_is_too_long(&t->listen, now_us, base, tide_packet(&t->path)))
		tide_spread_measure_again(&t->path.spread);
	/* packets that left together come apart by themselves */
	if (tide_spread(&t->path))
		t->listen.whole_q32 = 0;
	return 0;
}

/* A round of LISTEN has ended. `rtt` is its least RTT. */
static inline void tide_probe(struct tide *t, const struct law_ack *a, u64 rtt)
{
	struct tide_listen *l = &t->listen;
	u64 base = tide_base(&t->path), noise = tide_noise(&t->path), queue = ~0ULL, second = ~0ULL, safe, waited = 0, packet;
	u64 own = tide_own_queue(&t->path), free_link_queue = tide_free_link_queue(&t->path);
	u32 back = at_most(at_least(noise / TIDE_SAME, 1), TIDE_RTTS);
	/* packets of the transfer's other connections queue, too */
	bool alone = t->senders < 2 || !(a->beside + a->burst), anew, measures;
	int found;

	tide_note_probe(t, a->now_us, rtt, alone);
	measures = alone && tide_measures_spread(t);
	for (u32 i = 0; i < TIDE_RTTS; i++) {
		u64 earlier = l->rtts.of[(l->probes - 1 - i) & (TIDE_RTTS - 1)];

		if (i >= back || i >= l->probes)
			continue;
		second = at_most(second, at_least(earlier, queue));
		queue = at_most(queue, earlier);
	}
	/* a single short RTT would make the verdicts good for as long as they look back */
	if (at_most(back, l->probes) >= TIDE_TWO_OF)
		queue = second;
	queue = queue > base ? queue - base : 0;	/* another connection may have lowered the base RTT since */
	found = tide_apart(t, a->now_us, queue < free_link_queue);
	/* between the packets of other connections trains do not measure the packet time */
	if (t->senders > 1)
		l->trains = 0;
	anew = l->first && !l->trains && !measures;
	/* while the path may have changed, only an empty queue is a good probe */
	if (!anew && (found == TIDE_APART || (l->check_probes ? queue * 4 >= own * 3 : queue >= free_link_queue))) {
		l->good = 0;
		l->empty = found != TIDE_APART && rtt < base + free_link_queue;
		if (tide_share_q16(&t->share) < TIDE_PAIRS_Q16)
			tide_renew_if_changed(t, a);
		return;
	}
	if (found == TIDE_STALE)
		return;
	l->check_probes = 0;
	l->good++;
	if (!anew && (measures || l->trains || l->good < (l->whole_q32 ? TIDE_GOOD_APART : TIDE_GOOD) || a->now_us - l->began_us < l->pause_us))
		return;
	t->vanished = l->queue && l->probes <= TIDE_GOOD + 2 ? t->vanished + 1 : 0;
	/* a long standing queue implies a buffer that can absorb a ramp of that size */
	if ((a->now_us - l->began_us) << 8 > TIDE_LONG * base && t->safe_window_q16 && tide_bdp_q16(&t->path)) {
		safe = at_most(at_least((l->peak << 16) / at_least(base, 1), Q16_ONE / 2), Q16_ONE);
		t->safe_window_q16 = at_least(t->safe_window_q16, safe * tide_bdp_q16(&t->path) >> 16);
	}
	/*
	 * the ACK of a pair is for its second packet, which waited for the first; in a small BDP that counts as a queue
	 */
	packet = tide_packet(&t->path);
	if (base >= 8 * packet)
		waited = packet;
	tide_return_to_fill(t, a, !anew && queue > waited && (queue - waited) * 4 > own * 3 ? 0 : Q16_ONE);
}

/*
 * Which ACKs count for the spacing of a probe's packets. The first ACK of a probe ends the round of the one before.
 * Packets after the fourth belong to the next probe. The ACK of a single packet may be delayed. An application-limited
 * sender may not have sent the packets together.
 */
VERIFIED_APART int tide_arrivals(struct tide *t, const struct law_ack *a)
{
	u64 passed;
	u32 rtt;

	if (!t || !a)
		return 0;
	passed = a->now_us - t->listen.acknowledged_us;
	rtt = a->rtt_us ?: t->listen.rtt_us + passed;
	if ((s32)(a->una - t->round.end) <= 0 && a->packets && t->listen.packets + a->packets < 4 && !a->app_limited &&
	    (a->packets > 1 || passed < TIDE_ACK_DELAY_US))
		tide_arrive(&t->listen, a, passed, rtt, tide_packet(&t->path) / 2 + t->path.tick);
	t->listen.rtt_us = rtt;
	t->listen.gap_us = at_least(t->listen.gap_us, passed);
	t->listen.acknowledged_us = a->now_us;
	return 0;
}

VERIFIED_APART int tide_listen_ack(struct tide *t, const struct law_ack *a)
{
	u64 least;

	if (!t || !a)
		return 0;
	if (t->listen.first && !t->listen.began_us)
		t->listen.began_us = a->now_us;
	/*
	 * While trains are due little is known of the path, so the share does not grow. With TIDE_PAIRS or more there
	 * are none.
	 */
	if (!t->listen.trains || tide_share_q16(&t->share) >= TIDE_PAIRS_Q16)
		tide_share_ack(&t->share, a);
	tide_arrivals(t, a);
	/* packets that were sent before the round are still acknowledged */
	if ((s32)(a->una - t->round.end) <= 0 || !t->round.samples)
		return 0;
	least = t->round.least;
	tide_share_round(&t->share, &t->path, least - tide_base(&t->path));
	tide_start_round(t, a->nxt);
	tide_probe(t, a, least);
	return 0;
}

#endif
