/* SPDX-License-Identifier: Apache-2.0 */
/** cublas_api.h - cuBLAS's functions: all of cublas_v2.h. */
#include "cublas_v2.h"
