/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/buffers.h"

void kl_gpu_buffers_of(const struct kl_task *t, int rank, int nranks, struct kl_gpu_buffer buffer[KL_GPU_BUFFERS])
{
    const struct kl_func_info *info = &kl_func_info[t->func];
    const size_t element = kl_type_bytes(t->type), one = t->count * element, all = one * (size_t)nranks;

    buffer[KL_GPU_SEND] = (struct kl_gpu_buffer){t->send, info->send_parts ? all : one, "the send buffer"};
    buffer[KL_GPU_RECV] = (struct kl_gpu_buffer){t->recv, info->recv_parts ? all : one, "the receive buffer"};
    buffer[KL_GPU_FACTOR] = (struct kl_gpu_buffer){t->scalar, t->scalar ? element : 0, "the factor"};
    if (!kl_task_reads(t, rank)) buffer[KL_GPU_SEND].bytes = 0;
    if (!kl_task_writes(t, rank)) buffer[KL_GPU_RECV].bytes = 0;
}
