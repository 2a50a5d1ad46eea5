/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF programs and their controller in user space share. The Rust side takes these types from the compiled
 * object. Fixed-point values have their scale in the name: _q16 is units of 2^-16, _q32 of 2^-32.
 */
#ifndef LOWTIDE_SHARED_H
#define LOWTIDE_SHARED_H

#include "law/network.h"

#define LT_CC_NAME 16
#define LT_LAW_TEXT 256
#define LT_FREE_LAWS 32
#define LT_PARAMETERS 24	/* LAW_PARAMETERS */
#define LT_TRACE_VALUES 8	/* LAW_VALUES */

#define LT_PARAMETER_NAME 24	/* LOWTIDE_PARAMETER_NAME */

#define LT_ONE_WAY 1		/* enum owd_use */
#define LT_ROUND_TRIPS 2

/* The effect of the weight on a socket. */
struct lt_pressure {
	/* 1/w - 1: phantom signals per real signal; 0: none */
	u64 surplus_q16;
	u64 hazard_q16;		/* the same for delay, whose price the CDG law computes itself */
	/* the part of the window that a reduction for real congestion leaves which is kept: 1, or w (beta scaling) */
	u64 kept_q16;
	/* probability of a phantom signal per segment while a loss is recent: p(1/w - 1), p the loss price */
	u64 phantom_q32;
	u64 weight_q16;		/* the socket's part of w, for a window law; 0: as published */
	u64 ratio_q16;		/* phi: the congestion price of ordinary flows over that of such a law */
	/* segments per RTT that CDG's budget grows by: 1, or w above 1, or a part of it */
	u64 increase_q16;
};

/* A parameter that a program may set on one of its sockets. */
struct lt_parameter {
	char name[LT_PARAMETER_NAME];
	u32 least, most;	/* in the unit of the law */
	u64 unit;		/* 1 of what the program sets, in that unit */
};

/*
 * Fixed before the programs are loaded. The verifier takes these for constants, and drops the code that they rule out.
 */
struct lt_setup {
	u32 uploads;		/* 1: governs what sockets send */
	u32 ours;		/* 1: the law is Lowtide's; 0: a law of the kernel, phantom signals only */
	u32 needs_ecn;		/* 1: the law needs ECN, and a receiver that echoes every mark */
	u32 weighs_marks;	/* 1: w acts on marks, and by phantom signals only on sockets without ECN */
	u32 one_window;		/* 1: sockets share one window */
	u32 by_delay;		/* 1: w acts on delay, and by phantom signals only where delay is no usable signal */
	/* 1: sockets belong to different programs, and no program of a group turns signals into episodes */
	u32 whole_machine;
	u32 keep_law;		/* 1: a program's own TCP_CONGESTION is ignored, 0: obeyed and counted */
	u32 set_tos;
	u32 tos;		/* IP_TOS / traffic class octet; used if set_tos */
	u32 download_law;	/* enum law_number: the law of what is received */
	u32 unused;		/* padding to a multiple of eight bytes */
	char law[LT_CC_NAME];
	char law_text[LT_LAW_TEXT];	/* the law with its parameters, for messages */
	/* in the order of the law's structure; empty: none can be set on single sockets */
	struct lt_parameter settable[LT_PARAMETERS];
	/* for a group that Lowtide did not make (takeover.h) */
	u64 group_id;		/* its number in the kernel; 0: the group was made for the transfer */
	u32 selective;		/* 1: only its connections with this port and this peer */
	u32 port;		/* on either side; 0: any */
	struct lt_address peer;	/* a network */
	u32 peer_bits;		/* how many of its bits count */
	u32 transfer;		/* differs from that of each other transfer */
	/* laws that every program may choose; others need a capability */
	char free_laws[LT_FREE_LAWS][LT_CC_NAME];
};

/* Written by the controller while the transfer runs. */
struct lt_steering {
	u64 heartbeat_ns;	/* CLOCK_MONOTONIC of the controller's last heartbeat */
	u64 stale_ns;		/* an older heartbeat: the controller is dead, behave as plain TCP (2 T_w) */
	struct lt_pressure pressure;	/* for sockets without a goal of their own */
	u64 window_q16;		/* sum of the sending sockets' windows, segments */
	u64 weight;		/* w of the transfer, for LOWTIDE_STATUS: the bits of a double */
	u32 sockets;		/* sockets that are sending, which share one flow's budget */
	u32 socket_limit;	/* limit on each, bytes per second; 0: none */
	u32 limit_sockets;	/* sockets that it is for, more of them get less each; 0: any number */
	u32 download_weight_q16;	/* w of downloads; 1 and above: the stack chooses the windows */
	u32 download_held;	/* 1: downloads are held to the least window */
	u32 unused;		/* padding to a multiple of eight bytes */
};

/* The result for a socket that was open when its group was taken over. */
struct lt_taken {
	u32 taken;		/* 1: it has the law; 0: the law was refused */
	s32 error;
};

/* Counted by the programs, read by the controller. */
struct lt_totals {
	u64 closed_acked;	/* payload bytes acknowledged on sockets that are now closed */
	u64 closed_own_law;	/* the part of these on sockets with a law of the program's own */
	u64 closed_received;
	u64 closed_unmeasured;	/* the part of these on connections that no law for downloads has measured */
	u64 closed_retransmitted;
	u64 segments;		/* data segments sent */
	u64 losses;		/* real congestion events, not packets */
	u64 delay_price_q32;	/* sum of the price of delay: g+/G0 of each round */
	u64 phantoms;		/* phantom signals delivered */
	u64 delay_backoffs;	/* reductions for delay */
	u64 udp_sent;		/* bytes on the wire, not governed */
	u64 udp_received;
	u64 sockets_opened;
	u64 own_law;		/* TCP_CONGESTION calls by the program */
	u64 law_refused;	/* sockets that could not get the law */
	u64 without_ecn;	/* sockets without the ECN that the law needs: they use the kernel's Reno */
	u64 closed_one_way;	/* closed sockets whose window law had one-way delays */
	u64 closed_round_trips;	/* closed sockets whose window law had RTTs only */
	u64 unstamped;		/* connections without timestamps that received data: not governed */
	u64 law_missed;		/* skipped struct_ops callbacks, repaired at the next ACK */
};

