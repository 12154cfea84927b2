/* SPDX-License-Identifier: Apache-2.0 */
/**
 * net_usage.c - the GPU that uses a NET when every GPU has chosen its own.
 */
#include "base/error.h"
#include "topo/paths.h"

#include <stdlib.h>

static bool contains(const int *list, int n, int value)
{
    for (int i = 0; i < n; i++)
        if (list[i] == value) return true;
    return false;
}

/* The first NET of this number: paths and queries use this one. */
static int named(const struct kl_topo *t, int net)
{
    int node = kl_topo_find(t, KL_NODE_NET, t->node[kl_topo_at(t, KL_NODE_NET, net)].id);

    return kl_topo_index(t, node);
}

/* Does GPU `a` reach the NET better than GPU `b` (-1: none)? */
static bool reaches_better(const struct kl_topo *t, int net, int a, int b)
{
    const struct kl_path *x = kl_path_between(t, KL_NODE_GPU, a, KL_NODE_NET, net);

    if (x->type >= KL_PATH_NET) return false;
    if (b < 0) return true;
    const struct kl_path *y = kl_path_between(t, KL_NODE_GPU, b, KL_NODE_NET, net);
    return x->bw > y->bw || (x->bw == y->bw && x->type < y->type);
}

/* Look at one GPU; `list` holds count[NET]. True: it uses the NET, so the search ends. */
static ncclResult_t ask_gpu(const struct kl_topo *t, int gpu, int net, int *list, struct kl_net_usage *usage)
{
    int n = kl_topo_nearest(t, KL_NODE_GPU, gpu, KL_NODE_NET, list);
    bool near = contains(list, n, net);

    if (!n) return ncclSuccess;
    KL_TRY(kl_topo_net_list(t, -1, gpu, list, &n)); /* its own, in the order of channels */
    if (contains(list, n, net))
        usage->use = KL_NET_CHOSEN;
    else if (near)
        usage->use = KL_NET_SPREAD;
    else if (usage->use == KL_NET_SPREAD || !reaches_better(t, net, gpu, usage->gpu))
        return ncclSuccess;
    usage->gpu = gpu;
    usage->instead = list[0];
    return ncclSuccess;
}

static enum kl_net_use compare(const struct kl_topo *t, const struct kl_net_usage *usage, int net)
{
    const struct kl_path *here, *there;

    if (usage->gpu < 0) return KL_NET_UNREACHED;
    here = kl_path_between(t, KL_NODE_GPU, usage->gpu, KL_NODE_NET, net);
    there = kl_path_between(t, KL_NODE_GPU, usage->gpu, KL_NODE_NET, usage->instead);
    return there->bw > here->bw ? KL_NET_SLOWER : KL_NET_FARTHER;
}

ncclResult_t kl_topo_net_usage(const struct kl_topo *t, int net, struct kl_net_usage *usage)
{
    int *list = malloc(((size_t)t->count[KL_NODE_NET] + 1) * sizeof *list);
    ncclResult_t rc = ncclSuccess;

    if (!list) return KL_NOMEM("a list of NETs");
    *usage = (struct kl_net_usage){.use = KL_NET_UNREACHED, .gpu = -1, .instead = -1};
    if (named(t, net) != net) {
        usage->use = KL_NET_TWIN;
        usage->instead = named(t, net);
    }
    for (int g = 0; g < t->count[KL_NODE_GPU] && usage->use != KL_NET_TWIN && usage->use != KL_NET_CHOSEN && !rc; g++)
        rc = ask_gpu(t, g, net, list, usage);
    if (usage->use == KL_NET_UNREACHED) usage->use = compare(t, usage, net);
    free(list);
    return rc;
}
