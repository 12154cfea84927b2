/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/relay_sender.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "os/wakeup_fd.h"
#include "proxy/proxy.h"
#include "transport/net/relay_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct kl_relay_sender {
    const struct kl_transport *local; /* once asked to connect */
    uint32_t number;
    bool has_info;
    struct kl_relay_connect_info info;
    struct kl_fd_request *request; /* for the wakeup descriptor */
    int wakeup_fd;                 /* owned by the home */
    uint64_t told;                 /* steps that the relay was woken for */
};

/* ---- wakeup descriptors ---- */

/* By rank; -1: none yet. */
static int find_wakeup_fd(const struct kl_net_context *home, int rank)
{
    for (int i = 0; i < home->nwakeups; i++)
        if (home->wakeup[i].rank == rank) return home->wakeup[i].fd;
    return -1;
}

static ncclResult_t keep_wakeup_fd(struct kl_net_context *home, int rank, int fd)
{
    struct kl_net_wakeup *wakeups = realloc(home->wakeup, (size_t)(home->nwakeups + 1) * sizeof *wakeups);

    if (!wakeups) {
        close(fd);
        return KL_NOMEM("a connection through another rank");
    }
    wakeups[home->nwakeups++] = (struct kl_net_wakeup){.rank = rank, .fd = fd};
    home->wakeup = wakeups;
    return ncclSuccess;
}

static ncclResult_t get_wakeup_fd(struct kl_connector *c, struct kl_relay_sender *h, uint64_t deadline)
{
    struct kl_net_context *home = &c->common->net;
    int fd;

    h->wakeup_fd = find_wakeup_fd(home, c->route.proxy);
    if (h->wakeup_fd >= 0) return ncclSuccess;
    if (!h->request) KL_TRY(kl_fdshare_request(&h->info.wakeup_fd, deadline, &h->request));
    KL_TRY(kl_fdshare_poll(h->request, &fd));
    KL_TRY(keep_wakeup_fd(home, c->route.proxy, fd));
    h->wakeup_fd = fd;
    return ncclSuccess;
}

/* ---- connecting ---- */

static ncclResult_t ask(struct kl_connector *c, const struct kl_connect_info *info)
{
    struct kl_net_context *home = &c->common->net;
    struct kl_relay_sender *h = calloc(1, sizeof *h);

    if (!h) return KL_NOMEM("a connection through another rank");
    *h = (struct kl_relay_sender){.number = home->relay_connections++ % KL_RELAY_CONNECTIONS, .wakeup_fd = -1};
    c->net.handover = h;
    const struct kl_relay_request ask = {
        .version = KL_RELAY_VERSION,
        .handover = h->number,
        .receiver = c->peer,
        .device = c->route.device,
        .number = c->number,
        .messages = c->messages,
        .shape = *c->shape,
        .handle = info->net,
    };
    return kl_bootstrap_post(home->bootstrap, c->route.proxy, KL_TAG_RELAY_REQUEST, &ask, sizeof ask);
}

static ncclResult_t await_connect_info(struct kl_connector *c, struct kl_relay_sender *h, uint64_t deadline)
{
    bool here;

    if (h->has_info) return ncclSuccess;
    KL_TRY(kl_bootstrap_poll(c->common->net.bootstrap, c->route.proxy, KL_TAG_RELAY_CONNECT_INFO | h->number, &h->info,
                             sizeof h->info, &here));
    h->has_info = here;
    if (here) return ncclSuccess;
    if (!kl_deadline_passed(deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "rank %d has not answered in time that it sends for rank %d (PXN)", c->route.proxy,
                   c->common->net.rank);
}

/* Name the relay in the error: the peer itself may be reachable. */
static ncclResult_t name_relay_in_error(const struct kl_connector *c, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    if (rc == ncclInProgress) return rc;
    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(rc, "rank %d, which sends for rank %d (PXN), cannot be reached: %.900s", c->route.proxy,
                   c->common->net.rank, text);
}

ncclResult_t kl_relay_sender_connect(struct kl_connector *c, const struct kl_transport *local,
                                     const struct kl_connect_info *info, uint64_t deadline)
{
    struct kl_connect_reply answer = {.pool_bytes = 0};

    if (!c->net.deadline) c->net.deadline = deadline;
    if (!c->net.handover) KL_TRY(ask(c, info));
    KL_TRY(await_connect_info(c, c->net.handover, c->net.deadline));
    c->net.handover->local = local;
    ncclResult_t rc = get_wakeup_fd(c, c->net.handover, c->net.deadline);
    if (!rc) rc = local->connect(c, &c->net.handover->info.fifo, c->net.deadline, &answer);
    if (rc) return name_relay_in_error(c, rc);
    c->tx.zcopy_all = true; /* else an operation could end while this process still has to pass on its data */
    return kl_bootstrap_post(c->common->net.bootstrap, c->route.proxy, KL_TAG_RELAY_ANSWER | c->net.handover->number,
                             &answer, sizeof answer);
}

/* ---- moving ---- */

static void ring(const struct kl_connector *c)
{
    if (kl_swap_acq_rel(&c->tx.fifo->asleep, 0u))
        kl_wakeup_signal(c->net.handover->wakeup_fd); /* pairs with the relay's sleep */
}

enum kl_progress kl_relay_sender_progress(struct kl_connector *c)
{
    struct kl_proxy *helped = c->route.proxy_here ? c->common->net.proxy : NULL;
    enum kl_progress got = helped ? kl_proxy_help(helped) : KL_DONE;

    if (got == KL_DONE && c->net.handover->told != c->tx.step) ring(c);
    if (got == KL_DONE) c->net.handover->told = c->tx.step;
    return got == KL_MOVED ? got : KL_STALLED;
}

void kl_relay_sender_free(struct kl_connector *c)
{
    struct kl_relay_sender *h = c->net.handover;

    if (c->tx.fifo) {
        kl_fifo_leave_tx(&c->tx);
        ring(c);
    }
    if (h->local) h->local->free(c);
    kl_fdshare_request_free(h->request);
    free(h);
}
