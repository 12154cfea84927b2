/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/relay.h"

#include "base/clock.h"
#include "base/error.h"
#include "transport/ll.h"
#include "transport/net/link.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAP_AGAIN_MS = 1, MOST_SLOT_BYTES = 1 << 28 };
enum { MOST_SLOTS = 128 }; /* as fifos of messages have (comm/setup/connect.c) */

struct relay {
    struct kl_relays *relays;
    struct relay *next;
    int sender;
    struct kl_relay_request ask;
    struct kl_connector in; /* the receiving end of the sender's fifo */
    struct kl_net_link *link;
    struct kl_connect_reply answer;
    bool answered, failed;
    uint64_t deadline; /* of the connection */
};

struct kl_relays {
    struct kl_proxy_task duty;
    struct kl_relays_config config;
    struct kl_proxy *proxy;
    struct kl_common common; /* of the receiving ends */
    struct kl_fd_export_handle wakeup_fd;
    bool wakeup_offered;
    _Atomic bool message; /* of the bootstrap, has come */
    _Atomic int n;
    struct relay *first; /* under the proxy's lock */
};

/* ---- failures ---- */

/* Without an owner only the sender notices: its receiver has left. */
static void fail(struct relay *r, ncclResult_t rc)
{
    const struct kl_relays_config *c = &r->relays->config;
    char text[KL_ERROR_TEXT];

    r->failed = true;
    kl_net_link_cancel(r->link);
    if (r->relays->duty.orphan) {
        kl_fifo_leave_rx(&r->in.rx);
        return;
    }
    snprintf(text, sizeof text, "rank %d, which sends for rank %d to rank %d: %.900s", c->rank, r->sender,
             r->ask.receiver, kl_error_text());
    c->fail(c->ctx, r->sender, rc, text);
}

/* ---- one relay ---- */

static ncclResult_t check_request(const struct kl_relays_config *c, int sender, const struct kl_relay_request *ask)
{
    const struct kl_fifo_shape *s = &ask->shape;
    bool shaped = s->nslots && !(s->nslots & (s->nslots - 1)) && s->nslots <= MOST_SLOTS &&
                  !(s->slot_bytes % KL_LINE) && s->slot_bytes <= MOST_SLOT_BYTES &&
                  (!s->ll_bytes || s->ll_bytes == KL_LL_LINES_BYTES) && kl_fifo_places_are_valid(s);

    if (ask->version == KL_RELAY_VERSION && ask->receiver >= 0 && ask->receiver < c->nranks &&
        ask->handover < KL_RELAY_CONNECTIONS && ask->device >= 0 && ask->device < c->net->devices() && shaped)
        return ncclSuccess;
    return KL_FAIL(ncclInternalError, "rank %d asks rank %d for a relay that cannot be: do both run the same library?",
                   sender, c->rank);
}

static ncclResult_t set_up(struct relay *r)
{
    struct kl_relays *all = r->relays;
    struct kl_relay_connect_info info = {.fifo = {.version = KL_CONNECT_INFO_VERSION}, .wakeup_fd = all->wakeup_fd};

    r->in = (struct kl_connector){.transport = &kl_transport_shm,
                                  .peer = r->sender,
                                  .messages = r->ask.messages,
                                  .shape = &r->ask.shape,
                                  .common = &all->common};
    r->deadline = kl_deadline_in_ms(all->config.timeout_ms);
    KL_TRY(check_request(&all->config, r->sender, &r->ask));
    KL_TRY(kl_transport_shm.setup(&r->in, &r->ask.shape, &info.fifo));
    return kl_bootstrap_post(all->config.bootstrap, r->sender, KL_TAG_RELAY_CONNECT_INFO | r->ask.handover, &info,
                             sizeof info);
}

static ncclResult_t await_answer(struct relay *r)
{
    bool here;

    if (r->answered) return ncclSuccess;
    KL_TRY(kl_bootstrap_poll(r->relays->config.bootstrap, r->sender, KL_TAG_RELAY_ANSWER | r->ask.handover, &r->answer,
                             sizeof r->answer, &here));
    if (!here) return ncclInProgress;
    r->answered = true;
    return ncclSuccess;
}

