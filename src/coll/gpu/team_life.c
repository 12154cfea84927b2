/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/team.h"

#include "base/clock.h"
#include "coll/gpu/far.h"
#include "coll/gpu/flags.h"
#include "coll/gpu/graphs.h"
#include "coll/gpu/names.h"
#include "coll/gpu/nvls.h"
#include "coll/gpu/offers.h"
#include "coll/gpu/peers.h"
#include "coll/gpu/relay.h"
#include "coll/gpu/schedules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

static void free_worker(struct kl_gpu_worker *w)
{
    const struct kl_cuda_driver *driver = w->context ? w->context->driver : NULL;

    if (!driver || kl_cuda_enter(w->context)) return;
    for (int i = 0; i < KL_GPU_ENDS; i++)
        if (w->end[i]) (void)driver->cuEventDestroy(w->end[i]);
    if (w->stream) (void)driver->cuStreamDestroy(w->stream); /* after its work, without waiting for it */
    kl_cuda_leave(w->context);
}

static void free_team(struct kl_gpu_team *team)
{
    kl_gpu_schedules_free(team->schedules, team->failed);
    kl_gpu_nvls_free(team, team->failed);
    kl_gpu_relay_free(team, team->failed);
    kl_gpu_flags_free(team, team->failed);
    kl_gpu_far_free(team, team->failed);
    kl_gpu_graphs_free(team, team->failed);
    for (int r = 0; team->ready && r < team->nranks; r++)
        if (team->ready[r]) (void)team->worker[team->leader].context->driver->cuEventDestroy(team->ready[r]);
    for (int i = 0; i < team->nworkers; i++) free_worker(&team->worker[i]);
    free(team->worker_of);
    free(team->ready);
    free(team->first);
    free(team->last);
    free(team->messages);
    free(team->caller);
    pthread_cond_destroy(&team->changed);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

static ncclResult_t create_event(const struct kl_cuda_context *c, kl_cu_event *event)
{
    KL_CUDA_TRY(c->driver, cuEventCreate(event, KL_CU_EVENT_DISABLE_TIMING), "an event of device %d", c->device);
    return ncclSuccess;
}

/* With the highest priority: other ranks wait for this work. */
static ncclResult_t create_queue(struct kl_gpu_worker *w)
{
    const struct kl_cuda_context *c = w->context;
    int least, highest;

    KL_CUDA_TRY(c->driver, cuCtxGetStreamPriorityRange(&least, &highest), "device %d", c->device);
    KL_CUDA_TRY(c->driver, cuStreamCreateWithPriority(&w->stream, KL_CU_STREAM_NON_BLOCKING, highest),
                "a stream of device %d", c->device);
    for (int i = 0; i < KL_GPU_ENDS; i++) KL_TRY(create_event(c, &w->end[i]));
    return ncclSuccess;
}

/* A rank of this process is on it. */
static ncclResult_t use_worker(struct kl_gpu_worker *w, int device)
{
    KL_TRY(kl_cuda_context_of(device, kl_kernel_names, KL_KERNEL_COUNT, &w->context));
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = create_queue(w);
    kl_cuda_leave(w->context);
    return rc;
}

/* The process of its lowest rank submits its work. */
static ncclResult_t find_worker(struct kl_gpu_team *team, const struct kl_gpu_place *place, int *found)
{
    int i = 0;

    while (i < team->nworkers && memcmp(team->worker[i].uuid, place->uuid, KL_GPU_UUID) != 0) i++;
    *found = i;
    if (i < team->nworkers) return ncclSuccess;
    if (i == KL_CUDA_DEVICES) return KL_FAIL(ncclInvalidUsage, "ranks are on more than %d GPUs", KL_CUDA_DEVICES);
    memcpy(team->worker[i].uuid, place->uuid, KL_GPU_UUID);
    team->worker[i].submits = place->device >= 0;
    team->nworkers++;
    return ncclSuccess;
}

static ncclResult_t add_rank(struct kl_gpu_team *team, int rank, const struct kl_gpu_place *place)
{
    int i;

    KL_TRY(find_worker(team, place, &i));
    team->worker_of[rank] = i;
    if (place->device < 0) return ncclSuccess;
    if (!team->members++) team->leader = i;
    if (!team->worker[i].context) KL_TRY(use_worker(&team->worker[i], place->device));
    KL_TRY(kl_cuda_enter(team->worker[i].context));
    ncclResult_t rc = create_event(team->worker[i].context, &team->ready[rank]);
    kl_cuda_leave(team->worker[i].context);
    return rc;
}

static void init_lock(struct kl_gpu_team *team)
{
    pthread_condattr_t attr;

    pthread_mutex_init(&team->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&team->changed, &attr);
    pthread_condattr_destroy(&attr);
}

static ncclResult_t fill(struct kl_gpu_team *team, const struct kl_gpu_place *place)
{
    const size_t n = (size_t)team->nranks;

    team->worker_of = calloc(n, sizeof *team->worker_of);
    team->ready = calloc(n, sizeof(void *));
    team->first = calloc(n, sizeof(void *));
    team->last = calloc(n, sizeof(void *));
    team->messages = calloc(n, sizeof(void *));
    team->caller = calloc(n, sizeof *team->caller);
    if (!team->worker_of || !team->ready || !team->first || !team->last || !team->messages || !team->caller)
        return KL_NOMEM("the ranks on GPUs");
    KL_TRY(kl_gpu_graphs_create(team));
    for (int r = 0; r < team->nranks; r++) KL_TRY(add_rank(team, r, &place[r]));
    return ncclSuccess;
}

static ncclResult_t join_processes(struct kl_gpu_team *team, const struct kl_gpu_place *place,
                                   const struct kl_gpu_setup *setup)
{
    const struct kl_cuda_context *c = team->worker[team->leader].context;
    int32_t process[KL_JOB_RANKS];

    if (!setup->common) return ncclSuccess;
    for (int r = 0; r < team->nranks; r++) process[r] = place[r].process;
    KL_TRY(kl_cuda_enter(c));
    ncclResult_t rc =
        kl_gpu_far_create(c->driver, process, team->nranks, setup->nprocesses, setup->own, setup->common, &team->far);
    kl_cuda_leave(c);
    return rc;
}

/* ---- P2P ---- */

enum { ALIGNMENT = 4096 };

/* The common memory: of the ranks in other processes, and of the test of P2P. */
static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static void *board_of(const struct kl_gpu_setup *setup, int nranks)
{
    return setup->common ? (char *)setup->common + align(kl_gpu_far_bytes(nranks)) : NULL;
}

size_t kl_gpu_team_bytes(int nranks)
{
    return align(kl_gpu_far_bytes(nranks)) + align(kl_gpu_peers_bytes());
}

/* Of this process's GPUs, both ways. */
static ncclResult_t enable_peers(const struct kl_gpu_team *team)
{
    for (int i = 0; i < team->nworkers; i++)
        for (int j = 0; j < team->nworkers; j++) {
            const struct kl_cuda_context *c = team->worker[i].context, *peer = team->worker[j].context;
            bool possible;
            if (i != j && c && peer) KL_TRY(kl_cuda_enable_peer(c, peer, &possible)); /* the test shows if it is not */
        }
    return ncclSuccess;
}

/* Boards of processes whose kernels wait for each other. */
struct boards {
    struct kl_gpu_offers flags, schedules;
    struct kl_gpu_nvls_board nvls;
};

/* In kernels, where that is wanted. */
static ncclResult_t let_meet(struct kl_gpu_team *team, const struct kl_gpu_setup *setup)
{
    const bool flags = kl_gpu_flags_are_wanted(team, setup->nprocesses, setup->config);
    const bool schedules = kl_gpu_schedules_are_wanted(team);
    struct boards *boards = NULL;
    void *memory = NULL;

    if (setup->common && (flags || schedules)) KL_TRY(setup->share(setup->ctx, sizeof *boards, &memory));
    boards = memory;
    if (flags) KL_TRY(kl_gpu_flags_create(team, setup->nprocesses, boards ? &boards->flags : NULL, setup->config));
    if (flags && kl_gpu_nvls_is_wanted(team))
        KL_TRY(kl_gpu_nvls_create(team, boards ? &boards->nvls : NULL, setup->config));
    return schedules ? kl_gpu_schedules_create(team, setup, boards ? &boards->schedules : NULL, &team->schedules)
                     : ncclSuccess;
}

/* GPUs whose P2P does not work, or is not wanted, use host memory. */
static ncclResult_t join_gpus(struct kl_gpu_team *team, const struct kl_gpu_setup *setup)
{
    bool work = false;
    void *memory = NULL;

    if (team->nworkers == 1 && !team->far) return let_meet(team, setup);
    if (team->nworkers == 1) return ncclSuccess;
    if (!setup->no_p2p) {
        KL_TRY(enable_peers(team));
        KL_TRY(kl_gpu_peers_test(team, setup->nprocesses, board_of(setup, team->nranks), &work));
    }
    if (work) return let_meet(team, setup);
    if (setup->common) KL_TRY(setup->share(setup->ctx, kl_gpu_relay_bytes(team->nranks, setup->config), &memory));
    return kl_gpu_relay_create(team, setup->nprocesses, setup->own, memory, setup->config);
}

/* GPUs that other processes submit to use the buffers of this one's collectives. */
static void note_use(struct kl_gpu_team *team)
{
    for (int i = 0; team->far && i < team->nworkers; i++)
        team->far->is_used |= !team->worker[i].submits && !team->relay;
}

ncclResult_t kl_gpu_identify(int device, unsigned char uuid[KL_GPU_UUID])
{
    const struct kl_cuda_context *c;
    int number;

    KL_TRY(kl_cuda_context_of(device, NULL, 0, &c));
    KL_CUDA_TRY(c->driver, cuDeviceGet(&number, device), "device %d", device);
    KL_CUDA_TRY(c->driver, cuDeviceGetUuid(uuid, number), "device %d", device);
    return ncclSuccess;
}

ncclResult_t kl_gpu_team_create(const struct kl_gpu_place *place, int nranks, const struct kl_gpu_setup *setup,
                                struct kl_gpu_team **out)
{
    *out = NULL;
    if (nranks > KL_JOB_RANKS)
        return KL_FAIL(ncclInvalidUsage, "%d ranks on GPUs; so far a communicator has at most %d there", nranks,
                       KL_JOB_RANKS);
    struct kl_gpu_team *team = calloc(1, sizeof *team);
    if (!team) return KL_NOMEM("the ranks on GPUs");
    team->nranks = nranks;
    team->refs = 1;
    team->mover = (enum kl_cuda_mover)setup->config->cuda_mover;
    team->blocks = (unsigned)setup->config->cuda_blocks;
    init_lock(team);
    ncclResult_t rc = fill(team, place);
    if (!rc) rc = join_processes(team, place, setup);
    if (!rc) rc = join_gpus(team, setup);
    note_use(team);
    if (!rc) {
        *out = team;
        return ncclSuccess;
    }
    kl_gpu_peers_leave(board_of(setup, nranks));
    free_team(team);
    return rc;
}

/* A thread of the library has no context of its own. */
static ncclResult_t synchronize(const struct kl_gpu_worker *w)
{
    KL_TRY(kl_cuda_enter(w->context));
    const int rc = w->context->driver->cuStreamSynchronize(w->stream);
    kl_cuda_leave(w->context);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "device %d: cuStreamSynchronize failed with %s (%d)", w->context->device,
                   kl_cuda_error_name(w->context->driver, rc), rc);
}

