/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/relay.h"

#include "base/log.h"
#include "coll/gpu/graphs.h"
#include "coll/gpu/hold.h"
#include "coll/gpu/mover.h"
#include "coll/gpu/relay_memory.h"
#include "coll/gpu/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = KL_RELAY_SLOTS, UNIT = 16, ALIGNMENT = 256, RELEASED = 1 << 30 };

/** A worker's second stream, which takes data from the slots; the first one fills them. */
struct lane {
    kl_cu_stream down;
    kl_cu_event came, gone[SLOTS];
};

struct kl_gpu_relay {
    struct kl_relay_memory memory;
    size_t engines;
    int nprocesses, own;
    struct lane lane[KL_CUDA_DEVICES];
    kl_cu_stream meet; /* of the seat: for all workers of this process, with other processes */
    kl_cu_event in, reduced, pulled[SLOTS];
    uint32_t step; /* of calls */
    int captured;  /* words of graphs in use */
    struct kl_task *task;
    struct kl_gpu_op *op, **ops; /* by rank: an operation on the slots */
};

/** A collective, and the chunk that is being submitted. */
struct move {
    struct kl_gpu_team *team;
    struct kl_gpu_relay *relay;
    struct kl_gpu_op **op;
    const struct kl_task *task;
    const struct kl_func_info *info;
    size_t size, most; /* bytes of an element; elements of a chunk, at most */
    bool engines;      /* copy engines take the results, not kernels */
    bool sliced;       /* each GPU reduces a slice */
    int set, slot;
    size_t first, count;
};

typedef ncclResult_t (*part)(struct move *m, struct kl_gpu_worker *w);

static uint64_t address(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static void *pointer(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

static struct lane *lane_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return &team->relay->lane[number_of(team, w)];
}

/* Where several graphs capture, a graph's part is on one stream. */
static kl_cu_stream down_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return team->apart ? w->stream : lane_of(team, w)->down;
}

static kl_cu_stream meeting_of(const struct kl_gpu_team *team)
{
    return team->apart ? team->worker[team->leader].stream : team->relay->meet;
}

/* ---- life ---- */

size_t kl_gpu_relay_bytes(int nranks, const struct kl_device_config *config)
{
    return kl_relay_memory_bytes(nranks, (size_t)config->cuda_chunk, true);
}

static ncclResult_t create_stream(const struct kl_cuda_context *c, kl_cu_stream *stream)
{
    int least, highest;

    KL_CUDA_TRY(c->driver, cuCtxGetStreamPriorityRange(&least, &highest), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuStreamCreateWithPriority(stream, KL_CU_STREAM_NON_BLOCKING, highest),
                "a stream of device %d", c->device);
    return ncclSuccess;
}

static ncclResult_t create_event(const struct kl_cuda_context *c, kl_cu_event *event)
{
    KL_CUDA_TRY(c->driver, cuEventCreate(event, KL_CU_EVENT_DISABLE_TIMING), "an event of device %d", c->device);
    return ncclSuccess;
}

static ncclResult_t fill_lane(struct kl_gpu_team *team, struct kl_gpu_worker *w)
{
    struct lane *l = lane_of(team, w);

    KL_TRY(create_stream(w->context, &l->down));
    w->second = l->down;
    KL_TRY(create_event(w->context, &l->came));
    for (int i = 0; i < SLOTS; i++) KL_TRY(create_event(w->context, &l->gone[i]));
    if (number_of(team, w) != team->leader) return ncclSuccess;
    KL_TRY(create_stream(w->context, &team->relay->meet));
    KL_TRY(create_event(w->context, &team->relay->in));
    KL_TRY(create_event(w->context, &team->relay->reduced));
    for (int i = 0; i < SLOTS; i++) KL_TRY(create_event(w->context, &team->relay->pulled[i]));
    return ncclSuccess;
}

static ncclResult_t fill_lanes(struct kl_gpu_team *team)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < team->nworkers && !rc; i++) {
        struct kl_gpu_worker *w = &team->worker[i];
        if (!w->context) continue;
        KL_TRY(kl_cuda_enter(w->context));
        rc = fill_lane(team, w);
        kl_cuda_leave(w->context);
    }
    return rc;
}

