/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that plays the NIC of the process: moves data for all queue pairs, whether or not the program calls. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_PORTS = 16, PORT_SHIFT = 8, BACKLOG = 1024 };

static struct {
    bool runs, ends;
    pthread_t thread;
    pthread_cond_t ended;
    int wake;
    int nports, listener[MAX_PORTS], port[MAX_PORTS];
} engine = {.ended = PTHREAD_COND_INITIALIZER};

/* ---- wires ---- */

static void accept_from(int listener)
{
    int fd, one = 1;

    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct vs_wire *w = calloc(1, sizeof *w);
        if (!w) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        *w = (struct vs_wire){.fd = fd, .incoming = true, .next = vs_wires.incoming};
        vs_wires.incoming = w;
        vs_wire_watch(w, EPOLLIN);
    }
}

/* ---- the thread ---- */

void vs_engine_wake(void)
{
    const uint64_t one = 1;

    if (engine.runs && write(engine.wake, &one, sizeof one) != sizeof one) abort();
}

static int next_timer(void)
{
    int soonest = -1;

    for (const struct vs_qp *q = vs_wires.qps; q; q = q->next) {
        int ms = q->rnr_until ? 1 : vs_requester_timer(q);
        if (ms >= 0 && (soonest < 0 || ms < soonest)) soonest = ms;
    }
    return soonest;
}

static void progress_timers(void)
{
    for (struct vs_qp *q = vs_wires.qps, *next; q; q = next) {
        next = q->next;
        vs_responder_timer(q);
        if (vs_requester_timer(q) >= 0) vs_requester_progress(q);
    }
}

void vs_engine_help(const struct kl_ibv_cq *cq)
{
    for (struct vs_qp *q = vs_wires.qps; q; q = q->next) {
        if (q->ib.send_cq != cq && q->ib.recv_cq != cq) continue;
        vs_requester_progress(q);
        if (q->in) (void)vs_responder_progress(q->in);
    }
}

static void progress_fd(int fd)
{
    uint64_t count;

    if (fd == engine.wake) {
        if (read(engine.wake, &count, sizeof count) < 0) return;
    }
    for (int i = 0; i < engine.nports; i++)
        if (fd == engine.listener[i]) accept_from(fd);
    for (struct vs_wire *w = vs_wires.incoming; w; w = w->next) {
        if (w->fd != fd) continue;
        (void)vs_responder_progress(w);
        return;
    }
    for (struct vs_qp *q = vs_wires.qps; q; q = q->next)
        if (q->out.fd == fd) vs_requester_progress(q);
}

static void *run(void *unused)
{
    struct epoll_event e;

    (void)unused;
    vs_enter();
    while (!engine.ends) {
        int timer = next_timer();
        vs_leave();
        int n = epoll_wait(vs_wires.epoll, &e, 1, timer);
        vs_enter();
        if (n > 0) progress_fd(e.data.fd);
        progress_timers();
    }
    vs_leave();
    return NULL;
}

/* ---- life ---- */

static int listen_once_more(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    if (engine.nports == MAX_PORTS) return ENOMEM;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    at.sin_addr = vs_settings()->address;
    if (bind(fd, (struct sockaddr *)&at, sizeof at) || listen(fd, BACKLOG) ||
        getsockname(fd, (struct sockaddr *)&at, &size)) {
        int error = errno;
        close(fd);
        return error;
    }
    struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(vs_wires.epoll, EPOLL_CTL_ADD, fd, &e);
    engine.port[engine.nports] = ntohs(at.sin_port);
    engine.listener[engine.nports++] = fd;
    return 0;
}

static void close_all(void)
{
    while (vs_wires.incoming) {
        struct vs_wire *w = vs_wires.incoming;
        vs_wire_close(w);
        free(w);
    }
    for (int i = 0; i < engine.nports; i++) close(engine.listener[i]);
    engine.nports = 0;
    close(engine.wake);
    close(vs_wires.epoll);
}

static int start(void)
{
    vs_wires.epoll = epoll_create1(EPOLL_CLOEXEC);
    engine.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct epoll_event e = {.events = EPOLLIN, .data.fd = engine.wake};
    epoll_ctl(vs_wires.epoll, EPOLL_CTL_ADD, engine.wake, &e);
    int error = pthread_create(&engine.thread, NULL, run, NULL);
    engine.runs = !error;
    if (error) close_all();
    return error;
}

/* 0: none is free. Numbers are used in turn, so that late connections of an old one do not reach a new one. */
static uint32_t free_number(void)
{
    static uint32_t last;

    for (unsigned i = 0; i < (unsigned)engine.nports * VS_QPS_OF_PORT; i++) {
        unsigned at = ++last % ((unsigned)engine.nports * VS_QPS_OF_PORT);
        uint32_t number = (uint32_t)engine.port[at / VS_QPS_OF_PORT] << PORT_SHIFT | at % VS_QPS_OF_PORT;
        if (!vs_wire_find(number)) return number;
    }
    return 0;
}

int vs_engine_add(struct vs_qp *q)
{
    int error = 0;

    while (engine.ends) pthread_cond_wait(&engine.ended, &vs_lock);
    if (!engine.runs) error = start();
    if (!error) q->ib.qp_num = free_number();
    if (!error && !q->ib.qp_num) {
        error = listen_once_more();
        if (!error) q->ib.qp_num = free_number();
    }
    if (error) return error;
    q->next = vs_wires.qps;
    vs_wires.qps = q;
    return 0;
}

static void stop(void)
{
    engine.ends = true;
    vs_engine_wake();
    vs_leave();
    pthread_join(engine.thread, NULL);
    vs_enter();
    close_all();
    engine.runs = engine.ends = false;
    pthread_cond_broadcast(&engine.ended);
}

void vs_engine_remove(struct vs_qp *q)
{
    struct vs_qp **link = &vs_wires.qps;

    while (*link && *link != q) link = &(*link)->next;
    if (!*link) return; /* it was never added */
    *link = q->next;
    if (!vs_wires.qps && engine.runs && !engine.ends) stop();
}
