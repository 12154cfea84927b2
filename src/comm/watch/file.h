/* SPDX-License-Identifier: Apache-2.0 */
/**
 * file.h - files that communicators write for programs: their names, and how they are written.
 *
 * Names are patterns: %h is the host, %p for the process, %r for the rank, %c for the communicator, %% for %. One
 * without %r gets ".%r" at its end, so that ranks don't overwrite each other.
 *
 * A file appears as a whole or not at all: it is written beside its place and then renamed, over an older one.
 *
 * Threads: any. Of two that write the same file at once, the last one counts.
 */
#ifndef KL_COMM_WATCH_FILE_H
#define KL_COMM_WATCH_FILE_H

#include "include/nccl.h"

#include <stdint.h>
#include <stdio.h>

#define KL_WATCH_PATH 4096

/** The owner of a file. */
struct kl_watch_name {
    const char *host;
    int rank;
    uint64_t communicator;
};

/** Too long: ncclInvalidArgument. */
ncclResult_t kl_watch_file_name(const char *pattern, const struct kl_watch_name *whose, char path[KL_WATCH_PATH]);

/** Let `fill` write the file. ncclSystemError names the file. */
ncclResult_t kl_watch_file_write(const char *path, void (*fill)(void *ctx, FILE *to), void *ctx);

#endif