static ncclResult_t fill(struct kl_gpu_team *team, void *memory, const struct kl_device_config *config)
{
    struct kl_gpu_relay *r = team->relay;
    const size_t n = (size_t)team->nranks;

    r->task = calloc(n, sizeof *r->task);
    r->op = calloc(n, sizeof *r->op);
    r->ops = calloc(n, sizeof(void *));
    if (!r->task || !r->op || !r->ops) return KL_NOMEM("operations of GPUs without P2P");
    KL_TRY(kl_relay_memory_create(&r->memory, team->nranks, (size_t)config->cuda_chunk, memory));
    return fill_lanes(team);
}

ncclResult_t kl_gpu_relay_create(struct kl_gpu_team *team, int nprocesses, int own, void *memory,
                                 const struct kl_device_config *config)
{
    struct kl_gpu_relay *r = team->relay = calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("operations of GPUs without P2P");
    r->nprocesses = nprocesses;
    r->own = own;
    r->engines = (size_t)config->cuda_engines;
    KL_TRY(fill(team, memory, config));
    KL_INFO(
        KL_INIT | KL_TUNING,
        "no P2P between all GPUs: data go through host memory, in chunks of %zu bytes; operations of fewer than %zu "
        "bytes by kernels, others by copy engines",
        r->memory.chunk, r->engines);
    return ncclSuccess;
}

static void free_event(const struct kl_cuda_driver *driver, kl_cu_event event)
{
    if (event) (void)driver->cuEventDestroy(event);
}

static void free_lane(struct kl_gpu_team *team, struct kl_gpu_worker *w)
{
    const struct kl_cuda_driver *driver = w->context->driver;
    struct kl_gpu_relay *r = team->relay;
    struct lane *l = lane_of(team, w);
    const bool leader = number_of(team, w) == team->leader;

    if (kl_cuda_enter(w->context)) return;
    free_event(driver, l->came);
    for (int i = 0; i < SLOTS; i++) free_event(driver, l->gone[i]);
    free_event(driver, leader ? r->in : NULL);
    free_event(driver, leader ? r->reduced : NULL);
    for (int i = 0; leader && i < SLOTS; i++) free_event(driver, r->pulled[i]);
    if (l->down) (void)driver->cuStreamDestroy(l->down);
    if (leader && r->meet) (void)driver->cuStreamDestroy(r->meet);
    kl_cuda_leave(w->context);
}

void kl_gpu_relay_free(struct kl_gpu_team *team, bool failed)
{
    struct kl_gpu_relay *r = team->relay;

    if (!r) return;
    for (int i = 0; i < team->nworkers; i++)
        if (team->worker[i].context) free_lane(team, &team->worker[i]);
    kl_relay_memory_free(&r->memory, team->worker[team->leader].context, failed);
    free(r->task);
    free(r->op);
    free(r->ops);
    free(r);
    team->relay = NULL;
}

void kl_gpu_relay_release_graphs(struct kl_gpu_relay *r)
{
    if (r->nprocesses > 1) kl_gpu_hold(kl_relay_words(&r->memory, KL_RELAY_WORDS_OF_GRAPHS), (size_t)r->captured);
}

bool kl_gpu_relay_is_idle(const struct kl_gpu_team *team)
{
    return kl_cuda_stream_is_idle(team->worker[team->leader].context, team->relay->meet);
}

/* Streams wait for steps that were submitted, so a number far beyond ends their waits. */
void kl_gpu_relay_raise(struct kl_gpu_relay *r, int process)
{
    kl_store_release(&kl_relay_words(&r->memory, KL_RELAY_WORDS)[process], r->step + RELEASED);
}

/* ---- order ---- */

static ncclResult_t wait_for(const struct kl_gpu_worker *w, kl_cu_stream stream, kl_cu_event event)
{
    KL_CUDA_TRY(w->context->driver, cuStreamWaitEvent(stream, event, 0), "device %d", w->context->device);
    return ncclSuccess;
}

