/* SPDX-License-Identifier: Apache-2.0 */
/**
 * rma.c - a plugin for one-sided operations in one file: a TCP connection for each direction of each pair of ranks.
 *
 *     cc -shared -fPIC -o libnccl-rma-tcp.so rma.c                 (-DRMA_VERSION=13 ... for an older ABI, -DRMA_GIN for its older name)
 *     NCCL_RMA_PLUGIN=./libnccl-rma-tcp.so kolo run -n 4 --hosts 2 -- ./program
 *
 * EXAMPLE_NET_ADDRESS is the IPv4 address of this host (127.0.0.1). A put is a head and its data; the target writes them where they belong,
 * then adds to its counter, both when it makes progress. Memory has the same number at all ranks, as all register in the same order.
 * A request is done when the kernel has its bytes. Any number may be outstanding.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* accept4 */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef RMA_VERSION
#define RMA_VERSION 15
#endif

enum { RMA_OK = 0, RMA_SYSTEM = 2, RMA_INTERNAL = 3, RMA_USAGE = 5, RMA_REMOTE = 6 };
enum { HANDLE = 128, HOST_MEMORY = 1, GIN_PROXY = 2, TIMEOUT_MS = 60000, NO_COUNTER = -1 };

typedef void rma_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);

/* As of net plugins v12. */
struct rma_properties {
    char *name, *pci_path;
    uint64_t guid;
    int memory, registered_for_all, flush, speed_mbps, port;
    float latency_us;
    int max_comms, max_recvs, device_type, device_version;
    struct {
        int n, device[8];
    } members;
    size_t max_p2p_bytes, max_coll_bytes;
    int max_multi;
    int16_t rail, plane;
};

/* ---- memory and requests ---- */

struct memory {
    char *at; /* NULL: not registered any more */
    size_t bytes;
    int number;
    struct memory *next;
};

struct head {
    uint64_t bytes, to, counter, value;
    int32_t to_memory, counter_memory; /* numbers; NO_COUNTER */
};

struct request {
    struct request *later, **place; /* of all that have not been tested to their end, which closeColl frees */
    struct head head;
    const char *data;
    uint64_t moved; /* of head and data together */
    int done, error;
    struct request *next;
};

struct peer {
    int out, in; /* sockets; -1: none, or ended */
    int error;   /* of puts to it */
    struct request *first, *last;
    struct head head; /* of the put that arrives */
    uint64_t got;
};

struct comm {
    struct request *request; /* all of them */
    int n, own;
    struct peer *peer;
    struct memory *memory; /* the last one */
    int registered;
    bool failed;
    pthread_mutex_t lock;
};

struct listener {
    int fd;
};

static struct memory *find_memory(const struct comm *c, int number)
{
    struct memory *m = c->memory;

    while (m && m->number != number) m = m->next;
    return m;
}

/* ---- devices ---- */

static int init(void **context, uint64_t comm, rma_logger *log)
{
    (void)comm, (void)log;
    *context = NULL;
    return RMA_OK;
}

static int devices(int *n)
{
    *n = 1;
    return RMA_OK;
}

static int properties(int device, struct rma_properties *p)
{
    static char name[] = "tcp0";

    (void)device;
    p->name = name;
    p->guid = 1;
    p->memory = HOST_MEMORY;
    p->speed_mbps = 10000;
    p->port = 1;
    p->max_comms = 65536;
    p->max_recvs = 1;
    p->members.n = 1;
    p->max_p2p_bytes = p->max_coll_bytes = (size_t)1 << 30;
    p->max_multi = 1;
    p->rail = p->plane = -1;
#ifdef RMA_GIN
    p->device_type = GIN_PROXY;
#endif
    return RMA_OK;
}

/* ---- connections ---- */

