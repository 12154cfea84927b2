/* SPDX-License-Identifier: Apache-2.0 */
/**
 * tcp.c - a net plugin in one file: one TCP connection for each direction of each pair, over the loopback interface or any other.
 *
 *     cc -shared -fPIC -o libnccl-net-tcp.so tcp.c                 (-DNET_VERSION=6 ... for an older ABI)
 *     NCCL_NET_PLUGIN=./libnccl-net-tcp.so kolo run ...
 *
 * A receive of several messages takes them by their tags. EXAMPLE_NET_DEVICES is the number of devices (1): ports of one card, whose path in sysfs is EXAMPLE_NET_PCI. They may be merged (v9 and
 * later), which changes their speed in the topology only. EXAMPLE_NET_ADDRESS is the IPv4 address of this host (127.0.0.1). A message is its size and tag, 16 bytes, and its data. Nothing blocks:
 * isend and irecv queue a request, and test moves the oldest one that is not done.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include "net_abi.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 32, RECVS = 8, SPEED_MBPS = 10000, MOST_DEVICES = 16 };

struct head {
    uint64_t size;
    int64_t tag;
};

/* A message; a send has one. */
struct part {
    char *data;
    uint64_t posted, size; /* bytes: of the buffer, and of the message */
    int tag, done;
};

struct request {
    struct comm *comm;
    int used, done;
    struct part part[RECVS];
    int n, ndone, now; /* parts; `now` is under way */
    struct head head;
    uint64_t moved; /* of the head and the data together */
    void *event;    /* of a profiler, from post to done; NULL: none */
};

struct comm {
    int fd, sends, error;
    struct request request[REQUESTS];
    unsigned oldest, newest; /* not done: [oldest, newest), modulo REQUESTS */
};

struct listener {
    int fd;
};

/* ---- events for a profiler ---- */

#if NET_VERSION >= 10
enum { EVENT_START, EVENT_STOP, EVENT_ID = 1000 << 16 | 1 };

static net_profile *profiler;

static void begin_event(struct request *r, void *parent)
{
    if (r && profiler && parent) (void)profiler(&r->event, EVENT_START, parent, EVENT_ID, r);
}

static void end_event(struct request *r)
{
    if (r->event) (void)profiler(&r->event, EVENT_STOP, NULL, EVENT_ID, r);
}
#else
static void end_event(const struct request *r)
{
    (void)r; /* these versions have none */
}
#endif

/* ---- devices ---- */

static int init(NET_INIT_ARGS)
{
#if NET_VERSION >= 11
    *context = NULL;
    (void)comm, (void)config;
#endif
#if NET_VERSION >= 10
    profiler = profile;
#endif
    (void)log;
    return NET_OK;
}

static struct device {
    char name[64];
    int n, member[8]; /* of a virtual one; 0: a physical one */
} device_of[MOST_DEVICES];
static int ndevices;

static int devices(int *n)
{
    const char *wanted = getenv("EXAMPLE_NET_DEVICES");
    const long asked = wanted ? strtol(wanted, NULL, 10) : 1;
    const int physical = asked > 0 && asked < MOST_DEVICES ? (int)asked : 1;

    for (; ndevices < physical; ndevices++)
        snprintf(device_of[ndevices].name, sizeof device_of->name, "tcp%d", ndevices);
    *n = ndevices;
    return NET_OK;
}

#if NET_VERSION >= 9
struct net_members {
    int n, device[NET_MEMBERS];
};

static int make_vdevice(int *device, void *members)
{
    const struct net_members *wanted = members;
    struct device *d = &device_of[ndevices];
    char name[sizeof d->name] = "";
    size_t used = 0;

    if (ndevices == MOST_DEVICES || wanted->n < 1 || getenv("EXAMPLE_NET_NO_MERGE")) return NET_USAGE;
    d->n = wanted->n;
    for (int i = 0; i < wanted->n && used < sizeof name; i++) {
        d->member[i] = wanted->device[i];
        used +=
            (size_t)snprintf(name + used, sizeof name - used, "%s%s", i ? "+" : "", device_of[wanted->device[i]].name);
    }
    memcpy(d->name, name, sizeof name);
    *device = ndevices++;
    return NET_OK;
}
#endif

