/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/nvls.h"

#include "base/clock.h"
#include "base/log.h"
#include "coll/gpu/far.h"
#include "coll/gpu/flags.h"
#include "coll/gpu/names.h"
#include "coll/gpu/peers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    NAP_NS = 50000,
    SETS = 2,
};

/* Epochs begin before their circle closes, as in flags.c. */
static const uint32_t first_epoch = 0xfffffff0;

/* Of a GPU: its facts are known, it was added to the object. */
enum { STEP_NONE, STEP_FACTS, STEP_ADDED };

/* CLAIMED: a process is writing down why not. */
enum { UNDECIDED, CLAIMED, WORKS, OFF };

/* Being made. */
struct making {
    struct kl_gpu_team *team;
    struct kl_gpu_nvls *nvls;
    struct kl_gpu_nvls_board *board;
    const struct kl_cuda_driver *driver;
    uint64_t deadline;
    int fd; /* of the object, for other processes; -1: none */
};

/* ---- the decision ---- */

static void refuse(struct kl_gpu_nvls_board *b, const char *text)
{
    uint32_t undecided = UNDECIDED;

    if (!kl_cas_acq_rel(&b->outcome, &undecided, CLAIMED)) return;
    snprintf(b->why, sizeof b->why, "%s", text);
    kl_store_release(&b->outcome, OFF); /* pairs with decide */
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
}

/* When a process was killed in between, CLAIMED may stay: it never becomes WORKS. */
static bool decide(const struct making *m)
{
    struct kl_gpu_nvls_board *b = m->board;
    uint32_t outcome;

    while ((outcome = kl_load_acquire(&b->outcome)) < WORKS) { /* pairs with refuse and bind_all */
        if (kl_deadline_passed(m->deadline) && outcome == CLAIMED) break;
        if (kl_deadline_passed(m->deadline)) refuse(b, "the process of another GPU has not bound memory");
        nap();
    }
    if (outcome == WORKS) return true;
    snprintf(m->nvls->why, sizeof m->nvls->why, "%s", outcome == OFF ? b->why : "another process has failed");
    return false;
}

/* Another process has failed, or does not come. */
static ncclResult_t check_others(const struct making *m)
{
    if (kl_load_acquire(&m->board->outcome)) return KL_FAIL(ncclRemoteError, "another process has no NVLS");
    if (kl_deadline_passed(m->deadline))
        return KL_FAIL(ncclRemoteError, "the process of another GPU has not made its part");
    return ncclSuccess;
}

static ncclResult_t await_word(const struct making *m, _Atomic uint32_t *word, uint32_t least)
{
    while (kl_load_acquire(word) < least) { /* pairs with the stores of other processes */
        KL_TRY(check_others(m));
        nap();
    }
    return ncclSuccess;
}

static ncclResult_t await_step(const struct making *m, uint32_t step)
{
    for (int w = 0; w < m->team->nworkers; w++) KL_TRY(await_word(m, &m->board->gpu[w].step, step));
    return ncclSuccess;
}

/* ---- facts ---- */

/* On each GPU of this process, whose context is current then. */
static ncclResult_t for_own(struct making *m,
                            ncclResult_t (*step)(struct making *m, int worker, const struct kl_cuda_context *c))
{
    ncclResult_t rc = ncclSuccess;

    for (int w = 0; w < m->team->nworkers && !rc; w++) {
        const struct kl_cuda_context *c = m->team->worker[w].context;
        if (!c) continue;
        KL_TRY(kl_cuda_enter(c));
        rc = step(m, w, c);
        kl_cuda_leave(c);
    }
    return rc;
}

/* All blocks of a kernel are resident: one for each multiprocessor. */
static ncclResult_t tell_facts(struct making *m, int worker, const struct kl_cuda_context *c)
{
    int has = 0, blocks = c->processors < KL_NVLS_BLOCKS ? c->processors : KL_NVLS_BLOCKS;

    KL_CUDA_TRY(c->driver, cuDeviceGetAttribute(&has, KL_CU_MULTICAST, c->device), "device %d", c->device);
    if (!has) return KL_FAIL(ncclInvalidUsage, "device %d has no multicast objects", c->device);
    if (m->team->blocks && m->team->blocks < (unsigned)blocks) blocks = (int)m->team->blocks;
    m->board->gpu[worker].blocks = blocks;
    kl_store_release(&m->board->gpu[worker].step, STEP_FACTS); /* pairs with await_step */
    return ncclSuccess;
}

