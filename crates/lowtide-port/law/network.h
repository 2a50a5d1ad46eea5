/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The networks that a connection joins, without kernel access. They identify a path, and a law's state belongs to a
 * path.
 */
#ifndef LOWTIDE_NETWORK_H
#define LOWTIDE_NETWORK_H

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define IN_NETWORK_ORDER(word) ((u32)__builtin_bswap32(word))
#else
#define IN_NETWORK_ORDER(word) ((u32)(word))
#endif

#define NETWORK_V4_MASK IN_NETWORK_ORDER(0xffffff00)	/* of 32 bits */
#define NETWORK_V6_MASK IN_NETWORK_ORDER(0xffff0000)	/* of the second 32 bits */

/* An IPv6 address as in a packet; that of IPv4 is ::ffff:a.b.c.d. */
struct lt_address {
	u32 word[4];
};

struct lt_path {
	struct lt_address local, remote;	/* networks: addresses with their last bits cleared */
};

static inline struct lt_address address_of_v4(u32 address)
{
	struct lt_address mapped = { { 0, 0, IN_NETWORK_ORDER(0xffff), address } };

	return mapped;
}

static inline bool address_is_v4(const struct lt_address *a)
{
	return !a->word[0] && !a->word[1] && a->word[2] == IN_NETWORK_ORDER(0xffff);
}

static inline bool address_is_loopback(const struct lt_address *a)
{
	return address_is_v4(a) && (a->word[3] & IN_NETWORK_ORDER(0xff000000)) == IN_NETWORK_ORDER(0x7f000000);
}

static inline void network_of(struct lt_address *network, const struct lt_address *a)
{
	*network = *a;
	if (address_is_v4(a)) {
		network->word[3] &= NETWORK_V4_MASK;
	} else {
		network->word[1] &= NETWORK_V6_MASK;
		network->word[2] = network->word[3] = 0;
	}
}

/* False: the connection stays within this machine. */
static inline bool path_between(struct lt_path *path, const struct lt_address *local, const struct lt_address *remote)
{
	bool own = local->word[0] == remote->word[0] && local->word[1] == remote->word[1] && local->word[2] == remote->word[2] &&
		   local->word[3] == remote->word[3];

	network_of(&path->local, local);
	network_of(&path->remote, remote);
	return !own && !address_is_loopback(remote);
}

#endif
