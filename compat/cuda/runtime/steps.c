/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/steps.h"

#include "base/atomic.h"
#include "compat/cuda/core/event.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/runtime/branch.h"

#include <stdlib.h>

/* ---- building: nodes made by hand are captured on a stream of their own; events end a capture ---- */

struct builder {
    koloStream_t stream;
    bool captures;
    struct kl_cudart_steps *steps;
};

static cudaError_t add(struct kl_cudart_steps *s, struct kl_cudart_step step)
{
    struct kl_cudart_step *grown = realloc(s->step, (s->n + 1) * sizeof *grown);

    if (!grown) return cudaErrorMemoryAllocation;
    s->step = grown;
    s->step[s->n++] = step;
    return cudaSuccess;
}

static cudaError_t add_graph(struct kl_cudart_steps *s, koloGraph_t graph)
{
    struct kl_cudart_step step = {0};

    KL_CUDA_TRY(kl_cuda_from_kolo(koloGraphInstantiate(&step.graph, graph), cudaErrorInvalidValue));
    cudaError_t rc = add(s, step);
    if (rc) koloGraphExecDestroy(step.graph);
    return rc;
}

static cudaError_t begin_capture(struct builder *b)
{
    if (b->captures) return cudaSuccess;
    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamBeginCapture(b->stream, koloCaptureModeRelaxed), cudaErrorUnknown));
    b->captures = true;
    return cudaSuccess;
}

static cudaError_t end_capture(struct builder *b)
{
    koloGraph_t graph;

    if (!b->captures) return cudaSuccess;
    b->captures = false;
    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamEndCapture(b->stream, &graph), cudaErrorUnknown));
    cudaError_t rc = add_graph(b->steps, graph);
    koloGraphDestroy(graph);
    return rc;
}

static bool is_event(const struct kl_cudart_node *n)
{
    return n->work.type == cudaGraphNodeTypeEventRecord || n->work.type == cudaGraphNodeTypeWaitEvent;
}

static cudaError_t emit_all(const struct kl_cudart_graph *g, struct builder *b);

/* May a condition choose this graph: device work only, at any depth? Captured parts are not checked. */
static bool may_be_chosen(const struct kl_cudart_graph *g)
{
    static const bool types[cudaGraphNodeTypeCount] = {
        [cudaGraphNodeTypeKernel] = true, [cudaGraphNodeTypeMemcpy] = true, [cudaGraphNodeTypeMemset] = true,
        [cudaGraphNodeTypeGraph] = true,  [cudaGraphNodeTypeEmpty] = true,  [cudaGraphNodeTypeConditional] = true};

    for (size_t i = 0; i < g->nnodes; i++) {
        if (!types[g->node[i]->work.type]) return false;
        for (size_t k = 0; k < g->node[i]->work.ninner; k++)
            if (!may_be_chosen(g->node[i]->work.inner[k])) return false;
    }
    return true;
}

static cudaError_t by_hand(struct kl_cudart_steps *steps, const struct kl_cudart_graph *g,
                           const struct kl_cudart_node *n, bool begins);

/* Without events all of it is graphs. */
static cudaError_t add_body(struct kl_cudart_branch *branch, size_t i, const struct kl_cudart_graph *g)
{
    struct kl_cudart_steps steps = {0};

    if (!may_be_chosen(g)) return cudaErrorNotSupported;
    cudaError_t rc = by_hand(&steps, g, NULL, false);
    if (!rc)
        kl_cudart_branch_set(branch, i, steps);
    else
        kl_cudart_steps_free(&steps);
    return rc;
}

static cudaError_t emit_condition(const struct kl_cudart_work *w, struct builder *b)
{
    struct kl_cudart_branch *branch = kl_cudart_branch_make(&w->condition);
    cudaError_t rc = branch ? cudaSuccess : cudaErrorMemoryAllocation;

    for (size_t i = 0; !rc && i < w->ninner; i++) rc = add_body(branch, i, w->inner[i]);
    if (!rc) rc = begin_capture(b);
    if (!rc) return kl_cudart_branch_queue(branch, b->stream);
    if (branch) kl_cudart_branch_free(branch);
    return rc;
}

static void assign(void *condition)
{
    struct kl_cudart_condition *c = condition;

    kl_store_release(&c->value, c->initial);
}

/* Of all conditions in the graph, at any depth. */
static cudaError_t emit_defaults(const struct kl_cudart_graph *g, struct builder *b)
{
    for (size_t i = 0; i < g->nconditions; i++) {
        if (!g->condition[i]->assigned) continue;
        KL_CUDA_TRY(begin_capture(b));
        KL_CUDA_TRY(kl_cuda_stream_call(b->stream, assign, NULL, g->condition[i]));
    }
    for (size_t i = 0; i < g->nnodes; i++)
        for (size_t k = 0; k < g->node[i]->work.ninner; k++) KL_CUDA_TRY(emit_defaults(g->node[i]->work.inner[k], b));
    return cudaSuccess;
}