static ncclResult_t record(const struct kl_gpu_worker *w, kl_cu_event event, kl_cu_stream stream)
{
    KL_CUDA_TRY(w->context->driver, cuEventRecord(event, stream), "device %d", w->context->device);
    return ncclSuccess;
}

static ncclResult_t write_word(const struct kl_gpu_worker *w, kl_cu_stream stream, uint64_t at, uint32_t value)
{
    KL_CUDA_TRY(w->context->driver, cuStreamWriteValue32(stream, at, value, 0), "device %d", w->context->device);
    return ncclSuccess;
}

static ncclResult_t wait_word(const struct kl_gpu_worker *w, kl_cu_stream stream, uint64_t at, uint32_t value,
                              unsigned condition)
{
    KL_CUDA_TRY(w->context->driver, cuStreamWaitValue32(stream, at, value, condition), "device %d", w->context->device);
    return ncclSuccess;
}

/* All processes come to this step of a call: by numbers. */
static ncclResult_t meet_processes(struct kl_gpu_relay *r, const struct kl_gpu_worker *leader)
{
    uint64_t at;

    KL_TRY(kl_relay_block(&r->memory, leader->context->driver, KL_RELAY_WORDS, &at));
    r->step++;
    KL_TRY(write_word(leader, r->meet, at + 4 * (uint64_t)r->own, r->step));
    for (int p = 0; p < r->nprocesses; p++)
        if (p != r->own) KL_TRY(wait_word(leader, r->meet, at + 4 * (uint64_t)p, r->step, KL_CU_WAIT_AT_LEAST));
    return ncclSuccess;
}

/* The same in a graph: a word from each to each, which is set to 1, and back. */
static ncclResult_t meet_in_graphs(const struct kl_gpu_team *team, const struct kl_gpu_worker *leader)
{
    struct kl_gpu_relay *r = team->relay;
    kl_cu_stream stream = meeting_of(team);
    const int n = r->nprocesses;
    uint64_t at;

    KL_TRY(kl_relay_block(&r->memory, leader->context->driver, KL_RELAY_WORDS_OF_GRAPHS, &at));
    at += 4 * (uint64_t)r->captured;
    for (int p = 0; p < n; p++)
        if (p != r->own) KL_TRY(write_word(leader, stream, at + 4 * (uint64_t)(r->own * n + p), 1));
    for (int p = 0; p < n; p++) {
        const uint64_t word = at + 4 * (uint64_t)(p * n + r->own);
        if (p == r->own) continue;
        KL_TRY(wait_word(leader, stream, word, 1, KL_CU_WAIT_EQUAL));
        KL_TRY(write_word(leader, stream, word, 0));
    }
    r->captured += n * n;
    return ncclSuccess;
}

static ncclResult_t for_workers(struct move *m, part step)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < m->team->nworkers && !rc; i++) {
        struct kl_gpu_worker *w = &m->team->worker[i];
        if (!w->context) continue;
        KL_TRY(kl_cuda_enter(w->context));
        rc = step(m, w);
        kl_cuda_leave(w->context);
    }
    return rc;
}

static ncclResult_t up_comes(struct move *m, struct kl_gpu_worker *w)
{
    return record(w, lane_of(m->team, w)->came, w->stream);
}

static ncclResult_t down_comes(struct move *m, struct kl_gpu_worker *w)
{
    return record(w, lane_of(m->team, w)->came, down_of(m->team, w));
}

static ncclResult_t meet_on_seat(struct move *m, const struct kl_gpu_worker *leader, kl_cu_event event)
{
    struct kl_gpu_relay *r = m->relay;

    for (int i = 0; i < m->team->nworkers; i++)
        if (m->team->worker[i].context) KL_TRY(wait_for(leader, r->meet, r->lane[i].came));
    if (r->nprocesses > 1) KL_TRY(m->team->capture ? meet_in_graphs(m->team, leader) : meet_processes(r, leader));
    return record(leader, event, r->meet);
}

