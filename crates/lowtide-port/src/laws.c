// SPDX-License-Identifier: MIT OR Apache-2.0
/* The laws as tables of functions. */
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#include "laws.h"

struct law_table {
	u64 size;	/* of the law's state, bytes */
	u64 parameters;	/* of all its parameters, bytes */
	u64 of_marks;	/* called in reduction episodes, too: law.h */
	/* Not called within the episode of a back-off of its own or a mark; begins with the count of random numbers: */
	u64 of_episodes;
	void (*begin)(void *law, const void *parameters, struct law_window *w, u32 nxt);
	void (*sample)(void *law, const void *parameters, const struct law_ack *a);
	bool (*ack)(void *law, const void *parameters, const struct law_weight *weight, struct law_window *w, const struct law_ack *a);
	void (*reduce)(void *law, const void *parameters, const struct law_weight *weight, struct law_window *w, u32 signal, u32 random);
	void (*answered)(void *law);
	void (*recovered)(void *law, struct law_window *w, u32 nxt);
	void (*undone)(void *law, struct law_window *w);
	void (*restart)(void *law, struct law_window *w, u32 nxt, u64 idle_us);
	u32 (*inspect)(const void *law, const void *parameters, const struct law_weight *weight, s64 *values);
	/* Of a law that paces itself, else NULL: */
	u64 (*pace)(const void *law, const void *parameters);
	u32 (*least_burst)(const void *law);
	/*
	 * Of a law that connections share, else NULL: what it does with its path, and since when if it probes; what the
	 * link is known to carry, and may carry.
	 */
	u32 (*stance)(const void *law, u64 *since_us);
	void (*link_rates)(const void *law, u32 mss, u64 *known, u64 *at_most);
};

#define LAW_TABLE(law, of_marks, of_episodes, undo, pace, least_burst, stance, link_rates)                                                                                                           \
	static void law##_begin_any(void *l, const void *p, struct law_window *w, u32 nxt)                                     \
	{                                                                                                                      \
		law##_begin(l, p, w, nxt);                                                                                     \
	}                                                                                                                      \
	static void law##_sample_any(void *l, const void *p, const struct law_ack *a)                                          \
	{                                                                                                                      \
		law##_sample(l, p, a);                                                                                         \
	}                                                                                                                      \
	static bool law##_ack_any(void *l, const void *p, const struct law_weight *weight, struct law_window *w,               \
				  const struct law_ack *a)                                                                     \
	{                                                                                                                      \
		return law##_ack(l, p, weight, w, a);                                                                          \
	}                                                                                                                      \
	static void law##_reduce_any(void *l, const void *p, const struct law_weight *weight, struct law_window *w,            \
				     u32 signal, u32 random)                                                                   \
	{                                                                                                                      \
		law##_reduce(l, p, weight, w, signal, random);                                                                 \
	}                                                                                                                      \
	static void law##_answered_any(void *l)                                                                                \
	{                                                                                                                      \
		law##_answered(l);                                                                                             \
	}                                                                                                                      \
	static void law##_recovered_any(void *l, struct law_window *w, u32 nxt)                                                \
	{                                                                                                                      \
		law##_recovered(l, w, nxt);                                                                                    \
	}                                                                                                                      \
	static void law##_undone_any(void *l, struct law_window *w)                                                            \
	{                                                                                                                      \
		undo;                                                                                                          \
	}                                                                                                                      \
	static void law##_restart_any(void *l, struct law_window *w, u32 nxt, u64 idle_us)                                     \
	{                                                                                                                      \
		law##_restart(l, w, nxt, idle_us);                                                                             \
	}                                                                                                                      \
	static u32 law##_inspect_any(const void *l, const void *p, const struct law_weight *weight, s64 *values)               \
	{                                                                                                                      \
		return law##_inspect(l, p, weight, values);                                                                    \
	}                                                                                                                      \
	static const struct law_table lowtide_##law = {                                                                               \
		sizeof(struct law), sizeof(struct law##_parameters), of_marks, of_episodes, law##_begin_any, law##_sample_any, law##_ack_any, \
		law##_reduce_any, law##_answered_any, law##_recovered_any, law##_undone_any, law##_restart_any, law##_inspect_any, pace, least_burst, \
		stance, link_rates, \
	}

static u64 tide_pace_any(const void *l, const void *p)
{
	return tide_pace(l, p);
}

static u32 tide_least_burst_any(const void *l)
{
	return tide_least_burst(l);
}

/*
 * As in flows.h: an ordinary flow, one that fills the link, one that probes, and one whose probes look how much RTTs
 * differ.
 */
enum stance { STANCE_WINDOW, STANCE_FILLS, STANCE_PROBES, STANCE_MEASURES };

static u32 tide_stance_any(const void *l, u64 *since_us)
{
	const struct tide *t = l;

	*since_us = t->listen.began_us;
	if (tide_is_ordinary(t))
		return STANCE_WINDOW;
	if (!t->listens)
		return STANCE_FILLS;
	return tide_still_measures_spread(t) ? STANCE_MEASURES : STANCE_PROBES;
}

static void tide_link_rates_any(const void *l, u32 mss, u64 *known, u64 *at_most)
{
	const struct tide *t = l;

	*known = tide_bytes_per_second(tide_link_q32(&t->path), mss);
	*at_most = tide_bytes_per_second(tide_link_at_most_q32(&t->path), mss);
}

/* By the law's hooks, as the table has them. */
#define LAW_WINDOW(law) LAW_TABLE(law, 0, 0, law##_undone(l), 0, 0, 0, 0)
#define LAW_TIMEOUTS(law) LAW_WINDOW(law)
#define LAW_MARKS(law) LAW_TABLE(law, 1, 0, law##_undone(l, w), 0, 0, 0, 0)
#define LAW_EPISODES(law) LAW_TABLE(law, 0, 1, law##_undone(l), 0, 0, 0, 0)
#define LAW_PACED(law) LAW_TABLE(law, 1, 0, law##_undone(l, w), law##_pace_any, law##_least_burst_any, law##_stance_any, law##_link_rates_any)
#define LAW(law, hooks) LAW_##hooks(law);

LAWS(LAW)

#define LAW_ADDRESS(law, hooks) &lowtide_##law,

const struct law_table *const lowtide_laws[] = { LAWS(LAW_ADDRESS) };
