/* SPDX-License-Identifier: Apache-2.0 */
/** reset.h - return a device to its initial state. A sticky failure stays: as on a GPU, the process has to end. */
#ifndef KL_CUDA_RESET_H
#define KL_CUDA_RESET_H

#include "compat/cuda/core/state.h"

/** Wait for its work, then free its memory, streams and events. */
cudaError_t kl_cuda_reset(int device);

#endif
