/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair.h"

#include "base/text.h"
#include "tools/kolo/channels.h"

#include <string.h>

/* ---- the sentence ---- */

static const struct kl_talk_transport *chosen(const struct kl_talk *k)
{
    for (int i = 0; i < k->ntransports; i++)
        if (k->transport[i].chosen) return &k->transport[i];
    return NULL;
}

/* "P2P is refused: why; SHM is refused: why": those before the one that is taken. */
static void add_refusals(const struct kl_talk *k, struct kl_text *to)
{
    for (int i = 0; i < k->ntransports && !k->transport[i].chosen; i++)
        kl_text_add(to, "%s%s is refused because %s", i ? "; " : ": ", k->transport[i].name, k->transport[i].why.text);
}

/* The NICs of sends and receives. */
static void add_nics(const struct kl_talk_route *r, struct kl_text *to)
{
    if (r->send.dev < 0 || r->recv.dev < 0) return;
    kl_text_add(to, ", from NET/%d", r->send.dev);
    if (r->send.proxy != r->send.rank) kl_text_add(to, " by GPU/%d (PXN)", r->send.proxy);
    kl_text_add(to, " to NET/%d%s", r->recv.dev, r->send.dev == r->recv.dev ? "" : " (changes rails)");
}

static void summarize_gpus(const struct kl_talk *k, struct kl_text *to)
{
    const struct kl_talk_transport *x = chosen(k);

    if (!x) {
        kl_text_add(to, "Nothing joins %s and %s", k->a.name, k->b.name);
    } else {
        bool p2p = !strcmp(x->name, "P2P"), shm = !strcmp(x->name, "SHM");

        kl_text_add(to, "%s and %s talk %s", k->a.name, k->b.name,
                    p2p   ? "directly (P2P)"
                    : shm ? "through shared memory (SHM)"
                          : "through the network (NET)");
        if (p2p && k->via >= 0) kl_text_add(to, " by way of GPU/%d", k->via);
        if (k->bw > 0) kl_text_add(to, ", %g GB/s", (double)k->bw);
        if (k->nroutes) add_nics(&k->route[0], to);
    }
    if (k->a.shift != k->b.shift)
        kl_text_add(to, ": they are in different hosts%s", x ? "" : ", and this machine has no NIC");
    else if (x && x == k->transport)
        kl_text_add(to, ": %s", x->why.text);
    else
        add_refusals(k, to);
    if (k->answer == KL_TALK_NETWORK && !k->gpus)
        kl_text_add(to, "; that is a plan, for communicators join the ranks of one host so far");
    if (x && !k->gpus && k->threads && strcmp(k->threads, x->name) != 0)
        kl_text_add(to, "; as threads of one process they would use %s", k->threads);
}

static void add_end(const struct kl_talk_end *e, struct kl_text *to)
{
    kl_text_add(to, *e->label ? "%s (%s)" : "%s", e->name, e->label);
}

/* The GPU of a GPU and a NIC. */
static const struct kl_talk_end *gpu_of(const struct kl_talk *k)
{
    return k->a.type == KL_NODE_GPU ? &k->a : &k->b;
}

static void summarize_nic(const struct kl_talk *k, struct kl_text *to)
{
    bool sends = k->a.type == KL_NODE_GPU;
    const struct kl_talk_end *g = gpu_of(k);
    bool send = k->gdr_send.mode != KL_GDR_OFF, recv = k->gdr_recv.mode != KL_GDR_OFF;

    add_end(&k->a, to);
    kl_text_add(to, sends ? " sends to " : " delivers to ");
    add_end(&k->b, to);
    if (sends && k->relay != g->rank)
        kl_text_add(to, " through GPU/%d (PXN)", k->relay);
    else
        kl_text_add(to, " over %s", kl_path_type_name[k->leg[0].type]);
    kl_text_add(to, ", %g GB/s; GPUDirect %s; ", (double)k->bw,
                send && recv ? "both ways"
                : recv       ? "for receiving only"
                : send       ? "for sending only"
                             : "neither way");
    if (k->own)
        kl_text_add(to, "it is %s's own NIC", g->name);
    else
        kl_text_add(to, "%s's own is %s", g->name, *k->instead ? k->instead : "none");
}

