/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/* FILL: Tide uses the link. No kernel access. The reference is law/tide/fill.rs of lowtide-cc. */
#ifndef LOWTIDE_TIDE_FILL_H
#define LOWTIDE_TIDE_FILL_H

#include "tide_state.h"

/* rounds until a change of the window shows: the rest of the present one, and two more */
#define TIDE_SETTLE 3
#define TIDE_ROUND_RTTS 4		/* a round has the samples of so many RTTs at most */
#define TIDE_VANISHED 3			/* vanished queues in a row that lead to a fair-queue LISTEN */
#define TIDE_BRIEFLY_US 10000000ULL	/* a FILL that ends sooner counts as the same event */
#define TIDE_TOLERANT_US 2000000ULL	/* after this time in FILL a flow with a part of the BDP stands longer queues */
#define TIDE_HEAVY_LOSS_Q24 671089	/* 0.04 */
/* 0.01: smoothed loss above it, in a window that hardly grows, is that of a full queue */
#define TIDE_OVERFLOW_Q24 167772
/* growth for which the pace leaves room, and whose queue and losses are its own */
#define TIDE_GROWS_Q16 (Q16_ONE / 4)
#define TIDE_LOSS_PAUSE 2		/* pause after heavy loss, base RTTs: doubled each time, */
#define TIDE_LOSS_PAUSES 5		/* at most this often */

/* Whether the window is at least 0.9 BDP. With less a queue is met if cross traffic has a part of the link. */
static inline bool tide_has_whole_link(const struct tide *t)
{
	u64 bdp = tide_bdp_q16(&t->path);

	return bdp && t->window_q16 >= tide_part_q16(bdp, TIDE_PART_Q16(0.9));
}

/*
 * Segments that the window gains in hold in this round. Per RTT it is the root of a gain that is the same delay on any
 * link. A flow knows only its own part of the rate, so a small one gains more for its size, and several Tides converge.
 * The rounds of a small window last for several RTTs.
 */
VERIFIED_APART u64 tide_step_q16(const struct tide *t)
{
	u64 rate, step, rtts_q16;

	if (!t)
		return 0;
	rate = tide_rate_q32(&t->path);
	if (!rate)
		return Q16_ONE / 10;
	step = at_least(tide_root(at_most(tide_bdp_q16(&t->path) >> 8, (250 * rate) >> 16) / 10 << 16), Q16_ONE / 10);
	rtts_q16 = ((u64)t->round.packets << 32) / at_least(t->window_q16, 1);
	return step * at_most(at_least(rtts_q16, Q16_ONE), TIDE_ROUND_RTTS * Q16_ONE) >> 16;
}

/*
 * In hold, how much longer a queue a flow with a part of the BDP stands: so the one with the most gives way first, and
 * Tides converge. Not at first, nor after a loss: flows that losses limit take the link for short times, and their
 * queues are as short.
 */
VERIFIED_APART u64 tide_tolerance(const struct tide *t)
{
	const struct tide_fill *f;
	u64 bdp, missing;

	if (!t)
		return 0;
	f = &t->fill;
	if (f->growth_q16 || f->settling || f->drain || f->lost || t->now_us - f->began_us < TIDE_TOLERANT_US)
		return 0;
	bdp = tide_link_bdp_q16(&t->path);
	missing = bdp > t->window_q16 ? bdp - t->window_q16 : 0;
	return missing * tide_least_own(&t->path) / at_least(bdp, 1);
}

/* Growth per packet that adds the self-induced queue in an RTT. The spread is no queue that may grow. */
static inline u64 tide_least_growth_q16(const struct tide *t)
{
	u64 part = (tide_own(&t->path) << 16) / at_least(tide_base(&t->path), 1);

	return at_most(part, Q16_ONE);
}

/*
 * A queue of cross traffic ends FILL. Behind fair queues it was self-induced, and vanishes as soon as FILL has ended:
 * TIDE_VANISHED such queues in a row lead to a fair-queue LISTEN.
 */
static inline void tide_leaves_queue(struct tide *t, u64 now_us, u32 nxt)
{
	if (now_us - t->fill.began_us > TIDE_BRIEFLY_US)
		t->vanished = 0;
	tide_begin_listen(t, now_us, nxt, t->vanished >= TIDE_VANISHED ? tide_whole_q32(t) : 0);
	t->listen.queue = 1;
}

/*
 * Heavy loss, or packets apart, end FILL where probes may find nothing: with a policer, or with noise. So LISTEN lasts
 * for a pause.
 */
