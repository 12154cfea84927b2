/* SPDX-License-Identifier: Apache-2.0 */
/** host_defines.h - words of CUDA, which cuda_runtime.h has. */
#include "cuda_runtime.h"
