/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/nics.h"

struct kl_nic *kl_nics_at(const struct kl_nics *n, int dev)
{
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].dev == dev) return &n->nic[i];
    return NULL;
}

int kl_nics_used(const struct kl_nics *n)
{
    int used = 0;

    for (int i = 0; i < n->nnics; i++) used += n->nic[i].state == KL_NIC_USED;
    return used;
}

int kl_nics_left_out(const struct kl_nics *n)
{
    return n->nnics - kl_nics_used(n);
}

int kl_nics_strangers(const struct kl_nics *n)
{
    int count = 0;

    for (int i = 0; i < n->nnics; i++) count += n->nic[i].state == KL_NIC_USED && !n->nic[i].owned_by;
    return count;
}

int kl_nics_crossing(const struct kl_nics *n)
{
    int crossing = 0;

    for (int i = 0; i < n->nrails; i++) crossing += n->rail[i].from != n->rail[i].to;
    return crossing;
}

uint64_t kl_nics_crossing_channels(const struct kl_nics *n)
{
    uint64_t channels = 0;

    for (int i = 0; i < n->nrails; i++)
        if (n->rail[i].from != n->rail[i].to) channels |= n->rail[i].channels;
    return channels;
}

int kl_nics_alike(const struct kl_nics *n)
{
    int most = 0;

    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].nsame > most) most = n->nic[i].nsame;
    return most;
}

int kl_nics_per_gpu(const struct kl_nics *n)
{
    return n->nrows % n->ngpus || n->nrows == 0 ? 0 : n->nrows / n->ngpus;
}

int kl_nics_gpus_each(const struct kl_nics *n)
{
    int common = -1;

    for (int i = 0; i < n->nnics; i++) {
        if (n->nic[i].state != KL_NIC_USED) continue;
        if (common >= 0 && n->nic[i].owned_by != common) return 0;
        common = n->nic[i].owned_by;
    }
    return common < 0 ? 0 : common;
}

const struct kl_nic *kl_nics_first_idle(const struct kl_nics *n)
{
    for (int i = 0; i < n->nnics; i++)
        if (n->nic[i].state != KL_NIC_USED) return &n->nic[i];
    return NULL;
}

static bool same_better(const struct kl_nic_idle *a, const struct kl_nic_idle *b)
{
    return a->rank == b->rank && a->here_type == b->here_type && a->here_bw == b->here_bw && a->there == b->there &&
           a->there_type == b->there_type && a->there_bw == b->there_bw;
}

bool kl_nic_same_idle(const struct kl_nic *x, const struct kl_nic *y)
{
    const struct kl_nic_idle *a = &x->idle, *b = &y->idle;

    if (a->why != b->why) return false;
    switch (a->why) {
    case KL_NIC_SLOWER:
    case KL_NIC_FARTHER:
        return same_better(a, b);
    case KL_NIC_SAME_PORT:
        return a->first == b->first && (a->first >= 0 || a->others == b->others);
    default:
        return true;
    }
}
