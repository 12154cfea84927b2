/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/nics_print.h"

#include "answer/channels.h"
#include "tools/kolo/explain/explain.h"

#include <string.h>

/* ---- GPUs ---- */

static int label_width(const struct kl_nics *n)
{
    int width = 6;

    for (int i = 0; i < n->nnics; i++) {
        int w = (int)strlen(n->nic[i].label) + 9;
        if (w > width) width = w;
    }
    return width < 40 ? width : 40;
}

static void nic_name(int dev, const char *label, char *name, size_t size)
{
    snprintf(name, size, *label ? "NET/%d %s" : "NET/%d", dev, label);
}

/* Columns of the table whose width depends on what is in it. */
struct widths {
    int nic, ring, tree;
    bool nvls;
};

static int wider(int width, uint64_t channels)
{
    char text[256];
    int w = (int)strlen(kl_channels_text(channels, text, sizeof text));

    return w > width ? w : width;
}

static struct widths measure(const struct kl_nics *n)
{
    struct widths w = {.nic = label_width(n), .ring = 8, .tree = 8};

    for (int i = 0; i < n->nnics; i++) {
        w.ring = wider(w.ring, n->nic[i].channels.ring);
        w.tree = wider(w.tree, n->nic[i].channels.tree);
        w.nvls |= n->nic[i].channels.nvls != 0;
    }
    return w;
}

static void print_channels(const struct kl_nic *nic, const struct widths *w, FILE *to)
{
    struct kl_nic_channels c = nic ? nic->channels : (struct kl_nic_channels){0};
    char text[256];

    fprintf(to, "%-*s ", w->ring, kl_channels_text(c.ring, text, sizeof text));
    fprintf(to, "%-*s", w->nvls ? w->tree + 1 : 0, kl_channels_text(c.tree, text, sizeof text));
    fprintf(to, "%s\n", w->nvls ? kl_channels_text(c.nvls, text, sizeof text) : "");
}

static void print_row(const struct kl_nics *n, const struct kl_nic_gpu *g, const struct widths *w, FILE *to)
{
    char gpu[24], name[96], proxy[24] = "-";

    snprintf(gpu, sizeof gpu, "GPU/%d", g->rank);
    if (g->net < 0) {
        fprintf(to, "  %-8s none\n", gpu);
        return;
    }
    nic_name(g->net, g->label, name, sizeof name);
    if (g->proxy != g->rank) snprintf(proxy, sizeof proxy, "GPU/%d", g->proxy);
    fprintf(to, "  %-8s %-*s %-4s %7g  %-5s %-8s %-8s ", gpu, w->nic, name, kl_path_type_name[g->type], (double)g->bw,
            g->gdr_send.mode ? "yes" : "no", g->gdr_recv.mode ? "yes" : "no", proxy);
    print_channels(kl_nics_at(n, g->net), w, to);
}

static void print_heading(const struct widths *w, const char *const text[9], FILE *to)
{
    fprintf(to, "  %-8s %-*s %-4s %7s  %-5s %-8s %-8s ", text[0], w->nic, text[1], text[2], text[3], text[4], text[5],
            text[6]);
    fprintf(to, "%-*s %-*s%s\n", w->ring, text[7], w->nvls ? w->tree + 1 : 0, text[8],
            !w->nvls   ? ""
            : *text[0] ? "of NVLS"
                       : "channels");
}

static void print_gpus(const struct kl_nics *n, FILE *to)
{
    static const char *const above[] = {"", "", "", "", "GDR", "GDR", "PXN", "channels", "channels"};
    static const char *const below[] = {"GPU",     "NIC",     "path",     "GB/s",    "send",
                                        "receive", "through", "of rings", "of trees"};
    struct widths w = measure(n);

    fprintf(to, "\nGPUs of %s, and their own NICs:\n", n->hosts > 1 ? "each host" : "the host");
    print_heading(&w, above, to);
    print_heading(&w, below, to);
    for (int i = 0; i < n->nrows; i++) print_row(n, &n->gpu[i], &w, to);
}

/* In which directions GPUDirect is off. */
enum no_gdr { NO_GDR_NOWHERE, NO_GDR_BOTH, NO_GDR_SEND, NO_GDR_RECV };

static enum no_gdr no_gdr(const struct kl_nic_gpu *g)
{
    if (g->net < 0 || (g->gdr_send.mode && g->gdr_recv.mode)) return NO_GDR_NOWHERE;
    if (!g->gdr_send.mode && !g->gdr_recv.mode) return NO_GDR_BOTH;
    return g->gdr_send.mode ? NO_GDR_RECV : NO_GDR_SEND;
}

/* The answer that says why. */
static const struct kl_gdr *refused_gdr(const struct kl_nic_gpu *g)
{
    return g->gdr_send.mode ? &g->gdr_recv : &g->gdr_send;
}

