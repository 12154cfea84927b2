/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fdmap.h - segments that other processes offer (fdshare.h), mapped once and shared by all users in this process.
 *
 * The process that offered a segment may end before its maps do.
 *
 * Errors:  those of fdshare.h and os/segment.h.
 * Threads: any.
 */
#ifndef KL_EVENT_FDMAP_H
#define KL_EVENT_FDMAP_H

#include "event/fdshare.h"

#include <stddef.h>

struct kl_fd_map;

/**
 * Map a segment of at least `bytes` that another process offers, or share the existing map. ncclInProgress: call again,
 * with the same `request`, which is NULL at first and is freed by kl_fdshare_request_free; the first call's `deadline` counts.
 * After a failure `request` is NULL again, and the next call starts over. Never blocks.
 */
ncclResult_t kl_fdmap_get(const struct kl_fd_export_handle *handle, size_t bytes, uint64_t deadline,
                          struct kl_fd_request **request, struct kl_fd_map **map);

/** Drop one reference; the last one unmaps the segment. */
void kl_fdmap_put(struct kl_fd_map *map);

void *kl_fdmap_base(const struct kl_fd_map *map);
size_t kl_fdmap_bytes(const struct kl_fd_map *map);

#endif
