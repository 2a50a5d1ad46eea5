/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What Tide knows of its path (lowtide-cc, law/tide/path.rs), without kernel access: the empty round trip, the link's rate, the noise of both,
 * and from these the queue that is its own and the one that is somebody else's.
 */
#ifndef LOWTIDE_TIDE_PATH_H
#define LOWTIDE_TIDE_PATH_H

#include "law.h"
#include "tide_eight.h"

#define TIDE_LOOKS (2 * TIDE_EIGHT)	/* probes that tell for the first time how much round trips differ */
#define TIDE_PACKET (TIDE_MS * 12 / 10)	/* the time of one on a link of 10 Mbit/s */
#define TIDE_BASE_SPAN_US 300000000ULL	/* a route may change */
#define TIDE_RATE_SPAN_US 30000000ULL	/* capacity may go */
#define TIDE_ROUNDS TIDE_EIGHT		/* the middle one shows the noise */
#define TIDE_RTT_MOST_US (1U << 23)

/* The least or greatest value of the last one or two spans; 0: none. */
struct tide_extreme {
	u64 began_us, current, previous;
};

/*
 * The least round trip of two spans with enough samples each. A host that stands still for a moment, or a radio, makes all packets of a round trip late,
 * and passes them on together: what counts of the time between two samples is a third of a span at the most.
 */
struct tide_filter {
	u64 latest_us;
	u64 covered;		/* 2^-8 us */
	u64 least;
	u64 before;		/* 0: no span is over yet */
	u32 samples;
	u32 unused;
};

struct tide_path {
	struct tide_extreme base;
	struct tide_extreme rate;
	u64 train, trained_us;	/* the time of a packet on the link as trains of packets told it last, and when; 0: never */
	u64 fastest;		/* that as it was measured, however short; 0: never */
	struct tide_filter fast, slow;
	struct tide_eight differences;	/* how much the round trips of the latest rounds differed: a circle */
	struct tide_extreme medians;	/* the least one */
	u64 noise;		/* that */
	u64 spread;		/* how much longer than the empty one round trips of a free link take at the most, as probes told; 0: they did not */
	u64 spread_base;	/* the empty one as it was known then */
	u32 looks;		/* probes that have looked for it; more than TIDE_LOOKS: it is known, or none */
	u32 rounds;		/* counted, for the circle */
	u32 queued;		/* a queue has been seen at all */
	u32 unspaced;		/* nobody spaces the packets: what waits for its own kind does so for less than a round trip */
};

static inline void tide_extreme_add(struct tide_extreme *e, u64 now_us, u64 value, u64 span_us, bool least)
{
	if (!e->current || now_us - e->began_us > span_us) {
		e->previous = e->current;
		e->current = value;
		e->began_us = now_us;
	} else if (least ? value < e->current : value > e->current) {
		e->current = value;
	}
}

/* Without samples after it: a span is over, `before` is its least. */
static inline void tide_filter_add(struct tide_filter *f, u64 now_us, u64 rtt, u32 samples, u64 span)
{
	if (!f->samples) {
		f->covered = 0;
		f->least = rtt;
	} else {
		f->covered += at_most((now_us - f->latest_us) << 8, span * 87 / 256);
	}
	f->latest_us = now_us;
	if (rtt < f->least)
		f->least = rtt;
	f->samples++;
	if (f->samples >= samples && f->covered >= span) {
		f->before = f->least;
		f->samples = 0;
	}
}

static inline u64 tide_least(const struct tide_extreme *e)
{
	return e->previous && e->previous < e->current ? e->previous : e->current;
}

/* The empty round trip; 0: not known. */
static inline u64 tide_base(const struct tide_path *p)
{
	return tide_least(&p->base);
}

/* The link's rate; 0: not known. */
static inline u64 tide_rate_q32(const struct tide_path *p)
{
	return p->rate.previous > p->rate.current ? p->rate.previous : p->rate.current;
}

/*
 * Whether packets that left together have passed as on a link eight times as fast as it is known to be: a token bucket lets them, and hides the queue
 * that a ramp makes until it is empty.
 */
static inline bool tide_lets_bursts_pass(const struct tide_path *p)
{
	u64 rate = tide_rate_q32(p);

	return p->fastest && rate && 8 * p->fastest * rate < 1ULL << 40;
}

/* Segments that fill the link without a queue; 0: not known. */
static inline u64 tide_pipe_q16(const struct tide_path *p)
{
	return tide_rate_q32(p) * (tide_base(p) >> 8) >> 16;
}

/* The same, but where a token bucket may have let more pass than the link carries. */
static inline u64 tide_sure_pipe_q16(const struct tide_path *p)
{
	return tide_lets_bursts_pass(p) ? 0 : tide_pipe_q16(p);
}

