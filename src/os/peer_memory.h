/* SPDX-License-Identifier: Apache-2.0 */
/**
 * peer_memory.h - reading the memory of another process of this user, or of one's own, by the kernel: one copy, without the other's
 * help, and without a fault where the memory is gone.
 *
 * Whether it is allowed depends on the system (ptrace_scope of Yama, seccomp, user namespaces), so who wants it tries first.
 * Threads: any.
 */
#ifndef KL_OS_PEER_MEMORY_H
#define KL_OS_PEER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Read `bytes` at `address` of process `pid` (as this process numbers it). False: errno says why, and `to` may hold a part. */
bool kl_peer_memory_read(int32_t pid, void *to, uint64_t address, size_t bytes);

#endif
