/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras.h - where questions about the state of the job are heard, while the process has a communicator: `kolo ras` and NCCL's ncclras.
 *
 *     @kolo-ras-PID-RANDOM    an abstract Unix socket of each process, for its user (and root)
 *     NCCL_RAS_ADDR           a TCP socket of the first process of a host, for callers of the same host
 *
 * Each has places of its own: whoever fills one does not keep others from the other. At a full door the oldest that has not asked for a
 * report goes; who says nothing goes after 10 seconds.
 *
 * Both speak NCCL's text protocol (protocol.h). Whoever asks from elsewhere is turned away: states travel between hosts only over
 * the bootstraps' sealed connections (gather.h). The event loop serves; there is no thread for it. A socket that cannot be had is
 * logged (RAS), and nothing else.
 *
 * Threads: any.
 */
#ifndef KL_COMM_WATCH_RAS_H
#define KL_COMM_WATCH_RAS_H

#include "comm/config.h"

/** What the names of the Unix sockets begin with. */
#define KL_RAS_NAME "kolo-ras-"

/** A communicator begins: be there until as many have ended. */
void kl_ras_hold(const struct kl_comm_config *config);
void kl_ras_drop(void);

#endif
