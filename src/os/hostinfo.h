/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hostinfo.h - the identity of this host, and of the namespaces that this process shares with others.
 *
 * Two processes are on one host if their host hashes are equal. The hash covers the host name and the boot id, so
 * containers with names of their own count as hosts of their own; NCCL_HOSTID replaces both. Memory is independent of
 * that: processes that can share segments have equal memory hashes.
 *
 * Hashes are the first 8 bytes, little-endian, of a 16-byte BLAKE2b, equal on every machine for equal input.
 *
 * Errors:   ncclSystemError from functions that return a code.
 * Threads:  any.
 * Source:   the runtime specification, 1.7; random(4) for the boot id; namespaces(7), unix(7).
 */
#ifndef KL_OS_HOSTINFO_H
#define KL_OS_HOSTINFO_H

#include "include/nccl.h"

#include <stdint.h>

/** Bytes of the longest host name, its final zero included. */
enum { KL_HOSTNAME = 256 };

/** The name from uname(2); "unknown" should that fail. */
void kl_hostinfo_name(char name[KL_HOSTNAME]);

/** The identity of this host; with a `hostid` other than "", it depends on that alone. */
ncclResult_t kl_hostinfo_host_hash(const char *hostid, uint64_t *hash);

/**
 * Equal in processes of one boot and one network namespace: each can connect to abstract Unix sockets of the other. 0:
 * unknown, as without /proc.
 */
ncclResult_t kl_hostinfo_door_hash(uint64_t *hash);

/** Equal in processes that also have the same user and user namespace: they can pass each other descriptors. */
ncclResult_t kl_hostinfo_memory_hash(uint64_t *hash);

#endif
