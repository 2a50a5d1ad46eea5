/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tide, without kernel access: submissive, and it fills the link. The reference (lowtide-cc, law/tide.rs) says what it does and why,
 * docs/tide.md draws it; the parts have the same names here. It leaves a link that others use, and listens by a pair of packets now and then.
 *
 * It has windows of its own, and shows the larger one; what brings the shown one down from outside is heard of at the next ACK. Delays are
 * units of 2^-8 us, rates segments per microsecond in 2^-32, growth and windows 2^-16.
 */
#ifndef LOWTIDE_TIDE_H
#define LOWTIDE_TIDE_H

#include "law.h"
#include "tide_fair.h"
#include "tide_listen.h"
#include "tide_path.h"
#include "tide_share.h"

#define TIDE_SETTLE 3			/* rounds that a change of the window is waited for: the rest of this one, two more */
#define TIDE_SMALL_PIPE_Q16 (8 * Q16_ONE)	/* there a loss says more */
#define TIDE_PAIRS_Q16 (4 * Q16_ONE)	/* the window for pairs of probes: a host lets half of a window go at once */
#define TIDE_GOOD 3			/* probes in a row that say that the link is free */
#define TIDE_GOOD_APART 6		/* and in a fair queue, which is empty now and then */
#define TIDE_VANISHED 3			/* queues that vanish, in a row, for which fair queues are looked for */
#define TIDE_BRIEFLY_US 10000000ULL	/* in between it was on the link for so long at the most */
#define TIDE_FAIR_WAIT_US 300000000ULL	/* the longest wait for others in a fair queue to go */
#define TIDE_ACK_DELAY_US 30000		/* a receiver that keeps an ACK back does so for longer */
#define TIDE_LONG 32			/* base round trips of somebody else's queue */
#define TIDE_HEAVY_LOSS_Q24 671089	/* 0.04 */
#define TIDE_LEAST_Q16 (2 * Q16_ONE)

struct tide_parameters {
	u32 probe_share_q32;	/* of the link's rate that probes may take in a full queue */
	u32 probe_rate_milli;	/* the least pairs of them per second */
	u32 drain_us;		/* how long without a queue near empty until the base is measured anew; 0: never */
	u32 base_rtt_us;	/* what is known of the base from before: a hint; 0: nothing */
};

struct tide_round {
	u32 end;		/* sequence number */
	u32 samples;
	u64 sum, least, last;
	u64 steps;		/* from each sample to the next */
	u32 packets, lost;
	u32 grew;		/* the window has grown in it */
	u32 limited;		/* the window was what limited it */
};

struct tide_fill {
	u64 growth_q16;		/* per packet acknowledged */
	u64 ramp_q16;		/* that of the ramp that has just ended: the queue that it makes is its own */
	u64 drain_window_q16;	/* to return to */
	u64 began_us;
	u64 near_empty_us;
	u32 drain;		/* rounds left of a look at the empty queue */
	u32 settling;
	u32 clean;		/* rounds without a queue worth the name, in a row */
	u32 found;		/* samples in a row above its own queue while it grows */
	u64 led_q16;		/* what was in flight when the first of these packets left */
	u32 stale;		/* what was sent up to here still comes back, and belongs to the probes before */
	u32 sent;
};

struct tide {
	struct tide_path path;
	struct tide_round round;
	struct tide_fill fill;
	struct tide_listen listen;
	struct tide_fair fair;
	struct tide_share share;
	u64 now_us;		/* at the latest ACK */
	u64 window_q16;		/* while it fills */
	u64 shown_q16;
	u64 cap_q16;		/* a window that led to a queue; 0: none */
	u64 last_full_rate_q32;	/* when a ramp last met a queue; 0: never */
	u64 before_q16;		/* the latest loss; 0: none */
	s64 loss_q24;
	u32 listens;
	u32 confirmed;		/* the link's rate is known for sure */
	u32 vanished;		/* queues of others in a row that were gone as soon as it had left: where queues are fair, it was its own */
	u32 srtt_us;
	u32 mss;
	u32 unused;
};

/* Whether its probes have to be out of step with others' packets. */
static inline bool tide_looks_closer(const struct tide *t)
{
	return t->listens && (t->listen.whole_q32 || t->listen.closer);
}

