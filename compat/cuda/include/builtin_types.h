/* SPDX-License-Identifier: Apache-2.0 */
/** builtin_types.h - the types of CUDA, which cuda_runtime.h has. */
#include "cuda_runtime_api.h"