static int listen_on(void *context, int device, void *handle, void **listener)
{
    const char *own = getenv("EXAMPLE_NET_ADDRESS");
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct listener *l = malloc(sizeof *l);
    socklen_t bytes = sizeof at;

    (void)context, (void)device;
    if (!l) return RMA_SYSTEM;
    l->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (l->fd < 0 || inet_pton(AF_INET, own ? own : "127.0.0.1", &at.sin_addr) != 1 ||
        bind(l->fd, (struct sockaddr *)&at, bytes) || listen(l->fd, SOMAXCONN) ||
        getsockname(l->fd, (struct sockaddr *)&at, &bytes)) {
        if (l->fd >= 0) close(l->fd);
        free(l);
        return RMA_SYSTEM;
    }
    memset(handle, 0, HANDLE);
    memcpy(handle, &at, sizeof at);
    *listener = l;
    return RMA_OK;
}

static int close_listen(void *listener)
{
    struct listener *l = listener;

    close(l->fd);
    free(l);
    return RMA_OK;
}

/* A connection through which this rank writes, which begins with its number. */
static int connect_peer(const struct comm *c, const void *handle)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    const int32_t own = c->own;
    struct sockaddr_in at;

    if (fd < 0) return -1;
    memcpy(&at, handle, sizeof at);
    if (!connect(fd, (struct sockaddr *)&at, sizeof at) && send(fd, &own, sizeof own, MSG_NOSIGNAL) == sizeof own) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        return fd;
    }
    close(fd);
    return -1;
}

/* EXAMPLE_RMA_PATIENCE_MS: until a rank that has not come is given up. */
static int timeout_ms(void)
{
    const char *own = getenv("EXAMPLE_RMA_PATIENCE_MS");

    return own ? (int)strtol(own, NULL, 10) : TIMEOUT_MS;
}

static int accept_peer(const struct comm *c, int listener)
{
    struct pollfd listening = {.fd = listener, .events = POLLIN};
    const int fd = poll(&listening, 1, timeout_ms()) > 0 ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
    int32_t number;

    if (fd < 0) return RMA_REMOTE;
    listening.fd = fd;
    if (poll(&listening, 1, timeout_ms()) > 0 && recv(fd, &number, sizeof number, MSG_WAITALL) == sizeof number &&
        number >= 0 && number < c->n && c->peer[number].in < 0) {
        c->peer[number].in = fd;
        return RMA_OK;
    }
    close(fd);
    return RMA_REMOTE;
}

static int close_coll(void *comm)
{
    struct comm *c = comm;

    for (int i = 0; i < c->n; i++) {
        struct peer *p = &c->peer[i];
        if (p->out >= 0) close(p->out);
        if (p->in >= 0) close(p->in);
    }
    for (struct request *r; (r = c->request);) {
        c->request = r->later;
        free(r);
    }
    for (struct memory *m; (m = c->memory);) {
        c->memory = m->next;
        free(m);
    }
    pthread_mutex_destroy(&c->lock);
    free(c->peer);
    free(c);
    return RMA_OK;
}

static int meet_all(struct comm *c, void *handles[], const struct listener *l)
{
    for (int i = 0; i < c->n; i++) {
        if (i == c->own) continue;
        c->peer[i].out = connect_peer(c, handles[i]);
        if (c->peer[i].out < 0) return RMA_REMOTE;
    }
    for (int i = 0; i < c->n - 1; i++) {
        const int rc = accept_peer(c, l->fd);
        if (rc) return rc;
    }
    return RMA_OK;
}

static int connect_all(void *context, void *handles[], int n, int rank, void *listener, void **comm)
{
    struct comm *c = calloc(1, sizeof *c);

    (void)context;
    *comm = NULL;
    if (getenv("EXAMPLE_RMA_REFUSES")) { /* to see that others do without */
        free(c);
        return RMA_SYSTEM;
    }
    if (!c) return RMA_SYSTEM;
    c->n = n;
    c->own = rank;
    c->peer = calloc((size_t)n, sizeof *c->peer);
    pthread_mutex_init(&c->lock, NULL);
    if (!c->peer) c->n = 0;
    for (int i = 0; i < c->n; i++) c->peer[i].out = c->peer[i].in = -1;
    const int rc = c->peer ? meet_all(c, handles, listener) : RMA_SYSTEM;
    if (rc) {
        close_coll(c);
        return rc;
    }
    *comm = c;
    return RMA_OK;
}

