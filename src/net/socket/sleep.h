/* SPDX-License-Identifier: Apache-2.0 */
/** sleep.h - the events that wake a sleeper on a connection, for net.h. */
#ifndef KL_NET_SOCKET_SLEEP_H
#define KL_NET_SOCKET_SLEEP_H

#include "net/socket/conn.h"

ncclResult_t kl_sleep_on(struct kl_conn *c, int *fd);

/** Call after work between kl_sleep_on and the sleep, which may have changed the events. */
ncclResult_t kl_sleep_again(struct kl_conn *conn);

#endif
