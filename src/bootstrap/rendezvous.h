/* SPDX-License-Identifier: Apache-2.0 */
/** rendezvous.h - a rank's side of the rendezvous behind an id: announce to the root, and receive the partners. */
#ifndef KL_BOOTSTRAP_RENDEZVOUS_H
#define KL_BOOTSTRAP_RENDEZVOUS_H

#include "bootstrap/root.h"
#include "bootstrap/state.h"

/** Rank 0 starts the root of an id that is only an address. `*root` is unchanged if there is none to start. */
ncclResult_t kl_rendezvous_open(struct kl_bootstrap *b, struct kl_id *id, struct kl_root **root);

/** Wait until all ranks have come. Sets the partners' address records and the key of connections between ranks. */
ncclResult_t kl_rendezvous_meet(struct kl_bootstrap *b, const struct kl_id *id);

#endif