/* In several graphs all workers come to the leader's, and wait for it. */
static ncclResult_t meet_apart(struct move *m)
{
    const struct kl_gpu_worker *leader = &m->team->worker[m->team->leader];
    const uint64_t all = ~(uint64_t)0;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_gpu_graphs_collect(m->team, all));
    KL_TRY(kl_cuda_enter(leader->context));
    if (m->relay->nprocesses > 1) rc = meet_in_graphs(m->team, leader);
    kl_cuda_leave(leader->context);
    return rc ? rc : kl_gpu_graphs_spread(m->team, all);
}

/* The event is for the moment when streams of all workers, of all processes, have come here. */
static ncclResult_t meet(struct move *m, part comes, kl_cu_event event)
{
    const struct kl_gpu_worker *leader = &m->team->worker[m->team->leader];

    if (m->team->apart) return meet_apart(m);
    KL_TRY(for_workers(m, comes));
    KL_TRY(kl_cuda_enter(leader->context));
    ncclResult_t rc = meet_on_seat(m, leader, event);
    kl_cuda_leave(leader->context);
    return rc;
}

static ncclResult_t up_awaits_pulled(struct move *m, struct kl_gpu_worker *w)
{
    return m->team->apart ? ncclSuccess : wait_for(w, w->stream, m->relay->pulled[m->slot]);
}

static ncclResult_t down_awaits_in(struct move *m, struct kl_gpu_worker *w)
{
    return m->team->apart ? ncclSuccess : wait_for(w, down_of(m->team, w), m->relay->in);
}

static ncclResult_t down_awaits_reduced(struct move *m, struct kl_gpu_worker *w)
{
    return m->team->apart ? ncclSuccess : wait_for(w, down_of(m->team, w), m->relay->reduced);
}

/* ---- to the slots ---- */

static ncclResult_t copy(const struct kl_gpu_worker *w, kl_cu_stream stream, uint64_t to, uint64_t from, size_t bytes)
{
    if (!bytes) return ncclSuccess;
    KL_CUDA_TRY(w->context->driver, cuMemcpyAsync(to, from, bytes, stream), "a copy of %zu bytes on device %d", bytes,
                w->context->device);
    return ncclSuccess;
}

static bool is_here(const struct move *m, const struct kl_gpu_worker *w, int rank)
{
    return !kl_gpu_is_far(m->team, rank) && m->team->worker_of[rank] == number_of(m->team, w);
}

static uint64_t slot_of(const struct move *m, int rank)
{
    return kl_relay_slot(&m->relay->memory, m->set, m->slot, rank);
}

static size_t send_parts(const struct move *m)
{
    return m->info->send_parts ? (size_t)m->team->nranks : 1;
}

/* The chunk of each part lies behind the one before. */
static ncclResult_t put_rank(const struct move *m, const struct kl_gpu_worker *w, int rank)
{
    const struct kl_task *t = m->op[rank]->task;
    const uint64_t from = address(t->send) + m->first * m->size;

    for (size_t p = 0; p < send_parts(m); p++)
        KL_TRY(copy(w, w->stream, slot_of(m, rank) + p * m->count * m->size, from + p * t->count * m->size,
                    m->count * m->size));
    if (!t->scalar) return ncclSuccess;
    return copy(w, w->stream, kl_relay_factor(&m->relay->memory, m->set, m->slot, rank), address(t->scalar), m->size);
}

static ncclResult_t put(struct move *m, struct kl_gpu_worker *w)
{
    for (int r = 0; r < m->team->nranks; r++)
        if (is_here(m, w, r) && kl_task_reads(m->op[r]->task, r)) KL_TRY(put_rank(m, w, r));
    return ncclSuccess;
}

/* ---- reductions ---- */

static bool has_factor(const struct move *m, int rank)
{
    return kl_gpu_is_far(m->team, rank) ? m->team->far->current[rank]->task.scalar : m->op[rank]->task->scalar;
}

/* Own ranks' data where they are, unless the parts in slots lie closer together. */
static bool is_direct(const struct move *m)
{
    return !m->info->send_parts || m->count == m->task->count;
}

