/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_socket [NETNS NETNS]: connections over sockets beside bare TCP.
 *
 * First in one thread with both ends over the loopback: the CPU time of a message, which a busy machine does not change. Then
 * between two processes of this host, in two network namespaces if they are named.
 *
 * Half a round trip of 8 bytes, and the rate of messages of several sizes, in plain and with KOLO_NET_CRYPT=1. Both poll and yield, like
 * waiting threads of the library. Bare TCP and Kolo take turns, and the best of the rounds counts: other programs may be using
 * the machine.
 */
#include "base/clock.h"
#include "base/error.h"
#include "net/net.h"
#include "net/socket/terms.h"
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 15, PINGS = 200, STREAM = 64 << 20, MOST = 16 << 20, DEEP = 4 };

static const struct kl_net *const net = &kl_net_socket;

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, kl_error_text());                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* One of the two processes. */
struct end {
    int rank, line; /* `line` leads to the other: handles, and "begin" */
    void *listener, *send, *recv;
    int tcp;
    unsigned char *data;
};

/* ---- joining ---- */

static void tell(const struct end *e, const void *bytes, size_t n)
{
    MUST(write(e->line, bytes, n) == (ssize_t)n);
}

static void hear(const struct end *e, void *bytes, size_t n)
{
    MUST(read(e->line, bytes, n) == (ssize_t)n);
}

static void meet(const struct end *e)
{
    char byte = 0;

    tell(e, &byte, 1);
    hear(e, &byte, 1);
}

static void join(struct end *e)
{
    struct kl_net_end me = {.rank = e->rank, .peer = !e->rank, .deadline = kl_deadline_in_ms(20000)};
    struct kl_net_handle mine, theirs;
    ncclResult_t s = ncclInProgress, r = ncclInProgress;

    MUST(!net->init());
    MUST(!net->listen(0, &me, &mine, &e->listener));
    tell(e, &mine, sizeof mine);
    hear(e, &theirs, sizeof theirs);
    while (s == ncclInProgress || r == ncclInProgress) {
        if (s == ncclInProgress) s = net->connect(0, &me, &theirs, &e->send);
        if (r == ncclInProgress) r = net->accept(e->listener, &me, &e->recv);
    }
    MUST(!s && !r);
}

/* A bare connection: rank 0 listens, beside the net's listener. */
static void join_tcp(struct end *e)
{
    const struct kl_wait wait = {.deadline = kl_deadline_in_ms(20000)};
    struct kl_net_handle handle;
    union kl_address address;
    void *listener;
    int fd;

    if (!e->rank) {
        struct kl_net_end me = {.rank = 0};
        MUST(!net->listen(0, &me, &handle, &listener) && kl_terms_get_handle(&handle, &address));
        kl_address_set_port(&address, 0);
        MUST(!kl_socket_listen(&address, &fd));
        tell(e, &address, sizeof address);
        MUST(!kl_socket_accept(fd, &wait, &e->tcp));
        kl_socket_close(fd);
        net->close_listen(listener);
        return;
    }
    hear(e, &address, sizeof address);
    MUST(!kl_socket_connect_begin(&address, &e->tcp));
    struct pollfd p = {.fd = e->tcp, .events = POLLOUT};
    MUST(poll(&p, 1, 20000) == 1 && !kl_socket_connect_finish(e->tcp));
}

/* ---- bare TCP ---- */

static void tcp_send(const struct end *e, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = send(e->tcp, e->data + at, bytes - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        MUST(n >= 0 || errno == EAGAIN);
        if (n > 0)
            at += (size_t)n;
        else
            sched_yield();
    }
}

static void tcp_recv(const struct end *e, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = recv(e->tcp, e->data + at, bytes - at, MSG_DONTWAIT);
        MUST(n > 0 || (n < 0 && errno == EAGAIN));
        if (n > 0)
            at += (size_t)n;
        else
            sched_yield();
    }
}

static void tcp_stream(const struct end *e, size_t bytes, int n)
{
    for (int i = 0; i < n; i++) {
        if (e->rank)
            tcp_send(e, bytes);
        else
            tcp_recv(e, bytes);
    }
}

/* ---- Kolo ---- */

static void wait_for(void *request)
{
    for (bool done = false; !done;) {
        MUST(!net->test(request, &done, NULL));
        if (!done) sched_yield();
    }
}

