/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair_print.h"

#include "answer/channels.h"
#include "tools/kolo/explain/explain.h"
#include "topo/paths.h"

#include <string.h>

/* ---- the way ---- */

/* `host`: the one it is in, -1 where there is no doubt. */
static void print_segment(const struct kl_pair_segment *l, int host, FILE *to)
{
    fprintf(to, "\nPath from %s to %s", l->from, l->to);
    if (host >= 0) fprintf(to, " in host %d", host);
    fprintf(to, ": %s, %g GB/s, %d link%s\n", kl_path_type_name[l->type], (double)l->narrowest, l->nlinks,
            l->nlinks == 1 ? "" : "s");
    for (int k = 0; k < l->nlinks; k++)
        fprintf(to, "  %-18s %s %8g GB/s  %s%s\n", l->link[k].from, kl_link_type_name[l->link[k].type],
                (double)l->link[k].bw, l->link[k].to, l->link[k].bottleneck ? "   <- bottleneck" : "");
    if (l->nlinks && l->bw != l->narrowest && l->bw < KL_BW_LOCAL)
        fprintf(to, "  The links differ by direction: NCCL takes a path's bandwidth from the way back, here %g GB/s\n",
                (double)l->bw);
    fprintf(to, "  %s: %s\n", kl_path_type_name[l->type], kl_path_type_text(l->type));
    if (l->type != KL_PATH_DIS) fprintf(to, "  Chosen: %s\n", kl_path_rule_text(l->rule));
}

/* ---- transports ---- */

static void print_transports(const struct kl_pair_route *r, FILE *to)
{
    char why[KL_PAIR_TEXT];

    fprintf(to, "\nTransports in the order in which they are tried, each rank being a process:\n");
    for (int i = 0; i < r->ntransports; i++) {
        const struct kl_pair_transport *x = &r->transport[i];

        fprintf(to, "  %-4s %-8s %s\n", kl_pair_transport_name(x),
                x->chosen                 ? "chosen"
                : x->refusal || x->no_nic ? "refuses"
                                          : "possible",
                kl_pair_transport_text(r, x, why));
    }
    if (!r->threads) return;
    fprintf(to, "%s %s between processes, %s between threads of one process.\n",
            r->gpus ? "Live, Kolo's CPU devices playing this machine use" : "Live, these CPU devices use",
            r->processes ? r->processes->name : "nothing", r->threads->name);
}

/* ---- NICs ---- */

static void side_cell(const struct kl_pair_side *s, char *cell, size_t size)
{
    struct kl_text t = kl_text_in(cell, size);

    if (s->dev < 0)
        kl_text_add(&t, "none");
    else
        kl_text_add(&t, "NET/%d %s %s %g", s->dev, s->label, kl_path_type_name[s->type], (double)s->bw);
}

static void print_nics(const struct kl_pair_nics *n, int width, FILE *to)
{
    char channels[256], send[128], recv[128], proxy[32] = "-";

    side_cell(&n->send, send, sizeof send);
    side_cell(&n->recv, recv, sizeof recv);
    if (n->send.proxy != n->send.rank) snprintf(proxy, sizeof proxy, "GPU/%d", n->send.proxy);
    fprintf(to, "  %-10s %-12s %-*s %-8s %-5s %-*s %s\n", kl_traffic_name(n->traffic),
            kl_channels_text(n->channels, channels, sizeof channels), width, send, proxy,
            n->send.gdr.mode ? "yes" : "no", width, recv, n->recv.gdr.mode ? "yes" : "no");
}

static int widest_side(const struct kl_pair_route *r)
{
    int width = 12;
    char cell[128];

    for (int i = 0; i < r->nnics; i++) {
        side_cell(&r->nics[i].send, cell, sizeof cell);
        if ((int)strlen(cell) > width) width = (int)strlen(cell);
        side_cell(&r->nics[i].recv, cell, sizeof cell);
        if ((int)strlen(cell) > width) width = (int)strlen(cell);
    }
    return width;
}

static bool same_choice(const struct kl_pair_nics *a, const struct kl_pair_nics *b)
{
    return kl_pair_same_nic_why(&a->send.why, &b->send.why) && kl_pair_same_nic_why(&a->recv.why, &b->recv.why);
}

