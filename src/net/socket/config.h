/* SPDX-License-Identifier: Apache-2.0 */
/**
 * config.h - parameters of the socket net.
 *
 * KOLO_NET_SPEED:  NAME:MBPS,NAME:MBPS,...  the speed of each interface named, in Mb/s; a number without a name is for
 *                  all that are not named. "eth0:25000,eth1:25000"; "100000".
 * Source:          NCCL's documentation of NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD; the runtime specification,
 *                  5.5.
 */
#ifndef KL_NET_SOCKET_CONFIG_H
#define KL_NET_SOCKET_CONFIG_H

#include "base/param.h"

enum { KL_SOCKET_MAX_THREADS = 16, KL_SOCKET_MAX_LANES = 64, KL_SOCKET_DECIDES = -2 };

struct kl_socket_params {
    int64_t threads, sockets_per_thread; /* KL_SOCKET_DECIDES: by device */
    bool crypt;
    char speed[KL_PARAM_TEXT];
};

/**
 * The speed of an interface according to KOLO_NET_SPEED; 0: not given. Warns once about a list that cannot be parsed.
 */
int kl_socket_speed_told(const char *speeds, const char *name);

/** Sockets and threads of a connection. */
struct kl_socket_shape {
    int threads; /* 0: the caller moves all data */
    int lanes;   /* sockets for large messages in addition to the first one; 0: that carries everything */
};

/** From the parameters, the PCI vendor of the device (0: none) and its speed in Mb/s. */
struct kl_socket_shape kl_socket_shape(const struct kl_socket_params *params, unsigned vendor, int speed_mbps);

#endif
