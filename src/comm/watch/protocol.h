/* SPDX-License-Identifier: Apache-2.0 */
/**
 * protocol.h - NCCL's text protocol for questions about the state of a job: the parser of a client's requests. Pure.
 *
 *     CLIENT PROTOCOL 2        SERVER PROTOCOL 2
 *     TIMEOUT 5                OK                        how long to wait for other processes, seconds; 0: as long as usual
 *     SET FORMAT text|json     OK
 *     STATUS                   the report, then the end of the connection
 *     VERBOSE STATUS           the same with every rank
 *     LOCAL STATUS             the same of this process alone, at once: Kolo's own
 *     anything else            ERROR: Unknown command
 *
 * Lines end with \n or \r\n, in any case of letters, and have at most 1,024 bytes.
 *
 * Source: the runtime specification, 8.1; NCCL's documentation of RAS.
 */
#ifndef KL_COMM_WATCH_PROTOCOL_H
#define KL_COMM_WATCH_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>

enum { KL_RAS_LINE = 1024, KL_RAS_REPLY = 64, KL_RAS_VERSION = 2, KL_RAS_TIMEOUT_MAX = 3600 };

enum kl_ras_turn {
    KL_RAS_MORE,   /* more bytes are needed */
    KL_RAS_ANSWER, /* send `reply` */
    KL_RAS_REPORT, /* send the report, then close */
    KL_RAS_LEAVE   /* send `reply`, then close */
};

/** Zeroed: a client that has sent nothing yet. */
struct kl_ras_session {
    char line[KL_RAS_LINE];
    size_t have;
    bool json, verbose, local;
    int timeout_s; /* 0: the default */
};

/**
 * Take bytes up to the end of a line. *taken of them are used; the rest is for the next call. `reply` is a line, or "".
 */
enum kl_ras_turn kl_ras_hear(struct kl_ras_session *session, const char *bytes, size_t n, size_t *taken,
                             char reply[KL_RAS_REPLY]);

#endif