ncclResult_t kl_gpu_team_synchronize(struct kl_gpu_team *team)
{
    for (int i = 0; i < team->nworkers; i++)
        if (team->worker[i].context) KL_TRY(synchronize(&team->worker[i]));
    return ncclSuccess;
}

/* ---- after a failure ---- */

static bool is_idle(const struct kl_gpu_team *team)
{
    for (int i = 0; i < team->nworkers; i++)
        if (!kl_cuda_stream_is_idle(team->worker[i].context, team->worker[i].stream) ||
            !kl_cuda_stream_is_idle(team->worker[i].context, team->worker[i].second))
            return false;
    return !team->relay || kl_gpu_relay_is_idle(team);
}

static void raise_words(const struct kl_gpu_team *team, int process)
{
    kl_gpu_far_raise(team, process);
    if (team->relay) kl_gpu_relay_raise(team->relay, process);
}

/* Nothing is submitted from the first look on. Other processes that live may still write their words after us: so again at each. */
static bool look(void *ctx, bool late)
{
    struct kl_gpu_team *team = ctx;

    if (!team->failed) {
        team->failed = ncclRemoteError;
        memcpy(team->text, team->failure, sizeof team->text);
    }
    for (int p = 0; p < team->far->nprocesses; p++)
        if (p != team->far->own && (late || kl_gpu_far_is_over(team->far, p))) raise_words(team, p);
    if (!is_idle(team)) return false;
    raise_words(team, team->far->own);
    return true;
}

