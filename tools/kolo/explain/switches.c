/* SPDX-License-Identifier: Apache-2.0 */
/** switches.c - `kolo explain topology.conf`: pods, and the order of hosts that crosses them least. */
#include "answer/switches.h"
#include "base/error.h"
#include "tools/kolo/explain/explain.h"
#include "topo/xml.h"

#include <stdlib.h>
#include <string.h>

enum { PODS = 32, HOSTS = 16, ORDERED = 256 };

/* The switches above a host, from the lowest. */
static void print_path(const struct kl_switches *s, const struct kl_switch_host *h, FILE *to)
{
    for (int at = h->parent; at >= 0; at = s->sw[at].parent)
        fprintf(to, "%s%s", at == h->parent ? "" : " < ", s->sw[at].name);
    if (h->parent < 0) fprintf(to, "no switch");
}

static void print_pods(const struct kl_switches *s, FILE *to)
{
    for (int i = 0, end; i < s->nhosts; i = end) {
        const struct kl_switch_host *first = &s->host[s->by_place[i]];

        if (first->pod == PODS) {
            fprintf(to, "  ... %d more; --json has all\n", s->npods - PODS);
            return;
        }
        fprintf(to, "  pod %-3d ", first->pod);
        print_path(s, first, to);
        fprintf(to, ":");
        for (end = i; end < s->nhosts && s->host[s->by_place[end]].pod == first->pod; end++)
            if (end - i < HOSTS) fprintf(to, " %s", s->host[s->by_place[end]].name);
        if (end - i > HOSTS) fprintf(to, " ... %d more", end - i - HOSTS);
        fprintf(to, "\n");
    }
}

static void print_order(const struct kl_switches *s, FILE *to)
{
    fprintf(to, "\norder of hosts for ranks (a host file, srun --nodelist with --distribution=arbitrary):\n  ");
    for (int i = 0; i < s->nhosts && i < ORDERED; i++) fprintf(to, "%s%s", i ? "," : "", s->host[s->by_place[i]].name);
    fprintf(to, s->nhosts > ORDERED ? ",...; --json has all\n" : "\n");
}

bool kl_explain_is_switches(const char *file)
{
    char *text = NULL;
    size_t bytes;
    bool is = false;
    const int quiet = kl_error_quiet(1);

    if (strcmp(file, "-") && !kl_xml_read(file, &text, &bytes))
        is = kl_input_is_switches(kl_input_of(text, bytes).kind);
    kl_error_quiet(quiet);
    free(text);
    return is;
}

ncclResult_t kl_explain_switches(const struct kl_explain_request *q, FILE *to)
{
    struct kl_switches s;
    ncclResult_t rc = kl_switches_open(q->word[0], &s);

    if (!rc && q->json) {
        rc = kl_switches_json(&s, to);
    } else if (!rc) {
        char line[512];
        struct kl_text text = kl_text_in(line, sizeof line);

        kl_switches_summary(&s, &text);
        fprintf(to, "%s\n", line);
        print_pods(&s, to);
        print_order(&s, to);
        fprintf(to, "\nbytes that cross pods: kolo explain traffic all_reduce 64M --topo MACHINE --pod %s\n",
                q->word[0]);
    }
    kl_switches_fini(&s);
    return rc;
}
