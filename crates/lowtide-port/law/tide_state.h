/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What Tide knows and does, and how it leaves a link, without kernel access (the reference: lowtide-cc, law/tide.rs).
 */
#ifndef LOWTIDE_TIDE_STATE_H
#define LOWTIDE_TIDE_STATE_H

#include "law.h"
#include "tide_bursts.h"
#include "tide_listen.h"
#include "tide_path.h"
#include "tide_share.h"

#define TIDE_SMALL_PIPE_Q16 (8 * Q16_ONE)	/* there a loss says more */
#define TIDE_PAIRS_Q16 (4 * Q16_ONE)	/* the window for pairs of probes: a host lets half of a window go at once */
#define TIDE_UNPACED 4		/* times the share's rate: effectively unpaced */
#define TIDE_LEAST_Q16 (2 * Q16_ONE)
#define TIDE_RAMP_Q16 Q16_ONE		/* growth that is a ramp */
#define TIDE_PART_Q16(part) ((u32)((part) * 65536 + 0.5))

struct tide_parameters {
	u32 probe_share_q32;	/* of the link's rate that probes may take in a full queue */
	u32 probe_rate_milli;	/* the least of them per second, of two segments or four */
	u32 drain_us;		/* how long without a queue near empty until the base is measured anew; 0: never */
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
	u32 ramp_ended;		/* that ramp's queue: what was sent up to here may have met it */
	u32 ramp_sent;
	u64 ramped;		/* the longest queue that may be of the latest ramp: none once a round after it has shown what it led to */
	struct tide_bursts bursts;
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
	u32 lossy;		/* times it has left for what probes may not hear of, less those that it stayed for long */
	u32 srtt_us;
	u32 mss;
	u32 ruled;		/* its share was what it sent when the latest reduction was asked for */
	u32 senders;		/* connections that fill its window, 1 at the least */
};

static inline void tide_fills(struct tide *t, u64 growth_q16, u64 now_us)
{
	__builtin_memset(&t->fill, 0, sizeof(t->fill));
	t->fill.growth_q16 = growth_q16;
	t->fill.began_us = t->fill.near_empty_us = now_us;
	t->listens = 0;
}

/* A ramp's packets leave in bursts; not behind a token bucket, by whose rate they always come apart, nor among those of other connections. */
static inline void tide_set_bursts(struct tide *t, u32 nxt)
{
	bool ramps = !t->listens && t->fill.growth_q16 >= TIDE_RAMP_Q16 && t->senders < 2 && !tide_lets_bursts_pass(&t->path);

	tide_bursts_leave(&t->fill.bursts, ramps, tide_packet(&t->path), nxt);
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

static inline u64 tide_part_q16(u64 window_q16, u32 part_q16)
{
	return (window_q16 * part_q16) >> 16;
}

/* Whether it still measures how much round trips differ. Several connections begin without it: they make queues of their own. */
static inline bool tide_looks(const struct tide *t)
{
	const struct tide_listen *l = &t->listen;

	if (l->first && t->senders > 1)
		return false;
	return tide_learns_spread(&t->path) || (l->first && l->probes < TIDE_LOOKS && tide_spread(&t->path));
}

/* What it may grow to fast; 0: not known. */
static inline u64 tide_safe_q16(const struct tide *t)
{
	return t->confirmed ? tide_pipe_q16(&t->path) : t->cap_q16;
}

/* Whether what its weight is worth is what it sends. */
static inline bool tide_share_rules(const struct tide *t)
{
	u64 share = tide_share_q16(&t->share);

	return share && (t->listens || share > t->window_q16);
}

/* The same with a window and not just a pace. It is then paced at 4x, which only takes bursts apart that the receiver's ACKs make. */
static inline bool tide_is_ordinary(const struct tide *t)
{
	return tide_share_rules(t) && tide_share_q16(&t->share) >= TIDE_PAIRS_Q16;
}

/* The link's rate, where little noise lets packets tell whether others are served in turn, and a slower link from these; else 0. */
static inline u64 tide_whole_q32(const struct tide *t)
{
	u64 rate = tide_rate_q32(&t->path);

	return tide_noise(&t->path) * TIDE_ALIKE_PART * rate < 1ULL << 40 ? rate : 0;
}

/*
 * From filling to listening; where queues are fair, until probes find that nobody else is served in turn on a link of this whole rate; 0: they
 * are not.
 */
static inline void tide_listens(struct tide *t, u64 now_us, u32 nxt, u64 whole_q32)
{
	bool large;

	/* somebody is there: what was safe before is not */
	t->cap_q16 = at_least(at_most(t->cap_q16 ? t->cap_q16 : ~0ULL, t->window_q16 / 2), TIDE_LEAST_Q16);
	t->confirmed = 0;
	t->path.queued = 1;
	tide_fair_restart(&t->fair);
	tide_share_enter(&t->share, t->window_q16);
	__builtin_memset(&t->listen, 0, sizeof(t->listen));
	t->listen.stale = 1;
	large = tide_pipe_q16(&t->path) >= TIDE_SMALL_PIPE_Q16;
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
