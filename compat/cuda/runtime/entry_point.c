/* SPDX-License-Identifier: Apache-2.0 */
/**
 * entry_point.c - the driver's functions by name: from libcuda.so.1 beside this library.
 */
#include "compat/cuda/runtime/entry.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

typedef int (*get_proc_address_fn)(const char *symbol, void **function, int version, uint64_t flags, int *found);

static get_proc_address_fn get_proc_address;

static void open_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

    if (driver) *(void **)&get_proc_address = dlsym(driver, "cuGetProcAddress_v2");
}

/* A missing function is no error: NULL, and *found has the reason. */
static cudaError_t look_up(const char *symbol, void **function, int version, unsigned long long flags,
                           enum cudaDriverEntryPointQueryResult *found)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int status = cudaDriverEntryPointSymbolNotFound;

    if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream) return cudaErrorInvalidValue;
    pthread_once(&once, open_driver);
    if (!get_proc_address) return cudaErrorInsufficientDriver;
    *function = NULL;
    int rc = get_proc_address(symbol, function, version, flags, &status);
    if (rc == cudaErrorInvalidValue) return cudaErrorInvalidValue;
    if (found) *found = (enum cudaDriverEntryPointQueryResult)status;
    return !found && !*function ? cudaErrorSymbolNotFound : cudaSuccess;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned int version,
                                             unsigned long long flags, enum cudaDriverEntryPointQueryResult *found)
{
    return kl_cudart_done(look_up(symbol, function, (int)version, flags, found));
}
KL_CUDART_ENTRY(cudaGetDriverEntryPointByVersion);

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *found)
{
    return kl_cudart_done(look_up(symbol, function, 13000, flags, found));
}
KL_CUDART_ENTRY_13(cudaGetDriverEntryPoint);

static cudaError_t entry_point_12(const char *symbol, void **function, unsigned long long flags,
                                  enum cudaDriverEntryPointQueryResult *found)
{
    return kl_cudart_done(look_up(symbol, function, 12080, flags, found));
}
KL_CUDART_ENTRY_12(cudaGetDriverEntryPoint, entry_point_12);
