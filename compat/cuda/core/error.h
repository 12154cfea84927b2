/* SPDX-License-Identifier: Apache-2.0 */
/** error.h - the table of errors: number, the runtime's name, text. Names of the driver: driver/error.c. */
#ifndef KL_CUDA_ERROR_H
#define KL_CUDA_ERROR_H

#include <stdbool.h>

struct kl_cuda_error {
    int number;
    const char *name, *text;
};

/** NULL: no such number. */
const struct kl_cuda_error *kl_cuda_error(int number);

/** Functions of the runtime that this thread calls for the driver keep no last error: from true to false. */
void kl_cuda_driver_call(bool begins);
bool kl_cuda_in_driver_call(void);

#endif