/* Why these NICs: once for all traffic with the same reasons. */
static void print_choices(const struct kl_pair_route *r, int i, FILE *to)
{
    const struct kl_pair_nics *n = &r->nics[i];
    char send[KL_PAIR_TEXT], recv[KL_PAIR_TEXT];

    for (int p = 0; p < i; p++)
        if (same_choice(&r->nics[p], n)) return;
    fputs(kl_traffic_name(n->traffic), to);
    for (int p = i + 1; p < r->nnics; p++)
        if (same_choice(&r->nics[p], n) && r->nics[p].traffic != r->nics[p - 1].traffic)
            fprintf(to, ", %s", kl_traffic_name(r->nics[p].traffic));
    fprintf(to, ":\n  NIC that sends: %s\n  NIC that receives: %s\n", kl_pair_nic_text(&n->send.why, send),
            kl_pair_nic_text(&n->recv.why, recv));
}

static void print_gdr(const struct kl_gdr *gdr, bool sends, FILE *to)
{
    char why[KL_WHY_TEXT];

    fprintf(to, "GPUDirect for %s: %s, %s\n", sends ? "sending" : "receiving", gdr->mode ? "yes" : "no",
            kl_gdr_why_text(gdr, why));
}

static const struct kl_pair_side *side_of(const struct kl_pair_nics *n, bool sends)
{
    return sends ? &n->send : &n->recv;
}

/* Each reason for or against GPUDirect once. */
static void print_gdrs(const struct kl_pair_route *r, bool sends, FILE *to)
{
    for (int i = 0; i < r->nnics; i++) {
        const struct kl_pair_side *s = side_of(&r->nics[i], sends);
        bool said = s->dev < 0;

        for (int p = 0; p < i; p++) {
            const struct kl_pair_side *before = side_of(&r->nics[p], sends);
            said |= before->dev >= 0 && kl_pair_same_gdr_why(&before->gdr, &s->gdr);
        }
        if (!said) print_gdr(&s->gdr, sends, to);
    }
}

static void print_all_nics(const struct kl_pair_route *r, FILE *to)
{
    int width = widest_side(r);
    bool direct = false;

    fprintf(to, "\nNICs from %s to %s, with path and GB/s between GPU and NIC:\n", r->a.name, r->b.name);
    fprintf(to, "  %-10s %-12s %-*s %-8s %-5s %-*s %s\n", "for", "channels", width, "sends by", "PXN by", "GDR", width,
            "receives by", "GDR");
    for (int i = 0; i < r->nnics; i++) {
        print_nics(&r->nics[i], width, to);
        direct |= r->nics[i].traffic != KL_TRAFFIC_SENDRECV;
    }
    if (!direct) fprintf(to, "  No ring or tree goes from %s to %s directly.\n", r->a.name, r->b.name);
    fputc('\n', to);
    for (int i = 0; i < r->nnics; i++) print_choices(r, i, to);
    print_gdrs(r, true, to);
    print_gdrs(r, false, to);
}

static void print_nic(const struct kl_pair_route *r, FILE *to)
{
    char why[KL_WHY_TEXT];

    fputc('\n', to);
    print_gdr(&r->gdr_send, true, to);
    print_gdr(&r->gdr_recv, false, to);
    fprintf(to, "PXN for sending: %s, %s\n", r->pxn.why == KL_PXN_USED ? "yes" : "no",
            kl_pxn_why_text(r->pxn.why, r->relay, why));
}

void kl_pair_text(const struct kl_pair_route *r, const struct kl_cluster *cluster, FILE *to)
{
    char sentence[1024];
    struct kl_text text = kl_text_in(sentence, sizeof sentence);

    kl_pair_summary(r, &text);
    fprintf(to, "%s.\n", sentence);
    kl_explain_place(cluster, "", to);
    for (int i = 0; i < r->nsegments; i++)
        print_segment(&r->segment[i], r->nsegments == 1 ? -1 : i ? r->b.host : r->a.host, to);
    if (r->ntransports) print_transports(r, to);
    if (r->nnics) print_all_nics(r, to);
    if (r->answer == KL_PAIR_NIC) print_nic(r, to);
}
