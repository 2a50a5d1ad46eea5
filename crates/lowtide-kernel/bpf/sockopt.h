/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program's own options for its sockets. Its law and its DSCP are ignored (unless allowed), its pacing limit is kept.
 * Lowtide's own options (options.h) are served here, too.
 */
#ifndef LOWTIDE_SOCKOPT_H
#define LOWTIDE_SOCKOPT_H

#include "state.h"
#include "options.h"

#define WHOLE 4096	/* longer options are cut to a page; an optlen of 0 passes the original to the kernel */

static inline bool wants_law(const struct bpf_sockopt *ctx)
{
	return ctx->level == IPPROTO_TCP && ctx->optname == TCP_CONGESTION;
}

static inline bool wants_traffic_class(const struct bpf_sockopt *ctx)
{
	return (ctx->level == IPPROTO_IP && ctx->optname == IP_TOS) ||
	       (ctx->level == IPPROTO_IPV6 && ctx->optname == IPV6_TCLASS);
}

static inline bool is_smc(const struct bpf_sock *sk)
{
	return sk->family == AF_SMC || sk->protocol == IPPROTO_SMC;
}

/*
 * The stack applies options of an MPTCP socket to all TCP connections below it, and those of an SMC socket to its TCP
 * connection, until that takes the socket's place.
 */
static inline bool is_governed(const struct bpf_sock *sk)
{
	return sk->protocol == PROTO_TCP || sk->protocol == IPPROTO_MPTCP || is_smc(sk);
}

/* Reads SO_MAX_PACING_RATE as the kernel does: 64 bits if the program gave as many, else 32. False: too short. */
static inline bool read_pacing(const struct bpf_sockopt *ctx, u64 *rate)
{
	const u64 *wide = ctx->optval;
	const u32 *narrow = ctx->optval;

	if ((void *)(wide + 1) <= ctx->optval_end)
		*rate = *wide == ~0ULL ? 0 : *wide;
	else if ((void *)(narrow + 1) <= ctx->optval_end)
		*rate = *narrow == PACING_UNLIMITED ? 0 : *narrow;
	else
		return false;
	return true;
}

static inline bool is_free(const u64 *name)
{
	for (int i = 0; i < LT_FREE_LAWS; i++) {
		/* set at loading: no constant */
		const volatile u64 *known = (const volatile u64 *)setup.free_laws[i];

		if (known[0] && known[0] == name[0] && known[1] == name[1])
			return true;
	}
	return false;
}

/*
 * The program's choice of a law, which the socket gets when Lowtide ends. Lowtide has more rights than the program, so
 * the law must be one that needs none.
 */
static inline void choose_former(const struct bpf_sockopt *ctx, struct lt_socket *s)
{
	const char *name = ctx->optval, *end = ctx->optval_end;
	union {
		char text[LT_CC_NAME];
		u64 words[LT_CC_NAME / sizeof(u64)];
	} law = {};

	for (int i = 0; i < LT_CC_NAME - 1 && i < ctx->optlen && name + i + 1 <= end && name[i]; i++)
		law.text[i] = name[i];
	if (is_free(law.words))
		__builtin_memcpy(s->former.law, law.text, sizeof(s->former.law));
}

/* The program's choice of a DSCP, in the same way. */
static inline void choose_former_class(const struct bpf_sockopt *ctx, struct lt_socket *s)
{
	const int *wide = ctx->optval;
	const u8 *narrow = ctx->optval;
	int class;

	if ((void *)(wide + 1) <= ctx->optval_end)
		class = *wide;
	else if ((void *)(narrow + 1) <= ctx->optval_end)
		class = *narrow;
	else
		return;
	if (ctx->level == IPPROTO_IP)
		s->former.tos = class;
	else
		s->former.tclass = class;
}

SEC("cgroup/setsockopt")
int lt_setsockopt(struct bpf_sockopt *ctx)
{
	struct lt_socket *s;
	u64 pacing;

	if (ctx->optlen > WHOLE)
		ctx->optlen = 0;
	if (!ctx->sk || !is_governed(ctx->sk))
		return 1;
	/*
	 * in a group that Lowtide did not make, this holds only for sockets with the law: before, it is not known which
	 * connection this will be
	 */
	s = setup.group_id ? bpf_sk_storage_get(&sockets, ctx->sk, NULL, 0) : NULL;
	if (setup.group_id && (!s || !s->former.known))
		return 1;
	if (ctx->level == SOL_LOWTIDE)
		return setup.uploads ? set_option(ctx) : refuse(EOPNOTSUPP);	/* goals are for uploads */
	if (!setup.uploads)
		return 1;
	if (wants_law(ctx)) {
		count(own_law, 1);
		/* what is set on an SMC socket would not be known of its TCP connection */
		if (setup.keep_law || is_smc(ctx->sk)) {
			if (s)
				choose_former(ctx, s);
			ctx->optlen = SWALLOW;
			return 1;
		}
		s = bpf_sk_storage_get(&sockets, ctx->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (s)
			s->own_law = 1;
	} else if (setup.set_tos && wants_traffic_class(ctx)) {
		if (s)
			choose_former_class(ctx, s);
		ctx->optlen = SWALLOW;
	} else if (ctx->level == SOL_SOCKET && ctx->optname == SO_MAX_PACING_RATE && read_pacing(ctx, &pacing)) {
		s = bpf_sk_storage_get(&sockets, ctx->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (s) {
			s->program_pacing = pacing;
			/* the kernel applies the program's limit; Lowtide's returns with the next ACK if it is lower */
			s->pacing = 0;
		}
	}
	return 1;
}

SEC("cgroup/getsockopt")
int lt_getsockopt(struct bpf_sockopt *ctx)
{
	if (ctx->optlen > WHOLE)
		ctx->optlen = 0;
	if (!ctx->sk || ctx->sk->protocol != PROTO_TCP || ctx->level != SOL_LOWTIDE)
		return 1;
	return get_option(ctx);
}

#endif
