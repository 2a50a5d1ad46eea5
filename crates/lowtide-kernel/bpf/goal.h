/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Goals of single sockets between the programs and the controller: goals and progress go up with the socket's record,
 * decisions come down.
 */
#ifndef LOWTIDE_GOAL_H
#define LOWTIDE_GOAL_H

#include "state.h"

/* Written by the controller, by the goal's id. Room for the goals set between two looks of its. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 2 * LOWTIDE_GOALS_MAX);
	__type(key, u64);
	__type(value, struct lt_decision);
} decisions SEC(".maps");

/* The last word on sockets that closed with a goal: by the controller's next look they are gone. */
struct {
	__uint(type, BPF_MAP_TYPE_QUEUE);
	__uint(max_entries, LOWTIDE_GOALS_MAX);
	__type(value, struct lt_socket_record);
} closed_goals SEC(".maps");

static inline void goal_record(const struct lt_goal *goal, struct lt_socket_record *record, u64 now_ns)
{
	record->goal = *goal;
	record->left_ns = goal->deadline_ns - now_ns;
}

/* Takes what was decided, unless the program has set another goal meanwhile. */
static inline void goal_steer(struct lt_socket *s, u64 now_ns)
{
	u64 id = s->goal.id;
	const struct lt_decision *decision = bpf_map_lookup_elem(&decisions, &id);

	if (!decision || decision->serial != s->goal.serial)
		return;
	s->decision = *decision;
	if (decision->expected_ns >= 0)
		s->decision.expected_ns = now_ns + decision->expected_ns;
}

/* The controller looks: what it decided last is taken, and the goal goes into the record. */
static inline void goal_observed(struct lt_socket *s, struct lt_socket_record *record)
{
	u64 now = bpf_ktime_get_boot_ns();

	if (!s->goal.id)
		return;
	goal_steer(s, now);
	goal_record(&s->goal, record, now);
}

static inline void goal_closed(const struct lt_socket *s, u64 acked)
{
	struct lt_socket_record record = {};

	if (!s->goal.id)
		return;
	goal_record(&s->goal, &record, bpf_ktime_get_boot_ns());
	record.acked = acked;
	bpf_map_push_elem(&closed_goals, &record, BPF_EXIST);
}

#endif
