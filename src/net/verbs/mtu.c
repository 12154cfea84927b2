/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/mtu.h"

#include "base/log.h"
#include "base/parse.h"
#include "os/netif.h"
#include "os/sysfs.h"

#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

enum { LEAST = 256, GOOD = 1024 };

int kl_verbs_mtu_bytes(int mtu)
{
    return mtu >= 1 && mtu <= 5 ? LEAST >> 1 << mtu : 0;
}

/* The MTU of the network interface of a RoCE port; 0: unknown. `name` has IFNAMSIZ bytes. */
static int interface_of(const char *sysfs, char *name)
{
    const char *class = strstr(sysfs, "/class/infiniband/");
    char folder[PATH_MAX], text[32];
    int64_t mtu;

    if (!class || !kl_sysfs_text(sysfs, "gid_attrs/ndevs/0", name, IFNAMSIZ)) return 0;
    snprintf(folder, sizeof folder, "%.*s/class/net/%s", (int)(class - sysfs), sysfs, name);
    if (!kl_sysfs_text(folder, "mtu", text, sizeof text) || !kl_parse_int(text, &mtu) || mtu <= 0) return 0;
    return mtu < INT_MAX ? (int)mtu : INT_MAX;
}

void kl_verbs_mtu_warn(const char *device, int port, const char *sysfs, const struct kl_ibv_port_attr *attr)
{
    char name[IFNAMSIZ] = "";
    int mtu = kl_verbs_mtu_bytes(attr->active_mtu), most = kl_verbs_mtu_bytes(attr->max_mtu),
        interface = interface_of(sysfs, name), fits = kl_netif_roce_mtu(interface);

    if (fits > most) fits = most;
    if (fits > mtu)
        KL_WARN("NET/IB : %s port %d sends packets of %d bytes, and its interface %s (MTU %d) could carry %d: set the "
                "MTU of the interface once more, or see the settings of the NIC",
                device, port, mtu, name, interface, fits);
    else if (mtu < GOOD)
        KL_WARN("NET/IB : %s port %d sends packets of %d bytes, which makes it slow: raise the MTU of %s; packets of "
                "4096 bytes need 4200",
                device, port, mtu, *name ? name : "the port and of its switch");
}
