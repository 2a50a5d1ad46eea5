/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs of one transfer keep: setup and steering, totals, the group's last reduction, and a record per
 * socket.
 */
#ifndef LOWTIDE_STATE_H
#define LOWTIDE_STATE_H

#include "kernel.h"
#include "shared.h"
#include "law/fixed.h"
#include "law/budget.h"
#include "law/owd.h"
#include "law/aggregate.h"
#include "law/phantom.h"
#include "law/price.h"
#include <laws.h>	/* all laws: crates/lowtide-port/build.rs writes it from the table of laws */
#include <lowtide.h>

/* What is written twice, as shared.h is read by the controller's side alone. */
_Static_assert(LT_PARAMETERS == LAW_PARAMETERS && LT_TRACE_VALUES == LAW_VALUES, "law/law.h");
_Static_assert(LT_PARAMETER_NAME == LOWTIDE_PARAMETER_NAME, "lowtide.h");
_Static_assert(LT_ONE_WAY == (int)OWD_ONE_WAY && LT_ROUND_TRIPS == (int)OWD_ROUND_TRIPS, "law/owd.h, src/transfer.rs");
_Static_assert(LT_DOWNLOAD_FREE == 1 && LT_DOWNLOAD_YIELDS == 3, "src/download.rs");
/*
 * Records are copied as they are: the kernel refuses padding that nobody has written, and those of another size are
 * read as another number of them.
 */
_Static_assert(sizeof(struct lt_goal) == 40 && sizeof(struct lt_pressure) == 56, "no padding");
_Static_assert(sizeof(struct lt_decision) == 8 + sizeof(struct lt_pressure) + 32 + 8, "no padding");
_Static_assert(sizeof(struct lt_socket_record) == sizeof(struct lt_goal) + 128 + 2 * sizeof(struct lt_path), "no padding");
_Static_assert(sizeof(struct lt_taken) == 8, "no padding");

#define NSEC_PER_USEC 1000ULL
#define NSEC_PER_SEC 1000000000ULL
#define IDLE_MIN_NS 1000000000ULL	/* a socket silent for this long does not count as sending */

const volatile struct lt_setup setup SEC(".rodata.setup") = {};
struct lt_steering steering = {};
/*
 * Of a law of ours, in the order of its structure. Fixed as well, but not constant to the verifier: a function that it
 * verifies apart takes no pointer to constants.
 */
u32 law_parameters[LT_PARAMETERS] __attribute__((aligned(8))) = {};	/* copied by words */
struct lt_totals totals = {};
struct lt_socket_record record_layout = {};	/* never written: they carry the types to the controller */
struct lt_decision decision_layout = {};
struct lt_tracing tracing_layout = {};
struct lt_trace_record trace_layout = {};
struct lt_taken taken_layout = {};

/* Why a socket's next transmission carries the congestion signal; read back by the law's ssthresh. */
enum signal { SIGNAL_NONE, SIGNAL_DELAY, SIGNAL_PHANTOM, SIGNAL_GROUP_DELAY, SIGNAL_GROUP_LOSS, SIGNAL_LAW };

/* The reduction that all sockets of the transfer take together. */
struct {
	u32 epoch;
	u32 signal;	/* SIGNAL_GROUP_* */
	u64 at_ns;
	u64 goals;	/* sockets that have been given a goal, ever */
	u64 goal_places;	/* sockets that have one now */
	u64 goal_looks;
	u64 lost_ns;	/* the latest real congestion */
	u64 numbers;	/* sockets that share a flow (flows.h) have got, ever */
	/*
	 * Of all sockets together: their rounds last a round trip each, and a delay is what it exceeds its own
	 * connection's least by.
	 */
	u64 round_end_ns;
	u32 fresh;	/* the round before was disturbed by a reduction: no gradient to it */
	struct cdg cdg;
} group = {};

/* What the connections of a transfer over one path share: one flow, to the network. */
struct lt_flow {
	u64 busy_ns;		/* since when a processor is at it; 0: none */
	u64 carrier;		/* the connection that has the token; 0: none */
	u64 carrier_until_ns;	/* without a sign of its own it has gone */
	u64 turned_ns;		/* when it got the token */
	u64 waiting;		/* connections that wait for it */
	u64 begun;
	struct aggregate all;
	struct tide tide;
};

#define LAW_STATE(law) struct law law;

