/* SPDX-License-Identifier: Apache-2.0 */
/** reset.h - a device as it was at the begin. What has failed for good stays: on a GPU, too, the process has to end. */
#ifndef KL_CUDA_RESET_H
#define KL_CUDA_RESET_H

#include "compat/cuda/core/state.h"

/** Wait for its work, then free its memory, streams and events. */
cudaError_t kl_cuda_reset(int device);

#endif