static void free_drained(void *ctx)
{
    free_team(ctx);
}

static void drain(struct kl_gpu_team *team, const char *text)
{
    const struct kl_gpu_drain_work work = {.owner = team, .lock = &team->lock, .look = look, .free = free_drained};

    if (!kl_gpu_drain_claim(&team->drain)) return;
    snprintf(team->failure, sizeof team->failure, "%s", text);
    kl_gpu_far_stop(team->far);
    kl_gpu_drain_begin(&team->drain, &work);
}

void kl_gpu_team_release(struct kl_gpu_team *team, const char *text)
{
    if (team->far) {
        drain(team, text);
        kl_gpu_far_release_graphs(team->far);
    }
    if (team->relay) kl_gpu_relay_release_graphs(team->relay);
    kl_gpu_graphs_release(team);
    if (team->flags) kl_gpu_flags_release(team->flags);
    if (team->schedules) kl_gpu_schedules_stop(team->schedules);
}

/* ---- users ---- */

bool kl_gpu_team_has_ll128(const struct kl_gpu_team *team)
{
    return team->schedules && team->schedules->ll128;
}

void kl_gpu_team_ref(struct kl_gpu_team *team)
{
    pthread_mutex_lock(&team->lock);
    team->refs++;
    pthread_mutex_unlock(&team->lock);
}

void kl_gpu_team_note_caller(struct kl_gpu_team *team, int rank, const void *thread)
{
    pthread_mutex_lock(&team->lock);
    team->caller[rank] = thread;
    pthread_mutex_unlock(&team->lock);
}

bool kl_gpu_team_leave(struct kl_gpu_team *team, bool *failed, const char *text)
{
    pthread_mutex_lock(&team->lock);
    if (*failed && !team->failed) {
        team->failed = ncclRemoteError;
        snprintf(team->text, sizeof team->text, "%s", text);
    }
    if (*failed) kl_gpu_team_release(team, text);
    const bool last = !--team->refs, later = last && kl_gpu_drain_takes(&team->drain);
    *failed = team->failed;
    pthread_mutex_unlock(&team->lock);
    if (!last || later) return last;
    if (!*failed) (void)kl_gpu_team_synchronize(team);
    free_team(team);
    return true;
}
