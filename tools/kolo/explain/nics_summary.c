/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/nics.h"

#include "base/text.h"

#include <string.h>

int kl_nics_alike(const struct kl_nics *n)
{
    int most = 0;

    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].nsame > most) most = n->nic[i].nsame;
    return most;
}

int kl_nics_left_out(const struct kl_nics *n)
{
    return n->nnics - kl_nics_used(n);
}

static const struct kl_nic *first_left_out(const struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].state != KL_NIC_USED) return &n->nic[i];
    return NULL;
}

/* How many NICs all GPUs have of their own, and how many GPUs all used NICs; 0 if that differs. */
static int nics_per_gpu(const struct kl_nics *n)
{
    return n->nrows % n->ngpus || n->nrows == 0 ? 0 : n->nrows / n->ngpus;
}

static int gpus_per_nic(const struct kl_nics *n)
{
    int common = -1;

    for (int i = 0; i < n->nnics; i++) {
        if (n->nic[i].state != KL_NIC_USED) continue;
        if (common >= 0 && n->nic[i].owned_by != common) return 0;
        common = n->nic[i].owned_by;
    }
    return common < 0 ? 0 : common;
}

static uint64_t crossing_channels(const struct kl_nics *n)
{
    uint64_t channels = 0;

    for (int i = 0; i < n->nrails; i++)
        if (n->rail[i].from != n->rail[i].to) channels |= n->rail[i].channels;
    return channels;
}

int kl_nics_strangers(const struct kl_nics *n)
{
    int count = 0;

    for (int i = 0; i < n->nnics; i++) count += n->nic[i].state == KL_NIC_USED && !n->nic[i].owned_by;
    return count;
}

static void add_owners(const struct kl_nics *n, struct kl_text *to)
{
    int per_gpu = nics_per_gpu(n), per_nic = gpus_per_nic(n);
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
        kl_text_add(to, ", %d of %d channels change rails", __builtin_popcountll(crossing_channels(n)), n->nchannels);
}

static void add_gdr(const struct kl_nics *n, struct kl_text *to)
{
    int both = 0, send = 0, recv = 0, rows = 0;

    for (int i = 0; i < n->nrows; i++) {
        rows += n->gpu[i].net >= 0;
        both += n->gpu[i].gdr_send && n->gpu[i].gdr_recv;
        send += n->gpu[i].gdr_send;
        recv += n->gpu[i].gdr_recv;
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
    const struct kl_nic *first = first_left_out(n);

    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].state != KL_NIC_USED && strcmp(n->nic[i].why.text, first->why.text) != 0) return false;
    return true;
}

static void add_left_out(const struct kl_nics *n, struct kl_text *to)
{
    const struct kl_nic *first = first_left_out(n);

    if (kl_nics_left_out(n) == 1)
        kl_text_add(to, "; NET/%d is left out: %s", first->dev, first->why.text);
    else if (one_reason(n))
        kl_text_add(to, "; %d are left out: %s", kl_nics_left_out(n), first->why.text);
    else
        kl_text_add(to, "; %d are left out, NET/%d because: %s", kl_nics_left_out(n), first->dev, first->why.text);
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
