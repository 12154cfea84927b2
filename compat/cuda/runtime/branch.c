/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/branch.h"

#include "base/atomic.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/core/strict.h"

#include <stdlib.h>

struct kl_cudart_branch {
    struct kl_cudart_condition *condition; /* launched work keeps a reference */
    enum cudaGraphConditionalNodeType type;
    int device;
    koloStream_t stream; /* where its graphs run */
    size_t n;
    struct kl_cudart_steps body[];
};

struct kl_cudart_branch *kl_cudart_branch_make(const struct cudaConditionalNodeParams *p)
{
    struct kl_cudart_branch *b = calloc(1, sizeof *b + p->size * sizeof(struct kl_cudart_steps));

    if (!b) return NULL;
    b->condition = kl_cudart_condition(p->handle);
    b->type = p->type;
    b->device = kl_cuda_current();
    b->n = p->size;
    if (!koloStreamCreate(&b->stream, KOLO_STREAM_DEFAULT)) return b;
    free(b);
    return NULL;
}

void kl_cudart_branch_free(struct kl_cudart_branch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        for (size_t k = 0; k < b->body[i].n; k++) koloGraphExecDestroy(b->body[i].step[k].graph);
        free(b->body[i].step);
    }
    koloStreamRelease(b->stream);
    free(b);
}

void kl_cudart_branch_set(struct kl_cudart_branch *b, size_t i, struct kl_cudart_steps steps)
{
    b->body[i] = steps;
}

/* ---- run ---- */

static void run_body(const struct kl_cudart_branch *b, size_t i)
{
    if (i >= b->n || !b->body[i].n) return;
    for (size_t k = 0; k < b->body[i].n; k++) koloGraphLaunch(b->body[i].step[k].graph, b->stream);
    koloStreamSynchronize(b->stream);
}

/* A device that has failed runs nothing more, and so never changes a condition. */
static void run(void *data)
{
    const struct kl_cudart_branch *b = data;
    _Atomic uint32_t *value = &b->condition->value;

    kl_cuda_turn_begun(); /* its graphs take turns */
    if (b->type == cudaGraphCondTypeIf)
        run_body(b, !kl_load_acquire(value));
    else if (b->type == cudaGraphCondTypeSwitch)
        run_body(b, kl_load_acquire(value));
    else
        while (kl_load_acquire(value) && !kl_cuda_failure(b->device)) run_body(b, 0);
}

static void drop(void *data)
{
    kl_cudart_branch_free(data);
}

cudaError_t kl_cudart_branch_queue(struct kl_cudart_branch *b, cudaStream_t stream)
{
    return kl_cuda_stream_call(stream, run, drop, b);
}