/* Whether packets leave in pairs: those further apart than the receiver waits for a second one would each have its ACK kept back. */
static inline bool tide_in_pairs(const struct tide *t, u64 window_q16)
{
	return (window_q16 * TIDE_ACK_DELAY_US) >> 16 < t->srtt_us;
}

/*
 * Where it fills the link a packet leaves by itself: the second of two would find a queue, which on a slow link is all that it allows itself.
 */
static inline u32 tide_least_burst(const struct tide *t)
{
	if (t->listens)
		return tide_probe_burst(&t->listen);
	return at_least(tide_fair_burst(&t->fair), tide_in_pairs(t, t->window_q16) ? 2 : 1);
}

static inline void tide_show(struct tide *t, struct law_window *w)
{
	u64 held_back = tide_fair_held_back_q16(&t->fair), alone = t->window_q16;

	if (t->listens) {
		alone = (t->srtt_us ? 2ULL : 1ULL) * tide_probe_burst(&t->listen) << 16;
	} else {
		if (tide_in_pairs(t, t->window_q16))
			alone &= ~(u64)(2 * Q16_ONE - 1);
		alone = at_least(alone > held_back ? alone - held_back : 0, TIDE_LEAST_Q16);
	}
	t->shown_q16 = w->cwnd_q16 = at_least(alone, tide_share_q16(&t->share));
	w->ssthresh_q16 = LAW_NO_THRESHOLD_Q16;
}

static inline void tide_fills(struct tide *t, u64 growth_q16, u64 now_us)
{
	__builtin_memset(&t->fill, 0, sizeof(t->fill));
	t->fill.growth_q16 = growth_q16;
	t->fill.began_us = t->fill.near_empty_us = now_us;
	t->listens = 0;
}

/* The path is another one than it seemed. */
static inline void tide_forget(struct tide *t)
{
	t->cap_q16 = t->last_full_rate_q32 = 0;
	t->confirmed = t->vanished = 0;
}

static inline void tide_start_round(struct tide *t, u32 nxt)
{
	__builtin_memset(&t->round, 0, sizeof(t->round));
	t->round.end = nxt;
}

/* At the begin: so long was the empty round trip to another connection; 0: nothing is known. */
static inline void tide_hint(struct tide *t, u32 base_us)
{
	t->path.hint.base = (u64)base_us << 8;
}

/* The least round trip; 0: there was none. */
static inline u32 tide_measured_us(const struct tide *t)
{
	return tide_least(&t->path.base) >> 8;
}

/* Whether the hint has turned out to be too small. */
static inline bool tide_refutes_hint(const struct tide *t)
{
	return t->path.hint.wrong;
}

static inline void tide_begin(struct tide *t, const struct tide_parameters *p, struct law_window *w, u32 nxt)
{
	__builtin_memset(t, 0, sizeof(*t));
	tide_hint(t, p->base_rtt_us);
	t->window_q16 = TIDE_LEAST_Q16;
	t->round.end = nxt;
	t->listens = 1;
	t->listen.stale = t->listen.first = 1;
	t->listen.trains = TIDE_TRAINS;
	tide_show(t, w);
}

static inline u64 tide_part_q16(u64 window_q16, u32 part_q16)
{
	return (window_q16 * part_q16) >> 16;
}

#define TIDE_PART_Q16(part) ((u32)((part) * 65536 + 0.5))

/* What it may grow to fast; 0: not known. */
static inline u64 tide_safe_q16(const struct tide *t)
{
	return t->confirmed ? tide_pipe_q16(&t->path) : t->cap_q16;
}

/* Whether its window holds what the link is known to carry: a queue is met with less where others have a part of it. */
static inline bool tide_has_all(const struct tide *t)
{
	u64 pipe = tide_pipe_q16(&t->path);

	return pipe && t->window_q16 >= tide_part_q16(pipe, TIDE_PART_Q16(0.9));
}

/* Linear growth per round: by the root of what is the same delay on any link. */
VERIFIED_APART u64 tide_step_q16(const struct tide *t)
{
	u64 rate;

	if (!t)
		return 0;
	rate = tide_rate_q32(&t->path);
	if (!rate)
		return Q16_ONE / 10;
	return at_least(tide_root(at_most(tide_pipe_q16(&t->path) >> 8, (250 * rate) >> 16) / 10 << 16), Q16_ONE / 10);
}

