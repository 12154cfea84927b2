/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/findings_make.h"

#include <stdlib.h>
#include <string.h>

/* Of findings that weigh the same, causes come in their order, then those about ranks and the machine. A cause without a name
 * comes after those with one. */
static int order_of(const struct kl_log_finding *f)
{
    bool unknown = f->code == KL_FOUND_CAUSE && f->cause == KL_CAUSE_NONE;

    return (int)f->weight * 10000 + (unknown ? KL_CAUSES - 1 : (int)f->code * 100 + (int)f->cause);
}

static int worst_first(const void *x, const void *y)
{
    const struct kl_log_finding *a = x, *b = y;
    int d = order_of(a) - order_of(b);

    return d ? d : a->at.file != b->at.file ? a->at.file - b->at.file : a->at.line - b->at.line;
}

ncclResult_t kl_log_findings_make(const struct kl_log *log, struct kl_log_findings *findings)
{
    struct kl_finding_list list = {log, findings, ncclSuccess};

    *findings = (struct kl_log_findings){.n = 0};
    kl_found_job(&list);
    kl_found_ops(&list);
    kl_found_init(&list);
    kl_found_ranks(&list);
    kl_found_machine(&list);
    kl_found_traffic(&list);
    if (findings->n) qsort(findings->finding, (size_t)findings->n, sizeof *findings->finding, worst_first);
    return list.rc;
}

void kl_log_findings_fini(struct kl_log_findings *findings)
{
    for (int i = 0; i < findings->ntexts; i++) free(findings->texts[i]);
    free(findings->texts);
    free(findings->finding);
    *findings = (struct kl_log_findings){.n = 0};
}
