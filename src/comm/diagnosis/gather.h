/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gather.h - ask every process of a job for the states of its ranks, over the bootstraps' connections.
 *
 * A process passes a question on to every process that it is connected with, once; so it reaches all that can be
 * reached, also past stopped or dead ones. A process that receives it for the first time answers to the sender, which
 * passes the answers back. Ranks are reached through any communicator of any process on the way; ranks that do not
 * answer in time are missing.
 *
 *     asker  --question 7-->  a  --question 7-->  b     b answers a, which passes it back to the asker
 *                             ^--------------------     heard before: ignored
 *
 * Answers of a process cover all of its communicators. Nothing blocks, and no error here is a failure of a
 * communicator.
 *
 * Threads: the event loop's only.
 */
#ifndef KL_COMM_DIAGNOSIS_GATHER_H
#define KL_COMM_DIAGNOSIS_GATHER_H

#include "comm/diagnosis/status.h"
#include "event/loop.h"

struct kl_bootstrap;
struct kl_gathering;

/** The answers: by communicator and rank, each once. */
struct kl_gathered {
    struct kl_status *status;
    size_t n;
    uint64_t took_ns;
    bool complete; /* every rank of every known communicator has answered */
};

/**
 * Ask. `done` is called once, when all have answered or `timeout_ms` have passed, not before this has returned; its
 * argument is valid during the call only. 0: there is no other process to ask, and only this one is reported.
 */
ncclResult_t kl_gather_begin(struct kl_loop *loop, uint64_t timeout_ms,
                             void (*done)(void *ctx, const struct kl_gathered *gathered), void *ctx,
                             struct kl_gathering **gathering);

/** Cancel: `done` is not called. */
void kl_gather_cancel(struct kl_gathering *gathering);

/** A control message about states has arrived for a rank of this process: a question or an answer. */
void kl_gather_on_message(ncclComm_t comm, struct kl_bootstrap *bootstrap, int from, const void *data, size_t bytes);

#endif
