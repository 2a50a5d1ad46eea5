// SPDX-License-Identifier: MIT OR Apache-2.0
/* The laws' headers as ordinary functions, so that tests can drive the very code that the kernel runs. */
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;

#include "aggregate.h"
#include "budget.h"
#include "burst.h"
#include "cdg.h"
#include "cubic.h"
#include "fixed.h"
#include "grant.h"
#include "network.h"
#include "owd.h"
#include "phantom.h"
#include "price.h"
#include "queue.h"
#include "transients.h"

u32 native_exp_neg_q32(u64 x_q16)
{
	return exp_neg_q32(x_q16);
}

u64 native_budget_grow(u64 window_q16, u32 ssthresh, u32 acked, u64 increase_q16, u32 sockets)
{
	return budget_grow(window_q16, ssthresh, acked, increase_q16, sockets);
}

u64 native_budget_cut(u64 window_q16, u32 keep_q10, u64 kept_q16, u32 sockets)
{
	return budget_cut(window_q16, keep_q10, kept_q16, sockets);
}

u32 native_budget_cwnd(u64 window_q16)
{
	return budget_cwnd(window_q16);
}

u32 native_budget_pacing(u64 window_q16, u32 mss, u32 srtt_us)
{
	return budget_pacing(window_q16, mss, srtt_us);
}

u64 native_burst_pace(u64 pace, u32 *end, u32 nxt, u32 length, u32 handed)
{
	return burst_pace(pace, end, nxt, length, handed);
}

u64 native_cubic_root(u64 x)
{
	return cubic_root(x);
}

u64 native_cubic_k_q20(u64 below_q16, u32 c_q22)
{
	return cubic_k_q20(below_q16, c_q22);
}

u64 native_cubic_curve_q16(u32 c_q22, u64 t_q20)
{
	return cubic_curve_q16(c_q22, t_q20);
}

u64 native_cdg_size(void)
{
	return sizeof(struct cdg);
}

void native_cdg_reset(struct cdg *c, u32 cwnd)
{
	cdg_reset(c, (u64)cwnd << 16);
}

void native_cdg_sample(struct cdg *c, const struct cdg_parameters *p, u32 rtt_us, u32 acked, bool holes)
{
	cdg_round_trip(c, p, rtt_us, acked, holes);
}

/* Ends a round as cdg_ops.h does; returns the gradient sum. */
s64 native_cdg_round(struct cdg *c, const struct cdg_parameters *p, bool slow_start)
{
	s64 gradient = cdg_gradient(c, p, slow_start);

	cdg_next_round(c);
	return gradient;
}

bool native_cdg_hystart(struct cdg *c, const struct cdg_parameters *p, u32 now_us, bool window_limited)
{
	return cdg_hystart(c, p, now_us, window_limited);
}

bool native_cdg_excuses(struct cdg *c, const struct cdg_parameters *p, bool mark)
{
	return cdg_excuses(c, p, mark);
}

u64 native_cdg_cut_by_delay(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 kept_q16, u32 sockets)
{
	return cdg_cut_by_delay(c, p, window_q16, kept_q16, sockets);
}

u64 native_cdg_cut_by_congestion(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 kept_q16, u32 sockets, bool loss)
{
	return cdg_cut_by_congestion(c, p, window_q16, kept_q16, sockets, loss);
}

u64 native_cdg_grow(struct cdg *c, const struct cdg_parameters *p, u64 window_q16, u64 ssthresh_q16, u32 acked, bool round_over, u32 sockets,
		    u64 now_us)
{
	return cdg_grow(c, p, window_q16, ssthresh_q16, acked, round_over, Q16_ONE, sockets, now_us);
}

u64 native_cdg_hazard_q16(u64 gradient_sum_us, u32 window, u32 g0_us, u64 surplus_q16)
{
	return cdg_hazard_q16(gradient_sum_us, window, g0_us, surplus_q16);
}

u32 native_cdg_inspect(const struct cdg *c, u32 window, u64 hazard_q16, s64 *values)
{
	return cdg_inspect(c, window, hazard_q16, values);
}

u32 native_phantom_inspect(const struct phantom *p, u64 chance_q32, u64 now_ns, s64 *values)
{
	return phantom_inspect(p, chance_q32, now_ns, values);
}

u64 native_cdg_price_q32(u64 gradient_sum_us, u32 window, u32 g0_us)
{
	return cdg_price_q32(gradient_sum_us, window, g0_us);
}

bool native_cdg_backs_off(struct cdg *c, const struct cdg_parameters *p, u64 hazard_q16, u32 random)
{
	return cdg_backs_off(c, p, hazard_q16, 20 << 16, random);
}

u64 native_phantom_size(void)
{
	return sizeof(struct phantom);
}

void native_phantom_start(struct phantom *p, u64 now_ns)
{
	p->start_ns = now_ns;
}

void native_phantom_real_signal(struct phantom *p, u64 now_ns)
{
	phantom_real_signal(p, now_ns);
}

void native_phantom_round(struct phantom *p, u32 rtt_us)
{
	phantom_rtt(p, rtt_us);
	phantom_next_round(p);
}

u64 native_phantom_chance_q32(const struct phantom *p, u64 now_ns, u32 srtt_us, u32 min_rtt_us, bool slow_start,
			      u64 surplus_q16, u64 chance_q32, u32 segments)
{
	return phantom_chance_q32(p, now_ns, srtt_us, min_rtt_us, slow_start, surplus_q16, chance_q32, segments);
}

u64 native_price_size(void)
{
	return sizeof(struct price);
}

bool native_price_new_event(struct price *p, u32 state, u32 high_seq, u32 snd_una, u32 delivered_ce)
{
	return price_new_event(p, state, high_seq, snd_una, delivered_ce);
}

