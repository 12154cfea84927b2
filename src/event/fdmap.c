/* SPDX-License-Identifier: Apache-2.0 */
#include "event/fdmap.h"

#include "base/error.h"
#include "os/fault_inject.h"
#include "os/segment.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kl_fd_map {
    struct kl_fd_map *next; /* protected by the lock, as is `users` */
    uint32_t users;
    struct kl_fd_export_handle handle;
    struct kl_segment segment; /* constant once listed */
};

enum { BUCKETS = 1024 };

/* An export handle is random: its first bytes serve as the hash. */
static struct {
    pthread_mutex_t lock;
    struct kl_fd_map *bucket[BUCKETS]; /* under lock */
} maps = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct kl_fd_map **bucket_of(const struct kl_fd_export_handle *handle)
{
    return &maps.bucket[(handle->secret[0] | handle->secret[1] << 8) % BUCKETS];
}

/* Under the lock. */
static struct kl_fd_map *find(const struct kl_fd_export_handle *handle)
{
    struct kl_fd_map *m = *bucket_of(handle);

    while (m && memcmp(&m->handle, handle, sizeof *handle)) m = m->next;
    return m;
}

static ncclResult_t map_now(const struct kl_fd_export_handle *handle, int fd, size_t bytes, struct kl_fd_map **map)
{
    struct kl_fd_map *m = kl_inject_calloc(1, sizeof *m);

    if (!m) {
        close(fd);
        return KL_NOMEM("a map of another process's memory");
    }
    m->handle = *handle;
    m->users = 1;
    ncclResult_t rc = kl_segment_attach(&m->segment, fd, bytes);
    if (rc) {
        free(m);
        return rc;
    }
    *map = m;
    return ncclSuccess;
}

static ncclResult_t redeem(const struct kl_fd_export_handle *handle, uint64_t deadline, struct kl_fd_request **request,
                           int *fd)
{
    if (!*request) KL_TRY(kl_fdshare_request(handle, deadline, request));
    ncclResult_t rc = kl_fdshare_poll(*request, fd);
    if (rc == ncclInProgress) return rc;
    kl_fdshare_request_free(*request); /* success or failure: the next call makes a new request */
    *request = NULL;
    return rc;
}

/* Two threads may map the same segment at the same time: the second one discards its map. */
static struct kl_fd_map *list(struct kl_fd_map *mine)
{
    pthread_mutex_lock(&maps.lock);
    struct kl_fd_map *there = find(&mine->handle);
    if (there) {
        there->users++;
    } else {
        mine->next = *bucket_of(&mine->handle);
        *bucket_of(&mine->handle) = mine;
    }
    pthread_mutex_unlock(&maps.lock);
    if (!there) return mine;
    kl_segment_close(&mine->segment);
    free(mine);
    return there;
}

ncclResult_t kl_fdmap_get(const struct kl_fd_export_handle *handle, size_t bytes, uint64_t deadline,
                          struct kl_fd_request **request, struct kl_fd_map **map)
{
    pthread_mutex_lock(&maps.lock);
    struct kl_fd_map *m = find(handle);
    if (m) m->users++;
    pthread_mutex_unlock(&maps.lock);
    if (!m) {
        int fd;
        KL_TRY(redeem(handle, deadline, request, &fd));
        KL_TRY(map_now(handle, fd, bytes, &m));
        m = list(m);
    }
    if (m->segment.bytes < bytes) {
        kl_fdmap_put(m);
        return KL_FAIL(ncclRemoteError, "a peer's memory is smaller than it says");
    }
    *map = m;
    return ncclSuccess;
}

void kl_fdmap_put(struct kl_fd_map *map)
{
    pthread_mutex_lock(&maps.lock);
    bool last = !--map->users;
    if (last) {
        struct kl_fd_map **link = bucket_of(&map->handle);
        while (*link != map) link = &(*link)->next;
        *link = map->next;
    }
    pthread_mutex_unlock(&maps.lock);
    if (!last) return;
    kl_segment_close(&map->segment);
    free(map);
}

void *kl_fdmap_base(const struct kl_fd_map *map)
{
    return map->segment.base;
}

size_t kl_fdmap_bytes(const struct kl_fd_map *map)
{
    return map->segment.bytes;
}
