/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/relay_memory.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE = 4096, HEAD = 256, SET_BYTES = 128 << 20, PIECES = KL_RELAY_ROOM / KL_RELAY_PIECE };

static size_t pages(size_t bytes)
{
    return (bytes + PAGE - 1) / PAGE * PAGE;
}

/* A set has a slot of each rank and a result, twice, and not more than SET_BYTES in all. */
static size_t chunk_of(int nranks, size_t wanted)
{
    const size_t most = SET_BYTES / KL_RELAY_SLOTS / (size_t)(nranks + 1);

    return (wanted < most ? wanted : most) / HEAD * HEAD;
}

static size_t set_bytes(int nranks, size_t chunk)
{
    return pages(KL_RELAY_SLOTS * (size_t)(nranks + 1) * (HEAD + chunk));
}

static size_t bytes_of(int nranks, size_t chunk, int block)
{
    switch (block) {
    case KL_RELAY_WORDS:
        return pages((size_t)nranks * sizeof(uint32_t));
    case KL_RELAY_WORDS_OF_GRAPHS:
        return KL_RELAY_GRAPH_WORDS * sizeof(uint32_t);
    case KL_RELAY_SET:
    case KL_RELAY_SET + 1:
        return set_bytes(nranks, chunk);
    default:
        return KL_RELAY_PIECE;
    }
}

static int blocks_of(int nranks, bool several)
{
    return KL_RELAY_PIECES + (several ? 2 * nranks * PIECES : 0);
}

size_t kl_relay_memory_bytes(int nranks, size_t wanted_chunk, bool several)
{
    size_t bytes = PAGE;

    for (int b = 0; b < blocks_of(nranks, several); b++) bytes += bytes_of(nranks, chunk_of(nranks, wanted_chunk), b);
    return bytes;
}

ncclResult_t kl_relay_memory_create(struct kl_relay_memory *m, int nranks, size_t wanted_chunk, void *memory)
{
    size_t offset = 0;

    *m = (struct kl_relay_memory){.nranks = nranks, .chunk = chunk_of(nranks, wanted_chunk)};
    m->nblocks = blocks_of(nranks, memory != NULL);
    m->block = calloc((size_t)m->nblocks, sizeof *m->block);
    if (!memory) m->owned = memory = malloc(kl_relay_memory_bytes(nranks, wanted_chunk, false));
    if (!m->block || !memory) return KL_NOMEM("host memory between GPUs");
    m->base = (char *)(((uintptr_t)memory + PAGE - 1) / PAGE * PAGE);
    for (int b = 0; b < m->nblocks; b++) {
        m->block[b] = (struct kl_relay_block){.offset = offset, .bytes = bytes_of(nranks, m->chunk, b)};
        offset += m->block[b].bytes;
    }
    return ncclSuccess;
}

/* Streams of a failed team may still be at work. */
void kl_relay_memory_free(struct kl_relay_memory *m, const struct kl_cuda_context *c, bool failed)
{
    const bool unpins = !failed && m->block && c && !kl_cuda_enter(c);

    for (int b = 0; unpins && b < m->nblocks; b++)
        if (m->block[b].at) (void)c->driver->cuMemHostUnregister(m->base + m->block[b].offset);
    if (unpins) kl_cuda_leave(c);
    if (!failed) free(m->owned);
    free(m->block);
}

/* Another thread may capture in a mode that forbids it; it is no part of any graph. */
static ncclResult_t pin(const struct kl_cuda_driver *driver, void *memory, struct kl_relay_block *b)
{
    KL_CUDA_TRY(driver, cuMemHostRegister(memory, b->bytes, KL_CU_HOST_PORTABLE_MAPPED),
                "%zu bytes of host memory between GPUs without P2P", b->bytes);
    KL_CUDA_TRY(driver, cuMemHostGetDevicePointer(&b->at, memory, 0), "host memory between GPUs without P2P");
    return ncclSuccess;
}

ncclResult_t kl_relay_block(struct kl_relay_memory *m, const struct kl_cuda_driver *driver, int number, uint64_t *at)
{
    struct kl_relay_block *b = &m->block[number];
    int mode = KL_CU_CAPTURE_RELAXED;
    ncclResult_t rc = ncclSuccess;

    if (!b->at) {
        (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
        rc = pin(driver, m->base + b->offset, b);
        (void)driver->cuThreadExchangeStreamCaptureMode(&mode);
    }
    *at = b->at;
    return rc;
}

_Atomic uint32_t *kl_relay_words(const struct kl_relay_memory *m, int block)
{
    return (_Atomic uint32_t *)(void *)(m->base + m->block[block].offset);
}

uint64_t kl_relay_factor(const struct kl_relay_memory *m, int set, int slot, int rank)
{
    return m->block[KL_RELAY_SET + set].at + (uint64_t)(slot * (m->nranks + 1) + rank) * (HEAD + m->chunk);
}

uint64_t kl_relay_slot(const struct kl_relay_memory *m, int set, int slot, int rank)
{
    return kl_relay_factor(m, set, slot, rank) + HEAD;
}

uint64_t kl_relay_result(const struct kl_relay_memory *m, int set, int slot)
{
    return kl_relay_slot(m, set, slot, m->nranks);
}

int kl_relay_piece(int rank, bool graphs, size_t byte)
{
    return KL_RELAY_PIECES + (2 * rank + graphs) * PIECES + (int)(byte / KL_RELAY_PIECE);
}
