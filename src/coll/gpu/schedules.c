/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/schedules.h"

#include "base/clock.h"
#include "base/log.h"
#include "coll/algorithms/algorithms.h"
#include "coll/gpu/links.h"
#include "coll/gpu/offers.h"
#include "coll/gpu/peers.h"
#include "coll/gpu/program.h"
#include "coll/gpu/schedule_fit.h"
#include "coll/gpu/wires.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PAGE = 4096, NAP_NS = 50000 };

/* ---- the order of kernels on each GPU, for all teams of the process ---- */

static struct {
    pthread_mutex_t lock;
    kl_cu_event last[KL_CUDA_DEVICES]; /* by device: the end of its last kernel; NULL: there was none */
} order = {.lock = PTHREAD_MUTEX_INITIALIZER};

void kl_gpu_schedules_lock(void)
{
    pthread_mutex_lock(&order.lock);
}

void kl_gpu_schedules_unlock(void)
{
    pthread_mutex_unlock(&order.lock);
}

ncclResult_t kl_gpu_schedules_begin(struct kl_gpu_schedules *s, int worker, kl_cu_stream stream)
{
    const struct kl_gpu_scheduled *w = &s->worker[worker];
    kl_cu_event last = order.last[w->context->device];

    if (!last || last == w->end) return ncclSuccess;
    KL_CUDA_TRY(w->context->driver, cuStreamWaitEvent(stream, last, 0), "device %d", w->context->device);
    return ncclSuccess;
}

ncclResult_t kl_gpu_schedules_end(struct kl_gpu_schedules *s, int worker, kl_cu_stream stream)
{
    struct kl_gpu_scheduled *w = &s->worker[worker];

    KL_CUDA_TRY(w->context->driver, cuEventRecord(w->end, stream), "device %d", w->context->device);
    w->used = true;
    order.last[w->context->device] = w->end;
    return ncclSuccess;
}

static void forget_order(const struct kl_gpu_scheduled *w)
{
    kl_gpu_schedules_lock();
    if (order.last[w->context->device] == w->end) order.last[w->context->device] = NULL;
    kl_gpu_schedules_unlock();
}

/* ---- life ---- */

static ncclResult_t create_stop_word(struct kl_gpu_schedules *s)
{
    const struct kl_cuda_driver *driver = s->driver;
    void *page = aligned_alloc(PAGE, PAGE);

    if (!page) return KL_NOMEM("a word for GPUs");
    const int rc = driver->cuMemHostRegister(page, PAGE, KL_CU_HOST_PORTABLE_MAPPED);
    if (rc) {
        free(page);
        return KL_FAIL(ncclUnhandledCudaError, "a word for GPUs: cuMemHostRegister failed with %s (%d)",
                       kl_cuda_error_name(driver, rc), rc);
    }
    s->stop = page;
    kl_store_relaxed(s->stop, 0);
    return ncclSuccess;
}

/* Its context is current. */
static ncclResult_t fill_worker(struct kl_gpu_schedules *s, struct kl_gpu_scheduled *w)
{
    const struct kl_cuda_context *c = w->context;
    int least, highest;

    if (!s->stop) KL_TRY(create_stop_word(s));
    KL_CUDA_TRY(c->driver, cuMemHostGetDevicePointer(&w->stop, (void *)s->stop, 0), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuCtxGetStreamPriorityRange(&least, &highest), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuStreamCreateWithPriority(&w->stream, KL_CU_STREAM_NON_BLOCKING, highest),
                "a stream of device %d", c->device);
    KL_CUDA_TRY(c->driver, cuEventCreate(&w->made, KL_CU_EVENT_DISABLE_TIMING), "an event of device %d", c->device);
    KL_CUDA_TRY(c->driver, cuEventCreate(&w->end, KL_CU_EVENT_DISABLE_TIMING), "an event of device %d", c->device);
    return ncclSuccess;
}