/* ---- memory: of the same number at all ranks ---- */

static int add_memory(struct comm *c, void *data, size_t bytes, int type, void **mr)
{
    struct memory *m = calloc(1, sizeof *m);

    if (!m || type != HOST_MEMORY) {
        free(m);
        return m ? RMA_USAGE : RMA_SYSTEM;
    }
    pthread_mutex_lock(&c->lock);
    *m = (struct memory){.at = data, .bytes = bytes, .number = c->registered++, .next = c->memory};
    c->memory = m;
    pthread_mutex_unlock(&c->lock);
    *mr = m;
    return RMA_OK;
}

static int dereg_mr(void *comm, void *mr)
{
    struct comm *c = comm;
    struct memory *m = mr;

    pthread_mutex_lock(&c->lock);
    m->at = NULL; /* its number stays known */
    pthread_mutex_unlock(&c->lock);
    return RMA_OK;
}

/* ---- puts that arrive ---- */

static bool is_within(const struct memory *m, uint64_t at, uint64_t bytes)
{
    return m && m->at && at <= m->bytes && bytes <= m->bytes - at;
}

static void count(struct comm *c, const struct head *h)
{
    const struct memory *m = find_memory(c, h->counter_memory);

    if (h->counter_memory == NO_COUNTER) return;
    if (is_within(m, h->counter, sizeof(uint64_t)))
        __atomic_fetch_add((uint64_t *)(void *)(m->at + h->counter), h->value, __ATOMIC_RELEASE);
    else
        c->failed = true;
}

/* Is the memory of the head registered here? Other ranks may be ahead. */
static bool is_known(const struct comm *c, const struct head *h)
{
    return (!h->bytes || h->to_memory < c->registered) && h->counter_memory < c->registered;
}

/* Read a piece. 1: more may follow; 0: not now; -1: nothing more comes. */
static int read_piece(struct comm *c, struct peer *p)
{
    const bool in_head = p->got < sizeof p->head;

    if (!in_head && !is_known(c, &p->head)) return 0;
    const struct memory *m = in_head ? NULL : find_memory(c, p->head.to_memory);
    if (!in_head && p->head.bytes && !is_within(m, p->head.to, p->head.bytes)) return -1;
    char *at = in_head ? (char *)&p->head + p->got : m ? m->at + p->head.to + (p->got - sizeof p->head) : NULL;
    const uint64_t left = in_head ? sizeof p->head - p->got : p->head.bytes + sizeof p->head - p->got;
    const ssize_t n = left ? recv(p->in, at, left, MSG_DONTWAIT) : 0;
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    if (left && !n) return -1;
    p->got += (uint64_t)n;
    if (p->got < sizeof p->head || p->got < p->head.bytes + sizeof p->head) return 1;
    if (!is_known(c, &p->head)) return 0;
    count(c, &p->head);
    p->got = 0;
    return 1;
}

static void receive(struct comm *c, struct peer *p)
{
    int rc = p->in >= 0;

    while (rc > 0) rc = read_piece(c, p);
    if (rc >= 0) return;
    if (p->got) c->failed = true; /* in the middle of a put */
    close(p->in);
    p->in = -1;
}

/* ---- puts that leave ---- */

static void end_request(struct peer *p, int error)
{
    struct request *r = p->first;

    p->first = r->next;
    if (!p->first) p->last = NULL;
    r->error = error;
    r->done = 1;
}

