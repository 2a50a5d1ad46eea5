/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Connections of one transfer over one path are one flow (law/aggregate.h): the law's state belongs to the path, and
 * they divide its window. A new connection knows the path at its first packet, and one that ends hands nothing over.
 * Transfers of a group use one map of flows, and so are one flow together. The greatest of their weights is the flow's.
 *
 * Many that fill the window together meet in the queue by chance. They hide from each other whether there is cross
 * traffic behind fair queues. So one of them has a token: the token holder sends what the window allows, and probes in
 * LISTEN. The others wait, and send a segment now and then, since programs give up connections without progress. The
 * token goes round among the connections of greatest weight, so that what a transfer presses for goes to that transfer.
 * Application-limited connections do not need it, nor do new ones: a short connection never waits. A socket with a goal
 * of its own is a flow by itself.
 */
#ifndef LOWTIDE_FLOWS_H
#define LOWTIDE_FLOWS_H

#include "state.h"

#define FLOWS 1024		/* paths at a time */
#define FLOW_STUCK_NS NSEC_PER_SEC	/* a flow that is busy for longer is entered anyway */
#define FLOW_PRESSES_NS (2 * NSEC_PER_SEC)	/* a transfer without an ACK for longer presses no more */
/* greatest rate of a waiting connection in LISTEN or while the link is unknown, bytes per second */
#define WAITING_RATE 4000
/* part of the link for all waiting ones: a program that sees less than 1,000 bytes per second may give up */
#define WAITING_PART 50

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, FLOWS);
	__type(key, struct lt_path);
	__type(value, struct lt_flow);
} flows SEC(".maps");

/* False: the connection has no remote address, or stays within this machine. */
static inline bool path_of(const struct sock_common *sk, struct lt_path *path)
{
	struct lt_address local = {}, remote = {};

	if (sk->skc_family != AF_INET6) {
		local = address_of_v4(sk->skc_rcv_saddr);
		remote = address_of_v4(sk->skc_daddr);
	} else if (bpf_core_field_exists(sk->skc_v6_daddr)) {
		*(struct in6_addr *)&local = sk->skc_v6_rcv_saddr;
		*(struct in6_addr *)&remote = sk->skc_v6_daddr;
	}
	return path_between(path, &local, &remote);
}

static const u64 no_flow_yet[sizeof(struct lt_flow) / sizeof(u64)];
static const struct lt_path no_path;

/*
 * Makes sure that this path has a flow. Paths for which there is no room share one. Otherwise each connection of a
 * program with many networks would be a flow. False: there is no flow at all.
 */
static __always_inline bool flow_exists(void *map, struct lt_path *path, const void *none_yet)
{
	bpf_map_update_elem(map, &no_path, none_yet, BPF_NOEXIST);
	bpf_map_update_elem(map, path, none_yet, BPF_NOEXIST);
	if (bpf_map_lookup_elem(map, path))
		return true;
	*path = no_path;
	return bpf_map_lookup_elem(map, path);
}

/* Whether a connection may share a flow: it has no own goal or parameters, and leaves this machine. */
static inline bool shares_flow(const struct lt_socket *s)
{
	return s->member.number && !s->decision.governed && !s->own_parameters;
}

/* The flow that a connection is part of. */
static __always_inline struct lt_flow *flow_of(struct lt_socket *s)
{
	struct lt_flow *f = s->member.number && !s->member.alone ? bpf_map_lookup_elem(&flows, &s->member.path) : NULL;

	return f ? f : &s->flow;
}

/* A socket begins with the law. */
static inline void flow_begin(struct lt_socket *s, const struct sock_common *sk)
{
	__builtin_memset(&s->member, 0, sizeof(s->member));
	__builtin_memset(&s->flow, 0, offsetof(struct lt_flow, all));
	if (setup.whole_machine || !path_of(sk, &s->member.path))
		return;
	if (flow_exists(&flows, &s->member.path, no_flow_yet))
		s->member.number = ((u64)setup.transfer << 32) + __sync_fetch_and_add(&group.numbers, 1) + 1;
}

/*
 * False: another processor is at this flow. Waiting for it is no option, as it may have been interrupted: what is due
 * is done at the next ACK.
 */
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

/* The pace of all connections together, bytes per second; PACING_UNLIMITED: the law does not pace. */
static inline u64 flow_pace(const struct lt_flow *f, const void *parameters)
{
	u64 rate = tide_pace(&f->tide, parameters);

	/* on a short path only probes are paced */
	if (!rate || (!f->tide.listens && aggregate_srtt_us(&f->all) < PACING_RTT_MIN_US))
		return PACING_UNLIMITED;
	return rate;
}

/* Whether the law paces, so that a connection may use its part of the window at once. */
static inline bool flow_is_paced(const struct lt_flow *f, const void *parameters)
{
	return flow_pace(f, parameters) < PACING_UNLIMITED;
}

