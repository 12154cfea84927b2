/* SPDX-License-Identifier: Apache-2.0 */
/**
 * record.h - records of calls (logs/record/record.h), judged: flight records, status of RAS, reports of Inspector, traces.
 *
 * Errors: as kl_record_add; ncclSystemError for a file that cannot be read.
 */
#ifndef KL_ANSWER_RECORD_H
#define KL_ANSWER_RECORD_H

#include "answer/texts.h"
#include "logs/record/record.h"

#include <stdio.h>

enum { KL_RECORD_SUMS = 256 };

/** Calls alike: their number, and their times as far as they are known. */
struct kl_record_sum {
    const struct kl_record_call *like;
    int n, timed;
    double total_us, least_us, most_us;
};

struct kl_record_answer {
    struct kl_record record;
    struct kl_record_sum sum[KL_RECORD_SUMS]; /* most time first, then most calls */
    int nsum;
};

/** Is the first text a record of calls? False for standard input, and for files that cannot be read. */
bool kl_record_answer_suits(const struct kl_named_text *text, int n);

/** Read and judge. Free with kl_record_answer_fini, also after a failure. */
ncclResult_t kl_record_answer_make(const struct kl_named_text *text, int n, struct kl_record_answer *answer);
void kl_record_answer_fini(struct kl_record_answer *answer);
ncclResult_t kl_record_json(const struct kl_record_answer *answer, FILE *to);

#endif
