/* SPDX-License-Identifier: Apache-2.0 */
/** symbol.c - variables of devices: host code names them, and each device has a copy. */
#include "compat/cuda/engine/engine.h"

#include "compat/cuda/runtime/copy.h"
#include "compat/cuda/runtime/entry.h"

static cudaError_t find(const void *symbol, char **address, size_t *bytes)
{
    void *at;

    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY((cudaError_t)kl_engine_find_variable(symbol, kl_cuda_current(), &at, bytes, NULL));
    *address = at;
    return cudaSuccess;
}

cudaError_t kl_cudart_symbol_part(const void *symbol, size_t offset, size_t count, char **address)
{
    size_t bytes;

    KL_CUDA_TRY(find(symbol, address, &bytes));
    if (offset > bytes || count > bytes - offset) return cudaErrorInvalidValue;
    *address += offset;
    return cudaSuccess;
}

cudaError_t cudaGetSymbolAddress(void **ptr, const void *symbol)
{
    char *address;
    size_t bytes;
    cudaError_t rc = ptr ? find(symbol, &address, &bytes) : cudaErrorInvalidValue;

    if (!rc) *ptr = address;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGetSymbolAddress);

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    char *address;

    return kl_cudart_done(bytes ? find(symbol, &address, bytes) : cudaErrorInvalidValue);
}
KL_CUDART_ENTRY(cudaGetSymbolSize);

cudaError_t kl_cudart_to_symbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                                enum cudaMemcpyKind kind, cudaStream_t stream, enum kl_cuda_how how)
{
    char *to;
    bool legal = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    cudaError_t rc = legal ? kl_cudart_symbol_part(symbol, offset, bytes, &to) : cudaErrorInvalidMemcpyDirection;

    if (kind == cudaMemcpyDefault) kind = cudaMemcpyHostToDevice; /* where it goes is known */
    return rc ? kl_cudart_done(rc) : kl_cudart_copy(to, from, bytes, kind, stream, how);
}

cudaError_t kl_cudart_from_symbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
                                  cudaStream_t stream, enum kl_cuda_how how)
{
    char *from;
    bool legal = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice || kind == cudaMemcpyDefault;
    cudaError_t rc = legal ? kl_cudart_symbol_part(symbol, offset, bytes, &from) : cudaErrorInvalidMemcpyDirection;

    if (kind == cudaMemcpyDefault) kind = cudaMemcpyDeviceToHost;
    return rc ? kl_cudart_done(rc) : kl_cudart_copy(to, from, bytes, kind, stream, how);
}

cudaError_t cudaMemcpyToSymbol(const void *symbol, const void *from, size_t bytes, size_t offset,
                               enum cudaMemcpyKind kind)
{
    return kl_cudart_to_symbol(symbol, from, bytes, offset, kind, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpyToSymbol);

cudaError_t cudaMemcpyFromSymbol(void *to, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind)
{
    return kl_cudart_from_symbol(to, symbol, bytes, offset, kind, NULL, KL_CUDA_SYNC);
}
KL_CUDART_ENTRY(cudaMemcpyFromSymbol);

cudaError_t cudaMemcpyToSymbolAsync(const void *symbol, const void *from, size_t bytes, size_t offset,
                                    enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return kl_cudart_to_symbol(symbol, from, bytes, offset, kind, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpyToSymbolAsync);

cudaError_t cudaMemcpyFromSymbolAsync(void *to, const void *symbol, size_t bytes, size_t offset,
                                      enum cudaMemcpyKind kind, cudaStream_t stream)
{
    return kl_cudart_from_symbol(to, symbol, bytes, offset, kind, stream, KL_CUDA_ASYNC);
}
KL_CUDART_ENTRY(cudaMemcpyFromSymbolAsync);
