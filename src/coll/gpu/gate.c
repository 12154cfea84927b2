/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/gate.h"

#include "base/log.h"
#include "device/device.h"
#include "device/host/idle.h"

#include <stdio.h>
#include <stdlib.h>

enum { WORD_BYTES = 4096, PAGE = 2 << 20, RELEASED = 1 << 30 };

/* Pinned memory; one that is too small is replaced, and stays for work that uses it. */
struct kl_gpu_gate_stage {
    void *memory;
    size_t bytes;
    uint64_t capture; /* the graph that uses it; 0: calls */
    struct kl_gpu_gate_stage *next;
};

/* ---- life ---- */

static ncclResult_t create_streams(struct kl_gpu_gate *g)
{
    const struct kl_cuda_context *c = g->context;
    kl_cu_event *const event[] = {&g->ready, &g->departed, &g->back[0], &g->back[1], &g->end};
    kl_cu_stream *const stream[] = {&g->in, &g->out};
    int least, highest;

    KL_CUDA_TRY(c->driver, cuCtxGetStreamPriorityRange(&least, &highest), "device %d", c->device);
    for (int i = 0; i < 2; i++)
        KL_CUDA_TRY(c->driver, cuStreamCreateWithPriority(stream[i], KL_CU_STREAM_NON_BLOCKING, highest),
                    "a stream of device %d", c->device);
    for (int i = 0; i < 5; i++)
        KL_CUDA_TRY(c->driver, cuEventCreate(event[i], KL_CU_EVENT_DISABLE_TIMING), "an event of device %d", c->device);
    return ncclSuccess;
}

static ncclResult_t create_word(struct kl_gpu_gate *g)
{
    const struct kl_cuda_driver *driver = g->context->driver;
    void *page = aligned_alloc(WORD_BYTES, WORD_BYTES);

    if (!page) return KL_NOMEM("words for a GPU");
    int rc = driver->cuMemHostRegister(page, WORD_BYTES, KL_CU_HOST_PORTABLE_MAPPED);
    if (rc) {
        free(page);
        return KL_FAIL(ncclUnhandledCudaError, "rank %d: words for device %d: cuMemHostRegister failed with %s (%d)",
                       g->rank, g->context->device, kl_cuda_error_name(driver, rc), rc);
    }
    g->reached = page;
    kl_store_relaxed(g->reached, 0);
    KL_CUDA_TRY(driver, cuMemHostGetDevicePointer(&g->reached_at, page, 0), "words for a GPU");
    return ncclSuccess;
}

static ncclResult_t fill(struct kl_gpu_gate *g)
{
    KL_TRY(create_streams(g));
    return create_word(g);
}

static void free_pinned(const struct kl_gpu_gate *g)
{
    const struct kl_cuda_driver *driver = g->context->driver;

    for (struct kl_gpu_gate_stage *s = g->stage, *next; s; s = next) {
        next = s->next;
        (void)driver->cuMemHostUnregister(s->memory);
        (void)kl_host_devices.free(s->memory);
        free(s);
    }
    if (!g->reached) return;
    (void)driver->cuMemHostUnregister((void *)g->reached);
    free((void *)g->reached);
}

/* A stream that is destroyed ends its work by itself. */
static void free_streams(const struct kl_gpu_gate *g)
{
    const struct kl_cuda_driver *driver = g->context->driver;
    kl_cu_event const event[] = {g->ready, g->departed, g->back[0], g->back[1], g->end};

    for (int i = 0; i < 5; i++)
        if (event[i]) (void)driver->cuEventDestroy(event[i]);
    if (g->in) (void)driver->cuStreamDestroy(g->in);
    if (g->out) (void)driver->cuStreamDestroy(g->out);
}

/* Its context is current. */
static void free_all(struct kl_gpu_gate *g)
{
    free_streams(g);
    free_pinned(g);
    kl_gpu_notices_free(&g->notices, g->context->driver);
}

static void free_gate(struct kl_gpu_gate *g)
{
    if (g->context && !kl_cuda_enter(g->context)) {
        free_all(g);
        kl_cuda_leave(g->context);
    }
    free(g);
}