/* Whether trains have told the time of a packet lately. */
static inline bool tide_knows_packet(const struct tide_path *p, u64 now_us)
{
	return p->train && now_us - p->trained_us < TIDE_RATE_SPAN_US;
}

/* Packets per microsecond, in 2^-32, that the link is known to carry: what it has carried is that only if there was a queue; or 0. */
static inline u64 tide_link_q32(const struct tide_path *p)
{
	return p->queued ? tide_rate_q32(p) : 0;
}

/* The time of a packet on the link; on one of 10 Mbit/s before anything is known. Its own rate tells only its own part. */
static inline u64 tide_packet(const struct tide_path *p)
{
	u64 link = tide_link_q32(p), alone = link ? (1ULL << 40) / link : 0;

	if (alone && p->train)
		return at_most(alone, p->train);
	if (alone || p->train)
		return alone | p->train;
	return TIDE_PACKET;
}

/*
 * Packets that left together took this long each. Eight times less than at its own rate, or at 10 Mbit/s, are ACKs that waited for each other.
 */
static inline void tide_path_train(struct tide_path *p, u64 now_us, u64 packet)
{
	p->fastest = at_least(packet, 1);
	p->train = 0;
	p->train = at_least(packet, at_most(tide_packet(p), TIDE_PACKET) / 8);
	p->trained_us = now_us;
}

/* Packets per microsecond, in 2^-32, that the link may carry. */
static inline u64 tide_link_at_most_q32(const struct tide_path *p)
{
	return (1ULL << 40) / tide_packet(p);
}

/* That of 2 Mbit/s at the least: below, a packet of its own is a queue. */
static inline u64 tide_packet_at_most(const struct tide_path *p)
{
	return at_most(tide_packet(p), TIDE_MS * 25 / 4);
}

/* By how much the base RTT has fallen since probes told of the spread. */
static inline u64 tide_fell(const struct tide_path *p)
{
	u64 base = tide_base(p);

	return at_least(p->spread_base, base) - base;
}

/* Probes told of an RTT, which stays where the base RTT falls. */
static inline u64 tide_spread(const struct tide_path *p)
{
	return at_most(p->spread + tide_fell(p), tide_base(p)) * is_at_most(1, p->spread);
}

/* Whether probes may still tell it for the first time: what so many have not found is caused by cross traffic later. */
static inline bool tide_learns_spread(const struct tide_path *p)
{
	return !p->spread && p->looks <= TIDE_LOOKS;
}

/* A probe came back: with those before it it tells the spread, or that there is none (1), or nothing (0). By chance that differs from one time to the next. */
static inline void tide_path_probe(struct tide_path *p, u64 told)
{
	if (!tide_learns_spread(p) && !tide_spread(p))
		return;
	if (p->looks <= TIDE_LOOKS)
		p->looks++;
	if (!told)
		return;
	p->spread = p->spread ? (p->spread + told) / 2 : told > 1 ? told : 0;
	p->spread_base = tide_base(p);
	p->looks = TIDE_LOOKS + 1;
}

/* Where the probes told of a spread, it was a queue that they met: it is measured anew. */
static inline void tide_forget_spread(struct tide_path *p)
{
	if (p->spread)
		p->spread = p->looks = 0;
}

/* How much round trips differ without a queue. RTTs that differ at random are in the mean longer than the least by half of the spread. */
static inline u64 tide_noise(const struct tide_path *p)
{
	return at_least(p->noise, tide_spread(p) / 2);
}

static inline u64 tide_allowance(const struct tide_path *p)
{
	return at_most(p->noise, tide_base(p) / 16);
}

/* The queue that Tide keeps itself at the most, and what looks like one: three quarters of the spread may be there without a queue. */
VERIFIED_APART u64 tide_own_queue(const struct tide_path *p)
{
	if (!p)
		return 0;
	return at_least(tide_packet_at_most(p), TIDE_MS) + tide_allowance(p) + tide_spread(p) * 3 / 4;
}

/*
 * So many samples say something: of a delay of up to three times the noise, the least of them is below the own queue but once in a thousand.
 * Not more than this window has in four round trips, where an ACK comes for two.
 */
static inline u32 tide_samples(const struct tide_path *p, u64 window_q16)
{
	u64 samples = 20 * tide_noise(p) / tide_own_queue(p);

	/* the next power of two, of 4 to 32 */
	samples = 4 + (is_at_most(5, samples) << 2) + (is_at_most(9, samples) << 3) + (is_at_most(17, samples) << 4);
	return at_least(at_most(samples, window_q16 >> 15), 4);
}

/* A queue that can only be somebody else's. */
VERIFIED_APART u64 tide_foreign_queue(const struct tide_path *p)
{
	if (!p)
		return 0;
	return tide_own_queue(p) + at_least(2 * tide_packet_at_most(p), 2 * TIDE_MS) + tide_allowance(p) + tide_spread(p) / 4;
}

