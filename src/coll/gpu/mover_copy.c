/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between the buffers of ranks by copy engines: a worker copies the data that its own ranks send. */
#include "coll/gpu/mover.h"

#include <stdio.h>

/* In place, two ranks exchange their parts at once. */
static bool serves(const struct kl_gpu_share *s)
{
    if (s->task->func == KL_FUNC_ALL_TO_ALL)
        for (int r = 0; r < s->ranks; r++)
            if (s->op[r]->task->send == s->op[r]->task->recv) return false;
    return !kl_func_info[s->task->func].reduces;
}

static ncclResult_t copy(const struct kl_gpu_share *s, const void *from, void *to, size_t bytes)
{
    const struct kl_cuda_driver *driver = s->worker->context->driver;

    if (from == to || !bytes) return ncclSuccess;
    KL_CUDA_TRY(driver, cuMemcpyAsync((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, s->stream),
                "a copy of %zu bytes on device %d", bytes, s->worker->context->device);
    return ncclSuccess;
}

/* Part `number` of a buffer. */
static char *part(const void *buffer, size_t number, size_t bytes)
{
    return (char *)(uintptr_t)buffer + number * bytes;
}

static ncclResult_t move_parts_of(const struct kl_gpu_share *s, int rank)
{
    const struct kl_task *t = s->op[rank]->task;
    const struct kl_func_info *info = &kl_func_info[t->func];
    const size_t bytes = t->count * s->bytes;

    for (int r = 0; r < s->ranks; r++)
        KL_TRY(copy(s, part(t->send, info->send_parts ? (size_t)r : 0, bytes),
                    part(s->op[r]->task->recv, info->recv_parts ? (size_t)rank : 0, bytes), bytes));
    return ncclSuccess;
}

static ncclResult_t move(const struct kl_gpu_share *s)
{
    if (kl_func_is_message(s->task->func))
        return copy(s, s->op[0]->task->send, s->op[1]->task->recv, s->task->count * s->bytes);
    for (int r = 0; r < s->ranks; r++)
        if (kl_task_reads(s->op[r]->task, r) && kl_gpu_is_own(s, r)) KL_TRY(move_parts_of(s, r));
    return ncclSuccess;
}

const struct kl_gpu_mover kl_gpu_mover_copy = {.name = "copy", .serves = serves, .move = move};
