/* SPDX-License-Identifier: Apache-2.0 */
/** request.h - the requests of a group: setting them up, and making progress, for collnet.h. */
#ifndef KL_NET_COLLNET_REQUEST_H
#define KL_NET_COLLNET_REQUEST_H

#include "net/collnet/heads.h"

ncclResult_t kl_heads_allreduce(struct kl_heads *g, const void *send, void *recv, size_t count, struct kl_collnet_op op,
                                struct kl_heads_request **request);
ncclResult_t kl_heads_allgather(struct kl_heads *g, const void *send, const struct kl_collnet_part *recv, size_t bytes,
                                struct kl_heads_request **request);
ncclResult_t kl_heads_reducescatter(struct kl_heads *g, const struct kl_collnet_part *send, void *recv, size_t count,
                                    struct kl_collnet_op op, struct kl_heads_request **request);

/** Make progress on all requests, and test this one. *done: it has been freed. */
ncclResult_t kl_heads_test(struct kl_heads_request *r, bool *done);

/** The rank that the oldest request waits for; -1: none. */
int kl_heads_waits_for(const struct kl_heads *g);

#endif
