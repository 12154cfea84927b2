/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/shm/region.h"

#include "base/atomic.h"
#include "base/error.h"
#include "os/fault_inject.h"

#include <stdlib.h>
#include <unistd.h>

enum { FIRST_ROOM = 2, MOST_ROOM = 64 }; /* fifos of a region in a home */

struct kl_shm_region {
    struct kl_segment segment;
    struct kl_fd_export_handle handle;
    bool offered;
    uint32_t room, taken; /* fifos that fit, and that are taken */
    uint32_t settled;     /* of the taken ones: mapped by their senders, or given up */
    uint32_t users;       /* of the taken ones: not released; and one for a home that still has room */
};

struct kl_shm_slab {
    struct kl_shm_region *region; /* with room, or NULL */
    size_t fifo_bytes;
    uint32_t next_room;
};

/* ---- regions ---- */

static void withdraw(struct kl_shm_region *r)
{
    if (!r->offered) return;
    kl_fdshare_withdraw(&r->handle);
    r->offered = false;
    close(r->segment.fd); /* the mapping is enough, and descriptors are scarce */
    r->segment.fd = -1;
}

static void drop(struct kl_shm_region *r)
{
    if (--r->users) return;
    withdraw(r);
    kl_segment_close(&r->segment);
    free(r);
}

static ncclResult_t create(size_t fifo_bytes, uint32_t room, struct kl_shm_region **region)
{
    struct kl_shm_region *r = kl_inject_calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("a connection");
    *r = (struct kl_shm_region){.segment = KL_SEGMENT_NONE, .room = room};
    ncclResult_t rc = kl_segment_create(&r->segment, "kolo-fifo", fifo_bytes * room);
    if (!rc) rc = kl_fdshare_offer(r->segment.fd, &r->handle);
    if (rc) {
        kl_segment_close(&r->segment);
        free(r);
        return rc;
    }
    r->offered = true;
    *region = r;
    return ncclSuccess;
}

ncclResult_t kl_shm_region_create(size_t bytes, struct kl_shm_region **region)
{
    KL_TRY(create(bytes, 1, region));
    (*region)->taken = (*region)->users = 1;
    return ncclSuccess;
}

void kl_shm_region_unmap(struct kl_shm_region *r)
{
    kl_segment_unmap(&r->segment);
}

void *kl_shm_region_base(const struct kl_shm_region *region)
{
    return region->segment.base;
}

size_t kl_shm_region_bytes(const struct kl_shm_region *region)
{
    return region->segment.bytes;
}

const struct kl_fd_export_handle *kl_shm_region_export_handle(const struct kl_shm_region *region)
{
    return &region->handle;
}

void kl_shm_region_settle(struct kl_shm_region *r)
{
    if (++r->settled == r->room) withdraw(r);
}

void kl_shm_region_release(struct kl_shm_region *r, bool settled)
{
    if (!settled) kl_shm_region_settle(r);
    drop(r);
}

/* ---- homes ---- */

static ncclResult_t open_region(struct kl_shm_slab *home)
{
    KL_TRY(create(home->fifo_bytes, home->next_room, &home->region));
    home->region->users = 1; /* owned by the home */
    if (home->next_room < MOST_ROOM) home->next_room *= 2;
    return ncclSuccess;
}

static ncclResult_t make_slab(size_t fifo_bytes, struct kl_shm_slab **home)
{
    struct kl_shm_slab *h = kl_inject_calloc(1, sizeof *h);

    if (!h) return KL_NOMEM("connections of messages");
    *h = (struct kl_shm_slab){.fifo_bytes = fifo_bytes, .next_room = FIRST_ROOM};
    *home = h;
    return ncclSuccess;
}

ncclResult_t kl_shm_slab_take(struct kl_shm_slab **home, size_t bytes, struct kl_shm_region **region, size_t *offset)
{
    bytes = (bytes + KL_LINE - 1) / KL_LINE * KL_LINE;
    if (!*home) KL_TRY(make_slab(bytes, home));
    struct kl_shm_slab *h = *home;
    if (bytes != h->fifo_bytes)
        return KL_FAIL(ncclInternalError, "a fifo of %zu bytes in a region of fifos of %zu bytes", bytes,
                       h->fifo_bytes);
    if (!h->region) KL_TRY(open_region(h));

    struct kl_shm_region *r = h->region;
    *region = r;
    *offset = r->taken++ * bytes;
    r->users++;
    if (r->taken == r->room) {
        h->region = NULL;
        drop(r);
    }
    return ncclSuccess;
}

void kl_shm_slab_free(struct kl_shm_slab *home)
{
    if (home && home->region) drop(home->region);
    free(home);
}
