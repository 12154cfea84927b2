/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/transport.h"

#include "base/error.h"
#include "transport/pool.h"
#include "transport/shm/region.h"

#include <stdio.h>
#include <string.h>

/* Best first. */
const struct kl_transport *const kl_transports[] = {
    &kl_transport_p2p,
    &kl_transport_shm,
    NULL,
};

const struct kl_transport *kl_transport_first(const struct kl_pair_facts *facts)
{
    for (int i = 0; kl_transports[i]; i++)
        if (!kl_transports[i]->refuses(facts)) return kl_transports[i];
    return NULL;
}

/* The longest refusals fit: each is a phrase of this library. */
static void append_refusal(char *text, size_t size, const char *name, const char *why)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, "%s%s: %s", used ? "; " : "", name, why);
}

ncclResult_t kl_transport_choose(const struct kl_pair_facts *facts, const struct kl_transport **transport,
                                 uint32_t *index)
{
    char refusals[512] = "";

    for (uint32_t i = 0; kl_transports[i]; i++) {
        const char *why = kl_transports[i]->refuses(facts);
        if (!why) {
            *transport = kl_transports[i];
            *index = i;
            return ncclSuccess;
        }
        append_refusal(refusals, sizeof refusals, kl_transports[i]->name, why);
    }
    return KL_FAIL(ncclSystemError, "no transport connects rank %d (%s) and rank %d (%s): %s", facts->a->rank,
                   facts->a->host_name, facts->b->rank, facts->b->host_name, refusals);
}

void kl_connector_revoke(struct kl_connector *connector)
{
    if (connector->tx.fifo) kl_fifo_revoke(&connector->tx);
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

void kl_common_fini(struct kl_common *common)
{
    kl_shm_home_free(common->home);
    if (common->pool_offered) kl_fdshare_withdraw(&common->pool_ticket);
    kl_pool_free(common->pool);
    *common = (struct kl_common){.pool = NULL};
}