/* A goal that a program set on its socket. */
struct lt_goal {
	u64 id;			/* number of the socket among those with a goal; 0: none */
	u64 serial;		/* number of this goal on its socket */
	u64 size;
	u64 acked_before;	/* bytes acknowledged when the goal was set */
	u64 deadline_ns;	/* CLOCK_BOOTTIME */
};

/* The decision of a goal's governor: the pressure instead of that of lt_steering, and the answers to LOWTIDE_STATUS. */
struct lt_decision {
	u64 serial;		/* the goal that it is for */
	struct lt_pressure pressure;
	u64 weight;		/* the bits of a double */
	u64 target_rate;
	u64 achieved_rate;
	s64 expected_ns;	/* from now, in the socket's record CLOCK_BOOTTIME; negative: unknown */
	u32 outlook;
	u32 governed;		/* 0: the goal has ended, the socket shares the transfer's weight */
};

/* A record of the socket iterator, or of the queue of sockets that closed with a goal. */
struct lt_socket_record {
	struct lt_goal goal;
	s64 left_ns;		/* time to its deadline */
	u64 acked;
	u64 received;
	u64 retransmitted;
	u64 last_sent_ns;
	u64 window_q16;
	u32 srtt_us;
	u32 min_rtt_us;
	u32 cwnd;
	u32 packets_out;
	u32 unsent;
	u32 mss;		/* payload bytes of a full segment */
	u32 own_law;
	u32 held;		/* the limit on all sockets limits it */
	u32 unused;		/* padding to a multiple of eight bytes */
	/* LT_ONE_WAY, LT_ROUND_TRIPS: the delays of a window law; 0: not known yet */
	u32 delays;
	struct lt_path path;	/* path of the flow that it belongs to; all 0: none */
	struct lt_path download_path;	/* the same for what it receives */
	u64 arrived_ns;		/* when data of a download last arrived; 0: never */
	u32 window;		/* bytes of the window in the latest ACK */
	u32 download_srtt_us;
	u32 download_delay_us;	/* present delay of the forward path, as an RTT */
	u32 download_base_us;	/* the same with an empty queue; 0: not known */
	u32 download_mss;
	u32 download_state;	/* enum lt_download_state */
	u32 download_limited;	/* the window limits its sender */
	u32 download_measured;	/* 1: the law for downloads sees what arrives */
};

enum lt_download_state {
	LT_DOWNLOAD_NONE,	/* nothing has arrived yet */
	LT_DOWNLOAD_FREE,	/* the stack chooses the window */
	LT_DOWNLOAD_FILLS,	/* the law fills the link */
	LT_DOWNLOAD_YIELDS,	/* the law leaves the link to cross traffic */
};

/* Written by a tracing process, read by the programs. */
struct lt_tracing {
	u64 until_ns;		/* CLOCK_MONOTONIC: tracing ends then unless renewed; 0: none */
	u32 port;		/* connections with this port on either side; 0: all */
	u32 source;		/* marks the records of these programs */
};

/* Reasons for a record. crates/lowtide-kernel/src/trace/record.rs has their names. */
enum lt_trace_event {
	LT_TRACE_ROUND,		/* an RTT has passed */
	LT_TRACE_BACKOFF,	/* the law reduces the window by itself */
	LT_TRACE_LOSS,
	LT_TRACE_MARK,
	LT_TRACE_PHANTOM,
	LT_TRACE_SHARED,	/* a reduction that another socket of the transfer announced */
	LT_TRACE_TIMEOUT,
	LT_TRACE_RECOVERED,	/* an episode is over */
	LT_TRACE_UNDONE,
	LT_TRACE_RESTART,	/* after an idle time */
	LT_TRACE_MISSED,	/* a skipped struct_ops callback was repaired */
};

/* A connection in a trace at one instant. */
struct lt_trace_record {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u64 inode;		/* of the socket; 0: no process has it */
	u64 cgroup;
	u64 cwnd_q16;		/* window of the law, segments */
	u64 ssthresh_q16;	/* threshold of the law; from 0x7fffffff segments on: none */
	u64 weight;		/* w: the bits of a double, of a download 2^-16; 0: none */
	s64 values[LT_TRACE_VALUES];	/* the law's values */
	u32 values_count;
	u32 source;		/* as in lt_tracing */
	u32 connection;		/* counted for each loaded law, from 1 */
	u32 event;		/* enum lt_trace_event */
	u32 srtt_us;
	u32 rtt_min_us, rtt_max_us;	/* since the latest round; 0: no sample */
	u32 delivered, marked;	/* segments since the latest round, and those of them with CE */
	u32 in_flight;		/* segments; of a download those granted */
	u32 stack_cwnd;		/* segments; of a download the window that was advertised last */
	u32 state;		/* of the stack, as in tcp_ca_state; of a download enum lt_download_state */
	u32 receives;		/* a download: the law is at its receiver */
	u32 ipv6;
	u16 local_port, remote_port;
	u8 remote[16];		/* peer address; IPv4 uses the first four bytes */
};

#endif