static ncclResult_t exchange_facts(struct making *m)
{
    KL_TRY(for_own(m, tell_facts));
    KL_TRY(await_step(m, STEP_FACTS));
    m->nvls->blocks = KL_NVLS_BLOCKS;
    for (int w = 0; w < m->team->nworkers; w++)
        if ((unsigned)m->board->gpu[w].blocks < m->nvls->blocks) m->nvls->blocks = (unsigned)m->board->gpu[w].blocks;
    return ncclSuccess;
}

/* ---- the object ---- */

/* Multicast objects and memory of all GPUs have one size: of the largest granularity that a GPU may have. */
static ncclResult_t size_memory(struct making *m, struct kl_cu_multicast_properties *p)
{
    size_t granularity = 0;

    KL_CUDA_TRY(m->driver, cuMulticastGetGranularity(&granularity, p, KL_CU_GRANULARITY_MINIMUM), "%d GPUs",
                m->team->nworkers);
    if (!granularity) return KL_FAIL(ncclInternalError, "multicast objects have no granularity");
    p->bytes = m->nvls->bytes = (p->bytes + granularity - 1) / granularity * granularity;
    return ncclSuccess;
}

static ncclResult_t create_object(struct making *m, const struct kl_cu_multicast_properties *p)
{
    KL_CUDA_TRY(m->driver, cuMulticastCreate(&m->nvls->object, p), "%d GPUs", m->team->nworkers);
    if (!m->team->far) return ncclSuccess;
    KL_CUDA_TRY(m->driver, cuMemExportToShareableHandle(&m->fd, m->nvls->object, KL_CU_HANDLE_DESCRIPTOR, 0),
                "the multicast object");
    const ncclResult_t rc = kl_fdshare_offer(m->fd, &m->board->object);
    if (rc) {
        close(m->fd);
        m->fd = -1;
        return rc;
    }
    kl_store_release(&m->board->there, 1); /* pairs with import_object */
    return ncclSuccess;
}

static ncclResult_t receive_descriptor(const struct making *m, int *fd)
{
    struct kl_fd_request *request = NULL;
    ncclResult_t rc = kl_fdshare_request(&m->board->object, m->deadline, &request);

    while (!rc && (rc = kl_fdshare_poll(request, fd)) == ncclInProgress) {
        rc = kl_load_acquire(&m->board->outcome) ? check_others(m) : ncclSuccess;
        nap();
    }
    kl_fdshare_request_free(request);
    return rc;
}

static ncclResult_t import_object(struct making *m)
{
    int fd = -1;

    KL_TRY(await_word(m, &m->board->there, 1));
    KL_TRY(receive_descriptor(m, &fd));
    const int rc =
        m->driver->cuMemImportFromShareableHandle(&m->nvls->object, (void *)(intptr_t)fd, KL_CU_HANDLE_DESCRIPTOR);
    close(fd);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "the multicast object: cuMemImportFromShareableHandle failed with %s (%d)",
                   kl_cuda_error_name(m->driver, rc), rc);
}

/* The process of the first GPU makes it. */
static ncclResult_t get_object(struct making *m)
{
    struct kl_cu_multicast_properties p = {.devices = (unsigned)m->team->nworkers,
                                           .bytes = (size_t)SETS * KL_NVLS_SET,
                                           .handle_types = KL_CU_HANDLE_DESCRIPTOR};

    KL_TRY(size_memory(m, &p));
    return m->team->worker[0].context ? create_object(m, &p) : import_object(m);
}

static ncclResult_t add_device(struct making *m, int worker, const struct kl_cuda_context *c)
{
    KL_CUDA_TRY(c->driver, cuMulticastAddDevice(m->nvls->object, c->device), "device %d", c->device);
    kl_store_release(&m->board->gpu[worker].step, STEP_ADDED); /* pairs with await_step */
    return ncclSuccess;
}

