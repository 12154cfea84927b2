/* SPDX-License-Identifier: Apache-2.0 */
/**
 * collnet.c - a net plugin whose network reduces: tcp.c, and a CollNet table of the same version beside it.
 *
 *     cc -shared -fPIC -o libnccl-net-collnet.so collnet.c         (-DNET_VERSION=6 ... for an older ABI)
 *     NCCL_NET_PLUGIN=./libnccl-net-collnet.so NCCL_COLLNET_ENABLE=1 kolo perf all_reduce --np 4 --hosts 2
 *
 * Member 0 of a group does the work: the others send it their data over TCP, it combines them in the order of members, and sends
 * the results back. It adds up and compares 32-bit and 64-bit numbers, and adds up bytes. Requests of a group are done in their order.
 */
#include "tcp.c" /* NOLINT(bugprone-suspicious-include): its devices and sockets */

#include <poll.h>
#include <stdio.h>

enum { GROUP_REQUESTS = 32, TIMEOUT_MS = 60000 };
enum { SUM = 0, PROD = 1, MAX = 2, MIN = 3 };
enum { UINT8 = 1, INT32 = 2, UINT32 = 3, INT64 = 4, UINT64 = 5, FLOAT32 = 7, FLOAT64 = 8 };

#if NET_VERSION >= 9
typedef size_t collnet_count;
#else
typedef int collnet_count;
#endif

#if NET_VERSION >= 8
struct collnet_part {
    void *mr, *data;
#if NET_VERSION >= 9
    size_t bytes;
#else
    uint32_t bytes;
#endif
};
#endif

/* ---- requests ---- */

/* A member gives `given` bytes and gets `got` bytes, which member 0 finds at own * `step` of the result. */
struct work {
    struct group *group;
    int used, done, sent;
    const char *from;
    char *to;
    size_t given, got, step, result; /* result: bytes at member 0 */
    int gathers, type, op;
    size_t moved; /* bytes, of the transfer under way */
    int member;   /* member 0: the one whose data come, or to whom the result goes */
};

struct group {
    int n, own;
    int *fd; /* by member; of the others only [0] */
    int error;
    char *sum, *came; /* of member 0: the result so far, and a member's data */
    size_t room;
    struct work work[GROUP_REQUESTS];
    unsigned first, last; /* under way: [first, last) modulo GROUP_REQUESTS */
};

/* ---- arithmetic ---- */

#define COMBINE(T)                                                                                                     \
    do {                                                                                                               \
        T *a = (T *)(void *)to;                                                                                        \
        const T *b = (const T *)(const void *)from;                                                                    \
        for (size_t i = 0; i < bytes / sizeof(T); i++)                                                                 \
            a[i] = op == SUM    ? (T)(a[i] + b[i])                                                                     \
                   : op == PROD ? (T)(a[i] * b[i])                                                                     \
                   : op == MAX  ? (a[i] > b[i] ? a[i] : b[i])                                                          \
                                : (a[i] < b[i] ? a[i] : b[i]);                                                          \
    } while (0)

static void combine(char *to, const char *from, size_t bytes, int type, int op)
{
    switch (type) {
    case UINT8:
        COMBINE(uint8_t);
        break;
    case INT32: /* sums of unsigned numbers have the same bits, and do not overflow */
        if (op == SUM || op == PROD)
            COMBINE(uint32_t);
        else
            COMBINE(int32_t);
        break;
    case UINT32:
        COMBINE(uint32_t);
        break;
    case INT64:
        if (op == SUM || op == PROD)
            COMBINE(uint64_t);
        else
            COMBINE(int64_t);
        break;
    case UINT64:
        COMBINE(uint64_t);
        break;
    case FLOAT32:
        COMBINE(float);
        break;
    default:
        COMBINE(double);
    }
}

static int type_bytes(int type)
{
    return type == UINT8 ? 1 : type == INT32 || type == UINT32 || type == FLOAT32 ? 4 : 8;
}

static int reduce_support(int type, int op, int *yes)
{
    const int known = type == UINT8 || (type >= INT32 && type <= UINT64) || type == FLOAT32 || type == FLOAT64;

    *yes = known && op >= SUM && op <= MIN;
    return NET_OK;
}

/* ---- progress ---- */

