/* SPDX-License-Identifier: Apache-2.0 */
/** rendezvous.h - a rank's side of the rendezvous behind an id: it announces itself to the root, and hears of its partners. */
#ifndef KL_BOOTSTRAP_RENDEZVOUS_H
#define KL_BOOTSTRAP_RENDEZVOUS_H

#include "bootstrap/root.h"
#include "bootstrap/state.h"

/** Rank 0 starts the root of an id that is only an address. `*root` is left alone where there is nothing to start. */
ncclResult_t kl_rendezvous_open(struct kl_bootstrap *b, struct kl_id *id, struct kl_root **root);

/** Wait until all ranks have come. The partners' cards and the key of connections between ranks are known then. */
ncclResult_t kl_rendezvous_meet(struct kl_bootstrap *b, const struct kl_id *id);

#endif
