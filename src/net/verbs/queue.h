/* SPDX-License-Identifier: Apache-2.0 */
/**
 * queue.h - the queue pairs of a link: created, connected, posted to.
 *
 * Threads:  one at a time per link.
 */
#ifndef KL_NET_VERBS_QUEUE_H
#define KL_NET_VERBS_QUEUE_H

#include "net/verbs/link.h"

/** Create `n`, with rings, and receive requests; fills in l->mine but for the GID. */
ncclResult_t kl_verbs_queues_create(struct kl_verbs_link *l, int n);

/** Connect with l->theirs: ready to receive, and to send. */
ncclResult_t kl_verbs_queues_connect(struct kl_verbs_link *l);

/** Memory at this end, and where it goes. */
struct kl_verbs_write {
    const void *data;
    size_t bytes;
    uint32_t lkey, rkey;
    uint64_t to;
    int opcode;
    uint32_t imm;
    bool signals;
    bool of_gpu; /* the data: only the device reads them */
    struct kl_verbs_wr what;
};

/** Post a write. False: there is no room now, or the link has failed. */
bool kl_verbs_queue_write(struct kl_verbs_link *l, int queue, const struct kl_verbs_write *w);

/** Post receive requests again that were used up. */
void kl_verbs_queue_refill(struct kl_verbs_link *l, int queue);

#endif
