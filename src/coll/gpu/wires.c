/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/wires.h"

#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/gpu/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STATION_BYTES = 2 * KL_ROW_EDGES * KL_LINE }; /* the words of a rank on a channel, of both directions */

/* ---- memory ---- */

struct kl_gpu_piece {
    uint64_t at;
    size_t bytes;  /* 0: another process's, which was mapped at `at` */
    size_t places; /* it begins with so many ranks' ends, and their words */
    void *image;   /* copied to it by the stream */
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

/* Bytes to which nothing is copied are zero. */
static ncclResult_t clear_piece(const struct kl_gpu_scheduled *w)
{
    const struct kl_gpu_piece *piece = w->own;

    KL_CUDA_TRY(w->context->driver, cuMemsetD8Async(piece->at, 0, piece->bytes, w->stream), "schedules on device %d",
                w->context->device);
    return ncclSuccess;
}

/* At the begin of a piece. */
static ncclResult_t copy_image(struct kl_gpu_scheduled *w, struct kl_gpu_piece *piece, void *image, size_t bytes)
{
    piece->image = image;
    KL_CUDA_TRY(w->context->driver, cuMemcpyAsync(piece->at, (uint64_t)(uintptr_t)image, bytes, w->stream),
                "schedules on device %d", w->context->device);
    KL_CUDA_TRY(w->context->driver, cuEventRecord(w->made, w->stream), "device %d", w->context->device);
    return ncclSuccess;
}

ncclResult_t kl_gpu_piece_fill(struct kl_gpu_scheduled *w, void *image, size_t image_bytes)
{
    struct kl_gpu_piece *piece = w->own;

    piece->image = image;
    KL_TRY(clear_piece(w));
    return copy_image(w, piece, image, image_bytes);
}

static void free_piece(const struct kl_cuda_driver *driver, struct kl_gpu_piece *p)
{
    if (p->bytes)
        (void)driver->cuMemFree(p->at);
    else
        (void)driver->cuIpcCloseMemHandle(p->at);
    free(p->image);
    free(p);
}

void kl_gpu_pieces_free(struct kl_gpu_scheduled *w)
{
    for (struct kl_gpu_piece *p = w->own, *next; p; p = next) {
        next = p->next;
        free_piece(w->context->driver, p);
    }
    w->own = NULL;
}

/* Of ends that were read, with the words behind all of them. */
static bool is_quiet(const struct kl_gpu_ends *ends, const uint64_t *word)
{
    bool quiet = true;

    for (int e = 0; e < KL_ROW_EDGES; e++)
        quiet &= word[(size_t)(KL_ROW_EDGES + e) * KL_LINE / sizeof *word] == ends->send[e].step;
    return quiet;
}

static bool is_quiet_piece(const struct kl_gpu_scheduled *w, const struct kl_gpu_piece *p)
{
    const size_t bytes = p->places * (sizeof(struct kl_gpu_ends) + STATION_BYTES);
    char *read = malloc(bytes);
    bool quiet = read != NULL;

    if (quiet) quiet = !w->context->driver->cuMemcpyAsync((uint64_t)(uintptr_t)read, p->at, bytes, w->stream);
    if (quiet) quiet = !w->context->driver->cuStreamSynchronize(w->stream);
    for (size_t i = 0; i < p->places && quiet; i++)
        quiet = is_quiet(
            (const struct kl_gpu_ends *)read + i,
            (const uint64_t *)(const void *)(read + p->places * sizeof(struct kl_gpu_ends) + i * STATION_BYTES));
    free(read);
    return quiet;
}

bool kl_gpu_pieces_are_quiet(const struct kl_gpu_scheduled *w)
{
    for (const struct kl_gpu_piece *p = w->own; p; p = p->next)
        if (p->places && !is_quiet_piece(w, p)) return false;
    return true;
}

/* ---- new channels ---- */

struct kl_gpu_growth {
    struct kl_gpu_schedules *schedules;
    struct kl_gpu_wires *wires;
    int from, n;                   /* channels */
    struct kl_neighbours *rank;    /* by new channel, by rank */
    size_t *slots;                 /* the same: where the slots of a rank's fifos begin in its worker's memory */
    size_t bytes[KL_CUDA_DEVICES]; /* by worker */
    struct kl_gpu_piece *piece[KL_CUDA_DEVICES];
    uint64_t at[KL_CUDA_DEVICES][KL_CUDA_DEVICES]; /* of each worker of this process: the memory of all */
};

static int index_of(const struct kl_gpu_growth *g, int channel, int rank)
{
    return channel * g->schedules->nranks + rank;
}

/* Of a rank among all of its worker. */
static size_t place_of(const struct kl_gpu_growth *g, int channel, int rank)
{
    const struct kl_gpu_schedules *s = g->schedules;

    return (size_t)channel * (size_t)s->worker[s->worker_of[rank]].nranks + (size_t)s->number[rank];
}

static size_t places_of(const struct kl_gpu_growth *g, int worker)
{
    return (size_t)g->n * (size_t)g->schedules->worker[worker].nranks;
}

static size_t fifo_bytes(const struct kl_gpu_growth *g)
{
    return (size_t)KL_SLOTS * kl_gpu_slot_bytes(g->wires->line_bytes);
}

ncclResult_t kl_gpu_wires_find(const struct kl_gpu_schedules *s, int algorithm, int rank, int channel, int *order,
                               struct kl_neighbours *to)
{
    const struct kl_neighbours_request request = {
        .graph = s->graph, .rank = rank, .channel = channel, .steps = KL_SLOTS, .order = order};

