/* SPDX-License-Identifier: Apache-2.0 */
/**
 * driver.h - the part of CUDA's driver API that is used, opened at run time: the library links nothing of CUDA, and
 * the version of a program's CUDA runtime does not matter.
 *
 * Errors:   a code of the driver becomes ncclUnhandledCudaError with the driver's name of it; from 700 on the process's
 *           context is lost, and every later call returns the same.
 * Blocking: the first call of a process starts the driver, which takes up to seconds.
 * Threads:  any. A context is the calling thread's: kl_cuda_enter, kl_cuda_leave.
 * Fork:     CUDA does not work in a child of a process that used it.
 * Source:   the CUDA driver API 13.0; its values are compared with NVIDIA's header where that is installed.
 */
#ifndef KL_DEVICE_CUDA_DRIVER_H
#define KL_DEVICE_CUDA_DRIVER_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUfunc_st;
struct CUlib_st;
struct CUkern_st;

typedef struct CUctx_st *kl_cu_context;
typedef struct CUstream_st *kl_cu_stream;
typedef struct CUevent_st *kl_cu_event;
typedef struct CUfunc_st *kl_cu_function;
typedef struct CUlib_st *kl_cu_library;
typedef struct CUkern_st *kl_cu_kernel;

enum {
    KL_CU_SUCCESS = 0,
    KL_CU_INVALID_VALUE = 1,
    KL_CU_OUT_OF_MEMORY = 2,
    KL_CU_NO_DEVICE = 100,
    KL_CU_INVALID_CONTEXT = 201,
    KL_CU_NO_BINARY = 209,
    KL_CU_PEER_ACCESS_UNSUPPORTED = 217,
    KL_CU_INVALID_HANDLE = 400,
    KL_CU_NOT_FOUND = 500,
    KL_CU_NOT_READY = 600,
    KL_CU_PEER_ACCESS_ALREADY = 704,
    KL_CU_TOO_MANY_PEERS = 711,
    KL_CU_NOT_SUPPORTED = 801,
};

/* Attributes of devices and pointers, flags. */
enum {
    KL_CU_PROCESSORS = 16,
    KL_CU_CAPABILITY_MAJOR = 75,
    KL_CU_CAPABILITY_MINOR = 76,
    KL_CU_P2P_ATOMICS = 3,
    KL_CU_POINTER_TYPE = 2,
    KL_CU_POINTER_IS_MANAGED = 8,
    KL_CU_POINTER_ORDINAL = 9,
    KL_CU_POINTER_IS_LEGACY = 10,
    KL_CU_POINTER_POOL = 17,
    KL_CU_POINTER_SYNC_MEMOPS = 6,
    KL_CU_POINTER_RANGE_START = 11,
    KL_CU_POINTER_RANGE_BYTES = 12,
    KL_CU_POINTER_CAN_RDMA = 15,
    KL_CU_GPU_DIRECT_RDMA = 116,
    KL_CU_RDMA_FLUSH_OPTIONS = 117,
    KL_CU_RDMA_WRITES_ORDERING = 118,
    KL_CU_DMA_BUF = 124,
    KL_CU_DMA_BUF_DESCRIPTOR = 1,
    KL_CU_FLUSH_BY_HOST = 1, /* of the options */
    KL_CU_FLUSH_CURRENT = 0,
    KL_CU_WRITES_TO_OWNER = 100, /* as an ordering, and as the scope of a flush */
    KL_CU_MEMORY_HOST = 1,
    KL_CU_MEMORY_DEVICE = 2,
    KL_CU_STREAM_NON_BLOCKING = 1,
    KL_CU_EVENT_DISABLE_TIMING = 2,
    KL_CU_ACCESS_READ_WRITE = 3,
    KL_CU_LOCATION_DEVICE = 1,
    KL_CU_MULTICAST = 132,
    KL_CU_MEMORY_PINNED = 1,
    KL_CU_HANDLE_DESCRIPTOR = 1,
    KL_CU_GRANULARITY_MINIMUM = 0,
    KL_CU_GRANULARITY_RECOMMENDED = 1,
};

