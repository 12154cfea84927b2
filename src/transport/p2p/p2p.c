/* SPDX-License-Identifier: Apache-2.0 */
/**
 * p2p.c - ranks of one process: the sender writes into the receiver's fifo, or lets it read the sender's own memory.
 *
 * Ranks of different hosts that share an NVLink domain are never in one process; kl_transport_p2p_hosts joins them.
 */
#include "base/error.h"
#include "transport/transport.h"

#include <pthread.h>
#include <sys/mman.h>

/** A fifo in ordinary memory. The receiver makes it, the sender joins it by number; the last of the two frees it. */
struct kl_fifo_block {
    alignas(KL_LINE) struct kl_fifo_block *next; /* in the list of offers; guarded by its lock, as the next two */
    uint64_t number;
    uint32_t users;
    size_t bytes, fifo_bytes; /* mapped; of them the fifo's */
    alignas(KL_LINE) struct kl_fifo fifo;
};

/* Blocks of this process that wait for their sender. A number is only valid in this process, until it is withdrawn. */
static struct {
    pthread_mutex_t lock;
    struct kl_fifo_block *first; /* under lock */
    uint64_t last_number;        /* under lock */
} offers = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void offer(struct kl_fifo_block *block)
{
    pthread_mutex_lock(&offers.lock);
    block->number = ++offers.last_number;
    block->next = offers.first;
    offers.first = block;
    pthread_mutex_unlock(&offers.lock);
}

/* Under the lock: the link that leads to the block, or to NULL. */
static struct kl_fifo_block **find_offer(uint64_t number)
{
    struct kl_fifo_block **link = &offers.first;

    while (*link && (*link)->number != number) link = &(*link)->next;
    return link;
}

static struct kl_fifo_block *join(uint64_t number)
{
    pthread_mutex_lock(&offers.lock);
    struct kl_fifo_block *block = *find_offer(number);
    if (block) block->users++;
    pthread_mutex_unlock(&offers.lock);
    return block;
}

static void withdraw(uint64_t number)
{
    pthread_mutex_lock(&offers.lock);
    struct kl_fifo_block **link = find_offer(number);
    if (*link) *link = (*link)->next;
    pthread_mutex_unlock(&offers.lock);
}

static void leave(struct kl_fifo_block *block)
{
    pthread_mutex_lock(&offers.lock);
    uint32_t left = --block->users;
    pthread_mutex_unlock(&offers.lock);
    if (!left) munmap(block, block->bytes);
}

/* Host devices have no NVLink: one machine emulates all hosts of a domain, and its processes share memory. */
static enum kl_refusal refuses_hosts(const struct kl_pair_facts *facts)
{
    if (facts->a->fabric != facts->b->fabric || !facts->ruled) return KL_REFUSAL_OTHER_HOST;
    if (!facts->why.p2p.p2p) return KL_REFUSAL_P2P;
    return facts->a->memory == facts->b->memory ? KL_REFUSAL_NONE : KL_REFUSAL_OTHER_MEMORY;
}

static enum kl_refusal p2p_refuses(const struct kl_pair_facts *facts)
{
    if (facts->a->host != facts->b->host) return refuses_hosts(facts);
    if (facts->ruled && !facts->why.p2p.p2p) return KL_REFUSAL_P2P;
    if (facts->a->process != facts->b->process && !facts->mappable) return KL_REFUSAL_NOT_MAPPABLE;
    return KL_REFUSAL_NONE;
}

/* Zero pages, allocated at the first touch: most fifos use few of their slots. */
static struct kl_fifo_block *make_block(const struct kl_fifo_shape *shape)
{
    size_t fifo_bytes = kl_fifo_size(shape), bytes = offsetof(struct kl_fifo_block, fifo) + fifo_bytes;
    struct kl_fifo_block *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (block == MAP_FAILED) return NULL;
    block->bytes = bytes;
    block->fifo_bytes = fifo_bytes;
    block->users = 1;
    kl_fifo_init(&block->fifo, shape);
    return block;
}

static ncclResult_t p2p_setup(struct kl_connector *connector, const struct kl_fifo_shape *shape,
                              struct kl_connect_info *info)
{
    struct kl_fifo_block *block = make_block(shape);

    if (!block) return KL_NOMEM("a connection");
    offer(block);
    connector->p2p.block = block;
    info->number = block->number;
    info->bytes = block->bytes;
    return kl_fifo_attach_rx(&connector->rx, &block->fifo, block->fifo_bytes, true);
}

static ncclResult_t p2p_connect(struct kl_connector *connector, const struct kl_connect_info *info, uint64_t deadline,
                                struct kl_connect_reply *reply)
{
    struct kl_fifo_block *block = join(info->number);

    (void)deadline, (void)reply;
    if (!block) return KL_FAIL(ncclRemoteError, "its memory is not offered any more");
    ncclResult_t rc = kl_fifo_attach_tx(&connector->tx, &block->fifo, block->fifo_bytes, true);
    if (rc) {
        leave(block);
        return rc;
    }
    if (connector->zcopy_from) connector->tx.zcopy_from = connector->zcopy_from;
    connector->p2p.block = block;
    return ncclSuccess;
}

static ncclResult_t p2p_settle(struct kl_connector *connector, uint64_t deadline, const struct kl_connect_reply *reply)
{
    (void)deadline, (void)reply;
    withdraw(connector->p2p.block->number);
    return ncclSuccess;
}

static void p2p_free(struct kl_connector *connector)
{
    if (!connector->p2p.block) return;
    if (!connector->sends) withdraw(connector->p2p.block->number); /* nothing to do if settled */
    leave(connector->p2p.block);
}

const struct kl_transport kl_transport_p2p = {
    .name = "P2P",
    .via = "P2P/direct",
    .between_hosts = &kl_transport_p2p_hosts,
    .refuses = p2p_refuses,
    .setup = p2p_setup,
    .connect = p2p_connect,
    .settle = p2p_settle,
    .free = p2p_free,
};