void kl_talk_summary(const struct kl_talk *k, struct kl_text *to)
{
    if (k->answer == KL_TALK_NIC)
        summarize_nic(k, to);
    else if (k->answer == KL_TALK_PATH)
        kl_text_add(to, "%s to %s: %s, %g GB/s", k->a.name, k->b.name, kl_path_type_name[k->leg[0].type],
                    (double)k->bw);
    else
        summarize_gpus(k, to);
}

/* ---- the way ---- */

/* `host`: the one it is in, -1 where there is no doubt. */
static void print_leg(const struct kl_talk_leg *l, int host, FILE *to)
{
    fprintf(to, "\nPath from %s to %s", l->from, l->to);
    if (host >= 0) fprintf(to, " in host %d", host);
    fprintf(to, ": %s, %g GB/s, %d link%s\n", kl_path_type_name[l->type], (double)l->narrowest, l->nlinks,
            l->nlinks == 1 ? "" : "s");
    for (int k = 0; k < l->nlinks; k++)
        fprintf(to, "  %-18s %s %8g GB/s  %s%s\n", l->link[k].from, l->link[k].type, (double)l->link[k].bw,
                l->link[k].to, l->link[k].bottleneck ? "   <- bottleneck" : "");
    if (l->nlinks && l->bw != l->narrowest && l->bw < KL_BW_LOCAL)
        fprintf(to, "  The links are not as wide both ways: NCCL takes a path's width from those back, here %g GB/s\n",
                (double)l->bw);
    fprintf(to, "  %s: %s\n", kl_path_type_name[l->type], kl_path_type_text(l->type));
    if (l->type != KL_PATH_DIS) fprintf(to, "  Chosen: %s\n", kl_path_rule_text(l->rule));
}

/* ---- transports ---- */

static void print_transports(const struct kl_talk *k, FILE *to)
{
    fprintf(to, "\nTransports in the order in which they are asked, each rank being a process:\n");
    for (int i = 0; i < k->ntransports; i++) {
        const struct kl_talk_transport *x = &k->transport[i];

        fprintf(to, "  %-4s %-8s %s\n", x->name,
                x->chosen    ? "chosen"
                : x->refuses ? "refuses"
                             : "possible",
                x->why.text);
    }
    if (!k->threads) return;
    fprintf(to, "%s %s between processes, %s between threads of one process.\n",
            k->gpus ? "Live, Kolo's CPU devices playing this machine use" : "Live, these CPU devices use",
            k->processes ? k->processes : "nothing", k->threads);
}

/* ---- NICs ---- */

static void side_cell(const struct kl_talk_side *s, char *cell, size_t size)
{
    struct kl_text t = kl_text_over(cell, size);

    if (s->dev < 0)
        kl_text_add(&t, "none");
    else
        kl_text_add(&t, "NET/%d %s %s %g", s->dev, s->label, kl_path_type_name[s->type], (double)s->bw);
}

static void print_route(const struct kl_talk_route *r, int width, FILE *to)
{
    char channels[256], send[128], recv[128], proxy[32] = "-";

    side_cell(&r->send, send, sizeof send);
    side_cell(&r->recv, recv, sizeof recv);
    if (r->send.proxy != r->send.rank) snprintf(proxy, sizeof proxy, "GPU/%d", r->send.proxy);
    fprintf(to, "  %-10s %-12s %-*s %-8s %-5s %-*s %s\n", kl_talk_use_name(r->use),
            kl_channels_text(r->channels, channels, sizeof channels), width, send, proxy, r->send.gdr ? "yes" : "no",
            width, recv, r->recv.gdr ? "yes" : "no");
}

static int widest_side(const struct kl_talk *k)
{
    int width = 12;
    char cell[128];

    for (int i = 0; i < k->nroutes; i++) {
        side_cell(&k->route[i].send, cell, sizeof cell);
        if ((int)strlen(cell) > width) width = (int)strlen(cell);
        side_cell(&k->route[i].recv, cell, sizeof cell);
        if ((int)strlen(cell) > width) width = (int)strlen(cell);
    }
    return width;
}

