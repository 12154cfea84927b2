/* SPDX-License-Identifier: Apache-2.0 */
/**
 * standing.h - where each rank is, as it answers questions of others (bootstrap/census.h), and the diagnosis from all
 * ranks' answers.
 *
 * Threads: pure functions.
 */
#ifndef KL_COMM_STANDING_H
#define KL_COMM_STANDING_H

#include "bootstrap/bootstrap.h"
#include "coll/signature.h"

enum kl_standing_state {
    KL_STANDING_IDLE,    /* all its operations are done */
    KL_STANDING_AT_WORK, /* or its operation waits for other work of its stream */
    KL_STANDING_STALLED
};

enum { KL_STANDING_CALLS = 4 };

/** Raw bytes between processes of one job. */
struct kl_standing {
    uint64_t issued;    /* collectives it has called */
    struct kl_call now; /* the operation that stalls */
    uint32_t state;     /* enum kl_standing_state */
    int32_t waits_for;  /* rank; -1: none in particular */
    uint64_t stalled_ms;
    uint64_t first; /* number of calls[0] */
    uint32_t ncalls, reserved;
    struct kl_call calls[KL_STANDING_CALLS]; /* up to the requested number */
    uint64_t room;
};
_Static_assert(sizeof(struct kl_standing) == KL_STANDING_BYTES, "wire format");

/** All ranks. Data from others are not trusted. */
struct kl_standings {
    int n;
    const unsigned char *known; /* enum kl_answered, by rank */
    const struct kl_standing *of;
    const char *(*describe)(void *ctx, int rank, char *text, size_t size); /* "rank 3 (host b, pid 12)" */
    void *ctx;
};

/**
 * Do calls differ, of the numbers that all standings hold? Then the sentence about the first differing number, as
 * kl_call_verdict. `called` has room for n; `*all`: all ranks that have not left have called that number.
 */
bool kl_standings_differ(const struct kl_standings *s, uint64_t number, struct kl_called *called, char *text,
                         size_t size, int *culprit, bool *all);

/**
 * Rank `me` waits in the collective `number` (0: in messages): "waiting for rank 2 (host b, pid 12), which has not called it: its
 * last call was AllReduce #16 of 8 float (sum); ranks 0 and 3 wait in it for rank 2". Returns the rank it names first, -1: none.
 */
int kl_standings_report(const struct kl_standings *s, int me, uint64_t number, char *text, size_t size);

#endif