    return kl_algorithms[algorithm]->find(&request, to);
}

static ncclResult_t find_all(struct kl_gpu_growth *g, int *order)
{
    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < g->schedules->nranks; r++)
            KL_TRY(kl_gpu_wires_find(g->schedules, g->wires->algorithm, r, g->from + c, order,
                                     &g->rank[index_of(g, c, r)]));
    return ncclSuccess;
}

/* In a worker's memory: the ends of its ranks, their words, their slots. */
static void lay_out(struct kl_gpu_growth *g)
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

/* ---- addresses, as a worker sees them ---- */

static uint64_t word_of(const struct kl_gpu_growth *g, int worker, int channel, int rank, int edge, bool sends)
{
    const int w = g->schedules->worker_of[rank];

    return g->at[worker][w] + places_of(g, w) * sizeof(struct kl_gpu_ends) +
           place_of(g, channel, rank) * STATION_BYTES + (size_t)(edge + (sends ? KL_ROW_EDGES : 0)) * KL_LINE;
}

static uint64_t slots_of(const struct kl_gpu_growth *g, int worker, int channel, int rank, int edge)
{
    const int i = index_of(g, channel, rank);
    uint64_t at = g->at[worker][g->schedules->worker_of[rank]] + g->slots[i];

    for (int e = 0; e < edge; e++) at += g->rank[i].recv[e] >= 0 ? fifo_bytes(g) : 0;
    return at;
}

/* The edge of `rank` that leads to, or comes from, a peer: two ranks have one of each direction. */
static int edge_of(const struct kl_gpu_growth *g, int channel, int rank, int peer, bool sends)
{
    const struct kl_neighbours *n = &g->rank[index_of(g, channel, rank)];
    int e = 0;

    while ((sends ? n->send : n->recv)[e] != peer) e++;
    return e;
}

static void fill_ends(const struct kl_gpu_growth *g, int channel, int rank, struct kl_gpu_ends *to)
{
    const struct kl_neighbours *n = &g->rank[index_of(g, channel, rank)];
    const int w = g->schedules->worker_of[rank];

    for (int e = 0; e < n->nrecv; e++) {
        const int from = n->recv[e];
        if (from < 0) continue;
        to->recv[e] = (struct kl_gpu_end){
            .slots = slots_of(g, w, channel, rank, e),
            .poll = word_of(g, w, channel, rank, e, false),
            .tell = word_of(g, w, channel, from, edge_of(g, channel, from, rank, true), true),
        };
    }
    for (int e = 0; e < n->nsend; e++) {
        const int peer = n->send[e];
        if (peer < 0) continue;
        const int there = edge_of(g, channel, peer, rank, false);
        to->send[e] = (struct kl_gpu_end){
            .slots = slots_of(g, w, channel, peer, there),
            .poll = word_of(g, w, channel, rank, e, true),
            .tell = word_of(g, w, channel, peer, there, false),
        };
    }
}

