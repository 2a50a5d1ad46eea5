/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program's own wishes for its sockets: its law and its DSCP are swallowed (unless allowed), its pacing limit is kept.
 * Lowtide's own options (options.h) are served here too.
 */
#ifndef LOWTIDE_SOCKOPT_H
#define LOWTIDE_SOCKOPT_H

#include "state.h"
#include "options.h"

#define WHOLE 4096	/* options longer than a page reach us cut; an optlen of 0 hands the original to the kernel */

static inline bool wants_law(const struct bpf_sockopt *ctx)
{
	return ctx->level == IPPROTO_TCP && ctx->optname == TCP_CONGESTION;
}

static inline bool wants_traffic_class(const struct bpf_sockopt *ctx)
{
	return (ctx->level == IPPROTO_IP && ctx->optname == IP_TOS) ||
	       (ctx->level == IPPROTO_IPV6 && ctx->optname == IPV6_TCLASS);
}

SEC("cgroup/setsockopt")
int lt_setsockopt(struct bpf_sockopt *ctx)
{
	struct lt_socket *s;
	u32 *value = ctx->optval;

	if (ctx->optlen > WHOLE)
		ctx->optlen = 0;
	if (!ctx->sk || ctx->sk->protocol != PROTO_TCP)
		return 1;
	if (ctx->level == SOL_LOWTIDE)
		return set_option(ctx);
	if (wants_law(ctx)) {
		count(own_law, 1);
		if (settings.keep_law) {
			ctx->optlen = SWALLOW;
			return 1;
		}
		s = bpf_sk_storage_get(&sockets, ctx->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (s)
			s->own_law = 1;
	} else if (settings.set_tos && wants_traffic_class(ctx)) {
		ctx->optlen = SWALLOW;
	} else if (ctx->level == SOL_SOCKET && ctx->optname == SO_MAX_PACING_RATE && (void *)(value + 1) <= ctx->optval_end) {
		s = bpf_sk_storage_get(&sockets, ctx->sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (s) {
			s->program_pacing = *value >= PACING_UNLIMITED ? 0 : *value;
			s->pacing = 0;	/* the kernel applies the program's; ours comes back with the next ACK if it is smaller */
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
