/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/assumed.h"

#include "answer/assumed.h"
#include "plan/finding.h"

void kl_print_preamble(const struct kl_cluster *c, FILE *to)
{
    char nccl[KL_NCCL_TEXT];

    fprintf(to, "NCCL %s: ", kl_nccl_text(c->options.nccl, nccl));
    if (c->assumed.read_as) fprintf(to, "read as %s: %s; ", c->assumed.read_as, c->assumed.summary);
    kl_finding_print(c, to);
}

void kl_finding_print(const struct kl_cluster *c, FILE *to)
{
    char text[KL_FINDING_TEXT];

    if (c->finding.code) fprintf(to, "%s.\n", kl_finding_text(&c->finding, text));
}

void kl_finding_warn(const struct kl_cluster *c)
{
    char text[KL_FINDING_TEXT];

    if (c->finding.code) fprintf(stderr, "warning: %s\n", kl_finding_text(&c->finding, text));
    if (c->assumed.n)
        fprintf(stderr, "warning: %d thing%s assumed that the file does not say; the text of kolo topo lists them\n",
                c->assumed.n, c->assumed.n == 1 ? " is" : "s are");
}

void kl_assumed_print(const struct kl_cluster *c, const char *indent, FILE *to)
{
    if (c->assumed.n) fprintf(to, "%sassumed, as the file does not say it:\n", indent);
    for (int i = 0; i < c->assumed.n; i++) {
        const struct kl_assumption *a = &c->assumed.at[i];
        char text[KL_ASSUMED_TEXT];

        fprintf(to, "%s  %s (%s)\n", indent, kl_assumed_text(a, text), kl_assumed_from_text(a->from));
    }
}

void kl_uncertain_print(const struct kl_cluster *c, const char *indent, FILE *to)
{
    char nccl[KL_NCCL_TEXT];
    const int release = c->options.nccl;

    if (c->uncertain.n)
        fprintf(to, "%suncertain, as NCCL %s's code for it could not be read:\n", indent, kl_nccl_text(release, nccl));
    for (int i = 0; i < c->uncertain.n; i++) {
        const enum kl_change change = c->uncertain.change[i];

        fprintf(to, "%s  %s: %s (%s)\n", indent, kl_uncertain_part(change), kl_change_facts(change)->text,
                kl_nccl_has(release, change) ? "assumed" : "assumed not yet");
    }
}
