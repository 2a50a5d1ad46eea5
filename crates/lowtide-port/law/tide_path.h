/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What Tide knows of its path, without kernel access: base RTT, rate, noise, spread; and the thresholds that follow
 * from them. The reference is law/tide/path.rs of lowtide-cc.
 */
#ifndef LOWTIDE_TIDE_PATH_H
#define LOWTIDE_TIDE_PATH_H

#include "law.h"
#include "tide_eight.h"
#include "tide_spread.h"

#define TIDE_PACKET (TIDE_MS * 12 / 10)	/* packet time at 10 Mbit/s, until it is measured */
#define TIDE_BASE_SPAN_US 300000000ULL	/* after twice that a base RTT no longer counts: routes change */
#define TIDE_RATE_SPAN_US 30000000ULL	/* the same for a rate and for noise: capacity changes */
#define TIDE_ROUNDS TIDE_EIGHT		/* rounds whose median is the noise */
/*
 * Packets stay in order: on a full link the latest one so far delays those behind it, by a packet time less each. So
 * RTTs there differ by a third or more of the root of packet time times spread. If they differ by less than a quarter
 * of it, probes measured the spread among packets of cross traffic.
 */
#define TIDE_SPREAD_SHOWS_PART 4
#define TIDE_RTT_MOST_US (1U << 23)	/* longer RTT samples count as this */

/* Least or greatest value of the present span and the one before; 0: none. */
struct tide_extreme {
	u64 began_us, current, previous;
};

/*
 * The least RTT of the present span and the one before, each with enough samples. A scheduling stall or a radio link
 * delays all packets of an RTT and delivers them together. Therefore the time between two samples counts as 0.34 of a
 * span at most.
 */
struct tide_filter {
	u64 latest_us;		/* the latest sample */
	u64 covered;		/* time of the span so far, 2^-8 us */
	u64 least;		/* least RTT of the span so far, 2^-8 us */
	u64 before;		/* that of the span before; 0: no span is over yet */
	u32 samples;
	u32 unused;
};

