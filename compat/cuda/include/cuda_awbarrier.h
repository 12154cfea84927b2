/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_awbarrier.h - the barriers of cuda_awbarrier_primitives.h. */
#include "cuda_awbarrier_primitives.h"
