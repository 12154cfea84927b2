/* SPDX-License-Identifier: Apache-2.0 */
/**
 * establish.h - the making of RDMA connections: over TCP connections whose ends have proved that they belong to the
 * communicator, they exchange their parameters (record.h).
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_VERBS_ESTABLISH_H
#define KL_NET_VERBS_ESTABLISH_H

#include "net/verbs/link.h"

struct kl_verbs_listener;

ncclResult_t kl_verbs_listen(struct kl_verbs_device *d, const struct kl_net_end *me, struct kl_net_handle *handle,
                             struct kl_verbs_listener **listener);
ncclResult_t kl_verbs_listener_sleep_on(struct kl_verbs_listener *listener, int *fd);
void kl_verbs_listener_free(struct kl_verbs_listener *listener);

/** As accept of net.h. */
ncclResult_t kl_verbs_accept(struct kl_verbs_listener *listener, const struct kl_net_end *me,
                             struct kl_verbs_end **end);

/** As connect of net.h: `*end` has a connect request until it has a link. */
ncclResult_t kl_verbs_connect(struct kl_verbs_device *d, const struct kl_net_end *me,
                              const struct kl_net_handle *handle, struct kl_verbs_end **end);
ncclResult_t kl_verbs_conn_request_sleep_on(struct kl_verbs_conn_request *a, int *fd);
void kl_verbs_conn_request_free(struct kl_verbs_conn_request *a);

#endif
