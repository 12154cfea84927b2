/* SPDX-License-Identifier: Apache-2.0 */
/**
 * fdpass.h - pass a file descriptor to another process, with a few bytes of data.
 *
 * Works over a connected AF_UNIX socket (stream or seqpacket, blocking or not). Sender and receiver agree on the number
 * of bytes; the descriptor travels with the first of them. A message without a descriptor is allowed, for instance as a
 * refusal.
 *
 * Sizes:    1 to KL_FDPASS_BYTES bytes, the same on both sides.
 * Errors:   ncclRemoteError when the peer is gone, silent past the deadline, or sends more than one descriptor;
 *           ncclSystemError when no descriptor is free here; ncclInvalidArgument for a size out of range.
 * Threads:  one at a time per socket and direction.
 * Source:   unix(7), cmsg(3).
 */
#ifndef KL_OS_FDPASS_H
#define KL_OS_FDPASS_H

#include "include/nccl.h"

#include <stddef.h>
#include <stdint.h>

#define KL_FDPASS_BYTES 256

/** Send `bytes` of `data` and, unless it is -1, `fd`, which stays the caller's and may be closed at once. */
ncclResult_t kl_fdpass_send(int sock, int fd, const void *data, size_t bytes, uint64_t deadline);

/**
 * Receive exactly `bytes` into `data`, and the descriptor that came along (close-on-exec, the caller's) or -1. On
 * failure no descriptor stays open, and received data is lost: close the socket.
 */
ncclResult_t kl_fdpass_recv(int sock, int *fd, void *data, size_t bytes, uint64_t deadline);

#endif