/** Handles that stand for streams, of the current context. */
#define KL_CU_LEGACY_STREAM     ((kl_cu_stream)1)
#define KL_CU_PER_THREAD_STREAM ((kl_cu_stream)2)

struct kl_cu_location {
    int type, id;
};

/** Memory apart from its addresses (cuMemCreate), its access, and objects that write to memory of several devices. */
struct kl_cu_memory_properties {
    int type, handle_types;
    struct kl_cu_location location;
    void *unused;
    unsigned char flags[8];
};
struct kl_cu_access {
    struct kl_cu_location location;
    int flags;
};
struct kl_cu_multicast_properties {
    unsigned devices;
    size_t bytes;
    unsigned long long handle_types, flags;
};

/** Memory of another process, as bytes; a number that differs for each allocation, and the flags of functions. */
struct kl_cu_ipc_handle {
    char bytes[64];
};
enum {
    KL_CU_POINTER_BUFFER_ID = 7,
    KL_CU_HOST_PORTABLE_MAPPED = 3,
    KL_CU_IPC_PEER_ACCESS = 1,
    KL_CU_WAIT_AT_LEAST = 0, /* in a circle */
    KL_CU_WAIT_EQUAL = 1,
    KL_CU_CAPTURE_RELAXED = 2,
};

/* Name, the version of CUDA whose signature this is, parameters. */
#define KL_CUDA_FUNCTIONS(X)                                                                                           \
    X(cuInit, 2000, (unsigned flags))                                                                                  \
    X(cuDriverGetVersion, 2020, (int *version))                                                                        \
    X(cuGetErrorName, 6000, (int result, const char **name))                                                           \
    X(cuDeviceGetCount, 2000, (int *count))                                                                            \
    X(cuDeviceGet, 2000, (int *device, int ordinal))                                                                   \
    X(cuDeviceGetAttribute, 2000, (int *value, int attribute, int device))                                             \
    X(cuDeviceCanAccessPeer, 4000, (int *can, int device, int peer))                                                   \
    X(cuDeviceGetP2PAttribute, 8000, (int *value, int attribute, int device, int peer))                                \
    X(cuDevicePrimaryCtxRetain, 7000, (kl_cu_context * context, int device))                                           \
    X(cuDevicePrimaryCtxGetState, 7000, (int device, unsigned *flags, int *active))                                    \
    X(cuCtxPushCurrent, 4000, (kl_cu_context context))                                                                 \
    X(cuCtxPopCurrent, 4000, (kl_cu_context * context))                                                                \
    X(cuCtxGetCurrent, 4000, (kl_cu_context * context))                                                                \
    X(cuCtxGetDevice, 2000, (int *device))                                                                             \
    X(cuCtxEnablePeerAccess, 4000, (kl_cu_context peer, unsigned flags))                                               \
    X(cuCtxGetStreamPriorityRange, 5050, (int *least, int *greatest))                                                  \
    X(cuStreamCreateWithPriority, 5050, (kl_cu_stream * stream, unsigned flags, int priority))                         \
    X(cuStreamDestroy, 4000, (kl_cu_stream stream))                                                                    \
    X(cuStreamQuery, 2000, (kl_cu_stream stream))                                                                      \
    X(cuStreamSynchronize, 2000, (kl_cu_stream stream))                                                                \
    X(cuStreamWaitEvent, 3020, (kl_cu_stream stream, kl_cu_event event, unsigned flags))                               \
    X(cuStreamGetCaptureInfo, 11030,                                                                                   \
      (kl_cu_stream stream, int *status, uint64_t *id, void **graph, void **nodes, size_t *nnodes))                    \
    X(cuLaunchHostFunc, 10000, (kl_cu_stream stream, void (*function)(void *), void *argument))                        \
    X(cuThreadExchangeStreamCaptureMode, 10010, (int *mode))                                                           \
    X(cuEventCreate, 2000, (kl_cu_event * event, unsigned flags))                                                      \
    X(cuEventDestroy, 4000, (kl_cu_event event))                                                                       \
    X(cuEventRecord, 2000, (kl_cu_event event, kl_cu_stream stream))                                                   \
    X(cuMemAlloc, 3020, (uint64_t * ptr, size_t bytes))                                                                \
    X(cuMemFree, 3020, (uint64_t ptr))                                                                                 \
    X(cuMemGetAddressRange, 3020, (uint64_t * base, size_t * bytes, uint64_t ptr))                                     \
    X(cuMemGetAccess, 10020, (unsigned long long *flags, const struct kl_cu_location *location, uint64_t ptr))         \
    X(cuMemPoolGetAccess, 11020, (unsigned *flags, void *pool, const struct kl_cu_location *location))                 \
    X(cuPointerGetAttributes, 7000, (unsigned count, const int *attributes, void **values, uint64_t ptr))              \
    X(cuPointerSetAttribute, 6000, (const void *value, int attribute, uint64_t ptr))                                   \
    X(cuMemGetHandleForAddressRange, 11070,                                                                            \
      (void *handle, uint64_t ptr, size_t bytes, int type, unsigned long long flags))                                  \
    X(cuFlushGPUDirectRDMAWrites, 11030, (int target, int scope))                                                      \
    X(cuDeviceGetUuid, 11040, (unsigned char uuid[16], int device))                                                    \
    X(cuMemHostRegister, 6050, (void *ptr, size_t bytes, unsigned flags))                                              \
    X(cuMemHostGetDevicePointer, 3020, (uint64_t * device_ptr, void *ptr, unsigned flags))                             \
    X(cuMemHostUnregister, 4000, (void *ptr))                                                                          \
    X(cuIpcGetMemHandle, 4010, (struct kl_cu_ipc_handle * handle, uint64_t ptr))                                       \
    X(cuIpcOpenMemHandle, 11000, (uint64_t * ptr, struct kl_cu_ipc_handle handle, unsigned flags))                     \
    X(cuIpcCloseMemHandle, 4010, (uint64_t ptr))                                                                       \
    X(cuStreamWriteValue32, 11070, (kl_cu_stream stream, uint64_t at, uint32_t value, unsigned flags))                 \
    X(cuStreamWaitValue32, 11070, (kl_cu_stream stream, uint64_t at, uint32_t value, unsigned flags))                  \
    X(cuMemsetD8Async, 3020, (uint64_t at, unsigned char value, size_t bytes, kl_cu_stream stream))                    \
    X(cuEventQuery, 2000, (kl_cu_event event))                                                                         \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050,                                                               \
      (int *blocks, kl_cu_function function, int threads, size_t shared_bytes))                                        \
    X(cuLaunchCooperativeKernel, 9000,                                                                                 \
      (kl_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, kl_cu_stream stream, void **arguments))                                \
    X(cuMemcpyAsync, 4000, (uint64_t to, uint64_t from, size_t bytes, kl_cu_stream stream))                            \
    X(cuMemCreate, 10020,                                                                                              \
      (unsigned long long *handle, size_t bytes, const struct kl_cu_memory_properties *properties,                     \
       unsigned long long flags))                                                                                      \
    X(cuMemRelease, 10020, (unsigned long long handle))                                                                \
    X(cuMemAddressReserve, 10020,                                                                                      \
      (uint64_t * ptr, size_t bytes, size_t alignment, uint64_t wanted, unsigned long long flags))                     \
    X(cuMemAddressFree, 10020, (uint64_t ptr, size_t bytes))                                                           \
    X(cuMemMap, 10020,                                                                                                 \
      (uint64_t ptr, size_t bytes, size_t offset, unsigned long long handle, unsigned long long flags))                \
    X(cuMemUnmap, 10020, (uint64_t ptr, size_t bytes))                                                                 \
    X(cuMemSetAccess, 10020, (uint64_t ptr, size_t bytes, const struct kl_cu_access *access, size_t n))                \
    X(cuMemGetAllocationGranularity, 10020,                                                                            \
      (size_t * bytes, const struct kl_cu_memory_properties *properties, int option))                                  \
    X(cuMemExportToShareableHandle, 10020, (void *to, unsigned long long handle, int type, unsigned long long flags))  \
    X(cuMemImportFromShareableHandle, 10020, (unsigned long long *handle, void *from, int type))                       \
    X(cuMulticastCreate, 12010, (unsigned long long *object, const struct kl_cu_multicast_properties *properties))     \
    X(cuMulticastAddDevice, 12010, (unsigned long long object, int device))                                            \
    X(cuMulticastBindMem, 12010,                                                                                       \
      (unsigned long long object, size_t at, unsigned long long memory, size_t memory_at, size_t bytes,                \
       unsigned long long flags))                                                                                      \
    X(cuMulticastUnbind, 12010, (unsigned long long object, int device, size_t at, size_t bytes))                      \
    X(cuMulticastGetGranularity, 12010,                                                                                \
      (size_t * bytes, const struct kl_cu_multicast_properties *properties, int option))                               \
    X(cuLibraryLoadData, 12000,                                                                                        \
      (kl_cu_library * library, const void *image, void *jit, void **jit_values, unsigned njit, void *options,         \
       void **values, unsigned noptions))                                                                              \
    X(cuLibraryGetKernel, 12000, (kl_cu_kernel * kernel, kl_cu_library library, const char *name))                     \
    X(cuKernelGetFunction, 12000, (kl_cu_function * function, kl_cu_kernel kernel))                                    \
    X(cuLaunchKernel, 4000,                                                                                            \
      (kl_cu_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, \
       unsigned block_z, unsigned shared_bytes, kl_cu_stream stream, void **arguments, void **extra))