static ncclResult_t create_worker(struct kl_gpu_schedules *s, int worker, const struct kl_cuda_context *c)
{
    if (!c) return ncclSuccess;
    s->worker[worker].context = c;
    s->driver = c->driver;
    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = fill_worker(s, &s->worker[worker]);
    kl_cuda_leave(c);
    return rc;
}

static ncclResult_t fill(struct kl_gpu_schedules *s, const struct kl_gpu_team *team)
{
    s->worker_of = calloc((size_t)s->nranks, sizeof *s->worker_of);
    s->number = calloc((size_t)s->nranks, sizeof *s->number);
    if (!s->worker_of || !s->number) return KL_NOMEM("the schedules of GPUs");
    for (int r = 0; r < s->nranks; r++) {
        s->worker_of[r] = team->worker_of[r];
        s->number[r] = s->worker[team->worker_of[r]].nranks++;
    }
    for (int w = 0; w < s->nworkers; w++) KL_TRY(create_worker(s, w, team->worker[w].context));
    return ncclSuccess;
}

/* Its context is current. */
static void free_worker(struct kl_gpu_scheduled *w)
{
    const struct kl_cuda_driver *driver = w->context->driver;

    if (w->stream) (void)driver->cuStreamSynchronize(w->stream); /* it copies, and waits for nothing */
    kl_gpu_pieces_free(w);
    if (w->stream) (void)driver->cuStreamDestroy(w->stream);
    if (w->made) (void)driver->cuEventDestroy(w->made);
    if (w->end) (void)driver->cuEventDestroy(w->end);
}