struct lt_socket {
	u64 acked_base;		/* bytes_acked when the connection was established (it counts the SYN), or taken over */
	u64 received_base;	/* bytes_received and bytes_retrans when it was taken over; else 0 */
	u64 retransmitted_base;
	u64 last_sent_ns;
	u64 window_q16;		/* this socket's share */
	u64 program_pacing;	/* SO_MAX_PACING_RATE that the program asked for itself, 0: none */
	struct lt_goal goals[2];	/* the one in force, and the one before it or after (goal.h) */
	u64 goal_version;
	u64 goal_place;		/* 1: it counts in goal_places */
	struct lt_decision decision;
	u32 latency_us;		/* LOWTIDE_LATENCY: Q of a law with acceleration, 0: the law's own */
	u32 pacing;		/* the one in force */
	u32 held;		/* that is by the limit on all sockets */
	u32 burst_end;		/* what is sent up to here leaves with what was sent before (burst_pacing.h) */
	u32 ssthresh;		/* what the law answered last */
	u32 round_end;		/* CDG's round */
	u32 epoch;		/* last group reduction heard of */
	u32 taken;		/* and the last one taken */
	u32 signal;		/* enum signal */
	u32 history;		/* last 16 reductions, newest in bit 0; 1: by delay */
	u32 own_law;
	u32 joins;		/* to start with window_q16, without slow start */
	u32 closed;
	struct phantom phantom;
	struct price price;
	struct traced {		/* by trace.h, while there is a trace */
		u32 connection;
		u32 round_end;
		u32 rtt_min_us, rtt_max_us;	/* of this round, 0: none */
		u32 delivered, delivered_ce;	/* the stack's counts at its begin */
		u64 inode, cgroup;	/* whose the socket is, whether there is a trace or not */
	} traced;
	struct former {		/* what it had before, and is given back (takeover.h) */
		char law[LT_CC_NAME];
		int tos, tclass;
		u32 known;
	} former;
	u64 hazard_q16;		/* CDG's, of its latest round */
	/* Of a law of the window kind: */
	u64 ssthresh_q16;
	u64 target_q16;		/* where the reduction goes that it asked for, with SIGNAL_LAW */
	struct law_ack ack;	/* the latest */
	struct owd owd;
	u32 delivered, lost;	/* segments, with that ACK */
	u32 begun;
	u32 own_parameters;	/* set by the program, at least one */
	u32 parameters[LT_PARAMETERS];
	u32 let_go;		/* the controller is gone, and the window grows as Reno's */
	u32 without_ecn;	/* the law needs ECN, and there is none: this is Reno of the kernel */
	struct {		/* of a law whose connections share a flow (flows.h) */
		struct lt_path path;
		struct aggregate_member part;
		u64 number;	/* among the transfer's sockets; 0: it is a flow by itself */
		u64 since_ns;	/* it is there, or has had too little to send */
		u64 limited_ns;	/* when its part of the window last held it back */
		u32 waits;	/* for the token */
		u32 alone;	/* it is a flow by itself */
		u32 owes;	/* a loss that the law has not heard of yet */
		u64 acked;	/* bytes, up to the latest ACK */
	} member;
	/* Of a law of marks: */
	u32 heard, heard_ce;	/* segments delivered, and of those with CE, up to the latest ACK */
	u32 received_ce;	/* the latest segment that came had CE */
	u32 received_to;	/* rcv_nxt before it */
	union {			/* the law's own */
		struct cdg cdg;
		struct lt_flow flow;	/* Tide's */
		WINDOW_LAWS(LAW_STATE)
	};
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lt_socket);
} sockets SEC(".maps");

#define HISTORY_MASK 0xffff
#define count(counter, n) __sync_fetch_and_add(&totals.counter, n)

/* Segments, as the stack has it (tcp_packets_in_flight). */
static inline u32 in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tp->sacked_out - tp->lost_out + tp->retrans_out;
}

static inline bool controller_alive(u64 now_ns)
{
	return now_ns - steering.heartbeat_ns < steering.stale_ns || now_ns < steering.heartbeat_ns;
}

static inline u32 sharing_sockets(void)
{
	u32 n = steering.sockets;

	return n ? n : 1;
}

/*
 * Of all sockets: drops of one overflow go on until the first reduction reaches the queue, and each is known a round
 * trip later, so two round trips are one event.
 */
static inline bool same_event(u64 at_ns, u32 srtt_us, u64 now_ns)
{
	return now_ns < at_ns || now_ns - at_ns < 2 * srtt_us * NSEC_PER_USEC;
}

/* A reduction of one socket becomes everybody's. False: it belongs to the one that has just been announced. */
static inline bool announce_reduction(struct lt_socket *s, u32 signal, u32 srtt_us, u64 now_ns)
{
	u64 at = group.at_ns;

	if (!setup.one_window)
		return true;
	/* another processor may have announced one after we looked at the clock, or just now */
	if (sharing_sockets() > 1 &&
	    (same_event(at, srtt_us, now_ns) || __sync_val_compare_and_swap(&group.at_ns, at, now_ns) != at))
		return false;
	group.at_ns = now_ns;
	group.signal = signal;
	group.fresh = 1;
	s->epoch = __sync_fetch_and_add(&group.epoch, 1) + 1;
	return true;
}

/* `name` has room for LT_CC_NAME. */
static inline void law_name(char *name)
{
	for (int i = 0; i < LT_CC_NAME; i++)
		name[i] = setup.law[i];
}

#define LAW_WITHOUT_ECN "reno"	/* of the kernel, for a law that needs ECN where there is none */