struct kl_cuda_driver {
#define KL_CUDA_MEMBER(name, version, parameters) int(*name) parameters;
    KL_CUDA_FUNCTIONS(KL_CUDA_MEMBER)
#undef KL_CUDA_MEMBER
    bool stand_in; /* it is Kolo's own, on CPUs (compat/cuda) */
    int version;   /* of CUDA, as 13000 */
    int devices;
};

/** The driver, or why there is none: ncclUnhandledCudaError. Opened and started once in a process. */
ncclResult_t kl_cuda_driver(const struct kl_cuda_driver **driver);

/** Does the process use CUDA already, without Kolo: is the driver loaded, and a context of it active? Starts nothing. */
bool kl_cuda_is_used(void);

/** The driver's name of a result: "CUDA_ERROR_ILLEGAL_ADDRESS". */
const char *kl_cuda_error_name(const struct kl_cuda_driver *driver, int result);

/** Return ncclUnhandledCudaError if a call has failed: KL_CUDA_TRY(driver, cuMemFree(ptr), "device %d", device). */
#define KL_CUDA_TRY(driver, call, ...)                                                                                 \
    do {                                                                                                               \
        int kl_cuda_result = (driver)->call;                                                                           \
        if (kl_cuda_result) {                                                                                          \
            char kl_cuda_where[96];                                                                                    \
            snprintf(kl_cuda_where, sizeof kl_cuda_where, __VA_ARGS__);                                                \
            return KL_FAIL(ncclUnhandledCudaError, "%s: %.40s failed with %s (%d)", kl_cuda_where, #call,              \
                           kl_cuda_error_name(driver, kl_cuda_result), kl_cuda_result);                                \
        }                                                                                                              \
    } while (0)

#endif
