/* SPDX-License-Identifier: Apache-2.0 */
/**
 * multicast_table.h - the part of a multicast object that its processes share: its devices, and the memory bound on each.
 *
 * A memfd, which processes pass on by descriptor. Bound memory stays its process's: the table names the process and its
 * descriptor, which others open below /proc; so all must see each other there. The kernel gives up the lock of a process that
 * is killed, and the whole table with the last process that has it.
 *
 * Units:   bytes; devices are ordinals on the host.
 * Errors:  1 a device that is there, a full team, memory that overlaps; 2 the table is full; 101 no device of the team.
 * Threads: any.
 */
#ifndef KL_CUDA_MULTICAST_TABLE_H
#define KL_CUDA_MULTICAST_TABLE_H

#include "compat/cuda/core/result.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_CUDA_BINDINGS = 1024 };

/** Memory of one device, bound at an offset of the object. */
struct kl_cuda_binding {
    uint64_t id; /* never the same again; 0: no binding */
    uint64_t offset, bytes;
    int32_t ordinal;
    int32_t pid, fd; /* the process, and its descriptor of the memory's segment */
    uint64_t inode;  /* of the segment: a descriptor may be another one by now */
    uint64_t segment_offset;
};

struct kl_cuda_table;

/** A new one, for `devices` devices and `bytes` of each; or the one behind a descriptor. NULL: no memory, or none is there. */
struct kl_cuda_table *kl_cuda_table_create(unsigned devices, size_t bytes);
struct kl_cuda_table *kl_cuda_table_open(int fd);
void kl_cuda_table_close(struct kl_cuda_table *table);

int kl_cuda_table_fd(const struct kl_cuda_table *table);
unsigned kl_cuda_table_devices(const struct kl_cuda_table *table);
size_t kl_cuda_table_bytes(const struct kl_cuda_table *table);

cudaError_t kl_cuda_table_add(struct kl_cuda_table *table, int ordinal);

/** Wait until the team is complete. 401: a process that had opened the object was killed before. */
cudaError_t kl_cuda_table_wait(struct kl_cuda_table *table);

/** The place of a device in a complete team, in the order of ordinals; -1: it is not in it. */
int kl_cuda_table_member(const struct kl_cuda_table *table, int ordinal);
int kl_cuda_table_ordinal(const struct kl_cuda_table *table, unsigned member);

/** Add a binding; its id is set. */
cudaError_t kl_cuda_table_bind(struct kl_cuda_table *table, struct kl_cuda_binding *binding);

/** Remove the bindings of a device in a range. Error 1: there are none, or one is in it in part. */
cudaError_t kl_cuda_table_unbind(struct kl_cuda_table *table, int ordinal, size_t offset, size_t bytes);

/** Remove one, if it is there. */
void kl_cuda_table_drop(struct kl_cuda_table *table, uint64_t id);

/** Changes with the bindings. A few instructions. */
uint64_t kl_cuda_table_version(const struct kl_cuda_table *table);

/** All places, as they are at a version, which it returns. */
uint64_t kl_cuda_table_read(struct kl_cuda_table *table, struct kl_cuda_binding list[KL_CUDA_BINDINGS]);

/** A descriptor of the memory, opened anew; -1: its process has ended, or closed it. */
int kl_cuda_binding_open(const struct kl_cuda_binding *binding);

#endif
