/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * What Tide hears while others have the link, without kernel access (the reference: lowtide-cc, law/tide/listen.rs). Delays are 2^-8 us, rates
 * segments per microsecond in 2^-32.
 */
#ifndef LOWTIDE_TIDE_LISTEN_H
#define LOWTIDE_TIDE_LISTEN_H

#include "law.h"
#include "tide_eight.h"
#include "tide_fair.h"

#define TIDE_ALIKE_PART 5	/* of a packet's time: round trips of probes that differ by less have not waited for others' in service */
#define TIDE_HEARD TIDE_EIGHT		/* the latest probes */
#define TIDE_SPREAD_WALK_TWICE 5	/* half of it: steps add up to three times their range where RTTs differ at random, to twice where a queue grows and drains */
#define TIDE_FEW 3			/* probes that are enough where they are alike */
#define TIDE_SAME (TIDE_MS / 4)		/* those that differ by less are alike: there is nothing to look at */
#define TIDE_TRAINS 3			/* to measure how long a packet takes on the link */

struct tide_listen {
	u64 began_us;
	u64 pause_us;		/* it listens for so long at the least */
	u64 peak;
	struct tide_eight heard;	/* a circle */
	u64 whole_q32;		/* in a fair queue: the rate of the whole link; else 0 */
	u64 acknowledged_us;
	u64 us;			/* from the first ACK of what left together in the latest probe to the last, and the packets of these */
	u32 packets;
	u32 probes, good;
	u32 queue;		/* it left for one */
	u64 packet;		/* its time on the link, as far as known */
	u32 closer;		/* probes since it looks closer, as round trips stand still though they tell of a queue; 0: it does not */
	u32 trains;		/* probes of four to come that measure how long a packet takes on the link; and the fastest of those that have: */
	u64 least_us;
	u32 least_packets;
	u8 apart;		/* so many of them came with others' packets in between */
	u8 confirms;		/* four segments can confirm what a pair has found */
	u8 stale;		/* what comes back first was sent before */
	u8 first;		/* it has never filled the link: so it does not know its noise */
	u32 rtt_us;		/* of the latest ACK */
	u32 close;		/* probes in a row that came soon after each other, */
	u64 probed_us;		/* and when the latest did */
};

/* A fair queue serves a pair in one turn, whoever else is there: so what one has found four have to find again, together. */
static inline bool tide_confirming(const struct tide_listen *l)
{
	return l->confirms && l->good;
}

/*
 * Probes are two packets at once: a receiver may keep the ACK of a single one back. Where two ACKs are to tell whether they arrived
 * together, or how long one took, they are four.
 */
static inline u32 tide_probe_burst(const struct tide_listen *l)
{
	return l->whole_q32 || l->closer || l->trains || tide_confirming(l) ? 4 : 2;
}

/*
 * So many segments have arrived `passed_us` after the one before. The first segment of a probe may leave alone, into what is left of the window, and
 * what has not left together tells nothing by how it arrives.
 */
static inline void tide_arrive(struct tide_listen *l, const struct law_ack *a, u64 passed_us, u32 rtt_us, u64 packet)
{
	s64 between = (s64)passed_us - ((s64)rtt_us - (s64)l->rtt_us);

	l->packets += a->packets;
	l->us += passed_us;
	if (l->confirms && (u64)(between < 0 ? -between : between) << 9 > packet)
		l->us = l->packets = 0;
}

/*
 * Whether the round trips of the latest probes, of which this is the least, stand still by the time of a packet: nobody else is served then, as a
 * packet would wait for the one in service, one longer than another.
 */
static inline bool tide_still(const struct tide_listen *l, u64 least)
{
	u64 most = 0, longest = 0;

	/* a host that was slow once is no sign: the longest does not count */
	for (u32 i = 0; i < TIDE_HEARD; i++) {
		most = at_least(most, at_most(longest, l->heard.of[i]));
		longest = at_least(longest, l->heard.of[i]);
	}
	return l->probes > TIDE_HEARD && (most - least) * TIDE_ALIKE_PART < l->packet;
}

