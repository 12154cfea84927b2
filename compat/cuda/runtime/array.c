/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/array.h"

size_t kl_cudart_texel_bytes(const struct koloCudaTexture *view)
{
    return (size_t)view->bits / 8 * (size_t)view->channels;
}

bool kl_cudart_array_volume(cudaArray_const_t array, struct cudaPos at, struct kl_cuda_volume *volume, size_t *texel)
{
    if (!array) return false;
    *texel = kl_cudart_texel_bytes(&array->view);
    *volume = (struct kl_cuda_volume){.base = array->view.base,
                                      .pitch = array->view.pitch,
                                      .height = (size_t)array->view.size[1],
                                      .x = at.x * *texel,
                                      .y = at.y,
                                      .z = at.z};
    return true;
}
