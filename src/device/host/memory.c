/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/memory.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/fork_lock.h"
#include "os/segment.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kl_block {
    void *base;
    size_t bytes; /* as requested */
    int device;
    enum kl_memory_kind kind;
    struct kl_segment segment; /* of a shareable one */

    _Atomic uint32_t holds; /* references; becomes 0 under the table's lock only */
    bool freed;             /* by its user, while references remain; under the table's lock */
};

/* By ascending address. */
static struct {
    pthread_mutex_t lock;
    struct kl_block **block; /* under lock, as the next two */
    size_t n, room;
} book = {.lock = PTHREAD_MUTEX_INITIALIZER};

KL_FORK_LOCK(book.lock, (void)0);

/* ---- the table of blocks; under lock ---- */

/* How many blocks begin at or below `ptr`. */
static size_t count_up_to(const void *ptr)
{
    size_t low = 0, high = book.n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if ((uintptr_t)book.block[mid]->base <= (uintptr_t)ptr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The block that contains the byte at `ptr`, freed or not. */
static struct kl_block *find(const void *ptr)
{
    size_t n = count_up_to(ptr);
    struct kl_block *b = n ? book.block[n - 1] : NULL;

    return b && (uintptr_t)ptr - (uintptr_t)b->base < b->bytes ? b : NULL;
}

/* Does a block begin in the range? */
static bool any_begins_in(const void *ptr, size_t bytes)
{
    return count_up_to((const char *)ptr + bytes - 1) > count_up_to(ptr);
}

static bool insert(struct kl_block *b)
{
    size_t room = book.n < book.room ? book.room : book.room ? 2 * book.room : 16, at = count_up_to(b->base);

    if (room > book.room) {
        struct kl_block **grown = realloc(book.block, room * sizeof(struct kl_block *));
        if (!grown) return false;
        book.block = grown;
        book.room = room;
    }
    memmove(book.block + at + 1, book.block + at, (book.n - at) * sizeof(struct kl_block *));
    book.block[at] = b;
    book.n++;
    return true;
}

/* Removing the last block frees the table. */
static void take_out(const struct kl_block *b)
{
    size_t at = count_up_to(b->base) - 1;

    book.n--;
    memmove(book.block + at, book.block + at + 1, (book.n - at) * sizeof(struct kl_block *));
    if (book.n) return;
    free(book.block);
    book.block = NULL;
    book.room = 0;
}

/* ---- allocating ---- */

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static ncclResult_t get_memory(struct kl_block *b)
{
    size_t page = page_bytes();

    if (b->kind == KL_MEMORY_SHAREABLE) {
        KL_TRY(kl_segment_create(&b->segment, "kolo-memory", b->bytes));
        b->base = b->segment.base;
        return ncclSuccess;
    }
    b->base = aligned_alloc(page, (b->bytes + page - 1) / page * page);
    return b->base ? ncclSuccess : KL_FAIL(ncclSystemError, "no memory for %zu bytes", b->bytes);
}

static void give_memory_back(struct kl_block *b)
{
    if (b->kind == KL_MEMORY_SHAREABLE)
        kl_segment_close(&b->segment);
    else
        free(b->base);
    free(b);
}

/* Pages are allocated when touched; exceeding the machine's memory would only be noticed then. */
static ncclResult_t check_size(size_t bytes)
{
    size_t page = page_bytes(), pages = (size_t)sysconf(_SC_PHYS_PAGES);

    if ((bytes - 1) / page >= pages)
        return KL_FAIL(ncclInvalidArgument, "%zu bytes of memory were asked for; this machine has %zu", bytes,
                       pages * page);
    return ncclSuccess;
}

static ncclResult_t add_to_book(struct kl_block *b)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&book.lock);
    bool there = insert(b);
    pthread_mutex_unlock(&book.lock);
    return there ? ncclSuccess : KL_NOMEM("the book of device memory");
}

static ncclResult_t make_block(struct kl_block *b, void **ptr)
{
    ncclResult_t rc = get_memory(b);

    if (!rc) {
        *ptr = b->base;
        rc = add_to_book(b); /* from here on other threads may find it, and free it */
    }
    if (rc) give_memory_back(b);
    return rc;
}

ncclResult_t kl_block_alloc(int device, enum kl_memory_kind kind, size_t bytes, void **ptr)
{
    void *base = NULL;

    if (bytes) {
        KL_TRY(check_size(bytes));
        struct kl_block *b = malloc(sizeof *b);
        if (!b) return KL_NOMEM("a piece of device memory");
        *b = (struct kl_block){.bytes = bytes, .device = device, .kind = kind, .segment = KL_SEGMENT_NONE, .holds = 1};
        KL_TRY(make_block(b, &base));
    }
    *ptr = base;
    return ncclSuccess;
}

ncclResult_t kl_block_free(void *ptr)
{
    if (!ptr) return ncclSuccess;
    pthread_mutex_lock(&book.lock);
    struct kl_block *b = find(ptr);
    if (b && (b->base != ptr || b->freed)) b = NULL;
    if (b) b->freed = true;
    pthread_mutex_unlock(&book.lock);
    if (!b)
        return KL_FAIL(ncclInvalidArgument,
                       "cannot free %p: no memory of ncclMemAlloc or koloMalloc begins there, or it was freed already",
                       ptr);
    kl_block_unref(b);
    return ncclSuccess;
}

/* ---- queries ---- */

void kl_block_lookup(const void *ptr, struct kl_memory *memory)
{
    *memory = (struct kl_memory){.kind = KL_MEMORY_FOREIGN, .device = -1};
    pthread_mutex_lock(&book.lock);
    const struct kl_block *b = find(ptr);
    if (b && !b->freed)
        *memory = (struct kl_memory){.kind = b->kind, .device = b->device, .base = b->base, .bytes = b->bytes};
    pthread_mutex_unlock(&book.lock);
}

void *kl_block_base(const struct kl_block *block)
{
    return block->base;
}

size_t kl_block_bytes(const struct kl_block *block)
{
    return block->bytes;
}

int kl_block_fd(const struct kl_block *block)
{
    return block->segment.fd;
}

/* ---- references ---- */

void kl_block_ref_again(struct kl_block *block)
{
    kl_fetch_add_relaxed(&block->holds, 1);
}

ncclResult_t kl_block_ref(const void *ptr, size_t bytes, struct kl_block **block)
{
    if (!bytes || bytes - 1 > UINTPTR_MAX - (uintptr_t)ptr)
        return KL_FAIL(ncclInvalidArgument, "%zu bytes from %p are no range of memory", bytes, ptr);

    pthread_mutex_lock(&book.lock);
    struct kl_block *b = find(ptr);
    bool within = b && !b->freed && bytes <= b->bytes - (size_t)((const char *)ptr - (const char *)b->base);
    bool foreign = !b && !any_begins_in(ptr, bytes);
    if (within) kl_block_ref_again(b);
    pthread_mutex_unlock(&book.lock);
    if (!within && !foreign)
        return KL_FAIL(ncclInvalidArgument, "%zu bytes from %p are not within one allocation, or it was freed", bytes,
                       ptr);
    *block = b;
    return ncclSuccess;
}

void kl_block_unref(struct kl_block *block)
{
    if (!block) return;
    pthread_mutex_lock(&book.lock);
    bool last = kl_fetch_sub_acq_rel(&block->holds, 1) == 1;
    if (last) take_out(block);
    pthread_mutex_unlock(&book.lock);
    if (last) give_memory_back(block); /* only from here on may other allocations get its addresses */
}
