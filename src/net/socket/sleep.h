/* SPDX-License-Identifier: Apache-2.0 */
/** sleep.h - what somebody who sleeps on a connection is woken by. As net.h describes it. */
#ifndef KL_NET_SOCKET_SLEEP_H
#define KL_NET_SOCKET_SLEEP_H

#include "net/socket/conn.h"

ncclResult_t kl_sleep_on(struct kl_conn *c, int *fd);

/** After work between kl_sleep_on and the sleep, which may have changed what is waited for. */
ncclResult_t kl_sleep_again(struct kl_conn *conn);

#endif
