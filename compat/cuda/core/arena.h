/* SPDX-License-Identifier: Apache-2.0 */
/**
 * arena.h - the memory of a device: a sparse segment, mapped once, divided into pieces.
 *
 * The segment is a memfd, so that another process of this user can map a piece by descriptor (kl_cuda_arena_fd) and offset.
 * Pages are allocated at the first write, and returned when their piece is freed: a new piece is zero.
 *
 * Sizes:    bytes; pieces begin at multiples of KL_CUDA_PIECE.
 * Threads:  any.
 */
#ifndef KL_CUDA_ARENA_H
#define KL_CUDA_ARENA_H

#include <stdbool.h>
#include <stddef.h>

enum { KL_CUDA_PIECE = 512 };

struct kl_cuda_arena;

/** Create an arena of `bytes` in a segment of this name; NULL if the system refuses. */
struct kl_cuda_arena *kl_cuda_arena_create(size_t bytes, const char *name);
void kl_cuda_arena_close(struct kl_cuda_arena *arena);

/** A piece, or NULL when there is no room in one piece. `align` is a power of two. bytes 0 is one byte. */
void *kl_cuda_arena_cut(struct kl_cuda_arena *arena, size_t bytes, size_t align);

/** Give a piece back, by its first address. */
void kl_cuda_arena_free(struct kl_cuda_arena *arena, void *piece);

/** Descriptor and offset of an address in it. */
int kl_cuda_arena_fd(const struct kl_cuda_arena *arena);
size_t kl_cuda_arena_offset(const struct kl_cuda_arena *arena, const void *address);

/** Bytes of all pieces, rounded as they are. */
size_t kl_cuda_arena_used(struct kl_cuda_arena *arena);

#endif
