/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_test.h - what tests of the stand-in share. */
#ifndef KOLO_CUDA_TEST_H
#define KOLO_CUDA_TEST_H

#include "cuda_runtime_api.h"
#include "tests/kolo_test.h"

/** A call that must succeed; says which did not. */
#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t ok_rc = (call);                                                                                    \
        if (ok_rc) fail_msg("%s: %s", #call, cudaGetErrorName(ok_rc));                                                 \
    } while (0)

/** A call that must fail so. */
#define FAILS(code, call)                                                                                              \
    do {                                                                                                               \
        cudaError_t fails_rc = (call);                                                                                 \
        if (fails_rc != (code)) fail_msg("%s: %s, not %s", #call, cudaGetErrorName(fails_rc), #code);                  \
    } while (0)

#endif