/* ---- making ---- */

/* On all workers of this process, whose context is current then. */
static ncclResult_t on_workers(struct kl_gpu_growth *g, ncclResult_t (*step)(struct kl_gpu_growth *g, int worker))
{
    ncclResult_t rc = ncclSuccess;

    for (int w = 0; w < g->schedules->nworkers && !rc; w++) {
        const struct kl_cuda_context *c = g->schedules->worker[w].context;
        if (!c) continue;
        KL_TRY(kl_cuda_enter(c));
        rc = step(g, w);
        kl_cuda_leave(c);
    }
    return rc;
}

static ncclResult_t alloc_worker(struct kl_gpu_growth *g, int worker)
{
    struct kl_gpu_scheduled *w = &g->schedules->worker[worker];

    KL_TRY(kl_gpu_piece_alloc(w, g->bytes[worker], &g->at[worker][worker]));
    g->piece[worker] = w->own;
    w->own->places = places_of(g, worker);
    return clear_piece(w);
}

/* Other processes use it as soon as they know it, so it is zero by then. The stream copies, and waits for nothing. */
static ncclResult_t offer_worker(struct kl_gpu_growth *g, int worker)
{
    struct kl_gpu_schedules *s = g->schedules;
    const struct kl_cuda_context *c = s->worker[worker].context;

    KL_CUDA_TRY(c->driver, cuStreamSynchronize(s->worker[worker].stream), "device %d", c->device);
    return kl_gpu_offer(s->offers, s->turn, worker, c, g->at[worker][worker], NULL);
}

static ncclResult_t map_piece(struct kl_gpu_growth *g, int worker, int of)
{
    struct kl_gpu_scheduled *w = &g->schedules->worker[worker];
    struct kl_gpu_piece *piece = calloc(1, sizeof *piece);

    if (!piece) return KL_NOMEM("the schedules of a GPU");
    ncclResult_t rc = kl_gpu_offers_map(g->schedules->offers, g->schedules->turn, of, w->context, &piece->at);
    if (rc) {
        free(piece);
        return rc;
    }
    g->at[worker][of] = piece->at;
    piece->next = w->own;
    w->own = piece;
    return ncclSuccess;
}

/* The test of P2P has enabled access to the GPUs of this process. */
static ncclResult_t reach_others(struct kl_gpu_growth *g, int worker)
{
    for (int of = 0; of < g->schedules->nworkers; of++) {
        if (g->schedules->worker[of].context)
            g->at[worker][of] = g->at[of][of];
        else
            KL_TRY(map_piece(g, worker, of));
    }
    return ncclSuccess;
}

static ncclResult_t fill_worker(struct kl_gpu_growth *g, int worker)
{
    const struct kl_gpu_schedules *s = g->schedules;
    struct kl_gpu_ends *image = calloc(places_of(g, worker), sizeof *image);

    if (!image) return KL_NOMEM("the schedules of a GPU");
    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < s->nranks; r++)
            if (s->worker_of[r] == worker) fill_ends(g, c, r, &image[place_of(g, c, r)]);
    return copy_image(&g->schedules->worker[worker], g->piece[worker], image, places_of(g, worker) * sizeof *image);
}

static void note_channels(struct kl_gpu_growth *g)
{
    const struct kl_gpu_schedules *s = g->schedules;

    for (int c = 0; c < g->n; c++)
        for (int r = 0; r < s->nranks; r++)
            g->wires->ends[(g->from + c) * s->nranks + r] =
                g->at[s->worker_of[r]][s->worker_of[r]] + place_of(g, c, r) * sizeof(struct kl_gpu_ends);
    g->wires->nchannels = g->from + g->n;
    g->schedules->made++;
}

static void free_growth(struct kl_gpu_growth *g)
{
    if (!g) return;
    free(g->rank);
    free(g->slots);
    free(g);
}

