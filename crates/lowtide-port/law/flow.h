/* SPDX-License-Identifier: GPL-2.0-only OR MIT OR Apache-2.0 */
/*
 * The state of a path under Tide, without kernel access: that of the law, and of what its connections share.
 */
#ifndef LOWTIDE_FLOW_H
#define LOWTIDE_FLOW_H

#include "aggregate.h"
#include "tide.h"

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_SEC 1000000000ULL
#define FLOW_SILENCE_NS (2 * NSEC_PER_SEC)	/* longest time between the probes of a token holder */
#define FLOW_TOKEN_NS (NSEC_PER_SEC / 2)	/* how long a connection holds the token, or is new; at least 16 RTTs */
#define FLOW_TOKEN_ROUND_TRIPS 16
/* a connection that its part has not limited for this time plus four RTTs is application-limited */
#define FLOW_UNUSED_NS (NSEC_PER_SEC / 20)

/* What the connections of a transfer, or of a group of them, share over one path: to the network they are one flow. */
struct lt_flow {
	u64 busy_ns;		/* since when a processor is at it; 0: none is */
	/* the transfer whose weight is the flow's, and when that was last confirmed */
	u64 presses;
	u64 pressed_ns;
	u64 weight_q16;
	u64 token_holder;	/* its number, its transfer's in the upper half; 0: none */
	u64 token_until_ns;	/* until then it holds the token, unless it renews that */
	u64 token_since_ns;	/* when it got the token */
	u64 waiting;		/* connections that wait for the token */
	u64 next;		/* the one of them that is next; 0: none */
	u64 next_until_ns;	/* until then it is, unless it renews that */
	u64 begun;
	struct aggregate all;
	struct tide tide;
};

/* Whether the flow sends only probes, for which one connection is enough. */
static inline bool flow_probes(const struct lt_flow *f)
{
	return f->begun && f->tide.listens && !tide_is_ordinary(&f->tide);
}

static inline u64 flow_token_ns(const struct lt_flow *f)
{
	return at_least(FLOW_TOKEN_ROUND_TRIPS * (u64)aggregate_srtt_us(&f->all) * NSEC_PER_USEC, FLOW_TOKEN_NS);
}

static inline u64 flow_unused_ns(const struct lt_flow *f)
{
	return FLOW_UNUSED_NS + 4 * (u64)aggregate_srtt_us(&f->all) * NSEC_PER_USEC;
}

VERIFIED_APART int tide_starts(struct lt_flow *f, const struct tide_parameters *p, u64 now_us, u32 srtt_us)
{
	struct law_window w = { .cwnd_q16 = LAW_INITIAL_WINDOW * Q16_ONE };

	if (!f || !p)
		return 0;
	aggregate_begin(&f->all, now_us, srtt_us);
	tide_begin(&f->tide, p, &w, now_us);
	f->begun = 1;
	return 0;
}

#endif
