/* SPDX-License-Identifier: Apache-2.0 */
/**
 * trace_messages.h - sends, receives and all-to-alls of a trace as messages between ranks of the job; for trace_traffic.c only.
 *
 * A send and its receive are one message, also where both sides recorded it; without the other side it counts by itself. An
 * all-to-all sends an even part to each rank of its group, also all-to-all-v: a rank's own size where its record has it.
 *
 * Units:  bytes.
 * Errors: ncclInvalidUsage for more messages than are kept; ncclSystemError when memory is short.
 */
#ifndef KL_ANSWER_TRACE_MESSAGES_H
#define KL_ANSWER_TRACE_MESSAGES_H

#include "answer/traffic.h"

/** Ranks of the job that a group of the record has, ascending; none where they are unknown. */
struct kl_trace_ranks {
    int *rank, n;
};

/** In: the record, by group its ranks and the member with the most calls (-1 none), ranks of the job, counts to add to. */
struct kl_trace_messages {
    const struct kl_record *record;
    const struct kl_trace_ranks *ranks;
    const int *leader;
    int nranks;
    struct kl_traffic_trace *trace;

    struct kl_op_traffic_message *message; /* found: ascending by ranks */
    int n, max;
};

/** Fill `message`; free it, also after a failure. */
ncclResult_t kl_trace_messages_find(struct kl_trace_messages *messages);

/** Is a call the business of kl_trace_messages_find? */
bool kl_trace_is_message(const struct kl_record_call *call);

#endif
