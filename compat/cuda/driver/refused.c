/* SPDX-License-Identifier: Apache-2.0 */
/** refused.c - functions of the driver that CPUs cannot do: each returns CUDA_ERROR_NOT_SUPPORTED. */

#define REFUSED(name)                                                                                                  \
    __attribute__((visibility("default"))) int name(void);                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        return 801;                                                                                                    \
    }

#include "compat/cuda/driver/refused.inc"
