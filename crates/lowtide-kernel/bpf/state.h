/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the programs of one transfer: setup and steering, totals, the group's last reduction, and a record per
 * socket.
 */
#ifndef LOWTIDE_STATE_H
#define LOWTIDE_STATE_H

#include "kernel.h"
#include "shared.h"
#include "law/fixed.h"
#include "law/budget.h"
#include "law/owd.h"
#include "law/flow.h"
#include "law/phantom.h"
#include "law/price.h"
#include <laws.h>	/* all laws; crates/lowtide-port/build.rs writes it from the table of laws */
#include <lowtide.h>

/* These values are written twice, as the controller's side reads only shared.h. */
_Static_assert(LT_PARAMETERS == LAW_PARAMETERS && LT_TRACE_VALUES == LAW_VALUES, "law/law.h");
_Static_assert(LT_PARAMETER_NAME == LOWTIDE_PARAMETER_NAME, "lowtide.h");
_Static_assert(LT_ONE_WAY == (int)OWD_ONE_WAY && LT_ROUND_TRIPS == (int)OWD_ROUND_TRIPS, "law/owd.h, src/transfer.rs");
_Static_assert(LT_DOWNLOAD_FREE == 1 && LT_DOWNLOAD_YIELDS == 3, "src/download.rs");
/*
 * Records are copied as they are. The kernel refuses uninitialised padding. Records of another size would be read as
 * another number of records.
 */
_Static_assert(sizeof(struct lt_goal) == 40 && sizeof(struct lt_pressure) == 56, "no padding");
_Static_assert(sizeof(struct lt_decision) == 8 + sizeof(struct lt_pressure) + 32 + 8, "no padding");
_Static_assert(sizeof(struct lt_socket_record) == sizeof(struct lt_goal) + 128 + 2 * sizeof(struct lt_path), "no padding");
_Static_assert(sizeof(struct lt_taken) == 8, "no padding");

#define IDLE_MIN_NS 1000000000ULL	/* a socket that is silent for longer does not count as sending */

const volatile struct lt_setup setup SEC(".rodata.setup") = {};
struct lt_steering steering = {};
/*
 * For a law of Lowtide, in the order of its structure. They do not change either, but are no constants to the verifier:
 * a function that is verified apart takes no pointer to constants.
 */
u32 law_parameters[LT_PARAMETERS] __attribute__((aligned(8))) = {};	/* copied by words */
struct lt_totals totals = {};
struct lt_socket_record record_layout = {};	/* never written: these carry the types to the controller */
struct lt_decision decision_layout = {};
struct lt_tracing tracing_layout = {};
struct lt_trace_record trace_layout = {};
struct lt_taken taken_layout = {};

/* Why the next transmission of a socket carries the congestion signal. The law's ssthresh reads it. */
enum signal { SIGNAL_NONE, SIGNAL_DELAY, SIGNAL_PHANTOM, SIGNAL_GROUP_DELAY, SIGNAL_GROUP_LOSS, SIGNAL_LAW };

/* The reduction that all sockets of the transfer take together. */
struct {
	u32 epoch;
	u32 signal;	/* SIGNAL_GROUP_* */
	u64 at_ns;
	u64 goals;	/* sockets with a goal so far */
	u64 goal_places;	/* sockets with a goal now */
	u64 goal_looks;
	u64 lost_ns;	/* the latest real congestion */
	u64 numbers;	/* sockets that share a flow (flows.h) so far */
	/* of all sockets together: a round lasts an RTT, and a delay is an RTT less the base RTT of its connection */
	u64 round_end_ns;
	u32 fresh;	/* a reduction disturbed the round before, so there is no gradient */
	struct cdg cdg;
} group = {};

#define LAW_STATE(law) struct law law;

