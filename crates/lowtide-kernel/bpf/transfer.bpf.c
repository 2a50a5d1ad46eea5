// SPDX-License-Identifier: GPL-2.0-only
/*
 * The programs of one transfer, loaded once per `lowtide run`:
 *   sockops.h   gives each socket its law and DSCP          egress.h    turns signals into window reductions
 *   sockopt.h   keeps the program from leaving the law      observe.h   reads all sockets for the controller
 *   options.h   options of our own on a socket              goal.h      goals go up, decisions come down
 *   cdg_ops.h   the law lt_cdg                              state.h     what they share
 */
#include "kernel.h"
#include "sockops.h"
#include "egress.h"
#include "sockopt.h"
#include "observe.h"
#include "cdg_ops.h"

char LICENSE[] SEC("license") = "GPL";
