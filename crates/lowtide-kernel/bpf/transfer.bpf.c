// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs of one transfer, loaded once per `lowtide run`:
 *
 *   sockops.h     gives each socket its law and DSCP
 *   sockopt.h     keeps the program from changing the law
 *   options.h     Lowtide's socket options
 *   goal.h        passes goals to the controller, and decisions back
 *   egress.h      turns signals into window reductions
 *   observe.h     reads all sockets for the controller
 *   cdg_ops.h     the law lt_cdg
 *   tide_ops.h    the law lt_tide; its connections share a flow per path (flows.h)
 *   window_ops.h  the window laws, as lt_vegas, each by window_law.h; marks_ops.h has what those with ECN
 *                 need besides
 *   tcp.h         what laws have in common
 *   trace.h       records of a trace
 *   state.h       what all programs share
 *   takeover.h    a group that Lowtide did not make: its sockets get the law, and later their own one back
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