/* Move more of `bytes`; 1: all have been moved. */
static int move_more(struct group *g, int fd, char *at, size_t bytes, size_t *moved, int sends)
{
    while (*moved < bytes) {
        const ssize_t n =
            sends ? send(fd, at + *moved, bytes - *moved, MSG_NOSIGNAL) : recv(fd, at + *moved, bytes - *moved, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
        if (n <= 0) {
            g->error = NET_REMOTE;
            return 0;
        }
        *moved += (size_t)n;
    }
    *moved = 0;
    return 1;
}

static int make_space(struct group *g, size_t bytes)
{
    if (bytes <= g->room) return 1;
    free(g->sum);
    free(g->came);
    g->sum = malloc(bytes);
    g->came = malloc(bytes);
    g->room = g->sum && g->came ? bytes : 0;
    if (!g->room) g->error = NET_SYSTEM;
    return g->room > 0;
}

static void take_in(struct group *g, const struct work *w, int member, const char *data)
{
    if (w->gathers)
        memcpy(g->sum + (size_t)member * w->given, data, w->given);
    else if (!member)
        memcpy(g->sum, data, w->given);
    else
        combine(g->sum, data, w->given, w->type, w->op);
}

/* Member 0: all data come, member after member; then all results go. */
static int lead(struct group *g, struct work *w)
{
    if (!w->member && !w->sent) {
        if (!make_space(g, w->result > w->given ? w->result : w->given)) return 0;
        take_in(g, w, 0, w->from);
        w->member = 1;
    }
    for (; !w->sent && w->member < g->n; w->member++) {
        if (!move_more(g, g->fd[w->member], g->came, w->given, &w->moved, 0)) return 0;
        take_in(g, w, w->member, g->came);
    }
    if (!w->sent) w->member = 1;
    w->sent = 1;
    for (; w->member < g->n; w->member++)
        if (!move_more(g, g->fd[w->member], g->sum + (size_t)w->member * w->step, w->got, &w->moved, 1)) return 0;
    memcpy(w->to, g->sum, w->got);
    return 1;
}

static int follow(struct group *g, struct work *w)
{
    if (!w->sent && !move_more(g, g->fd[0], (char *)(uintptr_t)w->from, w->given, &w->moved, 1)) return 0;
    w->sent = 1;
    return move_more(g, g->fd[0], w->to, w->got, &w->moved, 0);
}

static void progress_group(struct group *g)
{
    while (!g->error && g->first != g->last) {
        struct work *w = &g->work[g->first % GROUP_REQUESTS];
        if (!(g->own ? follow(g, w) : lead(g, w))) return;
        w->done = 1;
        g->first++;
    }
}

static int start(struct group *g, struct work work, void **request)
{
    struct work *w = &g->work[g->last % GROUP_REQUESTS];

    *request = NULL;
    if (g->error) return g->error;
    if (w->used) return NET_OK;
    *w = work;
    w->group = g;
    w->used = 1;
    g->last++;
    *request = w;
    progress_group(g);
    return g->error;
}

/* ---- groups ---- */

static void close_fds(struct group *g)
{
    for (int i = 0; g->fd && i < (g->own ? 1 : g->n); i++)
        if (g->fd[i] >= 0) close(g->fd[i]);
}

static int close_group(void *comm)
{
    struct group *g = comm;

    close_fds(g);
    free(g->fd);
    free(g->sum);
    free(g->came);
    free(g);
    return NET_OK;
}

static int await(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};

    return poll(&p, 1, TIMEOUT_MS) == 1 ? NET_OK : NET_REMOTE;
}

/* Each other member connects, and says its number. */
static int meet_members(struct group *g, const struct listener *l)
{
    for (int i = 1; i < g->n; i++) {
        int member = 0;
        size_t moved = 0;
        if (await(l->fd, POLLIN)) return NET_REMOTE;
        const int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return NET_SYSTEM;
        while (!move_more(g, fd, (char *)&member, sizeof member, &moved, 0))
            if (g->error || await(fd, POLLIN)) break;
        if (g->error || member < 1 || member >= g->n || g->fd[member] >= 0) {
            close(fd);
            return NET_REMOTE;
        }
        g->fd[member] = fd;
    }
    return NET_OK;
}

static int reach_leader(struct group *g, const void *handle)
{
    struct sockaddr_in at;
    int error = 0;
    socklen_t bytes = sizeof error;

    memcpy(&at, handle, sizeof at);
    g->fd[0] = make_socket();
    if (g->fd[0] < 0) return NET_SYSTEM;
    if (connect(g->fd[0], (struct sockaddr *)&at, sizeof at) && errno != EINPROGRESS) return NET_REMOTE;
    if (await(g->fd[0], POLLOUT) || getsockopt(g->fd[0], SOL_SOCKET, SO_ERROR, &error, &bytes) || error)
        return NET_REMOTE;
    return send(g->fd[0], &g->own, sizeof g->own, MSG_NOSIGNAL) == sizeof g->own ? NET_OK : NET_REMOTE;
}

static int connect_group(void *handles[], int n, int own, void *listener, void **comm)
{
    struct group *g = calloc(1, sizeof *g);

    *comm = NULL;
    if (!g) return NET_SYSTEM;
    g->n = n;
    g->own = own;
    g->fd = malloc((size_t)n * sizeof *g->fd);
    for (int i = 0; g->fd && i < n; i++) g->fd[i] = -1;
    const int rc = !g->fd ? NET_SYSTEM : own ? reach_leader(g, handles[0]) : meet_members(g, listener);
    if (rc)
        (void)close_group(g);
    else
        *comm = g;
    return rc;
}

/* ---- calls ---- */

