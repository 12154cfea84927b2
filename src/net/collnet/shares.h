/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shares.h - which member of a group adds up which elements of an all-reduce: pure arithmetic, the same at all members.
 *
 * Large data are divided among all members: each receives its share from the others, adds up, and sends the result to all, so
 * that every member sends and receives 2 (n-1)/n of the data, which is the least there is. A share is no smaller than a few KiB:
 * of little data one member adds up everything, with 2 (n-1) messages instead of 2 n (n-1) and as many on the way of each
 * byte. It is another one for every request, and every group begins with another one, so that no host is the one that does it all.
 */
#ifndef KL_NET_COLLNET_SHARES_H
#define KL_NET_COLLNET_SHARES_H

#include <stddef.h>
#include <stdint.h>

enum { KL_SHARE_LEAST = 4096, KL_SHARE_GRAIN = 64 }; /* bytes */

struct kl_shares {
    size_t count, each; /* elements: of all, of a share but perhaps the last */
    int n, first;       /* members; who has the first share */
};

struct kl_share_range {
    size_t first, count; /* elements */
};

/** `turn`: any number that is the same at all members. */
struct kl_shares kl_shares_of(size_t count, size_t elem_bytes, int n, uint64_t turn);

struct kl_share_range kl_share_of(const struct kl_shares *shares, int member);

#endif
