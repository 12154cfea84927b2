/* SPDX-License-Identifier: Apache-2.0 */
/**
 * alive.h - notice that the other host has vanished while data are on the way to it: it acknowledges nothing for 30 seconds.
 *
 * TCP itself takes a quarter of an hour to give up. TCP_USER_TIMEOUT is no help: it also ends connections whose other end
 * is alive and only does not read, which is what a rank that computes does. A host that is silent while nothing is on the way
 * is noticed by keepalive (os/socket.h).
 *
 * Source:   tcp(7), TCP_INFO.
 */
#ifndef KL_NET_SOCKET_ALIVE_H
#define KL_NET_SOCKET_ALIVE_H

#include "net/socket/conn.h"

/** For a sender whose requests wait; costs a look at the clock, and once a second system calls. False: it has vanished. */
bool kl_alive(struct kl_conn *c);

#endif