/* What the second of a pair waits for the first: whose ACK comes now left a round trip ago. */
static inline u64 tide_second(const struct tide *t)
{
	return tide_in_pairs(t, (t->window_q16 << 16) / (Q16_ONE + t->fill.growth_q16)) ? tide_packet_at_most(&t->path) : 0;
}

/* The link's rate, where little noise lets packets tell whether others are served in turn, and a slower link from these; else 0. */
static inline u64 tide_whole_q32(const struct tide *t)
{
	u64 rate = tide_rate_q32(&t->path);

	return t->path.noise * TIDE_ALIKE_PART * rate < 1ULL << 40 ? rate : 0;
}

static inline u64 tide_least_growth_q16(const struct tide *t)
{
	u64 part = (tide_own_queue(&t->path) << 16) / at_least(tide_base(&t->path), 1);

	return at_most(at_least(part, Q16_ONE / 64), Q16_ONE);
}

/*
 * From filling to listening; where queues are fair, until probes find that nobody else is served in turn on a link of this whole rate; 0: they
 * are not.
 */
static inline void tide_listens(struct tide *t, u64 now_us, u32 nxt, u64 whole_q32)
{
	/* somebody is there: what was safe before is not */
	t->cap_q16 = at_least(at_most(t->cap_q16 ? t->cap_q16 : ~0ULL, t->window_q16 / 2), TIDE_LEAST_Q16);
	t->confirmed = 0;
	t->path.queued = 1;
	tide_fair_restart(&t->fair);
	tide_share_enter(&t->share, t->window_q16);
	__builtin_memset(&t->listen, 0, sizeof(t->listen));
	t->listen.stale = 1;
	if (tide_pipe_q16(&t->path) >= TIDE_SMALL_PIPE_Q16 || t->vanished || !tide_knows_packet(&t->path, now_us))
		t->listen.trains = TIDE_TRAINS;
	t->listen.packet = tide_packet(&t->path);
	t->listen.began_us = now_us;
	t->listen.whole_q32 = whole_q32;
	t->listens = 1;
	tide_start_round(t, nxt);
}

/* Somebody else's queue, or its own in a link whose queues are fair: then one after the other is gone as soon as it has left. */
static inline void tide_leaves_queue(struct tide *t, u64 now_us, u32 nxt)
{
	if (now_us - t->fill.began_us > TIDE_BRIEFLY_US)
		t->vanished = 0;
	tide_listens(t, now_us, nxt, t->vanished >= TIDE_VANISHED ? tide_whole_q32(t) : 0);
	t->listen.queue = 1;
}

/* A ramp ends: it has met a queue, or what is known to be safe. */
static inline void tide_end_ramp(struct tide *t)
{
	t->fill.ramp_q16 = t->fill.growth_q16;
	t->fill.growth_q16 = 0;
	t->fill.settling = TIDE_SETTLE;
}

/* No growth, until rounds are clean again. */
static inline void tide_hold(struct tide *t)
{
	t->fill.growth_q16 = 0;
	t->fill.clean = 0;
}

/* A round without a queue worth the name. */
static inline void tide_regrow(struct tide *t)
{
	struct tide_fill *f = &t->fill;
	u64 least = tide_least_growth_q16(t), safe = tide_safe_q16(t);
	u64 near = tide_part_q16(safe, TIDE_PART_Q16(0.93));
	u64 doubled = at_least(2 * f->growth_q16, least);

	if (!safe || t->window_q16 < near) {
		f->growth_q16 = at_most(doubled, Q16_ONE);
		f->clean = 0;
		return;
	}
	f->clean++;
	if (f->clean <= (t->confirmed && t->window_q16 > near ? 24 : 1))
		f->growth_q16 = least;
	else
		f->growth_q16 = at_most(doubled, at_least(Q16_ONE / 2, least));
}

