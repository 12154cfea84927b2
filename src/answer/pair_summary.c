/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/pair.h"

#include "topo/paths.h"

#include <string.h>

/* "P2P is refused: why; SHM is refused: why": those before the one that is taken. */
static void add_refusals(const struct kl_pair_route *r, struct kl_text *to)
{
    char why[KL_PAIR_TEXT];

    for (int i = 0; i < r->ntransports && !r->transport[i].chosen; i++)
        kl_text_add(to, "%s%s is refused because %s", i ? "; " : ": ", kl_pair_transport_name(&r->transport[i]),
                    kl_pair_transport_text(r, &r->transport[i], why));
}

/* The NICs of sends and receives. */
static void add_nics(const struct kl_pair_nics *n, struct kl_text *to)
{
    if (n->send.dev < 0 || n->recv.dev < 0) return;
    kl_text_add(to, ", from NET/%d", n->send.dev);
    if (n->send.proxy != n->send.rank) kl_text_add(to, " by GPU/%d (PXN)", n->send.proxy);
    kl_text_add(to, " to NET/%d%s", n->recv.dev, n->send.dev == n->recv.dev ? "" : " (changes rails)");
}

/* "directly (P2P)". */
static const char *manner(const struct kl_transport *transport)
{
    if (!transport) return "through the network (NET)";
    return transport == &kl_transport_p2p ? "directly (P2P)" : "through shared memory (SHM)";
}

static void summarize_joined(const struct kl_pair_route *r, const struct kl_pair_transport *x, struct kl_text *to)
{
    kl_text_add(to, "%s and %s talk %s", r->a.name, r->b.name, manner(x->transport));
    if (x->transport == &kl_transport_p2p && r->via >= 0) kl_text_add(to, " by way of GPU/%d", r->via);
    if (r->bw > 0) kl_text_add(to, ", %g GB/s", (double)r->bw);
    if (r->nnics) add_nics(&r->nics[0], to);
}

static void summarize_gpus(const struct kl_pair_route *r, struct kl_text *to)
{
    const struct kl_pair_transport *x = kl_pair_chosen(r);
    char why[KL_PAIR_TEXT];

    if (x)
        summarize_joined(r, x, to);
    else
        kl_text_add(to, "Nothing connects %s and %s", r->a.name, r->b.name);
    if (r->a.shift != r->b.shift)
        kl_text_add(to, ": they are in different hosts%s", x ? "" : ", and this machine has no NIC");
    else if (x && x == r->transport)
        kl_text_add(to, ": %s", kl_pair_transport_text(r, x, why));
    else
        add_refusals(r, to);
    if (x && !r->gpus && r->threads && r->threads != x->transport)
        kl_text_add(to, "; as threads of one process they would use %s", r->threads->name);
}

static void add_end(const struct kl_pair_end *e, struct kl_text *to)
{
    kl_text_add(to, *e->label ? "%s (%s)" : "%s", e->name, e->label);
}

static const char *gdr_ways(bool send, bool recv)
{
    if (send && recv) return "both ways";
    if (send || recv) return recv ? "for receiving only" : "for sending only";
    return "neither way";
}

static void add_own(const struct kl_pair_route *r, struct kl_text *to)
{
    const char *gpu = kl_pair_gpu(r)->name;

    if (r->own)
        kl_text_add(to, "it is %s's own NIC", gpu);
    else if (r->instead < 0)
        kl_text_add(to, "%s has none of its own", gpu);
    else
        kl_text_add(to, *r->instead_label ? "%s's own is NET/%d (%s)" : "%s's own is NET/%d", gpu, r->instead,
                    r->instead_label);
}

static void summarize_nic(const struct kl_pair_route *r, struct kl_text *to)
{
    bool sends = r->a.type == KL_NODE_GPU;

    add_end(&r->a, to);
    kl_text_add(to, sends ? " sends to " : " delivers to ");
    add_end(&r->b, to);
    if (sends && r->pxn.why == KL_PXN_USED)
        kl_text_add(to, " through GPU/%d (PXN)", r->relay);
    else
        kl_text_add(to, " over %s", kl_path_type_name[r->segment[0].type]);
    kl_text_add(to, ", %g GB/s; GPUDirect %s; ", (double)r->bw,
                gdr_ways(r->gdr_send.mode != KL_GDR_OFF, r->gdr_recv.mode != KL_GDR_OFF));
    add_own(r, to);
}

void kl_pair_summary(const struct kl_pair_route *r, struct kl_text *to)
{
    if (r->answer == KL_PAIR_NIC)
        summarize_nic(r, to);
    else if (r->answer == KL_PAIR_PATH)
        kl_text_add(to, "%s to %s: %s, %g GB/s", r->a.name, r->b.name, kl_path_type_name[r->segment[0].type],
                    (double)r->bw);
    else
        summarize_gpus(r, to);
}
