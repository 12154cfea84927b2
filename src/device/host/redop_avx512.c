/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in AVX-512 (F, BW, VL, DQ). */
#define KL_REDOP_KERNELS kl_redop_avx512
#include "device/host/redop_kernels.h"