struct tide_path {
	struct tide_extreme base;	/* RTT, 2^-8 us */
	struct tide_extreme rate;	/* segments per microsecond, 2^-32 */
	u64 train, trained_us;	/* packet time by the latest trains, 2^-8 us, and when they ended; 0: none */
	u64 fastest;		/* the same as it was measured, without a lower bound; 0: none */
	struct tide_filter fast, slow;	/* standing queue of the last few packets, and of a quarter of an RTT or more */
	struct tide_eight differences;	/* noise of the latest rounds, a ring buffer */
	struct tide_extreme medians;	/* the least of their medians */
	u64 noise;		/* that */
	struct tide_spread spread;
	u32 rounds;		/* rounds of FILL that measured noise */
	u32 alone;		/* the latest of them in a row with no packets of the transfer's other connections */
	u32 queued;		/* a queue has been seen, so the rate may be that of the link */
	u32 unspaced;		/* packets are not paced: they queue behind others of their flow for less than an RTT */
	u64 tick;		/* what RTTs are exact to, 2^-8 us; 0: our clock measures them */
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

/* Without samples after it a span is over, and `before` is its least RTT. */
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

/* The base RTT; 0: not known. */
static inline u64 tide_base(const struct tide_path *p)
{
	return tide_least(&p->base);
}

/* The greatest delivery rate; 0: not known. */
static inline u64 tide_rate_q32(const struct tide_path *p)
{
	return p->rate.previous > p->rate.current ? p->rate.previous : p->rate.current;
}

/*
 * Whether packets that left together passed as on a link more than eight times as fast as the known rate. Then a token
 * bucket lets them pass, and hides the queue of a ramp until it is empty.
 */
static inline bool tide_lets_bursts_pass(const struct tide_path *p)
{
	u64 rate = tide_rate_q32(p);

	return p->fastest && rate && 8 * p->fastest * rate < 1ULL << 40;
}

/* BDP in segments; 0: not known. */
static inline u64 tide_bdp_q16(const struct tide_path *p)
{
	return tide_rate_q32(p) * (tide_base(p) >> 8) >> 16;
}

/* BDP; 0 also behind a token bucket, which may have let more pass than the link carries. */
static inline u64 tide_sure_bdp_q16(const struct tide_path *p)
{
	return tide_lets_bursts_pass(p) ? 0 : tide_bdp_q16(p);
}

/* Whether trains measured the packet time within the last TIDE_RATE_SPAN_US. */
static inline bool tide_knows_packet(const struct tide_path *p, u64 now_us)
{
	return p->train && now_us - p->trained_us < TIDE_RATE_SPAN_US;
}

/* The link's rate, segments per microsecond in 2^-32: the greatest rate if there was a queue; else 0. */
static inline u64 tide_link_q32(const struct tide_path *p)
{
	return p->queued ? tide_rate_q32(p) : 0;
}

/* BDP of the link. 0 until a queue has been seen: a flow that grows has more in flight than its rate shows. */
static inline u64 tide_link_bdp_q16(const struct tide_path *p)
{
	return tide_link_q32(p) ? tide_bdp_q16(p) : 0;
}

/* The packet time of the link. A flow's own rate shows only its part of the link, trains all of it. */
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
 * Trains measured this packet time. Less than an eighth of the known one, or of that of 10 Mbit/s, shows that ACKs
 * waited for each other.
 */
static inline void tide_path_train(struct tide_path *p, u64 now_us, u64 packet)
{
	p->fastest = at_least(packet, 1);
	p->train = 0;
	p->train = at_least(packet, at_most(tide_packet(p), TIDE_PACKET) / 8);
	p->trained_us = now_us;
}

/* Upper bound of the link's rate, segments per microsecond in 2^-32. */
static inline u64 tide_link_at_most_q32(const struct tide_path *p)
{
	return (1ULL << 40) / tide_packet(p);
}

/* The packet time, at most that of 1 Mbit/s: on slower links each own packet is a queue. */
static inline u64 tide_packet_at_most(const struct tide_path *p)
{
	return at_most(tide_packet(p), TIDE_MS * 25 / 2);
}

/* The spread; 0: none, or unknown. */
static inline u64 tide_spread(const struct tide_path *p)
{
	return tide_spread_of(&p->spread, tide_base(p));
}

/*
 * As rounds of FILL have shown it. It counts if probes of LISTEN, which has no packets of its own in the queue, have
 * found a spread. Else the packets of cross traffic were the cause, and would hide their own queue.
 */
static inline u64 tide_measured_noise(const struct tide_path *p)
{
	return p->spread.longer ? p->noise : at_most(p->noise, TIDE_SAME);
}

/* How much RTTs differ without a queue. If they differ at random, the mean is half of the spread above the least. */
static inline u64 tide_noise(const struct tide_path *p)
{
	return at_least(tide_measured_noise(p), tide_spread(p) / 2);
}

/*
 * Noise that own packets do not explain, and that is enough to hide a queue. Those of several connections queue behind
 * each other. Of packets that leave together, RTTs differ by up to two packet times from one to the next. RTTs that are
 * exact to a tick of a clock differ by half of one.
 */
static inline bool tide_has_noise(const struct tide_path *p)
{
	u64 packet = tide_packet(p), own = p->alone < TIDE_ROUNDS || p->unspaced ? packet << p->unspaced : at_most(packet, TIDE_MS);

	return p->noise > at_least(own + p->tick / 2, TIDE_SAME);
}

static inline u64 tide_allowance(const struct tide_path *p)
{
	return at_most(tide_measured_noise(p), tide_base(p) / 16);
}

/* The least self-induced queue. */
static inline u64 tide_least_own(const struct tide_path *p)
{
	return at_least(tide_packet_at_most(p), TIDE_MS);
}

/* The self-induced queue. */
static inline u64 tide_own(const struct tide_path *p)
{
	return tide_least_own(p) + tide_allowance(p);
}

/* That, and three quarters of the spread, which RTTs may show without a queue. */
VERIFIED_APART u64 tide_own_queue(const struct tide_path *p)
{
	if (!p)
		return 0;
	return tide_own(p) + tide_spread(p) * 3 / 4;
}

/*
 * RTT samples that suffice for a standing queue. The least of so many delays, of up to three times the noise, exceeds
 * the own queue by chance in one of a thousand cases. At most what the window has in four RTTs, with an ACK for two
 * packets.
 */
static inline u32 tide_samples(const struct tide_path *p, u64 window_q16)
{
	u64 samples = 20 * tide_noise(p) / tide_own_queue(p);

	/* the next power of two, of 4 to 32 */
	samples = 4 + (is_at_most(5, samples) << 2) + (is_at_most(9, samples) << 3) + (is_at_most(17, samples) << 4);
	return at_least(at_most(samples, window_q16 >> 15), 4);
}

/* A longer standing queue is caused by cross traffic. */
VERIFIED_APART u64 tide_cross_traffic_queue(const struct tide_path *p)
{
	if (!p)
		return 0;
	return tide_own_queue(p) + at_least(2 * tide_packet_at_most(p), 2 * TIDE_MS) + tide_allowance(p) + tide_spread(p) / 4;
}

/*
 * The mean of own_queue and cross_traffic_queue without their spread, and half of the spread. Probes find less on
 * a free link.
 */
static inline u64 tide_free_link_queue(const struct tide_path *p)
{
	return (tide_own_queue(p) + tide_cross_traffic_queue(p) - tide_spread(p) * 3 / 4) / 2;
}

/* The standing queue of a filter; false: not known yet. */
static inline bool tide_filtered_queue(const struct tide_path *p, const struct tide_filter *f, u64 *queue)
{
	u64 rtt = f->samples && f->least < f->before ? f->least : f->before, base = tide_base(p);

	*queue = rtt > base ? rtt - base : 0;
	return rtt != 0;
}

/* Earlier samples say nothing about the queue from now on. */
static inline void tide_path_restart(struct tide_path *p)
{
	__builtin_memset(&p->fast, 0, sizeof(p->fast));
	__builtin_memset(&p->slow, 0, sizeof(p->slow));
}

/* Keeps the base RTT, the packet time and the spread, and forgets all else. */
static inline void tide_path_forget(struct tide_path *p)
{
	struct tide_extreme base = p->base;
	u64 train = p->train, trained_us = p->trained_us, fastest = p->fastest;
	struct tide_spread spread = p->spread;

	base.previous = 0;
	__builtin_memset(p, 0, sizeof(*p));
	p->train = train;
	p->trained_us = trained_us;
	p->fastest = fastest;
	p->base = base;
	p->spread = spread;
}

/* The path has changed: everything is forgotten, and `rtt` is the base RTT. */
static inline void tide_path_renew(struct tide_path *p, u64 now_us, u64 rtt)
{
	__builtin_memset(p, 0, sizeof(*p));
	p->spread = TIDE_SPREAD_NONE;
	tide_extreme_add(&p->base, now_us, rtt, TIDE_BASE_SPAN_US, true);
}

/* A sample of the base RTT. True: the path is much shorter than it seemed. */
VERIFIED_APART u64 tide_base_sample(struct tide_path *p, u64 now_us, u64 rtt)
{
	u64 shorter;

	if (!p)
		return 0;
	shorter = rtt * 10 < tide_base(p) * 9;
	tide_extreme_add(&p->base, now_us, rtt, TIDE_BASE_SPAN_US, true);
	if (shorter) {
		tide_path_forget(p);
		if (tide_spread_is_none(&p->spread))
			tide_spread_ask(&p->spread);
	}
	tide_spread_base(&p->spread, tide_base(p));
	return shorter;
}

/*
 * An RTT sample. `unspaced`: packets of the transfer leave together, so they queue for less than an RTT. True: the path
 * is much shorter than it seemed, so what was learned was learned in a queue.
 */
VERIFIED_APART u64 tide_path_sample(struct tide_path *p, u64 now_us, u32 rtt_us, u64 window_q16, bool unspaced)
{
	u64 rtt = at_most(rtt_us, TIDE_RTT_MOST_US) << 8, base, shorter, least;
	u32 samples;

	if (!p)
		return 0;
	shorter = tide_base_sample(p, now_us, rtt);
	base = tide_base(p);
	samples = tide_samples(p, window_q16);
	least = unspaced || p->unspaced ? base : 0;
	tide_filter_add(&p->fast, now_us, rtt, samples, at_least(at_most(base, 4 * tide_noise(p)), least));
	tide_filter_add(&p->slow, now_us, rtt, samples, at_least(at_most(base, 2 * tide_noise(p)), at_least(base / 4, least)));
	return shorter;
}

/* A sample of the delivery rate. An application-limited one is a lower bound. */
static inline void tide_path_rate(struct tide_path *p, const struct law_ack *a)
{
	u64 rate;

	if (!a->rate_interval_us)
		return;
	rate = ((u64)a->rate_delivered << 32) / a->rate_interval_us;
	if (rate && (!a->rate_app_limited || (tide_rate_q32(p) && rate > tide_rate_q32(p))))
		tide_extreme_add(&p->rate, a->now_us, rate, TIDE_RATE_SPAN_US, false);
}

/* The link's rate may have changed. */
static inline void tide_path_forget_rate(struct tide_path *p)
{
	__builtin_memset(&p->rate, 0, sizeof(p->rate));
	p->train = p->fastest = 0;
}

/* A round of FILL has ended, of this noise. `alone`: with no packets of the transfer's other connections. */
VERIFIED_APART int tide_path_round(struct tide_path *p, u64 now_us, u64 difference, bool alone)
{
	u64 median, spread;

	if (!p)
		return 0;
	p->alone = alone ? p->alone + 1 : 0;
	p->differences.of[p->rounds++ & (TIDE_ROUNDS - 1)] = difference;
	median = tide_median(&p->differences);
	if (p->rounds < TIDE_ROUNDS)
		return 0;
	tide_extreme_add(&p->medians, now_us, at_least(median, 1), TIDE_RATE_SPAN_US, true);
	p->noise = tide_least(&p->medians);
	/* bounded, so that its square fits; what is longer is above any spread's root */
	median = TIDE_SPREAD_SHOWS_PART * at_most(median, TIDE_RTT_MOST_US << 6);
	spread = tide_spread(p);
	if (p->alone >= TIDE_ROUNDS && median * median < at_most(tide_packet_at_most(p), spread) * spread)
		p->spread = TIDE_SPREAD_NONE;
	return 0;
}

#endif
