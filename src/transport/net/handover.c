/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/handover.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "os/bell.h"
#include "proxy/proxy.h"
#include "transport/net/relay_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct kl_handover {
    const struct kl_transport *local; /* once asked to connect */
    uint32_t number;
    bool carded;
    struct kl_relay_card card;
    struct kl_fd_request *request; /* for the bell */
    int bell;                      /* owned by the home */
    uint64_t told;                 /* steps that the relay was woken for */
};

/* ---- bells ---- */

/* By rank; -1: none yet. */
static int find_bell(const struct kl_net_home *home, int rank)
{
    for (int i = 0; i < home->nbells; i++)
        if (home->bell[i].rank == rank) return home->bell[i].fd;
    return -1;
}

static ncclResult_t keep_bell(struct kl_net_home *home, int rank, int fd)
{
    struct kl_net_bell *bells = realloc(home->bell, (size_t)(home->nbells + 1) * sizeof *bells);

    if (!bells) {
        close(fd);
        return KL_NOMEM("a connection through another rank");
    }
    bells[home->nbells++] = (struct kl_net_bell){.rank = rank, .fd = fd};
    home->bell = bells;
    return ncclSuccess;
}

static ncclResult_t get_bell(struct kl_connector *c, struct kl_handover *h, uint64_t deadline)
{
    struct kl_net_home *home = &c->common->net;
    int fd;

    h->bell = find_bell(home, c->proxy);
    if (h->bell >= 0) return ncclSuccess;
    if (!h->request) KL_TRY(kl_fdshare_ask(&h->card.bell, deadline, &h->request));
    KL_TRY(kl_fdshare_answer(h->request, &fd));
    KL_TRY(keep_bell(home, c->proxy, fd));
    h->bell = fd;
    return ncclSuccess;
}

/* ---- connecting ---- */

static ncclResult_t ask(struct kl_connector *c, const struct kl_card *card)
{
    struct kl_net_home *home = &c->common->net;
    struct kl_handover *h = calloc(1, sizeof *h);

    if (!h) return KL_NOMEM("a connection through another rank");
    *h = (struct kl_handover){.number = home->handovers++ % KL_RELAY_HANDOVERS, .bell = -1};
    c->handover = h;
    const struct kl_relay_ask ask = {
        .version = KL_RELAY_VERSION,
        .handover = h->number,
        .receiver = c->peer,
        .device = c->device,
        .number = c->number,
        .messages = c->messages,
        .shape = *c->shape,
        .handle = card->net,
    };
    return kl_bootstrap_post(home->bootstrap, c->proxy, KL_TAG_RELAY_ASK, &ask, sizeof ask);
}

static ncclResult_t await_card(struct kl_connector *c, struct kl_handover *h, uint64_t deadline)
{
    bool here;

    if (h->carded) return ncclSuccess;
    KL_TRY(kl_bootstrap_poll(c->common->net.bootstrap, c->proxy, KL_TAG_RELAY_CARD | h->number, &h->card,
                             sizeof h->card, &here));
    h->carded = here;
    if (here) return ncclSuccess;
    if (!kl_deadline_passed(deadline)) return ncclInProgress;
    return KL_FAIL(ncclRemoteError, "rank %d has not answered in time that it sends for rank %d (PXN)", c->proxy,
                   c->common->net.rank);
}

/* Name the relay in the error: the peer itself may be reachable. */
static ncclResult_t say_through_whom(const struct kl_connector *c, ncclResult_t rc)
{
    char text[KL_ERROR_TEXT];

    if (rc == ncclInProgress) return rc;
    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(rc, "rank %d, which sends for rank %d (PXN), cannot be reached: %.900s", c->proxy,
                   c->common->net.rank, text);
}

ncclResult_t kl_handover_connect(struct kl_connector *c, const struct kl_transport *local, const struct kl_card *card,
                                 uint64_t deadline)
{
    struct kl_card_reply answer = {.pool_bytes = 0};

    if (!c->deadline) c->deadline = deadline;
    if (!c->handover) KL_TRY(ask(c, card));
    KL_TRY(await_card(c, c->handover, c->deadline));
    c->handover->local = local;
    ncclResult_t rc = get_bell(c, c->handover, c->deadline);
    if (!rc) rc = local->connect(c, &c->handover->card.card, c->deadline, &answer);
    if (rc) return say_through_whom(c, rc);
    c->tx.lends_all = true; /* else an operation could end while this process still has to pass on its data */
    return kl_bootstrap_post(c->common->net.bootstrap, c->proxy, KL_TAG_RELAY_ANSWER | c->handover->number, &answer,
                             sizeof answer);
}

/* ---- moving ---- */

static void ring(const struct kl_connector *c)
{
    if (kl_swap_acq_rel(&c->tx.fifo->asleep, 0u)) kl_bell_ring(c->handover->bell); /* pairs with the relay's sleep */
}

enum kl_progress kl_handover_progress(struct kl_connector *c)
{
    struct kl_proxy *helped = c->proxy_here ? c->common->net.proxy : NULL;
    enum kl_progress got = helped ? kl_proxy_help(helped) : KL_DONE;

    if (got == KL_DONE && c->handover->told != c->tx.step) ring(c);
    if (got == KL_DONE) c->handover->told = c->tx.step;
    return got == KL_MOVED ? got : KL_STALLED;
}

void kl_handover_free(struct kl_connector *c)
{
    struct kl_handover *h = c->handover;

    if (c->tx.fifo) {
        kl_fifo_leave_tx(&c->tx);
        ring(c);
    }
    if (h->local) h->local->free(c);
    kl_fdshare_end(h->request);
    free(h);
}