static ncclResult_t settle(struct relay *r)
{
    if (r->link) return ncclSuccess;
    KL_TRY(await_answer(r));
    KL_TRY(kl_transport_shm.settle(&r->in, r->deadline, &r->answer));
    KL_TRY(kl_net_link_over(r->relays->config.net, &r->in.rx, &r->link));
    r->link->number = r->ask.number;
    return ncclSuccess;
}

static ncclResult_t connect_on(struct relay *r)
{
    const struct kl_relays_config *c = &r->relays->config;
    const struct kl_net_end me = {
        .secret = c->secret, .rank = r->sender, .peer = r->ask.receiver, .id = r->ask.number, .deadline = r->deadline};

    KL_TRY(settle(r));
    if (r->link->connected) return ncclSuccess;
    KL_TRY(c->net->connect(r->ask.device, &me, &r->ask.handle, &r->link->connection));
    return kl_net_link_opened(r->link);
}

/* All is sent, and no more steps will come. */
static bool is_over(struct relay *r)
{
    return r->link->released == r->link->out.step && kl_fifo_sender_gone(&r->link->out);
}

static enum kl_progress progress_relay(struct relay *r)
{
    if (r->failed) return r->relays->duty.orphan ? KL_DONE : KL_STALLED;
    int quiet = kl_error_quiet(1);
    ncclResult_t rc = connect_on(r);
    enum kl_progress got = KL_STALLED;
    if (!rc) {
        got = kl_net_outgoing_progress(r->link, &rc);
        if (rc) rc = kl_net_link_describe(r->link, rc, r->link->released);
    }
    kl_error_quiet(quiet);
    if (rc == ncclInProgress) return KL_STALLED;
    if (rc) {
        fail(r, rc);
        return KL_MOVED;
    }
    return got == KL_STALLED && is_over(r) ? KL_DONE : got;
}

static void free_relay(struct relay *r)
{
    kl_net_outgoing_leave(r->link);
    kl_net_link_free(r->link, true);
    kl_connector_free(&r->in);
    kl_fetch_sub_acq_rel(&r->relays->n, 1);
    free(r);
}

/* ---- requests of senders ---- */

static ncclResult_t take_on(struct kl_relays *all, int sender, const struct kl_relay_request *ask)
{
    struct relay *r = aligned_alloc(KL_LINE, (sizeof *r + KL_LINE - 1) / KL_LINE * KL_LINE);

    if (!r) return KL_NOMEM("a connection for another rank");
    *r = (struct relay){.relays = all, .next = all->first, .sender = sender, .ask = *ask};
    all->first = r;
    kl_fetch_add_acq_rel(&all->n, 1);
    ncclResult_t rc = set_up(r);
    if (rc) fail(r, rc);
    return rc;
}

/* Errors here are silent: the owner is notified of ranks that leave or fail. */
static void accept_requests_of(struct kl_relays *all, int sender)
{
    struct kl_relay_request ask;
    bool here = true;

    while (here && !kl_bootstrap_poll(all->config.bootstrap, sender, KL_TAG_RELAY_REQUEST, &ask, sizeof ask, &here))
        if (here && take_on(all, sender, &ask)) return;
}

static void accept_requests(struct kl_relays *all)
{
    if (all->duty.orphan || !kl_swap_acq_rel(&all->message, false)) return;
    int quiet = kl_error_quiet(1);
    for (int i = 0; i < all->config.nsenders; i++) accept_requests_of(all, all->config.senders[i]);
    kl_error_quiet(quiet);
}

/* Called by the event loop. */
static void notice_message(void *ctx)
{
    struct kl_relays *all = ctx;

    kl_store_release(&all->message, true); /* pairs with accept_requests */
    kl_proxy_wake(all->proxy);
}

/* ---- the duty ---- */

static struct kl_relays *relays_of(struct kl_proxy_task *duty)
{
    return (struct kl_relays *)(void *)((char *)duty - offsetof(struct kl_relays, duty));
}

static enum kl_progress progress(struct kl_proxy_task *duty)
{
    struct kl_relays *all = relays_of(duty);
    bool moved = false;

    accept_requests(all);
    for (struct relay **link = &all->first; *link;) {
        struct relay *r = *link;
        enum kl_progress got = progress_relay(r);
        moved |= got != KL_STALLED;
        if (got != KL_DONE) {
            link = &r->next;
            continue;
        }
        *link = r->next;
        free_relay(r);
    }
    if (duty->orphan && !all->first) return KL_DONE;
    return moved ? KL_MOVED : KL_STALLED;
}

