/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/team.h"

#include "base/clock.h"
#include "coll/gpu/names.h"

#include <stdio.h>
#include <stdlib.h>

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
    for (int r = 0; team->ready && r < team->nranks; r++)
        if (team->ready[r]) (void)team->worker[0].context->driver->cuEventDestroy(team->ready[r]);
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

static ncclResult_t add_worker(struct kl_gpu_team *team, int device)
{
    struct kl_gpu_worker *w = &team->worker[team->nworkers];

    KL_TRY(kl_cuda_context_of(device, kl_kernel_names, KL_KERNEL_COUNT, &w->context));
    team->nworkers++;
    KL_TRY(kl_cuda_enter(w->context));
    ncclResult_t rc = create_queue(w);
    kl_cuda_leave(w->context);
    for (int i = 0; !rc && i < team->nworkers - 1; i++) {
        rc = kl_cuda_enable_peer(w->context, team->worker[i].context);
        if (!rc) rc = kl_cuda_enable_peer(team->worker[i].context, w->context);
    }
    return rc;
}

static ncclResult_t add_rank(struct kl_gpu_team *team, int rank, int device)
{
    int i = 0;

    while (i < team->nworkers && team->worker[i].context->device != device) i++;
    if (i == team->nworkers) KL_TRY(add_worker(team, device));
    team->worker_of[rank] = i;
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

static ncclResult_t fill(struct kl_gpu_team *team, const int *device_of)
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
    for (int r = 0; r < team->nranks; r++) KL_TRY(add_rank(team, r, device_of[r]));
    return ncclSuccess;
}

ncclResult_t kl_gpu_team_create(const int *device_of, int nranks, const struct kl_device_config *config,
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
    team->mover = (enum kl_cuda_mover)config->cuda_mover;
    team->blocks = (unsigned)config->cuda_blocks;
    init_lock(team);
    ncclResult_t rc = fill(team, device_of);
    if (rc)
        free_team(team);
    else
        *out = team;
    return rc;
}

ncclResult_t kl_gpu_team_synchronize(struct kl_gpu_team *team)
{
    for (int i = 0; i < team->nworkers; i++)
        KL_CUDA_TRY(team->worker[i].context->driver, cuStreamSynchronize(team->worker[i].stream), "device %d",
                    team->worker[i].context->device);
    return ncclSuccess;
}

void kl_gpu_team_hold(struct kl_gpu_team *team)
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

bool kl_gpu_team_leave(struct kl_gpu_team *team, ncclResult_t failed)
{
    pthread_mutex_lock(&team->lock);
    if (failed && !team->failed) team->failed = failed;
    const bool last = !--team->refs;
    pthread_mutex_unlock(&team->lock);
    if (!last) return false;
    if (!team->failed) (void)kl_gpu_team_synchronize(team);
    free_team(team);
    return true;
}