static ncclResult_t alloc_growth(struct kl_gpu_schedules *s, struct kl_gpu_wires *wires, int nchannels)
{
    const size_t ranks = (size_t)s->nranks, n = (size_t)(nchannels - wires->nchannels) * ranks;
    struct kl_gpu_growth *g = wires->growing = calloc(1, sizeof *g);
    uint64_t *ends = realloc(wires->ends, (size_t)nchannels * ranks * sizeof *ends);

    if (ends) wires->ends = ends;
    if (!ends || !g) return KL_NOMEM("the schedules of a GPU");
    g->schedules = s;
    g->wires = wires;
    g->from = wires->nchannels;
    g->n = nchannels - wires->nchannels;
    g->rank = calloc(n, sizeof *g->rank);
    g->slots = calloc(n, sizeof *g->slots);
    return g->rank && g->slots ? ncclSuccess : KL_NOMEM("the schedules of a GPU");
}

static ncclResult_t begin_growth(struct kl_gpu_schedules *s, struct kl_gpu_wires *wires, int nchannels)
{
    int *order = calloc((size_t)s->nranks, sizeof *order);

    ncclResult_t rc = order ? alloc_growth(s, wires, nchannels) : KL_NOMEM("the schedules of a GPU");
    if (!rc) rc = find_all(wires->growing, order);
    free(order);
    KL_TRY(rc);
    lay_out(wires->growing);
    KL_TRY(on_workers(wires->growing, alloc_worker));
    if (!s->offers) return ncclSuccess;
    s->turn++;
    return on_workers(wires->growing, offer_worker);
}

static ncclResult_t end_growth(struct kl_gpu_growth *g)
{
    KL_TRY(on_workers(g, reach_others));
    KL_TRY(on_workers(g, fill_worker));
    note_channels(g);
    g->wires->growing = NULL;
    free_growth(g);
    return ncclSuccess;
}

/* It may take several calls. */
static ncclResult_t grow(struct kl_gpu_schedules *s, struct kl_gpu_wires *wires, int nchannels)
{
    bool there = true;

    if (!wires->growing) KL_TRY(begin_growth(s, wires, nchannels));
    if (s->offers) KL_TRY(kl_gpu_offers_test(s->offers, s->turn, s->nworkers, &there));
    return there ? end_growth(wires->growing) : ncclSuccess;
}

/* Memory of no part in any graph, while another stream of the thread may capture. */
static ncclResult_t grow_relaxed(struct kl_gpu_schedules *s, struct kl_gpu_wires *wires, int nchannels)
{
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)s->driver->cuThreadExchangeStreamCaptureMode(&mode);
    ncclResult_t rc = grow(s, wires, nchannels);
    (void)s->driver->cuThreadExchangeStreamCaptureMode(&mode);
    if (rc) kl_gpu_offers_break(s->offers);
    return rc;
}

static struct kl_gpu_wires *find(const struct kl_gpu_schedules *s, int algorithm, uint32_t line_bytes)
{
    struct kl_gpu_wires *w = s->wires;

    while (w && (w->algorithm != algorithm || w->line_bytes != line_bytes)) w = w->next;
    return w;
}

ncclResult_t kl_gpu_wires_get(struct kl_gpu_schedules *s, int algorithm, uint32_t line_bytes, int nchannels,
                              const struct kl_gpu_wires **out)
{
    struct kl_gpu_wires *w = find(s, algorithm, line_bytes);

    if (!w) {
        w = calloc(1, sizeof *w);
        if (!w) return KL_NOMEM("the schedules of a GPU");
        *w = (struct kl_gpu_wires){.algorithm = algorithm, .line_bytes = line_bytes, .next = s->wires};
        s->wires = w;
    }
    if (w->nchannels < nchannels) KL_TRY(grow_relaxed(s, w, nchannels));
    *out = w->growing ? NULL : w;
    return ncclSuccess;
}

void kl_gpu_wires_free(struct kl_gpu_wires *w)
{
    for (struct kl_gpu_wires *next; w; w = next) {
        next = w->next;
        free_growth(w->growing);
        free(w->ends);
        free(w);
    }
}
