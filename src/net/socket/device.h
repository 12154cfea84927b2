/* SPDX-License-Identifier: Apache-2.0 */
/**
 * device.h - the interfaces that the socket net uses, chosen once per process, with their settings.
 *
 * The choice of os/netif.h; without a user's choice, bridges, tunnels and ends of containers are left out as long as
 * another remains.
 *
 * Threads:  any.
 */
#ifndef KL_NET_SOCKET_DEVICE_H
#define KL_NET_SOCKET_DEVICE_H

#include "net/net.h"
#include "net/socket/config.h"
#include "os/netif.h"
#include "os/socket.h"

struct kl_socket_device {
    struct kl_netif netif;
    const char *pci_path; /* NULL: virtual */
    int speed_mbps;
    struct kl_socket_shape shape;
};

struct kl_socket_devices {
    struct kl_socket_params params;
    struct kl_retry retry;
    int n;
    struct kl_socket_device device[KL_NETIF_MAX];
};

/** Find them, at the first call; later calls return the same result. */
ncclResult_t kl_socket_devices_init(void);

/** After a successful init, constant. */
const struct kl_socket_devices *kl_socket_devices(void);

/** Device `i`, or ncclInvalidArgument. */
ncclResult_t kl_socket_device_find(int i, const struct kl_socket_device **device);

#endif
