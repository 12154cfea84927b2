/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/far.h"

#include "coll/gpu/hold.h"
#include "coll/gpu/schedule_fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, RELEASED = 1 << 30 };

/* ---- the common memory: words for GPUs, in whole pages, then posts ---- */

static size_t words(int nranks)
{
    const size_t n = (size_t)nranks;

    return n + KL_CUDA_DEVICES + 2 * n * n + KL_GPU_CAPTURED_WORDS + 2 * n * KL_GPU_CAPTURED_MESSAGES;
}

/* The word behind them: the communicator has failed. */
static size_t word_over(int nranks)
{
    return words(nranks);
}

static size_t word_bytes(int nranks)
{
    return ((word_over(nranks) + 1) * sizeof(uint32_t) + PAGE - 1) / PAGE * PAGE;
}

size_t kl_gpu_far_bytes(int nranks)
{
    const size_t n = (size_t)nranks;

    return PAGE + word_bytes(nranks) + n * KL_GPU_POSTS * sizeof(struct kl_gpu_post) +
           n * n * sizeof(struct kl_gpu_mail) + n * sizeof(struct kl_gpu_marked);
}

/* Numbers that count up: of processes that have arrived, of workers that are done, of messages. */
static int word_arrived(int process)
{
    return process;
}

static int word_done(const struct kl_gpu_far *far, int worker)
{
    return far->nranks + worker;
}

static int word_message(const struct kl_gpu_far *far, int from, int to)
{
    return far->nranks + KL_CUDA_DEVICES + 2 * (from * far->nranks + to);
}

/* Words of captured operations, which are 0 or 1. */
static int first_captured(const struct kl_gpu_far *far)
{
    return far->nranks + KL_CUDA_DEVICES + 2 * far->nranks * far->nranks;
}

/* Between a process and a worker. */
static int word_captured(const struct kl_gpu_team *team, int process, int worker, bool done)
{
    return first_captured(team->far) + team->far->captured + 2 * (process * team->nworkers + worker) + done;
}

static int words_of_a_capture(const struct kl_gpu_team *team)
{
    return 2 * team->far->nprocesses * team->nworkers;
}

ncclResult_t kl_gpu_far_message_word(const struct kl_gpu_team *team, int from, int to, int *word)
{
    const struct kl_gpu_far *far = team->far;

    *word = word_message(far, from, to);
    if (!team->capture) return ncclSuccess;
    if (far->sent[from] == KL_GPU_CAPTURED_MESSAGES)
        return KL_FAIL(ncclInvalidUsage,
                       "rank %d: streams have captured %d messages to other processes, the most of a communicator",
                       from, KL_GPU_CAPTURED_MESSAGES);
    *word = first_captured(far) + KL_GPU_CAPTURED_WORDS + 2 * (from * KL_GPU_CAPTURED_MESSAGES + far->sent[from]);
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_reserve(const struct kl_gpu_team *team)
{
    if (!team->capture || team->far->captured + words_of_a_capture(team) <= KL_GPU_CAPTURED_WORDS) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage,
                   "streams have captured %d collectives, the most of a communicator of %d processes on %d GPUs",
                   team->far->captured / words_of_a_capture(team), team->far->nprocesses, team->nworkers);
}

void kl_gpu_far_next(struct kl_gpu_team *team)
{
    team->far->number++;
    team->far->published = false;
    if (team->capture) team->far->captured += words_of_a_capture(team);
}

struct kl_gpu_mail *kl_gpu_mail_of(const struct kl_gpu_far *far, int from, int to)
{
    return &far->mail[from * far->nranks + to];
}

static struct kl_gpu_post *post_of(const struct kl_gpu_far *far, int rank, uint64_t number)
{
    return &far->post[rank * KL_GPU_POSTS + (int)(number % KL_GPU_POSTS)];
}

/* ---- life ---- */

static ncclResult_t register_words(struct kl_gpu_far *far, const struct kl_cuda_driver *driver)
{
    void *memory = (void *)far->word;

    KL_CUDA_TRY(driver, cuMemHostRegister(memory, word_bytes(far->nranks), KL_CU_HOST_PORTABLE_MAPPED),
                "memory that processes share");
    KL_CUDA_TRY(driver, cuMemHostGetDevicePointer(&far->word_at, memory, 0), "memory that processes share");
    return ncclSuccess;
}

