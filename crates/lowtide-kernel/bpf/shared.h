/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF programs and their controller in user space share; the Rust side takes these types from the compiled
 * object. Fixed-point values say their scale: _q16 is units of 2^-16, _q32 of 2^-32.
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

/* What the weight comes to on a socket. */
struct lt_pressure {
	/* 1/w - 1: what the weight adds to a price by signals, per unit of price; 0: no signals */
	u64 surplus_q16;
	u64 hazard_q16;		/* and to that of delay, which our law prices itself */
	/* the part that our law keeps of what a reduction for real congestion leaves: 1, or w (beta scaling) */
	u64 kept_q16;
	/* chance of a phantom signal per segment sent while a loss is recent: p(1/w - 1), p the loss price */
	u64 phantom_q32;
	u64 weight_q16;		/* the socket's part of w, to a law of the window kind; 0: as published */
	u64 ratio_q16;		/* phi: the price of ordinary flows over that of such a law */
	/* segments per round trip that our law's budget grows by: 1, or w above 1, or a part of it */
	u64 increase_q16;
};

/* A parameter that a program may set on a socket of its own. */
struct lt_parameter {
	char name[LT_PARAMETER_NAME];
	u32 least, most;	/* as the law reads it */
	u64 unit;		/* and 1 of what the program says */
};

/* Fixed before the programs are loaded: to the verifier these are constants, and code that they rule out is dropped. */
struct lt_setup {
	u32 uploads;		/* 1: what sockets send is governed */
	u32 ours;		/* 1: the law is ours; 0: a law of the kernel, phantom signals only */
	u32 needs_ecn;		/* 1: and asks for ECN whose every mark is echoed */
	u32 weighs_marks;	/* 1: w acts on marks, and by signals only on sockets without ECN */
	u32 one_window;		/* 1: and its sockets share one window */
	u32 by_delay;		/* 1: w acts on delay, and by signals only where delay is no usable signal */
	/* 1: sockets are strangers to each other, and no program of a group turns signals into episodes */
	u32 whole_machine;
	u32 keep_law;		/* 1: a program's own TCP_CONGESTION is swallowed, 0: obeyed and counted */
	u32 set_tos;
	u32 tos;		/* IP_TOS / traffic class octet; used if set_tos */
	char law[LT_CC_NAME];
	char law_text[LT_LAW_TEXT];	/* with its parameters, for people */
	/* in the order of the law's structure; none: not on single sockets */
	struct lt_parameter settable[LT_PARAMETERS];
	/* Of a group that was there before us (takeover.h): */
	u64 group_id;		/* its number in the kernel; 0: the group was made for the transfer */
	u32 selective;		/* 1: of its connections only those with this port and this peer */
	u32 port;		/* on either side; 0: any */
	struct lt_address peer;	/* a network */
	u32 peer_bits;		/* so many of its bits count */
	u32 unused;		/* a multiple of eight bytes */
	char free_laws[LT_FREE_LAWS][LT_CC_NAME];	/* that every program may choose; others need a capability */
};

/* Written by the controller while the transfer runs. */
struct lt_steering {
	u64 heartbeat_ns;	/* CLOCK_MONOTONIC of the controller's last sign of life */
	u64 stale_ns;		/* older than this, the controller is dead: behave as plain TCP (2 T_w) */
	struct lt_pressure pressure;	/* on sockets without a goal of their own */
	u64 window_q16;		/* sum of the sending sockets' windows, segments */
	u64 weight;		/* w of the transfer, for those who ask: the bits of a double */
	u32 sockets;		/* sockets that are sending: they share one flow's budget */
	u32 socket_limit;	/* bytes per second that each may send, 0: as many as the law lets it; */
	u32 limit_sockets;	/* while no more than so many are sending; 0: however many are */
	u32 download_weight_q16;	/* w of what sockets receive; 1 and above: the windows are left to the stack */
	u32 download_held;	/* 1: what sockets receive is held to a trickle */
	u32 unused;		/* a multiple of eight bytes */
};

/* A socket that was open when its group was attached to: one for each look at it. */
struct lt_taken {
	u32 taken;		/* 1: it has the law; 0: it was refused */
	s32 error;
};

/* Counted by the programs, read by the controller. */
struct lt_totals {
	u64 closed_acked;	/* payload bytes that sockets now closed had acknowledged */
	u64 closed_own_law;	/* those of them that ran a law of the program's own */
	u64 closed_received;
	u64 closed_retransmitted;
	u64 segments;		/* data segments sent */
	u64 losses;		/* real congestion signals: episodes, not packets */
	u64 delay_price_q32;	/* what delay has cost: g+/G0 of each round, added up */
	u64 phantoms;		/* phantom signals delivered */
	u64 delay_backoffs;	/* reductions on account of delay */
	u64 udp_sent;		/* bytes on the wire that nobody governs */
	u64 udp_received;
	u64 sockets_opened;
	u64 own_law;		/* TCP_CONGESTION calls by the program */
	u64 law_refused;	/* sockets that could not be given the law */
	u64 without_ecn;	/* sockets whose peer does not offer the ECN that the law needs: Reno of the kernel */
	u64 closed_one_way;	/* sockets now closed whose law of the window kind had one-way delays */
	u64 closed_round_trips;	/* and those for which there were none */
	u64 unstamped;		/* connections without timestamps that received data: these are not governed */
	u64 law_missed;		/* answers of the law that did not reach the stack, mended at the next ACK */
};

