/* SPDX-License-Identifier: Apache-2.0 */
/** entry_point.c - functions by name and version: the newest that the version asked for had. */
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/driver/entry_points.h"

#include <string.h>

static int (*with_own_stream(int (*function)(void)))(void)
{
    for (size_t i = 0; i < kl_cu_own_count; i++)
        if (kl_cu_own_entries[i].function == function) return kl_cu_own_entries[i].own;
    return function;
}

/* Unknown names are no error where the caller can be told so. */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *found)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    if (!symbol || !function || version > CUDA_VERSION || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    int (*chosen)(void) = NULL;
    for (size_t i = 0; i < kl_cu_entry_count; i++) {
        const struct kl_cu_entry *e = &kl_cu_entries[i];

        if (strcmp(e->name, symbol) != 0) continue;
        if (e->version <= version) chosen = e->function;
        status = chosen ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    if (chosen && flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) chosen = with_own_stream(chosen);
    memcpy(function, &chosen, sizeof *function);
    if (found) *found = status;
    return found || !status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

#undef cuGetProcAddress
__attribute__((visibility("default"))) CUresult cuGetProcAddress(const char *symbol, void **function, int version,
                                                                 cuuint64_t flags);
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags)
{
    return cuGetProcAddress_v2(symbol, function, version, flags, NULL);
}
