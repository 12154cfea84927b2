/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entering adds a caller and checks in the same step that the handle's use number is current; issuers are counted in the
 * same step. Ending a communicator raises the use number, once: from then on no call can enter. It waits for the callers
 * to leave and then frees.
 *
 * Memory order: one word, so all threads see its changes in the same order. Entering acquires the stores that opening
 * released; draining acquires the stores that leaving released.
 */
#include "comm/handle.h"

#include "base/fork_lock.h"
#include "comm/comm.h"
#include "device/host/wait.h"
#include "os/process.h"
#include "os/thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ISSUER_BITS = 16, CALLER_BITS = 16, INSIDE_BITS = ISSUER_BITS + CALLER_BITS };
enum { SLOT_BITS = 16, BLOCK_SLOTS = 64, BLOCKS = (1 << SLOT_BITS) / BLOCK_SLOTS };

#define ISSUERS    (((uint64_t)1 << ISSUER_BITS) - 1)
#define INSIDE     (((uint64_t)1 << INSIDE_BITS) - 1) /* callers and issuers */
#define ONE_ISSUER ((uint64_t)1)
#define ONE_CALLER ((uint64_t)1 << ISSUER_BITS)
#define ONE_USE    ((uint64_t)1 << INSIDE_BITS)
#define SLOTS      (((uintptr_t)1 << SLOT_BITS) - 1)

/* A line of its own: every call writes it. */
struct kl_slot {
    alignas(KL_LINE) _Atomic uint64_t word; /* as in handle.h */
    struct ncclComm *comm;                  /* while the use number is odd */
    uint32_t number;
    struct kl_slot *next; /* the next free one */
};

static struct {
    _Atomic(struct kl_slot *) blocks[BLOCKS]; /* each is published once and stays */
    pthread_mutex_t lock;
    struct kl_slot *spare; /* under lock, as the next */
    uint32_t nblocks;
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

KL_FORK_LOCK(registry.lock, (void)0);

/* ---- slots ---- */

static ncclComm_t handle_of(const struct kl_slot *slot, uint64_t word)
{
    return (ncclComm_t)(uintptr_t)(word >> INSIDE_BITS << SLOT_BITS | slot->number);
}

/* NULL: never used yet. */
static struct kl_slot *slot_at(unsigned number)
{
    struct kl_slot *block = kl_load_acquire(&registry.blocks[number / BLOCK_SLOTS]); /* pairs with add_block */

    return block ? &block[number % BLOCK_SLOTS] : NULL;
}

/* The slot of a handle, in any use; NULL if there is none. */
static struct kl_slot *slot_of(ncclComm_t handle)
{
    return slot_at((unsigned)((uintptr_t)handle & SLOTS));
}

/* Does the word of a slot have the handle's use number? Handles have an odd one. */
static inline bool fits(uint64_t word, ncclComm_t handle)
{
    return word >> INSIDE_BITS == (uintptr_t)handle >> SLOT_BITS && (uintptr_t)handle >> SLOT_BITS & 1;
}

static ncclResult_t add_block(void)
{
    uint32_t first = registry.nblocks * BLOCK_SLOTS;

    if (registry.nblocks == BLOCKS)
        return KL_FAIL(ncclSystemError, "this process has %u communicators, and there cannot be more", first);
    struct kl_slot *block = aligned_alloc(KL_LINE, BLOCK_SLOTS * sizeof *block);
    if (!block) return KL_NOMEM("handles of communicators");
    memset(block, 0, BLOCK_SLOTS * sizeof *block);
    for (uint32_t i = BLOCK_SLOTS; i-- > 0;) {
        block[i].number = first + i;
        block[i].next = registry.spare;
        registry.spare = &block[i];
    }
    kl_store_release(&registry.blocks[registry.nblocks++], block); /* pairs with slot_of */
    return ncclSuccess;
}

static ncclResult_t take_slot(struct kl_slot **slot)
{
    ncclResult_t rc = ncclSuccess;

    pthread_mutex_lock(&registry.lock);
    if (!registry.spare) rc = add_block();
    if (!rc) {
        *slot = registry.spare;
        registry.spare = (*slot)->next;
    }
    pthread_mutex_unlock(&registry.lock);
    return rc;
}

/* ---- for the owner of a communicator ---- */

ncclResult_t kl_handle_open(struct ncclComm *comm)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct kl_slot *slot;

    pthread_once(&once, install_fork_handlers);
    KL_TRY(take_slot(&slot));
    slot->comm = comm;
    comm->slot = slot;
    comm->handle = handle_of(slot, kl_fetch_add_acq_rel(&slot->word, ONE_USE) + ONE_USE);
    return ncclSuccess;
}

bool kl_handle_close(struct ncclComm *comm)
{
    uint64_t word = kl_load_relaxed(&comm->slot->word);

    while (fits(word, comm->handle))
        if (kl_cas_acq_rel(&comm->slot->word, &word, word + ONE_USE)) return true;
    return false;
}

static unsigned callers_in(struct kl_slot *slot)
{
    return (unsigned)((kl_load_acquire(&slot->word) & INSIDE) >> ISSUER_BITS); /* pairs with kl_handle_leave */
}

