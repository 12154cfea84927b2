/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in instructions every processor of the architecture has. */
#define KL_REDOP_KERNELS kl_redop_baseline
#include "device/host/redop_kernels.h"
