/* SPDX-License-Identifier: Apache-2.0 */
/** older.c - older names of current functions. */
#include "compat/cuda/driver/driver.h"

#undef cuCtxDestroy
#undef cuCtxPushCurrent
#undef cuCtxPopCurrent
#undef cuStreamDestroy
#undef cuEventDestroy
#undef cuEventElapsedTime
#undef cuDeviceGetUuid
#undef cuDevicePrimaryCtxRelease
#undef cuDevicePrimaryCtxReset
#undef cuDevicePrimaryCtxSetFlags
#undef cuMemHostRegister
#undef cuIpcOpenMemHandle
#undef cuStreamWaitValue32
#undef cuStreamWriteValue32
#undef cuStreamWaitValue64
#undef cuStreamWriteValue64
#undef cuCtxCreate

#define OLDER(name, parameters, call)                                                                                  \
    __attribute__((visibility("default"))) CUresult name parameters;                                                   \
    CUresult name parameters                                                                                           \
    {                                                                                                                  \
        return call;                                                                                                   \
    }

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);

OLDER(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device), cuCtxCreate_v2(context, flags, device))
OLDER(cuCtxDestroy, (CUcontext context), cuCtxDestroy_v2(context))
OLDER(cuCtxPushCurrent, (CUcontext context), cuCtxPushCurrent_v2(context))
OLDER(cuCtxPopCurrent, (CUcontext * context), cuCtxPopCurrent_v2(context))
OLDER(cuStreamDestroy, (CUstream stream), cuStreamDestroy_v2(stream))
OLDER(cuEventDestroy, (CUevent event), cuEventDestroy_v2(event))
OLDER(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), cuEventElapsedTime_v2(ms, start, end))
OLDER(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device), cuDeviceGetUuid_v2(uuid, device))
OLDER(cuDevicePrimaryCtxRelease, (CUdevice device), cuDevicePrimaryCtxRelease_v2(device))
OLDER(cuDevicePrimaryCtxReset, (CUdevice device), cuDevicePrimaryCtxReset_v2(device))
OLDER(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags), cuDevicePrimaryCtxSetFlags_v2(device, flags))
OLDER(cuMemHostRegister, (void *ptr, size_t bytes, unsigned flags), cuMemHostRegister_v2(ptr, bytes, flags))
OLDER(cuIpcOpenMemHandle, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned flags),
      cuIpcOpenMemHandle_v2(ptr, handle, flags))
OLDER(cuStreamWaitValue32, (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned flags),
      cuStreamWaitValue32_v2(stream, ptr, value, flags))
OLDER(cuStreamWriteValue32, (CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned flags),
      cuStreamWriteValue32_v2(stream, ptr, value, flags))
OLDER(cuStreamWaitValue64, (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags),
      cuStreamWaitValue64_v2(stream, ptr, value, flags))
OLDER(cuStreamWriteValue64, (CUstream stream, CUdeviceptr ptr, cuuint64_t value, unsigned flags),
      cuStreamWriteValue64_v2(stream, ptr, value, flags))
