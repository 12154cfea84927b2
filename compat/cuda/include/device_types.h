/* SPDX-License-Identifier: Apache-2.0 */
/** device_types.h - types of device code, which cuda_runtime.h has. */
#include "cuda_runtime.h"
