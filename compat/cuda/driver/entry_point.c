/* SPDX-License-Identifier: Apache-2.0 */
/**
 * entry_point.c - functions by name and version: the newest that the version asked for had.
 *
 * Variants for a default stream of each thread are the ordinary ones here; what is asked for with stream 0 runs on the legacy stream.
 */
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/driver/entry_points.h"

#include <string.h>

/* Unknown names are no error where the caller can be told so. */
CUresult cuGetProcAddress(const char *symbol, void **function, int version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult *found)
{
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    if (!symbol || !function || version > CUDA_VERSION || flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
        return CUDA_ERROR_INVALID_VALUE;
    *function = NULL;
    for (size_t i = 0; i < kl_cu_entry_count; i++) {
        const struct kl_cu_entry *e = &kl_cu_entries[i];

        if (strcmp(e->name, symbol) != 0) continue;
        if (e->version <= version) memcpy(function, &e->function, sizeof *function);
        status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
    }
    if (found) *found = status;
    return found || !status ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