bool native_queue_is_empty(u32 round_min_us, u32 min_rtt_us, u32 floor_us)
{
	return queue_is_empty(round_min_us, min_rtt_us, floor_us);
}

u64 native_owd_size(void)
{
	return sizeof(struct owd);
}

u32 native_owd_delay(struct owd *o, bool stamped, u32 tsval, u64 now_us, u32 rtt_us)
{
	return owd_delay(o, stamped, tsval, now_us, rtt_us);
}

u32 native_owd_use(const struct owd *o)
{
	return o->use;
}

u64 native_grants_size(void)
{
	return sizeof(struct grants);
}

void native_grant_leaves(struct grants *g, u64 now_us, u32 tsval, u32 edge)
{
	grant_leaves(g, now_us, tsval, edge);
}

/* What a law gets of data that arrive. */
struct native_grant_heard {
	u32 loop_us, rtt_us, packets, lost, marked, window_limited, in_flight, rate_delivered, rate_interval_us;
};

bool native_grant_arrives(struct grants *g, const struct segment *s, struct native_grant_heard *heard)
{
	struct law_ack a = {};
	bool answers = grant_arrives(g, s, &a, &heard->loop_us);

	heard->rtt_us = a.rtt_us;
	heard->packets = a.packets;
	heard->lost = a.lost;
	heard->marked = a.marked;
	heard->window_limited = a.window_limited;
	heard->in_flight = a.in_flight;
	heard->rate_delivered = a.rate_delivered;
	heard->rate_interval_us = a.rate_interval_us;
	return answers;
}

void native_grant_unseen(struct grants *g)
{
	grant_unseen(g);
}

u64 native_grant_stretched(const struct grants *g, u64 window)
{
	return grant_stretched(g, window);
}

u64 native_grant_whole(u64 part_q16, u64 window_q16, u64 others)
{
	return grant_whole(part_q16, window_q16, others);
}

u32 native_grant_clamp(u32 want, u32 held, u32 burst, u32 mss)
{
	return grant_clamp(want, held, burst, mss);
}

u64 native_overshoot_us(u32 q, u32 latency_us, u32 rtt_us)
{
	return overshoot_us(q, latency_us, rtt_us);
}

u64 native_acceleration_scale_q16(u64 tested_q16, u32 q, u32 latency_us, u32 srtt_us)
{
	return acceleration_scale_q16(tested_q16, q, latency_us, srtt_us);
}

bool native_path_between(struct lt_path *path, const struct lt_address *local, const struct lt_address *remote)
{
	return path_between(path, local, remote);
}

u64 native_aggregate_size(void)
{
	return sizeof(struct aggregate);
}

u64 native_aggregate_member_size(void)
{
	return sizeof(struct aggregate_member);
}

void native_aggregate_begin(struct aggregate *g, u64 now_us, u32 srtt_us)
{
	aggregate_begin(g, now_us, srtt_us);
}

/* The ACK of a connection. */
struct native_aggregate_event {
	u64 now_us;
	u32 packets, bytes, mss, rtt_us;
	u64 number;
};

/* What the law gets of an ACK. */
struct native_aggregate_heard {
	u32 una, nxt, srtt_us, senders, burst, beside;
	u32 rate_delivered, rate_interval_us, rate_app_limited;
};

void native_aggregate_ack(struct aggregate *g, const struct native_aggregate_event *event, struct native_aggregate_heard *heard)
{
	struct law_ack a = {
		.now_us = event->now_us, .packets = event->packets, .bytes = event->bytes, .mss = event->mss, .rtt_us = event->rtt_us,
	};

	aggregate_ack(g, &a, event->number);
	heard->una = a.una;
	heard->nxt = a.nxt;
	heard->srtt_us = a.srtt_us;
	heard->senders = a.senders;
	heard->burst = a.burst;
	heard->beside = a.beside;
	heard->rate_delivered = a.rate_delivered;
	heard->rate_interval_us = a.rate_interval_us;
	heard->rate_app_limited = a.rate_app_limited;
}

void native_aggregate_beside(struct aggregate *g)
{
	g->beside++;
}

void native_aggregate_has_no_data(struct aggregate *g, u32 mss)
{
	aggregate_has_no_data(g, mss);
}

/* As tide_congested of tide_ops.h: whether it is a reduction. */
bool native_aggregate_reduces(struct aggregate *g, const struct aggregate_member *m, u64 now_us)
{
	if (aggregate_others_want(g, m) && !aggregate_loses_anew(g, now_us))
		return false;
	g->reduced_us = now_us;
	return true;
}

void native_aggregate_flight(struct aggregate_member *m, u32 in_flight)
{
	m->in_flight = in_flight;
}

bool native_aggregate_is_full(const struct aggregate *g, u64 window_q16)
{
	return aggregate_is_full(g, window_q16);
}

void native_aggregate_join(struct aggregate *g, struct aggregate_member *m, u64 window_q16)
{
	aggregate_join(g, m, window_q16);
}

void native_aggregate_grant(struct aggregate *g, struct aggregate_member *m, u64 window_q16, u32 packets, u32 use)
{
	aggregate_grant(g, m, window_q16, packets, use);
}

void native_aggregate_scale(struct aggregate *g, struct aggregate_member *m, u64 from_q16, u64 to_q16)
{
	aggregate_scale(g, m, from_q16, to_q16);
}

void native_aggregate_leave(struct aggregate *g, struct aggregate_member *m)
{
	aggregate_leave(g, m);
}

u64 native_aggregate_grant_q16(const struct aggregate_member *m)
{
	return m->grant_q16;
}

u64 native_aggregate_granted_q16(const struct aggregate *g)
{
	return g->granted_q16;
}