/* Released gates whose streams may still use their memory. */
static struct {
    pthread_mutex_t lock;
    struct kl_gpu_gate *first;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool has_ended(const struct kl_gpu_gate *g)
{
    const struct kl_cuda_driver *driver = g->context->driver;

    if (g->notices.graphs || kl_cuda_enter(g->context)) return false; /* a graph may be launched again */
    const bool ended = (!g->in || !driver->cuStreamQuery(g->in)) && (!g->out || !driver->cuStreamQuery(g->out));
    kl_cuda_leave(g->context);
    return ended;
}

static void free_ended(void)
{
    pthread_mutex_lock(&kept.lock);
    for (struct kl_gpu_gate **link = &kept.first, *g; (g = *link);) {
        if (!has_ended(g)) {
            link = &g->next;
            continue;
        }
        *link = g->next;
        free_gate(g);
    }
    pthread_mutex_unlock(&kept.lock);
}

static void keep(struct kl_gpu_gate *g)
{
    pthread_mutex_lock(&kept.lock);
    g->next = kept.first;
    kept.first = g;
    pthread_mutex_unlock(&kept.lock);
}

void kl_gpu_gate_free(struct kl_gpu_gate *g, bool released)
{
    if (released)
        keep(g);
    else
        free_gate(g);
    free_ended();
}

ncclResult_t kl_gpu_gate_create(int device, int rank, int nranks, struct kl_gpu_gate **out)
{
    struct kl_gpu_gate *g = aligned_alloc(KL_LINE, (sizeof *g + KL_LINE - 1) / KL_LINE * KL_LINE);
    const struct kl_cuda_context *context;

    *out = NULL;
    free_ended();
    if (!g) return KL_NOMEM("a rank on a GPU");
    *g = (struct kl_gpu_gate){.rank = rank, .nranks = nranks};
    ncclResult_t rc = kl_cuda_context_of(device, NULL, 0, &context);
    if (!rc) rc = kl_cuda_enter(context);
    if (!rc) {
        g->context = context;
        rc = fill(g);
        kl_cuda_leave(context);
    }
    if (rc)
        kl_gpu_gate_free(g, false);
    else
        *out = g;
    return rc;
}

/* ---- the stage ---- */

/* Another thread may capture in a mode that forbids it; it is no part of any graph. */
static int pin(const struct kl_cuda_driver *driver, void *memory, size_t bytes)
{
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    int rc = driver->cuMemHostRegister(memory, bytes, KL_CU_HOST_PORTABLE_MAPPED);
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    return rc;
}

/* The engine lends it to other processes, as memory of host devices. */
static ncclResult_t create_stage(struct kl_gpu_gate *g, size_t bytes, uint64_t capture)
{
    const struct kl_cuda_context *c = g->context;
    struct kl_gpu_gate_stage *s = malloc(sizeof *s);

    if (!s) return KL_NOMEM("a stage");
    *s = (struct kl_gpu_gate_stage){.bytes = bytes, .capture = capture, .next = g->stage};
    ncclResult_t rc = kl_host_devices.alloc(c->device, KL_MEMORY_SHAREABLE, bytes, &s->memory);
    int failed = rc ? 0 : pin(c->driver, s->memory, bytes);
    if (failed) {
        (void)kl_host_devices.free(s->memory);
        rc =
            KL_FAIL(ncclUnhandledCudaError,
                    "rank %d: a stage of %zu bytes of host memory for device %d: cuMemHostRegister failed with %s (%d)",
                    g->rank, bytes, c->device, kl_cuda_error_name(c->driver, failed), failed);
    }
    if (rc) {
        free(s);
        return rc;
    }
    g->stage = s;
    KL_INFO(KL_ALLOC, "rank %d: a stage of %zu bytes of host memory for device %d", g->rank, bytes, c->device);
    return ncclSuccess;
}

static struct kl_gpu_gate_stage *find_stage(const struct kl_gpu_gate *g, uint64_t capture)
{
    struct kl_gpu_gate_stage *s = g->stage;