/* A goal that a program set on its socket. */
struct lt_goal {
	u64 id;			/* of the socket among those with a goal, 0: none */
	u64 serial;		/* counts the goals of this socket */
	u64 size;
	u64 acked_before;	/* bytes acknowledged when it was set */
	u64 deadline_ns;	/* CLOCK_BOOTTIME */
};

/* What its governor decided: the pressure in place of that of lt_steering, and what answers LOWTIDE_STATUS. */
struct lt_decision {
	u64 serial;		/* the goal decided on */
	struct lt_pressure pressure;
	u64 weight;		/* the bits of a double */
	u64 target_rate;
	u64 achieved_rate;
	s64 expected_ns;	/* from now; in the socket's record CLOCK_BOOTTIME; negative: unknown */
	u32 outlook;
	u32 governed;		/* 0: the goal has ended, the socket shares the rest's weight */
};

/* One line of the socket iterator, or of the queue of sockets that closed with a goal. */
struct lt_socket_record {
	struct lt_goal goal;
	s64 left_ns;		/* until its deadline */
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
	u32 held;		/* it has more to send than the limit on all sockets lets it */
	u32 unused;		/* a multiple of eight bytes */
	/* LT_ONE_WAY, LT_ROUND_TRIPS: which ones a law of the window kind has; 0: not known yet */
	u32 delays;
	struct lt_path path;	/* whose flow it is part of; all 0: none */
	struct lt_path download_path;	/* the same of what it receives */
	u64 arrived_ns;		/* when data last came that a download is made of; 0: never */
	u32 window;		/* bytes that it was last granted to receive */
	u32 download_srtt_us;
	u32 download_delay_us;	/* of the way here alone, as a round trip, now */
	u32 download_base_us;	/* and with an empty queue; 0: not known */
	u32 download_mss;
	u32 download_state;	/* enum lt_download_state */
	u32 download_limited;	/* its sender uses all that it is granted */
	u32 unused_end;		/* likewise */
};

enum lt_download_state {
	LT_DOWNLOAD_NONE,	/* nothing has come yet */
	LT_DOWNLOAD_FREE,	/* the window is the stack's */
	LT_DOWNLOAD_FILLS,	/* the law fills the link */
	LT_DOWNLOAD_YIELDS,	/* and leaves it to competing flows */
};

/* Written by who traces, read by the programs. */
struct lt_tracing {
	u64 until_ns;		/* CLOCK_MONOTONIC: tracing ends then, unless it is renewed; 0: there is none */
	u32 port;		/* connections with this port on either side; 0: all */
	u32 source;		/* what the records of these programs are to be known by */
};

/* Why there is a record; crates/lowtide-kernel/src/trace/record.rs has the names that people see. */
enum lt_trace_event {
	LT_TRACE_ROUND,		/* a round trip is over */
	LT_TRACE_BACKOFF,	/* the law brings the window down by itself */
	LT_TRACE_LOSS,
	LT_TRACE_MARK,
	LT_TRACE_PHANTOM,
	LT_TRACE_SHARED,	/* a reduction that another socket of the transfer announced */
	LT_TRACE_TIMEOUT,
	LT_TRACE_RECOVERED,	/* an episode is over */
	LT_TRACE_UNDONE,
	LT_TRACE_RESTART,	/* after an idle time */
	LT_TRACE_MISSED,	/* an answer of the law did not reach the stack, and is given again */
};

/* What a trace has of a connection at one instant. */
struct lt_trace_record {
	u64 time_ns;		/* CLOCK_MONOTONIC */
	u64 inode;		/* of the socket, 0: no process has it */
	u64 cgroup;
	u64 cwnd_q16;		/* the law's, segments */
	u64 ssthresh_q16;	/* 0x7fffffff segments and above: none */
	u64 weight;		/* w: the bits of a double, 0: none */
	s64 values[LT_TRACE_VALUES];	/* the law's own */
	u32 values_count;
	u32 source;		/* as in lt_tracing */
	u32 connection;		/* counted for each law that was loaded, from 1 */
	u32 event;		/* enum lt_trace_event */
	u32 srtt_us;
	u32 rtt_min_us, rtt_max_us;	/* since the latest round, 0: no sample */
	u32 delivered, marked;	/* segments since the latest round, and of those with CE */
	u32 in_flight;		/* segments */
	u32 stack_cwnd;		/* segments */
	u32 ca_state;		/* the stack's */
	u32 ipv6;
	u16 local_port, remote_port;
	u8 remote[16];		/* its address; of IPv4 the first four */
};

#endif