/* Elements [begin, begin + count) of the chunk as an operation of its own, with the slots of other GPUs and no results yet. */
static void set_operation(struct move *m, const struct kl_gpu_worker *w, size_t begin, size_t count)
{
    struct kl_gpu_relay *r = m->relay;

    for (int i = 0; i < m->team->nranks; i++) {
        struct kl_task *t = &r->task[i];
        const bool direct = is_here(m, w, i) && is_direct(m);
        *t = *m->op[i]->task;
        t->count = count;
        t->recv = NULL;
        t->send = pointer((direct ? address(t->send) + m->first * m->size : slot_of(m, i)) + begin * m->size);
        if (!direct && has_factor(m, i)) t->scalar = pointer(kl_relay_factor(&r->memory, m->set, m->slot, i));
        r->op[i] = (struct kl_gpu_op){.task = t};
        r->ops[i] = &r->op[i];
    }
}

static ncclResult_t run_operation(const struct move *m, const struct kl_gpu_worker *w)
{
    const struct kl_gpu_share s = {.team = m->team,
                                   .op = m->relay->ops,
                                   .task = m->relay->ops[0]->task,
                                   .ranks = m->team->nranks,
                                   .bytes = m->size,
                                   .worker = w,
                                   .stream = down_of(m->team, w),
                                   .of = 1};

    return kl_gpu_mover_direct.move(&s);
}

/* The results of own ranks, from the data of all. */
static ncclResult_t reduce(struct move *m, struct kl_gpu_worker *w)
{
    bool some = false;

    set_operation(m, w, 0, m->count);
    for (int r = 0; r < m->team->nranks; r++) {
        if (!is_here(m, w, r) || !kl_task_writes(m->op[r]->task, r)) continue;
        m->relay->task[r].recv = pointer(address(m->op[r]->task->recv) + m->first * m->size);
        some = true;
    }
    return some ? run_operation(m, w) : ncclSuccess;
}

/* This GPU's slice, to host memory. */
static ncclResult_t reduce_slice(struct move *m, struct kl_gpu_worker *w)
{
    const size_t per_unit = UNIT / m->size, units = (m->count + per_unit - 1) / per_unit;
    const size_t i = (size_t)number_of(m->team, w), n = (size_t)m->team->nworkers;
    const size_t begin = units * i / n * per_unit;
    size_t end = units * (i + 1) / n * per_unit;
    int writer = 0;

    if (end > m->count) end = m->count;
    if (!w->submits || begin >= end) return ncclSuccess;
    set_operation(m, w, begin, end - begin);
    while (!kl_task_writes(m->op[writer]->task, writer)) writer++;
    m->relay->task[writer].recv = pointer(kl_relay_result(&m->relay->memory, m->set, m->slot) + begin * m->size);
    return run_operation(m, w);
}

static ncclResult_t take_result(struct move *m, struct kl_gpu_worker *w)
{
    for (int r = 0; r < m->team->nranks; r++) {
        const struct kl_task *t = m->op[r]->task;
        if (is_here(m, w, r) && kl_task_writes(t, r))
            KL_TRY(copy(w, down_of(m->team, w), address(t->recv) + m->first * m->size,
                        kl_relay_result(&m->relay->memory, m->set, m->slot), m->count * m->size));
    }
    return ncclSuccess;
}

/* ---- copies ---- */

/* The chunk that a rank sends to another; 0: none. */
static uint64_t chunk_for(const struct move *m, int from, int to)
{
    if (!kl_task_reads(m->op[from]->task, from)) return 0;
    return slot_of(m, from) + (m->info->send_parts ? (size_t)to * m->count * m->size : 0);
}

static size_t part_bytes(const struct move *m)
{
    return m->info->recv_parts ? m->task->count * m->size : 0;
}

static ncclResult_t take_by_engine(const struct move *m, const struct kl_gpu_worker *w, int rank)
{
    const uint64_t to = address(m->op[rank]->task->recv) + m->first * m->size;

    for (int from = 0; from < m->team->nranks; from++) {
        const uint64_t at = chunk_for(m, from, rank);
        if (at) KL_TRY(copy(w, down_of(m->team, w), to + (uint64_t)from * part_bytes(m), at, m->count * m->size));
    }
    return ncclSuccess;
}