static inline void tide_leave_for_a_pause(struct tide *t, u64 now_us, u32 nxt)
{
	if (now_us - t->fill.began_us <= TIDE_BRIEFLY_US)
		t->short_fills = at_most(t->short_fills + 1, TIDE_LOSS_PAUSES);
	else if (t->short_fills)
		t->short_fills--;
	tide_begin_listen(t, now_us, nxt, 0);
	t->listen.pause_us = (tide_base(&t->path) * (TIDE_LOSS_PAUSE << (t->short_fills & 7))) >> 8;
}

/*
 * Packets that left together came apart: cross traffic behind fair queues. Probes find that, too, where noise is small.
 */
VERIFIED_APART int tide_leaves_apart(struct tide *t, u64 now_us, u32 nxt)
{
	u64 whole;

	if (!t)
		return 0;
	whole = tide_whole_q32(t);
	if (whole)
		tide_begin_listen(t, now_us, nxt, whole);
	else
		tide_leave_for_a_pause(t, now_us, nxt);
	return 0;
}

/* A ramp ends: it has met a queue, or reached the safe window or the BDP. */
static inline void tide_end_ramp(struct tide *t, u32 nxt)
{
	t->fill.ramp_q16 = t->fill.growth_q16;
	t->fill.ramp_ended = 1;
	t->fill.ramp_sent = nxt;
	t->fill.growth_q16 = 0;
	t->fill.settling = TIDE_SETTLE;
	t->fill.ramped = ~0ULL;
}

/* Packets sent after a ramp do not meet its queue. In BDPs of enough packets a round has samples enough to see that. */
static inline void tide_outlive_ramp(struct tide *t, u32 una)
{
	struct tide_fill *f = &t->fill;

	if (!f->ramp_ended || (s32)(una - f->ramp_sent) < 0 || tide_sure_bdp_q16(&t->path) < TIDE_SMALL_BDP_Q16)
		return;
	f->ramp_ended = 0;
	f->ramp_q16 = 0;
	tide_path_restart(&t->path);
}

/*
 * A window that is not the limit, or losses while it grows. It may have grown beyond the BDP unseen, so this is the end
 * of a ramp, too. Without a queue growth goes on where it was.
 */
static inline void tide_pause_growth(struct tide *t, u32 nxt)
{
	struct tide_fill *f = &t->fill;

	f->paused_q16 = at_least(f->paused_q16, f->growth_q16);
	if (f->growth_q16 >= TIDE_GROWS_Q16)
		tide_end_ramp(t, nxt);
	f->growth_q16 = 0;
	f->clean = 0;
}

/* No growth, until rounds without a queue follow. */
static inline void tide_hold(struct tide *t)
{
	t->fill.growth_q16 = t->fill.paused_q16 = 0;
	t->fill.clean = 0;
}

/*
 * A round below 0.75 own_queue, in a window that is the limit. Growth doubles: to at most 1 up to the safe window, to
 * at most 1/2 up to the BDP. Beyond, it first stays at the least. Several connections seldom fill a window all at
 * once, so the least RTT of a round may not show the queue of a window that is too large. For them growth beyond the
 * BDP stays at the least as long as the delivery rate does not rise, and ends with the self-induced queue.
 */
static inline void tide_regrow(struct tide *t, bool alone)
{
	struct tide_fill *f = &t->fill;
	u64 least = tide_least_growth_q16(t), safe = tide_safe_q16(t), bdp = tide_sure_bdp_q16(&t->path), missing;
	u64 near = tide_part_q16(safe, TIDE_PART_Q16(0.93)), rate = tide_rate_q32(&t->path), limit;
	u64 doubled = at_least(at_least(2 * f->growth_q16, f->paused_q16), least);

	f->paused_q16 = 0;
	if (!safe || t->window_q16 < near) {
		f->growth_q16 = at_most(doubled, Q16_ONE);
		f->clean = 0;
		return;
	}
	if (t->window_q16 < tide_part_q16(bdp, TIDE_PART_Q16(0.93))) {
		missing = (tide_part_q16(bdp, TIDE_PART_Q16(0.95)) << 16) / at_least(t->window_q16, 1) - Q16_ONE;
		f->growth_q16 = at_most(at_most(doubled, missing), Q16_ONE / 2);
		f->clean = 0;
		return;
	}
	f->clean++;
	limit = !alone && rate <= f->clean_rate_q32 ? bdp + (bdp * least >> 16) : 0;
	f->clean_rate_q32 = rate;
	if (limit && t->window_q16 > limit)
		f->growth_q16 = 0;
	else if (limit || f->clean <= (t->confirmed && t->window_q16 > near ? 24 : 1))
		f->growth_q16 = least;
	else
		f->growth_q16 = at_most(doubled, at_least(Q16_ONE / 2, least));
}