static void *post(const struct end *e, bool sends, size_t bytes)
{
    const struct kl_net_recv one = {.data = e->data, .bytes = bytes};
    void *request = NULL;

    while (!request)
        MUST(
            !(sends ? net->isend(e->send, e->data, bytes, 0, NULL, &request) : net->irecv(e->recv, 1, &one, &request)));
    return request;
}

static void net_send(const struct end *e, size_t bytes)
{
    wait_for(post(e, true, bytes));
}

static void net_recv(const struct end *e, size_t bytes)
{
    wait_for(post(e, false, bytes));
}

static void net_stream(const struct end *e, size_t bytes, int n)
{
    void *request[DEEP];

    for (int i = 0; i < n + DEEP; i++) {
        if (i >= DEEP) wait_for(request[i % DEEP]);
        if (i < n) request[i % DEEP] = post(e, e->rank, bytes);
    }
}

/* ---- measuring ---- */

static double ping(const struct end *e, void (*send_it)(const struct end *, size_t),
                   void (*get)(const struct end *, size_t))
{
    meet(e);
    uint64_t start = kl_now_ns();
    for (int i = 0; i < PINGS; i++) {
        if (e->rank) send_it(e, 8);
        get(e, 8);
        if (!e->rank) send_it(e, 8);
    }
    return (double)(kl_now_ns() - start) / 1e3 / PINGS / 2;
}

/* GB/s; the receiver's clock counts. */
static double stream(const struct end *e, void (*run)(const struct end *, size_t, int), size_t bytes)
{
    int n = (int)(STREAM / bytes);

    meet(e);
    uint64_t start = kl_now_ns();
    run(e, bytes, n);
    double gbps = (double)bytes * n / (double)(kl_now_ns() - start);
    meet(e);
    return gbps;
}

static double least(const double *of)
{
    double l = of[0];

    for (int i = 1; i < ROUNDS; i++) l = of[i] < l ? of[i] : l;
    return l;
}

static double most(const double *of)
{
    double m = of[0];

    for (int i = 1; i < ROUNDS; i++) m = of[i] > m ? of[i] : m;
    return m;
}

static void measure(struct end *e, const char *name)
{
    static const size_t sizes[] = {4096, 64 << 10, 1 << 20, 16 << 20};
    double tcp[ROUNDS], ours[ROUNDS];

    e->data = malloc(MOST);
    MUST(e->data);
    memset(e->data, 1, MOST);
    for (int i = 0; i < ROUNDS; i++) {
        tcp[i] = ping(e, tcp_send, tcp_recv);
        ours[i] = ping(e, net_send, net_recv);
    }
    double t = least(tcp), o = least(ours);
    if (!e->rank) printf("%-10s %10d B   tcp %8.2f us     kolo %8.2f us     %+.2f us\n", name, 8, t, o, o - t);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (int i = 0; i < ROUNDS; i++) {
            tcp[i] = stream(e, tcp_stream, sizes[s]);
            ours[i] = stream(e, net_stream, sizes[s]);
        }
        t = most(tcp), o = most(ours);
        if (!e->rank)
            printf("%-10s %10zu B   tcp %8.2f GB/s   kolo %8.2f GB/s   x %.2f\n", name, sizes[s], t, o, o / t);
    }
    free(e->data);
}

/* ---- one thread at both ends ---- */

