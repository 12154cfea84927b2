/* SPDX-License-Identifier: Apache-2.0 */
/** channel_descriptor.h - channel formats, which cuda_runtime.h has. */
#include "cuda_runtime.h"