/*
 * Drain. After a long time with a queue the base RTT may have been measured in it. The return to the old window is a
 * ramp, and hides a queue of cross traffic that is as long. So the drain is at most cross_traffic_queue deep.
 */
static inline void tide_look_at_base(struct tide *t, const struct tide_parameters *p, u64 now_us, s64 queue)
{
	struct tide_fill *f = &t->fill;
	u64 base = tide_base(&t->path), whole = base + (queue > 0 ? queue : 0), left;
	u64 depth = at_most(base / 20, tide_cross_traffic_queue(&t->path));

	if (!p->drain_us || f->drain || f->growth_q16 || now_us - f->near_empty_us < p->drain_us)
		return;
	f->drain = TIDE_SETTLE;
	f->drain_window_q16 = t->window_q16;
	left = t->window_q16 * (((base - depth) << 16) / at_least(whole, 1)) >> 16;
	t->window_q16 = at_least(left > Q16_ONE ? left - Q16_ONE : 0, TIDE_LEAST_Q16);
}

/* A round has ended with a queue above own_queue. */
static inline void tide_give_way(struct tide *t, u64 queue, u64 own)
{
	u64 stands = own + tide_tolerance(t), away = queue > stands ? queue - stands : stands - queue;
	u64 change = t->window_q16 / 2 * away / at_least(tide_base(&t->path) + queue, 1);
	u64 up = t->window_q16 + tide_step_q16(t);

	if (queue < stands)
		up += change;
	else
		up = up > change ? up - change : 0;
	t->path.queued = 1;
	t->window_q16 = at_least(up, TIDE_LEAST_Q16);
	t->safe_window_q16 = t->window_q16;
	t->confirmed = tide_has_whole_link(t);
	tide_hold(t);
}

/* A ramp has met a queue. The window returns to what was in flight when the first packet that found it left. */
static inline void tide_meet(struct tide *t, u32 nxt)
{
	u64 rate = tide_rate_q32(&t->path), last = t->last_full_rate_q32, grew = Q16_ONE + t->fill.growth_q16, led;

	t->path.queued = 1;
	/* at most by two RTTs of growth: that packet may have left when little was in flight */
	led = at_least(t->fill.led_q16, (((t->window_q16 << 16) / grew) << 16) / grew);
	t->window_q16 = at_least(at_most(t->window_q16, led), TIDE_LEAST_Q16);
	t->safe_window_q16 = t->window_q16;
	tide_end_ramp(t, nxt);
	if (rate && last && (rate > last ? rate - last : last - rate) * 20 < last)
		t->confirmed = tide_has_whole_link(t);
	t->last_full_rate_q32 = rate;
}

/*
 * Whether the sender has paused for most of the round, which a receiver is not told: then there was no queue to grow
 * into. A ramp delivers half of the window.
 */
static inline bool tide_round_has_pause(const struct tide *t)
{
	return t->path.unspaced && (u64)t->round.packets << 18 < t->window_q16;
}

