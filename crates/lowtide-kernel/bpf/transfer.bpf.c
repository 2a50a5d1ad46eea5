// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs of one transfer, loaded once per `lowtide run`:
 *
 *   sockops.h     gives each socket its law and DSCP
 *   sockopt.h     keeps the program from leaving the law
 *   options.h     socket options of our own
 *   goal.h        goals go up to the controller, decisions come down
 *   egress.h      turns signals into window reductions
 *   observe.h     reads all sockets for the controller
 *   cdg_ops.h     the law lt_cdg
 *   tide_ops.h    the law lt_tide; in flows.h its connections share a flow for each path
 *   window_ops.h  the laws of the window kind, as lt_vegas, each by window_law.h; marks_ops.h has what those with
 *                 ECN need besides
 *   tcp.h         what laws have in common
 *   trace.h       what a trace sees of them
 *   state.h       what all programs share
 *   takeover.h    a group that was there before: its sockets get the law, and their own one back
 *   download.h    governs what sockets receive
 */
#include "kernel.h"
#include "sockops.h"
#include "egress.h"
#include "sockopt.h"
#include "takeover.h"
#include "cdg_ops.h"
#include "window_ops.h"
#include "tide_ops.h"
#include "download.h"
#include "observe.h"

char LICENSE[] SEC("license") = "GPL";