/* One launch: a part from each rank, or the root's. */
static ncclResult_t take_by_kernel(const struct move *m, const struct kl_gpu_worker *w, int rank)
{
    const struct kl_gpu_share s = {
        .team = m->team, .ranks = m->team->nranks, .worker = w, .stream = down_of(m->team, w)};
    struct kl_gpu_job *j = kl_gpu_job_clear(&s);
    unsigned parts = 0;

    j->count = m->count * m->size;
    j->stride = part_bytes(m);
    j->out[0] = address(m->op[rank]->task->recv) + m->first * m->size;
    for (int from = 0; from < m->team->nranks; from++) {
        const uint64_t at = chunk_for(m, from, rank);
        if (at) j->in[parts++] = at;
    }
    return kl_gpu_job_launch(&s, KL_KERNEL_copy_gather, 1, parts, 1);
}

static ncclResult_t take(struct move *m, struct kl_gpu_worker *w)
{
    for (int r = 0; r < m->team->nranks; r++)
        if (is_here(m, w, r) && kl_task_writes(m->op[r]->task, r))
            KL_TRY(m->engines ? take_by_engine(m, w, r) : take_by_kernel(m, w, r));
    return ncclSuccess;
}

/* ---- collectives ---- */

static size_t elements_of(const struct move *m)
{
    const size_t most = m->relay->memory.chunk / (send_parts(m) * m->size);

    return most > UNIT ? most / UNIT * UNIT : most;
}

static int chunks_of(const struct move *m)
{
    return m->task->count ? (int)((m->task->count + m->most - 1) / m->most) : 1;
}

/* Pinned memory, and words for all of it. */
static ncclResult_t prepare(struct move *m, const struct kl_cuda_driver *driver)
{
    const int n = m->relay->nprocesses;
    const int64_t words = n == 1 || !m->team->capture ? 0 : (int64_t)chunks_of(m) * (m->sliced ? 3 : 2) * n * n;
    uint64_t at;

    KL_TRY(kl_relay_block(&m->relay->memory, driver, KL_RELAY_SET + m->set, &at));
    if (m->relay->captured + words <= KL_RELAY_GRAPH_WORDS) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "streams have captured as many collectives of GPUs without P2P as a communicator can: use a larger "
                   "KOLO_CUDA_CHUNK, or a further communicator");
}

static ncclResult_t start(struct move *m, struct kl_gpu_worker *w)
{
    return kl_gpu_wait_for_all(m->team, w, m->op, m->team->nranks);
}

static ncclResult_t finish(struct move *m, struct kl_gpu_worker *w)
{
    KL_TRY(up_awaits_pulled(m, w));
    return kl_gpu_record_end(m->team, w, m->op, m->team->nranks);
}

static ncclResult_t move_chunk(struct move *m)
{
    KL_TRY(for_workers(m, put));
    KL_TRY(meet(m, up_comes, m->relay->in));
    KL_TRY(for_workers(m, down_awaits_in));
    if (m->sliced) {
        KL_TRY(for_workers(m, reduce_slice));
        KL_TRY(meet(m, down_comes, m->relay->reduced));
        KL_TRY(for_workers(m, down_awaits_reduced));
        KL_TRY(for_workers(m, take_result));
    } else {
        KL_TRY(for_workers(m, m->info->reduces ? reduce : take));
    }
    return meet(m, down_comes, m->relay->pulled[m->slot]);
}

static ncclResult_t move_chunks(struct move *m)
{
    KL_TRY(for_workers(m, start));
    for (int c = 0; c < chunks_of(m); c++) {
        m->slot = c % SLOTS;
        m->first = (size_t)c * m->most;
        m->count = m->task->count - m->first < m->most ? m->task->count - m->first : m->most;
        if (c >= SLOTS) KL_TRY(for_workers(m, up_awaits_pulled)); /* the slot is free */
        KL_TRY(move_chunk(m));
    }
    return for_workers(m, finish);
}

static ncclResult_t prepare_on_seat(struct move *m)
{
    const struct kl_cuda_context *c = m->team->worker[m->team->leader].context;

    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc = prepare(m, c->driver);
    kl_cuda_leave(c);
    return rc;
}

