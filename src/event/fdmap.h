/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fdmap.h - segments that other processes offer (fdshare.h), mapped once for all who use them here.
 *
 * Who offers a segment need not live as long as its maps do.
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
 * Map what another process offers, at least `bytes`, or share the map that there is. ncclInProgress: call again, with the
 * same `request`, which is NULL at first and ends by kl_fdshare_end; the first `deadline` counts. After a failure it is
 * NULL again, and a call asks anew. Never waits.
 */
ncclResult_t kl_fdmap_get(const struct kl_fd_ticket *ticket, size_t bytes, uint64_t deadline,
                          struct kl_fd_request **request, struct kl_fd_map **map);

/** One user less; with the last one it is unmapped. */
void kl_fdmap_put(struct kl_fd_map *map);

void *kl_fdmap_base(const struct kl_fd_map *map);
size_t kl_fdmap_bytes(const struct kl_fd_map *map);

#endif
