/* SPDX-License-Identifier: Apache-2.0 */
/** device.h - functions that kernels use without including anything. Included by cuda_runtime.h under kolo-nvcc; C++17. */
#ifndef KOLO_CUDA_DEVICE_H
#define KOLO_CUDA_DEVICE_H

#if defined(__cplusplus)

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <math.h>
#include <time.h>
#include <new>

/* clang-format off */
#include "graph.h"
#include "index.h"
#include "launch.h"
#include "sync.h"
#include "atomic.h"
#include "loops.h"
#include "access.h"
#include "arithmetic.h"
#include "integer.h"
#include "ptx.h"
#include "texture.h"
/* clang-format on */

/** printf in kernels gives the number of arguments. */
template <class... A> static inline int __kolo_printf(const char *format, A... arguments)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)::printf(format, arguments...);
#pragma GCC diagnostic pop
    return (int)sizeof...(A);
}

/* Lambdas of the device are ordinary ones here, whose types and results every compiler knows. */
#define __nv_is_extended_device_lambda_closure_type(type)               false
#define __nv_is_extended_host_device_lambda_closure_type(type)          false
#define __nv_is_extended_device_lambda_with_preserved_return_type(type) false

#if !defined(__clang__)
#define __builtin_assume(condition) ((void)0)
#endif

#endif

#endif