ncclResult_t kl_gpu_relay_collective(struct kl_gpu_team *team, struct kl_gpu_op **op)
{
    const struct kl_task *t = op[0]->task;
    const size_t size = kl_type_bytes(t->type), bytes = kl_func_bytes(t->func, t->count * size, team->nranks);
    struct move m = {.team = team,
                     .relay = team->relay,
                     .op = op,
                     .task = t,
                     .info = &kl_func_info[t->func],
                     .size = size,
                     .engines = bytes >= team->relay->engines,
                     .set = team->capture != 0};

    m.most = elements_of(&m);
    m.sliced = m.info->reduces && !m.info->send_parts && m.engines && team->nworkers > 2;
    KL_TRY(prepare_on_seat(&m));
    KL_INFO(KL_TUNING, "%s: %zu bytes through host memory, in %d chunks, results by %s", m.info->name, bytes,
            chunks_of(&m),
            m.sliced                        ? "kernels and copy engines"
            : m.engines && !m.info->reduces ? "copy engines"
                                            : "kernels");
    return move_chunks(&m);
}

/* ---- messages within the process ---- */

/* From host memory to the receiver, which may be on any address. */
static ncclResult_t receive(struct kl_gpu_team *team, const struct kl_gpu_worker *w, kl_cu_stream stream, uint64_t to,
                            uint64_t from, size_t bytes, bool engine)
{
    const struct kl_gpu_share s = {.team = team, .ranks = 1, .worker = w, .stream = stream};

    if (engine) return copy(w, stream, to, from, bytes);
    struct kl_gpu_job *j = kl_gpu_job_clear(&s);
    j->count = bytes;
    j->in[0] = from;
    j->out[0] = to;
    return kl_gpu_job_launch(&s, KL_KERNEL_copy_gather, 1, 1, 1);
}

/** A message, and the chunk of it that is being submitted. */
struct message {
    struct kl_gpu_team *team;
    struct kl_gpu_op *op[2]; /* the send, the receive */
    struct kl_gpu_worker *from, *to;
    size_t bytes, first, count;
    uint64_t slot_at;
    int chunk;
};

/* One chunk after the other. */
static ncclResult_t send_chunk_apart(struct message *m)
{
    if (m->chunk) KL_TRY(kl_gpu_graphs_pass(m->team, m->op[1]->call, m->op[0]->call));
    KL_TRY(copy(m->from, m->from->stream, m->slot_at, address(m->op[0]->task->send) + m->first, m->count));
    return kl_gpu_graphs_pass(m->team, m->op[0]->call, m->op[1]->call);
}

static ncclResult_t send_chunk(struct message *m)
{
    const struct lane *to = lane_of(m->team, m->to);

    if (m->team->apart) return send_chunk_apart(m);
    if (m->chunk >= SLOTS) KL_TRY(wait_for(m->from, m->from->stream, to->gone[m->chunk % SLOTS]));
    KL_TRY(copy(m->from, m->from->stream, m->slot_at, address(m->op[0]->task->send) + m->first, m->count));
    return record(m->from, lane_of(m->team, m->from)->came, m->from->stream);
}

static ncclResult_t receive_chunk(struct message *m)
{
    const struct lane *to = lane_of(m->team, m->to);

    if (!m->team->apart) KL_TRY(wait_for(m->to, to->down, lane_of(m->team, m->from)->came));
    KL_TRY(receive(m->team, m->to, down_of(m->team, m->to), address(m->op[1]->task->recv) + m->first, m->slot_at,
                   m->count, m->bytes >= m->team->relay->engines));
    return m->team->apart ? ncclSuccess : record(m->to, to->gone[m->chunk % SLOTS], to->down);
}

static ncclResult_t start_message(struct message *m)
{
    uint64_t at;

    KL_TRY(
        kl_relay_block(&m->team->relay->memory, m->from->context->driver, KL_RELAY_SET + (m->team->capture != 0), &at));
    return kl_gpu_wait_for_all(m->team, m->from, m->op, 2);
}

