/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/device.h"

#include "base/error.h"
#include "base/log.h"
#include "base/parse.h"
#include "net/verbs/mtu.h"
#include "os/netif.h"
#include "os/sysfs.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct {
    bool asked;
    ncclResult_t result;
    char why[KL_ERROR_TEXT];
    struct kl_verbs_params params;
    const struct kl_verbs_library *library;
    int n;
    struct kl_verbs_device device[KL_VERBS_DEVICES];
} process;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `process` until it is asked; of events later */

const struct kl_verbs_library *kl_verbs(void)
{
    return process.library;
}

const struct kl_verbs_params *kl_verbs_settings(void)
{
    return &process.params;
}

int kl_verbs_devices(void)
{
    return process.n;
}

ncclResult_t kl_verbs_device_find(int i, struct kl_verbs_device **device)
{
    if (i < 0 || i >= process.n)
        return KL_FAIL(ncclInvalidArgument, "there is no NET device %d of IB; there are %d", i, process.n);
    *device = &process.device[i];
    return ncclSuccess;
}

/* ---- arithmetic of ports ---- */

/* Mb/s, by lanes. */
static int speed_of_lanes(const struct kl_ibv_port_attr *attr)
{
    static const int lane[] = {2500, 5000, 10000, 10000, 14000, 25000, 50000, 100000, 200000};
    static const int lanes[] = {1, 4, 8, 12, 2};
    int speed = attr->active_speed ? __builtin_ctz(attr->active_speed) : 0;
    int width = attr->active_width ? __builtin_ctz(attr->active_width) : 0;

    return lane[speed] * (width < (int)(sizeof lanes / sizeof lanes[0]) ? lanes[width] : 1);
}

/* The newest speeds have no number in the port's attributes. */
static int speed_of(struct kl_verbs_card *card, int port, const struct kl_ibv_port_attr *attr)
{
    const struct kl_verbs_library *v = process.library;
    uint64_t hundreds = 0;

    if (v->query_port_speed && !v->query_port_speed(card->context, (uint32_t)port, &hundreds) && hundreds &&
        hundreds <= INT_MAX / 100)
        return (int)hundreds * 100;
    return speed_of_lanes(attr);
}

/* ---- finding them ---- */

struct search {
    char seen[KL_ERROR_TEXT / 2]; /* those that are not used, and why */
};

static void pass_over(struct search *s, const char *name, int port, const char *why)
{
    size_t used = strlen(s->seen);

    snprintf(s->seen + used, sizeof s->seen - used, "%s%s:%d %s", used ? ", " : "", name, port, why);
}

static void name_port(struct kl_verbs_device *d, const char *name, int port)
{
    if (port > 1)
        snprintf(d->name, sizeof d->name, "%.*s:%d", KL_VERBS_NAME - 16, name, port);
    else
        snprintf(d->name, sizeof d->name, "%.*s", KL_VERBS_NAME - 1, name);
}

static void describe(struct kl_verbs_device *d, const char *card_path, int port)
{
    char link[PATH_MAX], path[PATH_MAX];

    snprintf(d->sysfs, sizeof d->sysfs, "%.*s/ports/%d", PATH_MAX - 16, card_path, port);
    snprintf(link, sizeof link, "%.*s/device", PATH_MAX - 16, card_path);
    if (*card_path && realpath(link, path)) d->pci_path = strdup(path); /* for the life of the process */
    d->port = (uint8_t)port;
    d->speed_mbps = speed_of(d->card, port, &d->attr);
    kl_verbs_counters_read(d->sysfs, &d->before);
}

static bool is_usable(struct search *s, const char *name, int port, const struct kl_ibv_port_attr *attr)
{
    if (!kl_netif_name_matches(name, port, process.params.hca))
        pass_over(s, name, port, "is not in NCCL_IB_HCA");
    else if (attr->state != KL_IBV_PORT_ACTIVE)
        pass_over(s, name, port, "is not active");
    else if (attr->link_layer != KL_IBV_LINK_INFINIBAND && attr->link_layer != KL_IBV_LINK_ETHERNET)
        pass_over(s, name, port, "is neither InfiniBand nor Ethernet");
    else
        return true;
    return false;
}

static void take_port(struct search *s, struct kl_verbs_card *card, int port)
{
    const struct kl_ibv_device *of = card->context->device;
    struct kl_ibv_port_attr attr;

    memset(&attr, 0, sizeof attr);
    if (process.n == KL_VERBS_DEVICES || process.library->query_port(card->context, (uint8_t)port, &attr)) return;
    if (!is_usable(s, of->name, port, &attr)) return;
    struct kl_verbs_device *d = &process.device[process.n++];
    *d = (struct kl_verbs_device){.card = card, .attr = attr};
    name_port(d, of->name, port);
    describe(d, of->ibdev_path, port);
}

