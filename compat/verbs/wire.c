/* SPDX-License-Identifier: Apache-2.0 */
/* TCP connections, as the engine watches them, and the list of queue pairs. */
#include "compat/verbs/standin.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

struct vs_wires vs_wires;

void vs_wire_watch(struct vs_wire *w, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.fd = w->fd};

    if (events == w->events) return;
    if (epoll_ctl(vs_wires.epoll, EPOLL_CTL_MOD, w->fd, &e) && errno == ENOENT)
        epoll_ctl(vs_wires.epoll, EPOLL_CTL_ADD, w->fd, &e);
    w->events = events;
}

void vs_wire_close(struct vs_wire *w)
{
    struct vs_wire **link = &vs_wires.incoming;

    while (w->incoming && *link && *link != w) link = &(*link)->next;
    if (w->incoming && *link) *link = w->next;
    close(w->fd);
    w->fd = -1;
    w->events = 0;
}

struct vs_qp *vs_wire_find(uint32_t number)
{
    struct vs_qp *q = vs_wires.qps;

    while (q && q->ib.qp_num != number) q = q->next;
    return q;
}
