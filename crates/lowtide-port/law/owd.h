/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * One-way delay from TCP timestamps (RFC 7323), without kernel access.
 *
 * The receiver's clock at the ACK less our clock when the newest segment that it covers left is the forward delay plus
 * the clocks' offset. (TSecr would not do: it is of the oldest such segment, and would include the ACK's delay at the
 * receiver.) A clock of whole milliseconds is too coarse for laws that look for less, and two clocks drift apart. So
 * forward delay plus least return delay has two upper bounds:
 *
 * * the RTT, exact but for the time that the ACK waited on its way;
 * * the receiver's clock, one tick late, with the offset of the ACK that waited least.
 *
 * The smaller one is the delay. With a quiet return path it is the RTT to the microsecond, and waits of ACKs beyond a
 * tick do not count. The two never differ by more than the return path explains, so a law can use one after the other.
 * Where the receiver sends no timestamps, or its clock rate is unknown, the RTT remains.
 *
 * The offset follows the clocks' drift: it is that of the last few seconds, and rises no faster than clocks drift. No
 * delay is below the minimum RTT. If a clock shows one that is lower by more than ACKs can have waited, it has stepped,
 * or its rate is another one. The same holds if ACKs come sooner than RTTs allow: a queue that fills while the rate is
 * measured makes a clock seem slow, and each later ACK would then seem to be the one that waited least.
 */
#ifndef LOWTIDE_OWD_H
#define LOWTIDE_OWD_H

#define OWD_FIRST_LOOK_US 32000	/* time to measure a clock's rate at first; doubles with each mistake */
#define OWD_LAST_LOOK_US (OWD_FIRST_LOOK_US << 8)
#define OWD_WINDOW_US 4000000	/* some ACK within it did not wait; clocks drift by less than 1 ms in two of these */
#define OWD_DRIFT_SHIFT 12	/* drift of at most one part in 4096, 244 ppm */
#define OWD_GAP_US (1 << 30)	/* without an ACK; after it timestamps of 1 us may have wrapped */

enum owd_use { OWD_UNKNOWN, OWD_ONE_WAY, OWD_ROUND_TRIPS };

struct owd {
	u64 heard_us;		/* the latest ACK with a timestamp */
	u64 look_us;		/* when the measurement of the clock's rate began */
	u64 window_us;		/* since when `least_us` counts */
	s64 clock_us;		/* the receiver's clock from 0, without wrapping */
	s64 offset_us;		/* our clock less the receiver's, with the least return delay */
	s64 least_us;		/* the least offset in this window */
	s64 floor_us;		/* RTTs show that no ACK has a smaller offset, but for a tick */
	u32 use;		/* enum owd_use */
	u32 tick_us;		/* of the receiver's clock */
	u32 tsval;		/* of the latest ACK */
	u32 look_tsval;		/* when the measurement of the rate began */
	u32 look_for_us;	/* duration of that measurement; 0: no timestamp yet */
	u32 rtt_min_us;		/* minimum RTT; 0: none yet */
	u32 raised_us;		/* how much the offset was raised in this window */
	u32 lowered_us;		/* how much its floor was lowered in this window */
	u32 unused;
};

/*
 * The tick, us, of a clock that made `ticks` in `passed_us`; 0: no known one. A tick or two are missing, and the little
 * time that ACKs waited.
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

/* The clock does not have the rate that was measured. */
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
	o->floor_us = (s64)now_us - OWD_GAP_US;
	o->raised_us = o->lowered_us = 0;
}

/* Measures the clock's rate. */
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

/* How much longer this ACK was on its way than the one that waited least, and a tick; negative: less. */
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
		o->raised_us = o->lowered_us = 0;
	}
	if (offset < o->offset_us)
		o->offset_us = offset;
	return offset - o->offset_us - o->tick_us;
}

/* An RTT sample. A lower minimum explains more of earlier RTTs. */
static inline void owd_note_rtt(struct owd *o, u32 rtt_us)
{
	if (!rtt_us || (o->rtt_min_us && rtt_us >= o->rtt_min_us))
		return;
	o->floor_us -= o->rtt_min_us ? o->rtt_min_us - rtt_us : 0;
	o->rtt_min_us = rtt_us;
}

/*
 * Whether ACKs come so much sooner than RTTs allow that the clock has another rate. `explained`: how much longer than
 * the least one this RTT is.
 */
static inline bool owd_comes_too_soon(struct owd *o, u64 now_us, u32 rtt_us, s64 explained)
{
	s64 offset = (s64)now_us - o->clock_us, sooner;

	if (offset - explained > o->floor_us)
		o->floor_us = offset - explained;
	sooner = o->floor_us - o->tick_us - offset;
	if (sooner <= 0)
		return false;
	if (sooner + o->lowered_us > rtt_us)
		return true;
	o->lowered_us += sooner;
	o->floor_us -= sooner;
	return false;
}

/*
 * The delay for an ACK that came now, us. `rtt_us` is that of the newest segment; 0: unknown, as then the delay.
 * `stamped`: the ACK has a timestamp, `tsval`.
 */
static inline u32 owd_delay(struct owd *o, bool stamped, u32 tsval, u64 now_us, u32 rtt_us)
{
	s64 waited, explained;

	owd_note_rtt(o, rtt_us);
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
	if (!rtt_us)
		return rtt_us;
	explained = rtt_us - o->rtt_min_us;
	if (owd_comes_too_soon(o, now_us, rtt_us, explained)) {
		owd_mistaken(o, tsval, now_us);
		return rtt_us;
	}
	if (waited <= 0)
		return rtt_us;
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
