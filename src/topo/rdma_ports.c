/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/rdma_ports.h"

#include "base/parse.h"
#include "os/netif.h"
#include "os/sysfs.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { MAX_PORTS_OF_CARD = 8 };

static int number(const char *dir, const char *name)
{
    char text[32];
    int64_t value;

    return kl_sysfs_text(dir, name, text, sizeof text) && kl_parse_int(text, &value) && value > 0 && value < INT_MAX
               ? (int)value
               : 0;
}

/* "16.0 GT/s PCIe" and a width: Gb/s of payload after 8b/10b or 128b/130b. */
static double pci_gbps(const char *card)
{
    char text[64];
    int width = number(card, "device/current_link_width");

    if (!width || !kl_sysfs_text(card, "device/current_link_speed", text, sizeof text)) return 0;
    double rate = strtod(text, NULL);
    return rate * width * (rate < 8 ? 0.8 : 128.0 / 130);
}

/* ---- GIDs ---- */

static bool read_gid(const char *dir, int i, struct kl_rdma_gid *g)
{
    static const unsigned char zero[16];
    unsigned char raw[16];
    char name[48], text[KL_RDMA_TEXT];

    snprintf(name, sizeof name, "gids/%d", i);
    if (!kl_sysfs_text(dir, name, text, sizeof text) || inet_pton(AF_INET6, text, raw) != 1) return false;
    if (!memcmp(raw, zero, sizeof raw)) return false;
    g->index = i;
    inet_ntop(AF_INET6, raw, g->text, sizeof g->text);
    snprintf(name, sizeof name, "gid_attrs/types/%d", i);
    if (!kl_sysfs_text(dir, name, g->type, sizeof g->type)) *g->type = 0;
    return true;
}

static void read_gids(const char *dir, struct kl_rdma_port *p)
{
    enum { TABLE = 256 };

    for (int i = 0; i < TABLE && p->ngids < KL_RDMA_GIDS; i++)
        if (read_gid(dir, i, &p->gid[p->ngids])) p->ngids++;
}

/* ---- ports ---- */

/* RoCE takes the largest MTU of InfiniBand that fits behind its headers. */
static void read_mtu(const char *sysfs, const char *dir, struct kl_rdma_port *p)
{
    char path[PATH_MAX];

    if (!kl_sysfs_text(dir, "gid_attrs/ndevs/0", p->netdev, sizeof p->netdev)) return;
    snprintf(path, sizeof path, "%s/class/net/%s", sysfs, p->netdev);
    p->netdev_mtu = number(path, "mtu");
    p->mtu = kl_netif_roce_mtu(p->netdev_mtu);
}

static bool read_port(const char *sysfs, const char *card, const char *name, int port, struct kl_rdma_port *p)
{
    char dir[PATH_MAX], state[KL_RDMA_TEXT];

    snprintf(dir, sizeof dir, "%.*s/ports/%d", PATH_MAX - 16, card, port);
    if (!kl_sysfs_text(dir, "state", state, sizeof state)) return false;
    *p = (struct kl_rdma_port){.port = port, .active = strstr(state, "ACTIVE") != NULL};
    snprintf(p->name, sizeof p->name, "%.*s", KL_RDMA_TEXT - 1, name);
    if (!kl_sysfs_text(dir, "link_layer", p->layer, sizeof p->layer)) *p->layer = 0;
    if (kl_sysfs_text(dir, "rate", p->rate, sizeof p->rate)) p->link_gbps = strtod(p->rate, NULL);
    p->pci_gbps = pci_gbps(card);
    read_mtu(sysfs, dir, p);
    read_gids(dir, p);
    return true;
}

int kl_rdma_ports_read(const char *sysfs, struct kl_rdma_port *ports)
{
    struct dirent **entry = NULL;
    char dir[PATH_MAX], card[PATH_MAX];
    int n = 0;

    if (!sysfs) sysfs = "/sys";
    snprintf(dir, sizeof dir, "%.*s/class/infiniband", PATH_MAX - 32, sysfs);
    int cards = scandir(dir, &entry, NULL, alphasort);
    for (int i = 0; i < cards; i++) {
        const char *name = entry[i]->d_name;
        snprintf(card, sizeof card, "%.*s/%s", PATH_MAX - 300, dir, name);
        for (int port = 1; *name != '.' && port <= MAX_PORTS_OF_CARD && n < KL_RDMA_PORTS; port++)
            if (read_port(sysfs, card, name, port, &ports[n])) n++;
        free(entry[i]);
    }
    free(entry);
    return n;
}

uint64_t kl_rdma_memlock_kib(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    return limit.rlim_cur / 1024;
}
