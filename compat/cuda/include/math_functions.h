/* SPDX-License-Identifier: Apache-2.0 */
/** math_functions.h - functions on numbers, which cuda_runtime.h has. */
#include "cuda_runtime.h"
