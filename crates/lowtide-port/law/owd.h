/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * One-way delay from TCP timestamps (RFC 7323), without kernel access.
 *
 * The receiver's clock at the ACK less our clock when the newest segment that it covers left is the forward delay plus
 * the clocks' offset. (TSecr would not do: it is of the oldest such segment, and the time that the ACK was delayed
 * would count.) A clock of whole milliseconds is too coarse for laws that look for less, and two clocks drift apart; so
 * the forward delay plus the least return delay is bounded from above twice:
 *
 *   by the round trip, exactly: that is how much more than it there can be, if the ACK waited on its way;
 *   by the receiver's clock, one tick late, with the offset of the ACK that waited least.
 *
 * The smaller one is the delay. With a return path that is quiet it is the round trip to the microsecond, and what the
 * ACKs wait for beyond a tick does not count. The two never part by more than the return path explains, so a law can
 * hear one after the other. Where the receiver sends no timestamps, or its clock is none that we know, the round trip
 * remains.
 *
 * The offset follows the clocks' drift: it is that of the last few seconds, rising no faster than clocks part. And no
 * delay is below the least round trip; a clock that says so by more than ACKs can have waited has stepped, or ticks
 * otherwise than we thought.
 */
#ifndef LOWTIDE_OWD_H
#define LOWTIDE_OWD_H

#define OWD_FIRST_LOOK_US 32000	/* at a clock before its rate is known; doubles with each mistake */
#define OWD_LAST_LOOK_US (OWD_FIRST_LOOK_US << 8)
#define OWD_WINDOW_US 4000000	/* in which some ACK did not wait; clocks part by less than 1 ms in two */
#define OWD_DRIFT_SHIFT 12	/* by one part in 4096, 244 ppm, at most */
#define OWD_GAP_US (1 << 30)	/* without an ACK, after which timestamps of 1 us may have wrapped */

enum owd_use { OWD_UNKNOWN, OWD_ONE_WAY, OWD_ROUND_TRIPS };

struct owd {
	u64 heard_us;		/* the latest ACK with a timestamp */
	u64 look_us;		/* since when we look at the clock's rate */
	u64 window_us;		/* since when `least` counts */
	s64 clock_us;		/* the receiver's, which does not wrap; from 0 */
	s64 offset_us;		/* of ours above it, with the least return delay */
	s64 least_us;		/* of this window */
	u32 use;		/* enum owd_use */
	u32 tick_us;
	u32 tsval;		/* of the latest ACK */
	u32 look_tsval;
	u32 look_for_us;	/* 0: no timestamp yet */
	u32 rtt_min_us;		/* 0: none yet */
	u32 raised_us;		/* what the offset was too low by in this window, at least */
};

/*
 * The rate of a clock that made so many ticks in so many us, 0: none that we know. A tick or two, and a little that
 * ACKs wait, are missing.
 */
static inline u32 owd_rate(u32 ticks, u64 passed_us)
{
	const u32 known[] = { 1, 1000, 4000, 10000 };

	for (int i = 0; i < 4; i++) {
		u64 theirs = (u64)ticks * known[i];
		u64 off = theirs > passed_us ? theirs - passed_us : passed_us - theirs;

		if (off <= 2 * known[i] + passed_us / 16)
			return known[i];
	}
	return 0;
}

static inline void owd_look(struct owd *o, u32 tsval, u64 now_us)
{
	o->use = OWD_UNKNOWN;
	o->look_us = now_us;
	o->look_tsval = tsval;
}

/* The clock is not the one that we took it for. */
static inline void owd_mistaken(struct owd *o, u32 tsval, u64 now_us)
{
	owd_look(o, tsval, now_us);
	o->look_for_us *= 2;
	if (o->look_for_us > OWD_LAST_LOOK_US)
		o->use = OWD_ROUND_TRIPS;
}

static inline void owd_begin(struct owd *o, u32 tsval, u64 now_us)
{
	o->use = OWD_ONE_WAY;
	o->tsval = tsval;
	o->clock_us = 0;
	o->offset_us = o->least_us = now_us;
	o->window_us = now_us;
	o->raised_us = 0;
}

/* Looks at the clock's rate until it is known. */
static inline void owd_find(struct owd *o, u32 tsval, u64 now_us)
{
	u64 passed_us = now_us - o->look_us;

	if (!o->look_for_us) {
		o->look_for_us = OWD_FIRST_LOOK_US;
		owd_look(o, tsval, now_us);
	} else if (passed_us > OWD_GAP_US) {
		owd_look(o, tsval, now_us);
	} else if (passed_us >= o->look_for_us) {
		o->tick_us = owd_rate(tsval - o->look_tsval, passed_us);
		if (o->tick_us)
			owd_begin(o, tsval, now_us);
		else if (passed_us > OWD_LAST_LOOK_US)
			o->use = OWD_ROUND_TRIPS;
	}
}

/* How much longer than the luckiest ACK, and a tick, this one was on its way; negative: less. */
static inline s64 owd_waited(struct owd *o, u32 tsval, u64 now_us)
{
	s64 offset, most;

	o->clock_us += (s64)(s32)(tsval - o->tsval) * o->tick_us;
	o->tsval = tsval;
	offset = (s64)now_us - o->clock_us;
	if (offset < o->least_us)
		o->least_us = offset;
	if (now_us - o->window_us >= OWD_WINDOW_US) {
		most = o->offset_us + (s64)((now_us - o->window_us) >> OWD_DRIFT_SHIFT);
		o->offset_us = o->least_us < most ? o->least_us : most;
		o->least_us = offset;
		o->window_us = now_us;
		o->raised_us = 0;
	}
	if (offset < o->offset_us)
		o->offset_us = offset;
	return offset - o->offset_us - o->tick_us;
}

/*
 * The delay for an ACK that came now; `rtt_us` is that of the newest segment, 0: unknown, and so is the delay then.
 * `stamped`: it carried a timestamp, `tsval`.
 */
static inline u32 owd_delay(struct owd *o, bool stamped, u32 tsval, u64 now_us, u32 rtt_us)
{
	s64 waited, explained;

	if (rtt_us && (!o->rtt_min_us || rtt_us < o->rtt_min_us))
		o->rtt_min_us = rtt_us;
	if (!stamped && o->use == OWD_UNKNOWN)
		o->use = OWD_ROUND_TRIPS;
	if (!stamped || o->use == OWD_ROUND_TRIPS)
		return rtt_us;
	if (o->use == OWD_ONE_WAY && now_us - o->heard_us > OWD_GAP_US)
		owd_begin(o, tsval, now_us);
	o->heard_us = now_us;
	if (o->use == OWD_UNKNOWN) {
		owd_find(o, tsval, now_us);
		return rtt_us;
	}
	waited = owd_waited(o, tsval, now_us);
	if (!rtt_us || waited <= 0)
		return rtt_us;
	explained = rtt_us - o->rtt_min_us;
	if (waited > explained) {
		if (waited - explained + o->raised_us > rtt_us) {
			owd_mistaken(o, tsval, now_us);
			return rtt_us;
		}
		o->raised_us += waited - explained;
		o->offset_us += waited - explained;
		waited = explained;
	}
	return rtt_us - waited;
}

#endif