static void free_all(struct kl_gpu_schedules *s)
{
    void *stop = (void *)s->stop;

    for (int w = 0; w < s->nworkers; w++) {
        if (!s->worker[w].context || kl_cuda_enter(s->worker[w].context)) continue;
        forget_order(&s->worker[w]);
        free_worker(&s->worker[w]);
        if (stop) (void)s->driver->cuMemHostUnregister(stop);
        stop = NULL;
        kl_cuda_leave(s->worker[w].context);
    }
    for (struct kl_gpu_programs *p = s->programs, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    kl_gpu_wires_free(s->wires);
    free((void *)s->stop);
    free(s->worker_of);
    free(s->number);
    free(s);
}

/* The last that a kernel does is to tell the sender that it has taken a chunk, for which the sender's may not wait. */
static bool is_quiet(const struct kl_gpu_schedules *s)
{
    bool quiet = true;

    for (int w = 0; w < s->nworkers && quiet; w++) {
        if (!s->worker[w].context || kl_cuda_enter(s->worker[w].context)) continue;
        quiet = kl_gpu_pieces_are_quiet(&s->worker[w]);
        kl_cuda_leave(s->worker[w].context);
    }
    return quiet;
}

/* Kernels of this process have ended; false: those of others may still write here. */
static bool await_others(const struct kl_gpu_schedules *s)
{
    const uint64_t deadline = kl_deadline_in_ms(KL_GPU_PEERS_MS);

    while (s->offers && !is_quiet(s)) {
        if (kl_deadline_passed(deadline)) return false;
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
    return true;
}

/* Stopped ones, whose kernels may still run. Of several processes they are never freed: others may still write there. */
static struct {
    pthread_mutex_t lock;
    struct kl_gpu_schedules *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_ended(const struct kl_gpu_schedules *s)
{
    bool ended = true;

    for (int w = 0; w < s->nworkers && ended; w++) {
        const struct kl_gpu_scheduled *worker = &s->worker[w];
        if (!worker->used) continue;
        if (kl_cuda_enter(worker->context)) return false;
        ended = !s->driver->cuEventQuery(worker->end);
        kl_cuda_leave(worker->context);
    }
    return ended;
}

static void free_ended(void)
{
    pthread_mutex_lock(&kept.lock);
    for (struct kl_gpu_schedules **link = &kept.first, *s; (s = *link);) {
        if (s->offers || !has_ended(s)) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        free_all(s);
    }
    pthread_mutex_unlock(&kept.lock);
}

void kl_gpu_schedules_free(struct kl_gpu_schedules *s, bool failed)
{
    if (s && (failed || !await_others(s))) {
        kl_gpu_schedules_stop(s);
        pthread_mutex_lock(&kept.lock);
        s->next = kept.first;
        kept.first = s;
        pthread_mutex_unlock(&kept.lock);
    } else if (s) {
        free_all(s);
    }
    free_ended();
}

void kl_gpu_schedules_stop(struct kl_gpu_schedules *s)
{
    kl_store_release(s->stop, 1); /* pairs with is_stopped of kernels */
}

static bool launches_block(void)
{
    const char *blocking = getenv("CUDA_LAUNCH_BLOCKING");

    return blocking && *blocking && strcmp(blocking, "0") != 0;
}

bool kl_gpu_schedules_are_wanted(const struct kl_gpu_team *team)
{
    return team->mover == KL_CUDA_MOVER_SCHEDULE && team->nranks > 1 && kl_gpu_far_sharer(team) < 0;
}

/* Facts that decide about collectives, alike in all processes. */
static ncclResult_t find_facts(const struct kl_gpu_schedules *s, const struct kl_gpu_team *team, int worker,
                               struct kl_gpu_facts *facts)
{
    int own = 0;

    for (int w = 0; w < s->nworkers; w++) own += s->worker[w].context != NULL;
    facts->room = kl_gpu_schedule_room(s->worker[worker].context);
    facts->blocks = own > 1 && launches_block();
    return kl_gpu_links_find(team, worker, facts);
}

/* Its context is current. */
static ncclResult_t tell_facts(struct kl_gpu_schedules *s, const struct kl_gpu_team *team, int worker,
                               struct kl_gpu_facts *facts)
{
    KL_TRY(find_facts(s, team, worker, facts));
    return s->offers ? kl_gpu_offer(s->offers, s->turn, worker, s->worker[worker].context, 0, facts) : ncclSuccess;
}

static ncclResult_t tell_all_facts(struct kl_gpu_schedules *s, const struct kl_gpu_team *team,
                                   struct kl_gpu_facts *facts)
{
    ncclResult_t rc = ncclSuccess;

    for (int w = 0; w < s->nworkers && !rc; w++) {
        const struct kl_cuda_context *c = s->worker[w].context;
        if (!c) continue;
        KL_TRY(kl_cuda_enter(c));
        rc = tell_facts(s, team, w, &facts[w]);
        kl_cuda_leave(c);
    }
    return rc;
}

static ncclResult_t exchange_facts(struct kl_gpu_schedules *s, const struct kl_gpu_team *team)
{
    struct kl_gpu_facts facts[KL_CUDA_DEVICES] = {{0}};

    s->turn = 1;
    KL_TRY(tell_all_facts(s, team, facts));
    if (s->offers) KL_TRY(kl_gpu_offers_await(s->offers, s->turn, s->nworkers));
    for (int w = 0; w < s->nworkers; w++) {
        if (!s->worker[w].context) facts[w] = *kl_gpu_offers_facts(s->offers, s->turn, w);
        s->worker[w].room = facts[w].room;
        s->launches_block |= facts[w].blocks;
    }
    s->ll128 = kl_gpu_links_have_ll128(facts, s->nworkers);
    KL_INFO(KL_TUNING, "schedules on %d GPUs: LL128 %s", s->nworkers,
            s->ll128 ? "may be chosen" : "only where NCCL_PROTO has it: they differ, or NVLink does not join them all");
    return ncclSuccess;
}

ncclResult_t kl_gpu_schedules_create(const struct kl_gpu_team *team, const struct kl_gpu_setup *setup,
                                     struct kl_gpu_offers *offers, struct kl_gpu_schedules **out)
{
    free_ended();
    *out = NULL;
    struct kl_gpu_schedules *s = calloc(1, sizeof *s);
    if (!s) return KL_NOMEM("the schedules of GPUs");
    s->nranks = team->nranks;
    s->nworkers = team->nworkers;
    s->graph = setup->graph;
    s->chunk_bytes = setup->chunk_bytes;
    s->threads = (unsigned)setup->config->cuda_threads;
    s->offers = offers;
    ncclResult_t rc = fill(s, team);
    if (!rc) rc = exchange_facts(s, team);
    if (rc) {
        kl_gpu_offers_break(offers);
        free_all(s);
    } else {
        *out = s;
    }
    return rc;
}

/* ---- programs ---- */

/* The programs of a worker being made: their rows come behind them. */
struct making {
    struct kl_gpu_schedules *schedules;
    const struct kl_gpu_wires *wires;
    const struct kl_schedule *schedule;
    struct kl_gpu_programs *programs;
    int *order;
};

static ncclResult_t position_of(const struct making *m, int channel, int rank, struct kl_position *position)
{
    struct kl_neighbours n;

    KL_TRY(kl_gpu_wires_find(m->schedules, m->wires->algorithm, rank, channel, m->order, &n));
    if (m->programs->root >= 0) n.position.root = kl_root_of(&n.position, m->programs->root);
    *position = n.position;
    if (kl_gpu_rows_exist(m->schedule, position)) return ncclSuccess;
    return KL_FAIL(ncclInternalError, "%s of rank %d has no rows", m->schedule->name, rank);
}

static int count_rows(const struct making *m, const struct kl_position *position)
{
    int rows = 0;

    for (int lane = 0; lane < m->schedule->lanes; lane++) rows += kl_gpu_rows_of(m->schedule, position, lane, NULL);
    return rows;
}

static ncclResult_t count_all_rows(const struct making *m, int worker, size_t *rows)
{
    const struct kl_gpu_schedules *s = m->schedules;
    struct kl_position position;

    *rows = 0;
    for (int c = 0; c < m->programs->nchannels; c++)
        for (int r = 0; r < s->nranks; r++) {
            if (s->worker_of[r] != worker) continue;
            KL_TRY(position_of(m, c, r, &position));
            *rows += (size_t)count_rows(m, &position);
        }
    return ncclSuccess;
}

/* At `row_at` of the GPU, `row` of the image. */
static size_t fill_program(const struct making *m, const struct kl_position *position, struct kl_gpu_program *to,
                           struct kl_gpu_row *row, uint64_t row_at)
{
    size_t used = 0;

    to->lanes = (uint32_t)m->schedule->lanes;
    to->rank = (uint32_t)position->rank;
    to->chunks = (uint32_t)kl_gpu_rows_chunks(m->schedule, position);
    for (int lane = 0; lane < m->schedule->lanes; lane++) {
        to->row[lane] = row_at + used * sizeof *row;
        to->rows[lane] = (uint32_t)kl_gpu_rows_of(m->schedule, position, lane, row + used);
        used += to->rows[lane];
    }
    return used;
}

static ncclResult_t fill_image(const struct making *m, int worker, struct kl_gpu_program *program,
                               struct kl_gpu_row *row)
{
    const struct kl_gpu_schedules *s = m->schedules;
    const uint64_t row_at = m->programs->at[worker] + (uint64_t)((char *)row - (char *)program);
    struct kl_position position;
    size_t used = 0;

    for (int c = 0; c < m->programs->nchannels; c++)
        for (int r = 0; r < s->nranks; r++) {
            if (s->worker_of[r] != worker) continue;
            KL_TRY(position_of(m, c, r, &position));
            program->ends = m->wires->ends[c * s->nranks + r];
            used += fill_program(m, &position, program, row + used, row_at + used * sizeof *row);
            program++;
        }
    return ncclSuccess;
}

/* Its context is current. */
static ncclResult_t make_worker(const struct making *m, int worker)
{
    struct kl_gpu_scheduled *w = &m->schedules->worker[worker];
    const size_t programs = (size_t)(m->programs->nchannels * w->nranks) * sizeof(struct kl_gpu_program);
    size_t rows;

    KL_TRY(count_all_rows(m, worker, &rows));
    const size_t bytes = programs + rows * sizeof(struct kl_gpu_row);
    char *image = calloc(1, bytes);
    if (!image) return KL_NOMEM("the schedules of a GPU");
    ncclResult_t rc = kl_gpu_piece_alloc(w, bytes, &m->programs->at[worker]);
    if (!rc) rc = fill_image(m, worker, (struct kl_gpu_program *)image, (struct kl_gpu_row *)(image + programs));
    if (!rc) return kl_gpu_piece_fill(w, image, bytes);
    free(image);
    return rc;
}

static ncclResult_t make_on_all(const struct making *m)
{
    for (int w = 0; w < m->schedules->nworkers; w++) {
        const struct kl_cuda_context *c = m->schedules->worker[w].context;
        if (!c) continue;
        KL_TRY(kl_cuda_enter(c));
        ncclResult_t rc = make_worker(m, w);
        kl_cuda_leave(c);
        KL_TRY(rc);
    }
    return ncclSuccess;
}

static ncclResult_t make(struct kl_gpu_schedules *s, const struct kl_gpu_wires *wires, struct kl_gpu_programs *programs)
{
    struct making m = {.schedules = s,
                       .wires = wires,
                       .schedule = kl_algorithms[programs->algorithm]->schedule[programs->func],
                       .programs = programs,
                       .order = calloc((size_t)s->nranks, sizeof(int))};

    if (!m.order) return KL_NOMEM("the schedules of GPUs");
    ncclResult_t rc = make_on_all(&m);
    free(m.order);
    return rc;
}

static bool serve(const struct kl_gpu_programs *p, const struct kl_gpu_programs *wanted)
{
    return p->algorithm == wanted->algorithm && p->func == wanted->func && p->root == wanted->root &&
           p->line_bytes == wanted->line_bytes && p->nchannels >= wanted->nchannels;
}

static ncclResult_t add_programs(struct kl_gpu_schedules *s, const struct kl_gpu_wires *wires,
                                 const struct kl_gpu_programs *wanted, const struct kl_gpu_programs **out)
{
    struct kl_gpu_programs *p = malloc(sizeof *p);

    if (!p) return KL_NOMEM("the schedules of GPUs");
    *p = *wanted;
    ncclResult_t rc = make(s, wires, p);
    if (rc) {
        free(p);
        return rc;
    }
    p->next = s->programs;
    s->programs = p;
    s->made++;
    *out = p;
    return ncclSuccess;
}

ncclResult_t kl_gpu_schedules_get(struct kl_gpu_schedules *s, const struct kl_task *t,
                                  const struct kl_gpu_programs **out)
{
    const struct kl_gpu_programs wanted = {.algorithm = t->choice.algorithm,
                                           .func = t->func,
                                           .root = kl_func_info[t->func].rooted ? t->peer : -1,
                                           .nchannels = t->choice.partition.nchannels,
                                           .line_bytes = kl_gpu_line_bytes((enum kl_proto)t->choice.proto)};
    const struct kl_gpu_wires *wires;
    struct kl_gpu_programs *p = s->programs;

    while (p && !serve(p, &wanted)) p = p->next;
    *out = p;
    if (p) return ncclSuccess;
    KL_TRY(kl_gpu_wires_get(s, wanted.algorithm, wanted.line_bytes, wanted.nchannels, &wires));
    return wires ? add_programs(s, wires, &wanted, out) : ncclSuccess;
}

bool kl_gpu_schedules_lack(const struct kl_gpu_schedules *s, int rank)
{
    return s->offers && kl_gpu_offers_lack(s->offers, s->turn, s->worker_of[rank]);
}

ncclResult_t kl_gpu_schedules_await_memory(struct kl_gpu_schedules *s, int worker, kl_cu_stream stream)
{
    const struct kl_cuda_context *c = s->worker[worker].context;

    if (s->seen[worker] == s->made) return ncclSuccess;
    for (int w = 0; w < s->nworkers; w++) /* other processes' memory was filled before it was known here */
        if (s->worker[w].context)
            KL_CUDA_TRY(c->driver, cuStreamWaitEvent(stream, s->worker[w].made, 0), "device %d", c->device);
    s->seen[worker] = s->made;
    return ncclSuccess;
}
