/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/recording.h"

#include "base/error.h"

#include <stdlib.h>

struct kl_kept {
    struct kl_kept *next;
    void (*release)(void *object);
    void *object;
};

ncclResult_t kl_recording_create(struct kl_recording **graph)
{
    struct kl_recording *g = calloc(1, sizeof *g);

    if (!g) return KL_NOMEM("a graph");
    pthread_mutex_init(&g->lock, NULL);
    g->holders = 1;
    *graph = g;
    return ncclSuccess;
}

ncclResult_t kl_recording_add(struct kl_recording *g, const struct kl_recorded *node)
{
    uint32_t room = g->room ? 2 * g->room : 16;

    if (g->n == g->room) {
        struct kl_recorded *grown = room > g->room ? realloc(g->node, room * sizeof *grown) : NULL;
        if (!grown) return KL_NOMEM("a graph's nodes");
        g->node = grown;
        g->room = room;
    }
    g->node[g->n++] = *node;
    return ncclSuccess;
}

ncclResult_t kl_recording_keep(struct kl_recording *g, void (*release)(void *), void *object)
{
    struct kl_kept *kept = malloc(sizeof *kept);

    if (!kept) return KL_NOMEM("a graph's object");
    *kept = (struct kl_kept){.next = g->kept, .release = release, .object = object};
    g->kept = kept;
    return ncclSuccess;
}

struct kl_recording *kl_recording_ref(struct kl_recording *g)
{
    kl_fetch_add_relaxed(&g->holders, 1);
    return g;
}

static void free_graph(struct kl_recording *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->node[i].type == KL_RECORDED_OTHER) g->node[i].other.kind->free(g->node[i].other.data);
    for (struct kl_kept *k = g->kept, *next; k; k = next) {
        next = k->next;
        k->release(k->object);
        free(k);
    }
    pthread_mutex_destroy(&g->lock);
    free(g->node);
    free(g);
}

void kl_recording_unref(struct kl_recording *g)
{
    if (g && kl_fetch_sub_acq_rel(&g->holders, 1) == 1) free_graph(g);
}

static void run_freeing(struct kl_worker_task *freeing)
{
    free_graph((struct kl_recording *)((char *)freeing - offsetof(struct kl_recording, freeing)));
}

void kl_recording_unref_deferred(struct kl_recording *g)
{
    if (kl_fetch_sub_acq_rel(&g->holders, 1) != 1) return;
    g->freeing.run = run_freeing;
    kl_workers_submit(&g->freeing);
}