static void set_nonblocking(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0) fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* NULL: it cannot be opened; `why` says so. */
static struct kl_verbs_card *open_card(struct kl_ibv_device *of)
{
    const struct kl_verbs_library *v = process.library;
    struct kl_verbs_card *card = calloc(1, sizeof *card);

    if (card) card->context = v->open_device(of);
    if (card && card->context) card->pd = v->alloc_pd(card->context);
    if (card && card->pd && !v->query_device(card->context, &card->attr)) {
        set_nonblocking(card->context->async_fd);
        return card;
    }
    if (card && card->pd) v->dealloc_pd(card->pd);
    if (card && card->context) v->close_device(card->context);
    free(card);
    return NULL;
}

static void close_card(struct kl_verbs_card *card)
{
    process.library->dealloc_pd(card->pd);
    process.library->close_device(card->context);
    free(card);
}

static void take_card(struct search *s, struct kl_ibv_device *of)
{
    int before = process.n;
    struct kl_verbs_card *card = open_card(of);

    if (!card) {
        pass_over(s, of->name, 1, "cannot be opened");
        return;
    }
    for (int port = 1; port <= card->attr.phys_port_cnt; port++) take_port(s, card, port);
    if (process.n == before) close_card(card);
}

static int by_place(const void *a, const void *b)
{
    const struct kl_verbs_device *x = a, *y = b;
    int order = strcmp(x->pci_path ? x->pci_path : "", y->pci_path ? y->pci_path : "");

    return order ? order : strcmp(x->name, y->name);
}

static void log_devices(void)
{
    for (int i = 0; i < process.n; i++) {
        const struct kl_verbs_device *d = &process.device[i];
        KL_INFO(KL_INIT | KL_NET, "NET/IB : [%d]%s:%d/%s %d Mb/s, MTU %d", i, d->card->context->device->name, d->port,
                d->attr.link_layer == KL_IBV_LINK_INFINIBAND ? "IB" : "RoCE", d->speed_mbps,
                kl_verbs_mtu_bytes(d->attr.active_mtu));
        kl_verbs_mtu_warn(d->card->context->device->name, d->port, d->sysfs, &d->attr);
    }
}

static ncclResult_t find(void)
{
    struct search s = {.seen = ""};
    int n = 0;

    kl_param_load(&kl_verbs_param_set, &process.params);
    if (process.params.disable) return KL_FAIL(ncclSystemError, "InfiniBand and RoCE are off: NCCL_IB_DISABLE=1");
    KL_TRY(kl_verbs_library_load(process.params.library, &process.library));
    struct kl_ibv_device **list = process.library->get_device_list(&n);
    if (!list) return KL_FAIL_ERRNO("the list of RDMA devices cannot be read; see /dev/infiniband");
    for (int i = 0; i < n; i++) take_card(&s, list[i]);
    process.library->free_device_list(list);
    if (!n)
        return KL_FAIL(ncclSystemError, "there is no RDMA device; ibv_devinfo lists them, and containers need "
                                        "/dev/infiniband");
    if (!process.n) return KL_FAIL(ncclSystemError, "no RDMA port can be used: %s", s.seen);
    qsort(process.device, (size_t)process.n, sizeof process.device[0], by_place);
    log_devices();
    return ncclSuccess;
}

ncclResult_t kl_verbs_devices_init(void)
{
    pthread_mutex_lock(&lock);
    if (!process.asked) {
        process.result = find();
        process.asked = true;
        if (process.result) snprintf(process.why, sizeof process.why, "%s", kl_error_text());
    }
    ncclResult_t rc = process.result;
    pthread_mutex_unlock(&lock);
    if (rc) kl_error_adopt(process.why);
    return rc;
}

/* ---- GIDs ---- */

/* Unused entries of the table cannot be read, and containers may have no table. */
static int version_of(const struct kl_verbs_device *d, int index)
{
    char name[48], text[32];

    snprintf(name, sizeof name, "gid_attrs/types/%d", index);
    if (!kl_sysfs_text(d->sysfs, name, text, sizeof text)) return 0;
    return strstr(text, "RoCE v2") ? 2 : strstr(text, "RoCE v1") ? 1 : 0;
}

