/* SPDX-License-Identifier: Apache-2.0 */
/**
 * relay_memory.h - the host memory of a relay, in blocks that are pinned when they are first needed: words of processes,
 * words of graphs, two sets of slots (for calls, for graphs), and pieces of room for messages.
 *
 * Threads: under the team's lock.
 */
#ifndef KL_COLL_GPU_RELAY_MEMORY_H
#define KL_COLL_GPU_RELAY_MEMORY_H

#include "coll/gpu/far.h"

enum {
    KL_RELAY_SLOTS = 2,
    KL_RELAY_PIECE = 16 << 20,
    KL_RELAY_ROOM = 512 << 20, /* of a rank for messages of calls; as much for those of graphs */
    KL_RELAY_GRAPH_WORDS = 1 << 20,
};

struct kl_relay_block {
    size_t offset, bytes;
    uint64_t at; /* as GPUs see it; 0: it is not pinned yet */
};

enum { KL_RELAY_WORDS, KL_RELAY_WORDS_OF_GRAPHS, KL_RELAY_SET, KL_RELAY_PIECES = KL_RELAY_SET + 2 };

struct kl_relay_memory {
    int nranks;
    size_t chunk; /* bytes of a slot */
    char *base;
    void *owned; /* NULL: it is common */
    struct kl_relay_block *block;
    int nblocks;
};

size_t kl_relay_memory_bytes(int nranks, size_t wanted_chunk, bool several);

/** In `memory`, or of its own. */
ncclResult_t kl_relay_memory_create(struct kl_relay_memory *m, int nranks, size_t wanted_chunk, void *memory);
void kl_relay_memory_free(struct kl_relay_memory *m, const struct kl_cuda_context *c, bool failed);

/** Pin a block, whichever context is current; its address for GPUs. */
ncclResult_t kl_relay_block(struct kl_relay_memory *m, const struct kl_cuda_driver *driver, int number, uint64_t *at);

/** The block's words as the CPU sees them. */
_Atomic uint32_t *kl_relay_words(const struct kl_relay_memory *m, int block);

/** In a set that is pinned: a rank's data in a slot; its factor; a result of all. */
uint64_t kl_relay_slot(const struct kl_relay_memory *m, int set, int slot, int rank);
uint64_t kl_relay_factor(const struct kl_relay_memory *m, int set, int slot, int rank);
uint64_t kl_relay_result(const struct kl_relay_memory *m, int set, int slot);

/** The piece of room that a byte of a rank's messages is in, of calls or of graphs. */
int kl_relay_piece(int rank, bool graphs, size_t byte);

#endif
