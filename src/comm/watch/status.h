/* SPDX-License-Identifier: Apache-2.0 */
/**
 * status.h - the state of one rank of one communicator at this moment, on request of others: a record, and its bytes.
 *
 * Decoding returns false for bytes that are no such record; texts come back terminated and printable.
 *
 * Threads: kl_status_of inside of the communicator (comm/handle.h), at any time of its life; the rest is pure.
 */
#ifndef KL_COMM_WATCH_STATUS_H
#define KL_COMM_WATCH_STATUS_H

#include "bootstrap/wire.h"
#include "coll/func.h"
#include "include/nccl.h"

enum { KL_STATUS_HOST = 64, KL_STATUS_PHASE = 16, KL_STATUS_TEXT = 256 };

enum kl_status_state { KL_STATUS_INIT, KL_STATUS_RUNNING, KL_STATUS_FINALIZED, KL_STATUS_FAILED, KL_STATUS_STATES };

struct kl_status {
    uint64_t communicator;
    int32_t rank, nranks, device, pid;
    char host[KL_STATUS_HOST];
    uint8_t state;                 /* enum kl_status_state */
    char phase[KL_STATUS_PHASE];   /* of init; "" */
    int32_t failed;                /* ncclResult_t */
    char text[KL_STATUS_TEXT];     /* of the failure; "" */
    uint64_t issued[KL_FUNC_ROWS]; /* operations, by function */
    uint64_t ended;                /* operations */
    uint64_t collectives_issued, collectives_ended;

    /* the operation in progress, or else the last one; number 0: none so far */
    uint64_t number, collective, count, bytes;
    uint8_t func, type, op, op_state; /* op_state: enum kl_flight_state */
    int32_t peer, waits_for;          /* ranks; waits_for -1: none */
    uint64_t for_ns;                  /* since it began, if that is known and it has not ended; else 0 */
};

enum {
    KL_STATUS_WIRE = 8 + 4 * 4 + KL_STATUS_HOST + 1 + KL_STATUS_PHASE + 4 + KL_STATUS_TEXT + 8 * KL_FUNC_ROWS + 3 * 8 +
                     4 * 8 + 4 + 2 * 4 + 8
};

void kl_status_of(ncclComm_t comm, struct kl_status *status);

void kl_status_put(struct kl_writer *to, const struct kl_status *status);
bool kl_status_get(struct kl_reader *from, struct kl_status *status);

#endif
