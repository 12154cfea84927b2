/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as one or two records of calls, of the kind that their content shows: reading and judging must be safe, findings ordered. */
#include "answer/record.h"
#include "base/error.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check_findings(const struct kl_record *r)
{
    char text[4096];

    for (int i = 0; i < r->nfinding; i++) {
        const struct kl_record_finding *f = &r->finding[i];
        struct kl_text t = kl_text_in(text, sizeof text);

        if (i && f->weight < f[-1].weight) abort(); /* worst first */
        if (f->first + f->n > r->nlist || f->first_other + f->nothers > r->nlist) abort();
        if (f->call >= r->ncall || f->other_call >= r->ncall || f->group >= r->ngroup) abort();
        kl_record_finding_text(r, f, &t);
        if (!*text) abort();
        kl_record_finding_remedy(r, f, &t);
    }
}

/* The same text as the files of two ranks, so that rules about several have work. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_record_answer *a = calloc(1, sizeof *a);
    FILE *nowhere = fopen("/dev/null", "w");
    char *copy = malloc(bytes ? bytes : 1); /* no more: nothing behind it may be read */

    kl_error_quiet(1);
    if (!a || !nowhere || !copy) abort();
    if (bytes) memcpy(copy, data, bytes);
    const struct kl_named_text text[] = {{"rank_0", copy, bytes}, {"rank_1", copy, bytes}};

    if (kl_record_answer_suits(text, 2) && !kl_record_answer_make(text, 2, a)) {
        check_findings(&a->record);
        if (kl_record_json(a, nowhere)) abort();
    }
    kl_record_answer_fini(a);
    fclose(nowhere);
    free(copy);
    free(a);
    return 0;
}
