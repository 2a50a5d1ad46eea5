/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * LISTEN: Tide sends probes, and measures what they find. No kernel access. The reference is law/tide/listen.rs of
 * lowtide-cc. Delays are 2^-8 us, rates segments per microsecond in 2^-32.
 */
#ifndef LOWTIDE_TIDE_LISTEN_H
#define LOWTIDE_TIDE_LISTEN_H

#include "law.h"
#include "tide_eight.h"
#include "tide_fair.h"
#include "tide_spread.h"

#define TIDE_ALIKE_PART 5	/* RTTs that differ by less than 1/5 packet time: no wait for cross traffic */
/*
 * RTTs that are alike for so long but for noise show that the path has changed. The window of CUBIC hardly changes for
 * some seconds before it meets the queue's limit: by less than 1 ms of 500 Mbit/s for 9 s.
 */
#define TIDE_STAYS_US 10000000ULL
/* times the noise: nine in ten groups of eight random delays, of which the longest does not count, differ by less */
#define TIDE_NOISES 3
#define TIDE_NOISES_MOST TIDE_MS	/* the most of that */
/* the pace of probes that ACKs clock, segments per base RTT: it does not hold them back */
#define TIDE_ACK_CLOCKED 8ULL
#define TIDE_RTTS TIDE_EIGHT		/* the latest probes */
/*
 * Twice the least sum of steps between RTTs, in units of their range. RTTs that differ at random have 3, those in a
 * queue that grows and drains at most 2.
 */
#define TIDE_SPREAD_WALK_TWICE 5
#define TIDE_SPREAD_UNSURE 2		/* least sum, in units of the range, from which on they may be either */
/*
 * In the queue of a CUBIC flow RTTs differ at random by as many packet times. So if RTTs differ by less, the eight up
 * to the fourth probe before have to show a spread, too.
 */
#define TIDE_SPREAD_PACKETS 3
#define TIDE_FEW 3			/* probes that suffice if their RTTs are alike, and no longer than the base RTT */
#define TIDE_MANY 5			/* the same if they are longer, as three delays may be alike by chance */
#define TIDE_TRAINS 3			/* probes of four that measure the packet time */

#define TIDE_LONG 32			/* base RTTs in LISTEN that are long */
/*
 * LISTEN lasts so long before the spread is measured anew, at least TIDE_LONG base RTTs. Then twice as long, and so on.
 * The window of CUBIC has about such a period.
 */
#define TIDE_REMEASURE_US 16000000ULL
#define TIDE_REMEASURE_LOAD 100	/* those probes are at most 1/100 of what the link carries meanwhile */
/* the pace of those probes, in parts of the usual one: one every 2.5 base RTTs, just below what counts as close */
#define TIDE_REMEASURE_PACE 0.4

struct tide_listen {
	/* when LISTEN began, or when packets came apart in it */
	u64 began_us;
	u64 pause_us;		/* least duration of LISTEN */
	u64 peak;		/* longest queue of a probe */
	struct tide_eight rtts;	/* RTTs of the latest probes, a ring buffer */
	u64 stays_us, stayed;	/* since when RTTs have been alike but for noise, and the least of them then */
	u64 whole_q32;		/* fair-queue LISTEN: the rate of the whole link; else 0 */
	u64 acknowledged_us;	/* the latest ACK */
	/*
	 * of the latest probe, as far as it left together: from its first ACK to the last, and the segments after the
	 * first ACK
	 */
	u64 us;
	u32 packets;
	u32 probes, good;	/* measured since LISTEN began; the latest in a row that were good */
	u32 queue;		/* a queue was the reason for LISTEN */
	u64 packet;		/* packet time, as far as known */
	u32 check_probes;		/* probes of the check for a changed path so far; 0: no check */
	u32 trains;		/* trains left */
	u64 least_us;		/* of the fastest train: time and segments */
	u32 least_packets;
	u8 apart;		/* trains with cross traffic between their packets */
	u8 confirms;		/* a good pair is confirmed by a probe of four */
	u8 stale;		/* what is acknowledged first was sent before LISTEN */
	u8 first;		/* no FILL yet, so noise is unknown */
	u8 empty;		/* the latest probe was not good, but only as earlier ones had found a queue */
	u32 rtt_us;		/* of the latest ACK */
	/* probes in a row that met no other packets of the transfer, without 3 base RTTs without an ACK between them */
	u32 in_a_row;
	/* whether eight such probes, up to the latest and to each second one before, showed a spread: a bit each */
	u32 showed;
	u32 unsure;		/* those up to the latest may have shown one */
	/*
	 * The longest time between two ACKs since the latest probe. All ACKs count, also those of short segments, which
	 * have no RTT sample: with short connections there may be a handshake between two probes.
	 */
	u64 gap_us;
	u32 remeasured;		/* how often the spread was measured anew */
	u64 period_us;		/* when the latest time began, or the first probe was measured */
	u64 longest, limit;	/* the longest RTT of probes since then, and in the period before */
};

