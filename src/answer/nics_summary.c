/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/nics.h"

static void add_owners(const struct kl_nics *n, struct kl_text *to)
{
    int per_gpu = kl_nics_per_gpu(n), per_nic = kl_nics_gpus_each(n);
    bool crossing = kl_nics_crossing(n) > 0;

    if (per_nic == 1 && per_gpu == 1)
        kl_text_add(to, ", %sby its own GPU%s", kl_nics_used(n) > 1 ? "each " : "",
                    crossing || kl_nics_left_out(n) ? "" : " (rail-optimised)");
    else if (per_nic == 1 && per_gpu > 1)
        kl_text_add(to, ", %d by each GPU", per_gpu);
    else if (per_nic > 1)
        kl_text_add(to, ", %s %d GPUs", kl_nics_used(n) == 1 ? "by" : "each by", per_nic);
    else if (kl_nics_strangers(n))
        kl_text_add(to, ", of which %d %s no GPU's nearest", kl_nics_strangers(n),
                    kl_nics_strangers(n) == 1 ? "is" : "are");
    else
        kl_text_add(to, ", by different numbers of GPUs");
    if (crossing)
        kl_text_add(to, ", %d of %d channels change rails", __builtin_popcountll(kl_nics_crossing_channels(n)),
                    n->nchannels);
}

static void add_gdr(const struct kl_nics *n, struct kl_text *to)
{
    int both = 0, send = 0, recv = 0, rows = 0;

    for (int i = 0; i < n->nrows; i++) {
        rows += n->gpu[i].net >= 0;
        both += n->gpu[i].gdr_send.mode && n->gpu[i].gdr_recv.mode;
        send += n->gpu[i].gdr_send.mode != KL_GDR_OFF;
        recv += n->gpu[i].gdr_recv.mode != KL_GDR_OFF;
    }
    if (both == rows)
        kl_text_add(to, ", GDR everywhere");
    else if (!send && !recv)
        kl_text_add(to, ", no GDR");
    else if (recv == rows && !send)
        kl_text_add(to, ", GDR for receiving only");
    else
        kl_text_add(to, ", GDR both ways for %d of %d GPU%s", both, rows, kl_plural(rows));
}

static void add_fault(const struct kl_nics *n, struct kl_text *to)
{
    int alike = kl_nics_alike(n);

    kl_text_add(to, ", because %s%d count as one port: they have the same port number and guid",
                alike == n->nnics ? "all " : "", alike);
    if (n->bad_guids) kl_text_add(to, " (0, for a guid counts only when written as 0x...)");
}

/* Is all that is left out left out for looking like another one? */
static bool is_fault(const struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].state != KL_NIC_USED && n->nic[i].nsame < 2) return false;
    return kl_nics_left_out(n) > 0;
}

static bool one_reason(const struct kl_nics *n)
{
    const struct kl_nic *first = kl_nics_first_idle(n);

    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].state != KL_NIC_USED && !kl_nic_same_idle(&n->nic[i], first)) return false;
    return true;
}

static void add_left_out(const struct kl_nics *n, struct kl_text *to)
{
    const struct kl_nic *first = kl_nics_first_idle(n);
    char why[KL_NIC_TEXT];

    kl_nic_idle_text(n, &first->idle, why);
    if (kl_nics_left_out(n) == 1)
        kl_text_add(to, "; NET/%d is left out: %s", first->dev, why);
    else if (one_reason(n))
        kl_text_add(to, "; %d are left out: %s", kl_nics_left_out(n), why);
    else
        kl_text_add(to, "; %d are left out, NET/%d because: %s", kl_nics_left_out(n), first->dev, why);
}

void kl_nics_summary(const struct kl_nics *n, struct kl_text *to)
{
    int used = kl_nics_used(n);

    if (!n->nnics) {
        kl_text_add(to, "There is no NIC%s",
                    n->offhost ? ", and so nothing joins the hosts" : ": nothing joins this host with others");
        return;
    }
    if (!n->offhost) {
        kl_text_add(to, "None of %d NIC%s is used: all ranks reach each other without the network", n->nnics,
                    kl_plural(n->nnics));
        return;
    }
    kl_text_add(to, "%d of %d NIC%s %s used", used, n->nnics, kl_plural(n->nnics), used == 1 ? "is" : "are");
    if (is_fault(n)) {
        add_fault(n, to);
        return;
    }
    if (used) add_owners(n, to);
    add_gdr(n, to);
    if (kl_nics_left_out(n)) add_left_out(n, to);
}