/* ---- memory ---- */

static struct kl_cu_access access_of(const struct kl_cuda_context *c)
{
    return (struct kl_cu_access){.location = {.type = KL_CU_LOCATION_DEVICE, .id = c->device},
                                 .flags = KL_CU_ACCESS_READ_WRITE};
}

/* At an address that the devices in `access` reach. */
static ncclResult_t map(const struct making *m, unsigned long long handle, const struct kl_cu_access *access, size_t n,
                        uint64_t *to)
{
    const struct kl_cuda_driver *d = m->driver;
    const size_t bytes = m->nvls->bytes;
    uint64_t at = 0;

    KL_CUDA_TRY(d, cuMemAddressReserve(&at, bytes, 0, 0, 0), "%zu bytes", bytes);
    int rc = d->cuMemMap(at, bytes, 0, handle, 0);
    if (!rc && (rc = d->cuMemSetAccess(at, bytes, access, n))) (void)d->cuMemUnmap(at, bytes);
    if (!rc) {
        *to = at;
        return ncclSuccess;
    }
    (void)d->cuMemAddressFree(at, bytes);
    return KL_FAIL(ncclUnhandledCudaError, "%zu bytes of a multicast object cannot be mapped: %s (%d)", bytes,
                   kl_cuda_error_name(d, rc), rc);
}

static void unmap(const struct kl_cuda_driver *d, uint64_t at, size_t bytes)
{
    (void)d->cuMemUnmap(at, bytes);
    (void)d->cuMemAddressFree(at, bytes);
}

/* Counters as after `first_epoch` meetings of all. */
static void fill_head(unsigned char *head, uint32_t ranks)
{
    for (size_t b = 0; b < KL_NVLS_BLOCKS; b++) {
        const uint32_t counter = first_epoch * ranks;
        memcpy(head + b * KL_NVLS_COUNTER, &counter, sizeof counter);
        memcpy(head + KL_NVLS_EPOCHS + b * sizeof counter, &first_epoch, sizeof counter);
    }
}

static ncclResult_t write_heads(const struct making *m, int worker)
{
    const struct kl_gpu_worker *w = &m->team->worker[worker];
    unsigned char head[KL_NVLS_HEAD] = {0};

    fill_head(head, (uint32_t)m->team->nranks);
    for (size_t s = 0; s < SETS; s++) {
        const uint64_t to = m->nvls->own[worker].at + s * KL_NVLS_SET;
        KL_CUDA_TRY(m->driver, cuMemcpyAsync(to, (uint64_t)(uintptr_t)head, sizeof head, w->stream), "device %d",
                    w->context->device);
        KL_CUDA_TRY(m->driver, cuStreamSynchronize(w->stream), "device %d", w->context->device);
    }
    return ncclSuccess;
}

/* Only memory that can be exported is bound to such an object. */
static ncclResult_t bind_memory(struct making *m, int worker, const struct kl_cuda_context *c)
{
    struct kl_gpu_nvls *n = m->nvls;
    const struct kl_cu_access access = access_of(c);
    const struct kl_cu_memory_properties p = {
        .type = KL_CU_MEMORY_PINNED, .handle_types = KL_CU_HANDLE_DESCRIPTOR, .location = access.location};

    KL_CUDA_TRY(c->driver, cuMemCreate(&n->own[worker].memory, n->bytes, &p, 0), "%zu bytes of device %d", n->bytes,
                c->device);
    KL_CUDA_TRY(c->driver, cuMulticastBindMem(n->object, 0, n->own[worker].memory, 0, n->bytes, 0), "device %d",
                c->device);
    n->own[worker].bound = true;
    KL_TRY(map(m, n->own[worker].memory, &access, 1, &n->own[worker].at));
    return write_heads(m, worker);
}

static ncclResult_t map_object(struct making *m)
{
    struct kl_cu_access access[KL_CUDA_DEVICES];
    size_t n = 0;

    for (int w = 0; w < m->team->nworkers; w++)
        if (m->team->worker[w].context) access[n++] = access_of(m->team->worker[w].context);
    return map(m, m->nvls->object, access, n, &m->nvls->all);
}