/*
 * At an ACK, or a segment that leaves: the flow's weight is that of the transfer that presses. Another one takes its
 * place if its weight is greater.
 */
static inline void flow_press(struct lt_flow *f, const struct lt_socket *s, u64 now_ns)
{
	u64 weight_q16 = pressure_on(s)->weight_q16;
	bool pressed = now_ns < f->pressed_ns || now_ns - f->pressed_ns < FLOW_PRESSES_NS;

	if (f->presses != setup.transfer && weight_q16 <= f->weight_q16 && pressed)
		return;
	f->presses = setup.transfer;
	f->pressed_ns = now_ns;
	f->weight_q16 = weight_q16;
}

/*
 * Whether a connection may take the token from its holder after a time: one of a transfer with the flow's weight may.
 * While the flow probes, only that of the transfer that presses, and from another one's.
 */
static inline bool flow_may_take_token(const struct lt_flow *f, const struct lt_socket *s)
{
	if (flow_probes(f))
		return f->presses == setup.transfer && f->token_holder >> 32 != setup.transfer;
	return pressure_on(s)->weight_q16 >= f->weight_q16;
}

/*
 * Whether the connection has the token. It takes the token if that is free, or was with another one for long enough.
 * `may_send`: it can send at once; a waiting one can only when its segment leaves.
 */
static inline bool flow_holds_token(struct lt_flow *f, const struct lt_socket *s, bool wants, bool may_send, u64 now_ns)
{
	u64 token_holder = f->token_holder;
	bool over = flow_may_take_token(f, s) && now_ns - f->token_since_ns > flow_token_ns(f);

	if (token_holder != s->member.number) {
		if (!wants || !may_send || (token_holder && now_ns < f->token_until_ns && !over))
			return false;
		f->token_since_ns = now_ns;
	}
	f->token_holder = wants ? s->member.number : 0;
	f->token_until_ns = now_ns + flow_unused_ns(f) + (flow_probes(f) ? FLOW_SILENCE_NS : 0);
	return true;
}

static inline void flow_waits(struct lt_flow *f, struct lt_socket *s, u32 waits)
{
	if (waits == s->member.waits)
		return;
	__sync_fetch_and_add(&f->waiting, (u64)waits - s->member.waits);
	s->member.waits = waits;
	if (!waits)	/* only one that waits is next */
		__sync_val_compare_and_swap(&f->next, s->member.number, 0);
}

/*
 * One of those that wait is next. It sends a segment per RTT, and may take the token when one leaves. So a free token
 * is taken within an RTT, however many wait for a part of the link.
 */
static inline void flow_queue_up(struct lt_flow *f, const struct lt_socket *s, u64 now_ns)
{
	if (!s->member.waits || flow_probes(f) || (f->next && f->next != s->member.number && now_ns < f->next_until_ns))
		return;
	f->next = s->member.number;
	f->next_until_ns = now_ns + flow_unused_ns(f);
}

/*
 * At an ACK: how a connection uses its grant. `limited`: it has more to send than it may. `idle`: all of its data are
 * sent; what follows counts as a new connection until it is long.
 */
VERIFIED_APART u32 flow_use_of_grant(struct lt_flow *f, struct lt_socket *s, bool limited, bool idle, u64 now_ns)
{
	bool wants, holds_token, is_new, probes;
	u32 use = AGGREGATE_MODEST;

	if (!f || !s)
		return 0;
	probes = flow_probes(f);
	if (limited)
		s->member.limited_ns = now_ns;
	wants = !idle && (limited || (!probes && now_ns - s->member.limited_ns < flow_unused_ns(f)));
	if (!wants)
		s->member.since_ns = now_ns;
	holds_token = flow_holds_token(f, s, wants, !s->member.waits, now_ns);
	is_new = !s->member.waits && now_ns - s->member.since_ns < flow_token_ns(f);
	if (wants)
		use = holds_token && flow_is_paced(f, s->parameters) ? AGGREGATE_HOLDS_TOKEN : holds_token || is_new ? AGGREGATE_WANTS : AGGREGATE_YIELDS;
	flow_waits(f, s, !holds_token && !idle && (probes || (use == AGGREGATE_YIELDS && s->member.waits)));
	flow_queue_up(f, s, now_ns);
	return use;
}

/* A segment leaves a connection that has none in flight: it waits, begins, or resumes after an idle time. */
VERIFIED_APART u32 flow_sends(struct lt_flow *f, struct lt_socket *s, bool has_data, u64 now_ns)
{
	bool holds_token;

	if (!f || !s)
		return 0;
	holds_token = flow_holds_token(f, s, has_data, true, now_ns);
	if (!s->member.waits)
		s->member.since_ns = now_ns;
	if (holds_token || !s->member.waits)
		s->member.limited_ns = now_ns;
	flow_waits(f, s, !holds_token && (s->member.waits || flow_probes(f)));
	flow_queue_up(f, s, now_ns);
	return holds_token && flow_is_paced(f, s->parameters) ? AGGREGATE_HOLDS_TOKEN : AGGREGATE_WANTS;
}

