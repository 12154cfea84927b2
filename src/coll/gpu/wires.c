/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/wires.h"

#include "base/log.h"
#include "coll/algorithms/algorithms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATION_BYTES = 2 * KL_ROW_EDGES * KL_LINE }; /* the words of a rank on a channel, of both directions */

/* ---- memory ---- */

struct kl_gpu_piece {
    uint64_t at;
    size_t bytes;
    void *image; /* copied to it by the stream */
    struct kl_gpu_piece *next;
};

ncclResult_t kl_gpu_piece_alloc(struct kl_gpu_scheduled *w, size_t bytes, uint64_t *at)
{
    const struct kl_cuda_driver *driver = w->context->driver;
    struct kl_gpu_piece *piece = calloc(1, sizeof *piece);

    if (!piece) return KL_NOMEM("the schedules of a GPU");
    const int rc = driver->cuMemAlloc(&piece->at, bytes);
    if (rc) {
        free(piece);
        return KL_FAIL(ncclUnhandledCudaError, "schedules on device %d: cuMemAlloc of %zu bytes failed with %s (%d)",
                       w->context->device, bytes, kl_cuda_error_name(driver, rc), rc);
    }
    piece->bytes = bytes;
    piece->next = w->own;
    w->own = piece;
    *at = piece->at;
    KL_INFO(KL_ALLOC, "schedules: %zu bytes on device %d", bytes, w->context->device);
    return ncclSuccess;
}

ncclResult_t kl_gpu_piece_fill(struct kl_gpu_scheduled *w, void *image, size_t image_bytes)
{
    const struct kl_gpu_piece *piece = w->own;

    w->own->image = image;
    KL_CUDA_TRY(w->context->driver, cuMemsetD8Async(piece->at, 0, piece->bytes, w->stream), "schedules on device %d",
                w->context->device);
    KL_CUDA_TRY(w->context->driver, cuMemcpyAsync(piece->at, (uint64_t)(uintptr_t)image, image_bytes, w->stream),
                "schedules on device %d", w->context->device);
    KL_CUDA_TRY(w->context->driver, cuEventRecord(w->made, w->stream), "device %d", w->context->device);
    return ncclSuccess;
}

void kl_gpu_pieces_free(struct kl_gpu_scheduled *w)
{
    for (struct kl_gpu_piece *p = w->own, *next; p; p = next) {
        next = p->next;
        (void)w->context->driver->cuMemFree(p->at);
        free(p->image);
        free(p);
    }
    w->own = NULL;
}

/* ---- new channels ---- */

struct growth {
    struct kl_gpu_schedules *schedules;
    struct kl_gpu_wires *wires;
    int from, n;                   /* channels */
    struct kl_neighbours *rank;    /* by new channel, by rank */
    size_t *slots;                 /* the same: where the slots of a rank's fifos begin in its worker's memory */
    size_t bytes[KL_CUDA_DEVICES]; /* by worker */
    uint64_t at[KL_CUDA_DEVICES];
};

static int index_of(const struct growth *g, int channel, int rank)
{
    return channel * g->schedules->nranks + rank;
}

/* Of a rank among all of its worker. */
static size_t place_of(const struct growth *g, int channel, int rank)
{
    const struct kl_gpu_schedules *s = g->schedules;

    return (size_t)channel * (size_t)s->worker[s->worker_of[rank]].nranks + (size_t)s->number[rank];
}

static size_t places_of(const struct growth *g, int worker)
{
    return (size_t)g->n * (size_t)g->schedules->worker[worker].nranks;
}

static size_t fifo_bytes(const struct growth *g)
{
    return (size_t)KL_SLOTS * kl_gpu_slot_bytes(g->wires->lines);
}

ncclResult_t kl_gpu_wires_find(const struct kl_gpu_schedules *s, int algorithm, int rank, int channel, int *order,
                               struct kl_neighbours *to)
{
    const struct kl_neighbours_request request = {
        .graph = s->graph, .rank = rank, .channel = channel, .steps = KL_SLOTS, .order = order};

    return kl_algorithms[algorithm]->find(&request, to);
}

static ncclResult_t find_all(struct growth *g, int *order)
{
    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < g->schedules->nranks; r++)
            KL_TRY(kl_gpu_wires_find(g->schedules, g->wires->algorithm, r, g->from + c, order,
                                     &g->rank[index_of(g, c, r)]));
    return ncclSuccess;
}

/* In a worker's memory: the ends of its ranks, their words, their slots. */
static void lay_out(struct growth *g)
{
    const struct kl_gpu_schedules *s = g->schedules;

    for (int w = 0; w < s->nworkers; w++) g->bytes[w] = places_of(g, w) * (sizeof(struct kl_gpu_ends) + STATION_BYTES);
    for (int i = 0; i < g->n * s->nranks; i++) {
        const struct kl_neighbours *n = &g->rank[i];
        const int w = s->worker_of[i % s->nranks];
        g->slots[i] = g->bytes[w];
        for (int e = 0; e < n->nrecv; e++) g->bytes[w] += n->recv[e] >= 0 ? fifo_bytes(g) : 0;
    }
}

/* ---- addresses ---- */

static uint64_t word_of(const struct growth *g, int channel, int rank, int edge, bool sends)
{
    const int w = g->schedules->worker_of[rank];

    return g->at[w] + places_of(g, w) * sizeof(struct kl_gpu_ends) + place_of(g, channel, rank) * STATION_BYTES +
           (size_t)(edge + (sends ? KL_ROW_EDGES : 0)) * KL_LINE;
}

