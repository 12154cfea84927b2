/* SPDX-License-Identifier: Apache-2.0 */
/** device_functions.h - functions of kernels, which cuda_runtime.h has. */
#include "cuda_runtime.h"
