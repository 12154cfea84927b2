/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/gpu/offers.h"

#include "base/clock.h"
#include "coll/gpu/peers.h"

#include <stdio.h>
#include <time.h>

enum { NAP_NS = 50000 };

ncclResult_t kl_gpu_offer(struct kl_gpu_offers *offers, uint32_t turn, int worker, const struct kl_cuda_context *c,
                          uint64_t at, const struct kl_gpu_facts *facts)
{
    struct kl_gpu_export_handle *memory = &offers->gpu[worker][turn % KL_OFFERS_TURNS].memory;

    if (at && !kl_gpu_far_export(c, (const void *)(uintptr_t)at, memory))
        return KL_FAIL(ncclUnhandledCudaError, "other processes cannot map memory of device %d", c->device);
    if (facts) offers->gpu[worker][turn % KL_OFFERS_TURNS].facts = *facts;
    kl_store_release(&offers->gpu[worker][turn % KL_OFFERS_TURNS].turn, turn); /* pairs with kl_gpu_offers_test */
    return ncclSuccess;
}

bool kl_gpu_offers_lack(const struct kl_gpu_offers *offers, uint32_t turn, int worker)
{
    return kl_load_acquire(&offers->gpu[worker][turn % KL_OFFERS_TURNS].turn) != turn; /* pairs with kl_gpu_offer */
}

ncclResult_t kl_gpu_offers_test(struct kl_gpu_offers *offers, uint32_t turn, int nworkers, bool *there)
{
    *there = false;
    if (kl_load_acquire(&offers->broken)) /* pairs with kl_gpu_offers_break */
        return KL_FAIL(ncclRemoteError, "the process of another GPU has failed to make memory for kernels of others");
    for (int w = 0; w < nworkers; w++)
        if (kl_gpu_offers_lack(offers, turn, w)) return ncclSuccess;
    *there = true;
    return ncclSuccess;
}

ncclResult_t kl_gpu_offers_await(struct kl_gpu_offers *offers, uint32_t turn, int nworkers)
{
    const uint64_t deadline = kl_deadline_in_ms((uint64_t)KL_GPU_PEERS_MS * (uint64_t)nworkers);
    bool there;

    for (;;) {
        KL_TRY(kl_gpu_offers_test(offers, turn, nworkers, &there));
        if (there) return ncclSuccess;
        if (kl_deadline_passed(deadline))
            return KL_FAIL(ncclRemoteError, "the process of another GPU has not made memory for kernels of others");
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

const struct kl_gpu_facts *kl_gpu_offers_facts(const struct kl_gpu_offers *offers, uint32_t turn, int worker)
{
    return &offers->gpu[worker][turn % KL_OFFERS_TURNS].facts;
}

ncclResult_t kl_gpu_offers_map(const struct kl_gpu_offers *offers, uint32_t turn, int worker,
                               const struct kl_cuda_context *c, uint64_t *at)
{
    const struct kl_gpu_export_handle *memory = &offers->gpu[worker][turn % KL_OFFERS_TURNS].memory;

    KL_CUDA_TRY(c->driver, cuIpcOpenMemHandle(at, memory->handle, KL_CU_IPC_PEER_ACCESS),
                "memory of another GPU, for device %d", c->device);
    *at += memory->offset;
    return ncclSuccess;
}

void kl_gpu_offers_break(struct kl_gpu_offers *offers)
{
    if (offers) kl_store_release(&offers->broken, 1); /* pairs with kl_gpu_offers_test */
}
