/* SPDX-License-Identifier: Apache-2.0 */
#include "net/socket/device.h"

#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "bootstrap/config.h"
#include "os/netdev.h"
#include "os/sysfs.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN_MBPS = 10000 };

static const char sysfs[] = "/sys";

static struct kl_socket_devices process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool found; /* under lock, as `process` until it is set */

static unsigned vendor_of(const char *pci_path)
{
    char text[32];

    return pci_path && kl_sysfs_text(pci_path, "vendor", text, sizeof text) ? (unsigned)kl_parse_hex(text) : 0;
}

static void describe(struct kl_socket_device *d, const struct kl_netif *netif, const struct kl_socket_params *params)
{
    char path[PATH_MAX];

    *d = (struct kl_socket_device){.netif = *netif};
    if (kl_netdev_device(sysfs, netif->name, path)) d->pci_path = strdup(path); /* for the life of the process */
    d->speed_mbps = kl_socket_speed_setting(params->speed, netif->name);
    if (!d->speed_mbps) d->speed_mbps = kl_netdev_speed(sysfs, netif->name);
    if (!d->speed_mbps) d->speed_mbps = UNKNOWN_MBPS;
    d->shape = kl_socket_shape(params, vendor_of(d->pci_path), d->speed_mbps);
}

/* Leave out interfaces that only connect others, unless there are no others. */
static int without_infrastructure(struct kl_netif *netif, int n)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        if (!kl_netdev_is_infrastructure(sysfs, netif[i].name)) netif[kept++] = netif[i];
    }
    return kept ? kept : n;
}

static ncclResult_t find(void)
{
    struct kl_bootstrap_params boot;
    struct kl_netif netif[KL_NETIF_MAX];
    int n = 0;

    kl_param_load(&kl_net_param_set, &process.params);
    kl_param_load(&kl_bootstrap_param_set, &boot);
    const struct kl_netif_constraints constraints = {.names = boot.socket_ifname,
                                                     .family = boot.socket_family == KL_SOCKET_IPV4   ? AF_INET
                                                               : boot.socket_family == KL_SOCKET_IPV6 ? AF_INET6
                                                                                                      : 0};

    KL_TRY(kl_netif_choose(&constraints, netif, &n));
    if (!kl_netif_names_some(boot.socket_ifname)) n = without_infrastructure(netif, n);
    process.retry = (struct kl_retry){.count = (int)boot.retries, .sleep_ms = (int)boot.retry_sleep_ms};
    for (int i = 0; i < n; i++) {
        char text[KL_ADDRESS_TEXT];

        describe(&process.device[i], &netif[i], &process.params);
        KL_INFO(KL_INIT | KL_NET, "NET/Socket : [%d]%s:%s %d Mb/s", i, netif[i].name,
                kl_address_format(&netif[i].address, text), process.device[i].speed_mbps);
    }
    process.n = n;
    return ncclSuccess;
}

ncclResult_t kl_socket_devices_init(void)
{
    pthread_mutex_lock(&lock);
    ncclResult_t rc = found ? ncclSuccess : find();
    found = !rc;
    pthread_mutex_unlock(&lock);
    return rc;
}

const struct kl_socket_devices *kl_socket_devices(void)
{
    return &process;
}

ncclResult_t kl_socket_device_find(int i, const struct kl_socket_device **device)
{
    if (i < 0 || i >= process.n)
        return KL_FAIL(ncclInvalidArgument, "there is no NET device %d of Socket; there are %d", i, process.n);
    *device = &process.device[i];
    return ncclSuccess;
}