static uint64_t slots_of(const struct growth *g, int channel, int rank, int edge)
{
    const int i = index_of(g, channel, rank);
    uint64_t at = g->at[g->schedules->worker_of[rank]] + g->slots[i];

    for (int e = 0; e < edge; e++) at += g->rank[i].recv[e] >= 0 ? fifo_bytes(g) : 0;
    return at;
}

/* The edge of `rank` that leads to, or comes from, a peer: two ranks have one of each direction. */
static int edge_of(const struct growth *g, int channel, int rank, int peer, bool sends)
{
    const struct kl_neighbours *n = &g->rank[index_of(g, channel, rank)];
    int e = 0;

    while ((sends ? n->send : n->recv)[e] != peer) e++;
    return e;
}

static void fill_ends(const struct growth *g, int channel, int rank, struct kl_gpu_ends *to)
{
    const struct kl_neighbours *n = &g->rank[index_of(g, channel, rank)];

    for (int e = 0; e < n->nrecv; e++) {
        const int from = n->recv[e];
        if (from < 0) continue;
        to->recv[e] = (struct kl_gpu_end){
            .slots = slots_of(g, channel, rank, e),
            .poll = word_of(g, channel, rank, e, false),
            .tell = word_of(g, channel, from, edge_of(g, channel, from, rank, true), true),
        };
    }
    for (int e = 0; e < n->nsend; e++) {
        const int peer = n->send[e];
        if (peer < 0) continue;
        const int there = edge_of(g, channel, peer, rank, false);
        to->send[e] = (struct kl_gpu_end){
            .slots = slots_of(g, channel, peer, there),
            .poll = word_of(g, channel, rank, e, true),
            .tell = word_of(g, channel, peer, there, false),
        };
    }
}

/* ---- making ---- */

static ncclResult_t fill_worker(struct growth *g, int worker)
{
    const struct kl_gpu_schedules *s = g->schedules;
    struct kl_gpu_ends *image = calloc(places_of(g, worker), sizeof *image);

    if (!image) return KL_NOMEM("the schedules of a GPU");
    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < s->nranks; r++)
            if (s->worker_of[r] == worker) fill_ends(g, c, r, &image[place_of(g, c, r)]);
    return kl_gpu_piece_fill(&g->schedules->worker[worker], image, places_of(g, worker) * sizeof *image);
}

static ncclResult_t on_worker(struct growth *g, int worker, ncclResult_t (*step)(struct growth *g, int worker))
{
    const struct kl_cuda_context *c = g->schedules->worker[worker].context;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = step(g, worker);
    kl_cuda_leave(c);
    return rc;
}

static ncclResult_t alloc_worker(struct growth *g, int worker)
{
    return kl_gpu_piece_alloc(&g->schedules->worker[worker], g->bytes[worker], &g->at[worker]);
}

static void note_channels(struct growth *g)
{
    const struct kl_gpu_schedules *s = g->schedules;

    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < s->nranks; r++)
            g->wires->ends[(g->from + c) * s->nranks + r] =
                g->at[s->worker_of[r]] + place_of(g, c, r) * sizeof(struct kl_gpu_ends);
    g->wires->nchannels = g->from + g->n;
    g->schedules->made++;
}

static ncclResult_t make(struct growth *g, int *order)
{
    const int workers = g->schedules->nworkers;

    KL_TRY(find_all(g, order));
    lay_out(g);
    for (int w = 0; w < workers; w++) KL_TRY(on_worker(g, w, alloc_worker));
    for (int w = 0; w < workers; w++) KL_TRY(on_worker(g, w, fill_worker));
    note_channels(g);
    return ncclSuccess;
}

static ncclResult_t add_channels(struct kl_gpu_schedules *s, struct kl_gpu_wires *wires, int nchannels)
{
    const size_t ranks = (size_t)s->nranks, n = (size_t)(nchannels - wires->nchannels) * ranks;
    struct growth g = {.schedules = s, .wires = wires, .from = wires->nchannels, .n = nchannels - wires->nchannels};
    uint64_t *ends = realloc(wires->ends, (size_t)nchannels * ranks * sizeof *ends);
    int *order = calloc(ranks, sizeof *order);

    if (ends) wires->ends = ends;
    g.rank = calloc(n, sizeof *g.rank);
    g.slots = calloc(n, sizeof *g.slots);
    ncclResult_t rc = ends && order && g.rank && g.slots ? make(&g, order) : KL_NOMEM("the schedules of a GPU");
    free(order);
    free(g.rank);
    free(g.slots);
    return rc;
}

static struct kl_gpu_wires *find(const struct kl_gpu_schedules *s, int algorithm, bool lines)
{
    struct kl_gpu_wires *w = s->wires;

    while (w && (w->algorithm != algorithm || w->lines != lines)) w = w->next;
    return w;
}

ncclResult_t kl_gpu_wires_get(struct kl_gpu_schedules *s, int algorithm, bool lines, int nchannels,
                              const struct kl_gpu_wires **out)
{
    struct kl_gpu_wires *w = find(s, algorithm, lines);

    if (!w) {
        w = calloc(1, sizeof *w);
        if (!w) return KL_NOMEM("the schedules of a GPU");
        *w = (struct kl_gpu_wires){.algorithm = algorithm, .lines = lines, .next = s->wires};
        s->wires = w;
    }
    if (w->nchannels < nchannels) KL_TRY(add_channels(s, w, nchannels));
    *out = w;
    return ncclSuccess;
}

void kl_gpu_wires_free(struct kl_gpu_wires *w)
{
    for (struct kl_gpu_wires *next; w; w = next) {
        next = w->next;
        free(w->ends);
        free(w);
    }
}