static ncclResult_t say_bound(struct making *m, int worker, const struct kl_cuda_context *c)
{
    uint32_t undecided = UNDECIDED;

    (void)worker;
    (void)c;
    if (kl_fetch_add_acq_rel(&m->board->bound, 1) + 1 ==
        (uint32_t)m->team->nworkers) /* pairs with the other processes' */
        (void)kl_cas_acq_rel(&m->board->outcome, &undecided, WORKS);
    return ncclSuccess;
}

/* ---- life ---- */

static ncclResult_t make(struct making *m)
{
    KL_TRY(exchange_facts(m));
    KL_TRY(get_object(m));
    KL_TRY(for_own(m, add_device));
    KL_TRY(await_step(m, STEP_ADDED));
    KL_TRY(for_own(m, bind_memory));
    KL_TRY(map_object(m));
    return for_own(m, say_bound);
}

/* Also parts of one that was not completed. No kernel uses it. */
static void unmake(const struct kl_gpu_team *team, struct kl_gpu_nvls *n)
{
    const struct kl_cuda_driver *d = team->worker[team->leader].context->driver;

    if (n->all) unmap(d, n->all, n->bytes);
    for (int w = 0; w < team->nworkers; w++) {
        const struct kl_cuda_context *c = team->worker[w].context;
        if (n->own[w].at) unmap(d, n->own[w].at, n->bytes);
        if (n->own[w].bound) (void)d->cuMulticastUnbind(n->object, c->device, 0, n->bytes);
        if (n->own[w].memory) (void)d->cuMemRelease(n->own[w].memory);
        memset(&n->own[w], 0, sizeof n->own[w]);
    }
    if (n->object) (void)d->cuMemRelease(n->object);
    n->object = 0;
    n->all = 0;
}

static void withdraw_descriptor(struct making *m)
{
    if (m->fd < 0) return;
    kl_fdshare_withdraw(&m->board->object);
    close(m->fd);
}

/* A failure is no failure of the communicator. */
static void make_or_refuse(struct making *m)
{
    const int quiet = kl_error_quiet(1);
    int mode = KL_CU_CAPTURE_RELAXED;

    (void)m->driver->cuThreadExchangeStreamCaptureMode(&mode); /* another stream of the thread may capture */
    if (make(m)) refuse(m->board, kl_error_text());
    m->nvls->works = decide(m);
    withdraw_descriptor(m);
    if (!m->nvls->works) unmake(m->team, m->nvls);
    (void)m->driver->cuThreadExchangeStreamCaptureMode(&mode);
    (void)kl_error_quiet(quiet);
}

bool kl_gpu_nvls_is_wanted(const struct kl_gpu_team *team)
{
    return team->mover == KL_CUDA_MOVER_NVLS && team->nranks == team->nworkers;
}

ncclResult_t kl_gpu_nvls_create(struct kl_gpu_team *team, struct kl_gpu_nvls_board *board,
                                const struct kl_device_config *config)
{
    struct kl_gpu_nvls_board *own = board ? NULL : calloc(1, sizeof *own);
    struct kl_gpu_nvls *n = calloc(1, sizeof *n);
    struct making m = {.team = team,
                       .nvls = n,
                       .board = board ? board : own,
                       .driver = team->worker[team->leader].context->driver,
                       .deadline = kl_deadline_in_ms((uint64_t)KL_GPU_PEERS_MS * (uint64_t)team->nworkers),
                       .fd = -1};

    if (!n || !m.board) {
        if (board) refuse(board, "a process has no memory");
        free(n);
        free(own);
        return KL_NOMEM("NVLS");
    }
    n->threads = config->cuda_threads ? (unsigned)config->cuda_threads : KL_NVLS_THREADS;
    make_or_refuse(&m);
    free(own);
    team->nvls = n;
    if (n->works)
        KL_INFO(KL_INIT | KL_TUNING | KL_NVLS, "NVLS: a multicast object of %d GPUs, %zu bytes of each", team->nworkers,
                n->bytes);
    else
        KL_INFO(KL_INIT | KL_TUNING | KL_NVLS, "no NVLS in this communicator: %s", n->why);
    return ncclSuccess;
}