static inline void note_without_ecn(struct lt_socket *s)
{
	if (!s->without_ecn)
		count(without_ecn, 1);
	s->without_ecn = 1;
	s->window_q16 = 0;
}

/* Its own where a goal of its own rules, else everybody's. */
static inline const struct lt_pressure *pressure_on(const struct lt_socket *s)
{
	return s->decision.governed ? &s->decision.pressure : &steering.pressure;
}

/*
 * Real congestion of a socket of our law costs all sockets one reduction, so it is one event. False: it has been
 * counted for another one.
 */
static inline bool first_of_the_group(u32 srtt_us, u64 now_ns)
{
	u64 at = group.lost_ns;

	if (sharing_sockets() > 1 && same_event(at, srtt_us, now_ns))
		return false;
	return __sync_val_compare_and_swap(&group.lost_ns, at, now_ns) == at;
}

/* The transfer's, before the program or the law looks at its own. */
static inline void take_parameters(struct lt_socket *s)
{
	if (!s->own_parameters)
		__builtin_memcpy(s->parameters, law_parameters, sizeof(s->parameters));
}

static inline void remember_reduction(struct lt_socket *s, bool by_delay)
{
	s->history = ((s->history << 1) | by_delay) & HISTORY_MASK;
}

/* Fewer than half of the last 16 reductions came from delay: the path's queue does not speak before it drops. */
static inline bool delay_has_no_grip(const struct lt_socket *s)
{
	u32 bits = s->history & HISTORY_MASK, delay = 0;

	for (int i = 0; i < 16; i++)
		delay += (bits >> i) & 1;
	return delay < 8;
}

/*
 * Paces a socket: to its share where that is small, and otherwise by the stack's own rate, which merely needs to be
 * switched on. A window sent in bursts overflows a short queue before it is full, and loses to flows that pace. A limit
 * that the program set itself stays in force. `ctx`: what bpf_setsockopt takes.
 */
#define pace(ctx, s, wanted) pace_within(ctx, s, wanted, 8)

/* The same, where the rate in force differs by more than this part of it. */
#define pace_within(ctx, s, wanted, part)                                                                             \
	({                                                                                                            \
		u32 old = (s)->pacing, rate = pacing_allowed(s, wanted, old);                                         \
		if (rate && pacing_differs(rate, old, part)) {                                                        \
			u32 on = PACING_SWITCHED_ON;                                                                  \
			bool in_force = !old && pacing_is_the_programs(s, rate);                                      \
			(s)->pacing = rate;                                                                           \
			if (!old && rate == PACING_UNLIMITED)                                                         \
				bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &on, sizeof(on));                 \
			if (!in_force)                                                                                \
				bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));             \
		}                                                                                                     \
	})

/*
 * What the limit on all sockets leaves one of them: less at once where some have begun since the controller divided it.
 * 0: there is none.
 */
static inline u32 limit_on_each(void)
{
	u32 each = steering.socket_limit, known = steering.limit_sockets, n = steering.sockets;

	if (!each || !controller_alive(bpf_ktime_get_ns()))
		return 0;
	return known && n > known ? at_least((u64)each * known / n, 1) : each;
}

/*
 * The least of what we want, what the program set and what all sockets together may send. The program may set 64 bits,
 * BPF no more than 32: a limit above that comes back as the most that we can set, once ours was below it.
 */
static inline u32 pacing_allowed(struct lt_socket *s, u32 wanted, u32 old)
{
	u32 rate = wanted == PACING_NONE && old ? PACING_UNLIMITED : wanted, limit = limit_on_each();

	if (s->program_pacing)
		rate = at_most(rate, at_most(s->program_pacing, PACING_SWITCHED_ON));
	if (limit && s->program_pacing)
		limit = at_most(limit, s->program_pacing);
	s->held = limit && (rate == PACING_NONE || rate >= limit);
	return s->held ? limit : rate;
}

/* Before the first limit of ours the kernel has the program's, which needs no setting. */
static inline bool pacing_is_the_programs(const struct lt_socket *s, u32 rate)
{
	return s->program_pacing >= PACING_SWITCHED_ON && rate == PACING_SWITCHED_ON;
}

/* By more than a part, or from and to unlimited; a limit on all sockets has to be exact. */
static inline bool pacing_differs(u32 rate, u32 old, u32 part)
{
	if (steering.socket_limit || rate == PACING_UNLIMITED || old == PACING_UNLIMITED)
		return rate != old;
	return rate > old ? rate - old > old / part : old - rate > old / part;
}

/* Whether the FIN is among what is acknowledged, where it counts as a byte. */
static inline bool fin_is_acked(u32 state, u32 una, u32 nxt)
{
	if (state == BPF_TCP_LAST_ACK || state == BPF_TCP_CLOSING)
		return una == nxt;
	return state == BPF_TCP_FIN_WAIT2 || state == BPF_TCP_TIME_WAIT;
}

#endif