void kl_handle_drain(struct ncclComm *comm)
{
    struct kl_poll_wait wait = KL_WAIT_START;

    while (callers_in(comm->slot)) kl_wait_pause(&wait, KL_CORES_SHARED);
}

void kl_handle_release(struct ncclComm *comm)
{
    struct kl_slot *slot = comm->slot;

    if (!slot) return;
    pthread_mutex_lock(&registry.lock);
    slot->next = registry.spare;
    registry.spare = slot;
    pthread_mutex_unlock(&registry.lock);
    comm->slot = NULL;
}

/* ---- for calls ---- */

/* The first look keeps stale handles from changing the word; the second counts. `*before`: the word without this
 * caller. */
static inline struct ncclComm *enter(ncclComm_t handle, uint64_t as, uint64_t *before)
{
    struct kl_slot *slot = slot_of(handle);

    if (!slot || !fits(kl_load_relaxed(&slot->word), handle)) return NULL;
    *before = kl_fetch_add_acq_rel(&slot->word, as);
    if (fits(*before, handle)) return slot->comm;
    kl_fetch_sub_acq_rel(&slot->word, as);
    return NULL;
}

struct ncclComm *kl_handle_try(ncclComm_t handle)
{
    uint64_t before;
    struct ncclComm *comm = enter(handle, ONE_CALLER, &before);

    if (!comm || kl_process_is(comm->generation)) return comm;
    kl_handle_leave(comm);
    return NULL;
}

unsigned kl_handle_number(const struct ncclComm *comm)
{
    return comm->slot->number;
}

struct ncclComm *kl_handle_try_number(unsigned number)
{
    struct kl_slot *slot = slot_at(number);

    return slot ? kl_handle_try(handle_of(slot, kl_load_acquire(&slot->word))) : NULL;
}

static ncclResult_t refuse_inherited(struct ncclComm *comm, const char *function)
{
    int rank = comm->rank;

    kl_handle_leave(comm);
    return KL_FAIL(ncclInvalidUsage,
                   "%s: the communicator of rank %d belongs to the process that this one was forked from: a child "
                   "creates its own",
                   function, rank);
}

static ncclResult_t refuse(ncclComm_t handle, const char *function)
{
    if (!handle) return KL_FAIL(ncclInvalidArgument, "%s: the communicator is NULL", function);
    return KL_FAIL(ncclInvalidArgument, "%s: %p is no communicator, or was destroyed or aborted", function,
                   (void *)handle);
}

ncclResult_t kl_handle_enter(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    uint64_t before;
    struct ncclComm *found = enter(handle, ONE_CALLER, &before);

    if (!found) return refuse(handle, function);
    if (!kl_process_is(found->generation)) return refuse_inherited(found, function);
    *comm = found;
    return ncclSuccess;
}

void kl_handle_leave(struct ncclComm *comm)
{
    kl_fetch_sub_acq_rel(&comm->slot->word, ONE_CALLER); /* pairs with callers_in */
}

static __attribute__((noinline)) ncclResult_t refuse_second(struct ncclComm *comm, const char *function)
{
    int rank = comm->rank;

    kl_handle_leave_as_issuer(comm);
    return KL_FAIL(ncclInvalidUsage,
                   "%s: another thread is giving the communicator of rank %d work at the same time: threads that share "
                   "one take turns",
                   function, rank);
}

ncclResult_t kl_handle_enter_as_issuer(ncclComm_t handle, const char *function, struct ncclComm **comm)
{
    uint64_t before;
    struct ncclComm *found = enter(handle, ONE_CALLER + ONE_ISSUER, &before);

    if (!found) return refuse(handle, function);
    if (!kl_process_is(
            found->generation)) { /* first: a thread that issued when the process was forked is counted for ever */
        kl_handle_end_issuing(found);
        return refuse_inherited(found, function);
    }
    if (before & ISSUERS && kl_load_relaxed(&found->waits_inline) != kl_thread_self())
        return refuse_second(found, function);
    *comm = found;
    return ncclSuccess;
}

void kl_handle_end_issuing(struct ncclComm *comm)
{
    kl_fetch_sub_acq_rel(&comm->slot->word, ONE_ISSUER);
}

void kl_handle_leave_as_issuer(struct ncclComm *comm)
{
    kl_fetch_sub_acq_rel(&comm->slot->word, ONE_CALLER + ONE_ISSUER); /* pairs with callers_in */
}

static void visit(struct kl_slot *slot, void (*fn)(struct ncclComm *comm, void *ctx), void *ctx)
{
    struct ncclComm *comm = kl_handle_try(handle_of(slot, kl_load_acquire(&slot->word)));

    if (!comm) return;
    fn(comm, ctx);
    kl_handle_leave(comm);
}

void kl_handle_each(void (*fn)(struct ncclComm *comm, void *ctx), void *ctx)
{
    for (int b = 0; b < BLOCKS; b++) {
        struct kl_slot *block = kl_load_acquire(&registry.blocks[b]); /* pairs with add_block */
        for (int i = 0; block && i < BLOCK_SLOTS; i++) visit(&block[i], fn, ctx);
        if (!block) return;
    }
}

unsigned kl_handle_callers(ncclComm_t handle)
{
    struct kl_slot *slot = slot_of(handle);

    return slot && fits(kl_load_relaxed(&slot->word), handle) ? callers_in(slot) : 0;
}
