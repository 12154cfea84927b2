/* SPDX-License-Identifier: Apache-2.0 */
/**
 * report.h - the gathered states of a job, judged and printed: as text for people, in the order of NCCL's report, or as
 * JSON with NCCL's keys and Kolo's own beside them.
 *
 * A communicator is *stuck* if an operation of one of its ranks has lasted for a second. Then a rank that has not
 * called a collective that another one is in, is *behind*; before, ranks differ because they were not asked at the same
 * moment.
 *
 * Threads: pure, but for `describe`.
 */
#ifndef KL_COMM_WATCH_REPORT_H
#define KL_COMM_WATCH_REPORT_H

#include "comm/watch/gather.h"

#include <stdio.h>

enum { KL_REPORT_WHO = 128 };

struct kl_report {
    const struct kl_gathered *gathered;
    bool verbose; /* every rank of large communicators */

    /** Name of a rank that has not answered, "rank 3 (host b, pid 12)" if that is known. Returns `who`. */
    const char *(*describe)(uint64_t communicator, int rank, char who[KL_REPORT_WHO]);
};

/** A communicator as it is judged. */
struct kl_report_comm {
    const struct kl_status *status; /* of those that have answered, by rank */
    size_t n;
    int nranks, missing;
    bool init, failed, stuck, mismatch; /* mismatch: ranks are at the same collective with different calls */
    uint64_t most, least;               /* collectives called */
    uint64_t front;                     /* the last collective that a rank is in */
    const struct kl_status *longest;    /* the rank with the longest operation in progress; NULL: no operation is known
                                         * to last */
};

/** The communicator with records from `first` on; `n` of the result is their number, up to the next communicator. */
struct kl_report_comm kl_report_judge(const struct kl_gathered *gathered, size_t first);

/** One word for its errors: OK, ERROR, MISMATCH, INCOMPLETE or STUCK: the worst that applies. */
const char *kl_report_verdict(const struct kl_report_comm *comm);

bool kl_report_behind(const struct kl_report_comm *comm, const struct kl_status *status);

/** Do two ranks that are at the same collective call the same? */
bool kl_report_agree(const struct kl_status *a, const struct kl_status *b);

/** Has the rank answered? */
bool kl_report_has(const struct kl_report_comm *comm, int rank);

void kl_report_text(const struct kl_report *report, FILE *to);
void kl_report_json(const struct kl_report *report, FILE *to);

#endif
