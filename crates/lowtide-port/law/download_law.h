/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * Laws other than Tide at the receiver, without kernel access. To such a law an answered grant is what an ACK is to a
 * sender. The connections of a path are one flow, so `una` and `nxt` are times (aggregate.h), and an episode of a
 * reduction lasts an RTT: until all data that were in flight have arrived. A mark counts as a loss does for a sender
 * with ECN (RFC 3168).
 *
 * Laws of marks (law.h) are not among them. Their senders get the same marks, and reduce their windows as well.
 */
#ifndef LOWTIDE_DOWNLOAD_LAW_H
#define LOWTIDE_DOWNLOAD_LAW_H

#include "law.h"

#ifndef LOWTIDE_LAWS_H
#error "include laws.h first, which build.rs writes from the table of laws"
#endif

/* The place of each law in the table of laws, LAW_NUMBER_tide for example. */
#define LAW_NUMBER(law, hooks) LAW_NUMBER_##law,
enum law_number { LAWS(LAW_NUMBER) };

/* X(law) for those that govern what is received, by their hooks in the table. */
#define DOWNLOAD_WINDOW(X, law) X(law)
#define DOWNLOAD_TIMEOUTS(X, law) X(law)
#define DOWNLOAD_EPISODES(X, law) X(law)
#define DOWNLOAD_MARKS(X, law)
#define DOWNLOAD_PACED(X, law)

#define DOWNLOAD_STATE_OF(law) struct law law;
#define DOWNLOAD_STATE(law, hooks) DOWNLOAD_##hooks(DOWNLOAD_STATE_OF, law)

struct download_law {
	struct law_window window;
	u32 begun;
	u32 reducing;		/* in an episode, until `una` is past `episode_end` */
	u32 episode_end;
	union { LAWS(DOWNLOAD_STATE) };
};

static inline struct law_weight download_weight(u64 weight_q16)
{
	struct law_weight weight = { .weight_q16 = weight_q16, .ratio_q16 = Q16_ONE, .kept_q16 = Q16_ONE };

	return weight;
}

/* The law hears of data that answer a grant. */
#define DOWNLOAD_LAW_HEARS(law)                                                                                        \
	static NOT_INLINE int download_##law##_hears(struct download_law *l, const void *p, u64 weight_q16,            \
						     const struct law_ack *a)                                          \
	{                                                                                                              \
		struct law_weight weight = download_weight(weight_q16);                                                \
		struct law_window *w = &l->window;                                                                     \
		bool reduced = false;                                                                                  \
                                                                                                                       \
		if (!l->begun)                                                                                         \
			law##_begin(&l->law, p, w, a->nxt);                                                            \
		l->begun = 1;                                                                                          \
		law##_sample(&l->law, p, a);                                                                           \
		if (l->reducing && (s32)(a->una - l->episode_end) > 0) {                                               \
			l->reducing = 0;                                                                               \
			law##_recovered(&l->law, w, a->nxt);                                                           \
		}                                                                                                      \
		if (l->reducing)                                                                                       \
			return 0;                                                                                      \
		if (a->lost || a->marked) {                                                                            \
			IN_PLACE law##_reduce(&l->law, p, &weight, w, a->lost ? LAW_LOSS : LAW_ECN, a->random);        \
			reduced = true;                                                                                \
		} else {                                                                                               \
			IN_PLACE reduced = law##_ack(&l->law, p, &weight, w, a);                                       \
		}                                                                                                      \
		if (reduced) {                                                                                         \
			l->reducing = 1;                                                                               \
			l->episode_end = a->nxt;                                                                       \
		}                                                                                                      \
		return 0;                                                                                              \
	}

/* The flow was idle. Its window is an initial one again (RFC 2861, section 3.1), as in a sender's stack. */
#define DOWNLOAD_LAW_RESTARTS(law)                                                                                     \
	static NOT_INLINE int download_##law##_restarts(struct download_law *l, u64 now_us, u64 idle_us)               \
	{                                                                                                              \
		struct law_window *w = &l->window;                                                                     \
                                                                                                                       \
		if (!l->begun)                                                                                         \
			return 0;                                                                                      \
		if (w->cwnd_q16 > LAW_INITIAL_WINDOW * Q16_ONE) {                                                      \
			w->ssthresh_q16 = at_least(w->ssthresh_q16, w->cwnd_q16 - w->cwnd_q16 / 4);                    \
			w->cwnd_q16 = LAW_INITIAL_WINDOW * Q16_ONE;                                                    \
		}                                                                                                      \
		law##_restart(&l->law, w, now_us, idle_us);                                                            \
		return 0;                                                                                              \
	}

#define DOWNLOAD_LAW_FUNCTIONS(law) DOWNLOAD_LAW_HEARS(law) DOWNLOAD_LAW_RESTARTS(law)
#define DOWNLOAD_LAW(law, hooks) DOWNLOAD_##hooks(DOWNLOAD_LAW_FUNCTIONS, law)

LAWS(DOWNLOAD_LAW)

#define DOWNLOAD_CASE_HEARS(law)                                                                                       \
	case LAW_NUMBER_##law:                                                                                         \
		download_##law##_hears(l, p, weight_q16, a);                                                           \
		break;
#define DOWNLOAD_HEARS(law, hooks) DOWNLOAD_##hooks(DOWNLOAD_CASE_HEARS, law)

/* In BPF the number is a constant, so the verifier sees one law. */
static inline void download_law_hears(u32 number, struct download_law *l, const void *p, u64 weight_q16, const struct law_ack *a)
{
	switch (number) {
		LAWS(DOWNLOAD_HEARS)
	}
}

#define DOWNLOAD_CASE_RESTARTS(law)                                                                                    \
	case LAW_NUMBER_##law:                                                                                         \
		download_##law##_restarts(l, now_us, idle_us);                                                         \
		break;
#define DOWNLOAD_RESTARTS(law, hooks) DOWNLOAD_##hooks(DOWNLOAD_CASE_RESTARTS, law)

static inline void download_law_restarts(u32 number, struct download_law *l, u64 now_us, u64 idle_us)
{
	switch (number) {
		LAWS(DOWNLOAD_RESTARTS)
	}
}

#define DOWNLOAD_CASE_INSPECT(law)                                                                                     \
	case LAW_NUMBER_##law:                                                                                         \
		return law##_inspect(&l->law, p, weight, values);
#define DOWNLOAD_INSPECT(law, hooks) DOWNLOAD_##hooks(DOWNLOAD_CASE_INSPECT, law)

/* For a trace, as X_inspect of law.h. */
static inline u32 download_law_inspect(u32 number, const struct download_law *l, const void *p, const struct law_weight *weight, s64 *values)
{
	switch (number) {
		LAWS(DOWNLOAD_INSPECT)
	}
	return 0;
}

#endif
