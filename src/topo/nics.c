/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/nics.h"

#include "base/error.h"
#include "os/netdev.h"
#include "os/netif.h"
#include "topo/sysfs.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct list {
    struct kl_nics_seen *seen;
    const char *sysfs;
    const struct kl_nics_filter *filter;
    char ib_first[KL_NET_NAME_TEXT]; /* an interface named ib* that is up; "" for none */
};

static ncclResult_t one_more(void **array, int n, size_t bytes)
{
    void *grown = realloc(*array, ((size_t)n + 1) * bytes);

    if (!grown) return KL_NOMEM("network devices");
    *array = grown;
    return ncclSuccess;
}

static ncclResult_t take(struct list *l, const struct kl_net_facts *net)
{
    struct kl_nics_seen *s = l->seen;

    KL_TRY(one_more((void **)&s->net, s->nnets, sizeof *s->net));
    s->net[s->nnets] = *net;
    s->net[s->nnets].dev = s->nnets;
    s->nnets++;
    return ncclSuccess;
}

static ncclResult_t leave(struct list *l, const char *name, bool rdma, enum kl_net_skip_why why, const char *other)
{
    struct kl_nics_seen *s = l->seen;

    KL_TRY(one_more((void **)&s->skip, s->nskips, sizeof *s->skip));
    struct kl_net_skip *skip = &s->skip[s->nskips++];
    *skip = (struct kl_net_skip){.why = why, .rdma = rdma};
    snprintf(skip->name, sizeof skip->name, "%s", name);
    snprintf(skip->other, sizeof skip->other, "%s", other);
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

    return kl_sysfs_text(dir, "sys_image_guid", text, sizeof text) ? kl_busid_parse(text) : 0; /* written alike */
}

/* "4: ACTIVE" as "ACTIVE". */
static const char *state_word(const char *state)
{
    const char *colon = strchr(state, ':');

    return !*state ? "unknown" : colon ? colon + 1 + strspn(colon + 1, " ") : state;
}

static bool is_ethernet(const char *port_dir)
{
    char text[64];

    return kl_sysfs_text(port_dir, "link_layer", text, sizeof text) && !strcmp(text, "Ethernet");
}

static ncclResult_t add_port(struct list *l, const char *dir, const char *name, int port)
{
    struct kl_net_facts net = {.port = port, .max_comms = 131072, .guid = guid_of(dir), .gdr = true};
    char path[KL_SYSFS_PATH_TEXT], state[64], rate[64];
    const char *hca = l->filter->hca ? l->filter->hca : "";

    if (snprintf(path, sizeof path, "%s/ports/%d", dir, port) >= (int)sizeof path) return ncclSuccess;
    if (!kl_sysfs_text(path, "state", state, sizeof state)) return ncclSuccess; /* no such port */
    snprintf(net.name, sizeof net.name, port > 1 ? "%.100s:%d" : "%.100s", name, port);
    if (l->filter->ib_disable) return leave(l, net.name, true, KL_NET_SKIP_IB_DISABLED, "");
    if (strncmp(state, "4:", 2) != 0) return leave(l, net.name, true, KL_NET_SKIP_DOWN, state_word(state));
    if (!kl_netif_name_matches(name, port, hca)) return leave(l, net.name, true, KL_NET_SKIP_HCA, hca);
    if (kl_sysfs_text(path, "rate", rate, sizeof rate)) net.speed_mbps = (int)(strtod(rate, NULL) * 1000);
    if (net.speed_mbps <= 0) return leave(l, net.name, true, KL_NET_SKIP_NO_SPEED, "");
    if (l->seen->nnets == KL_NICS_MAX_PORTS) return leave(l, net.name, true, KL_NET_SKIP_LIMIT, "");
    net.roce = is_ethernet(path);
    device_dir(l, "infiniband", name, net.pci_path);
    return take(l, &net);
}

static ncclResult_t add_card(struct list *l, const char *class_dir, const char *name)
{
    char dir[KL_SYSFS_PATH_TEXT];

    if (snprintf(dir, sizeof dir, "%s/%s", class_dir, name) >= (int)sizeof dir) return ncclSuccess;
    for (int port = 1; port <= 8; port++) KL_TRY(add_port(l, dir, name, port));
    return ncclSuccess;
}

/* ---- sockets ---- */

static bool names_some(const struct list *l)
{
    return kl_netif_names_some(l->filter->ifname);
}

