/* SPDX-License-Identifier: Apache-2.0 */
/** zcopy_config.h - how other ranks may get at a rank's own memory, for messages (zcopy_offer.h) and collectives (peer_direct.h). */
#ifndef KL_COLL_ZCOPY_ZCOPY_CONFIG_H
#define KL_COLL_ZCOPY_ZCOPY_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** When the kernel copies: where that has been faster lately; never; wherever it can. */
enum kl_kernel_copies { KL_KERNEL_COPIES_AUTO, KL_KERNEL_COPIES_NEVER, KL_KERNEL_COPIES_ALWAYS };

/** What a rank lends, and where. */
struct kl_lending {
    bool maps; /* memory that others may map */
    enum kl_kernel_copies copies;
    bool crowded;     /* there are more ranks than cores: they take turns */
    uint64_t process; /* random, of this one */
};

/**
 * Is it a good guess that the kernel copies faster than data are staged, if each rank sends so many bytes? It is where caches keep little of what all
 * send and receive: the kernel moves it once, and a wrong guess costs less than the opposite one would.
 */
bool kl_lending_guess(int nranks, size_t bytes);

/** Would it be for half as many bytes? */
static inline bool kl_lending_is_sure(int nranks, size_t bytes)
{
    return kl_lending_guess(nranks, bytes / 2);
}

#endif
