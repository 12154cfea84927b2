/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/zcopy/peer_buffer.h"

#include "base/error.h"
#include "os/fault_inject.h"

#include <stdlib.h>

enum { NOWHERE = UINT8_MAX }; /* block: the buffer is not exposed */

/* ---- life ---- */

ncclResult_t kl_peer_buffers_init(struct kl_peer_buffers *buffers, const struct kl_device_kind *devices, int nranks,
                                  int rank)
{
    *buffers = (struct kl_peer_buffers){.devices = devices, .nranks = nranks, .rank = rank};
    buffers->far = kl_inject_calloc((size_t)nranks, sizeof(struct kl_peer_buffers_remote *));
    return buffers->far ? ncclSuccess : KL_NOMEM("peer buffers");
}

static void forget_own(struct kl_peer_buffers *l)
{
    for (int i = 0; i < l->nown; i++) (void)l->devices->unexport(&l->own[i].handle);
    l->nown = l->watched = 0;
    l->epoch++;
}

static void forget_far(const struct kl_peer_buffers *l, struct kl_peer_buffers_remote *far)
{
    for (int b = 0; b < KL_PEER_BUFFER_BLOCKS; b++) {
        l->devices->unimport(far->import[b]);
        far->import[b] = NULL;
        far->base[b] = NULL;
    }
}

void kl_peer_buffers_fini(struct kl_peer_buffers *l)
{
    if (!l->far) return;
    forget_own(l);
    for (int r = 0; r < l->nranks; r++) {
        if (l->far[r]) forget_far(l, l->far[r]);
        free(l->far[r]);
    }
    free(l->far);
    l->far = NULL;
}

/* ---- this rank's ---- */

/* One of the list after the other is looked at, operation by operation. */
static bool was_freed(struct kl_peer_buffers *l)
{
    struct kl_memory memory;

    if (!l->nown) return false;
    const struct kl_peer_buffer_own *o = &l->own[l->watched++ % l->nown];
    l->devices->lookup(o->base, &memory);
    return memory.kind != KL_MEMORY_SHAREABLE;
}

/* Its place in the list; -1: it is not there, or was freed. */
static int listed(const struct kl_peer_buffers *l, const struct kl_memory *memory)
{
    for (int i = 0; i < l->nown; i++)
        if (l->own[i].base == memory->base) return i;
    return -1;
}

static int list(struct kl_peer_buffers *l, const struct kl_memory *memory)
{
    struct kl_peer_buffer_own *o = &l->own[l->nown];
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = l->devices->export_range(memory->base, memory->bytes, &o->handle);

    kl_error_quiet(quiet);
    if (rc) return -1;
    o->base = memory->base;
    o->bytes = memory->bytes;
    o->announced = false;
    return l->nown++;
}

static void describe(struct kl_peer_buffers *l, const void *buffer, enum kl_peer_buffer_which which,
                     struct kl_peer_buffer_info *info)
{
    struct kl_memory memory;

    info->at[which] = (uint64_t)(uintptr_t)buffer;
    info->block[which] = buffer ? 0 : NOWHERE;
    if (!l->processes || !buffer) return;
    l->devices->lookup(buffer, &memory);
    int i = memory.kind == KL_MEMORY_SHAREABLE ? listed(l, &memory) : -1;
    if (i < 0 && memory.kind == KL_MEMORY_SHAREABLE) i = list(l, &memory);
    if (i < 0) {
        info->reachable = false;
        return;
    }
    info->at[which] -= (uint64_t)(uintptr_t)memory.base;
    info->block[which] = (uint8_t)i;
    info->fresh |= !l->own[i].announced;
}

void kl_peer_buffer_info(struct kl_peer_buffers *l, const void *const buffer[KL_PEER_BUFFER_BUFFERS],
                         struct kl_peer_buffer_info *info)
{
    if (l->nown + KL_PEER_BUFFER_BUFFERS > KL_PEER_BUFFER_BLOCKS || was_freed(l)) forget_own(l);
    *info = (struct kl_peer_buffer_info){.reachable = true};
    for (int i = 0; i < KL_PEER_BUFFER_BUFFERS; i++) describe(l, buffer[i], (enum kl_peer_buffer_which)i, info);
    info->epoch = l->epoch;
}

struct kl_peer_buffer_info kl_peer_buffer_info_of(enum kl_peer_buffer_which which, uint64_t at, uint32_t epoch,
                                                  unsigned block)
{
    struct kl_peer_buffer_info info = {.epoch = epoch, .block = {NOWHERE, NOWHERE}, .reachable = true};

    info.at[which] = at;
    info.block[which] = (uint8_t)block;
    return info;
}

void kl_peer_buffer_handles(const struct kl_peer_buffers *l, const struct kl_peer_buffer_info *info,
                            struct kl_peer_buffer_handles *handles)
{
    *handles = (struct kl_peer_buffer_handles){0};
    for (int i = 0; i < KL_PEER_BUFFER_BUFFERS; i++)
        if (info->block[i] < l->nown) handles->handle[i] = l->own[info->block[i]].handle;
}

void kl_peer_buffers_announced(struct kl_peer_buffers *l)
{
    for (int i = 0; i < l->nown; i++) l->own[i].announced = true;
}

/* ---- others' ---- */

/* NULL: there is no memory. */
static struct kl_peer_buffers_remote *far_of(struct kl_peer_buffers *l, int rank,
                                             const struct kl_peer_buffer_info *info)
{
    if (!l->far[rank]) l->far[rank] = kl_inject_calloc(1, sizeof **l->far);
    struct kl_peer_buffers_remote *far = l->far[rank];
    if (!far) return NULL;

    if (far->epoch != info->epoch) forget_far(l, far);
    far->epoch = info->epoch;
    return far;
}

ncclResult_t kl_peer_buffer_import(struct kl_peer_buffers *l, int rank, const struct kl_peer_buffer_info *info,
                                   const struct kl_peer_buffer_handles *handles, uint64_t deadline)
{
    struct kl_peer_buffers_remote *far = far_of(l, rank, info);

    if (!far) return KL_NOMEM("peer buffers");
    for (int i = 0; i < KL_PEER_BUFFER_BUFFERS; i++) {
        const unsigned b = info->block[i];
        void *base;
        if (b == NOWHERE) continue;
        if (b >= KL_PEER_BUFFER_BLOCKS)
            return KL_FAIL(ncclRemoteError, "rank %d exports an allocation without a number", rank);
        if (far->base[b]) continue;
        KL_TRY(l->devices->import(&handles->handle[i], deadline, &far->import[b], &base));
        far->base[b] = base;
        far->bytes[b] = handles->handle[i].bytes;
    }
    return ncclSuccess;
}

static bool is_mapped(const struct kl_peer_buffers_remote *far, unsigned block, uint64_t at, size_t bytes)
{
    if (!far || block >= KL_PEER_BUFFER_BLOCKS || !far->base[block]) return false;
    return at <= far->bytes[block] && bytes <= far->bytes[block] - at;
}

char *kl_peer_buffer_find(struct kl_peer_buffers *l, int rank, const struct kl_peer_buffer_info *info,
                          enum kl_peer_buffer_which which, size_t bytes)
{
    const unsigned b = info->block[which];

    if (b == NOWHERE) return NULL;
    if (!l->processes) return (char *)(uintptr_t)info->at[which];
    if (rank == l->rank) return (char *)(uintptr_t)l->own[b].base + info->at[which];
    const struct kl_peer_buffers_remote *far = far_of(l, rank, info);
    return is_mapped(far, b, info->at[which], bytes) ? far->base[b] + info->at[which] : NULL;
}
