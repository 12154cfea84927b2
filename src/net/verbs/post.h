/* SPDX-License-Identifier: Apache-2.0 */
/** post.h - requests of a direction, as isend, irecv and test of net.h, and its end. */
#ifndef KL_NET_VERBS_POST_H
#define KL_NET_VERBS_POST_H

#include "net/verbs/link.h"

ncclResult_t kl_verbs_isend(struct kl_verbs_end *end, const void *data, size_t bytes, int tag, void *mr,
                            void **request);
ncclResult_t kl_verbs_irecv(struct kl_verbs_end *end, int n, const struct kl_net_recv *recvs, void **request);
ncclResult_t kl_verbs_test(struct kl_verbs_request *request, bool *done, size_t *sizes);

/** Fail because of an error elsewhere, which was reported. */
void kl_verbs_give_up(struct kl_verbs_link *l);

/** The link goes with its last direction. NULL is fine. */
void kl_verbs_end_free(struct kl_verbs_end *end);

#endif
