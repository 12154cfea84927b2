/* SPDX-License-Identifier: Apache-2.0 */
/**
 * sysfs.h - read small files below a chosen root directory.
 *
 * The root is "/" or "/sys" on a live machine, or a recorded tree in a test or on another machine. Links are followed as
 * if the root were the root of the file system (chroot): an absolute link starts at the root, and ".." does not lead out of
 * it. Nothing outside is ever read.
 *
 * Paths:    relative to the root, with or without a leading '/'.
 * Errors:   kl_sysfs_open reports. The others are silent and leave outputs untouched: that something is missing is
 *           ordinary, and the caller knows what it means.
 * Threads:  any number may read through one kl_sysfs.
 */
#ifndef KL_OS_SYSFS_H
#define KL_OS_SYSFS_H

#include "base/cpuset.h"
#include "include/nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Bytes of the longest path, its final zero included. */
enum { KL_SYSFS_PATH = 1024 };

struct kl_sysfs {
    int root; /* a directory; -1: none */
};

#define KL_SYSFS_NONE ((struct kl_sysfs){.root = -1})

ncclResult_t kl_sysfs_open(struct kl_sysfs *fs, const char *root);

/** Works on KL_SYSFS_NONE. */
void kl_sysfs_close(struct kl_sysfs *fs);

/** The content of a file that fits in `capacity` with its final zero, without blanks and newlines at its end. */
bool kl_sysfs_read(const struct kl_sysfs *fs, const char *path, char *text, size_t capacity);

/** A file that holds one integer: decimal, or hexadecimal with 0x. */
bool kl_sysfs_read_int(const struct kl_sysfs *fs, const char *path, int64_t *value);

/** A file that holds CPUs as a list ("cpulist") or, if its name ends with "map", as a map ("cpumap"). */
bool kl_sysfs_read_cpus(const struct kl_sysfs *fs, const char *path, struct kl_cpuset *cpus);

/** The path of an existing file or directory with all links followed, relative to the root, without leading '/'. */
bool kl_sysfs_realpath(const struct kl_sysfs *fs, const char *path, char real[KL_SYSFS_PATH]);

/** Names in a directory, in strcmp order, without those that begin with a dot. */
struct kl_sysfs_names {
    size_t n;
    char **name;
};

bool kl_sysfs_list(const struct kl_sysfs *fs, const char *path, struct kl_sysfs_names *names);

/** Free; works on a zeroed struct. */
void kl_sysfs_names_free(struct kl_sysfs_names *names);

#endif