VERIFIED_APART int tide_end_round(struct tide *t, const struct tide_parameters *p, const struct law_ack *a)
{
	struct tide_round *r;
	struct tide_fill *f;
	u64 own, longer, bursts, steps, sent;
	bool alone, grows;
	s64 queue;

	if (!t || !p || !a)
		return 0;
	r = &t->round;
	f = &t->fill;
	own = tide_own_queue(&t->path);
	queue = (s64)r->least - (s64)tide_base(&t->path);
	/* with growth later RTTs are longer, and so are those behind an initial window */
	longer = r->grew ? 0 : r->sum / at_least(r->samples, 1) - r->least;
	bursts = at_most(a->burst * tide_packet(&t->path), longer);
	steps = r->steps / at_least(r->samples - 1, 1);
	alone = t->senders < 2 && !a->beside;
	/* in bursts packets wait for each other */
	if (!f->bursts.acks_burst)
		tide_path_round(&t->path, a->now_us, at_least(longer - bursts, steps), alone);
	if (!f->settling)
		f->ramped = 0;
	sent = (u64)r->packets + r->lost;
	if (sent)
		t->loss_q24 += ((s64)(((u64)r->lost << 24) / sent) - t->loss_q24) / 8;
	/* Losses go on although the window hardly grows: a queue overflows, and the spread was measured in it. */
	grows = f->growth_q16 >= TIDE_GROWS_Q16 || f->settling;
	if (r->lost && t->loss_q24 > TIDE_OVERFLOW_Q24 && !grows)
		tide_spread_forget(&t->path.spread);
	if (queue < (s64)(own / 2))
		f->near_empty_us = a->now_us;
	/*
	 * Several connections have skipped the measurement of the spread, or probes found none by chance. RTTs differ
	 * by more than own packets explain, so it is due. What a wrong spread taught of the safe window does not count.
	 */
	if (tide_has_noise(&t->path) && tide_spread_ask(&t->path.spread)) {
		tide_begin_listen(t, a->now_us, a->nxt, 0);
		t->safe_window_q16 = 0;
		return 0;
	}
	if (t->senders > 1) {
		tide_fair_restart(&t->fair);
	} else if (tide_rate_q32(&t->path) && tide_fair_round(&t->fair, a->now_us, r->packets, queue * 4 > (s64)own * 3, tide_rate_q32(&t->path))) {
		tide_leaves_apart(t, a->now_us, a->nxt);
		t->safe_window_q16 = t->window_q16;
		return 0;
	}
	if (f->drain) {
		f->drain--;
		if (!f->drain) {	/* the return to the old window is a ramp, too */
			f->ramp_q16 = (f->drain_window_q16 << 16) / at_least(t->window_q16, 1);
			f->ramp_q16 = f->ramp_q16 > Q16_ONE ? f->ramp_q16 - Q16_ONE : 0;
			f->ramp_ended = 0;
			f->settling = TIDE_SETTLE;
			t->window_q16 = f->drain_window_q16;
			f->near_empty_us = a->now_us;
		}
	} else if (f->settling) {
		f->settling--;
	} else if (grows && r->lost) {
		tide_pause_growth(t, a->nxt);
	} else if (t->loss_q24 > TIDE_HEAVY_LOSS_Q24) {
		tide_leave_for_a_pause(t, a->now_us, a->nxt);
		return 0;
	} else if ((f->found && f->growth_q16 && queue * 4 >= (s64)own * 3) || (grows && queue > (s64)own)) {
		tide_meet(t, a->nxt);
	} else if (queue > (s64)own) {
		tide_give_way(t, queue, own);
	} else if (!r->limited || tide_round_has_pause(t)) {
		tide_pause_growth(t, a->nxt);
	} else if (queue * 4 < (s64)own * 3) {
		tide_regrow(t, alone);
	} else {
		t->window_q16 += tide_step_q16(t);
		tide_hold(t);
	}
	tide_look_at_base(t, p, a->now_us, queue);
	tide_start_round(t, a->nxt);
	return 0;
}

/*
 * A token bucket may have hidden this queue from the ramp that caused it. That shows when the packets that fill the
 * queue are taken back. If half of the longest queue or less is left, that is taken back, too.
 */
static inline void tide_take_back(struct tide *t, u32 nxt, u64 queue)
{
	struct tide_fill *f = &t->fill;
	u64 base = tide_base(&t->path), left;

	/* until then the queue may become twice as long */
	f->ramp_q16 = (2 * queue << 16) / at_least(base, 1);
	f->ramp_ended = 0;
	f->growth_q16 = 0;
	f->ramped = queue / 2;
	/* a round begins here: it ends when less is in flight, the next one shows it */
	f->settling = TIDE_SETTLE - 1;
	left = t->window_q16 * ((base << 16) / at_least(base + queue, 1)) >> 16;
	t->window_q16 = at_least(left > Q16_ONE ? left - Q16_ONE : 0, TIDE_LEAST_Q16);
	t->safe_window_q16 = t->window_q16;
	tide_path_restart(&t->path);
	tide_start_round(t, nxt);
}

/* Looks for a queue in each RTT sample while the window grows, so that a ramp does not grow into it. */
static inline void tide_find(struct tide *t, const struct law_ack *a, u64 own)
{
	struct tide_fill *f = &t->fill;
	bool found;

	if (!a->rtt_us)
		return;
	if (f->stale && (s32)(a->una - f->sent) <= 0) {
		tide_path_restart(&t->path);
		tide_start_round(t, t->round.end);
		return;
	}
	f->stale = 0;
	if (!f->found)	/* of the first packet that finds a queue */
		f->led_q16 = a->rate_interval_us ? (u64)a->rate_delivered << 16 : (t->window_q16 << 16) / (Q16_ONE + f->growth_q16);
	found = t->round.last > tide_base(&t->path) + own + tide_bursts_wait(&f->bursts, tide_packet(&t->path));
	f->found = found && f->growth_q16 ? f->found + 1 : 0;
}