static int iallreduce(void *comm, void *from, void *to, collnet_count count, int type, int op, void *send_mr,
                      void *recv_mr, void **request)
{
    const size_t bytes = (size_t)count * (size_t)type_bytes(type);

    (void)send_mr, (void)recv_mr;
    return start(
        comm,
        (struct work){.from = from, .to = to, .given = bytes, .got = bytes, .result = bytes, .type = type, .op = op},
        request);
}

#if NET_VERSION >= 8
/* The window is the whole. */
static int iallgather(void *comm, void *from, int nparts, struct collnet_part *part, size_t bytes, size_t offset,
                      size_t window, void *mr, void **request)
{
    const struct group *g = comm;

    (void)mr;
    if (nparts != 1 || offset || window != (size_t)g->n * bytes) return NET_INTERNAL;
    return start(
        comm,
        (struct work){.from = from, .to = part->data, .given = bytes, .got = window, .result = window, .gathers = 1},
        request);
}

static int ireducescatter(void *comm, int nparts, struct collnet_part *part, void *to, size_t bytes, size_t offset,
                          size_t window, int type, int op, void *mr, void **request)
{
    const struct group *g = comm;

    (void)mr;
    if (nparts != 1 || offset || window != (size_t)g->n * bytes) return NET_INTERNAL;
    return start(comm,
                 (struct work){.from = part->data,
                               .to = to,
                               .given = window,
                               .got = bytes,
                               .step = bytes,
                               .result = window,
                               .type = type,
                               .op = op},
                 request);
}
#endif

static int iflush_group(void *comm, void *data, int size, void *mr, void **request)
{
    (void)comm, (void)data, (void)size, (void)mr;
    *request = NULL;
    return NET_OK;
}

static int test_work(void *request, int *done, int *size)
{
    struct work *w = request;

    progress_group(w->group);
    *done = w->done;
    if (!w->done) return w->group->error;
    if (size) *size = (int)w->got;
    w->used = w->done = 0;
    return NET_OK;
}

static int init_collnet(
#if NET_VERSION >= 11
    void **context, uint64_t comm,
#endif
    net_logger *log)
{
#if NET_VERSION >= 11
    *context = NULL;
    (void)comm;
#endif
    (void)log;
    return NET_OK;
}

struct collnet_plugin {
    const char *name;
    int (*init)(
#if NET_VERSION >= 11
        void **context, uint64_t comm,
#endif
        net_logger *log);
    int (*devices)(int *n);
    int (*properties)(int device, struct net_properties *p);
    int (*listen)(NET_CONTEXT int device, void *handle, void **listener);
    int (*connect)(void *handles[], int n, int own, void *listener, void **comm);
    int (*reduce_support)(int type, int op, int *yes);
    int (*reg_mr)(void *comm, void *data, net_mr_size bytes, int memory, void **mr);
    int (*reg_mr_dmabuf)(void *comm, void *data, size_t bytes, int memory, uint64_t offset, int fd, void **mr);
    int (*dereg_mr)(void *comm, void *mr);
    int (*iallreduce)(void *comm, void *from, void *to, collnet_count count, int type, int op, void *send_mr,
                      void *recv_mr, void **request);
#if NET_VERSION >= 8
    int (*iallgather)(void *comm, void *from, int nparts, struct collnet_part *part, size_t bytes, size_t offset,
                      size_t window, void *mr, void **request);
    int (*ireducescatter)(void *comm, int nparts, struct collnet_part *part, void *to, size_t bytes, size_t offset,
                          size_t window, int type, int op, void *mr, void **request);
#endif
    int (*iflush)(void *comm, void *data, int size, void *mr, void **request);
    int (*test)(void *request, int *done, int *size);
    int (*close)(void *comm);
    int (*close_listen)(void *listener);
#if NET_VERSION >= 9
    int (*make_vdevice)(int *device, void *members);
#endif
#if NET_VERSION >= 11
    int (*finalize)(void *context);
#endif
};

#define COLLNET_SYMBOL_OF(version) ncclCollNetPlugin_v##version
#define COLLNET_SYMBOL_(version)   COLLNET_SYMBOL_OF(version)
#ifndef COLLNET_SYMBOL
#define COLLNET_SYMBOL COLLNET_SYMBOL_(NET_VERSION)
#endif
__attribute__((visibility("default"))) const struct collnet_plugin COLLNET_SYMBOL;
const struct collnet_plugin COLLNET_SYMBOL = {
    .name = "ExampleReduce",
    .init = init_collnet,
    .devices = devices,
    .properties = properties,
    .listen = listen_on,
    .connect = connect_group,
    .reduce_support = reduce_support,
    .reg_mr = reg_mr,
    .dereg_mr = dereg_mr,
    .iallreduce = iallreduce,
#if NET_VERSION >= 8
    .iallgather = iallgather,
    .ireducescatter = ireducescatter,
#endif
    .iflush = iflush_group,
    .test = test_work,
    .close = close_group,
    .close_listen = close_listen,
#if NET_VERSION >= 11
    .finalize = finalize,
#endif
};