/* After a long time with a queue the base may be one that was measured in it. */
static inline void tide_look_at_base(struct tide *t, const struct tide_parameters *p, u64 now_us, s64 queue)
{
	struct tide_fill *f = &t->fill;
	u64 base = tide_base(&t->path), whole = base + (queue > 0 ? queue : 0), left;

	if (!p->drain_us || f->drain || f->growth_q16 || now_us - f->near_empty_us < p->drain_us)
		return;
	f->drain = TIDE_SETTLE;
	f->drain_window_q16 = t->window_q16;
	left = tide_part_q16(t->window_q16, TIDE_PART_Q16(0.95));
	left = left * ((base << 16) / at_least(whole, 1)) >> 16;
	t->window_q16 = at_least(left > Q16_ONE ? left - Q16_ONE : 0, TIDE_LEAST_Q16);
}

/* A round is over that found a queue above its own. */
static inline void tide_give_way(struct tide *t, u64 queue, u64 own)
{
	u64 base = tide_base(&t->path);
	u64 part = ((queue - own) << 16) / at_least(base + queue, 1);
	u64 off = t->window_q16 / 2 * part >> 16, up = t->window_q16 + tide_step_q16(t);

	t->path.queued = 1;
	t->window_q16 = at_least(up > off ? up - off : 0, TIDE_LEAST_Q16);
	t->cap_q16 = t->window_q16;
	t->confirmed = tide_has_all(t);
	tide_hold(t);
}

/* A ramp has met a queue: back to what was in flight when the first packet left that found it. */
static inline void tide_meet(struct tide *t)
{
	u64 rate = tide_rate_q32(&t->path), last = t->last_full_rate_q32, grew = Q16_ONE + t->fill.growth_q16, led;

	t->path.queued = 1;
	/* what grew in two round trips at the most: a sample of a packet that left in a lull says little */
	led = at_least(t->fill.led_q16, (((t->window_q16 << 16) / grew) << 16) / grew);
	t->window_q16 = at_least(at_most(t->window_q16, led), TIDE_LEAST_Q16);
	t->cap_q16 = t->window_q16;
	tide_end_ramp(t);
	if (rate && last && (rate > last ? rate - last : last - rate) * 20 < last)
		t->confirmed = tide_has_all(t);
	t->last_full_rate_q32 = rate;
}

VERIFIED_APART int tide_end_round(struct tide *t, const struct tide_parameters *p, const struct law_ack *a)
{
	struct tide_round *r;
	struct tide_fill *f;
	u64 own, spread, steps, sent;
	s64 queue;

	if (!t || !p || !a)
		return 0;
	r = &t->round;
	f = &t->fill;
	own = tide_own_queue(&t->path) + tide_second(t);
	queue = (s64)r->least - (s64)tide_base(&t->path);
	/* growth makes the later ones longer */
	spread = r->grew ? 0 : r->sum / at_least(r->samples, 1) - r->least;
	steps = r->steps / at_least(r->samples - 1, 1);
	tide_path_round(&t->path, a->now_us, at_least(spread, steps));
	sent = (u64)r->packets + r->lost;
	if (sent)
		t->loss_q24 += ((s64)(((u64)r->lost << 24) / sent) - t->loss_q24) / 8;
	if (queue < (s64)(own / 2))
		f->near_empty_us = a->now_us;
	if (tide_rate_q32(&t->path) && tide_fair_round(&t->fair, a->now_us, r->packets, queue * 4 > (s64)own * 3, tide_rate_q32(&t->path))) {
		tide_listens(t, a->now_us, a->nxt, tide_rate_q32(&t->path));
		t->cap_q16 = t->window_q16;
		return 0;
	}
	if (f->drain) {
		f->drain--;
		if (!f->drain) {	/* what comes back at once is a ramp, too */
			f->ramp_q16 = (f->drain_window_q16 << 16) / at_least(t->window_q16, 1);
			f->ramp_q16 = f->ramp_q16 > Q16_ONE ? f->ramp_q16 - Q16_ONE : 0;
			f->settling = TIDE_SETTLE;
			t->window_q16 = f->drain_window_q16;
			f->near_empty_us = a->now_us;
		}
	} else if (f->settling) {
		f->settling--;
	} else if (t->loss_q24 > TIDE_HEAVY_LOSS_Q24) {
		tide_listens(t, a->now_us, a->nxt, 0);
		return 0;
	} else if (f->found && f->growth_q16 && queue * 4 >= (s64)own * 3) {
		tide_meet(t);
	} else if (queue > (s64)own) {
		tide_give_way(t, queue, own);
	} else if (!r->limited) {
		tide_hold(t);
	} else if (queue * 4 < (s64)own * 3) {
		tide_regrow(t);
	} else {
		t->window_q16 += tide_step_q16(t);
		tide_hold(t);
	}
	tide_look_at_base(t, p, a->now_us, queue);
	tide_start_round(t, a->nxt);
	return 0;
}