static bool same_no_gdr(const struct kl_nic_gpu *a, const struct kl_nic_gpu *b)
{
    return no_gdr(a) == no_gdr(b) && refused_gdr(a)->why == refused_gdr(b)->why;
}

/* One line for each reason: the first GPU that has it, and how many more. */
static void print_no_gdr(const struct kl_nics *n, FILE *to)
{
    static const char *const ways[] = {
        [NO_GDR_BOTH] = "", [NO_GDR_SEND] = " for sending", [NO_GDR_RECV] = " for receiving"};
    char why[KL_WHY_TEXT];

    for (int i = 0; i < n->nrows; i++) {
        int more = 0, before = 0;

        for (int k = 0; k < n->nrows; k++) {
            bool same = same_no_gdr(&n->gpu[k], &n->gpu[i]);
            before += same && k < i;
            more += same && k > i;
        }
        if (no_gdr(&n->gpu[i]) == NO_GDR_NOWHERE || before) continue;
        fprintf(to, "  no GDR%s: %s", ways[no_gdr(&n->gpu[i])], kl_gdr_why_text(refused_gdr(&n->gpu[i]), why));
        fprintf(to, more ? "; the same for %d more row%s\n" : "\n", more, kl_plural(more));
    }
}

/* ---- NICs ---- */

static bool same_fate(const struct kl_nic *a, const struct kl_nic *b)
{
    return a->state == b->state && (a->state == KL_NIC_USED || kl_nic_same_idle(a, b));
}

/* "NET/0-3, 5": the device numbers of those NICs that `like` the first, ascending. */
static void print_devs(const struct kl_nics *n, const struct kl_nic *x,
                       bool (*like)(const struct kl_nic *a, const struct kl_nic *b), FILE *to)
{
    const char *before = "NET/";
    int last = -1, run = -1; /* the last number of a run, and where the run began */

    for (int next = x->dev; next >= 0;) {
        int dev = next;

        next = -1;
        if (last < 0 || dev > last + 1) {
            if (last > run) fprintf(to, "-%d", last);
            fprintf(to, "%s%d", before, dev);
            run = dev;
        }
        before = ", ";
        last = dev;
        for (int i = 0; i < n->nnics; i++)
            if (n->nic[i].dev > dev && (next < 0 || n->nic[i].dev < next) && like(&n->nic[i], x)) next = n->nic[i].dev;
    }
    if (last > run) fprintf(to, "-%d", last);
}

static bool first_like(const struct kl_nics *n, int first, bool (*like)(const struct kl_nic *a, const struct kl_nic *b))
{
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].dev < n->nic[first].dev && like(&n->nic[i], &n->nic[first])) return false;
    return true;
}

static void print_left_out(const struct kl_nics *n, FILE *to)
{
    char why[KL_NIC_TEXT];

    if (!n->offhost || !kl_nics_left_out(n)) return;
    fprintf(to, "\nNICs that no ring, tree or NVLS channel uses:\n");
    for (int i = 0; i < n->nnics; i++) {
        const struct kl_nic *x = &n->nic[i];

        if (x->state == KL_NIC_USED || !first_like(n, i, same_fate)) continue;
        fputs("  ", to);
        print_devs(n, x, same_fate, to);
        fprintf(to, ": %s%s\n", kl_nic_idle_text(n, &x->idle, why),
                x->state == KL_NIC_SENDRECV ? "; sends and receives use it" : "");
    }
}

static void print_strangers(const struct kl_nics *n, FILE *to)
{
    char name[96], ring[256], tree[256];

    if (!kl_nics_strangers(n)) return;
    fprintf(to, "\nNICs that channels use though no GPU would choose them:\n");
    for (int i = 0; i < n->nnics; i++) {
        const struct kl_nic *x = &n->nic[i];

        if (x->state != KL_NIC_USED || x->owned_by) continue;
        nic_name(x->dev, x->label, name, sizeof name);
        fprintf(to, "  %-*s %g GB/s: rings %s; trees %s\n", label_width(n), name, (double)x->bw,
                kl_channels_text(x->channels.ring, ring, sizeof ring),
                kl_channels_text(x->channels.tree, tree, sizeof tree));
    }
}

/* Is the i-th pair the first of its first NIC, and of the given distance? */
static bool begins_group(const struct kl_nics *n, int i, int distance)
{
    if (n->near[i].distance != distance) return false;
    for (int k = 0; k < i; k++)
        if (n->near[k].a == n->near[i].a) return false;
    return true;
}

