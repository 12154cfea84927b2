/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fdshare.h - hand file descriptors to other processes of this host, on request.
 *
 * A process offers a descriptor and gets an export handle, a small record that it sends to a peer by any means. The
 * peer redeems the export handle: it connects to the offering process (an abstract Unix socket, so no file is left
 * anywhere), sends the export handle and receives the descriptor. The offering process's event loop (loop.h) answers;
 * its own threads need not take part.
 *
 * Security: an export handle holds 16 random bytes, without which a request is refused. Peers of another user are
 *           refused. Silent clients are dropped after 5 seconds; at most 256 are served at a time.
 * Fork:     a child has no offers of its own; those of its parent stay valid.
 * Threads:  any.
 * Errors:   ncclRemoteError when the other process is gone, refuses, or stays silent past the deadline;
 *           ncclSystemError.
 */
#ifndef KL_EVENT_FDSHARE_H
#define KL_EVENT_FDSHARE_H

#include "include/nccl.h"

#include <stdint.h>

struct kl_fd_export_handle {
    unsigned char secret[16];
    uint64_t service; /* names the socket of the offering process */
};
_Static_assert(sizeof(struct kl_fd_export_handle) == 24, "sent to other processes");

/** Offer `fd`, which stays the caller's and must stay open until kl_fdshare_withdraw. Starts the service if needed. */
ncclResult_t kl_fdshare_offer(int fd, struct kl_fd_export_handle *handle);

/** End an offer; a request being served is finished first. */
void kl_fdshare_withdraw(const struct kl_fd_export_handle *handle);

/** An export handle that is being redeemed without blocking. Used by one thread at a time. */
struct kl_fd_request;

/** Begin to redeem an export handle, until `deadline`. */
ncclResult_t kl_fdshare_request(const struct kl_fd_export_handle *handle, uint64_t deadline,
                                struct kl_fd_request **request);

/** The descriptor (close-on-exec), then owned by the caller. ncclInProgress: call again later. Never blocks. */
ncclResult_t kl_fdshare_poll(struct kl_fd_request *request, int *fd);

/** End a request, answered or not. NULL is fine. */
void kl_fdshare_request_free(struct kl_fd_request *request);

#endif
