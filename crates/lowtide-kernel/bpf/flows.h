/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections of one transfer over one path are one flow (law/aggregate.h): what the law knows belongs to the path, and they divide its window. A
 * newcomer knows the path at its first packet, one that ends hands nothing over.
 *
 * While the law listens, one of them probes the path. The others wait, with a segment now and then, as programs give up connections that
 * stand still. A socket with a goal of its own is a flow by itself.
 */
#ifndef LOWTIDE_FLOWS_H
#define LOWTIDE_FLOWS_H

#include "paths.h"

#define FLOW_STUCK_NS NSEC_PER_SEC	/* nobody has its turn for so long */
#define FLOW_PROBER_NS (2 * NSEC_PER_SEC)	/* the longest silence of a connection that probes, and four round trips */
#define WAITING_RATE 2000		/* bytes per second of one that waits: some programs ask for 1,000 */
#define WAITING_PART 50			/* all of them take this part of the link together at the most */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LT_PATHS);
	__type(key, struct lt_path);
	__type(value, struct lt_flow);
} flows SEC(".maps");

static const u64 no_flow_yet[sizeof(struct lt_flow) / sizeof(u64)];

/* Not by itself: one with a goal or parameters of its own, or where there is no room for one more path. */
static inline bool shares_flow(const struct lt_socket *s)
{
	return s->member.number && !s->decision.governed && !s->own_parameters;
}

/* The flow that a connection is part of. */
static __always_inline struct lt_flow *flow_of(struct lt_socket *s)
{
	struct lt_flow *f = shares_flow(s) ? bpf_map_lookup_elem(&flows, &s->member.path) : NULL;

	return f ? f : &s->flow;
}

/* The socket gets the law. */
static inline void flow_begin(struct lt_socket *s, const struct sock_common *sk)
{
	struct lt_flow *f;

	__builtin_memset(&s->member, 0, sizeof(s->member));
	__builtin_memset(&s->flow, 0, offsetof(struct lt_flow, all));
	s->flow.hint_us = known_base_us(sk);
	if (settings.whole_machine || !path_of(sk, &s->member.path))
		return;
	bpf_map_update_elem(&flows, &s->member.path, no_flow_yet, BPF_NOEXIST);
	f = bpf_map_lookup_elem(&flows, &s->member.path);
	if (!f)
		return;
	s->member.number = __sync_fetch_and_add(&group.numbers, 1) + 1;
	if (!f->begun)
		f->hint_us = s->flow.hint_us;
}

/* False: another processor is at it. It is not waited for, as that one may have been interrupted: what is to be done then is done at the next ACK. */
static inline bool flow_enter(struct lt_flow *f, u64 now_ns)
{
	u64 busy = f->busy_ns;

	if (busy && now_ns - busy < FLOW_STUCK_NS)
		return false;
	return __sync_val_compare_and_swap(&f->busy_ns, busy, now_ns) == busy;
}

static inline void flow_exit(struct lt_flow *f)
{
	__sync_lock_test_and_set(&f->busy_ns, 0);
}

/* Whether one connection of it is enough to probe the path, and others wait meanwhile. */
static inline bool flow_probes(const struct lt_flow *f)
{
	return f->begun && f->tide.listens && !tide_is_ordinary(&f->tide);
}

/* Whether this connection is the one that probes: one with data to send. */
static inline bool flow_prober(struct lt_flow *f, const struct lt_socket *s, bool has_data, u64 now_ns, u64 srtt_ns)
{
	u64 prober = f->prober;

	if (prober != s->member.number) {
		if (!has_data || (prober && now_ns < f->prober_until_ns))
			return false;
		f->prober = s->member.number;
	} else if (!has_data && f->all.wanting > 1) {
		f->prober = 0;
	}
	f->prober_until_ns = now_ns + FLOW_PROBER_NS + 4 * srtt_ns;
	return true;
}

/* It begins, or goes on after a pause. */
static inline void flow_join(struct lt_flow *f, struct lt_socket *s)
{
	s->member.waits = flow_probes(f) && f->prober && f->prober != s->member.number;
	if (s->member.waits)
		s->member.part.grant_q16 = PACED_BELOW_Q16;
	else
		aggregate_join(&f->all, &s->member.part, f->begun ? f->tide.shown_q16 : AGGREGATE_INITIAL * Q16_ONE);
}

/* Its connection is over, or is a flow by itself from now on. */
static inline void flow_leave(struct lt_socket *s)
{
	struct lt_flow *f;

	if (!s->member.number)
		return;
	f = bpf_map_lookup_elem(&flows, &s->member.path);
	if (!f)
		return;
	aggregate_leave(&f->all, &s->member.part);
	__sync_val_compare_and_swap(&f->prober, s->member.number, 0);
}

/* Bytes per second of all together, where the law paces; else PACING_UNLIMITED. */
static inline u64 flow_pace(const struct lt_flow *f, const void *parameters)
{
	u64 rate = tide_pace(&f->tide, parameters);

	/* on a short path only probes are paced */
	if (!rate || (!f->tide.listens && aggregate_srtt_us(&f->all) < PACING_RTT_MIN_US))
		return PACING_UNLIMITED;
	return rate;
}

/* Bytes per second of one that has a part of the window. */
static inline u32 flow_part_pace(const struct lt_flow *f, const struct lt_socket *s, const void *parameters, u32 mss)
{
	u64 pace = flow_pace(f, parameters), grant = s->member.part.grant_q16, window = f->tide.shown_q16;
	u32 small = budget_pacing(grant, mss, aggregate_srtt_us(&f->all));

	if (pace >= PACING_UNLIMITED)
		return small;
	if (grant < window)
		pace = pace * (grant >> 8) / at_least(window >> 8, 1);
	return at_most(at_least(pace, at_least(mss / PACING_FLOOR_SECONDS, 1)), PACING_UNLIMITED);
}

/*
 * Bytes per second of one that waits. At first it waits as long again as the law has listened: it may be for a few round trips only. By chance
 * between a half and three halves, since those that began together would all send at once.
 */
static inline u32 flow_waiting_pace(const struct lt_flow *f, u32 mss)
{
	u64 link = tide_rate_q32(&f->tide.path) ?: (1ULL << 40) / tide_packet(&f->tide.path);
	u64 part = tide_bytes_per_second(link / WAITING_PART, mss) / at_least(f->all.wanting, 1);
	u64 waited_us = f->tide.now_us - f->tide.listen.began_us;
	u64 early = (u64)mss * 1000000 / at_least(at_least(waited_us, 2 * aggregate_srtt_us(&f->all)), 1);
	u64 rate = at_least(at_least(at_most(part, WAITING_RATE), early), at_least(mss / PACING_FLOOR_SECONDS, 1));

	return at_most(rate / 2 + (rate * (bpf_get_prandom_u32() & 0xffff) >> 16), PACING_UNLIMITED);
}

#endif