static void send_out(struct peer *p)
{
    while (p->first) {
        struct request *r = p->first;
        const bool in_head = r->moved < sizeof r->head;
        const char *at = in_head ? (const char *)&r->head + r->moved : r->data + (r->moved - sizeof r->head);
        const uint64_t left = in_head ? sizeof r->head - r->moved : r->head.bytes + sizeof r->head - r->moved;
        const ssize_t n = left ? send(p->out, at, left, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;

        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (n < 0) p->error = RMA_REMOTE;
        if (p->error) {
            end_request(p, p->error);
            continue;
        }
        r->moved += (uint64_t)n;
        if (r->moved == r->head.bytes + sizeof r->head) end_request(p, RMA_OK);
    }
}

static void put_here(struct comm *c, struct request *r)
{
    const struct memory *m = find_memory(c, r->head.to_memory);

    r->done = 1;
    if (r->head.bytes && !is_within(m, r->head.to, r->head.bytes)) {
        r->error = RMA_USAGE;
        return;
    }
    if (r->head.bytes) memmove(m->at + r->head.to, r->data, r->head.bytes);
    count(c, &r->head);
}

static int put(struct comm *c, const struct head *head, const char *data, uint32_t rank, void **request)
{
    struct request *r = calloc(1, sizeof *r);

    if (!r) return RMA_SYSTEM;
    r->head = *head;
    r->data = data;
    pthread_mutex_lock(&c->lock);
    r->later = c->request;
    r->place = &c->request;
    if (r->later) r->later->place = &r->later;
    c->request = r;
    struct peer *p = &c->peer[rank];
    if ((int)rank == c->own) {
        put_here(c, r);
    } else {
        if (p->last)
            p->last->next = r;
        else
            p->first = r;
        p->last = r;
        send_out(p);
    }
    pthread_mutex_unlock(&c->lock);
    *request = r;
    return RMA_OK;
}

/* Arguments that some versions have. */
#if RMA_VERSION >= 15
#define RMA_OPTIONS , uint32_t options
#define RMA_UNUSED  (void)context, (void)options
#else
#define RMA_OPTIONS
#define RMA_UNUSED (void)context
#endif
#if RMA_VERSION >= 14
#define RMA_STRONG , bool strong
#else
#define RMA_STRONG
#endif

static int iput(void *place, int context, uint64_t from, void *from_mr, size_t bytes, uint64_t to, void *to_mr,
                uint32_t rank RMA_OPTIONS, void **request)
{
    const struct memory *source = from_mr, *target = to_mr;
    const struct head h = {
        .bytes = bytes, .to = to, .to_memory = target ? target->number : 0, .counter_memory = NO_COUNTER};

    RMA_UNUSED;
    return put(place, &h, source ? source->at + from : NULL, rank, request);
}

static int iput_signal(void *place, int context, uint64_t from, void *from_mr, size_t bytes, uint64_t to, void *to_mr,
                       uint32_t rank, uint64_t counter, void *counter_mr, uint64_t value,
                       uint32_t op RMA_STRONG RMA_OPTIONS, void **request)
{
    const struct memory *source = from_mr, *target = to_mr, *counters = counter_mr;
    const struct head h = {.bytes = bytes,
                           .to = to,
                           .counter = counter,
                           .value = op == 1 ? 1 : value, /* increment; else add */
                           .to_memory = target ? target->number : 0,
                           .counter_memory = counters->number};

    RMA_UNUSED;
#if RMA_VERSION >= 14
    (void)strong; /* puts of a pair are in order */
#endif
    return put(place, &h, source ? source->at + from : NULL, rank, request);
}

static int progress(void *place)
{
    struct comm *c = place;

    pthread_mutex_lock(&c->lock);
    for (int i = 0; i < c->n; i++) {
        if (i == c->own) continue;
        send_out(&c->peer[i]);
        receive(c, &c->peer[i]);
    }
    pthread_mutex_unlock(&c->lock);
    return RMA_OK;
}

static int test(void *comm, void *request, int *done)
{
    struct comm *c = comm;
    struct request *r = request;

    if (!r->done) progress(c);
    *done = r->done;
    if (!r->done) return RMA_OK;
    const int rc = r->error;
    pthread_mutex_lock(&c->lock);
    *r->place = r->later;
    if (r->later) r->later->place = r->place;
    pthread_mutex_unlock(&c->lock);
    free(r);
    return rc;
}

static int query_last_error(void *place, bool *failed)
{
    const struct comm *c = place;

    *failed = c->failed;
    return RMA_OK;
}

/* ---- contexts: one, which is the communicator ---- */

#if RMA_VERSION >= 14
static int create_context(void *comm, const void *config, void **place)
{
    (void)config;
    *place = comm;
    return RMA_OK;
}

static int reg_mr(void *comm, void *data, size_t bytes, int type, uint64_t flags, void **mr)
{
    (void)flags;
    return add_memory(comm, data, bytes, type, mr);
}
#else
static int create_context(void *comm, const void *config, void **place, void **offload)
{
    (void)config, (void)offload;
    *place = comm;
    return RMA_OK;
}

static int reg_mr(void *comm, void *data, size_t bytes, int type, uint64_t flags, void **mr, void **of_device)
{
    (void)flags, (void)of_device;
    return add_memory(comm, data, bytes, type, mr);
}
#endif

static int destroy_context(void *place)
{
    (void)place;
    return RMA_OK;
}

static int finalize(void *context)
{
    (void)context;
    return RMA_OK;
}

/* ---- the table ---- */

struct rma_plugin {
    const char *name;
    int (*init)(void **, uint64_t, rma_logger *);
    int (*devices)(int *);
    int (*properties)(int, struct rma_properties *);
    int (*listen)(void *, int, void *, void **);
    int (*connect)(void *, void *[], int, int, void *, void **);
#if RMA_VERSION >= 14
    int (*create_context)(void *, const void *, void **);
    int (*reg_mr)(void *, void *, size_t, int, uint64_t, void **);
#else
    int (*create_context)(void *, const void *, void **, void **);
    int (*reg_mr)(void *, void *, size_t, int, uint64_t, void **, void **);
#endif
    void (*reg_mr_dmabuf)(void);
    int (*dereg_mr)(void *, void *);
    int (*destroy_context)(void *), (*close_coll)(void *), (*close_listen)(void *);
    int (*iput)(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t RMA_OPTIONS, void **);
    int (*iput_signal)(void *, int, uint64_t, void *, size_t, uint64_t, void *, uint32_t, uint64_t, void *, uint64_t,
                       uint32_t RMA_STRONG RMA_OPTIONS, void **);
    void (*iget)(void), (*iflush)(void);
    int (*test)(void *, void *, int *);
    int (*progress)(void *);
    int (*query_last_error)(void *, bool *);
    int (*finalize)(void *);
};

#define RMA_SYMBOL_OF(prefix, version) prefix##version
#define RMA_NAME_OF(prefix, version)   RMA_SYMBOL_OF(prefix, version)
#if defined RMA_SYMBOL
#elif defined RMA_GIN
#define RMA_SYMBOL RMA_NAME_OF(ncclGinPlugin_v, RMA_VERSION)
#else
#define RMA_SYMBOL RMA_NAME_OF(ncclRmaPlugin_v, RMA_VERSION)
#endif

__attribute__((visibility("default"))) const struct rma_plugin RMA_SYMBOL;
const struct rma_plugin RMA_SYMBOL = {
    .name = "ExamplePut",
    .init = init,
    .devices = devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_all,
    .create_context = create_context,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .destroy_context = destroy_context,
    .close_coll = close_coll,
    .close_listen = close_listen,
    .iput = iput,
    .iput_signal = iput_signal,
    .test = test,
    .progress = progress,
    .query_last_error = query_last_error,
    .finalize = finalize,
};
