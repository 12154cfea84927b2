/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/flags.h"

#include "base/log.h"
#include "coll/gpu/names.h"
#include "coll/gpu/offers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)KL_FLAGS_GPUS == (int)KL_CUDA_DEVICES, "jobs have an address for each GPU");

/*
 * Epochs begin a few operations before their circle closes, so that every program passes that place. Memory is filled with
 * the epoch before the first.
 */
enum {
    PAGE = 4096,
    TURN = 1, /* flags are exchanged once */
    SETS = 2,
    FLAGS_AT = 256, /* behind the epoch of meetings */
    EPOCHS_AT = FLAGS_AT + KL_FLAGS_GPUS * 4,
    ALIGNMENT = 256,
    BLOCKS_PER_PROCESSOR = 4, /* of KL_LINES_BLOCK threads: resident with any number of registers */
};
static const uint32_t before_first = 0xfffffff0;

/** A page that GPUs read. Kernels of failed teams may still look at theirs, so they are kept. */
struct kl_gpu_stop {
    _Atomic uint32_t word;
    struct kl_gpu_stop *next;
};
static struct kl_gpu_stop *_Atomic kept;

/* ---- is it legal? ---- */

bool kl_gpu_flags_are_wanted(const struct kl_gpu_team *team, int nprocesses, const struct kl_device_config *config)
{
    const int sharer = kl_gpu_far_sharer(team);

    if (config->cuda_spin == KL_CUDA_SPIN_OFF || team->nworkers == 1) return false;
    if (sharer >= 0)
        KL_INFO(
            KL_INIT | KL_TUNING,
            "GPUs meet at events and words in memory, not at flags: ranks of other processes are on the GPU of rank %d",
            sharer);
    else if (config->cuda_spin == KL_CUDA_SPIN_AUTO && nprocesses < team->nworkers)
        KL_INFO(KL_INIT | KL_TUNING,
                "GPUs meet at events, not at flags: a process has several GPUs, and KOLO_CUDA_SPIN is auto");
    else
        return true;
    return false;
}

/* ---- memory of GPUs ---- */

static size_t align(size_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t lines_at(const struct kl_gpu_flags *f)
{
    return align(EPOCHS_AT + f->units / KL_LINES_BLOCK * sizeof(uint32_t));
}

/* Slots of whole blocks; of GPUs with a rank each. */
static void size_sets(struct kl_gpu_team *team, const struct kl_device_config *config)
{
    const size_t block = KL_LINES_BLOCK * KL_LINES_UNIT, blocks = ((size_t)config->cuda_lines + block - 1) / block;
    struct kl_gpu_flags *f = team->flags;

    f->limit = (size_t)config->cuda_lines;
    if (team->nranks == team->nworkers) f->units = (uint32_t)(blocks * KL_LINES_BLOCK);
    f->set = align(lines_at(f) + (size_t)2 * (size_t)team->nworkers * f->units * KL_LINES_LINE);
}

static ncclResult_t clear(const struct kl_gpu_worker *w, uint64_t at, size_t bytes)
{
    uint32_t *word = malloc(bytes);

    if (!word) return KL_NOMEM("flags of GPUs");
    for (size_t i = 0; i < bytes / sizeof *word; i++) word[i] = before_first;
    int rc = w->context->driver->cuMemcpyAsync(at, (uint64_t)(uintptr_t)word, bytes, w->stream);
    if (!rc) rc = w->context->driver->cuStreamSynchronize(w->stream);
    free(word);
    if (!rc) return ncclSuccess;
    return KL_FAIL(ncclUnhandledCudaError, "flags of device %d: a copy failed with %s (%d)", w->context->device,
                   kl_cuda_error_name(w->context->driver, rc), rc);
}

static ncclResult_t create_memory(struct kl_gpu_team *team, int i, struct kl_gpu_offers *offers)
{
    const struct kl_cuda_context *c = team->worker[i].context;
    const struct kl_gpu_facts facts = {.processors = c->processors};
    struct kl_gpu_flags *f = team->flags;

    KL_CUDA_TRY(c->driver, cuMemAlloc(&f->own[i], SETS * f->set), "flags of device %d", c->device);
    KL_TRY(clear(&team->worker[i], f->own[i], SETS * f->set));
    return offers ? kl_gpu_offer(offers, TURN, i, c, f->own[i], &facts) : ncclSuccess;
}

static ncclResult_t map_memory(struct kl_gpu_team *team, int from, int to, const struct kl_gpu_offers *offers)
{
    uint64_t *at = &team->flags->at[from][to];

    *at = team->flags->own[to];
    if (*at) return ncclSuccess; /* the test of P2P has enabled access */
    return kl_gpu_offers_map(offers, TURN, to, team->worker[from].context, at);
}

/* All blocks of a kernel in lines are resident on every GPU. */
static void limit_blocks(struct kl_gpu_flags *f, uint32_t processors)
{
    const size_t most = (size_t)processors * BLOCKS_PER_PROCESSOR * KL_LINES_BLOCK * KL_LINES_UNIT;

    if (f->limit > most) f->limit = most;
}

static ncclResult_t connect_gpu(struct kl_gpu_team *team, int from, struct kl_gpu_offers *offers)
{
    for (int to = 0; to < team->nworkers; to++) {
        KL_TRY(map_memory(team, from, to, offers));
        limit_blocks(team->flags, (uint32_t)(offers ? kl_gpu_offers_facts(offers, TURN, to)->processors
                                                    : team->worker[to].context->processors));
    }
    return ncclSuccess;
}

/* ---- the word that ends waits ---- */

static ncclResult_t create_stop(struct kl_gpu_team *team)
{
    const struct kl_cuda_driver *driver = team->worker[team->leader].context->driver;
    struct kl_gpu_flags *f = team->flags;
    struct kl_gpu_stop *stop = aligned_alloc(PAGE, PAGE);

    if (!stop) return KL_NOMEM("flags of GPUs");
    memset(stop, 0, PAGE);
    int rc = driver->cuMemHostRegister(stop, PAGE, KL_CU_HOST_PORTABLE_MAPPED);
    if (!rc && (rc = driver->cuMemHostGetDevicePointer(&f->stop_at, stop, 0))) (void)driver->cuMemHostUnregister(stop);
    if (!rc) {
        f->stop = stop;
        return ncclSuccess;
    }
    free(stop);
    return KL_FAIL(ncclUnhandledCudaError, "memory that GPUs read: cuMemHostRegister failed with %s (%d)",
                   kl_cuda_error_name(driver, rc), rc);
}

static void keep(struct kl_gpu_stop *stop)
{
    stop->next = kl_load_relaxed(&kept);
    while (!kl_cas_acq_rel(&kept, &stop->next, stop)) {
    }
}

void kl_gpu_flags_release(struct kl_gpu_flags *f)
{
    kl_store_release(&f->stop->word, 1); /* pairs with is_over in flags.cuh */
}

/* ---- life ---- */

static ncclResult_t for_own(struct kl_gpu_team *team, struct kl_gpu_offers *offers,
                            ncclResult_t (*step)(struct kl_gpu_team *team, int i, struct kl_gpu_offers *offers))
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < team->nworkers && !rc; i++) {
        if (!team->worker[i].context) continue;
        KL_TRY(kl_cuda_enter(team->worker[i].context));
        rc = step(team, i, offers);
        kl_cuda_leave(team->worker[i].context);
    }
    return rc;
}

