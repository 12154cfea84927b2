/* SPDX-License-Identifier: Apache-2.0 */
/** zcopy_config.h - how other ranks may get at a rank's own memory, for messages (zcopy_offer.h) and collectives (peer_direct.h). */
#ifndef KL_COLL_ZCOPY_ZCOPY_CONFIG_H
#define KL_COLL_ZCOPY_ZCOPY_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

/** When the kernel copies: where the table of the selector says so; never; wherever it can. */
enum kl_kernel_copies { KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_NEVER, KL_KERNEL_COPIES_ALWAYS };

/** Ways by which others reach a rank's memory. */
struct kl_zcopy_config {
    bool maps;        /* memory that others may map, */
    bool reads;       /* or that the kernel copies for them */
    uint64_t process; /* random, of this one */
};

#endif