/* Between the two, but for the spread, of which it is a half: what probes may find on a link that nobody uses. */
static inline u64 tide_middle(const struct tide_path *p)
{
	return (tide_own_queue(p) + tide_foreign_queue(p) - tide_spread(p) * 3 / 4) / 2;
}

/* The queue that a filter sees; false: nothing yet. */
static inline bool tide_filtered_queue(const struct tide_path *p, const struct tide_filter *f, u64 *queue)
{
	u64 rtt = f->samples && f->least < f->before ? f->least : f->before, base = tide_base(p);

	*queue = rtt > base ? rtt - base : 0;
	return rtt != 0;
}

/* What is seen from now on has nothing to do with what was before. */
static inline void tide_path_restart(struct tide_path *p)
{
	__builtin_memset(&p->fast, 0, sizeof(p->fast));
	__builtin_memset(&p->slow, 0, sizeof(p->slow));
}

/* Nothing is known but the least round trip, the time of a packet, and the spread, which goes by the least round trip. */
static inline void tide_path_forget(struct tide_path *p)
{
	struct tide_extreme base = p->base;
	u64 train = p->train, trained_us = p->trained_us, fastest = p->fastest, spread = p->spread, spread_base = p->spread_base;
	u32 looks = p->looks;

	base.previous = 0;
	__builtin_memset(p, 0, sizeof(*p));
	p->train = train;
	p->trained_us = trained_us;
	p->fastest = fastest;
	p->base = base;
	p->spread = spread;
	p->spread_base = spread_base;
	p->looks = looks;
}

/* The path is another one: all is anew, and this the empty round trip. */
static inline void tide_path_renew(struct tide_path *p, u64 now_us, u64 rtt)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->looks = TIDE_LOOKS + 1;
	tide_extreme_add(&p->base, now_us, rtt, TIDE_BASE_SPAN_US, true);
}

/* True: the path is much shorter than it seemed. */
VERIFIED_APART u64 tide_base_sample(struct tide_path *p, u64 now_us, u64 rtt)
{
	u64 shorter;

	if (!p)
		return 0;
	shorter = rtt * 10 < tide_base(p) * 9;
	tide_extreme_add(&p->base, now_us, rtt, TIDE_BASE_SPAN_US, true);
	if (shorter)
		tide_path_forget(p);
	/* that none of eight RTTs is in the lower half of what they differ by at random is rare: cross traffic caused a queue then */
	if (2 * tide_fell(p) > p->spread)
		tide_forget_spread(p);
	return shorter;
}

/* A round-trip sample. True if the path turned out to be much shorter than it seemed: what was learned was learned behind a queue. */
VERIFIED_APART u64 tide_path_sample(struct tide_path *p, u64 now_us, u32 rtt_us, u64 window_q16)
{
	u64 rtt = at_most(rtt_us, TIDE_RTT_MOST_US) << 8, base, shorter, least;
	u32 samples;

	if (!p)
		return 0;
	shorter = tide_base_sample(p, now_us, rtt);
	base = tide_base(p);
	samples = tide_samples(p, window_q16);
	least = p->unspaced ? base : 0;
	tide_filter_add(&p->fast, now_us, rtt, samples, at_least(at_most(base, 4 * tide_noise(p)), least));
	tide_filter_add(&p->slow, now_us, rtt, samples, at_least(at_most(base, 2 * tide_noise(p)), at_least(base / 4, least)));
	return shorter;
}

/* The link's rate may be this. One that the program limited says only that the link can do as much. */
static inline void tide_path_rate(struct tide_path *p, const struct law_ack *a)
{
	u64 rate;

	if (!a->rate_interval_us)
		return;
	rate = ((u64)a->rate_delivered << 32) / a->rate_interval_us;
	if (rate && (!a->rate_app_limited || (tide_rate_q32(p) && rate > tide_rate_q32(p))))
		tide_extreme_add(&p->rate, a->now_us, rate, TIDE_RATE_SPAN_US, false);
}

/* The link's rate may have changed without a sign. */
static inline void tide_path_forget_rate(struct tide_path *p)
{
	__builtin_memset(&p->rate, 0, sizeof(p->rate));
	p->train = p->fastest = 0;
}

/* The round trips of a round differed by so much. */
VERIFIED_APART int tide_path_round(struct tide_path *p, u64 now_us, u64 difference)
{
	u64 middle;

	if (!p)
		return 0;
	p->differences.of[p->rounds++ & (TIDE_ROUNDS - 1)] = difference;
	middle = tide_middle_of(&p->differences);
	if (p->rounds < TIDE_ROUNDS)
		return 0;
	tide_extreme_add(&p->medians, now_us, at_least(middle, 1), TIDE_RATE_SPAN_US, true);
	p->noise = tide_least(&p->medians);
	return 0;
}

#endif
