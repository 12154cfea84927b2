/* SPDX-License-Identifier: Apache-2.0 */
/**
 * hostinfo.h - who this host is, so that ranks can tell whether they share one.
 *
 * Two processes are on one host if their host hashes are equal: then segments and kernel copies are tried. The name and
 * the boot id go into it, so containers with names of their own count as hosts of their own; NCCL_HOSTID replaces both.
 *
 * Hashes are the first 8 bytes, little-endian, of a 16-byte BLAKE2b, equal on every machine that is told the same.
 *
 * Errors:   ncclSystemError from functions that return a code.
 * Threads:  any.
 * Source:   the runtime specification, 1.7; random(4) for the boot id.
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

#endif
