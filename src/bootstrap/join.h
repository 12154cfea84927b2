/* SPDX-License-Identifier: Apache-2.0 */
/** join.h - how every bootstrap begins, whether its ranks meet at a rendezvous or know each other. */
#ifndef KL_BOOTSTRAP_JOIN_H
#define KL_BOOTSTRAP_JOIN_H

#include "bootstrap/state.h"

/** A bootstrap on the event loop, that knows nobody. Whatever happens, kl_bootstrap_leave ends it. */
ncclResult_t kl_join_begin(const struct kl_bootstrap_config *config, struct kl_bootstrap **bootstrap);

/**
 * For one that has the cards of all ranks, and a key: it gets the name that the key has, listens on the sockets of the process, where
 * the cards say, and is there when all others are.
 */
ncclResult_t kl_join_known(struct kl_bootstrap *b);

/** Listen on the own card's addresses, as who has `name`; who calls before there is a key waits for it. */
ncclResult_t kl_join_listen(struct kl_bootstrap *b);

#endif