/* A ramp looks for a queue, sample by sample: it does not grow into what may be one. */
static inline void tide_find(struct tide *t, const struct law_ack *a, u64 own)
{
	struct tide_fill *f = &t->fill;

	if (!a->rtt_us)
		return;
	if (f->stale && (s32)(a->una - f->sent) <= 0) {
		tide_path_restart(&t->path);
		tide_start_round(t, t->round.end);
		return;
	}
	f->stale = 0;
	if (!f->growth_q16 || t->round.last <= tide_base(&t->path) + own) {
		f->found = 0;
		return;
	}
	if (!f->found++)
		f->led_q16 = a->rate_interval_us ? (u64)a->rate_delivered << 16 : (t->window_q16 << 16) / (Q16_ONE + f->growth_q16);
}

VERIFIED_APART int tide_fill_turn(struct tide *t, const struct tide_parameters *p, const struct law_ack *a)
{
	struct tide_fill *f;
	u64 before, own, foreign, near, ramp, queue, second;

	if (!t || !p || !a)
		return 0;
	f = &t->fill;
	before = t->window_q16;
	tide_path_rate(&t->path, a);
	tide_fair_ack(&t->fair, a->now_us, a->packets, tide_rate_q32(&t->path));
	second = tide_second(t);
	own = tide_own_queue(&t->path) + second;
	foreign = tide_foreign_queue(&t->path) + second;
	tide_find(t, a, own);
	t->round.limited |= a->window_limited;
	if (a->window_limited && !a->reducing && !f->settling && !f->drain && f->growth_q16 && 4 * f->found < tide_samples(&t->path)) {
		t->window_q16 += f->growth_q16 * at_most(a->packets, LAW_PACKETS_MAX);
		t->round.grew = 1;
	}
	if (f->growth_q16 && tide_filtered_queue(&t->path, &t->path.fast, &queue) && queue > own)
		tide_meet(t);
	near = tide_part_q16(tide_safe_q16(t), TIDE_PART_Q16(0.95));
	if (f->growth_q16 > Q16_ONE / 20 && near && before <= near && near < t->window_q16)
		tide_end_ramp(t);
	/* what its own growth makes is its own, until it has been seen to end */
	ramp = tide_part_q16(tide_base(&t->path), f->settling ? f->ramp_q16 : f->growth_q16);
	if (tide_filtered_queue(&t->path, &t->path.slow, &queue) && queue > foreign + ramp)
		tide_leaves_queue(t, a->now_us, a->nxt);
	else if ((s32)(a->una - t->round.end) > 0 && t->round.samples >= tide_samples(&t->path))
		tide_end_round(t, p, a);
	return 0;
}

/* Trains of packets have told how long one takes on the link: with that, its weight is worth its part of what fills the path. */
static inline void tide_measured(struct tide *t, u64 now_us, bool empty)
{
	struct tide_listen *l = &t->listen;
	u64 whole = tide_whole_q32(t);

	tide_path_train(&t->path, now_us, (l->least_us << 8) / l->least_packets);
	tide_share_begin(&t->share, ((u64)t->srtt_us << 24) / tide_packet(&t->path));
	/* no queue, but somebody else is served in turn */
	if (empty && whole && !tide_fair_together(l->least_us, l->least_packets, whole))
		l->whole_q32 = whole;
}

