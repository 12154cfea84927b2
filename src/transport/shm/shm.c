/* SPDX-License-Identifier: Apache-2.0 */
/**
 * shm.c - ranks of one host: a fifo in a memory segment that both processes map.
 */
#include "base/error.h"
#include "transport/transport.h"

#include <unistd.h>

static const char *shm_refuses(const struct kl_pair_facts *facts)
{
    if (facts->a->host != facts->b->host) return "the ranks are in different hosts";
    if (facts->shm_refusal) return facts->shm_refusal;
    if (facts->a->memory != facts->b->memory)
        return "the processes cannot reach each other (another network namespace)";
    return NULL;
}

static void shm_free(struct kl_connector *connector)
{
    if (connector->offered) kl_fdshare_withdraw(&connector->ticket);
    kl_segment_close(&connector->segment);
}

static ncclResult_t shm_setup(struct kl_connector *connector, const struct kl_fifo_shape *shape,
                              struct kl_connect_record *record)
{
    ncclResult_t rc;
    size_t bytes = kl_fifo_size(shape->nslots, shape->slot_bytes);

    KL_TRY(kl_segment_create(&connector->segment, "kolo-fifo", bytes));
    kl_fifo_init(connector->segment.base, shape->nslots, shape->slot_bytes);
    KL_TRY_OR(rc, failed, kl_fifo_attach_rx(&connector->rx, connector->segment.base, connector->segment.bytes, false));
    KL_TRY_OR(rc, failed, kl_fdshare_offer(connector->segment.fd, &connector->ticket));
    connector->offered = true;
    record->ticket = connector->ticket;
    record->bytes = bytes;
    return ncclSuccess;
failed:
    shm_free(connector);
    return rc;
}

static ncclResult_t shm_connect(struct kl_connector *connector, const struct kl_connect_record *record,
                                uint64_t deadline)
{
    ncclResult_t rc;
    int fd;

    KL_TRY(kl_fdshare_redeem(&record->ticket, deadline, &fd));
    KL_TRY(kl_segment_attach(&connector->segment, fd, record->bytes));
    KL_TRY_OR(rc, failed, kl_fifo_attach_tx(&connector->tx, connector->segment.base, connector->segment.bytes, false));
    return ncclSuccess;
failed:
    kl_segment_close(&connector->segment);
    return rc;
}

static void shm_settle(struct kl_connector *connector)
{
    if (connector->offered) kl_fdshare_withdraw(&connector->ticket);
    connector->offered = false;
    close(connector->segment.fd); /* the mapping is enough, and descriptors are scarce */
    connector->segment.fd = -1;
}

const struct kl_transport kl_transport_shm = {
    .name = "SHM",
    .refuses = shm_refuses,
    .setup = shm_setup,
    .connect = shm_connect,
    .settle = shm_settle,
    .free = shm_free,
};