/*
 * Whether the latest samples allow growth. Unspaced packets of a ramp queue behind each other in each RTT, so up to the
 * safe window only a queue that lasts for an RTT counts, which the filters find.
 */
static inline bool tide_may_grow(const struct tide *t)
{
	return (t->path.unspaced && t->window_q16 < tide_safe_q16(t)) || 4 * t->fill.found < tide_samples(&t->path, t->window_q16);
}

/* Whether the window has just grown past `window_q16`. */
static inline bool tide_crosses(const struct tide *t, u64 before, u64 window_q16)
{
	return window_q16 && before <= window_q16 && window_q16 < t->window_q16;
}

VERIFIED_APART int tide_fill_ack(struct tide *t, const struct tide_parameters *p, const struct law_ack *a)
{
	struct tide_fill *f;
	u64 before, own, cross_traffic, rate, safe, bdp, ramp, ramped, queue;

	if (!t || !p || !a)
		return 0;
	f = &t->fill;
	before = t->window_q16;
	if (t->share.weight_q16 == Q16_ONE)
		tide_share_ack(&t->share, a);	/* at weight 1 an ordinary flow, whatever Tide finds */
	tide_path_rate(&t->path, a);
	rate = tide_rate_q32(&t->path);
	tide_fair_ack(&t->fair, a, rate);
	if (rate && tide_bursts_ack(&f->bursts, a, rate) && !tide_share_rules(t)) {
		tide_leaves_apart(t, a->now_us, a->nxt);
		return 0;
	}
	own = tide_own_queue(&t->path) + a->burst * tide_packet(&t->path);
	/*
	 * Packets of the transfer's other connections outside of the window are no cross traffic, nor are those that
	 * the test sends together: where packet times are long they queue for several RTTs.
	 */
	cross_traffic = tide_cross_traffic_queue(&t->path) + tide_tolerance(t);
	cross_traffic += (a->beside + a->burst + tide_fair_burst(&t->fair) - 1) * tide_packet(&t->path);
	tide_find(t, a, own);
	t->round.limited |= a->window_limited;
	if (a->window_limited && !a->reducing && !f->settling && !f->drain && f->growth_q16 && tide_may_grow(t)) {
		t->window_q16 += f->growth_q16 * at_most(a->packets, LAW_PACKETS_MAX);
		t->round.grew = 1;
	}
	if (f->growth_q16 && tide_filtered_queue(&t->path, &t->path.fast, &queue) && queue > own)
		tide_meet(t, a->nxt);
	safe = tide_safe_q16(t);
	bdp = safe ? tide_sure_bdp_q16(&t->path) : 0;
	if (f->growth_q16 > Q16_ONE / 20
	    && (tide_crosses(t, before, tide_part_q16(safe, TIDE_PART_Q16(0.95))) || tide_crosses(t, before, tide_part_q16(bdp, TIDE_PART_Q16(0.93))))) {
		tide_end_ramp(t, a->nxt);
		if (bdp && t->senders < 2 && !tide_share_rules(t))
			tide_fair_put_to_test(&t->fair, t->window_q16);
	}
	tide_outlive_ramp(t, a->una);
	/* own growth explains so much of a queue; in settle, the growth of the ramp does */
	ramp = tide_part_q16(tide_base(&t->path), f->settling ? f->ramp_q16 : f->growth_q16);
	if (!tide_filtered_queue(&t->path, &t->path.slow, &queue))
		queue = 0;
	ramped = f->growth_q16 ? ~0ULL : f->ramped;
	if (f->settling && ramped)
		f->ramped = at_least(ramped, queue / 2);
	if (queue <= cross_traffic + ramp)
		queue = 0;
	if (queue && queue <= ramped && tide_lets_bursts_pass(&t->path))
		tide_take_back(t, a->nxt, queue);
	else if (queue)
		tide_leaves_queue(t, a->now_us, a->nxt);
	else if ((s32)(a->una - t->round.end) > 0 && t->round.samples >= tide_samples(&t->path, t->window_q16))
		tide_end_round(t, p, a);
	tide_set_bursts(t, a->nxt);
	return 0;
}

#endif
