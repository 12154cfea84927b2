/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/link.h"

#include "base/error.h"
#include "transport/lines.h"

#include <stdlib.h>
#include <sys/mman.h>

ncclResult_t kl_net_link_create(const struct kl_net *net, const struct kl_fifo_shape *shape, bool sends,
                                struct kl_net_link **link)
{
    struct kl_net_link *l = calloc(1, sizeof *l);
    size_t fifo = kl_fifo_size(shape), bytes = fifo + (shape->ll_bytes ? KL_NET_IN_FLIGHT * KL_LINES_BYTES : 0);

    if (!l) return KL_NOMEM("a network connection");
    /* Zero pages that come into being when touched. */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(l);
        return KL_NOMEM("the buffers of a network connection");
    }
    *l = (struct kl_net_link){.net = net, .fifo = memory, .mapped = bytes, .whole = (unsigned char *)memory + fifo};
    kl_fifo_init(l->fifo, shape);
    ncclResult_t rc =
        sends ? kl_fifo_attach_rx(&l->out, l->fifo, bytes, true) : kl_fifo_attach_tx(&l->in, l->fifo, bytes, false);
    if (rc) {
        kl_net_link_free(l, sends);
        return rc;
    }
    *link = l;
    return ncclSuccess;
}

void *kl_net_link_whole(const struct kl_net_link *l, uint64_t step)
{
    return l->whole + step % KL_NET_IN_FLIGHT * KL_LINES_BYTES;
}

void kl_net_link_cancel(struct kl_net_link *l)
{
    if (!l) return;
    if (l->connection && l->connected && !l->cancelled) l->net->cancel(l->connection);
    l->cancelled = true;
}

void kl_net_link_free(struct kl_net_link *l, bool sends)
{
    if (!l) return;
    if (l->connection) (sends ? l->net->close_send : l->net->close_recv)(l->connection);
    munmap(l->fifo, l->mapped);
    free(l->loss);
    free(l);
}