/* Whether the packets of the latest probe came with others' between them, in a fair queue. `empty`: probes find no queue. */
VERIFIED_APART int tide_apart(struct tide *t, u64 now_us, int empty)
{
	struct tide_listen *l;
	bool probes_only;
	u64 told;
	int apart;

	if (!t)
		return 0;
	l = &t->listen;
	if (l->whole_q32 && now_us - l->began_us > TIDE_FAIR_WAIT_US) {
		l->whole_q32 = 0;
		tide_path_forget_rate(&t->path);
	}
	probes_only = tide_share_q16(&t->share) < TIDE_PAIRS_Q16;
	if (!probes_only)
		l->closer = l->trains = 0;
	if (tide_train(l))
		tide_measured(t, now_us, empty);
	/* what its weight sends leaves otherwise */
	told = probes_only ? l->whole_q32 : 0;
	apart = told && !l->stale && !tide_fair_together(l->us, l->packets, told);
	tide_measure(l, tide_packet(&t->path));
	l->us = l->packets = l->stale = 0;
	return apart;
}

/* From listening to filling. */
static inline void tide_begins_again(struct tide *t, const struct law_ack *a, u64 growth_q16)
{
	tide_fills(t, growth_q16, a->now_us);
	t->fill.stale = 1;
	t->fill.sent = a->nxt;
	t->window_q16 = TIDE_LEAST_Q16;
	t->loss_q24 = 0;
	tide_path_restart(&t->path);
	tide_start_round(t, a->nxt);
}

VERIFIED_APART int tide_doubt(struct tide *t, const struct law_ack *a)
{
	u64 least;

	if (!t || !a)
		return 0;
	least = tide_least_heard(&t->listen);
	if (!tide_doubts(&t->listen, least))
		return 0;
	tide_path_renew(&t->path, a->now_us, least);
	tide_forget(t);
	tide_begins_again(t, a, Q16_ONE);
	return 0;
}

/* A round of listening is over that found this round trip at least. */
static inline void tide_probe(struct tide *t, const struct law_ack *a, u64 rtt)
{
	struct tide_listen *l = &t->listen;
	u64 base = tide_base(&t->path), noise = t->path.noise, queue = ~0ULL, safe, waited = 0, packet;
	u64 own = tide_own_queue(&t->path), middle = tide_middle(&t->path);
	u32 back = at_most(at_least(noise / TIDE_MS, 1), TIDE_HEARD);
	bool apart, anew;

	l->peak = at_least(l->peak, rtt - base);
	l->heard[l->probes & (TIDE_HEARD - 1)] = rtt;
	if (l->probes + 1)
		l->probes++;
	for (u32 i = 0; i < TIDE_HEARD; i++) {
		u64 heard = l->heard[(l->probes - 1 - i) & (TIDE_HEARD - 1)];

		if (i < back && i < l->probes && heard < queue)
			queue = heard;
	}
	queue -= base;
	apart = tide_apart(t, a->now_us, queue < middle);
	anew = l->first && !t->path.hint.base && !l->trains;
	/* in doubt whether the path is another one, only an empty link is free */
	if (!anew && (apart || (l->closer ? queue * 4 >= own * 3 : queue >= middle))) {
		l->good = 0;
		if (tide_share_q16(&t->share) < TIDE_PAIRS_Q16)
			tide_doubt(t, a);
		return;
	}
	l->closer = 0;
	l->good++;
	if (!anew && (l->trains || l->good < (l->whole_q32 ? TIDE_GOOD_APART : TIDE_GOOD)))
		return;
	t->vanished = l->queue && l->probes <= TIDE_GOOD + 2 ? t->vanished + 1 : 0;
	/* whoever held a queue for long has a buffer that takes a ramp of as much */
	if ((a->now_us - l->began_us) << 8 > TIDE_LONG * base && t->cap_q16 && tide_pipe_q16(&t->path)) {
		safe = at_most(at_least((l->peak << 16) / at_least(base, 1), Q16_ONE / 2), Q16_ONE);
		t->cap_q16 = at_least(t->cap_q16, safe * tide_pipe_q16(&t->path) >> 16);
	}
	/* an ACK comes for two packets, of which the second has waited for the first; in a small pipe that is a queue as any */
	packet = tide_packet(&t->path);
	if (base >= 8 * packet)
		waited = packet;
	tide_begins_again(t, a, !anew && queue > waited && (queue - waited) * 4 > own * 3 ? 0 : Q16_ONE);
}

/*
 * The first packets of a probe end the round of the one before, and what comes after four is the next one's; the ACK of a single one may have
 * waited for another, and a program that has little to send tells nothing.
 */
