/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The state of Tide, and the step from FILL to LISTEN, without kernel access. The reference is law/tide.rs of
 * lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_STATE_H
#define LOWTIDE_TIDE_STATE_H

#include "law.h"
#include "tide_bursts.h"
#include "tide_listen.h"
#include "tide_path.h"
#include "tide_share.h"

/* in a smaller BDP buffers may be below the thresholds, so a loss counts */
#define TIDE_SMALL_BDP_Q16 (8 * Q16_ONE)
#define TIDE_PAIRS_Q16 (4 * Q16_ONE)	/* window for pairs of probes: hosts send up to half of a window at once */
#define TIDE_UNPACED 4		/* times the share's rate: effectively unpaced */
#define TIDE_LEAST_Q16 (2 * Q16_ONE)	/* least window of FILL */
#define TIDE_RAMP_Q16 Q16_ONE		/* growth of a ramp: the window doubles per RTT */
#define TIDE_PART_Q16(part) ((u32)((part) * 65536 + 0.5))

struct tide_parameters {
	u32 probe_share_q32;	/* greatest part of the link's rate for probes while they find queues */
	u32 probe_rate_milli;	/* least probes per 1000 s */
	/* time without a nearly empty queue after which drain measures the base RTT; 0: never */
	u32 drain_us;
};

struct tide_round {
	u32 end;		/* the round is over when this sequence number is acknowledged */
	u32 samples;		/* RTT samples, counted */
	u64 sum, least, last;	/* RTTs, 2^-8 us */
	u64 steps;		/* sum of the steps from one RTT sample to the next */
	u32 packets, lost;	/* segments acknowledged, and newly marked lost */
	u32 grew;		/* the window has grown in it */
	u32 limited;		/* the window was the limit */
};

struct tide_fill {
	u64 growth_q16;		/* segments that the window gains per segment acknowledged */
	u64 ramp_q16;		/* growth of the latest ramp or of the end of drain: its queue is self-induced */
	u64 paused_q16;		/* growth before a pause */
	u64 drain_window_q16;	/* the window after drain */
	u64 began_us;		/* when FILL began */
	u64 near_empty_us;	/* the latest round with a queue below own_queue / 2 */
	u64 clean_rate_q32;	/* the delivery rate after the latest clean round */
	u32 drain;		/* rounds of drain left */
	u32 settling;		/* rounds of settle left */
	u32 clean;		/* rounds in a row below 0.75 own_queue, with a window beyond the safe one */
	u32 found;		/* RTT samples in a row above own_queue while the window grows */
	u64 led_q16;		/* in flight when the first of these packets left */
	u32 stale;		/* data sent in LISTEN, up to `sent`, is not all acknowledged yet */
	u32 sent;
	u32 ramp_ended;		/* the ramp has ended: data sent up to `ramp_sent` may have met its queue */
	u32 ramp_sent;
	u32 lost;		/* packets of this FILL were lost */
	u64 ramped;		/* longest queue that the latest ramp may have caused; 0: it has settled */
	struct tide_bursts bursts;
};

struct tide {
	struct tide_path path;
	struct tide_round round;
	struct tide_fill fill;
	struct tide_listen listen;
	struct tide_fair fair;
	struct tide_share share;
	u64 now_us;		/* the latest ACK */
	u64 window_q16;		/* of FILL */
	u64 shown_q16;		/* the window that the stack was given last */
	/* safe window unless confirmed: one that met a queue, or half of one that met cross traffic; 0: unknown */
	u64 safe_window_q16;
	u64 last_full_rate_q32;	/* the rate when a ramp last met a queue; 0: never */
	u64 before_q16;		/* window before the latest loss; 0: none */
	s64 loss_q24;		/* part of the packets lost, smoothed over rounds */
	u32 listens;		/* in LISTEN, else in FILL */
	u32 confirmed;		/* a window of at least 0.9 BDP met a queue: the rate is that of the link */
	/* queues in a row that were gone soon after FILL: in fair queues they were self-induced */
	u32 vanished;
	u32 short_fills;		/* short FILLs that loss or packets apart ended, less long ones; at most 5 */
	u32 srtt_us;
	u32 mss;
	u32 ruled;		/* the share was what Tide sent at the latest reduction */
	u32 senders;		/* connections that fill the window, at least 1 */
};

