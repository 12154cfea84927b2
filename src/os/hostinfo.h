/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hostinfo.h - who this host is, and how far this process reaches in it, so that ranks can tell what they share.
 *
 * Two processes are on one host if their host hashes are equal. The name and the boot id go into it, so containers with
 * names of their own count as hosts of their own; NCCL_HOSTID replaces both. That says nothing about memory: processes that can
 * share segments have equal memory hashes, whatever they are called.
 *
 * Hashes are the first 8 bytes, little-endian, of a 16-byte BLAKE2b, equal on every machine that is told the same.
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

/** What uname says; "unknown" should that fail. */
void kl_hostinfo_name(char name[KL_HOSTNAME]);

/** The identity of this host; that of any host that was given the same `hostid`, unless it is "". */
ncclResult_t kl_hostinfo_host_hash(const char *hostid, uint64_t *hash);

/** Equal in processes of one boot and one network namespace: each can connect to abstract Unix sockets of the other. 0: not known, as without /proc. */
ncclResult_t kl_hostinfo_door_hash(uint64_t *hash);

/** Equal in those that besides have the same user, in one user namespace: they hand each other descriptors. */
ncclResult_t kl_hostinfo_memory_hash(uint64_t *hash);

#endif
