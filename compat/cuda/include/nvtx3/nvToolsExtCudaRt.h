/* SPDX-License-Identifier: Apache-2.0 */
/** nvtx3/nvToolsExtCudaRt.h - names for the runtime's objects, which do nothing here. */
#ifndef KOLO_CUDA_NVTX3_NVTOOLSEXTCUDART_H
#define KOLO_CUDA_NVTX3_NVTOOLSEXTCUDART_H

#include "../cuda_runtime_api.h"
#include "nvToolsExt.h"

#define nvtxNameCudaDeviceA(device, name) ((void)(device), (void)(name))
#define nvtxNameCudaStreamA(stream, name) ((void)(stream), (void)(name))
#define nvtxNameCudaEventA(event, name)   ((void)(event), (void)(name))
#define nvtxNameCudaDevice                nvtxNameCudaDeviceA
#define nvtxNameCudaStream                nvtxNameCudaStreamA
#define nvtxNameCudaEvent                 nvtxNameCudaEventA

#endif
