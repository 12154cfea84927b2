/* SPDX-License-Identifier: Apache-2.0 */
/** findings_list.c - a list of findings as it grows. */
#include "base/error.h"
#include "logs/findings_make.h"

#include <stdlib.h>
#include <string.h>

enum { FINDINGS = 4096 };

void kl_finding_add(struct kl_finding_list *list, struct kl_log_finding finding)
{
    struct kl_log_findings *f = list->out;

    if (list->rc) return;
    if (f->n == FINDINGS) {
        f->dropped++;
        return;
    }
    if (f->n == f->max) {
        int max = f->max ? 2 * f->max : 32;
        void *grown = realloc(f->finding, (size_t)max * sizeof *f->finding);

        if (!grown) {
            list->rc = KL_NOMEM("findings of a log");
            return;
        }
        f->finding = grown;
        f->max = max;
    }
    if (!finding.times) finding.times = 1;
    if (!finding.norigins) finding.norigins = 1;
    f->finding[f->n++] = finding;
}

bool kl_finding_has(const struct kl_finding_list *list, enum kl_log_code code, enum kl_log_cause cause)
{
    for (int i = 0; i < list->out->n; i++) {
        const struct kl_log_finding *f = &list->out->finding[i];

        if (f->code == code && (code != KL_FOUND_CAUSE || f->cause == cause)) return true;
    }
    return false;
}

static char **room(struct kl_log_findings *f)
{
    if (f->ntexts == f->maxtexts) {
        int max = f->maxtexts ? 2 * f->maxtexts : 32;
        char **grown = realloc(f->texts, (size_t)max * sizeof *grown);

        if (!grown) return NULL;
        f->texts = grown;
        f->maxtexts = max;
    }
    return &f->texts[f->ntexts];
}

const char *kl_finding_keep(struct kl_finding_list *list, const char *text)
{
    char **at = room(list->out);

    if (at && (*at = strdup(text))) return list->out->texts[list->out->ntexts++];
    list->rc = KL_NOMEM("findings of a log");
    return "";
}