/*
 * A probe of four has come back. Whether it was the last of them, and they told something: what comes between makes a packet take longer. The rate is
 * that of the link, where packets that left together tell of others; else 0.
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

/* Whether most trains came with others' packets in between: in one queue none does, and in fair ones each while others' are not empty. */
static inline bool tide_comes_apart(const struct tide_listen *l)
{
	return 2 * l->apart > TIDE_TRAINS;
}

/*
 * The packets of a closer probe took this long, the first ACK left out: what a packet takes on the link now is at most that. One that is known to
 * take eight times as long is an ACK that waited for another.
 */
static inline void tide_measure(struct tide_listen *l, u64 known)
{
	if (!l->closer)
		l->packet = known;
	else if (l->packets)
		l->packet = at_most(l->packet, at_least((l->us << 8) / l->packets, known / 8));
}

static inline u64 tide_least_heard(const struct tide_listen *l)
{
	u64 least = ~0ULL;

	for (u32 i = 0; i < TIDE_HEARD; i++)
		least = at_most(least, l->heard.of[i]);
	return least;
}

/* A probe has come back that found this round trip, and met no other packets of the transfer if it was alone. */
static inline void tide_heard(struct tide_listen *l, u64 now_us, u64 rtt, u64 base, bool alone)
{
	l->peak = at_least(l->peak, rtt - base);
	l->heard.of[l->probes & (TIDE_HEARD - 1)] = rtt;
	if (l->probes + 1)
		l->probes++;
	if (l->stale)
		return;
	l->close = alone ? (now_us - l->probed_us) << 8 < 3 * base ? l->close + 1 : 1 : 0;
	l->probed_us = now_us;
}

/*
 * How much longer than the empty one round trips of this path are at the most where it is free, if it is, and the latest probes tell; else 0.
 */
VERIFIED_APART u64 tide_spread_heard(const struct tide_listen *l, u64 base)
{
	u64 longest = 0, most = 0, least, it, before = 0, walk = 0, differ = 0, spread, latest;

	if (!l || l->close < TIDE_FEW)
		return 0;
	if (l->close < TIDE_HEARD) {
		latest = l->heard.of[(l->probes - 1) & (TIDE_HEARD - 1)];
		for (u32 i = 0; i < TIDE_HEARD; i++)
			differ += is_at_most(TIDE_SAME, tide_differ(l->heard.of[(l->probes - 1 - i) & (TIDE_HEARD - 1)], latest)) & is_at_most(i + 1, l->close);
		return !differ;
	}
	if (l->close & 1)
		return 0;
	/* the longest may have met a scheduling stall */
	for (u32 i = 0; i < TIDE_HEARD; i++) {
		most = at_least(most, at_most(longest, l->heard.of[i]));
		longest = at_least(longest, l->heard.of[i]);
	}
	for (u32 i = 0; i < TIDE_HEARD; i++) {
		it = at_most(l->heard.of[(l->probes + i) & (TIDE_HEARD - 1)], most);
		walk += tide_differ(it, before) & -(u64)is_at_most(1, i);
		before = it;
	}
	least = tide_least_heard(l);
	spread = at_least((at_least(most, base) - base) * 9 / 7, 1);
	if (walk * 2 < (most - least) * TIDE_SPREAD_WALK_TWICE || least >= base + at_least(spread / 2, TIDE_SAME))
		return 0;
	return spread;
}

/* It is told of somebody else. Whether the path is another one than it was, as round trips have stood still for so long as it looked closer. */
static inline bool tide_doubts(struct tide_listen *l, u64 least)
{
	bool still = tide_still(l, least);

	if (!l->closer) {
		l->closer = still;
		return false;
	}
	l->closer++;
	if (l->closer <= TIDE_HEARD + 1)
		return false;
	if (!still)
		l->closer = 0;
	return still;
}

/*
 * The pace of probes of four, out of step with the packets of others: from one to the next it takes eighths of a packet's time longer, five more
 * each time.
 */
static inline u64 tide_out_of_step_q32(const struct tide_listen *l, u64 pace_q32)
{
	u64 eighths = 5 * l->probes & 7;

	if (tide_probe_burst(l) == 2)
		return pace_q32;
	/* of four packets: 4 / (4 / pace + eighths / 8 * packet) */
	return ((u64)4 << 40) / at_least(((u64)4 << 40) / at_least(pace_q32, 1) + eighths * l->packet / 8, 1);
}

#endif
