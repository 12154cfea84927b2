/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/nics.h"

#include "base/error.h"
#include "os/netdev.h"
#include "topo/sysfs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct kl_net_facts *net;
    int n, max;
    const char *sysfs;
    bool plumbing; /* interfaces that join or carry others, instead of the rest */
};

static ncclResult_t append(struct list *l, const struct kl_net_facts *net)
{
    if (l->n == l->max) {
        int max = l->max ? 2 * l->max : 8;
        struct kl_net_facts *grown = realloc(l->net, (size_t)max * sizeof *grown);

        if (!grown) return KL_NOMEM("network devices");
        l->net = grown;
        l->max = max;
    }
    l->net[l->n] = *net;
    l->net[l->n].dev = l->n;
    l->n++;
    return ncclSuccess;
}

/* Directory of the device behind `class`/`name`, written as on the live machine; "" if there is none. */
static void device_dir(const struct list *l, const char *class, const char *name, char out[KL_SYSFS_PATH_TEXT])
{
    char path[PATH_MAX], real[PATH_MAX], root[PATH_MAX];
    int used = snprintf(path, sizeof path, "%s/class/%s/%s/device", l->sysfs, class, name);

    *out = 0;
    if (used >= (int)sizeof path || !realpath(path, real) || !realpath(l->sysfs, root)) return;
    size_t n = strlen(root);
    if (strncmp(real, root, n) != 0 || snprintf(path, sizeof path, "/sys%s", real + n) >= KL_SYSFS_PATH_TEXT) return;
    memcpy(out, path, strlen(path) + 1);
}

/* Visit the entries of <sysfs>/class/<class> in the order of their names. */
static ncclResult_t each(struct list *l, const char *class,
                         ncclResult_t (*visit)(struct list *, const char *dir, const char *name))
{
    char dir[KL_SYSFS_PATH_TEXT];
    struct dirent **entry;
    ncclResult_t rc = ncclSuccess;

    if (snprintf(dir, sizeof dir, "%s/class/%s", l->sysfs, class) >= (int)sizeof dir) return ncclSuccess;
    int n = scandir(dir, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (!rc && entry[i]->d_name[0] != '.') rc = visit(l, dir, entry[i]->d_name);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return rc;
}

/* ---- InfiniBand ---- */

static uint64_t guid_of(const char *dir)
{
    char text[64];
    uint64_t guid = 0;

    if (!kl_sysfs_text(dir, "sys_image_guid", text, sizeof text)) return 0;
    for (const char *c = text; *c; c++)
        if (*c != ':') guid = guid << 4 | (kl_busid_parse((char[]){*c, 0}) & 0xf);
    return guid;
}

static ncclResult_t add_port(struct list *l, const char *dir, const char *name, int port)
{
    struct kl_net_facts net = {.port = port, .max_comms = 131072, .guid = guid_of(dir), .gdr = true};
    char path[KL_SYSFS_PATH_TEXT], text[64];

    if (snprintf(path, sizeof path, "%s/ports/%d", dir, port) >= (int)sizeof path) return ncclSuccess;
    if (!kl_sysfs_text(path, "state", text, sizeof text) || strncmp(text, "4:", 2) != 0)
        return ncclSuccess; /* not active */
    if (kl_sysfs_text(path, "rate", text, sizeof text)) net.speed_mbps = (int)(strtod(text, NULL) * 1000);
    snprintf(net.name, sizeof net.name, port > 1 ? "%.100s:%d" : "%.100s", name, port);
    device_dir(l, "infiniband", name, net.pci_path);
    return append(l, &net);
}

static ncclResult_t add_card(struct list *l, const char *class_dir, const char *name)
{
    char dir[KL_SYSFS_PATH_TEXT];

    if (snprintf(dir, sizeof dir, "%s/%s", class_dir, name) >= (int)sizeof dir) return ncclSuccess;
    for (int port = 1; port <= 8; port++) KL_TRY(add_port(l, dir, name, port));
    return ncclSuccess;
}

/* ---- sockets ---- */

static ncclResult_t add_interface(struct list *l, const char *class_dir, const char *name)
{
    struct kl_net_facts net = {.max_comms = 65536};
    char dir[KL_SYSFS_PATH_TEXT], text[64];

    if (!strcmp(name, "lo") || kl_netdev_is_plumbing(l->sysfs, name) != l->plumbing) return ncclSuccess;
    if (snprintf(dir, sizeof dir, "%s/%s", class_dir, name) >= (int)sizeof dir) return ncclSuccess;
    if (!kl_sysfs_text(dir, "operstate", text, sizeof text) || strcmp(text, "up") != 0) return ncclSuccess;
    net.speed_mbps = kl_netdev_speed(l->sysfs, name);
    if (!net.speed_mbps) net.speed_mbps = 10000; /* virtual devices do not tell */
    snprintf(net.name, sizeof net.name, "%.100s", name);
    device_dir(l, "net", name, net.pci_path);
    return append(l, &net);
}

ncclResult_t kl_nics_read(const char *sysfs, struct kl_net_facts **net, int *n)
{
    struct list l = {.sysfs = sysfs ? sysfs : "/sys"};
    ncclResult_t rc = each(&l, "infiniband", add_card);

    if (!rc && !l.n) rc = each(&l, "net", add_interface);
    l.plumbing = true; /* better than nothing */
    if (!rc && !l.n) rc = each(&l, "net", add_interface);
    if (rc) {
        free(l.net);
        return rc;
    }
    *net = l.net;
    *n = l.n;
    return ncclSuccess;
}
