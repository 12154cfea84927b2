/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of a program on GPUs (on_gpus.c): memory of the stand-in's devices, and memory that aborted communicators shared. */
#include "tests/leftovers.h"

#include <stddef.h>

struct kolo_test_keep kolo_test_keeps[] = {{"/memfd:kolo-cuda-", 64, 0}, {"/memfd:kolo-fifo", 16, 0}, {NULL, 0, 0}};
