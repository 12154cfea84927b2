/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/order.h"

static int number_of(const struct kl_gpu_team *team, const struct kl_gpu_worker *w)
{
    return (int)(w - team->worker);
}

static ncclResult_t wait_for(const struct kl_gpu_worker *w, kl_cu_event event)
{
    KL_CUDA_TRY(w->context->driver, cuStreamWaitEvent(w->stream, event, 0), "device %d", w->context->device);
    return ncclSuccess;
}

/* Each call once. */
static ncclResult_t wait_for_call(struct kl_gpu_team *team, const struct kl_gpu_worker *w, struct kl_gpu_call *call)
{
    const uint64_t bit = (uint64_t)1 << number_of(team, w);

    if (!call) return ncclSuccess;
    if (call->waited & bit) return ncclSuccess;
    call->waited |= bit;
    return wait_for(w, call->ready);
}

ncclResult_t kl_gpu_wait_for_workers(struct kl_gpu_team *team, struct kl_gpu_worker *w)
{
    if (team->apart) return ncclSuccess;
    for (int i = 0; i < team->nworkers; i++) {
        struct kl_gpu_worker *other = &team->worker[i];
        if (other == w || !other->context || w->seen[i] == other->collective) continue;
        w->seen[i] = other->collective;
        KL_TRY(wait_for(w, other->end[other->collective % KL_GPU_ENDS]));
    }
    return ncclSuccess;
}

ncclResult_t kl_gpu_wait_for_all(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n)
{
    bool several = team->far != NULL;

    if (team->apart) return ncclSuccess;
    for (int r = 0; r < n; r++) {
        several |= op[r]->call && op[r]->call->nops > 1;
        KL_TRY(wait_for_call(team, w, op[r]->call));
    }
    return several ? kl_gpu_wait_for_workers(team, w) : ncclSuccess;
}

ncclResult_t kl_gpu_record_end(struct kl_gpu_team *team, struct kl_gpu_worker *w, struct kl_gpu_op *const *op, int n)
{
    const uint64_t end = w->ends + 1;

    if (team->apart) return ncclSuccess;
    KL_CUDA_TRY(w->context->driver, cuEventRecord(w->end[end % KL_GPU_ENDS], w->stream), "device %d",
                w->context->device);
    w->ends = end;
    if (!kl_func_is_message(op[0]->task->func)) w->collective = end;
    for (int r = 0; r < n; r++) {
        if (!op[r]->call) continue;
        op[r]->call->used |= (uint64_t)1 << number_of(team, w);
        op[r]->call->end[number_of(team, w)] = end;
    }
    return ncclSuccess;
}