VERIFIED_APART int tide_arrivals(struct tide *t, const struct law_ack *a)
{
	u64 passed;

	if (!t || !a)
		return 0;
	passed = a->now_us - t->listen.acknowledged_us;
	if ((s32)(a->una - t->round.end) <= 0 && a->packets && t->listen.packets + a->packets < 4 && !a->app_limited &&
	    (a->packets > 1 || passed < TIDE_ACK_DELAY_US)) {
		t->listen.packets += a->packets;
		t->listen.us += passed;
	}
	t->listen.acknowledged_us = a->now_us;
	return 0;
}

VERIFIED_APART int tide_hear(struct tide *t, const struct law_ack *a)
{
	u64 least;

	if (!t || !a)
		return 0;
	/* with more packets than these there are no trains, and before them it knows little of the path */
	if (!t->listen.trains || tide_share_q16(&t->share) >= TIDE_PAIRS_Q16)
		tide_share_ack(&t->share, a);
	tide_arrivals(t, a);
	/* what was sent before still comes back for a while */
	if ((s32)(a->una - t->round.end) <= 0 || !t->round.samples)
		return 0;
	least = t->round.least;
	tide_share_round(&t->share, least - tide_base(&t->path));
	tide_start_round(t, a->nxt);
	tide_probe(t, a, least);
	return 0;
}

/* The samples of the round, and of the path. */
VERIFIED_APART int tide_sample_rtt(struct tide *t, const struct law_ack *a)
{
	struct tide_round *r;
	u64 rtt;

	if (!t || !a)
		return 0;
	r = &t->round;
	rtt = (u64)a->rtt_us << 8;
	if (tide_path_sample(&t->path, a->now_us, a->rtt_us))
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
	t->round.packets += a->packets;
	t->round.lost += a->lost;
	if (a->rtt_us)
		tide_sample_rtt(t, a);
}

static inline bool tide_ack(struct tide *t, const struct tide_parameters *p, const struct law_weight *weight,
			    struct law_window *w, const struct law_ack *a)
{
	if (!t->listens && w->cwnd_q16 < t->shown_q16)
		t->window_q16 = at_least(at_most(t->window_q16, w->cwnd_q16), TIDE_LEAST_Q16);
	tide_share_weight(&t->share, weight->weight_q16);
	if (t->listens)
		tide_hear(t, a);
	else
		tide_fill_turn(t, p, a);
	tide_show(t, w);
	return false;
}

/* Losses alone say nothing; they count where there is a queue of its own, where it sends more than the pipe holds, and in a small pipe. */
VERIFIED_APART int tide_congestion(struct tide *t, u32 signal, u32 nxt)
{
	struct tide_fill *f;
	u64 pipe, queue, share;
	bool queued;

	if (!t)
		return 0;
	f = &t->fill;
	share = tide_share_q16(&t->share);
	if (share && (t->listens || share > t->window_q16))
		tide_share_reduce(&t->share, signal);
	if (t->listens)
		return 0;
	pipe = tide_pipe_q16(&t->path);
	queued = tide_filtered_queue(&t->path, &t->path.fast, &queue) && queue * 4 > (tide_own_queue(&t->path) + tide_second(t)) * 3;
	t->before_q16 = f->drain ? f->drain_window_q16 : t->window_q16;
	if (signal == LAW_TIMEOUT || (!f->growth_q16 && !f->settling && pipe && pipe < TIDE_SMALL_PIPE_Q16)) {
		tide_listens(t, t->now_us, nxt, 0);
	} else if (queued || (pipe && t->window_q16 > pipe) || signal != LAW_LOSS) {
		if (pipe && pipe < t->window_q16)
			t->window_q16 = pipe;
		t->window_q16 = at_least(tide_part_q16(t->window_q16, TIDE_PART_Q16(0.95)), TIDE_LEAST_Q16);
		f->growth_q16 = 0;
		f->drain = 0;
	}
	return 0;
}

