/* SPDX-License-Identifier: Apache-2.0 */
#include "transport/net/link.h"
#include "transport/net/gpu_memory.h"
#include "transport/net/profile.h"

#include "base/error.h"
#include "os/fault_inject.h"
#include "transport/ll.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* Zero pages, allocated at the first touch: for a fifo of `bytes`, and for flagged lines if its shape has any. */
static ncclResult_t make(const struct kl_net *net, const struct kl_fifo_shape *shape, size_t bytes,
                         struct kl_net_link **link)
{
    struct kl_net_link *l = kl_inject_calloc(1, sizeof *l);
    size_t mapped = bytes + (shape->ll_bytes ? KL_NET_IN_FLIGHT * KL_LL_BYTES : 0);

    if (!l) return KL_NOMEM("a network connection");
    *l = (struct kl_net_link){.net = net, .mapped = mapped};
    *link = l;
    if (!mapped) return ncclSuccess;
    void *memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        free(l);
        return KL_NOMEM("the buffers of a network connection");
    }
    l->memory = memory;
    l->whole = (unsigned char *)memory + bytes;
    return ncclSuccess;
}

ncclResult_t kl_net_link_create(const struct kl_net *net, const struct kl_fifo_shape *shape, bool sends,
                                struct kl_net_link **link)
{
    size_t bytes = kl_fifo_size(shape);
    struct kl_net_link *l;

    KL_TRY(make(net, shape, bytes, &l));
    l->fifo = l->memory;
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

ncclResult_t kl_net_link_over(const struct kl_net *net, const struct kl_fifo_rx *rx, struct kl_net_link **link)
{
    KL_TRY(make(net, &rx->shape, 0, link));
    (*link)->fifo = rx->fifo;
    (*link)->out = *rx;
    return ncclSuccess;
}

ncclResult_t kl_net_link_describe(const struct kl_net_link *l, ncclResult_t rc, uint64_t step)
{
    char text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "%s", kl_error_text());
    return KL_FAIL(rc, "%.900s; channel %u, step %llu", text, l->number & 0xff, (unsigned long long)step);
}

void *kl_net_link_whole(const struct kl_net_link *l, uint64_t step)
{
    return l->whole + step % KL_NET_IN_FLIGHT * KL_LL_BYTES;
}

ncclResult_t kl_net_link_opened(struct kl_net_link *l)
{
    l->connected = true;
    if (!l->memory) return ncclSuccess;
    return l->net->reg_mr(l->connection, l->memory, l->mapped, KL_NET_HOST, &l->mr);
}

void *kl_net_link_mr(const struct kl_net_link *l, const void *data)
{
    uintptr_t at = (uintptr_t)data, start = (uintptr_t)l->memory;

    if (l->mr && at >= start && at - start < l->mapped) return l->mr;
    return l->gpu ? kl_net_gpu_memory_mr(l->gpu, data) : NULL;
}

void kl_net_link_cancel(struct kl_net_link *l)
{
    if (!l) return;
    if (l->connection && l->connected && !l->cancelled) {
        if (l->gpu) kl_net_gpu_memory_drop(l->gpu, l->net, l->connection); /* a plugin's are gone after a cancel */
        l->net->cancel(l->connection);
    }
    l->cancelled = true;
}

void kl_net_link_free(struct kl_net_link *l, bool sends)
{
    if (!l) return;
    kl_net_gpu_memory_free(l->gpu, l->net, l->connection);
    if (l->mr) (void)l->net->dereg_mr(l->connection, l->mr);
    if (l->connection) (sends ? l->net->close_send : l->net->close_recv)(l->connection);
    kl_net_profile_free(l->profile);
    if (l->memory) munmap(l->memory, l->mapped);
    free(l->loss);
    free(l);
}