static ncclResult_t create_stop_step(struct kl_gpu_team *team, int i, struct kl_gpu_offers *offers)
{
    (void)offers;
    return i == team->leader ? create_stop(team) : ncclSuccess;
}

ncclResult_t kl_gpu_flags_create(struct kl_gpu_team *team, int nprocesses, struct kl_gpu_offers *offers,
                                 const struct kl_device_config *config)
{
    struct kl_gpu_flags *f = team->flags = calloc(1, sizeof *f);

    ncclResult_t rc = f ? ncclSuccess : KL_NOMEM("flags of GPUs");
    if (!rc) {
        f->one_each = nprocesses == team->nworkers;
        size_sets(team, config);
        rc = for_own(team, offers, create_stop_step);
    }
    if (!rc) rc = for_own(team, offers, create_memory);
    if (!rc && offers) rc = kl_gpu_offers_await(offers, TURN, team->nworkers);
    if (!rc) rc = for_own(team, offers, connect_gpu);
    if (rc) kl_gpu_offers_break(offers);
    if (!rc)
        KL_INFO(KL_INIT | KL_TUNING, "GPUs meet at flags in their memory; messages of up to %zu bytes go in lines",
                f->units ? f->limit : 0);
    return rc;
}

static void free_memory(struct kl_gpu_team *team, int i)
{
    const struct kl_cuda_context *c = team->worker[i].context;
    struct kl_gpu_flags *f = team->flags;

    if (!c || kl_cuda_enter(c)) return;
    for (int to = 0; to < team->nworkers; to++)
        if (f->at[i][to] && !f->own[to]) (void)c->driver->cuIpcCloseMemHandle(f->at[i][to]);
    if (f->own[i]) (void)c->driver->cuMemFree(f->own[i]);
    if (i == team->leader && f->stop) (void)c->driver->cuMemHostUnregister(f->stop);
    kl_cuda_leave(c);
}

void kl_gpu_flags_free(struct kl_gpu_team *team, bool failed)
{
    struct kl_gpu_flags *f = team->flags;

    if (!f) return;
    for (int i = 0; i < team->nworkers && !failed; i++) free_memory(team, i);
    if (failed && f->stop)
        keep(f->stop);
    else
        free(f->stop);
    free(f);
    team->flags = NULL;
}

/* ---- use ---- */

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

/* Graphs have the second set. */
static uint64_t set_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int worker)
{
    return team->flags->at[number_of(team, w)][worker] + (team->capture ? team->flags->set : 0);
}

uint64_t kl_gpu_flags_epochs(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return set_of(team, w, number_of(team, w)) + EPOCHS_AT;
}

uint64_t kl_gpu_flags_lines(const struct kl_gpu_team *team, const struct kl_gpu_worker *w, int worker)
{
    return set_of(team, w, worker) + lines_at(team->flags);
}

ncclResult_t kl_gpu_flags_meet(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    const struct kl_cuda_context *c = w->context;
    struct kl_meet_job job = {.epoch = set_of(team, w, number_of(team, w)),
                              .stop = team->flags->stop_at,
                              .gpus = (uint32_t)team->nworkers,
                              .own = (uint32_t)number_of(team, w)};
    void *arguments[] = {&job};

    for (int i = 0; i < team->nworkers; i++) job.flags[i] = set_of(team, w, i) + FLAGS_AT;
    KL_CUDA_TRY(c->driver,
                cuLaunchKernel(c->function[KL_KERNEL_flags_meet], 1, 1, 1, KL_FLAGS_THREADS, 1, 1, 0, w->stream,
                               arguments, NULL),
                "%s on device %d", kl_kernel_names[KL_KERNEL_flags_meet], c->device);
    return ncclSuccess;
}
