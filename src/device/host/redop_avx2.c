/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in AVX2. */
#define KL_REDOP_KERNELS kl_redop_avx2
#include "device/host/redop_kernels.h"
