/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "plan/pair.h"

#include <stdio.h>

/* ---- transports ---- */

const char *kl_pair_transport_name(const struct kl_pair_transport *x)
{
    return x->transport ? x->transport->name : "NET";
}

const char *kl_pair_transport_code(const struct kl_pair_route *r, const struct kl_pair_transport *x)
{
    return x->no_nic ? "no_nic" : kl_refusal_name(x->refusal, &r->why);
}

static void add_p2p(const struct kl_p2p *p2p, struct kl_text *to)
{
    char text[KL_WHY_TEXT];

    kl_text_add(to, "%s", kl_p2p_why_text(p2p, text));
    if (p2p->p2p && p2p->read) kl_text_add(to, "; reading is preferred to writing");
}

const char *kl_pair_transport_text(const struct kl_pair_route *r, const struct kl_pair_transport *x,
                                   char text[KL_PAIR_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_PAIR_TEXT);
    char rule[KL_WHY_TEXT];

    if (x->no_nic)
        kl_text_add(&t, "this machine has no NIC");
    else if (!x->transport)
        kl_text_add(&t, "connects what nothing else does");
    else if (x->refusal)
        kl_text_add(&t, "%s", kl_refusal_text(x->refusal, &r->why, rule));
    else if (x->transport == &kl_transport_p2p)
        add_p2p(&r->why.p2p, &t);
    else
        kl_text_add(&t, "%s", kl_shm_why_text(r->why.shm));
    return text;
}

/* ---- NICs ---- */

static bool same_choice(const struct kl_net_choice *a, const struct kl_net_choice *b)
{
    return a->near == b->near && a->type == b->type && a->bw == b->bw && (a->spread > 1) == (b->spread > 1);
}

bool kl_pair_same_nic_why(const struct kl_pair_nic_why *a, const struct kl_pair_nic_why *b)
{
    if (a->from != b->from || a->own != b->own) return false;
    if (a->from == KL_PAIR_NIC_SENDER && a->rule != b->rule) return false;
    return !a->own || same_choice(&a->choice, &b->choice);
}

bool kl_pair_same_gdr_why(const struct kl_gdr *a, const struct kl_gdr *b)
{
    bool of_path = a->why == KL_GDR_ALLOWED || a->why == KL_GDR_TOO_FAR;

    if (a->why != b->why || !of_path) return a->why == b->why;
    return a->rank == b->rank && a->type == b->type && a->level == b->level && a->level_set == b->level_set &&
           a->mode == b->mode && a->c2c == b->c2c;
}

const char *kl_pair_nic_code(const struct kl_pair_nic_why *why)
{
    static const char *const codes[] = {
        [KL_PAIR_NIC_NONE] = "no_nic", [KL_PAIR_NIC_SEARCH] = "search", [KL_PAIR_NIC_RECEIVER] = "own_nic"};

    return why->from == KL_PAIR_NIC_SENDER ? kl_p2p_net_why_name(why->rule) : codes[why->from];
}

const char *kl_pair_nic_text(const struct kl_pair_nic_why *why, char text[KL_PAIR_TEXT])
{
    const char *const texts[] = {[KL_PAIR_NIC_NONE] = why->error,
                                 [KL_PAIR_NIC_SEARCH] = "the search gave it to these channels",
                                 [KL_PAIR_NIC_SENDER] = kl_p2p_net_why_text(why->rule),
                                 [KL_PAIR_NIC_RECEIVER] = "the receiver's own"};
    struct kl_text t = kl_text_in(text, KL_PAIR_TEXT);
    char choice[KL_WHY_TEXT];

    kl_text_add(&t, "%s", texts[why->from]);
    if (why->own) kl_text_add(&t, "; it is %s", kl_net_choice_text(&why->choice, choice));
    return text;
}
