/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/error.h"

#include <stddef.h>

static const struct kl_cuda_error table[] = {
#include "compat/cuda/core/errors.inc"
};

const struct kl_cuda_error *kl_cuda_error(int number)
{
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].number == number) return &table[i];
    return NULL;
}

static _Thread_local bool for_driver;

void kl_cuda_driver_call(bool begins)
{
    for_driver = begins;
}

bool kl_cuda_in_driver_call(void)
{
    return for_driver;
}