/* The state of an interface; false: it is no directory, but a file such as bonding_masters. */
static bool read_state(const struct list *l, const char *name, char *state, size_t bytes)
{
    char dir[PATH_MAX];
    struct stat st;

    if (snprintf(dir, sizeof dir, "%s/class/net/%s", l->sysfs, name) >= (int)sizeof dir) return false;
    if (stat(dir, &st) || !S_ISDIR(st.st_mode)) return false;
    if (!kl_sysfs_text(dir, "operstate", state, bytes)) snprintf(state, bytes, "unknown");
    return true;
}

/* An interface that is up and called ib*: without NCCL_SOCKET_IFNAME it is preferred to the others. */
static ncclResult_t find_ib_first(struct list *l, const char *class_dir, const char *name)
{
    char state[32];

    (void)class_dir;
    if (*l->ib_first || names_some(l) || strncmp(name, "ib", 2) != 0) return ncclSuccess;
    if (l->filter->ifname && !kl_netif_name_matches(name, -1, l->filter->ifname)) return ncclSuccess;
    if (read_state(l, name, state, sizeof state) && !strcmp(state, "up"))
        snprintf(l->ib_first, sizeof l->ib_first, "%s", name);
    return ncclSuccess;
}

/* Is an interface refused for its kind, whether or not it is up? */
static bool refused_by_role(const struct list *l, const char *name, enum kl_net_skip_why *why,
                            char master[KL_NETDEV_TEXT])
{
    static const enum kl_net_skip_why whys[] = {[KL_NETDEV_LOOPBACK] = KL_NET_SKIP_LOOPBACK,
                                                [KL_NETDEV_CONTAINER] = KL_NET_SKIP_CONTAINER,
                                                [KL_NETDEV_BRIDGE] = KL_NET_SKIP_BRIDGE,
                                                [KL_NETDEV_TUNNEL] = KL_NET_SKIP_TUNNEL,
                                                [KL_NETDEV_PORT] = KL_NET_SKIP_PORT};
    enum kl_netdev_role role = kl_netdev_role(l->sysfs, name, master);

    if (role == KL_NETDEV_NIC || names_some(l)) return false;
    *why = whys[role];
    if (role != KL_NETDEV_PORT) *master = 0;
    return true;
}

static ncclResult_t take_interface(struct list *l, const char *name)
{
    struct kl_net_facts net = {.max_comms = 65536, .speed_mbps = kl_netdev_speed(l->sysfs, name)};

    if (!net.speed_mbps) net.speed_mbps = 10000; /* virtual devices have no speed */
    snprintf(net.name, sizeof net.name, "%.100s", name);
    device_dir(l, "net", name, net.pci_path);
    return take(l, &net);
}

static bool rdma_is_used(const struct list *l)
{
    return l->seen->nnets && l->seen->net[0].gdr;
}

static ncclResult_t add_interface(struct list *l, const char *class_dir, const char *name)
{
    const char *ifname = l->filter->ifname ? l->filter->ifname : "";
    char state[32], master[KL_NETDEV_TEXT];
    enum kl_net_skip_why why;

    (void)class_dir;
    if (!read_state(l, name, state, sizeof state)) return ncclSuccess;
    if (!kl_netif_name_matches(name, -1, ifname)) return leave(l, name, false, KL_NET_SKIP_IFNAME, ifname);
    if (refused_by_role(l, name, &why, master)) return leave(l, name, false, why, master);
    if (strcmp(state, "up") != 0 && !(names_some(l) && !strcmp(state, "unknown"))) /* tunnels report none */
        return leave(l, name, false, KL_NET_SKIP_DOWN, state);
    if (rdma_is_used(l)) return leave(l, name, false, KL_NET_SKIP_RDMA, l->seen->net[0].name);
    if (*l->ib_first && strncmp(name, "ib", 2) != 0) return leave(l, name, false, KL_NET_SKIP_IB_FIRST, l->ib_first);
    if (l->seen->nnets == KL_NICS_MAX_INTERFACES) return leave(l, name, false, KL_NET_SKIP_LIMIT, "");
    return take_interface(l, name);
}

/* ---- all ---- */

void kl_nics_seen_fini(struct kl_nics_seen *s)
{
    free(s->net);
    free(s->skip);
    *s = (struct kl_nics_seen){0};
}

ncclResult_t kl_nics_read(const char *sysfs, const struct kl_nics_filter *filter, struct kl_nics_seen *seen)
{
    struct kl_nics_seen s = {0};
    struct list l = {.seen = &s, .sysfs = sysfs ? sysfs : "/sys", .filter = filter};
    ncclResult_t rc = each(&l, "infiniband", add_card);

    if (!rc) rc = each(&l, "net", find_ib_first);
    if (!rc) rc = each(&l, "net", add_interface);
    if (rc)
        kl_nics_seen_fini(&s);
    else
        *seen = s;
    return rc;
}
