// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs of one transfer, loaded once per `lowtide run`:
 *   sockops.h   gives each socket its law and DSCP          egress.h    turns signals into window reductions
 *   sockopt.h   keeps the program from leaving the law      observe.h   reads all sockets for the controller
 *   options.h   options of our own on a socket              goal.h      goals go up, decisions come down
 *   cdg_ops.h   the law lt_cdg                              window_ops.h, window_law.h  the laws of the window kind: lt_vegas, lt_eclipse,
 *                                                lt_ledbat, lt_ledbatpp, lt_cubic; lt_dctcp and lt_prague, and in
 *   tide_ops.h  the law lt_tide                         flows.h     whose connections share a flow for each path
 *   download.h  governs what sockets receive
 *   marks_ops.h  what these two need besides: ECN                      trace.h     what a trace sees of them
 *   tcp.h       what laws have in common                    state.h     what all share
 */
#include "kernel.h"
#include "sockops.h"
#include "egress.h"
#include "sockopt.h"
#include "cdg_ops.h"
#include "window_ops.h"
#include "tide_ops.h"
#include "download.h"
#include "observe.h"

char LICENSE[] SEC("license") = "GPL";