static int properties(int device, struct net_properties *p)
{
    const struct device *d = &device_of[device];

    p->name = (char *)(uintptr_t)d->name;
    p->pci_path = getenv("EXAMPLE_NET_PCI");
    p->guid = 1;
    p->memory = NET_HOST_MEMORY;
    p->speed_mbps = SPEED_MBPS * (d->n ? d->n : 1);
    p->port = 1 + (d->n ? d->member[0] : device);
    p->max_comms = 65536;
    p->max_recvs = RECVS;
#if NET_VERSION >= 9
    p->members.n = d->n ? d->n : 1;
    p->members.device[0] = device;
    for (int i = 0; i < d->n; i++) p->members.device[i] = d->member[i];
    p->max_p2p_bytes = p->max_coll_bytes = (size_t)1 << 30;
#endif
#if NET_VERSION >= 11
    p->max_multi = 1;
#endif
#if NET_VERSION >= 12
    p->rail = p->plane = -1;
#endif
    return NET_OK;
}

/* ---- connections ---- */

static int make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static int start_listening(int fd, struct sockaddr_in *at)
{
    const char *own = getenv("EXAMPLE_NET_ADDRESS");
    socklen_t bytes = sizeof *at;

    *at = (struct sockaddr_in){.sin_family = AF_INET};
    if (inet_pton(AF_INET, own ? own : "127.0.0.1", &at->sin_addr) != 1) return NET_USAGE;
    if (bind(fd, (struct sockaddr *)at, bytes) || listen(fd, 16) || getsockname(fd, (struct sockaddr *)at, &bytes))
        return NET_SYSTEM;
    return NET_OK;
}

static int listen_on(NET_CONTEXT int device, void *handle, void **listener)
{
    struct listener *l = malloc(sizeof *l);
    struct sockaddr_in at;

#if NET_VERSION >= 11
    (void)context;
#endif
    (void)device;
    if (!l) return NET_SYSTEM;
    l->fd = make_socket();
    int rc = l->fd < 0 ? NET_SYSTEM : start_listening(l->fd, &at);
    if (rc) {
        if (l->fd >= 0) close(l->fd);
        free(l);
        return rc;
    }
    memset(handle, 0, NET_HANDLE);
    memcpy(handle, &at, sizeof at);
    *listener = l;
    return NET_OK;
}

static struct comm *make_comm(int fd, int sends)
{
    struct comm *c = calloc(1, sizeof *c);
    const int on = 1;

    if (!c) {
        close(fd);
        return NULL;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    c->fd = fd;
    c->sends = sends;
    return c;
}

static int connect_to(NET_CONNECT_ARGS void *handle, void **comm NET_OFFLOAD)
{
    struct sockaddr_in at;
    const int fd = make_socket();

#if NET_VERSION >= 11
    (void)context;
#endif
#if NET_VERSION == 10
    (void)config;
#endif
#if NET_VERSION >= 7
    (void)offload;
#endif
    (void)device;
    *comm = NULL;
    if (fd < 0) return NET_SYSTEM;
    memcpy(&at, handle, sizeof at);
    if (connect(fd, (struct sockaddr *)&at, sizeof at) && errno != EINPROGRESS) {
        close(fd);
        return NET_REMOTE;
    }
    *comm = make_comm(fd, 1); /* the first write finds out whether it has come about */
    return *comm ? NET_OK : NET_SYSTEM;
}

static int accept_from(void *listener, void **comm NET_OFFLOAD)
{
    const struct listener *l = listener;
    const int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

#if NET_VERSION >= 7
    (void)offload;
#endif
    *comm = NULL;
    if (fd < 0) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? NET_OK : NET_SYSTEM;
    *comm = make_comm(fd, 0);
    return *comm ? NET_OK : NET_SYSTEM;
}

/* ---- memory: sockets take any ---- */

static int reg_mr(void *comm, void *data, net_mr_size bytes, int memory, void **mr)
{
    (void)comm, (void)data, (void)bytes;
    *mr = NULL;
    return memory == NET_HOST_MEMORY ? NET_OK : NET_INTERNAL;
}

static int dereg_mr(void *comm, void *mr)
{
    (void)comm, (void)mr;
    return NET_OK;
}

/* ---- messages ---- */

static struct request *queue(struct comm *c, int n, void **data, const net_size *bytes, const int *tags)
{
    struct request *r = &c->request[c->newest % REQUESTS];