struct lt_socket {
	u64 acked_base;		/* bytes_acked when the connection was established (it counts the SYN), or taken over */
	u64 received_base;	/* bytes_received and bytes_retrans when it was taken over; else 0 */
	u64 retransmitted_base;
	u64 last_sent_ns;
	u64 window_q16;		/* this socket's share */
	u64 program_pacing;	/* SO_MAX_PACING_RATE that the program has set; 0: none */
	struct lt_goal goals[2];	/* the one in force, and the one before or after it (goal.h) */
	u64 goal_version;
	u64 goal_place;		/* 1: counts in goal_places */
	struct lt_decision decision;
	u32 latency_us;		/* LOWTIDE_LATENCY: Q of a law with acceleration; 0: the law's own */
	u32 pacing;		/* the pacing rate in force */
	u32 held;		/* the limit on all sockets sets it */
	u32 burst_end;		/* data up to here leave with those sent before (burst_pacing.h) */
	u32 ssthresh;		/* the law's latest answer */
	u32 round_end;		/* CDG's round */
	u32 epoch;		/* the latest group reduction known */
	u32 taken;		/* the latest group reduction applied */
	u32 signal;		/* enum signal */
	u32 history;		/* the last 16 reductions, the newest in bit 0; 1: for delay */
	u32 own_law;
	u32 joins;		/* begins with window_q16, without slow start */
	u32 closed;
	struct phantom phantom;
	struct price price;
	struct traced {		/* by trace.h, during a trace */
		u32 connection;
		u32 round_end;
		u32 rtt_min_us, rtt_max_us;	/* of this round; 0: none */
		u32 delivered, delivered_ce;	/* the stack's counts when it began */
		u64 inode, cgroup;	/* owner of the socket, with or without a trace */
	} traced;
	struct former {		/* what the socket had before, which it gets back (takeover.h) */
		char law[LT_CC_NAME];
		int tos, tclass;
		u32 known;
	} former;
	u64 hazard_q16;		/* of CDG's latest round */
	/* of a window law */
	u64 ssthresh_q16;
	u64 target_q16;		/* target of the reduction that it requested by SIGNAL_LAW */
	struct law_ack ack;	/* the latest ACK */
	struct owd owd;
	u32 delivered, lost;	/* segments, as of that ACK */
	u32 begun;
	u32 own_parameters;	/* the program has set at least one */
	u32 parameters[LT_PARAMETERS];
	u32 let_go;		/* the controller is gone, and the window grows as Reno's */
	u32 without_ecn;	/* the law needs ECN, and there is none: this is the kernel's Reno */
	struct {		/* for a law whose connections share a flow (flows.h) */
		struct lt_path path;
		struct aggregate_member part;
		u64 number;	/* among the transfer's sockets; 0: a flow by itself */
		u64 since_ns;	/* since when it is there, or is no longer application-limited */
		u64 limited_ns;	/* when its part of the window last limited it */
		u32 waits;	/* for the token */
		u32 alone;	/* a flow by itself */
		u32 owes;	/* a loss that the law does not know yet */
		u64 acked;	/* bytes_acked as of the latest ACK */
		u32 longest;	/* longest of the latest segments acknowledged, bytes; 0: none yet */
	} member;
	/* of a law of marks */
	u32 noted_delivered, noted_ce;	/* segments delivered, and those of them with CE, as of the latest ACK */
	u32 received_ce;	/* the latest segment received had CE */
	u32 received_to;	/* rcv_nxt before it */
	union {			/* state of the law */
		struct cdg cdg;
		struct lt_flow flow;	/* of Tide */
		WINDOW_LAWS(LAW_STATE)
	};
};

/* Since Linux 7 an element of a socket's storage, with its header, has at most 8 kB (kmalloc_nolock()). */
#define SK_STORAGE_MOST (8192 - 128)

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lt_socket);
} sockets SEC(".maps");

_Static_assert(sizeof(struct lt_socket) < SK_STORAGE_MOST, "a socket's record");

#define HISTORY_MASK 0xffff
#define count(counter, n) __sync_fetch_and_add(&totals.counter, n)

/* Segments in flight, as the stack counts them (tcp_packets_in_flight). */
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
 * Whether reductions of the group are one event. Drops of one overflow go on until the first reduction reaches the
 * queue, and each is known an RTT later: so within two RTTs they are.
 */
static inline bool same_event(u64 at_ns, u32 srtt_us, u64 now_ns)
{
	return now_ns < at_ns || now_ns - at_ns < 2 * srtt_us * NSEC_PER_USEC;
}

/* Announces a reduction of one socket to all. False: it belongs to the one just announced. */
static inline bool announce_reduction(struct lt_socket *s, u32 signal, u32 srtt_us, u64 now_ns)
{
	u64 at = group.at_ns;

	if (!setup.one_window)
		return true;
	/* another processor may have announced one since the clock was read, or just now */
	if (sharing_sockets() > 1 &&
	    (same_event(at, srtt_us, now_ns) || __sync_val_compare_and_swap(&group.at_ns, at, now_ns) != at))
		return false;
	group.at_ns = now_ns;
	group.signal = signal;
	group.fresh = 1;
	s->epoch = __sync_fetch_and_add(&group.epoch, 1) + 1;
	return true;
}