    while (s && s->capture != capture) s = s->next;
    return s;
}

static ncclResult_t grow(struct kl_gpu_gate *g, size_t bytes, uint64_t capture)
{
    const struct kl_gpu_gate_stage *s = find_stage(g, capture);
    const size_t before = s ? s->bytes : 0;
    const size_t wanted = bytes < before + before / 2 ? before + before / 2 : bytes;

    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = create_stage(g, (wanted + PAGE - 1) / PAGE * PAGE, capture);
    kl_cuda_leave(g->context);
    return rc;
}

ncclResult_t kl_gpu_gate_reserve(struct kl_gpu_gate *g, size_t bytes, uint64_t capture, char **stage)
{
    const struct kl_gpu_gate_stage *s = find_stage(g, capture);

    if (!s || s->bytes < bytes) KL_TRY(grow(g, bytes ? bytes : 1, capture)); /* messages without elements */
    *stage = find_stage(g, capture)->memory;
    return ncclSuccess;
}

/* ---- the program's streams ---- */

static bool is_first_on_stream(const struct kl_gpu_call *call, size_t i)
{
    size_t j = 0;

    while (j < i && call->op[j].stream != call->op[i].stream) j++;
    return j == i;
}

static ncclResult_t record(const struct kl_gpu_gate *g, kl_cu_event event, kl_cu_stream stream)
{
    KL_CUDA_TRY(g->context->driver, cuEventRecord(event, stream), "rank %d: a stream of device %d", g->rank,
                g->context->device);
    return ncclSuccess;
}

static ncclResult_t follow(const struct kl_gpu_gate *g, kl_cu_stream stream, kl_cu_event event)
{
    KL_CUDA_TRY(g->context->driver, cuStreamWaitEvent(stream, event, 0), "rank %d: a stream of device %d", g->rank,
                g->context->device);
    return ncclSuccess;
}

static kl_cu_stream way_in(const struct kl_gpu_gate *g)
{
    return g->captured ? g->captured : g->in;
}

static kl_cu_stream way_out(const struct kl_gpu_gate *g)
{
    return g->captured ? g->captured : g->out;
}

/* The copies wait for all streams of the call, one after the other. */
static ncclResult_t mark(struct kl_gpu_gate *g, const struct kl_gpu_call *call)
{
    for (size_t i = 0; i < call->nops; i++) {
        if (!is_first_on_stream(call, i)) continue;
        KL_TRY(record(g, g->ready, call->op[i].stream));
        KL_TRY(follow(g, way_in(g), g->ready));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_gate_begin(struct kl_gpu_gate *g, const struct kl_gpu_call *call)
{
    g->captured = call->capture ? call->op[0].stream : NULL;
    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = mark(g, call);
    kl_cuda_leave(g->context);
    return rc;
}

ncclResult_t kl_gpu_gate_end(struct kl_gpu_gate *g, const struct kl_gpu_call *call)
{
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_cuda_enter(g->context));
    for (size_t i = 0; !rc && i < call->nops; i++)
        if (is_first_on_stream(call, i)) rc = follow(g, call->op[i].stream, g->end);
    kl_cuda_leave(g->context);
    return rc;
}

/* ---- rounds ---- */

static ncclResult_t copy(const struct kl_gpu_gate *g, kl_cu_stream stream, const void *to, const void *from,
                         size_t bytes)
{
    const struct kl_cuda_context *c = g->context;

    KL_CUDA_TRY(c->driver, cuMemcpyAsync((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, stream),
                "rank %d: %zu bytes between device %d and its stage", g->rank, bytes, c->device);
    return ncclSuccess;
}

/* A buffer of the program, and its place on the stage. */
struct ends {
    const char *user, *stage;
    size_t parts, part, whole; /* bytes of a part in this round, and in all */
};

static struct ends ends_of(const struct kl_gpu_gate *g, const struct kl_gpu_travel *v, const struct kl_gpu_round *round,
                           enum kl_gpu_buffer_kind kind)
{
    const struct kl_task *user = v->op->task;
    const struct kl_func_info *info = &kl_func_info[user->func];
    const size_t element = kl_type_bytes(user->type);
    const bool parts = kind == KL_GPU_SEND ? info->send_parts : kind == KL_GPU_RECV && info->recv_parts;
    const void *const at[] = {user->send, user->recv, user->scalar}, *const stage[] = {v->task.send, v->task.recv,
                                                                                       v->task.scalar};

    return (struct ends){.user = (const char *)at[kind] + (kind == KL_GPU_FACTOR ? 0 : round->first * element),
                         .stage = stage[kind],
                         .parts = parts ? (size_t)g->nranks : 1,
                         .part = v->bytes[kind],
                         .whole = user->count * element};
}

static ncclResult_t copy_parts(const struct kl_gpu_gate *g, struct ends e, bool back)
{
    kl_cu_stream stream = back ? way_out(g) : way_in(g);

    if (!e.part) return ncclSuccess;
    if (e.part == e.whole) {
        e.part *= e.parts;
        e.parts = 1;
    }
    for (size_t p = 0; p < e.parts; p++) {
        const char *user = e.user + p * e.whole, *stage = e.stage + p * e.part;
        KL_TRY(copy(g, stream, back ? user : stage, back ? stage : user, e.part));
    }
    return ncclSuccess;
}

static ncclResult_t copy_all(const struct kl_gpu_gate *g, const struct kl_gpu_rounds *rounds,
                             const struct kl_gpu_round *round, bool back)
{
    for (size_t i = 0; i < round->ntravels; i++) {
        const struct kl_gpu_travel *v = &rounds->travel[round->travel + i];
        for (int b = 0; b < KL_GPU_BUFFERS; b++)
            if ((b == KL_GPU_RECV) == back)
                KL_TRY(copy_parts(g, ends_of(g, v, round, (enum kl_gpu_buffer_kind)b), back));
    }
    return ncclSuccess;
}

/* Called by CUDA: the data are on the stage. */
static void ring(void *gate)
{
    struct kl_gpu_gate *g = gate;

    kl_fetch_add_acq_rel(&g->arrived, 1); /* pairs with kl_gpu_gate_has_arrived */
    kl_idle_notify();
}

/* The slot is free when the results before it were copied; an operation may use the results of the one before it. */
static ncclResult_t await_slot(const struct kl_gpu_gate *g, const struct kl_gpu_round *round)
{
    if (g->captured) return ncclSuccess; /* all of it is on one stream */
    if (!round->index) return g->last ? follow(g, g->in, g->last) : ncclSuccess;
    return round->index < KL_GPU_SLOTS ? ncclSuccess : follow(g, g->in, g->back[round->index % KL_GPU_SLOTS]);
}

static ncclResult_t depart(struct kl_gpu_gate *g, const struct kl_gpu_rounds *rounds, const struct kl_gpu_round *round)
{
    KL_TRY(await_slot(g, round));
    KL_TRY(copy_all(g, rounds, round, false));
    KL_CUDA_TRY(g->context->driver,
                cuLaunchHostFunc(way_in(g), round->notice ? kl_gpu_notice_give : ring,
                                 round->notice ? (void *)round->notice : g),
                "rank %d: device %d", g->rank, g->context->device);
    return record(g, g->departed, way_in(g));
}

ncclResult_t kl_gpu_gate_depart(struct kl_gpu_gate *g, const struct kl_gpu_rounds *rounds,
                                const struct kl_gpu_round *round)
{
    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = depart(g, rounds, round);
    kl_cuda_leave(g->context);
    return rc;
}

ncclResult_t kl_gpu_gate_follow(const struct kl_gpu_gate *g, const struct kl_gpu_gate *other)
{
    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = follow(g, way_out(g), other->departed);
    kl_cuda_leave(g->context);
    return rc;
}

static ncclResult_t wait_for_number(const struct kl_gpu_gate *g, uint64_t number)
{
    KL_CUDA_TRY(g->context->driver, cuStreamWaitValue32(g->out, g->reached_at, (uint32_t)number, KL_CU_WAIT_AT_LEAST),
                "rank %d: device %d", g->rank, g->context->device);
    return ncclSuccess;
}

/* And set it back, for the next replay. */
static ncclResult_t wait_for_answer(const struct kl_gpu_gate *g, const struct kl_gpu_notice *notice)
{
    KL_CUDA_TRY(g->context->driver, cuStreamWaitValue32(way_out(g), notice->word_at, 1, KL_CU_WAIT_EQUAL),
                "rank %d: device %d", g->rank, g->context->device);
    KL_CUDA_TRY(g->context->driver, cuStreamWriteValue32(way_out(g), notice->word_at, 0, 0), "rank %d: device %d",
                g->rank, g->context->device);
    return ncclSuccess;
}

/* The event tells CUDA the order that the word makes. */
static ncclResult_t come_back(struct kl_gpu_gate *g, const struct kl_gpu_rounds *rounds,
                              const struct kl_gpu_round *round)
{
    if (g->captured) {
        KL_TRY(wait_for_answer(g, round->notice));
        KL_TRY(copy_all(g, rounds, round, true));
    } else {
        KL_TRY(follow(g, g->out, g->departed));
        KL_TRY(wait_for_number(g, round->number));
        KL_TRY(copy_all(g, rounds, round, true));
        g->last = g->back[round->index % KL_GPU_SLOTS];
        KL_TRY(record(g, g->last, g->out));
    }
    return round->last_of_call ? record(g, g->end, way_out(g)) : ncclSuccess;
}

ncclResult_t kl_gpu_gate_return(struct kl_gpu_gate *g, const struct kl_gpu_rounds *rounds,
                                const struct kl_gpu_round *round)
{
    KL_TRY(kl_cuda_enter(g->context));
    ncclResult_t rc = come_back(g, rounds, round);
    kl_cuda_leave(g->context);
    return rc;
}

/* ---- words ---- */

/* A release counts for good. */
static void raise_to(struct kl_gpu_gate *g, uint32_t value)
{
    uint32_t now = kl_load_relaxed(g->reached);

    while ((int32_t)(value - now) > 0 && !kl_cas_acq_rel(g->reached, &now, value)) {
    }
}

void kl_gpu_gate_tell(struct kl_gpu_gate *g, uint64_t number)
{
    raise_to(g, (uint32_t)number);
}

/* Waits are for numbers of rounds under way, so a number far beyond ends them. */
static void release(struct kl_gpu_gate *g)
{
    raise_to(g, kl_load_relaxed(&g->arrived) + RELEASED);
    kl_gpu_notices_release(&g->notices);
}

/* It or the last kl_gpu_gate_unhold sees the other one, and both may. */
void kl_gpu_gate_release(struct kl_gpu_gate *g)
{
    (void)kl_swap_seq_cst(&g->to_release, 1);
    if (!kl_load_seq_cst(&g->held)) release(g);
}

void kl_gpu_gate_hold(struct kl_gpu_gate *g)
{
    kl_fetch_add_seq_cst(&g->held, 1);
}

void kl_gpu_gate_unhold(struct kl_gpu_gate *g)
{
    const bool last = kl_fetch_add_seq_cst(&g->held, UINT32_MAX) == 1;

    if (last && kl_load_seq_cst(&g->to_release)) release(g);
}

void kl_gpu_gate_settle(struct kl_gpu_gate *g)
{
    const bool some = kl_swap_seq_cst(&g->held, 0);

    if (some && kl_load_seq_cst(&g->to_release)) release(g);
}

ncclResult_t kl_gpu_gate_check(const struct kl_gpu_gate *g)
{
    const struct kl_cuda_context *c = g->context;

    int mode = KL_CU_CAPTURE_RELAXED; /* another thread may capture in a mode that forbids the question */

    KL_TRY(kl_cuda_enter(c));
    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    const int rc = c->driver->cuStreamQuery(g->in);
    (void)c->driver->cuThreadExchangeStreamCaptureMode(&mode);
    kl_cuda_leave(c);
    if (!rc || rc == KL_CU_NOT_READY) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "rank %d: its data do not come from device %d: cuStreamQuery gives %s (%d)",
                   g->rank, c->device, kl_cuda_error_name(c->driver, rc), rc);
}

ncclResult_t kl_gpu_gate_synchronize(const struct kl_gpu_gate *g)
{
    const struct kl_cuda_context *c = g->context;

    KL_TRY(kl_cuda_enter(c));
    int rc = c->driver->cuStreamSynchronize(g->in);
    if (!rc) rc = c->driver->cuStreamSynchronize(g->out);
    kl_cuda_leave(c);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "device %d: cuStreamSynchronize failed with %s (%d)", c->device,
                   kl_cuda_error_name(c->driver, rc), rc);
}