/* The port's table as it is now: entries that are not zero. Returns how many. */
static int read_gids(const struct kl_verbs_device *d, struct kl_verbs_gid gids[KL_VERBS_GIDS])
{
    int n = 0, entries = d->attr.gid_tbl_len < KL_VERBS_GIDS ? d->attr.gid_tbl_len : KL_VERBS_GIDS;

    for (int i = 0; i < entries; i++) {
        struct kl_verbs_gid *g = &gids[n];
        if (process.library->query_gid(d->card->context, d->port, i, &g->gid) || kl_verbs_gid_is_zero(&g->gid))
            continue;
        g->index = i;
        g->version = d->attr.link_layer == KL_IBV_LINK_ETHERNET ? version_of(d, i) : 0;
        n++;
    }
    return n;
}

static const char *list_gids(const struct kl_verbs_gid *gids, int n, char *text, size_t bytes)
{
    size_t used = 0;
    char one[KL_VERBS_GID_TEXT];

    *text = 0;
    for (int i = 0; i < n && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", kl_verbs_gid_format(&gids[i], one));
    return text;
}

static ncclResult_t wanted_gid(const struct kl_verbs_device *d, const struct kl_verbs_gid *gids, int n, int index,
                               struct kl_verbs_gid *gid)
{
    char text[512];

    for (int i = 0; i < n; i++) {
        if (gids[i].index != index) continue;
        *gid = gids[i];
        return ncclSuccess;
    }
    return KL_FAIL(ncclInvalidUsage, "NCCL_IB_GID_INDEX=%d: %s port %d has no GID there, but %s", index, d->name,
                   d->port, n ? list_gids(gids, n, text, sizeof text) : "none at all");
}

ncclResult_t kl_verbs_device_gid(const struct kl_verbs_device *d, const union kl_address *near,
                                 const union kl_address *far, struct kl_verbs_gid *gid)
{
    const struct kl_verbs_params *p = &process.params;
    const struct kl_verbs_gid_constraints constraints = {
        .version = (int)p->roce_version, .family = p->family, .near = *near, .far = *far};
    struct kl_verbs_gid gids[KL_VERBS_GIDS];
    int n = read_gids(d, gids);

    if (d->attr.link_layer == KL_IBV_LINK_INFINIBAND) return wanted_gid(d, gids, n, 0, gid);
    if (p->gid_index >= 0) return wanted_gid(d, gids, n, (int)p->gid_index, gid);
    const struct kl_verbs_gid *best = kl_verbs_gid_choose(gids, n, &constraints);
    if (!best)
        return KL_FAIL(ncclSystemError, "%s port %d has no GID; give its network interface an address (ip addr)",
                       d->name, d->port);
    *gid = *best;
    return ncclSuccess;
}

/* ---- events ---- */

static bool ends_card(int event)
{
    return event <= KL_IBV_EVENT_QP_ACCESS_ERR || event == KL_IBV_EVENT_DEVICE_FATAL;
}

static void note(const struct kl_verbs_device *d, int event)
{
    const char *text = process.library->event_type_str(event);

    if (event == KL_IBV_EVENT_DEVICE_FATAL || event == KL_IBV_EVENT_CQ_ERR)
        kl_store_release(&d->card->fatal, 1 + event);
    if (ends_card(event) || event == KL_IBV_EVENT_PORT_ERR || event == KL_IBV_EVENT_GID_CHANGE)
        KL_WARN("NET/IB : %s reports: %s", d->name, text);
    else
        KL_INFO(KL_NET, "NET/IB : %s reports: %s", d->name, text);
}

void kl_verbs_device_events(const struct kl_verbs_device *d)
{
    struct kl_ibv_async_event event;

    pthread_mutex_lock(&lock);
    while (!process.library->get_async_event(d->card->context, &event)) {
        note(d, event.event_type);
        process.library->ack_async_event(&event);
    }
    pthread_mutex_unlock(&lock);
}

/* ---- memory ---- */

const char *kl_verbs_memlock_hint(int err, char *text, size_t bytes)
{
    struct rlimit limit;

    *text = 0;
    if ((err != ENOMEM && err != EAGAIN && err != EPERM) || getrlimit(RLIMIT_MEMLOCK, &limit)) return text;
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, bytes, "; the limit of locked memory is none, so the device itself has run out");
    else
        snprintf(text, bytes,
                 "; the limit of locked memory is %llu KiB: raise it (`ulimit -l unlimited`, memlock in "
                 "limits.conf, docker --ulimit memlock=-1)",
                 (unsigned long long)limit.rlim_cur / 1024);
    return text;
}
