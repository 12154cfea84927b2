/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stop.h - cancel waits on sockets from another thread: an eventfd that every wait polls beside its socket.
 *
 * Once raised, it stays raised. Waits notice it at once, without periodic wake-ups.
 *
 * Errors:   ncclSystemError when no descriptor is free.
 * Threads:  raise may come from any thread, any number of times, while the stop exists; init and fini from one.
 * Source:   eventfd(2).
 */
#ifndef KL_OS_STOP_H
#define KL_OS_STOP_H

#include "include/nccl.h"

struct kl_stop {
    int fd; /* readable once raised; -1: none */
};

#define KL_STOP_NONE ((struct kl_stop){.fd = -1})

ncclResult_t kl_stop_init(struct kl_stop *stop);

/** Works on KL_STOP_NONE and twice. */
void kl_stop_fini(struct kl_stop *stop);

void kl_stop_raise(const struct kl_stop *stop);

#endif
