/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rank_status.h - where each rank is, as it answers questions of others (bootstrap/status_query.h), and the diagnosis from all
 * ranks' answers.
 *
 * Threads: pure functions.
 */
#ifndef KL_COMM_DIAGNOSIS_RANK_STATUS_H
#define KL_COMM_DIAGNOSIS_RANK_STATUS_H

#include "bootstrap/bootstrap.h"
#include "coll/schedule/signature.h"

enum kl_rank_status_state {
    KL_RANK_STATUS_IDLE,    /* all its operations are done */
    KL_RANK_STATUS_WORKING, /* or its operation waits for other work of its stream */
    KL_RANK_STATUS_STALLED
};

enum { KL_RANK_STATUS_CALLS = 4 };

/** Raw bytes between processes of one job. */
struct kl_rank_status {
    uint64_t issued;    /* collectives it has called */
    struct kl_call now; /* the operation that stalls */
    uint32_t state;     /* enum kl_rank_status_state */
    int32_t waits_for;  /* rank; -1: none in particular */
    uint64_t stalled_ms;
    uint64_t first; /* number of calls[0] */
    uint32_t ncalls, reserved;
    struct kl_call calls[KL_RANK_STATUS_CALLS]; /* up to the requested number */
    uint64_t room;
};
_Static_assert(sizeof(struct kl_rank_status) == KL_STATUS_BYTES, "wire format");

/** All ranks. Data from others are not trusted. */
struct kl_rank_statuses {
    int n;
    const unsigned char *known; /* enum kl_reply_state, by rank */
    const struct kl_rank_status *of;
    const char *(*describe)(void *ctx, int rank, char *text, size_t size); /* "rank 3 (host b, pid 12)" */
    void *ctx;
};

/**
 * Do calls differ, of the numbers that all standings hold? Then the sentence about the first differing number, as
 * kl_call_verdict. `called` has room for n; `*all`: all ranks that have not left have called that number.
 */
bool kl_rank_statuses_differ(const struct kl_rank_statuses *s, uint64_t number, struct kl_known_call *called,
                             char *text, size_t size, int *culprit, bool *all);

/**
 * Rank `me` waits in the collective `number` (0: in messages): "waiting for rank 2 (host b, pid 12), which has not called it: its
 * last call was AllReduce #16 of 8 float (sum); ranks 0 and 3 wait in it for rank 2". Returns the rank it names first, -1: none.
 */
int kl_rank_statuses_report(const struct kl_rank_statuses *s, int me, uint64_t number, char *text, size_t size);

#endif