static bool same_choice(const struct kl_talk_route *a, const struct kl_talk_route *b)
{
    return !strcmp(a->send.why.text, b->send.why.text) && !strcmp(a->recv.why.text, b->recv.why.text);
}

/* Why these NICs: once for all uses with the same reasons. */
static void print_choices(const struct kl_talk *k, int i, FILE *to)
{
    const struct kl_talk_route *r = &k->route[i];

    for (int p = 0; p < i; p++)
        if (same_choice(&k->route[p], r)) return;
    fputs(kl_talk_use_name(r->use), to);
    for (int p = i + 1; p < k->nroutes; p++)
        if (same_choice(&k->route[p], r) && k->route[p].use != k->route[p - 1].use)
            fprintf(to, ", %s", kl_talk_use_name(k->route[p].use));
    fprintf(to, ":\n  NIC that sends: %s\n  NIC that receives: %s\n", r->send.why.text, r->recv.why.text);
}

/* Each reason for or against GPUDirect once. */
static void print_gdr(const struct kl_talk *k, bool sends, FILE *to)
{
    for (int i = 0; i < k->nroutes; i++) {
        const struct kl_talk_side *s = sends ? &k->route[i].send : &k->route[i].recv;
        bool said = s->dev < 0;

        for (int p = 0; p < i; p++)
            said |= !strcmp((sends ? &k->route[p].send : &k->route[p].recv)->gdr_why.text, s->gdr_why.text);
        if (!said)
            fprintf(to, "GPUDirect for %s: %s, %s\n", sends ? "sending" : "receiving", s->gdr ? "yes" : "no",
                    s->gdr_why.text);
    }
}

static void print_routes(const struct kl_talk *k, FILE *to)
{
    int width = widest_side(k);
    bool direct = false;

    fprintf(to, "\nNICs from %s to %s, with path and GB/s between GPU and NIC:\n", k->a.name, k->b.name);
    fprintf(to, "  %-10s %-12s %-*s %-8s %-5s %-*s %s\n", "for", "channels", width, "sends by", "PXN by", "GDR", width,
            "receives by", "GDR");
    for (int i = 0; i < k->nroutes; i++) {
        print_route(&k->route[i], width, to);
        direct |= k->route[i].use != KL_TALK_SENDRECV;
    }
    if (!direct) fprintf(to, "  No ring and no tree leads from %s to %s directly.\n", k->a.name, k->b.name);
    fputc('\n', to);
    for (int i = 0; i < k->nroutes; i++) print_choices(k, i, to);
    print_gdr(k, true, to);
    print_gdr(k, false, to);
}

static void print_nic(const struct kl_talk *k, FILE *to)
{
    fprintf(to, "\nGPUDirect for sending: %s, %s\n", k->gdr_send.mode ? "yes" : "no", k->gdr_send_why.text);
    fprintf(to, "GPUDirect for receiving: %s, %s\n", k->gdr_recv.mode ? "yes" : "no", k->gdr_recv_why.text);
    fprintf(to, "PXN for sending: %s, %s\n", k->relay == gpu_of(k)->rank ? "no" : "yes", k->pxn_why.text);
}

void kl_talk_text(const struct kl_talk *k, const struct kl_cluster *cluster, FILE *to)
{
    char sentence[1024];
    struct kl_text text = kl_text_over(sentence, sizeof sentence);

    kl_talk_summary(k, &text);
    fprintf(to, "%s.\n", sentence);
    kl_explain_place(cluster, "", to);
    for (int i = 0; i < k->nlegs; i++) print_leg(&k->leg[i], k->nlegs == 1 ? -1 : i ? k->b.host : k->a.host, to);
    if (k->ntransports) print_transports(k, to);
    if (k->nroutes) print_routes(k, to);
    if (k->answer == KL_TALK_NIC) print_nic(k, to);
}