static inline void tide_begin_fill(struct tide *t, u64 growth_q16, u64 now_us)
{
	__builtin_memset(&t->fill, 0, sizeof(t->fill));
	t->fill.growth_q16 = growth_q16;
	t->fill.began_us = t->fill.near_empty_us = now_us;
	t->listens = 0;
}

/*
 * A ramp sends bursts. Not behind a token bucket, by whose rate they always come apart, nor among packets of other
 * connections.
 */
static inline void tide_set_bursts(struct tide *t, u32 nxt)
{
	bool ramps = !t->listens && t->fill.growth_q16 >= TIDE_RAMP_Q16 && t->senders < 2 && !tide_lets_bursts_pass(&t->path);

	tide_bursts_leave(&t->fill.bursts, ramps, tide_packet(&t->path), nxt);
}

/* The path is not what it seemed, so nothing is safe. */
static inline void tide_forget(struct tide *t)
{
	t->safe_window_q16 = t->last_full_rate_q32 = 0;
	t->confirmed = t->vanished = 0;
	t->listen.remeasured = 0;
	t->listen.longest = t->listen.limit = 0;
}

static inline void tide_start_round(struct tide *t, u32 nxt)
{
	__builtin_memset(&t->round, 0, sizeof(t->round));
	t->round.end = nxt;
}

static inline u64 tide_part_q16(u64 window_q16, u32 part_q16)
{
	return (window_q16 * part_q16) >> 16;
}

/*
 * Whether the spread is still measured. Several connections skip that in the first LISTEN, as their own packets queue.
 */
static inline bool tide_measures_spread(const struct tide *t)
{
	const struct tide_listen *l = &t->listen;

	if (l->first && t->senders > 1)
		return false;
	return tide_spread_is_due(&t->path.spread) || (l->first && l->probes < TIDE_SPREAD_FIRST_PROBES && tide_spread(&t->path));
}

/* The safe window, up to which growth may be fast; 0: not known. */
static inline u64 tide_safe_q16(const struct tide *t)
{
	return t->confirmed ? tide_bdp_q16(&t->path) : t->safe_window_q16;
}

/* Whether the weighted share is what Tide sends. */
static inline bool tide_share_rules(const struct tide *t)
{
	u64 share = tide_share_q16(&t->share);

	return share && (t->listens || share > t->window_q16);
}

/*
 * Whether Tide sends as an ordinary flow: its share is a window, not just a pace of probes. The pace of 4 times its
 * rate only spreads the bursts that ACKs for many segments cause.
 */
static inline bool tide_is_ordinary(const struct tide *t)
{
	return tide_share_rules(t) && tide_share_q16(&t->share) >= TIDE_PAIRS_Q16;
}

/*
 * The link's rate if packets that left together can show cross traffic, as noise is below a fifth of a packet time;
 * else 0.
 */
static inline u64 tide_whole_q32(const struct tide *t)
{
	u64 rate = tide_rate_q32(&t->path);

	return tide_noise(&t->path) * TIDE_ALIKE_PART * rate < 1ULL << 40 ? rate : 0;
}

/*
 * From FILL to LISTEN. `whole_q32`: fair-queue LISTEN, until probes show that the link of this rate is free of cross
 * traffic; 0: any other.
 */
static inline void tide_begin_listen(struct tide *t, u64 now_us, u32 nxt, u64 whole_q32)
{
	bool large;

	/* cross traffic: the window is no longer safe */
	t->safe_window_q16 = at_least(at_most(t->safe_window_q16 ? t->safe_window_q16 : ~0ULL, t->window_q16 / 2), TIDE_LEAST_Q16);
	t->confirmed = 0;
	t->path.queued = 1;
	tide_fair_restart(&t->fair);
	tide_share_enter(&t->share, t->window_q16);
	__builtin_memset(&t->listen, 0, sizeof(t->listen));
	t->listen.stale = 1;
	large = tide_bdp_q16(&t->path) >= TIDE_SMALL_BDP_Q16;
	t->listen.confirms = large && t->path.noise && tide_whole_q32(t);
	if (large || t->vanished || !tide_knows_packet(&t->path, now_us))
		t->listen.trains = TIDE_TRAINS;
	t->listen.packet = tide_packet(&t->path);
	t->listen.began_us = now_us;
	t->listen.whole_q32 = whole_q32;
	t->listens = 1;
	tide_start_round(t, nxt);
}

#endif
