/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include "base/error.h"
#include "base/text.h"
#include "transport/pool.h"
#include "transport/shm/region.h"

#include <stdio.h>

/* In order of preference. */
const struct kl_transport *const kl_transports[] = {
    &kl_transport_p2p,
    &kl_transport_shm,
    &kl_transport_net,
    NULL,
};

const struct kl_transport *kl_transport_first(const struct kl_pair_facts *facts)
{
    for (int i = 0; kl_transports[i]; i++)
        if (!kl_transports[i]->refuses(facts)) return kl_transports[i];
    return NULL;
}

static void append_refusal(struct kl_text *to, const char *name, enum kl_refusal refusal, const struct kl_pair_why *why)
{
    char text[KL_WHY_TEXT];

    kl_text_add(to, "%s%s: %s", to->length ? "; " : "", name, kl_refusal_text(refusal, why, text));
}

ncclResult_t kl_transport_choose(const struct kl_pair_facts *facts, const struct kl_transport **transport,
                                 uint32_t *index)
{
    char refusals[512];
    struct kl_text text = kl_text_over(refusals, sizeof refusals);

    for (uint32_t i = 0; kl_transports[i]; i++) {
        enum kl_refusal why = kl_transports[i]->refuses(facts);
        if (!why) {
            bool one_host = facts->a->host == facts->b->host;
            *transport =
                one_host || !kl_transports[i]->between_hosts ? kl_transports[i] : kl_transports[i]->between_hosts;
            *index = i;
            return ncclSuccess;
        }
        append_refusal(&text, kl_transports[i]->name, why, &facts->why);
    }
    return KL_FAIL(ncclSystemError, "no transport connects rank %d (%s) and rank %d (%s): %s", facts->a->rank,
                   facts->a->host_name, facts->b->rank, facts->b->host_name, refusals);
}

/* ---- refusals ---- */

static const struct {
    const char *name, *text;
} refusals_known[KL_TRANSPORT_REFUSALS] = {
    [KL_REFUSAL_NONE] = {"allowed", "nothing speaks against it"},
    [KL_REFUSAL_OTHER_HOST] = {"other_host", "the ranks are in different hosts"},
    [KL_REFUSAL_NOT_MAPPABLE] = {"not_mappable", "host devices cannot map the memory of another process"},
    [KL_REFUSAL_OTHER_MEMORY] = {"other_namespace",
                                 "the ranks share no memory (another user or network namespace, or NCCL_SHM_DISABLE)"},
    [KL_REFUSAL_NO_NETWORK] = {"no_network", "there is no network that reaches both"},
};

const char *kl_refusal_name(enum kl_refusal refusal, const struct kl_pair_why *why)
{
    if (refusal == KL_REFUSAL_P2P) return kl_p2p_why_name(why->p2p.why);
    return refusal == KL_REFUSAL_SHM ? kl_shm_why_name(why->shm) : refusals_known[refusal].name;
}

const char *kl_refusal_text(enum kl_refusal refusal, const struct kl_pair_why *why, char text[KL_WHY_TEXT])
{
    if (refusal == KL_REFUSAL_P2P) return kl_p2p_why_text(&why->p2p, text);
    return refusal == KL_REFUSAL_SHM ? kl_shm_why_text(why->shm) : refusals_known[refusal].text;
}

/* ---- connectors ---- */

void kl_connector_revoke(struct kl_connector *connector)
{
    if (!connector->transport) return;
    if (connector->transport->revoke)
        connector->transport->revoke(connector);
    else if (connector->tx.fifo)
        kl_fifo_revoke(&connector->tx);
}

void kl_connector_leave(struct kl_connector *connector)
{
    if (connector->tx.fifo) kl_fifo_leave_tx(&connector->tx);
    if (connector->rx.fifo) kl_fifo_leave_rx(&connector->rx);
}

void kl_connector_free(struct kl_connector *connector)
{
    if (!connector->transport) return;
    connector->transport->free(connector);
    *connector = (struct kl_connector){.peer = connector->peer};
}

const char *kl_connector_state(const struct kl_connector *c, char *text, size_t size)
{
    if (!c->ready)
        snprintf(text, size, "%s rank %d by %s: not connected yet", c->sends ? "to" : "from", c->peer,
                 c->transport ? c->transport->name : "nothing");
    else if (c->sends)
        snprintf(text, size, "to rank %d by %s: %llu steps published, %llu of them gone", c->peer, c->transport->name,
                 (unsigned long long)c->tx.step, (unsigned long long)kl_load_relaxed(&c->tx.fifo->head));
    else
        snprintf(text, size, "from rank %d by %s: %llu steps taken, the next one is %s", c->peer, c->transport->name,
                 (unsigned long long)c->rx.step, kl_fifo_ready(&c->rx) ? "here" : "not here");
    return text;
}

void kl_common_fini(struct kl_common *common)
{
    kl_shm_home_free(common->home);
    if (common->pool_offered) kl_fdshare_withdraw(&common->pool_ticket);
    kl_pool_free(common->pool);
    kl_net_home_fini(&common->net);
    *common = (struct kl_common){.pool = NULL};
}
