/* SPDX-License-Identifier: Apache-2.0 */
/**
 * alive.h - detect that the other host has vanished while data is in flight: no acknowledgement for 30 seconds.
 *
 * TCP itself takes a quarter of an hour to give up. TCP_USER_TIMEOUT is unsuitable: it also ends connections whose
 * other end is alive but does not read, as a rank that computes. Without data in flight, keepalive detects it
 * (os/socket.h).
 *
 * Source:   tcp(7), TCP_INFO.
 */
#ifndef KL_NET_SOCKET_ALIVE_H
#define KL_NET_SOCKET_ALIVE_H

#include "net/socket/conn.h"

/**
 * For a sender with waiting requests; reads the clock, and once a second makes system calls. False: the host has
 * vanished.
 */
bool kl_alive(struct kl_conn *c);

#endif