/*
 * A fair queue may serve a pair in one turn despite cross traffic. Therefore a probe of four has to confirm a good
 * pair.
 */
static inline bool tide_confirming(const struct tide_listen *l)
{
	return l->confirms && l->good;
}

/*
 * Probes are pairs, since a receiver may delay the ACK of a single packet. They are of four packets where ACKs have to
 * show whether these arrived together, or the packet time.
 */
static inline u32 tide_probe_burst(const struct tide_listen *l)
{
	return l->whole_q32 || l->check_probes || l->trains || tide_confirming(l) ? 4 : 2;
}

/*
 * `a->packets` segments of a probe were acknowledged `passed_us` after the ACK before. The ACK interval less the change
 * of the RTT is the interval at which the packets left. The first one may leave alone, into what is left of the window.
 * Packets that left more than `apart` apart show nothing by how they arrive, so counting starts over.
 */
static inline void tide_arrive(struct tide_listen *l, const struct law_ack *a, u64 passed_us, u32 rtt_us, u64 apart)
{
	s64 between = (s64)passed_us - ((s64)rtt_us - (s64)l->rtt_us);

	l->packets += a->packets;
	l->us += passed_us;
	if ((l->confirms || l->trains) && (u64)(between < 0 ? -between : between) << 8 > apart)
		l->us = l->packets = 0;
}

/* By how much the RTTs of the latest probes differ; `least` is the least of them. ~0: there are too few. */
static inline u64 tide_range(const struct tide_listen *l, u64 least)
{
	u64 most = 0, longest = 0;

	/* a scheduling stall may cause the longest, so it does not count */
	for (u32 i = 0; i < TIDE_RTTS; i++) {
		most = at_least(most, at_most(longest, l->rtts.of[i]));
		longest = at_least(longest, l->rtts.of[i]);
	}
	return l->probes > TIDE_RTTS ? most - least : ~0ULL;
}

/*
 * Whether these RTTs differ by less than a fifth of a packet time. Then there is no cross traffic: each probe would
 * wait a different time for the packet in service.
 */
static inline bool tide_rtts_alike(const struct tide_listen *l, u64 range)
{
	return range < ~0ULL / TIDE_ALIKE_PART && range * TIDE_ALIKE_PART < l->packet;
}

/*
 * A probe was not good. Whether the path has changed since RTTs were alike for TIDE_STAYS_US but for this `noise`,
 * which hides from tide_still whether probes wait. `whole_q32`: the rate of the link if packets that left together can
 * show cross traffic, else 0; if they can, less than half a packet time is alike.
 */
static inline bool tide_stays(struct tide_listen *l, u64 now_us, u64 least, u64 range, u64 noise, u64 whole_q32)
{
	u64 alike = at_most(TIDE_NOISES * noise, whole_q32 ? (1ULL << 39) / whole_q32 : TIDE_NOISES_MOST);

	if (range >= alike || tide_differ(least, l->stayed) > alike) {
		l->stays_us = now_us;
		l->stayed = least;
	}
	return now_us - l->stays_us > TIDE_STAYS_US;
}

/*
 * Counts a train that was acknowledged. True if it was the last one, and a train has measured the packet time. The
 * fastest train counts, since cross traffic between its packets makes a train slower. `whole_q32`: the rate of the link
 * if packets that left together can show cross traffic, else 0.
 */
static inline bool tide_train(struct tide_listen *l, u64 whole_q32)
{
	if (!l->trains || l->stale)
		return false;
	if (whole_q32 && l->packets && !tide_fair_together(l->us, l->packets, whole_q32))
		l->apart++;
	if (l->packets && (!l->least_packets || l->us * l->least_packets < l->least_us * l->packets)) {
		l->least_packets = l->packets;
		l->least_us = l->us;
	}
	return !--l->trains && l->least_packets;
}

/*
 * Whether most trains had cross traffic between their packets. In a FIFO none has, in fair queues each has while
 * competing flows are queued.
 */
static inline bool tide_comes_apart(const struct tide_listen *l)
{
	return 2 * l->apart > TIDE_TRAINS;
}

/*
 * A check probe bounds the packet time from above: its ACKs but the first took this long. Less than an eighth of the
 * known time shows that ACKs waited for each other.
 */
static inline void tide_measure(struct tide_listen *l, u64 known)
{
	if (!l->check_probes)
		l->packet = known;
	else if (l->packets)
		l->packet = at_most(l->packet, at_least((l->us << 8) / l->packets, known / 8));
}

static inline u64 tide_least_rtt(const struct tide_listen *l)
{
	u64 least = ~0ULL;

	for (u32 i = 0; i < TIDE_RTTS; i++)
		least = at_most(least, l->rtts.of[i]);
	return least;
}

/* Records the RTT of a probe. `alone`: it met no other packets of the transfer. */
static inline void tide_record_probe(struct tide_listen *l, u64 rtt, u64 base, bool alone)
{
	l->peak = at_least(l->peak, rtt - base);
	l->longest = at_least(l->longest, rtt);
	l->rtts.of[l->probes & (TIDE_RTTS - 1)] = rtt;
	if (l->probes + 1)
		l->probes++;
	if (!l->stale)
		l->in_a_row = alone ? l->gap_us << 8 < 3 * base ? l->in_a_row + 1 : 1 : 0;
	l->gap_us = 0;
}

