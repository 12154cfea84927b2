/* SPDX-License-Identifier: Apache-2.0 */
/** join.h - common first steps of every bootstrap, with or without a rendezvous. */
#ifndef KL_BOOTSTRAP_JOIN_H
#define KL_BOOTSTRAP_JOIN_H

#include "bootstrap/state.h"

/** Create a bootstrap on the event loop, without contacts. In all cases kl_bootstrap_leave ends it. */
ncclResult_t kl_join_begin(const struct kl_bootstrap_config *config, struct kl_bootstrap **bootstrap);

/**
 * For a bootstrap that has the address records of all ranks, and a key: derives the name from the key, listens on the
 * process's sockets at the recorded addresses, and waits until all ranks have joined.
 */
ncclResult_t kl_join_known(struct kl_bootstrap *b);

/** Listen on the addresses of the own record, under `name`; callers before there is a key wait for it. */
ncclResult_t kl_join_listen(struct kl_bootstrap *b);

#endif
