/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/explain/traffic_print.h"

enum { ROWS = 16, MOST_HOSTS = 64 };

static void print_best(const struct kl_traffic_answer *x, FILE *to)
{
    const struct kl_op_traffic *l = &x->traffic;
    const char *const *name = x->question.host_name;

    if (l->best_across_pods == l->across_pods) {
        fprintf(to, "  no order of hosts was found that crosses pods less\n");
        return;
    }
    fprintf(to, "  %.1f MB cross pods with the hosts in this order:", kl_megabytes(l->best_across_pods));
    for (int h = 0; h < l->nhosts && h < MOST_HOSTS; h++) {
        if (name)
            fprintf(to, " %s", name[l->best_order[h]]);
        else
            fprintf(to, " %d", l->best_order[h]);
    }
    fprintf(to, l->nhosts > MOST_HOSTS ? " ...; --json has all\n" : "\n");
}

/* Sends and receives of several records, joined. */
static void print_messages(const struct kl_traffic_trace *t, FILE *to)
{
    const int64_t alone = t->sends_alone + t->receives_alone;

    if (t->messages)
        fprintf(to, "  messages: %lld with both sides recorded, %lld with the send only, %lld with the receive only\n",
                (long long)(t->messages - alone), (long long)t->sends_alone, (long long)t->receives_alone);
    if (t->all_to_alls) fprintf(to, "  all-to-all: an even part to each rank, of unequal parts as well\n");
}

static void print_network(const struct kl_traffic_answer *x, FILE *to)
{
    const struct kl_op_traffic *l = &x->traffic;

    if (x->is_trace) print_messages(&x->trace, to);
    if (x->is_trace && x->trace.skipped)
        fprintf(to,
                "  not counted: %lld call%s, the first is %s: unknown sizes or peers, gathers and scatters, and groups "
                "whose ranks are unknown or whose hosts use different GPUs\n",
                (long long)x->trace.skipped, kl_plural(x->trace.skipped), x->trace.first_skipped);
    if (l->nhosts < 2) return;
    fprintf(to, "  %.1f MB cross hosts, %.1f of them rails", kl_megabytes(l->across_hosts),
            kl_megabytes(l->across_rails));
    if (x->pod) fprintf(to, ", %.1f pods", kl_megabytes(l->across_pods));
    fprintf(to, "\n");
    if (x->pod) print_best(x, to);
    fprintf(to, "\n  %-6s %-8s %9s %9s %9s %9s\n", "host", "NIC", "GB/s", "MB out", "MB in", "us");
    for (int i = 0; i < l->nnics && i < ROWS; i++) {
        const struct kl_op_traffic_nic *n = &l->nic[i];

        fprintf(to, "  %-6d NET/%-4d %9g %9.1f %9.1f %9.1f%s\n", n->host, n->dev, (double)n->bw,
                kl_megabytes(n->flow.wire[0]), kl_megabytes(n->flow.wire[1]), kl_op_traffic_nic_us(n),
                n->flow.wire[0] || n->flow.wire[1] ? "" : "  idle");
    }
    if (l->nnics > ROWS) fprintf(to, "  ... %d more; --json has all\n", l->nnics - ROWS);
}

static void print_links(const struct kl_traffic_answer *x, FILE *to)
{
    const struct kl_op_traffic *l = &x->traffic;
    char text[KL_LINK_TEXT];

    fprintf(to, "\n  %-6s %-28s %9s %9s %9s\n", "host", "link", "GB/s", "MB", "us");
    for (int i = 0; i < l->nlinks && i < ROWS; i++)
        fprintf(to, "  %-6d %-28s %9g %9.1f %9.1f\n", l->link[i].host, kl_traffic_link_text(x, &l->link[i], text),
                (double)l->link[i].bw, kl_megabytes(l->link[i].wire), kl_op_traffic_us(l->link[i].wire, l->link[i].bw));
    if (l->nlinks > ROWS) fprintf(to, "  ... %d more; --json has all\n", l->nlinks - ROWS);
}

void kl_traffic_text(const struct kl_traffic_answer *x, FILE *to)
{
    char line[512];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_traffic_summary(x, &text);
    if (x->is_trace)
        fprintf(to, "%d file%s, read as %s, over %d rank%s", x->trace.files, kl_plural(x->trace.files), x->trace.kind,
                x->asked.ranks, kl_plural(x->asked.ranks));
    else
        kl_coll_headline(&x->asked, to);
    fprintf(to, ": %s\n", line);
    kl_explain_place(x->asked.cluster, "", to);
    fprintf(to, "  %.1f MB in all, on the wire (%.1f MB of data); times: bytes by bandwidth, nothing else counted\n",
            kl_megabytes(x->traffic.wire), kl_megabytes(x->traffic.payload));
    print_network(x, to);
    print_links(x, to);
}
