/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/ranges.h"

#include "base/error.h"
#include "base/fork_lock.h"
#include "device/host/memory.h"
#include "event/fdmap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct pin {
    struct pin *next;
    uint64_t number, count;
    const void *ptr;
    size_t bytes;
    struct kl_block *block; /* referenced; NULL: foreign memory */
};

struct export
{
    struct export *next;
    struct kl_range_export_handle exported;
    struct kl_block *block; /* referenced */
};

struct kl_import {
    struct kl_fd_request *request;
    struct kl_fd_map *map;
    struct kl_block *block; /* referenced: the range is in this process */
};

_Static_assert(sizeof(struct kl_fd_export_handle) <= sizeof((struct kl_range_export_handle *)0)->handle,
               "a descriptor's handle fits");

/* Code under this lock takes no other lock. */
static struct {
    pthread_mutex_t lock;
    struct pin *pins; /* under lock, as all fields */
    struct export *exports;
    uint64_t pinned; /* pins ever made: the number of the latest */
} ranges = {.lock = PTHREAD_MUTEX_INITIALIZER};

KL_FORK_LOCK(ranges.lock, (void)0);

static void take_lock(void)
{
    pthread_mutex_lock(&ranges.lock);
}

static void release_lock(void)
{
    pthread_mutex_unlock(&ranges.lock);
}

/* Before the first entry the lists need no protection across fork. */
static void lock_for_entry(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    take_lock();
}

/* ---- pins ---- */

/* Under lock. Is the range pinned already? Foreign memory is known by its address alone, and may be other memory by
 * now. */
static struct pin *pinned_before(const struct pin *like)
{
    struct pin *p = ranges.pins;

    while (p && (p->ptr != like->ptr || p->bytes != like->bytes || p->block != like->block)) p = p->next;
    return p;
}

ncclResult_t kl_range_pin(const void *ptr, size_t bytes, uint64_t *pin)
{
    struct kl_block *block;

    KL_TRY(kl_block_ref(ptr, bytes, &block));
    struct pin *made = malloc(sizeof *made);
    if (!made) {
        kl_block_unref(block);
        return KL_NOMEM("a pinned range");
    }
    *made = (struct pin){.ptr = ptr, .bytes = bytes, .block = block};

    lock_for_entry();
    struct pin *there = pinned_before(made), *p = there ? there : made;
    if (!there) {
        made->number = ++ranges.pinned;
        made->next = ranges.pins;
        ranges.pins = made;
    }
    p->count++;
    *pin = p->number;
    release_lock();
    if (there) {
        kl_block_unref(block);
        free(made);
    }
    return ncclSuccess;
}

ncclResult_t kl_range_unpin(uint64_t pin)
{
    struct pin *gone = NULL;

    take_lock();
    struct pin **link = &ranges.pins;
    while (*link && (*link)->number != pin) link = &(*link)->next;
    struct pin *found = *link;
    if (found && !--found->count) {
        gone = found;
        *link = found->next;
    }
    release_lock();
    if (!found) return KL_FAIL(ncclInvalidArgument, "nothing is pinned as %llu", (unsigned long long)pin);
    if (gone) kl_block_unref(gone->block);
    free(gone);
    return ncclSuccess;
}

/* ---- exports ---- */

static ncclResult_t offer(struct export *e, const void *ptr, size_t bytes)
{
    struct kl_fd_export_handle exported;

    if (!e->block || kl_block_fd(e->block) < 0)
        return KL_FAIL(ncclInvalidArgument, "other processes cannot map %p: it is not memory of ncclMemAlloc", ptr);
    KL_TRY(kl_fdshare_offer(kl_block_fd(e->block), &exported));
    e->exported.offset = (uint64_t)((const char *)ptr - (const char *)kl_block_base(e->block));
    e->exported.bytes = bytes;
    memcpy(e->exported.handle, &exported, sizeof exported);
    return ncclSuccess;
}

