/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Base and current delay (RFC 6817, section 2.4.2), without kernel access. Delays are microseconds with an unknown
 * origin.
 */
#ifndef LOWTIDE_DELAY_H
#define LOWTIDE_DELAY_H

#define BASE_MINUTES 32		/* remembered at most */
#define CURRENT_SAMPLES 16	/* filtered at most */
#define NO_DELAY ((s64)(~0ULL >> 1))
#define MINUTE_US 60000000

/* The minimum delay of the last minutes: one minimum for each minute with samples. */
struct base_delay {
	s64 minima[BASE_MINUTES];	/* ring buffer; NO_DELAY: no value */
	s64 before;			/* the least but for the newest minute */
	u64 minute;			/* of the newest minimum, from 1; 0: no sample yet */
	u32 newest;
};

/* The minimum of the latest samples. */
struct current_delay {
	s64 delay[CURRENT_SAMPLES];	/* ring buffer; NO_DELAY: no value */
	u64 at_us[CURRENT_SAMPLES];
	u32 next;
};

static inline void base_delay_begin(struct base_delay *b)
{
	for (u32 i = 0; i < BASE_MINUTES; i++)
		b->minima[i] = NO_DELAY;
	b->before = NO_DELAY;
}

static inline void current_delay_begin(struct current_delay *c)
{
	for (u32 i = 0; i < CURRENT_SAMPLES; i++)
		c->delay[i] = NO_DELAY;
}

static inline void base_delay_sample(struct base_delay *b, u32 minutes, u64 now_us, s64 delay_us)
{
	u64 minute = now_us / MINUTE_US + 1;
	s64 *newest;

	if (minute != b->minute) {
		b->minute = minute;
		b->newest = b->newest + 1 < minutes ? b->newest + 1 : 0;
		b->minima[b->newest & (BASE_MINUTES - 1)] = NO_DELAY;
		b->before = NO_DELAY;
#pragma GCC unroll 32
		for (u32 i = 0; i < BASE_MINUTES; i++) {
			if (b->minima[i] < b->before)
				b->before = b->minima[i];
		}
	}
	newest = &b->minima[b->newest & (BASE_MINUTES - 1)];
	if (delay_us < *newest)
		*newest = delay_us;
}

/* NO_DELAY before the first sample. */
static inline s64 base_delay(const struct base_delay *b)
{
	s64 newest = b->minima[b->newest & (BASE_MINUTES - 1)];

	return newest < b->before ? newest : b->before;
}

static inline void current_delay_sample(struct current_delay *c, u32 samples, u64 now_us, s64 delay_us)
{
	u32 at = c->next & (CURRENT_SAMPLES - 1);

	c->delay[at] = delay_us;
	c->at_us[at] = now_us;
	c->next = at + 1 < samples ? at + 1 : 0;
}

/* The minimum of the samples that are at most `age` old; NO_DELAY if there are none. */
static inline s64 current_delay(const struct current_delay *c, u64 now_us, u64 age_us)
{
	s64 least = NO_DELAY;

#pragma GCC unroll 16
	for (u32 i = 0; i < CURRENT_SAMPLES; i++) {
		if (now_us - c->at_us[i] <= age_us && c->delay[i] < least)
			least = c->delay[i];
	}
	return least;
}

#endif
