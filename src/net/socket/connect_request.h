/* SPDX-License-Identifier: Apache-2.0 */
/**
 * connect_request.h - the sender's side of making a connection: opens all its sockets concurrently, with retries.
 *
 * Threads:  one at a time.
 */
#ifndef KL_NET_SOCKET_CONNECT_REQUEST_H
#define KL_NET_SOCKET_CONNECT_REQUEST_H

#include "net/socket/config.h"
#include "net/socket/socket_handshake.h"
#include "os/socket.h"

struct kl_conn_request;

struct kl_conn_request_plan {
    const struct kl_net_end *me;
    union kl_address address;
    struct kl_retry retry;
    bool crypt;
    int lanes; /* in addition to the first socket */
};

ncclResult_t kl_conn_request_create(const struct kl_conn_request_plan *plan, struct kl_conn_request **connect_request);

/** Make progress. ncclSuccess: all are open, and both ends agree; ncclInProgress; or the failure. */
ncclResult_t kl_conn_request_progress(struct kl_conn_request *a);

/** Socket `i`, open, to be read or taken (its `fd` is then -1). */
struct kl_socket_handshake *kl_conn_request_handshake(struct kl_conn_request *a, int i);

/** Make an epoll instance watch the sockets. */
ncclResult_t kl_conn_request_watch(struct kl_conn_request *a, int epoll);

/** NULL is fine. */
void kl_conn_request_free(struct kl_conn_request *a);

#endif
