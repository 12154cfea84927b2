/* SPDX-License-Identifier: Apache-2.0 */
/** sleep.h - what somebody who sleeps on a connection is woken by. As net.h describes it. */
#ifndef KL_NET_SOCKET_SLEEP_H
#define KL_NET_SOCKET_SLEEP_H

#include "net/socket/conn.h"

ncclResult_t kl_sleep_on(struct kl_conn *c, int *fd);

#endif