/*
 * The spread of the path, from the latest probes: how much longer than the base RTT its RTTs are on a free link. 1:
 * there is none; 0: no reading, or the link is not free.
 */
VERIFIED_APART u64 tide_spread_reading(struct tide_listen *l, u64 base, u64 packet)
{
	u64 longest = 0, most = 0, least, it, before = 0, walk = 0, differ = 0, spread, latest, suffices;
	bool may_be;

	if (!l || l->in_a_row < TIDE_FEW)
		return 0;
	latest = l->rtts.of[(l->probes - 1) & (TIDE_RTTS - 1)];
	for (u32 i = 1; i < TIDE_MANY; i++)
		differ += is_at_most(TIDE_SAME, tide_differ(l->rtts.of[(l->probes - 1 - i) & (TIDE_RTTS - 1)], latest)) & is_at_most(i + 1, l->in_a_row);
	/* the ACK of a pair is for its second packet, which waited for the first */
	suffices = latest < base + packet + TIDE_SAME ? TIDE_FEW : TIDE_MANY;
	if (!differ && l->in_a_row >= suffices)
		return 1;
	if (l->in_a_row < TIDE_RTTS || l->in_a_row & 1)
		return 0;
	/* a scheduling stall may cause the longest */
	for (u32 i = 0; i < TIDE_RTTS; i++) {
		most = at_least(most, at_most(longest, l->rtts.of[i]));
		longest = at_least(longest, l->rtts.of[i]);
	}
	for (u32 i = 0; i < TIDE_RTTS; i++) {
		it = at_most(l->rtts.of[(l->probes + i) & (TIDE_RTTS - 1)], most);
		walk += tide_differ(it, before) & -(u64)is_at_most(1, i);
		before = it;
	}
	least = tide_least_rtt(l);
	/* 0.9 of the range of evenly random RTTs, of which the second longest of eight exceeds the base by 7/9 */
	spread = at_least((at_least(most, base) - base) * 81 / 70, 1);
	/* the queue of cross traffic differs more over a long time than over a short one */
	may_be = l->limit <= base + spread && least < base + at_least(spread / 2, TIDE_SAME);
	l->showed = l->showed << 1 | (may_be && walk * 2 >= (most - least) * TIDE_SPREAD_WALK_TWICE);
	l->unsure = may_be && walk >= (most - least) * TIDE_SPREAD_UNSURE;
	return l->showed & 1 && (most - least > TIDE_SPREAD_PACKETS * packet || l->showed & 4) ? spread : 0;
}

/* Whether the latest eight probes showed a spread, or may have shown one. */
static inline bool tide_is_unsure(const struct tide_listen *l)
{
	return l->in_a_row >= TIDE_RTTS && (l->showed & 1 || (l->unsure && l->probes < 2 * TIDE_SPREAD_PROBES));
}

/*
 * Whether LISTEN is so long that the spread is to be measured anew: without one each delay is taken for a queue. Counts
 * it.
 */
static inline bool tide_is_too_long(struct tide_listen *l, u64 now_us, u64 base, u64 packet)
{
	u64 probes = 2 * TIDE_SPREAD_PROBES * at_most(packet, 1000 * TIDE_MS);
	u64 least = at_least(at_least(TIDE_REMEASURE_US << 8, TIDE_LONG * base), TIDE_REMEASURE_LOAD * probes);
	u64 enough = least << at_most(l->remeasured, 16);

	if (l->probes == 1)
		l->period_us = now_us;
	if (l->whole_q32 || (now_us - l->period_us) << 8 <= enough)
		return false;
	l->remeasured++;
	l->period_us = now_us;
	l->limit = l->longest;
	l->longest = 0;
	return true;
}

/* A probe was not good. True if the path has changed: RTTs were alike for all of the check. */
static inline bool tide_path_changed(struct tide_listen *l, u64 range)
{
	bool alike = tide_rtts_alike(l, range);

	if (!l->check_probes) {
		l->check_probes = alike;
		return false;
	}
	l->check_probes++;
	if (l->check_probes <= TIDE_RTTS + 1)
		return false;
	if (!alike)
		l->check_probes = 0;
	return alike;
}

/*
 * The pace of probes of four, out of step with the packets of cross traffic: the distance to the next probe is longer
 * by eighths of a packet time, five more each time.
 */
static inline u64 tide_out_of_step_q32(const struct tide_listen *l, u64 pace_q32)
{
	u64 eighths = 5 * l->probes & 7;

	if (tide_probe_burst(l) == 2)
		return pace_q32;
	/* four packets take 4 / pace + eighths / 8 * packet */
	return ((u64)4 << 40) / at_least(((u64)4 << 40) / at_least(pace_q32, 1) + eighths * l->packet / 8, 1);
}

#endif