/* Copies the law's name. `name` has room for LT_CC_NAME. */
static inline void law_name(char *name)
{
	for (int i = 0; i < LT_CC_NAME; i++)
		name[i] = setup.law[i];
}

#define LAW_WITHOUT_ECN "reno"	/* law of the kernel, for sockets without the ECN that the law needs */

static inline void note_without_ecn(struct lt_socket *s)
{
	if (!s->without_ecn)
		count(without_ecn, 1);
	s->without_ecn = 1;
	s->window_q16 = 0;
}

/* The pressure of the socket's own goal if that governs it, else that of the transfer. */
static inline const struct lt_pressure *pressure_on(const struct lt_socket *s)
{
	return s->decision.governed ? &s->decision.pressure : &steering.pressure;
}

/*
 * Real congestion of one socket of the CDG law reduces all sockets once, so it is one event. False: it belongs to
 * another event.
 */
static inline bool first_of_the_group(u32 srtt_us, u64 now_ns)
{
	u64 at = group.lost_ns;

	if (sharing_sockets() > 1 && same_event(at, srtt_us, now_ns))
		return false;
	return __sync_val_compare_and_swap(&group.lost_ns, at, now_ns) == at;
}

/* Copies the transfer's parameters, before the program or the law uses those of the socket. */
static inline void take_parameters(struct lt_socket *s)
{
	if (!s->own_parameters)
		__builtin_memcpy(s->parameters, law_parameters, sizeof(s->parameters));
}

static inline void remember_reduction(struct lt_socket *s, bool by_delay)
{
	s->history = ((s->history << 1) | by_delay) & HISTORY_MASK;
}

/* Fewer than half of the last 16 reductions were for delay: delay is no usable signal here. */
static inline bool delay_has_no_grip(const struct lt_socket *s)
{
	u32 bits = s->history & HISTORY_MASK, delay = 0;

	for (int i = 0; i < 16; i++)
		delay += (bits >> i) & 1;
	return delay < 8;
}

/*
 * Paces a socket: to its share if that is small, else by the stack's own rate, which only has to be switched on. A
 * window sent in bursts overflows a short queue before it is full, and loses to flows that pace. A limit that the
 * program has set stays in force. `ctx`: the context for bpf_setsockopt.
 */
#define pace(ctx, s, wanted) pace_within(ctx, s, wanted, 8)

/* The same, if the rate in force differs by more than 1/`part`. */
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
 * The limit on all sockets, for one of them; 0: none. It falls at once if more sockets send than the controller knew.
 */
static inline u32 limit_on_each(void)
{
	u32 each = steering.socket_limit, known = steering.limit_sockets, n = steering.sockets;

	if (!each || !controller_alive(bpf_ktime_get_ns()))
		return 0;
	return known && n > known ? at_least((u64)each * known / n, 1) : each;
}

/*
 * The least of Lowtide's pace, the program's limit and the limit on all sockets. The program may set 64 bits, BPF only
 * 32: so a larger limit of the program comes back as the greatest that BPF can set, once Lowtide's was below it.
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

/* Before Lowtide's first limit the kernel has the program's, which needs no setting. */
static inline bool pacing_is_the_programs(const struct lt_socket *s, u32 rate)
{
	return s->program_pacing >= PACING_SWITCHED_ON && rate == PACING_SWITCHED_ON;
}

/* Whether rates differ by more than 1/`part`, or one is unlimited. A limit on all sockets has to be exact. */
static inline bool pacing_differs(u32 rate, u32 old, u32 part)
{
	if (steering.socket_limit || rate == PACING_UNLIMITED || old == PACING_UNLIMITED)
		return rate != old;
	return rate > old ? rate - old > old / part : old - rate > old / part;
}

/*
 * Whether the FIN is acknowledged, which counts as a byte. `end`: of all that is written. The stack leaves FIN_WAIT1 a
 * moment after it has counted the ACK.
 */
static inline bool fin_is_acked(u32 state, u32 una, u32 end)
{
	if (state == BPF_TCP_LAST_ACK || state == BPF_TCP_CLOSING || state == BPF_TCP_FIN_WAIT1)
		return una == end;
	return state == BPF_TCP_FIN_WAIT2 || state == BPF_TCP_TIME_WAIT;
}

#endif
