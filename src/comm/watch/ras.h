/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ras.h - the service for questions about the state of the job, while the process has a communicator: `kolo ras` and
 * NCCL's ncclras.
 *
 *     @kolo-ras-PID-RANDOM    an abstract Unix socket of each process, for its user (and root)
 *     NCCL_RAS_ADDR           a TCP socket of the first process of a host, for callers of the same host
 *
 * Each has places of its own: clients of one do not keep clients from the other. With all places taken the oldest that
 * has not asked for a report goes; a silent client goes after 10 seconds.
 *
 * Both speak NCCL's text protocol (protocol.h). A client from elsewhere is refused: states travel between hosts only
 * over the bootstraps' sealed connections (gather.h). The event loop serves; there is no thread for it. A socket that
 * cannot be opened is logged (RAS), and nothing else.
 *
 * Threads: any.
 */
#ifndef KL_COMM_WATCH_RAS_H
#define KL_COMM_WATCH_RAS_H

#include "comm/config.h"

/** Prefix of the names of the Unix sockets. */
#define KL_RAS_NAME "kolo-ras-"

/** A communicator begins: serve until as many have ended. */
void kl_ras_hold(const struct kl_comm_config *config);
void kl_ras_drop(void);

#endif
