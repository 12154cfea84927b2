/* SPDX-License-Identifier: Apache-2.0 */
#include "channel/reducer.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/bootstrap.h"

#include <stdlib.h>
#include <string.h>

static struct kl_collnet_end end_of(const struct kl_reducer *r)
{
    const struct kl_reducer_config *c = &r->config;

    return (struct kl_collnet_end){.net = c->net,
                                   .secret = c->secret,
                                   .ranks = c->ranks,
                                   .n = c->n,
                                   .own = c->own,
                                   .id = c->id,
                                   .most = c->shape->slot_bytes,
                                   .deadline = r->deadline};
}

ncclResult_t kl_reducer_create(const struct kl_reducer_config *config, struct kl_reducer **reducer)
{
    struct kl_reducer *r = calloc(1, sizeof *r);

    if (!r) return KL_NOMEM("a connection of CollNet");
    r->config = *config;
    r->handle = calloc((size_t)config->n, sizeof *r->handle);
    r->config.ranks = r->ranks = malloc((size_t)config->n * sizeof *r->ranks);
    ncclResult_t rc = r->handle && r->ranks ? ncclSuccess : KL_NOMEM("a connection of CollNet");
    if (!rc) memcpy(r->ranks, config->ranks, (size_t)config->n * sizeof *r->ranks);
    if (!rc) rc = kl_collnet_link_create(config->collnet, r->ranks, config->n, config->own, config->shape, &r->link);
    if (rc)
        kl_reducer_free(r);
    else
        *reducer = r;
    return rc;
}

ncclResult_t kl_reducer_begin(struct kl_reducer *r, int device)
{
    const struct kl_reducer_config *c = &r->config;
    struct kl_collnet_end me = end_of(r);

    r->device = device;
    ncclResult_t rc = c->collnet->listen(device, &me, &r->handle[c->own], &r->listener);
    kl_key_wipe(&me.secret);
    for (int i = 0; i < c->n && !rc; i++) {
        if (i == c->own) continue;
        rc = kl_bootstrap_watch(c->bootstrap, c->ranks[i]);
        if (!rc) rc = kl_bootstrap_post(c->bootstrap, c->ranks[i], c->tag, &r->handle[c->own], sizeof *r->handle);
    }
    return rc;
}

static ncclResult_t receive_handles(struct kl_reducer *r)
{
    const struct kl_reducer_config *c = &r->config;
    bool here;

    for (; r->heard < c->n; r->heard++) {
        if (r->heard == c->own) continue;
        KL_TRY(kl_bootstrap_poll(c->bootstrap, c->ranks[r->heard], c->tag, &r->handle[r->heard], sizeof *r->handle,
                                 &here));
        if (!here) return ncclInProgress;
    }
    if (!r->deadline) r->deadline = kl_deadline_in_ms(c->timeout_ms);
    return ncclSuccess;
}

/* The others may have failed, and the bootstrap has better reasons than the network. */
static ncclResult_t ask_after(const struct kl_reducer *r)
{
    const struct kl_reducer_config *c = &r->config;
    char nothing;
    bool here;

    for (int i = 0; i < c->n; i++)
        if (i != c->own) KL_TRY(kl_bootstrap_poll(c->bootstrap, c->ranks[i], c->tag, &nothing, 0, &here));
    return ncclInProgress;
}

static ncclResult_t join(struct kl_reducer *r)
{
    const struct kl_reducer_config *c = &r->config;

    KL_TRY(receive_handles(r));
    struct kl_collnet_end me = end_of(r);
    ncclResult_t rc = c->collnet->connect(r->device, &me, r->handle, r->listener, &r->link->group);
    kl_key_wipe(&me.secret);
    if (rc == ncclInProgress) return ask_after(r);
    KL_TRY(rc);
    c->collnet->close_listen(r->listener);
    r->listener = NULL;
    r->link->connected = r->link->send.ready = r->link->recv.ready = true;
    return ncclSuccess;
}

enum kl_progress kl_reducer_progress(struct kl_reducer *r, ncclResult_t *rc)
{
    if (r->ready) return KL_DONE;
    ncclResult_t got = join(r);
    if (got == ncclInProgress) return KL_STALLED;
    r->ready = !got;
    *rc = got;
    return KL_DONE;
}

int kl_reducer_blocked_on(const struct kl_reducer *r)
{
    const struct kl_reducer_config *c = &r->config;

    if (r->ready) return -1;
    return c->ranks[r->heard < c->n ? r->heard : c->own ? 0 : c->n - 1];
}

void kl_reducer_free(struct kl_reducer *r)
{
    if (!r) return;
    if (r->listener) r->config.collnet->close_listen(r->listener);
    kl_collnet_link_free(r->link);
    kl_key_wipe(&r->config.secret);
    free(r->handle);
    free(r->ranks);
    free(r);
}