static void rest_relay(struct relay *r, struct kl_proxy_sleep *rest)
{
    const struct kl_net_link *l = r->link;
    int fd = -1;

    if (r->failed) return;
    if (r->in.rx.fifo) (void)kl_swap_acq_rel(&r->in.rx.fifo->asleep, 1u); /* pairs with kl_handover_ring */
    if (!l && r->answered) kl_proxy_sleep_at_most(rest, MAP_AGAIN_MS);
    if (!l || (l->connected && l->released == l->out.step)) return;
    if (!l->connected) kl_proxy_sleep_at_most(rest, KL_NET_AGAIN_MS);
    if (l->connection && !l->net->sleep_on(l->connection, &fd) && fd >= 0)
        kl_proxy_sleep_on(rest, fd);
    else
        kl_proxy_sleep_at_most(rest, MAP_AGAIN_MS);
}

static void rest(struct kl_proxy_task *duty, struct kl_proxy_sleep *rest)
{
    for (struct relay *r = relays_of(duty)->first; r; r = r->next) rest_relay(r, rest);
}

static void free_all(struct kl_relays *all)
{
    for (struct relay *r = all->first, *next; r; r = next) {
        next = r->next;
        free_relay(r);
    }
    if (all->wakeup_offered) kl_fdshare_withdraw(&all->wakeup_fd);
    kl_common_fini(&all->common);
    kl_key_wipe(&all->config.secret);
    free((void *)(uintptr_t)all->config.senders);
    kl_proxy_unref(all->proxy);
    free(all);
}

static void end(struct kl_proxy_task *duty)
{
    free_all(relays_of(duty));
}

/* ---- life ---- */

static ncclResult_t prepare(struct kl_relays *all, const struct kl_relays_config *config)
{
    size_t bytes = (size_t)config->nsenders * sizeof *config->senders;
    int32_t *senders = malloc(bytes + 1);

    if (!senders) return KL_NOMEM("connections for other ranks");
    memcpy(senders, config->senders, bytes);
    all->config.senders = senders;
    KL_TRY(kl_proxy_ref(&all->proxy));
    KL_TRY(kl_fdshare_offer(kl_proxy_wakeup_fd(all->proxy), &all->wakeup_fd));
    all->wakeup_offered = true;
    return ncclSuccess;
}

ncclResult_t kl_relays_create(const struct kl_relays_config *config, struct kl_relays **relays)
{
    struct kl_relays *all = calloc(1, sizeof *all);

    if (!all) return KL_NOMEM("connections for other ranks");
    *all = (struct kl_relays){.duty = {.progress = progress, .rest = rest, .end = end}, .config = *config};
    all->config.senders = NULL;
    kl_store_relaxed(&all->message, true);
    ncclResult_t rc = prepare(all, config);
    if (rc) {
        free_all(all);
        return rc;
    }
    kl_proxy_add(all->proxy, &all->duty);
    kl_bootstrap_on_message(config->bootstrap, notice_message, all);
    *relays = all;
    return ncclSuccess;
}

/* Fifos that no sender uses yet will not be used. */
static void drop_unsettled(struct kl_relays *all, bool cancel)
{
    for (struct relay **link = &all->first; *link;) {
        struct relay *r = *link;
        if (!cancel && !r->failed && r->link) {
            link = &r->next;
            continue;
        }
        if (cancel) kl_net_link_cancel(r->link);
        *link = r->next;
        free_relay(r);
    }
}

void kl_relays_end(struct kl_relays *all, bool cancel)
{
    if (!all) return;
    kl_bootstrap_on_message(all->config.bootstrap, NULL, NULL);
    kl_proxy_lock(all->proxy);
    drop_unsettled(all, cancel);
    bool orphan = all->first != NULL;
    all->duty.orphan = orphan;
    kl_proxy_unlock(all->proxy);
    if (orphan) return;
    kl_proxy_remove(all->proxy, &all->duty);
    free_all(all);
}

bool kl_relays_busy(struct kl_relays *all)
{
    return all && kl_load_relaxed(&all->n);
}

struct kl_proxy *kl_relays_proxy(const struct kl_relays *all)
{
    return all ? all->proxy : NULL;
}