ncclResult_t kl_range_export(const void *ptr, size_t bytes, struct kl_range_export_handle *exported)
{
    struct export *e = calloc(1, sizeof *e);

    if (!e) return KL_NOMEM("an exported range");
    ncclResult_t rc = kl_block_ref(ptr, bytes, &e->block);
    if (!rc) rc = offer(e, ptr, bytes);
    if (rc) {
        kl_block_unref(e->block);
        free(e);
        return rc;
    }
    *exported = e->exported;
    lock_for_entry();
    e->next = ranges.exports;
    ranges.exports = e;
    release_lock();
    return ncclSuccess;
}

/* Under lock. The link to the export with this handle; it is NULL if this process has none. */
static struct export **find_export(const struct kl_range_export_handle *exported)
{
    struct export **link = &ranges.exports;

    while (*link && memcmp((*link)->exported.handle, exported->handle, sizeof exported->handle)) link = &(*link)->next;
    return link;
}

static struct kl_fd_export_handle fd_handle(const struct kl_range_export_handle *exported)
{
    struct kl_fd_export_handle fd;

    memcpy(&fd, exported->handle, sizeof fd);
    return fd;
}

ncclResult_t kl_range_unexport(const struct kl_range_export_handle *exported)
{
    struct kl_fd_export_handle fd = fd_handle(exported);

    take_lock();
    struct export **link = find_export(exported), *e = *link;
    if (e) *link = e->next;
    release_lock();
    if (!e) return KL_FAIL(ncclInvalidArgument, "this process does not export that range, or not any more");
    kl_fdshare_withdraw(&fd);
    kl_block_unref(e->block);
    free(e);
    return ncclSuccess;
}

/* ---- imports ---- */

static ncclResult_t check_handle(const struct kl_range_export_handle *exported)
{
    if (!exported->bytes || exported->bytes > PTRDIFF_MAX || exported->offset > PTRDIFF_MAX - exported->bytes)
        return KL_FAIL(ncclRemoteError, "a peer exports %llu bytes from %llu on: that is no range of memory",
                       (unsigned long long)exported->bytes, (unsigned long long)exported->offset);
    return ncclSuccess;
}

/* The block in this process that the export handle refers to, referenced; NULL: it is in another process. */
static struct kl_block *ref_own(const struct kl_range_export_handle *exported)
{
    struct kl_block *block = NULL;

    take_lock();
    const struct export *e = *find_export(exported);
    if (e) block = e->block;
    if (block) kl_block_ref_again(block);
    release_lock();
    return block;
}

static ncclResult_t map(struct kl_import *i, const struct kl_range_export_handle *exported, uint64_t deadline,
                        void **base)
{
    struct kl_fd_export_handle fd = fd_handle(exported);
    size_t end = (size_t)(exported->offset + exported->bytes);

    KL_TRY(check_handle(exported));
    if (!i->request) i->block = ref_own(exported);
    if (i->block) {
        *base = kl_block_base(i->block);
        return end <= kl_block_bytes(i->block)
                   ? ncclSuccess
                   : KL_FAIL(ncclInvalidArgument, "an export handle is of more than its allocation has");
    }
    KL_TRY(kl_fdmap_get(&fd, end, deadline, &i->request, &i->map));
    *base = kl_fdmap_base(i->map);
    return ncclSuccess;
}

ncclResult_t kl_range_import(const struct kl_range_export_handle *exported, uint64_t deadline,
                             struct kl_import **import, void **ptr)
{
    void *base;

    if (!*import) *import = calloc(1, sizeof **import);
    if (!*import) return KL_NOMEM("an imported range");
    ncclResult_t rc = map(*import, exported, deadline, &base);
    if (!rc) {
        *ptr = (char *)base + exported->offset;
    } else if (rc != ncclInProgress) {
        kl_range_unimport(*import);
        *import = NULL;
    }
    return rc;
}

void kl_range_unimport(struct kl_import *import)
{
    if (!import) return;
    kl_fdshare_request_free(import->request);
    if (import->map) kl_fdmap_put(import->map);
    kl_block_unref(import->block);
    free(import);
}