static double cpu_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void tcp_alone(const struct end *e, int other, size_t bytes)
{
    size_t sent = 0, received = 0;

    while (received < bytes) {
        ssize_t n = sent < bytes ? send(e->tcp, e->data + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
        if (n > 0) sent += (size_t)n;
        n = recv(other, e->data + received, bytes - received, MSG_DONTWAIT);
        MUST(n > 0 || (n < 0 && errno == EAGAIN));
        if (n > 0) received += (size_t)n;
    }
}

static void net_alone(const struct end *e, size_t bytes)
{
    void *request[] = {post(e, true, bytes), post(e, false, bytes)};
    bool done[] = {false, false};

    while (!done[0] || !done[1])
        for (int i = 0; i < 2; i++)
            if (!done[i]) MUST(!net->test(request[i], &done[i], NULL));
}

static void join_alone(struct end *e, int *other)
{
    const struct kl_wait wait = {.deadline = kl_deadline_in_ms(20000)};
    struct kl_net_end me = {.deadline = kl_deadline_in_ms(20000)};
    struct kl_net_handle handle;
    union kl_address address;
    ncclResult_t s = ncclInProgress, r = ncclInProgress;
    int fd;

    MUST(!net->init() && !net->listen(0, &me, &handle, &e->listener));
    while (s == ncclInProgress || r == ncclInProgress) {
        if (s == ncclInProgress) s = net->connect(0, &me, &handle, &e->send);
        if (r == ncclInProgress) r = net->accept(e->listener, &me, &e->recv);
    }
    MUST(!s && !r && kl_terms_get_handle(&handle, &address));
    kl_address_set_port(&address, 0);
    MUST(!kl_socket_listen(&address, &fd) && !kl_socket_connect_begin(&address, &e->tcp));
    MUST(!kl_socket_accept(fd, &wait, other));
    kl_socket_close(fd);
}

static void measure_alone(const struct end *e, int other, const char *name)
{
    static const size_t sizes[] = {8, 4096, 64 << 10, 1 << 20, 16 << 20};
    double tcp[ROUNDS], ours[ROUNDS];

    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        int n = (int)((64 << 20) / (sizes[s] + (64 << 10)));

        for (int i = 0; i < ROUNDS; i++) {
            double start = cpu_us();
            for (int k = 0; k < n; k++) tcp_alone(e, other, sizes[s]);
            double middle = cpu_us();
            for (int k = 0; k < n; k++) net_alone(e, sizes[s]);
            ours[i] = (cpu_us() - middle) / n;
            tcp[i] = (middle - start) / n;
        }
        double t = least(tcp), o = least(ours);
        printf("%-10s %10zu B   tcp %8.2f us     kolo %8.2f us     %+.2f us, x %.2f\n", name, sizes[s], t, o, o - t,
               t / o);
    }
}

static int run_alone(const char *name)
{
    struct end e = {.rank = 0};
    int other, status = 1;

    fflush(stdout);
    pid_t pid = fork();
    if (pid) return waitpid(pid, &status, 0) != pid || status;
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("KOLO_NET_CRYPT", strcmp(name, "encrypted") ? "0" : "1", 1);
    e.data = calloc(1, MOST);
    MUST(e.data);
    join_alone(&e, &other);
    measure_alone(&e, other, name);
    exit(0);
}

/* ---- two processes ---- */

static int run(int rank, int line, const char *netns, const char *name)
{
    struct end e = {.rank = rank, .line = line};
    char path[256];

    if (netns) {
        snprintf(path, sizeof path, "/var/run/netns/%s", netns);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        MUST(fd >= 0 && !setns(fd, CLONE_NEWNET));
        close(fd);
    } else {
        setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    }
    setenv("KOLO_NET_CRYPT", strcmp(name, "encrypted") ? "0" : "1", 1);
    join(&e);
    join_tcp(&e);
    measure(&e, name);
    meet(&e);
    net->close_send(e.send);
    net->close_recv(e.recv);
    net->close_listen(e.listener);
    kl_socket_close(e.tcp);
    return 0;
}

static int run_both(char **netns, const char *name)
{
    int line[2], status = 1;

    MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, line));
    fflush(stdout);
    pid_t pid[2];
    for (int rank = 0; rank < 2; rank++) {
        pid[rank] = fork();
        if (!pid[rank]) {
            close(line[!rank]);
            exit(run(rank, line[rank], netns ? netns[rank] : NULL, name));
        }
    }
    close(line[0]);
    close(line[1]);
    int failed = 0;
    for (int i = 0; i < 2; i++) failed |= waitpid(pid[i], &status, 0) != pid[i] || status;
    return failed;
}

int main(int argc, char **argv)
{
    if (argc != 1 && argc != 3) {
        fprintf(stderr, "usage: net_socket [NETNS NETNS]\n");
        return 2;
    }
    char **netns = argc == 3 ? argv + 1 : NULL;
    printf("CPU time of both ends together\n");
    int failed = run_alone("plain") | run_alone("encrypted");
    printf("time between two processes\n");
    return failed | run_both(netns, "plain") | run_both(netns, "encrypted");
}
