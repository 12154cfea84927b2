/* SPDX-License-Identifier: Apache-2.0 */
/**
 * cancel.h - cancel waits on sockets from another thread: an eventfd that every wait polls beside its socket.
 *
 * Once raised, it stays raised. Waits notice it at once, without periodic wake-ups.
 *
 * Errors:   ncclSystemError when no descriptor is free.
 * Threads:  raise may come from any thread, any number of times, between init and fini; init and fini from one.
 * Source:   eventfd(2).
 */
#ifndef KL_OS_CANCEL_H
#define KL_OS_CANCEL_H

#include "include/nccl.h"

struct kl_cancel {
    int fd; /* readable once raised; -1: none */
};

#define KL_CANCEL_NONE ((struct kl_cancel){.fd = -1})

ncclResult_t kl_cancel_init(struct kl_cancel *cancel);

/** Works on KL_CANCEL_NONE and twice. */
void kl_cancel_fini(struct kl_cancel *cancel);

void kl_cancel_raise(const struct kl_cancel *cancel);

#endif
