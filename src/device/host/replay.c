/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/replay.h"

#include "device/host/capture.h"
#include "device/host/follow.h"
#include "device/host/legacy.h"
#include "device/host/refuse.h"

#include <stdlib.h>

struct kl_replay {
    pthread_mutex_t lock; /* protects all fields */
    struct kl_recording *graph;
    uint64_t *ticket;       /* tickets of the nodes on their lanes, of the launch that is being queued */
    struct kl_stream *last; /* of the last launch; NULL: none */
    uint64_t last_ticket;   /* ticket of its end */
    uint32_t lanes;
    struct kl_stream *lane[]; /* lane 0: of the launch that is being queued */
};

/* ---- life ---- */

static ncclResult_t make_lanes(struct kl_replay *r, uint32_t lanes)
{
    while (r->lanes < lanes) {
        KL_TRY(kl_stream_create(KOLO_STREAM_DEFAULT, &r->lane[r->lanes]));
        r->lanes++;
    }
    return ncclSuccess;
}

static uint64_t *make_tickets(const struct kl_recording *g)
{
    return malloc((g->n + 1) * sizeof(uint64_t));
}

ncclResult_t kl_replay_create(struct kl_recording *graph, struct kl_replay **replay)
{
    struct kl_replay *r = calloc(1, sizeof *r + graph->lanes * sizeof(struct kl_stream *));

    if (!r) return KL_NOMEM("a graph's replay");
    pthread_mutex_init(&r->lock, NULL);
    r->graph = kl_recording_hold(graph);
    r->lanes = 1;
    r->ticket = make_tickets(graph);
    ncclResult_t rc = r->ticket ? make_lanes(r, graph->lanes) : KL_NOMEM("a graph's replay");
    if (rc)
        kl_replay_destroy(r);
    else
        *replay = r;
    return rc;
}

static enum kl_progress progress_drop(struct kl_stream *stream, struct kl_work *work)
{
    (void)stream;
    kl_recording_drop_apart((struct kl_recording *)(uintptr_t)work->arg[0]);
    return KL_DONE;
}

/* Drop a reference after the last launch has run: as work of a stream made for that. */
static void drop_behind(struct kl_recording *graph, struct kl_stream *last, uint64_t ticket)
{
    struct kl_work work = {.progress = progress_drop, .arg = {(uintptr_t)graph}};
    struct kl_stream *s;

    if (!last || kl_stream_reached(last, ticket)) {
        kl_recording_drop(graph);
        return;
    }
    if (kl_stream_create(KOLO_STREAM_DEFAULT, &s)) return; /* no memory: it leaks */
    kl_follow(s, last, ticket);
    kl_stream_push(s, &work);
    kl_stream_release(s);
}

void kl_replay_destroy(struct kl_replay *r)
{
    if (!r) return;
    drop_behind(r->graph, r->last, r->last_ticket);
    for (uint32_t i = 1; i < r->lanes; i++) kl_stream_release(r->lane[i]);
    pthread_mutex_destroy(&r->lock);
    free(r->ticket);
    free(r);
}

/* ---- launching ---- */

static ncclResult_t check_nodes(const struct kl_recording *g)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->node[i].type == KL_RECORDED_OTHER) KL_TRY(g->node[i].other.kind->check(g->node[i].other.data));
    return ncclSuccess;
}

static ncclResult_t queue_node(struct kl_replay *r, const struct kl_recorded *node)
{
    struct kl_stream *stream = r->lane[node->lane];

    switch (node->type) {
    case KL_RECORDED_WORK:
        kl_stream_push(stream, &node->work);
        return ncclSuccess;
    case KL_RECORDED_WAIT:
        kl_follow(stream, r->lane[r->graph->node[node->after].lane], r->ticket[node->after]);
        return ncclSuccess;
    default:
        return node->other.kind->launch(node->other.data, r->lane);
    }
}

static ncclResult_t queue_nodes(struct kl_replay *r)
{
    const struct kl_recording *g = r->graph;

    for (uint32_t i = 0; i < g->n; i++) {
        KL_TRY(queue_node(r, &g->node[i]));
        r->ticket[i] = kl_stream_tail(r->lane[g->node[i].lane]);
    }
    return ncclSuccess;
}

