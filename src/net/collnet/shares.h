/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shares.h - assign the elements of an all-reduce to the members that add them up: pure arithmetic, the same at all
 * members.
 *
 * Large data is divided among all members: each receives its share from the others, adds up, and sends the result to
 * all, so that every member sends and receives 2 (n-1)/n of the data, which is the minimum. Shares have at least a few
 * KiB: small data is added up by one member, with 2 (n-1) messages instead of 2 n (n-1). The member changes with every
 * request and between groups, so that no host does all the work.
 */
#ifndef KL_NET_COLLNET_SHARES_H
#define KL_NET_COLLNET_SHARES_H

#include <stddef.h>
#include <stdint.h>

enum { KL_SHARE_LEAST = 4096, KL_SHARE_GRAIN = 64 }; /* bytes */

struct kl_shares {
    size_t count, each; /* elements: in total, and per share except perhaps the last */
    int n, first;       /* members; the one with the first share */
};

struct kl_share_range {
    size_t first, count; /* elements */
};

/** `turn`: any number that is equal at all members. */
struct kl_shares kl_shares_of(size_t count, size_t elem_bytes, int n, uint64_t turn);

struct kl_share_range kl_share_of(const struct kl_shares *shares, int member);

#endif
