/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options of include/lowtide.h. In nested runs the programs of all groups are called, the innermost first. Each
 * takes the goal for its own governor. The program reads the outermost one's answer.
 */
#ifndef LOWTIDE_OPTIONS_H
#define LOWTIDE_OPTIONS_H

#include "state.h"
#include "goal.h"

#define SWALLOW -1		/* optlen: the kernel does not see the call, the program sees success */
#define OPTION_KNOWN 64		/* a structure may be longer than the known one if the rest, up to here, is zero */

static inline int refuse(int error)
{
	bpf_set_retval(-error);
	return 0;
}

/* Whether the option is zero after the known structure. */
static inline bool rest_is_zero(const struct bpf_sockopt *ctx, u32 known)
{
	const u8 *value = ctx->optval, *end = ctx->optval_end;
	s32 length = ctx->optlen;

	if (length > OPTION_KNOWN)
		return false;
	for (s32 i = known; i < OPTION_KNOWN; i++) {
		if (i >= length || value + i + 1 > end)
			break;
		if (value[i])
			return false;
	}
	return true;
}

static inline int set_goal(struct bpf_sockopt *ctx, struct bpf_sock *sk, struct lt_socket *s)
{
	const struct lowtide_goal *asked = ctx->optval;
	const struct bpf_tcp_sock *tp = bpf_tcp_sock(sk);
	bool connected = sk->state != BPF_TCP_CLOSE && sk->state != BPF_TCP_SYN_SENT;
	struct lt_goal goal = {};
	u64 size, within_ns;

	if ((void *)(asked + 1) > ctx->optval_end || !tp)
		return refuse(EINVAL);
	size = asked->size;
	within_ns = asked->within_ns;
	if (!size && !within_ns) {
		goal_clear(s);
		return 1;
	}
	if (!size || size > LOWTIDE_SIZE_MAX || within_ns < LOWTIDE_WITHIN_MIN || within_ns > LOWTIDE_WITHIN_MAX)
		return refuse(EINVAL);
	if (sk->state == BPF_TCP_LISTEN || s->own_law)
		return refuse(EOPNOTSUPP);
	if (!goal_enter(s))
		return refuse(ENOBUFS);
	goal.id = goal_of(s)->id;
	goal.serial = goal_of(s)->serial + 1;
	if (!goal.id)
		goal.id = __sync_fetch_and_add(&group.goals, 1) + 1;
	goal.size = size;
	goal.acked_before = connected ? tp->bytes_acked - s->acked_base : 0;
	goal.deadline_ns = bpf_ktime_get_boot_ns() + within_ns;
	goal_write(s, &goal);
	/* the weight stays until the governor's next decision, but its outlook was for the goal before */
	s->decision.outlook = LOWTIDE_TOO_EARLY;
	s->decision.target_rate = 0;
	s->decision.expected_ns = -1;
	return 1;
}

static inline int set_latency(struct bpf_sockopt *ctx, struct lt_socket *s)
{
	const u32 *latency_us = ctx->optval;

	if ((void *)(latency_us + 1) > ctx->optval_end || *latency_us > LOWTIDE_LATENCY_MAX)
		return refuse(EINVAL);
	s->latency_us = *latency_us;
	return 1;
}

/* Splits a double into an integer and 2^-32. False: negative, no number, or too large for a parameter. */
static inline bool read_double(u64 bits, u64 *whole, u64 *part_q32)
{
	u64 mantissa = (bits & ((1ULL << 52) - 1)) | 1ULL << 52;
	s32 exponent = (s32)(bits >> 52) - 1023;	/* includes the sign bit, so negative numbers are too large */

	*whole = *part_q32 = 0;
	if (!(bits << 1))
		return true;
	if (exponent > 32)
		return false;
	if (exponent >= 0) {
		*whole = mantissa >> (52 - exponent);
		mantissa &= (1ULL << (52 - exponent)) - 1;
	}
	if (exponent > 20)
		*part_q32 = mantissa << (exponent - 20);
	else if (exponent > -32)
		*part_q32 = mantissa >> (20 - exponent);
	return true;
}

/* Compares words: that costs the verifier an eighth of comparing bytes. */
static inline bool same_name(const u64 *asked, const volatile char *known)
{
	const volatile u64 *words = (const volatile u64 *)known;	/* lt_parameter begins with its name */

	return words[0] == asked[0] && words[1] == asked[1] && words[2] == asked[2];
}