static inline void tide_reduce(struct tide *t, const struct tide_parameters *p, const struct law_weight *weight, struct law_window *w,
			       enum law_signal signal, u32 random)
{
	tide_share_weight(&t->share, weight->weight_q16);
	tide_congestion(t, signal, w->nxt);
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

/* After a pause nobody knows who came meanwhile. */
static inline void tide_restart(struct tide *t, struct law_window *w, u32 nxt, u64 idle_us)
{
	if (!t->listens) {
		tide_fills(t, Q16_ONE, t->now_us + idle_us);
		t->window_q16 = TIDE_LEAST_Q16;
	}
	t->vanished = 0;
	tide_share_restart(&t->share, w->cwnd_q16, idle_us);
	tide_path_restart(&t->path);
	tide_fair_restart(&t->fair);
	tide_start_round(t, nxt);
	tide_show(t, w);
}

/*
 * It goes on with what another connection over the same path knew and did, all but that one's least round trip, which is a hint, and the rounds.
 * `base` is its own.
 */
static inline void tide_go_on(struct tide *t, const struct tide_extreme *base, u32 nxt)
{
	u64 known = tide_base(&t->path), own = tide_least(base);

	t->path.base = *base;
	__builtin_memset(&t->path.hint, 0, sizeof(t->path.hint));
	t->path.empty = own;
	if (!own || known < own)
		t->path.empty = t->path.hint.base = known;
	tide_path_restart(&t->path);
	tide_fair_restart(&t->fair);
	hystart_begin(&t->share.hystart);
	tide_start_round(t, nxt);
	t->listen.stale = t->fill.stale = 1;
	t->fill.sent = nxt;
	t->shown_q16 = t->before_q16 = 0;
}

/* How fast it sends probes that find a queue again and again. Segments per microsecond, 2^-32. */
static inline u64 tide_seldom_q32(const struct tide *t, const struct tide_parameters *p)
{
	u64 part = tide_rate_q32(&t->path) * (p->probe_share_q32 >> 12) >> 20;

	return at_least(part, ((u64)p->probe_rate_milli << 33) / 1000000000);
}

static inline u64 tide_bytes_per_second(u64 segments_q32, u32 mss)
{
	return at_least(((segments_q32 * mss) >> 12) * 1000000 >> 20, 1);
}

static inline u64 tide_seldom(const struct tide *t, const struct tide_parameters *p, u32 mss)
{
	return tide_bytes_per_second(tide_seldom_q32(t, p), mss);
}

/* Segments per microsecond, 2^-32. */
VERIFIED_APART u64 tide_pace_q32(const struct tide *t, const struct tide_parameters *p)
{
	u64 srtt, base_us, share, rate, window, wanted, limit, often;

	if (!t || !p)
		return 0;
	srtt = at_least(t->srtt_us, 1);
	base_us = at_least(tide_base(&t->path) >> 8, 1);
	share = tide_share_q16(&t->share);
	rate = tide_rate_q32(&t->path);
	if (!t->listens) {
		window = at_least(t->window_q16, share);
		wanted = window * (t->fill.growth_q16 >= Q16_ONE / 4 ? TIDE_PART_Q16(1.25) : TIDE_PART_Q16(1.1)) / srtt;
		if (!t->confirmed || !rate)
			return wanted;
		limit = at_least((rate >> 16) * TIDE_PART_Q16(1.02), window * TIDE_PART_Q16(1.05) / base_us);
		return at_most(wanted, limit);
	}
	share = share * TIDE_PART_Q16(1.2) / srtt;
	if (tide_share_q16(&t->share) >= TIDE_PAIRS_Q16)
		return share;
	often = ((t->listen.trains ? 3ULL : 2ULL) << 32) / base_us;
	if (t->listen.probes >= 4 && !t->listen.good)
		return tide_out_of_step_q32(&t->listen, at_least(at_most(tide_seldom_q32(t, p), often), share));
	return at_least(often, share);
}

/* The same in bytes per second; 0: not known yet. */
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
	values[1] = t->path.noise;
	values[2] = tide_own_queue(&t->path);
	values[3] = tide_rate_q32(&t->path) ? (s64)tide_rate_q32(&t->path) : LAW_NO_VALUE;
	values[4] = tide_safe_q16(t) ? (s64)tide_safe_q16(t) : LAW_NO_VALUE;
	values[5] = t->listens ? LAW_NO_VALUE : (s64)t->fill.growth_q16;
	values[6] = tide_filtered_queue(&t->path, &t->path.slow, &queue) ? (s64)queue : LAW_NO_VALUE;
	values[7] = tide_share_q16(&t->share);
	return 8;
}

#endif
