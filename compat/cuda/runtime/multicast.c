/* SPDX-License-Identifier: Apache-2.0 */
/** multicast.c - multicast objects in kernels: the copies that instructions access. */
#include "compat/cuda/core/multicast.h"

#include "compat/cuda/engine/engine.h"
#include "compat/cuda/include/kolo_cuda/abi.h"

char *__koloMulticast(const void *address, size_t bytes, unsigned *count, size_t *stride)
{
    struct kl_cuda_copies copies;

    if ((uintptr_t)address % bytes)
        kl_engine_refuse_access(address, cudaErrorMisalignedAddress,
                                "a multimem instruction at an address that is not aligned to its size");
    const char *why = kl_cuda_multicast_copies(address, bytes, &copies);
    if (why) kl_engine_refuse_access(address, cudaErrorIllegalAddress, why);
    *count = copies.count;
    *stride = copies.stride;
    return copies.first;
}