static ncclResult_t end_message(struct message *m)
{
    const struct lane *to = lane_of(m->team, m->to);

    if (m->team->apart) return ncclSuccess; /* the sender's graph waits for the receiver's */
    KL_TRY(wait_for(m->from, m->from->stream, to->gone[(m->chunk - 1) % SLOTS]));
    return kl_gpu_record_end(m->team, m->from, m->op, 2);
}

static ncclResult_t on(struct message *m, const struct kl_gpu_worker *w, ncclResult_t (*step)(struct message *m))
{
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = step(m);
    kl_cuda_leave(w->context);
    return rc;
}

ncclResult_t kl_gpu_relay_message(struct kl_gpu_team *team, struct kl_gpu_op *send, struct kl_gpu_op *recv)
{
    const struct kl_relay_memory *memory = &team->relay->memory;
    struct message m = {.team = team,
                        .op = {send, recv},
                        .from = &team->worker[team->worker_of[send->call->rank]],
                        .to = &team->worker[team->worker_of[recv->call->rank]],
                        .bytes = send->task->count * kl_type_bytes(send->task->type)};

    KL_TRY(on(&m, m.from, start_message));
    do {
        m.count = m.bytes - m.first < memory->chunk ? m.bytes - m.first : memory->chunk;
        m.slot_at = kl_relay_slot(memory, team->capture != 0, m.chunk % SLOTS, send->call->rank);
        KL_TRY(on(&m, m.from, send_chunk));
        KL_TRY(on(&m, m.to, receive_chunk));
        m.first += m.count;
        m.chunk++;
    } while (m.first < m.bytes);
    return on(&m, m.from, end_message);
}

/* ---- messages between processes ---- */

ncclResult_t kl_gpu_relay_reserve(struct kl_gpu_team *team, struct kl_gpu_call *call)
{
    size_t used = 0;

    for (size_t i = call->ncollectives; i < call->nops; i++) {
        const struct kl_task *t = call->op[i].task;
        const size_t bytes = t->count * kl_type_bytes(t->type);
        if (t->func != KL_FUNC_SEND || !kl_gpu_is_far(team, t->peer) || !kl_gpu_is_relayed(team, call->rank, t->peer))
            continue;
        call->op[i].stage[KL_GPU_SEND] = (struct kl_gpu_staged){.at = used, .bytes = bytes};
        used += (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    if (used <= KL_RELAY_ROOM) return ncclSuccess;
    return KL_FAIL(
        ncclInvalidUsage,
        "rank %d: messages of a call to GPUs of other processes, without P2P, have %zu bytes; at most %d: send "
        "them in several calls",
        call->rank, used, KL_RELAY_ROOM);
}

/* The room is pinned in pieces: no copy crosses the border of two. */
static ncclResult_t move_pieces(struct kl_gpu_team *team, const struct kl_gpu_worker *w, int sender, size_t first,
                                uint64_t memory, size_t bytes, bool to_room)
{
    const bool engine = to_room || bytes >= team->relay->engines;

    for (size_t done = 0, n; done < bytes; done += n) {
        const size_t at = first + done, inside = at % KL_RELAY_PIECE;
        uint64_t piece;
        n = bytes - done < KL_RELAY_PIECE - inside ? bytes - done : KL_RELAY_PIECE - inside;
        KL_TRY(kl_relay_block(&team->relay->memory, w->context->driver, kl_relay_piece(sender, team->capture != 0, at),
                              &piece));
        const uint64_t room = piece + inside, buffer = memory + done;
        KL_TRY(receive(team, w, w->stream, to_room ? room : buffer, to_room ? buffer : room, n, engine));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_relay_put(struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op,
                              struct kl_gpu_export_handle *exported)
{
    const struct kl_gpu_staged *s = &op->stage[KL_GPU_SEND];

    exported->offset = s->at;
    return move_pieces(team, w, op->call->rank, s->at, address(op->task->send), s->bytes, true);
}

ncclResult_t kl_gpu_relay_get(struct kl_gpu_team *team, const struct kl_gpu_worker *w, const struct kl_gpu_op *op,
                              const struct kl_gpu_export_handle *exported)
{
    const struct kl_task *t = op->task;

    return move_pieces(team, w, t->peer, exported->offset, address(t->recv), t->count * kl_type_bytes(t->type), false);
}
