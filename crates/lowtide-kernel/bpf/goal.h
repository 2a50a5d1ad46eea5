/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Goals of single sockets, between programs and controller. Goals and progress go to the controller in the socket's
 * record, decisions come back.
 */
#ifndef LOWTIDE_GOAL_H
#define LOWTIDE_GOAL_H

#include "state.h"

/*
 * Decisions by the goal's id, written by the controller. There is room for the goals set between two of its readings.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * LOWTIDE_GOALS_MAX);
	__type(key, u64);
	__type(value, struct lt_decision);
} decisions SEC(".maps");

/* The last records of sockets that closed with a goal, since they are gone at the controller's next reading. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, LOWTIDE_GOALS_MAX);
	__type(value, struct lt_socket_record);
} closed_goals SEC(".maps");

/* The goal in force, as the program set it; all zero: none. Needs the socket's lock. */
static inline const struct lt_goal *goal_of(const struct lt_socket *s)
{
	return &s->goals[s->goal_version & 1];
}

/*
 * The controller reads without that lock. So a goal is written beside the one in force, and then replaces it at once.
 */
static inline void goal_write(struct lt_socket *s, const struct lt_goal *goal)
{
	s->goals[(s->goal_version + 1) & 1] = *goal;
	__sync_fetch_and_add(&s->goal_version, 1);
}

/* readings of a goal that is replaced meanwhile; each time a whole setsockopt call comes in between */
#define GOAL_LOOKS 4

/* Reads a whole goal without the socket's lock. False: there is none. */
static inline bool goal_look(const struct lt_socket *s, struct lt_goal *goal)
{
	u64 version;

	for (int i = 0; i < GOAL_LOOKS; i++) {
		version = *(const volatile u64 *)&s->goal_version;
		__sync_fetch_and_add(&group.goal_looks, 1);	/* orders the loads on every processor */
		bpf_probe_read_kernel(goal, sizeof(*goal), &s->goals[version & 1]);
		__sync_fetch_and_add(&group.goal_looks, 1);
		if (*(const volatile u64 *)&s->goal_version == version)
			return goal->id;
	}
	return false;
}

/* Counts the socket among the LOWTIDE_GOALS_MAX of the run with a goal. False: there is no room for one more. */
static inline bool goal_enter(struct lt_socket *s)
{
	if (s->goal_place)
		return true;
	if (__sync_fetch_and_add(&group.goal_places, 1) >= LOWTIDE_GOALS_MAX) {
		__sync_fetch_and_add(&group.goal_places, -1);
		return false;
	}
	s->goal_place = 1;
	return true;
}

/* The socket no longer counts: it has no goal, or is closed. */
static inline void goal_leave(struct lt_socket *s)
{
	if (__sync_lock_test_and_set(&s->goal_place, 0))
		__sync_fetch_and_add(&group.goal_places, -1);
}

static inline void goal_clear(struct lt_socket *s)
{
	struct lt_goal none = {};

	goal_write(s, &none);
	__builtin_memset(&s->decision, 0, sizeof(s->decision));
	goal_leave(s);
}

static inline void goal_record(const struct lt_goal *goal, struct lt_socket_record *record, u64 now_ns)
{
	record->goal = *goal;
	record->left_ns = goal->deadline_ns - now_ns;
}

/* Applies the decision, unless the program has set another goal meanwhile. */
static inline void goal_steer(struct lt_socket *s, const struct lt_goal *goal, u64 now_ns)
{
	u64 id = goal->id;
	const struct lt_decision *decision = bpf_map_lookup_elem(&decisions, &id);

	if (!decision || decision->serial != goal->serial)
		return;
	s->decision = *decision;
	if (decision->expected_ns >= 0)
		s->decision.expected_ns = now_ns + decision->expected_ns;
}

/* The controller reads the socket: its latest decision is applied, and the goal goes into the record. */
static inline void goal_observed(struct lt_socket *s, struct lt_socket_record *record)
{
	u64 now = bpf_ktime_get_boot_ns();
	struct lt_goal goal;

	if (!s->goal_version || !goal_look(s, &goal))
		return;
	goal_steer(s, &goal, now);
	goal_record(&goal, record, now);
}

/* The connection and its goal have ended. The last record stays readable. */
static inline void goal_closed(struct lt_socket *s, u64 acked)
{
	struct lt_socket_record record = {};

	goal_leave(s);
	if (!goal_of(s)->id)
		return;
	goal_record(goal_of(s), &record, bpf_ktime_get_boot_ns());
	record.acked = acked;
	bpf_map_push_elem(&closed_goals, &record, BPF_EXIST);
}

/* The last descriptor of a socket is closed. Without a connection there is no change of state (sockops.h). */
SEC("cgroup/sock_release")
int lt_sock_release(struct bpf_sock *sk)
{
	struct lt_socket *s;

	if (sk->state != BPF_TCP_CLOSE && sk->state != BPF_TCP_LISTEN)
		return 1;
	s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	if (s)
		goal_leave(s);
	return 1;
}

#endif