/* Have all GPUs arrived where this one has ended its last operation, so that they use its memory no more? */
static bool is_quiet(const struct kl_gpu_team *team, int worker, int set)
{
    const struct kl_gpu_worker *w = &team->worker[worker];
    const struct kl_cuda_driver *d = w->context->driver;
    unsigned char head[KL_NVLS_HEAD];

    memset(head, 0, sizeof head);
    if (d->cuMemcpyAsync((uint64_t)(uintptr_t)head, team->nvls->own[worker].at + (uint64_t)set * KL_NVLS_SET,
                         sizeof head, w->stream) ||
        d->cuStreamSynchronize(w->stream))
        return false;
    for (size_t b = 0; b < KL_NVLS_BLOCKS; b++) {
        uint32_t counter, epoch;
        memcpy(&counter, head + b * KL_NVLS_COUNTER, sizeof counter);
        memcpy(&epoch, head + KL_NVLS_EPOCHS + b * sizeof epoch, sizeof epoch);
        if (counter != epoch * (uint32_t)team->nranks) return false;
    }
    return true;
}

static bool all_are_quiet(const struct kl_gpu_team *team)
{
    bool quiet = true;

    for (int w = 0; w < team->nworkers && quiet; w++) {
        const struct kl_cuda_context *c = team->worker[w].context;
        if (!c || kl_cuda_enter(c)) continue;
        for (int set = 0; set < SETS; set++) quiet &= is_quiet(team, w, set);
        kl_cuda_leave(c);
    }
    return quiet;
}

/* Kernels of this process have ended; false: other processes' may still use its memory, so it stays. */
static bool await_others(const struct kl_gpu_team *team)
{
    const uint64_t deadline = kl_deadline_in_ms(KL_GPU_PEERS_MS);

    while (team->far && !all_are_quiet(team)) {
        if (kl_deadline_passed(deadline)) return false;
        nap();
    }
    return true;
}

/* After a failure kernels may still run; other processes' cannot be seen. */
static bool has_ended(const struct kl_gpu_team *team)
{
    for (int w = 0; w < team->nworkers; w++)
        if (!kl_cuda_stream_is_idle(team->worker[w].context, team->worker[w].stream)) return false;
    return !team->far;
}

void kl_gpu_nvls_free(struct kl_gpu_team *team, bool failed)
{
    struct kl_gpu_nvls *n = team->nvls;

    if (!n) return;
    if (n->works && (failed ? has_ended(team) : await_others(team))) unmake(team, n);
    free(n);
    team->nvls = NULL;
}

/* ---- use ---- */

static bool has_function(const struct kl_task *t)
{
    switch (t->func) {
    case KL_FUNC_ALL_REDUCE:
    case KL_FUNC_REDUCE:
    case KL_FUNC_REDUCE_SCATTER:
    case KL_FUNC_ALL_GATHER:
    case KL_FUNC_BROADCAST:
        return true;
    default:
        return false;
    }
}

const char *kl_gpu_nvls_refusal(const struct kl_gpu_team *team, const struct kl_task *t, bool captured)
{
    if (team->relay) return "there is no P2P between the GPUs";
    if (team->nranks != team->nworkers) return "a GPU has several ranks";
    if (!team->flags) return "kernels of the GPUs do not wait for each other: see KOLO_CUDA_SPIN";
    if (!team->nvls) return "it is not wanted: see KOLO_CUDA_MOVER";
    if (!team->nvls->works) return team->nvls->why;
    if (!has_function(t)) return "multicast objects do not help it";
    if (kl_func_info[t->func].reduces && kl_nvls_kernel_of(t) == KL_KERNEL_COUNT)
        return "switches do not have the operator for the type";
    return captured && !team->flags->one_each ? "a process with several GPUs captures it" : NULL;
}

void kl_gpu_nvls_set(const struct kl_gpu_team *team, int worker, struct kl_nvls_job *j)
{
    const uint64_t behind = team->capture ? KL_NVLS_SET : 0;

    j->own = team->nvls->own[worker].at + behind;
    j->all = team->nvls->all + behind;
    j->stop = team->flags->stop_at;
}