/* A connection joins the flow. */
static inline void flow_join(struct lt_flow *f, struct lt_socket *s, u64 now_ns)
{
	s->member.since_ns = s->member.limited_ns = now_ns;
	flow_waits(f, s, flow_probes(f) && f->token_holder && f->token_holder != s->member.number);
	if (s->member.waits)
		s->member.part.grant_q16 = PACED_BELOW_Q16;
	else
		aggregate_join(&f->all, &s->member.part, f->begun ? f->tide.shown_q16 : LAW_INITIAL_WINDOW * Q16_ONE);
}

/* A connection leaves the flow: it ends, or is a flow by itself from now on. */
static inline void flow_leave(struct lt_socket *s)
{
	struct lt_flow *f;

	if (!s->member.number || s->member.alone)
		return;
	f = bpf_map_lookup_elem(&flows, &s->member.path);
	if (!f)
		return;
	aggregate_leave(&f->all, &s->member.part);
	flow_waits(f, s, 0);
	__sync_val_compare_and_swap(&f->token_holder, s->member.number, 0);
}

/*
 * At an ACK: a connection with a new goal or parameters of its own is a flow by itself from now on. One whose goal has
 * ended is not any more.
 */
static inline void flow_choose(struct lt_socket *s)
{
	u32 alone = !shares_flow(s);

	if (alone == s->member.alone)
		return;
	if (alone)
		flow_leave(s);
	else
		aggregate_leave(&s->flow.all, &s->member.part);
	s->member.alone = alone;
}

/*
 * The pace of a connection with a part of the window, bytes per second. Segments of others that have sent all may leave
 * nothing of the window for the token holder: it sends one per RTT, since the pace of the segment that leaves now holds
 * until the next one may.
 */
static inline u32 flow_part_pace(const struct lt_flow *f, const struct lt_socket *s, const void *parameters, u32 mss)
{
	u64 pace = flow_pace(f, parameters), window = f->tide.shown_q16;
	u64 grant = at_least(s->member.part.grant_q16, f->token_holder == s->member.number ? Q16_ONE : 0);
	u32 small = budget_pacing(grant, mss, aggregate_srtt_us(&f->all));

	if (pace >= PACING_UNLIMITED)
		return small;
	if (grant < window)
		pace = pace * (grant >> 8) / at_least(window >> 8, 1);
	return at_most(at_least(pace, at_least(mss / PACING_FLOOR_SECONDS, 1)), PACING_UNLIMITED);
}

/*
 * The part of a waiting connection in a link of this rate, bytes per second: all of them have 1/WAITING_PART together.
 */
static inline u64 flow_waiting_part(const struct lt_flow *f, u64 packets_q32, u32 mss)
{
	return tide_bytes_per_second(packets_q32 / WAITING_PART, mss) / at_least(f->waiting, 1);
}

/*
 * The pace of a waiting connection, bytes per second. In LISTEN it gets no more than it needs: its first segments wait
 * for as long as LISTEN has lasted, which may be a few RTTs only. While the spread is measured, which these segments
 * would hide, they wait for at least as long as that takes. The pace is a random 1/2 to 3/2 of that (at most 1 while
 * the spread is measured), since connections that began together would all send at once.
 */
VERIFIED_APART u32 flow_waiting_pace(const struct lt_flow *f, u64 number, u32 mss)
{
	u64 rate, waited_us;
	bool measures = false;

	if (!f)
		return 0;
	if (f->next == number && !flow_probes(f))
		return at_most((u64)mss * 1000000 / at_least(aggregate_srtt_us(&f->all), 1), PACING_UNLIMITED);
	rate = at_most(flow_waiting_part(f, tide_link_at_most_q32(&f->tide.path), mss), WAITING_RATE);
	if (flow_probes(f)) {
		measures = tide_still_measures_spread(&f->tide);
		rate *= !measures;
		waited_us = at_least(f->tide.now_us - f->tide.listen.began_us, (measures ? TIDE_SPREAD_PROBES : 2) * aggregate_srtt_us(&f->all));
		rate = at_least(rate, (u64)mss * 1000000 / at_least(waited_us, 1));
	} else {
		rate = at_least(rate, flow_waiting_part(f, tide_link_q32(&f->tide.path), mss));
	}
	rate = rate / 2 + (rate * (bpf_get_prandom_u32() & 0xffff) >> (16 + measures));
	return at_most(at_least(rate, at_least(mss / PACING_FLOOR_SECONDS, 1)), PACING_UNLIMITED);
}

#endif