static inline int set_parameter(struct bpf_sockopt *ctx, struct lt_socket *s)
{
	const struct lowtide_parameter *asked = ctx->optval;
	const volatile struct lt_parameter *known;
	u64 bits, whole, part_q32, value, name[LOWTIDE_PARAMETER_NAME / sizeof(u64)];
	bool there;
	u32 i;

	if ((void *)(asked + 1) > ctx->optval_end)
		return refuse(EINVAL);
	if (s->own_law || !setup.settable[0].name[0])
		return refuse(EOPNOTSUPP);
	__builtin_memcpy(&bits, &asked->value, sizeof(bits));
	__builtin_memcpy(name, asked->name, sizeof(name));
	there = read_double(bits, &whole, &part_q32);
	for (i = 0; i < LT_PARAMETERS; i++) {
		known = &setup.settable[i];
		if (known->name[0] && same_name(name, known->name))
			break;
	}
	if (!there || i == LT_PARAMETERS || whole > ~0U)
		return refuse(EINVAL);
	value = whole * known->unit + ((part_q32 * known->unit + (1ULL << 31)) >> 32);
	if (value < known->least || value > known->most || (known->unit == 1 && part_q32))
		return refuse(EINVAL);
	take_parameters(s);
	s->parameters[i] = value;
	s->own_parameters = 1;
	return 1;
}

/* Size of an option that can be set; 0: not one of Lowtide's. */
static inline u32 size_of_option(u32 name)
{
	switch (name) {
	case LOWTIDE_GOAL:
		return sizeof(struct lowtide_goal);
	case LOWTIDE_LATENCY:
		return sizeof(u32);
	case LOWTIDE_PARAMETER:
		return sizeof(struct lowtide_parameter);
	}
	return 0;
}

/* Unknown options are left to the kernel, which does not know them either. */
static inline int set_option(struct bpf_sockopt *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	u32 known = size_of_option(ctx->optname);
	struct lt_socket *s;
	int taken;

	if (!known || !sk || bpf_get_retval() < 0)
		return 1;
	if (sk->protocol != PROTO_TCP)	/* of MPTCP and SMC the program has no connection */
		return refuse(EOPNOTSUPP);
	if (ctx->optlen != SWALLOW) {	/* else a nested group has checked it already */
		if (ctx->optlen < (s32)known)
			return refuse(EINVAL);
		if (!rest_is_zero(ctx, known))
			return refuse(E2BIG);
	}
	s = bpf_sk_storage_get(&sockets, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!s)
		return refuse(ENOMEM);
	switch (ctx->optname) {
	case LOWTIDE_GOAL:
		taken = set_goal(ctx, sk, s);
		break;
	case LOWTIDE_LATENCY:
		taken = set_latency(ctx, s);
		break;
	default:
		taken = set_parameter(ctx, s);
	}
	if (taken)
		ctx->optlen = SWALLOW;
	return taken;
}

static inline void fill_status(struct lowtide_status *status, const struct lt_socket *s, const struct bpf_tcp_sock *tp)
{
	u64 now = bpf_ktime_get_boot_ns(), weight = steering.weight;
	const struct lt_goal *goal;

	__builtin_memset(status, 0, sizeof(*status));
	status->expected_ns = -1;
	if (s && s->own_law)
		status->flags |= LOWTIDE_OWN_LAW;
	if (s && goal_of(s)->id) {
		goal = goal_of(s);
		status->flags |= LOWTIDE_HAS_GOAL;
		status->outlook = s->decision.outlook;
		status->size = goal->size;
		if (tp->bytes_acked > s->acked_base + goal->acked_before)
			status->acknowledged = tp->bytes_acked - s->acked_base - goal->acked_before;
		status->left_ns = goal->deadline_ns - now;
		if (s->decision.expected_ns >= 0)
			status->expected_ns = s->decision.expected_ns > (s64)now ? s->decision.expected_ns - now : 0;
		if (s->decision.governed && controller_alive(bpf_ktime_get_ns())) {
			status->flags |= LOWTIDE_GOVERNED;
			status->target_rate = s->decision.target_rate;
			status->achieved_rate = s->decision.achieved_rate;
			weight = s->decision.weight;
		}
	}
	__builtin_memcpy(&status->weight, &weight, sizeof(weight));
}

static inline int get_option(struct bpf_sockopt *ctx)
{
	struct lowtide_status *status = ctx->optval;
	u32 *latency_us = ctx->optval;
	struct bpf_sock *sk = ctx->sk;
	const struct bpf_tcp_sock *tp;
	struct lt_socket *s;

	if ((ctx->optname != LOWTIDE_STATUS && ctx->optname != LOWTIDE_LATENCY) || !sk)
		return 1;
	tp = bpf_tcp_sock(sk);
	s = bpf_sk_storage_get(&sockets, sk, NULL, 0);
	if (!tp)
		return 1;
	if (ctx->optname == LOWTIDE_STATUS) {
		if ((void *)(status + 1) > ctx->optval_end)
			return refuse(EINVAL);
		fill_status(status, s, tp);
		ctx->optlen = sizeof(*status);
	} else {
		if ((void *)(latency_us + 1) > ctx->optval_end)
			return refuse(EINVAL);
		*latency_us = s ? s->latency_us : 0;
		ctx->optlen = sizeof(*latency_us);
	}
	bpf_set_retval(0);
	return 1;
}

#endif
