/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Goals on single TCP sockets, for programs that run under `lowtide run`. The options are served by a
 * program of Lowtide's in the kernel; there is no library to link. docs/socket-api.md tells more.
 *
 *	struct lowtide_goal goal = { .size = 40000000, .within_ns = 60 * 1000000000ULL };
 *	if (setsockopt(fd, SOL_LOWTIDE, LOWTIDE_GOAL, &goal, sizeof(goal)))
 *		... no goal; everything else goes on as without it
 *
 * errno   ENOPROTOOPT  no Lowtide here, or not for this socket (UDP, opened outside `lowtide run`, a
 *                      32-bit program). That is the kernel's own answer; for getsockopt it is
 *                      EOPNOTSUPP on an IPv4 socket. A program can probe with LOWTIDE_STATUS.
 *         EINVAL       a value out of its range, or a buffer shorter than the structure
 *         E2BIG        a longer structure than the one known here, and the rest of it is not zero
 *         EOPNOTSUPP   (setsockopt) a goal on a socket that listens, that is of MPTCP, or whose control law
 *                      the program chose itself; a parameter where the law has none for single sockets
 *         ENOBUFS      LOWTIDE_GOALS_MAX sockets of this run have a goal; one is free again when a goal is
 *                      cleared, or its connection ends, or its socket is closed
 *
 * The options belong to the connection: dup and fork keep them, accept does not hand them on. They may
 * be set before connect.
 */
#ifndef LOWTIDE_H
#define LOWTIDE_H

#include <linux/types.h>

/* "LT". The kernel numbers its levels upwards (287 by now); 0xffff is SOL_SOCKET on some machines. */
#define SOL_LOWTIDE 0x4c54

#define LOWTIDE_GOAL 1		/* set: struct lowtide_goal */
#define LOWTIDE_STATUS 2	/* get: struct lowtide_status */
#define LOWTIDE_LATENCY 3	/* set, get: __u32, microseconds */
#define LOWTIDE_PARAMETER 4	/* set: struct lowtide_parameter */

/*
 * To be done: `size` more bytes of payload acknowledged (TLS and other framing included), within so many
 * nanoseconds from this call on. A time from now, so no clock can be mistaken for another; it runs on
 * while the machine sleeps (CLOCK_BOOTTIME), and before connect. A later call replaces the goal, two
 * zeros clear it. A goal that is met ends at its deadline, or after 2 % more than `size`.
 */
struct lowtide_goal {
	__u64 size;		/* 1 to LOWTIDE_SIZE_MAX */
	__u64 within_ns;	/* LOWTIDE_WITHIN_MIN to LOWTIDE_WITHIN_MAX */
};

#define LOWTIDE_SIZE_MAX (1ULL << 60)
#define LOWTIDE_WITHIN_MIN 1000000ULL	/* 1 ms: less was meant in another unit */
/* A year: more was meant as a point in time. */
#define LOWTIDE_WITHIN_MAX (366 * 86400 * 1000000000ULL)
#define LOWTIDE_GOALS_MAX 4096

/* Of a socket without a goal the weight is that of the run, and the rest is zero or unknown. */
struct lowtide_status {
	__u32 flags;		/* LOWTIDE_HAS_GOAL ... */
	__u32 outlook;		/* enum lowtide_outlook */
	double weight;		/* w: 1 is an ordinary flow, less is more submissive */
	__u64 size;		/* the goal's */
	__u64 acknowledged;	/* of it, now; may exceed it */
	__u64 target_rate;	/* zeta: bytes per second needed from now on; 0: none, or past the deadline */
	__u64 achieved_rate;	/* bytes per second over the last update interval */
	__s64 left_ns;		/* until the deadline; negative: past it */
	__s64 expected_ns;	/* until it is expected to be done; -1: unknown */
};

#define LOWTIDE_HAS_GOAL 1	/* the socket has a goal */
#define LOWTIDE_GOVERNED 2	/* weight, outlook and rates are its own: from the first look at it */
				/* (within a quarter of a second of the connection) until it ends */
#define LOWTIDE_OWN_LAW 4	/* the program chose the control law itself: no weight has an effect */

enum lowtide_outlook {
	LOWTIDE_TOO_EARLY,
	LOWTIDE_ON_COURSE,
	LOWTIDE_CANNOT_FINISH,		/* not at what the network gives now */
	LOWTIDE_PROGRAM_LIMITED,	/* the program itself sends too slowly */
	LOWTIDE_STALLED,		/* nothing gets through */
	LOWTIDE_OVERDUE,		/* past the deadline, an ordinary flow */
	LOWTIDE_DONE,
	LOWTIDE_SIZE_EXCEEDED,		/* done, and over 2 % more than announced */
	LOWTIDE_BEHIND,			/* the rate so far does not suffice; pressing harder, as far as w may rise */
	LOWTIDE_WAITING,		/* nothing to send: the program works, or waits for its peer */
};

/*
 * LOWTIDE_LATENCY: how much queueing delay the program is willing to cause others when it looks for more
 * capacity, at most LOWTIDE_LATENCY_MAX; 0: as the control law would. It is Q of a law with acceleration or
 * overload mode (--cc dctcp:accel=on,overload=on, prague likewise); under any other it changes nothing.
 */
#define LOWTIDE_LATENCY_MAX 1000000

/*
 * LOWTIDE_PARAMETER: one of the run's control law, for this socket alone, under its name in `--cc LAW:NAME=VALUE`.
 * Laws of the kernel and Lowtide's CDG have none: the first have no parameters, all sockets of the other one window.
 */
#define LOWTIDE_PARAMETER_NAME 24

struct lowtide_parameter {
	char name[LOWTIDE_PARAMETER_NAME];	/* the rest zeros */
	/* a time in seconds; on is 1, off 0; a word by its place in the list of docs/laws.md, from 0 */
	double value;
};

#endif