/* "NET/0 and 1; NET/2 and 3 are ports of one card": all groups of a distance. */
static void print_near(const struct kl_nics *n, int distance, FILE *to)
{
    int groups = 0;

    for (int i = 0; i < n->nnear; i++) {
        if (!begins_group(n, i, distance)) continue;
        fprintf(to, groups++ ? "; NET/%d" : "  NET/%d", n->near[i].a);
        for (int k = i; k < n->nnear; k++)
            if (n->near[k].a == n->near[i].a) fprintf(to, "+%d", n->near[k].b);
    }
    if (groups)
        fprintf(to, ": %s, near enough to be merged (NCCL_NET_MERGE_LEVEL)\n",
                distance == KL_PATH_PORT ? "ports of one card" : kl_path_type_name[distance]);
}

static void print_merged(const struct kl_nics *n, FILE *to)
{
    int merged = 0;

    for (int i = 0; i < n->nnics; i++) merged += n->nic[i].members > 1;
    if (!merged && !n->nnear) return;
    fprintf(to, "\nMerging:\n");
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].members > 1)
            fprintf(to, "  NET/%d is %d NICs merged into one: %s, %g GB/s together\n", n->nic[i].dev, n->nic[i].members,
                    n->nic[i].label, (double)n->nic[i].bw);
    for (int distance = KL_PATH_PORT; distance <= n->merge_level; distance++) print_near(n, distance, to);
    fprintf(to, "  %s.\n", kl_merge_why_text(n->merge));
}

static bool same_port(const struct kl_nic *a, const struct kl_nic *b)
{
    return a->same_as == b->same_as;
}

static void print_alike(const struct kl_nics *n, FILE *to)
{
    if (n->repeated)
        fprintf(to, "\n%d entr%s of the file repeat%s the number of an earlier NIC and %s ignored.\n", n->repeated,
                n->repeated == 1 ? "y" : "ies", n->repeated == 1 ? "s" : "", n->repeated == 1 ? "is" : "are");
    if (kl_nics_alike(n) < 2) return;
    fprintf(to, "\nNICs that count as one port, whose bandwidth the searches spend once:\n");
    for (int i = 0; i < n->nnics; i++) {
        const struct kl_nic *x = &n->nic[i];

        if (x->nsame < 2 || !first_like(n, i, same_port)) continue;
        fputs("  ", to);
        print_devs(n, x, same_port, to);
        fprintf(to, ": guid %#llx, port %d\n", (unsigned long long)x->asic, x->port);
    }
    if (n->bad_guids)
        fprintf(to, "  A guid counts only if it is written as 0x...; any other is 0. Correct the file.\n");
}

/* ---- rails ---- */

enum { RAILS_SHOWN = 32 };

static void print_crossing(const struct kl_nics *n, FILE *to)
{
    int shown = 0;
    char channels[256];

    for (int i = 0; i < n->nrails; i++) {
        const struct kl_rail *r = &n->rail[i];

        if (r->from == r->to) continue;
        if (++shown > RAILS_SHOWN) break;
        fprintf(to, "  %s NET/%d %s NET/%d  channels %s   <- changes rails\n", kl_traffic_name(r->traffic), r->from,
                r->traffic == KL_TRAFFIC_RING ? "->" : "<->", r->to,
                kl_channels_text(r->channels, channels, sizeof channels));
    }
    if (shown > RAILS_SHOWN) fprintf(to, "  ... %d in all: see --json\n", kl_nics_crossing(n));
}

static void print_rails(const struct kl_nics *n, FILE *to)
{
    int crossing = kl_nics_crossing(n);

    if (!n->nrails) return;
    if (n->nnodes > n->hosts)
        fprintf(to, "\nFrom node to node (each host is %d nodes, between which the network is faster):\n",
                n->nnodes / n->hosts);
    else
        fprintf(to, "\nFrom host to host (they are alike; the connections of all of them):\n");
    if (crossing < n->nrails)
        fprintf(to, "  %s ring and tree connections stay on their rail: NET/i talks to NET/i\n",
                crossing ? "Other" : "All");
    print_crossing(n, to);
    if (crossing && n->cross_nic)
        fprintf(to, "  With NCCL_CROSS_NIC=0 in the environment this command shows what is found on rails alone.\n");
}

void kl_nics_text(const struct kl_nics *n, const struct kl_cluster *cluster, FILE *to)
{
    char sentence[1024];
    struct kl_text text = kl_text_in(sentence, sizeof sentence);

    kl_nics_summary(n, &text);
    fprintf(to, "%s.\n", sentence);
    kl_explain_place(cluster, n->assumed ? ", because one host alone uses no NIC; --hosts N plans for more" : "", to);
    if (!n->nnics) return;
    print_gpus(n, to);
    print_no_gdr(n, to);
    print_rails(n, to);
    print_strangers(n, to);
    print_left_out(n, to);
    print_alike(n, to);
    print_merged(n, to);
}