    if (r->used) return NULL;
    *r = (struct request){.comm = c, .used = 1, .n = n};
    for (int i = 0; i < n; i++)
        r->part[i] =
            (struct part){.data = data[i], .posted = (uint64_t)bytes[i], .size = (uint64_t)bytes[i], .tag = tags[i]};
    r->head = (struct head){.size = r->part[0].size, .tag = tags[0]};
    c->newest++;
    return r;
}

/* The head of a message is here: its part of the oldest receive. */
static int find_part(struct request *r)
{
    for (r->now = 0; r->now < r->n; r->now++) {
        struct part *p = &r->part[r->now];
        if (p->done || (r->n > 1 && p->tag != r->head.tag)) continue;
        p->size = r->head.size;
        return p->size > p->posted ? NET_USAGE : NET_OK;
    }
    return NET_USAGE;
}

static ssize_t move_bytes(const struct comm *c, void *at, size_t bytes)
{
    return c->sends ? send(c->fd, at, bytes, MSG_NOSIGNAL) : recv(c->fd, at, bytes, 0);
}

/* Move a piece. 1: more may follow; 0: not now, or all is done; negative: a failure. */
static int move_piece(struct comm *c, struct request *r)
{
    const int head = r->moved < sizeof r->head;
    const struct part *p = &r->part[r->now];
    char *at = head ? (char *)&r->head + r->moved : p->data + (r->moved - sizeof r->head);
    const uint64_t left = head ? sizeof r->head - r->moved : p->size + sizeof r->head - r->moved;

    if (!left) return 0;
    const ssize_t n = move_bytes(c, at, left);
    if (n < 0) return errno == EAGAIN || errno == EINTR || errno == ENOTCONN ? 0 : -NET_REMOTE;
    if (!n) return -NET_REMOTE;
    r->moved += (uint64_t)n;
    if (!c->sends && head && r->moved == sizeof r->head && find_part(r)) return -NET_USAGE;
    return 1;
}

static void progress(struct comm *c)
{
    while (!c->error && c->oldest != c->newest) {
        struct request *r = &c->request[c->oldest % REQUESTS];
        int rc;

        do rc = move_piece(c, r);
        while (rc > 0);
        if (rc < 0) c->error = -rc;
        if (rc < 0 || r->moved < sizeof r->head || r->moved < r->part[r->now].size + sizeof r->head) return;
        r->part[r->now].done = 1;
        r->moved = 0;
        if (++r->ndone < r->n) continue;
        r->done = 1;
        c->oldest++;
    }
}

static int isend(void *comm, void *data, net_size bytes, int tag, void *mr, NET_PARENT void **request)
{
    struct comm *c = comm;

    (void)mr;
    *request = NULL;
    if ((uint64_t)bytes > INT32_MAX) return NET_USAGE; /* test reports an int */
    *request = queue(c, 1, &data, &bytes, &tag);
#if NET_VERSION >= 10
    begin_event(*request, parent);
#endif
    progress(c);
    return c->error;
}

static int irecv(void *comm, int n, void **data, net_size *bytes, int *tags, void **mr, NET_PARENTS void **request)
{
    struct comm *c = comm;

    (void)mr;
    if (n < 1 || n > RECVS) return NET_INTERNAL;
    *request = queue(c, n, data, bytes, tags);
#if NET_VERSION >= 10
    begin_event(*request, parents ? parents[0] : NULL);
#endif
    return NET_OK;
}

static int test(void *request, int *done, int *sizes)
{
    struct request *r = request;

    if (!r->done) progress(r->comm);
    *done = r->done;
    if (!r->done) return r->comm->error;
    for (int i = 0; sizes && i < r->n; i++) sizes[i] = (int)r->part[i].size;
    end_event(r);
    r->used = r->done = 0;
    return NET_OK;
}

/* ---- the end ---- */

static int close_comm(void *comm)
{
    struct comm *c = comm;

    for (int i = 0; i < REQUESTS; i++) end_event(&c->request[i]);
    close(c->fd);
    free(c);
    return NET_OK;
}

static int close_listen(void *listener)
{
    struct listener *l = listener;

    close(l->fd);
    free(l);
    return NET_OK;
}

#if NET_VERSION >= 11
static int finalize(void *context)
{
    (void)context;
    return NET_OK;
}
#endif

__attribute__((visibility("default"))) const struct net_plugin NET_SYMBOL;
const struct net_plugin NET_SYMBOL = {
    .name = "ExampleTCP",
    .init = init,
    .devices = devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_to,
    .accept = accept_from,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .isend = isend,
    .irecv = irecv,
    .test = test,
    .close_send = close_comm,
    .close_recv = close_comm,
    .close_listen = close_listen,
#if NET_VERSION >= 9
    .make_vdevice = make_vdevice,
#endif
#if NET_VERSION >= 11
    .finalize = finalize,
#endif
};
