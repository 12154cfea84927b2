/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/condition.h"

#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/node.h"

#include <pthread.h>
#include <stdlib.h>

enum { MOST_BODIES = 1 << 16 };

/* ---- handles ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_cudart_condition *all;

struct kl_cudart_condition *kl_cudart_condition(cudaGraphConditionalHandle handle)
{
    struct kl_cudart_condition *c;

    pthread_mutex_lock(&lock);
    for (c = all; c && (uintptr_t)c != handle;) c = c->next;
    pthread_mutex_unlock(&lock);
    return c;
}

static void enlist(struct kl_cudart_condition *c)
{
    pthread_mutex_lock(&lock);
    c->next = all;
    all = c;
    pthread_mutex_unlock(&lock);
}

static void destroy(void *condition)
{
    struct kl_cudart_condition **link = &all;

    pthread_mutex_lock(&lock);
    while (*link != condition) link = &(*link)->next;
    *link = (*link)->next;
    pthread_mutex_unlock(&lock);
    free(condition);
}

static bool add_condition(struct kl_cudart_graph *g, struct kl_cudart_condition *c)
{
    struct kl_cudart_condition **grown =
        realloc(g->condition, (g->nconditions + 1) * sizeof(struct kl_cudart_condition *));

    if (!grown) return false;
    g->condition = grown;
    if (!kl_cudart_reference_own(&g->kept, c, destroy)) return false;
    g->condition[g->nconditions++] = c;
    return true;
}

static cudaError_t create(cudaGraphConditionalHandle *handle, struct kl_cudart_graph *g, unsigned initial,
                          unsigned flags)
{
    if (!handle || !g || flags & ~(unsigned)cudaGraphCondAssignDefault) return cudaErrorInvalidValue;
    if (g->captured) return cudaErrorNotSupported;
    struct kl_cudart_condition *c = calloc(1, sizeof *c);
    if (!c) return cudaErrorMemoryAllocation;
    c->value = c->initial = initial;
    c->assigned = flags;
    enlist(c);
    if (!add_condition(g, c)) {
        destroy(c);
        return cudaErrorMemoryAllocation;
    }
    *handle = (uintptr_t)c;
    return cudaSuccess;
}

cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                             unsigned int initial, unsigned int flags)
{
    return kl_cudart_done(create(handle, kl_cudart_graph(graph), initial, flags));
}
KL_CUDART_ENTRY(cudaGraphConditionalHandleCreate);

/* ---- nodes ---- */

static bool fits(const struct cudaConditionalNodeParams *p)
{
    switch (p->type) {
    case cudaGraphCondTypeIf:
        return p->size == 1 || p->size == 2;
    case cudaGraphCondTypeWhile:
        return p->size == 1;
    case cudaGraphCondTypeSwitch:
        return p->size && p->size <= MOST_BODIES;
    default:
        return false;
    }
}

/* Empty graphs, which the program fills. */
static bool make_bodies(struct kl_cudart_work *w, unsigned n)
{
    w->bodies = calloc(n, sizeof(cudaGraph_t));
    for (unsigned i = 0; w->bodies && i < n; i++) {
        struct kl_cudart_graph *body = kl_cudart_graph_make();

        if (!body || !kl_cudart_work_take(w, body)) {
            kl_cudart_graph_free(body);
            return false;
        }
        w->bodies[i] = body->handle;
    }
    return w->bodies;
}

cudaError_t kl_cudart_node_add_condition(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                         size_t count, struct cudaConditionalNodeParams *p)
{
    struct kl_cudart_work w = {.type = cudaGraphNodeTypeConditional, .condition = *p};

    if (!kl_cudart_condition(p->handle) || !fits(p)) return cudaErrorInvalidValue;
    cudaError_t rc =
        make_bodies(&w, p->size) ? kl_cudart_node_add(node, graph, after, count, &w) : cudaErrorMemoryAllocation;
    if (rc)
        kl_cudart_work_end(&w);
    else
        p->phGraph_out = w.bodies;
    return rc;
}
