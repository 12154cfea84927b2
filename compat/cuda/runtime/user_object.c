/* SPDX-License-Identifier: Apache-2.0 */
/** user_object.c - objects that live as long as graphs that keep them. */
#include "base/atomic.h"
#include "compat/cuda/core/handle.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/graph.h"

#include <stdlib.h>

struct kl_cudart_object {
    _Atomic uint64_t count;
    void *ptr;
    cudaHostFn_t destroy;
    cudaUserObject_t handle; /* NULL: it is not the program's */
};

static void release(struct kl_cudart_object *o, uint64_t count)
{
    if (kl_fetch_sub_acq_rel(&o->count, count) != count) return;
    if (o->handle) kl_cuda_handle_take(KL_CUDA_OBJECT, o->handle);
    o->destroy(o->ptr);
    free(o);
}

void kl_cudart_reference_release(struct kl_cudart_reference *list)
{
    while (list) {
        struct kl_cudart_reference *next = list->next;

        release(list->object, list->count);
        free(list);
        list = next;
    }
}

static bool keep(struct kl_cudart_reference **list, struct kl_cudart_object *object, unsigned count)
{
    struct kl_cudart_reference *k = malloc(sizeof *k);

    if (!k) return false;
    *k = (struct kl_cudart_reference){.object = object, .count = count, .next = *list};
    *list = k;
    return true;
}

bool kl_cudart_reference_own(struct kl_cudart_reference **list, void *ptr, void (*destroy)(void *ptr))
{
    struct kl_cudart_object *o = malloc(sizeof *o);

    if (!o || !keep(list, o, 1)) {
        free(o);
        return false;
    }
    *o = (struct kl_cudart_object){.count = 1, .ptr = ptr, .destroy = destroy};
    return true;
}

bool kl_cudart_reference_copy(struct kl_cudart_reference **list, const struct kl_cudart_reference *of)
{
    for (; of; of = of->next) {
        if (!keep(list, of->object, 1)) return false;
        kl_fetch_add_relaxed(&of->object->count, 1);
    }
    return true;
}

bool kl_cudart_reference_collect(struct kl_cudart_reference **list, const struct kl_cudart_graph *g)
{
    bool fits = kl_cudart_reference_copy(list, g->kept);

    for (size_t i = 0; fits && i < g->nnodes; i++)
        for (size_t k = 0; fits && k < g->node[i]->work.ninner; k++)
            fits = kl_cudart_reference_collect(list, g->node[i]->work.inner[k]);
    return fits;
}

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy, unsigned int count,
                                 unsigned int flags)
{
    if (!object || !destroy || !count || count > INT32_MAX || flags != cudaUserObjectNoDestructorSync)
        return kl_cudart_done(cudaErrorInvalidValue);
    struct kl_cudart_object *o = malloc(sizeof *o);
    if (!o) return kl_cudart_done(cudaErrorMemoryAllocation);
    *o = (struct kl_cudart_object){.count = count, .ptr = ptr, .destroy = destroy};
    o->handle = kl_cuda_handle_make(KL_CUDA_OBJECT, o);
    if (!o->handle) {
        free(o);
        return kl_cudart_done(cudaErrorMemoryAllocation);
    }
    *object = o->handle;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaUserObjectCreate);

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    struct kl_cudart_object *o = kl_cuda_handle_find(KL_CUDA_OBJECT, object);

    if (!o || !count) return kl_cudart_done(cudaErrorInvalidValue);
    kl_fetch_add_relaxed(&o->count, count);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaUserObjectRetain);

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    struct kl_cudart_object *o = kl_cuda_handle_find(KL_CUDA_OBJECT, object);

    if (!o || !count || count > kl_load_relaxed(&o->count)) return kl_cudart_done(cudaErrorInvalidValue);
    release(o, count);
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaUserObjectRelease);

/* A graph that is being captured keeps by kolo's means: until all that is made of it has run. */
static void release_one(void *object)
{
    release(object, 1);
}

/* *kept: how many references the graph has, also after a failure. */
static cudaError_t tie(struct kl_cudart_graph *g, struct kl_cudart_object *o, unsigned count, unsigned *kept)
{
    cudaError_t rc = cudaSuccess;

    *kept = 0;
    if (!kl_load_acquire(&g->capture)) {
        bool fits = keep(&g->kept, o, count);
        *kept = fits ? count : 0;
        return fits ? cudaSuccess : cudaErrorMemoryAllocation;
    }
    while (!rc && *kept < count) {
        rc = kl_cuda_from_kolo(koloStreamCaptureKeep(g->stream, release_one, o), cudaErrorInvalidValue);
        *kept += !rc;
    }
    return rc;
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count,
                                      unsigned int flags)
{
    struct kl_cudart_object *o = kl_cuda_handle_find(KL_CUDA_OBJECT, object);
    struct kl_cudart_graph *g = kl_cudart_graph_begun(graph);

    if (!o || !g || !count || flags & ~(unsigned)cudaGraphUserObjectMove) return kl_cudart_done(cudaErrorInvalidValue);
    kl_fetch_add_relaxed(&o->count, count);
    unsigned kept;
    cudaError_t rc = tie(g, o, count, &kept);
    if (rc) release(o, count - kept);
    if (!rc && flags & cudaGraphUserObjectMove) release(o, count); /* the caller's */
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGraphRetainUserObject);

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object, unsigned int count)
{
    struct kl_cudart_object *o = kl_cuda_handle_find(KL_CUDA_OBJECT, object);
    struct kl_cudart_graph *g = kl_cudart_graph_begun(graph);

    for (struct kl_cudart_reference **at = g ? &g->kept : NULL; o && at && *at; at = &(*at)->next) {
        struct kl_cudart_reference *k = *at;

        if (k->object != o || k->count < count) continue;
        k->count -= count;
        if (!k->count) {
            *at = k->next;
            free(k);
        }
        release(o, count);
        return cudaSuccess;
    }
    return kl_cudart_done(cudaErrorInvalidValue);
}
KL_CUDART_ENTRY(cudaGraphReleaseUserObject);
