/* SPDX-License-Identifier: Apache-2.0 */
/**
 * pages.c - huge pages for the buffers of operations.
 */
#include "comm/launch.h"

ncclResult_t kl_comm_find_pages(ncclComm_t comm)
{
    const struct kl_hugepages_system system = kl_hugepages_system_of("/sys/kernel/mm/transparent_hugepage");

    if (!comm->config.huge_pages || comm->devices != &kl_host_devices) return ncclSuccess;
    return kl_hugepages_create(&system, &comm->pages);
}

void kl_comm_drop_pages(ncclComm_t comm)
{
    kl_hugepages_free(comm->pages);
    comm->pages = NULL;
}

struct buffer {
    const void *at;
    size_t bytes; /* 0: it is not used */
};

static bool is_within(struct buffer a, struct buffer b)
{
    const uintptr_t x = (uintptr_t)a.at, y = (uintptr_t)b.at;

    return x >= y && x + a.bytes <= y + b.bytes;
}

/* In place, one buffer is all or a part of the other: then it is used once. */
static void use(ncclComm_t comm, const struct kl_task *t)
{
    const struct kl_func_info *f = &kl_func_info[t->func];
    const size_t part = t->count * kl_comm_elem_bytes(comm, t), all = part * (size_t)comm->nranks;
    struct buffer send = {t->send, f->send_parts ? all : part}, recv = {t->recv, f->recv_parts ? all : part};

    if (!kl_task_reads(t, comm->rank)) send.bytes = 0;
    if (!kl_task_writes(t, comm->rank)) recv.bytes = 0;
    if (is_within(send, recv))
        send.bytes = 0;
    else if (is_within(recv, send))
        recv.bytes = 0;
    kl_hugepages_use(comm->pages, send.at, send.bytes);
    kl_hugepages_use(comm->pages, recv.at, recv.bytes);
}

void kl_comm_use_pages(ncclComm_t comm, uint64_t next)
{
    kl_hugepages_begin(comm->pages);
    for (uint64_t i = comm->cursor; i < next; i++) use(comm, kl_comm_task(comm, i));
}