/* Even if it failed half way, the next launch and the lanes follow it. */
static ncclResult_t launch(struct kl_replay *r, struct kl_stream *stream)
{
    KL_TRY(check_nodes(r->graph));
    KL_TRY(kl_legacy_order(stream));
    r->lane[0] = stream;
    if (r->last) kl_follow(stream, r->last, r->last_ticket);
    uint64_t begin = kl_stream_tail(stream);
    for (uint32_t i = 1; i < r->lanes; i++) kl_follow(r->lane[i], stream, begin);
    ncclResult_t rc = queue_nodes(r);
    for (uint32_t i = 1; rc && i < r->lanes; i++) kl_follow(stream, r->lane[i], kl_stream_tail(r->lane[i]));
    r->last = stream;
    r->last_ticket = kl_stream_tail(stream);
    return rc;
}

ncclResult_t kl_replay_launch(struct kl_replay *r, struct kl_stream *stream)
{
    if (kl_capturing(stream)) return kl_capture_refuse_unsupported(stream, "koloGraphLaunch");
    pthread_mutex_lock(&r->lock);
    pthread_mutex_lock(&r->graph->lock);
    ncclResult_t rc = launch(r, stream);
    pthread_mutex_unlock(&r->graph->lock);
    pthread_mutex_unlock(&r->lock);
    if (kl_load_relaxed(&stream->flags) & KOLO_STREAM_INLINE) kl_stream_wait(stream, kl_stream_tail(stream));
    return rc;
}

/* ---- updating ---- */

static koloGraphUpdateResult_t compare(const struct kl_recorded *a, const struct kl_recorded *b)
{
    if (a->lane != b->lane) return koloGraphUpdateTopologyChanged;
    if (a->type != b->type) return koloGraphUpdateNodeTypeChanged;
    if (a->type == KL_RECORDED_WAIT && a->after != b->after) return koloGraphUpdateTopologyChanged;
    if (a->type == KL_RECORDED_WORK && a->work.progress != b->work.progress) return koloGraphUpdateNodeTypeChanged;
    if (a->type == KL_RECORDED_OTHER && a->other.kind != b->other.kind) return koloGraphUpdateNodeTypeChanged;
    if (a->type == KL_RECORDED_OTHER && !a->other.kind->alike(a->other.data, b->other.data))
        return koloGraphUpdateParametersChanged;
    return koloGraphUpdateSuccess;
}

static koloGraphUpdateResult_t compare_graphs(const struct kl_recording *a, const struct kl_recording *b,
                                              uint32_t *node)
{
    koloGraphUpdateResult_t result = koloGraphUpdateSuccess;

    *node = 0;
    if (a->n != b->n || a->lanes != b->lanes) return koloGraphUpdateTopologyChanged;
    while (*node < a->n && !(result = compare(&a->node[*node], &b->node[*node]))) ++*node;
    if (!result) *node = 0;
    return result;
}

/* Returns the graph to be dropped. */
static struct kl_recording *take_graph(struct kl_replay *r, struct kl_recording *graph)
{
    struct kl_recording *before = r->graph;

    r->graph = kl_recording_hold(graph);
    return before;
}

ncclResult_t kl_replay_update(struct kl_replay *r, struct kl_recording *graph, koloGraphUpdateResult_t *result,
                              uint32_t *node)
{
    struct kl_recording *before = NULL;

    pthread_mutex_lock(&r->lock);
    *result = compare_graphs(r->graph, graph, node);
    if (!*result) before = take_graph(r, graph);
    struct kl_stream *last = r->last;
    uint64_t ticket = r->last_ticket;
    pthread_mutex_unlock(&r->lock);
    if (before) drop_behind(before, last, ticket);
    if (!*result) return ncclSuccess;
    return KL_REFUSE(koloReasonGraphUpdate,
                     "koloGraphExecUpdate: the graph is not of the same shape, first at node %u: instantiate it",
                     *node);
}
