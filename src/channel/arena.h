/* SPDX-License-Identifier: Apache-2.0 */
/**
 * arena.h - memory that several ranks of a host map, each at its own address: for algorithms that exchange data through
 * common memory.
 *
 * The first of them makes it; connect info and replies travel through the bootstrap, as for connections:
 *
 *     first:   begin: make it, post the info to all others -> wait for all replies -> withdraw the offer, ready
 *     others:  begin                                       -> wait for the info    -> map it, post the reply, ready
 *
 * Contents: zero at first. Pages are allocated when touched. In front of it each member has a line with a flag that
 *           it has left.
 * Errors:   as the bootstrap, segments and descriptors; ncclInternalError when members expect another size.
 * Own memory: members may publish in it the addresses of their own memory, and others then read and write there, a piece
 *           at a time, each between kl_arena_touch and kl_arena_untouch. A member that has failed revokes its memory:
 *           when that returns no rank touches it.
 * Threads:  one at a time, per rank.
 */
#ifndef KL_CHANNEL_ARENA_H
#define KL_CHANNEL_ARENA_H

#include "base/atomic.h"
#include "device/host/stream.h"
#include "event/fdshare.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_bootstrap;
struct kl_shm_region;
struct kl_fd_map;

/** A member's line. */
struct kl_arena_mark {
    alignas(KL_LINE) _Atomic uint32_t left;
    _Atomic uint32_t revoked;  /* other ranks may not rely on its memory any more (kl_arena_revoke) */
    _Atomic uint32_t touching; /* it is in the middle of a piece of others' memory */
    _Atomic int32_t process;   /* the process's id in its own PID namespace; 0: it has not joined yet */
};
_Static_assert(sizeof(struct kl_arena_mark) == KL_LINE, "one writer per line");

struct kl_arena_config {
    struct kl_bootstrap *bootstrap; /* outlives the arena */
    const int32_t *ranks;           /* the members, the same list at all of them; outlives it as well */
    int n, own;                     /* number of members, and this rank's index */
    uint32_t tag;                   /* of the messages; no other arena of these ranks has it */
    size_t bytes;
    uint64_t timeout_ms; /* limit for mapping the offered memory */
};

struct kl_arena {
    struct kl_arena_config config;
    struct kl_arena_mark *mark; /* by member; NULL until the memory is there */
    void *memory;               /* `bytes` of it, aligned to KL_LINE */
    bool ready;                 /* all members that matter to this rank have mapped it */
    int answered;               /* to the first: members, in order */
    struct kl_shm_region *region;
    struct kl_fd_export_handle handle; /* of others: once invited */
    bool invited;
    uint64_t doubt; /* how long to wait for the reason why the memory is unreachable; 0: it is not */
    struct kl_fd_request *request;
    struct kl_fd_map *map;
    struct kl_arena *next; /* the owner's */
};

/** Begin. */
ncclResult_t kl_arena_begin(struct kl_arena *arena, const struct kl_arena_config *config);

/** Continue until it is ready: DONE. *rc is set on failure, with DONE. */
enum kl_progress kl_arena_progress(struct kl_arena *arena, ncclResult_t *rc);

/** A member that it waits for; -1: none. */
int kl_arena_blocked_on(const struct kl_arena *arena);

/** Publish that this rank will not use it any more. Any state. */
void kl_arena_leave(struct kl_arena *arena);

/**
 * An operation of this rank has failed: the contents of its own memory are undefined for others from now on, and when
 * this returns no rank of this process touches it, nor a rank of another process that still runs. Waits for a piece
 * (microseconds). Any state.
 */
void kl_arena_revoke(struct kl_arena *arena);

/** Release the memory, which lives until all have. Any state after kl_arena_begin, also when it failed. */
void kl_arena_fini(struct kl_arena *arena);

/** Before a piece of others' memory is read or written. False: a member has revoked, do not touch it. */
bool kl_arena_touch(struct kl_arena_mark *mark, int own, int n);

/** And after it. */
static inline void kl_arena_untouch(struct kl_arena_mark *mark, int own)
{
    kl_store_release(&mark[own].touching, 0); /* pairs with kl_arena_revoke: the piece is done */
}

/** Has a member left? */
static inline bool kl_arena_left(const struct kl_arena_mark *mark, int member)
{
    return kl_load_acquire(&mark[member].left); /* pairs with kl_arena_leave */
}

#endif