static void free_stages(struct kl_gpu_far *far, bool failed)
{
    for (int r = 0; r < far->nranks; r++)
        for (struct kl_gpu_stage *s = far->stage[r], *next; s; s = next) {
            next = s->next;
            if (!failed && !kl_cuda_enter(s->context)) {
                (void)s->context->driver->cuMemFree(s->at);
                kl_cuda_leave(s->context);
            }
            free(s);
        }
}

static void free_tables(struct kl_gpu_far *far)
{
    free(far->process);
    free(far->task);
    free(far->redop);
    free(far->op);
    free(far->current);
    free(far);
}

static ncclResult_t fill(struct kl_gpu_far *far, const int32_t *process, void *memory)
{
    const size_t n = (size_t)far->nranks;
    char *page = (char *)(((uintptr_t)memory + PAGE - 1) / PAGE * PAGE);

    far->word = (_Atomic uint32_t *)(void *)page;
    far->post = (struct kl_gpu_post *)(void *)(page + word_bytes(far->nranks));
    far->mail = (struct kl_gpu_mail *)(void *)(far->post + n * KL_GPU_POSTS);
    far->marked = (struct kl_gpu_marked *)(void *)(far->mail + n * n);
    far->process = malloc(n * sizeof *far->process);
    far->task = calloc(n, sizeof *far->task);
    far->redop = calloc(n, sizeof *far->redop);
    far->op = calloc(n, sizeof *far->op);
    far->current = calloc(n, sizeof(void *));
    if (!far->process || !far->task || !far->redop || !far->op || !far->current)
        return KL_NOMEM("the ranks of other processes");
    memcpy(far->process, process, n * sizeof *process);
    far->marked[far->own].mark = kl_process_mark_own();
    kl_store_release(&far->marked[far->own].there, 1); /* pairs with kl_gpu_far_is_over */
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_create(const struct kl_cuda_driver *driver, const int32_t *process, int nranks, int nprocesses,
                               int own, void *memory, struct kl_gpu_far **out)
{
    struct kl_gpu_far *far = calloc(1, sizeof *far);

    if (!far) return KL_NOMEM("the ranks of other processes");
    far->nranks = nranks;
    far->nprocesses = nprocesses;
    far->own = own;
    ncclResult_t rc = fill(far, process, memory);
    if (!rc) rc = register_words(far, driver);
    if (rc)
        free_tables(far);
    else
        *out = far;
    return rc;
}

static void close_import(const struct kl_gpu_import *i)
{
    if (kl_cuda_enter(i->worker->context)) return;
    (void)i->worker->context->driver->cuIpcCloseMemHandle(i->at);
    kl_cuda_leave(i->worker->context);
}

void kl_gpu_far_free(struct kl_gpu_team *team, bool failed)
{
    struct kl_gpu_far *far = team->far;

    if (!far) return;
    for (int i = 0; i < KL_GPU_IMPORTS && !failed; i++) /* streams of a failed team may still be at work */
        if (far->import[i].worker) close_import(&far->import[i]);
    free_stages(far, failed);
    for (int i = 0; i < team->nworkers && !failed; i++) {
        const struct kl_cuda_context *c = team->worker[i].context;
        if (!c || kl_cuda_enter(c)) continue;
        (void)c->driver->cuMemHostUnregister((void *)far->word);
        kl_cuda_leave(c);
        break;
    }
    free_tables(far);
    team->far = NULL;
}

static int process_of(const struct kl_gpu_team *team, int rank)
{
    return team->far ? team->far->process[rank] : 0;
}

int kl_gpu_far_sharer(const struct kl_gpu_team *team)
{
    for (int r = 0; r < team->nranks; r++)
        for (int q = 0; q < r; q++)
            if (team->worker_of[q] == team->worker_of[r] && process_of(team, q) != process_of(team, r)) return r;
    return -1;
}

/* ---- export handles ---- */

bool kl_gpu_far_export(const struct kl_cuda_context *c, const void *ptr, struct kl_gpu_export_handle *exported)
{
    static const int attributes[] = {KL_CU_POINTER_BUFFER_ID, KL_CU_POINTER_IS_LEGACY};
    const uint64_t at = (uint64_t)(uintptr_t)ptr;
    uint64_t capable = 0; /* a boolean: the driver may write one byte or four */
    void *values[] = {&exported->id, &capable};
    size_t bytes;

    if (c->driver->cuPointerGetAttributes(2, attributes, values, at) || !capable ||
        c->driver->cuMemGetAddressRange(&exported->base, &bytes, at) ||
        c->driver->cuIpcGetMemHandle(&exported->handle, exported->base))
        return false;
    exported->offset = at - exported->base;
    return true;
}

ncclResult_t kl_gpu_far_export_of(const struct kl_cuda_context *c, const struct kl_gpu_op *op,
                                  const struct kl_gpu_buffer *buffer, enum kl_gpu_buffer_kind kind,
                                  struct kl_gpu_export_handle *exported)
{
    const void *ptr = op->stage[kind].bytes ? (const void *)(uintptr_t)op->stage[kind].at : buffer->ptr;

    exported->base = 0;
    if (!buffer->bytes || kl_gpu_far_export(c, ptr, exported)) return ncclSuccess;
    return KL_FAIL(ncclInvalidArgument, "%s of rank %d: %s at %p: other processes cannot map this memory",
                   kl_func_info[op->task->func].name, op->call->rank, buffer->name, buffer->ptr);
}

/* When nothing uses it any more. A stream that captures cannot be waited for, and the operation that looks is on none yet. */
static bool drop_import(const struct kl_gpu_team *team, struct kl_gpu_import *m)
{
    if (m->kept || m->look == team->far->looks || team->capture) return false;
    (void)m->worker->context->driver->cuStreamSynchronize(m->worker->stream);
    close_import(m);
    m->worker = NULL;
    return true;
}

/* The import of an allocation; NULL: none. One of memory that was freed since, and given out again, is closed. */
static struct kl_gpu_import *find_import(struct kl_gpu_team *team, const struct kl_gpu_worker *w, int process,
                                         const struct kl_gpu_export_handle *t)
{
    for (int i = 0; i < KL_GPU_IMPORTS; i++) {
        struct kl_gpu_import *m = &team->far->import[i];
        if (m->worker != w || m->process != process || m->base != t->base) continue;
        if (m->id == t->id) return m;
        (void)drop_import(team, m);
    }
    return NULL;
}

/* A free place, or the next one that can be freed; NULL: all are in use. */
static struct kl_gpu_import *find_place(struct kl_gpu_team *team)
{
    struct kl_gpu_far *far = team->far;

    for (int i = 0; i < KL_GPU_IMPORTS; i++)
        if (!far->import[i].worker) return &far->import[i];
    for (int i = 0; i < KL_GPU_IMPORTS; i++) {
        struct kl_gpu_import *m = &far->import[far->next_import++ % KL_GPU_IMPORTS];
        if (drop_import(team, m)) return m;
    }
    return NULL;
}

/* Another thread may capture in a mode that forbids mapping memory, which is no part of any graph. */
static int map_memory(const struct kl_cuda_driver *driver, const struct kl_gpu_export_handle *t, uint64_t *at)
{
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    int rc = driver->cuIpcOpenMemHandle(at, t->handle, KL_CU_IPC_PEER_ACCESS);
    (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    return rc;
}

static ncclResult_t open_import(struct kl_gpu_team *team, const struct kl_gpu_worker *w, int rank,
                                const struct kl_gpu_export_handle *t, struct kl_gpu_import **out)
{
    struct kl_gpu_import *m = find_place(team);
    uint64_t at;

    if (!m)
        return KL_FAIL(
            ncclInvalidUsage,
            "rank %d: an operation and graphs use %d allocations of other processes, the most of a communicator", rank,
            KL_GPU_IMPORTS);
    int rc = map_memory(w->context->driver, t, &at);
    if (rc)
        return KL_FAIL(ncclUnhandledCudaError,
                       "memory of rank %d, for device %d: cuIpcOpenMemHandle failed with %s (%d)", rank,
                       w->context->device, kl_cuda_error_name(w->context->driver, rc), rc);
    *m = (struct kl_gpu_import){
        .worker = w, .process = team->far->process[rank], .base = t->base, .id = t->id, .at = at};
    *out = m;
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_import(struct kl_gpu_team *team, const struct kl_gpu_worker *w, int rank,
                               const struct kl_gpu_export_handle *t, void **ptr)
{
    struct kl_gpu_import *m = t->base ? find_import(team, w, team->far->process[rank], t) : NULL;

    *ptr = NULL;
    if (!t->base) return ncclSuccess;
    if (!m) KL_TRY(open_import(team, w, rank, t, &m));
    m->kept |= team->capture != 0;
    m->look = team->far->looks;
    *ptr = (void *)(uintptr_t)(m->at + t->offset);
    return ncclSuccess;
}

/* ---- collectives ---- */

static ncclResult_t export_buffers(const struct kl_gpu_team *team, const struct kl_gpu_op *op,
                                   struct kl_gpu_export_handle *to)
{
    const int rank = op->call->rank;
    struct kl_gpu_buffer b[KL_GPU_BUFFERS];

    const bool is_used = team->far->is_used && !kl_gpu_uses_own_buffers(team, op->task, op->call->capture != 0);

    kl_gpu_buffers_of(op->task, rank, team->nranks, b);
    for (int i = 0; i < KL_GPU_BUFFERS; i++) {
        if (!is_used) b[i].bytes = 0;
        KL_TRY(kl_gpu_far_export_of(team->worker[team->worker_of[rank]].context, op, &b[i], (enum kl_gpu_buffer_kind)i,
                                    &to[i]));
    }
    return ncclSuccess;
}

static ncclResult_t publish_rank(struct kl_gpu_team *team, int rank, uint64_t number)
{
    const struct kl_task *t = team->first[rank]->task;
    struct kl_gpu_post *post = post_of(team->far, rank, number);

    post->task = *t;
    post->call = kl_call_of(t->func, t->type, kl_task_op_code(t), t->peer, t->count, t->number);
    if (t->limits) post->call = kl_call_configured(post->call, t->limits);
    if (t->redop) post->redop = *t->redop;
    post->captured = team->first[rank]->call->capture != 0;
    KL_TRY(export_buffers(team, team->first[rank], post->buffer));
    kl_store_release(&post->number, number); /* pairs with kl_gpu_far_has_come */
    return ncclSuccess;
}

static ncclResult_t publish(struct kl_gpu_team *team)
{
    const struct kl_cuda_context *c = team->worker[team->leader].context;
    ncclResult_t rc = ncclSuccess;

    KL_TRY(kl_cuda_enter(c));
    for (int r = 0; r < team->nranks && !rc; r++)
        if (!kl_gpu_is_far(team, r)) rc = publish_rank(team, r, team->far->number + 1);
    kl_cuda_leave(c);
    team->far->published = !rc;
    return rc;
}

bool kl_gpu_far_has_come(const struct kl_gpu_team *team, int rank)
{
    const uint64_t number = team->far->number + 1;

    return kl_load_acquire(&post_of(team->far, rank, number)->number) == number;
}

ncclResult_t kl_gpu_far_meet(struct kl_gpu_team *team, bool *there)
{
    struct kl_gpu_far *far = team->far;

    *there = false;
    if (!far->published) KL_TRY(publish(team));
    for (int r = 0; r < team->nranks; r++) {
        if (!kl_gpu_is_far(team, r)) continue;
        if (!kl_gpu_far_has_come(team, r)) return ncclSuccess;
        far->current[r] = post_of(far, r, far->number + 1);
    }
    *there = true;
    return ncclSuccess;
}

static ncclResult_t look_at(struct kl_gpu_team *team, const struct kl_gpu_worker *w, int r)
{
    struct kl_gpu_far *far = team->far;
    struct kl_task *t = &far->task[r];
    void *at[KL_GPU_BUFFERS] = {NULL};

    *t = far->current[r]->task;
    far->redop[r] = far->current[r]->redop;
    for (int i = 0; i < KL_GPU_BUFFERS && w; i++)
        KL_TRY(kl_gpu_far_import(team, w, r, &far->current[r]->buffer[i], &at[i]));
    t->send = at[0];
    t->recv = at[1];
    if (t->scalar) t->scalar = at[2];
    if (t->redop) t->redop = &far->redop[r];
    far->op[r] = (struct kl_gpu_op){.task = t};
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_look(struct kl_gpu_team *team, const struct kl_gpu_worker *w, struct kl_gpu_op **op)
{
    team->far->looks++;
    for (int r = 0; r < team->nranks; r++) {
        if (!kl_gpu_is_far(team, r)) continue;
        KL_TRY(look_at(team, w, r));
        op[r] = &team->far->op[r];
    }
    return ncclSuccess;
}

/* ---- streams ---- */

static ncclResult_t write_word(const struct kl_gpu_far *far, const struct kl_gpu_worker *w, int word, uint64_t value)
{
    KL_CUDA_TRY(w->context->driver,
                cuStreamWriteValue32(w->stream, far->word_at + (uint64_t)word * sizeof(uint32_t), (uint32_t)value, 0),
                "device %d", w->context->device);
    return ncclSuccess;
}

static ncclResult_t wait_word(const struct kl_gpu_far *far, const struct kl_gpu_worker *w, int word, uint64_t value,
                              unsigned condition)
{
    KL_CUDA_TRY(
        w->context->driver,
        cuStreamWaitValue32(w->stream, far->word_at + (uint64_t)word * sizeof(uint32_t), (uint32_t)value, condition),
        "device %d", w->context->device);
    return ncclSuccess;
}

/* In a graph the word is set to 1, and the stream that waited sets it back before it lets others go on. */
ncclResult_t kl_gpu_far_say(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int word, uint64_t number)
{
    return write_word(team->far, w, word, team->capture ? 1 : number);
}

ncclResult_t kl_gpu_far_await(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int word, uint64_t number)
{
    if (!team->capture) return wait_word(team->far, w, word, number, KL_CU_WAIT_AT_LEAST);
    KL_TRY(wait_word(team->far, w, word, 1, KL_CU_WAIT_EQUAL));
    return write_word(team->far, w, word, 0);
}

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

ncclResult_t kl_gpu_far_say_arrived(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    const struct kl_gpu_far *far = team->far;

    if (!team->capture) return write_word(far, w, word_arrived(far->own), far->number + 1);
    for (int i = 0; i < team->nworkers; i++)
        if (!team->worker[i].submits) KL_TRY(write_word(far, w, word_captured(team, far->own, i, false), 1));
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_await_arrived(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int process)
{
    const int word = team->capture ? word_captured(team, process, number_of(team, w), false) : word_arrived(process);

    return kl_gpu_far_await(team, w, word, team->far->number + 1);
}

ncclResult_t kl_gpu_far_say_done(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    const struct kl_gpu_far *far = team->far;

    if (!team->capture) return write_word(far, w, word_done(far, number_of(team, w)), far->number + 1);
    for (int p = 0; p < far->nprocesses; p++)
        if (p != far->own) KL_TRY(write_word(far, w, word_captured(team, p, number_of(team, w), true), 1));
    return ncclSuccess;
}

ncclResult_t kl_gpu_far_await_done(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int worker)
{
    const struct kl_gpu_far *far = team->far;
    const int word = team->capture ? word_captured(team, far->own, worker, true) : word_done(far, worker);

    return kl_gpu_far_await(team, w, word, far->number + 1);
}

/* ---- after a failure ---- */

void kl_gpu_far_stop(struct kl_gpu_far *far)
{
    kl_store_release(&far->word[word_over(far->nranks)], 1); /* before the words that let kernels begin */
}

uint64_t kl_gpu_far_over_at(const struct kl_gpu_far *far)
{
    return far->word_at + word_over(far->nranks) * sizeof(uint32_t);
}

void kl_gpu_far_release_graphs(struct kl_gpu_far *far)
{
    const size_t first = (size_t)first_captured(far);

    if (kl_load_relaxed(&far->captures)) kl_gpu_hold(&far->word[first], words(far->nranks) - first);
}

/* The process that submits a worker's work is its lowest rank's. */
static int submitter_of(const struct kl_gpu_team *team, int worker)
{
    int r = 0;

    while (r < team->nranks - 1 && team->worker_of[r] != worker) r++;
    return team->far->process[r];
}

static void raise_word(const struct kl_gpu_far *far, int word, uint64_t number)
{
    kl_store_release(&far->word[word], (uint32_t)number + RELEASED); /* for streams that wait */
}

/* Of messages, the sender's streams write the first word, the receiver's the second. */
static void raise_message(const struct kl_gpu_far *far, int from, int to, int process)
{
    const uint64_t posted = kl_load_relaxed(&kl_gpu_mail_of(far, from, to)->posted);

    if (far->process[from] == process) raise_word(far, word_message(far, from, to), posted);
    if (far->process[to] == process) raise_word(far, word_message(far, from, to) + 1, posted);
}

/* Waits are for numbers that were submitted, so a number far beyond ends them. */
void kl_gpu_far_raise(const struct kl_gpu_team *team, int process)
{
    const struct kl_gpu_far *far = team->far;

    raise_word(far, word_arrived(process), far->number);
    for (int w = 0; w < team->nworkers; w++)
        if (submitter_of(team, w) == process) raise_word(far, word_done(far, w), far->number);
    for (int from = 0; from < far->nranks; from++)
        for (int to = 0; to < far->nranks; to++) raise_message(far, from, to, process);
}

bool kl_gpu_far_is_over(const struct kl_gpu_far *far, int process)
{
    const struct kl_gpu_marked *m = &far->marked[process];

    return kl_load_acquire(&m->there) && kl_process_mark_is_over(&m->mark); /* pairs with fill */
}
