/* SPDX-License-Identifier: Apache-2.0 */
/**
 * image.h - code for GPUs: a library of its own beside this one, which holds an image that the driver loads.
 *
 * libkolo-cuda.so.0 has machine code of nvcc, libkolo-cuda-standin.so.0 the same sources for the stand-in's CPUs. They
 * are looked for in KOLO_CUDA_LIBRARY, beside the object with this code, in kolo/ there, then where the loader looks.
 *
 * Threads: any.
 */
#ifndef KL_DEVICE_CUDA_IMAGE_H
#define KL_DEVICE_CUDA_IMAGE_H

#include "device/cuda/driver.h"

/** Is the library with the code of this driver there? */
bool kl_cuda_image_exists(bool stand_in);

/** Load it, once in a process. */
ncclResult_t kl_cuda_image_load(kl_cu_library *library);

#endif
