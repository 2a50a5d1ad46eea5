/* SPDX-License-Identifier: GPL-2.0-only */
/* What other connections, and other runs, have measured of the paths of this one's. */
#ifndef LOWTIDE_PATHS_H
#define LOWTIDE_PATHS_H

#include "state.h"

#define PATH_EVIDENCE 16	/* segments delivered, before a connection has anything to say of its path */

/* Written by the controller, which learns it from the sockets' records: the empty round trip, microseconds. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LT_PATHS);
	__type(key, struct lt_path);
	__type(value, u32);
} paths SEC(".maps");

/* False: the connection goes nowhere, or stays within this machine. */
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

/* 0: nothing is known. */
static inline u32 known_base_us(const struct sock_common *sk)
{
	struct lt_path path;
	const u32 *base;

	if (!path_of(sk, &path))
		return 0;
	base = bpf_map_lookup_elem(&paths, &path);
	return base ? *base : 0;
}

/* For the controller. */
static inline void path_observed(const struct lt_socket *s, const struct tcp_sock *tp, const struct sock_common *sk,
				 struct lt_socket_record *record)
{
	if (!s->base_us || tp->delivered < PATH_EVIDENCE || !path_of(sk, &record->path))
		return;
	record->base_us = s->base_us;
	record->wrong_hint_us = s->wrong_hint_us;
}

#endif