static cudaError_t emit(const struct kl_cudart_node *n, struct builder *b)
{
    if (n->disabled) return cudaSuccess;
    if (n->work.type == cudaGraphNodeTypeConditional) return emit_condition(&n->work, b);
    if (n->work.ninner) return emit_all(n->work.inner[0], b);
    if (is_event(n)) {
        KL_CUDA_TRY(end_capture(b));
        return add(b->steps, (struct kl_cudart_step){.event = n->work.event,
                                                     .waits = n->work.type == cudaGraphNodeTypeWaitEvent});
    }
    KL_CUDA_TRY(begin_capture(b));
    return kl_cudart_work_emit(&n->work, b->stream);
}

/* The next unvisited dependency of this node; NULL: all are visited. */
static struct kl_cudart_node *next_before(struct kl_cudart_node *n)
{
    while (n->looked_at < n->nafter) {
        struct kl_cudart_node *before = n->after[n->looked_at++];

        if (!before->emitted) return before;
    }
    return NULL;
}

/* The node, behind all that it waits for. `then` leads back to it, however far away they are. */
static cudaError_t emit_behind(struct kl_cudart_node *n, struct builder *b)
{
    n->then = NULL;
    while (n) {
        struct kl_cudart_node *before = next_before(n);

        n->open = true;
        if (before && before->open) return cudaErrorInvalidValue; /* they wait for each other */
        if (before) {
            before->then = n;
            n = before;
            continue;
        }
        KL_CUDA_TRY(emit(n, b));
        n->emitted = true;
        n = n->then;
    }
    return cudaSuccess;
}

/* In the order of their making, where they do not wait for later ones. */
static cudaError_t emit_all(const struct kl_cudart_graph *g, struct builder *b)
{
    if (g->captured) {
        KL_CUDA_TRY(end_capture(b));
        return add_graph(b->steps, g->captured->own);
    }
    for (size_t i = 0; i < g->nnodes; i++) {
        g->node[i]->open = g->node[i]->emitted = false;
        g->node[i]->looked_at = 0;
    }
    for (size_t i = 0; i < g->nnodes; i++)
        if (!g->node[i]->emitted) KL_CUDA_TRY(emit_behind(g->node[i], b));
    return cudaSuccess;
}

/* The graph, or one node of it. A launch begins with the initial values of conditions. */
static cudaError_t by_hand(struct kl_cudart_steps *steps, const struct kl_cudart_graph *g,
                           const struct kl_cudart_node *n, bool begins)
{
    struct builder b = {.steps = steps};
    koloGraph_t rest;

    KL_CUDA_TRY(kl_cuda_from_kolo(koloStreamCreate(&b.stream, KOLO_STREAM_DEFAULT), cudaErrorUnknown));
    cudaError_t rc = begins ? emit_defaults(g, &b) : cudaSuccess;
    if (!rc) rc = n ? emit(n, &b) : emit_all(g, &b);
    if (!rc) rc = end_capture(&b);
    if (b.captures && !koloStreamEndCapture(b.stream, &rest)) koloGraphDestroy(rest);
    koloStreamRelease(b.stream);
    return rc;
}

cudaError_t kl_cudart_steps_build(struct kl_cudart_steps *steps, const struct kl_cudart_graph *g)
{
    *steps = (struct kl_cudart_steps){0};
    cudaError_t rc = g->captured ? add_graph(steps, g->captured->own) : by_hand(steps, g, NULL, true);
    if (rc) kl_cudart_steps_free(steps);
    return rc;
}

cudaError_t kl_cudart_steps_try(const struct kl_cudart_node *n)
{
    struct kl_cudart_steps steps = {0};
    cudaError_t rc = by_hand(&steps, n->graph, n, false);

    kl_cudart_steps_free(&steps);
    return rc;
}

void kl_cudart_steps_free(struct kl_cudart_steps *s)
{
    for (size_t i = 0; i < s->n; i++) koloGraphExecDestroy(s->step[i].graph);
    free(s->step);
    *s = (struct kl_cudart_steps){0};
}

/* ---- launching ---- */

static cudaError_t launch(const struct kl_cudart_step *step, cudaStream_t stream)
{
    if (step->graph) return kl_cuda_from_kolo(koloGraphLaunch(step->graph, stream), cudaErrorInvalidValue);
    return step->waits ? kl_cuda_event_order(stream, step->event, 0) : kl_cuda_event_record(step->event, stream, 0);
}

cudaError_t kl_cudart_steps_launch(const struct kl_cudart_steps *s, cudaStream_t stream)
{
    for (size_t i = 0; i < s->n; i++) KL_CUDA_TRY(launch(&s->step[i], stream));
    return cudaSuccess;
}
