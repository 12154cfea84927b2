/* SPDX-License-Identifier: Apache-2.0 */
/** driver_cuda_test.c - the driver's library, and its shared state with the runtime. */
#include "driver_test.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* The first of all: nothing has begun. */
static void nothing_works_before_the_start(void **state)
{
    int count, version;
    const char *text;

    (void)state;
    assert_int_equal(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
    assert_int_equal(cuInit(1), CUDA_ERROR_INVALID_VALUE);
    CU(cuDriverGetVersion(&version));
    assert_int_equal(version, 13000);
    CU(cuGetErrorName(CUDA_ERROR_NO_BINARY_FOR_GPU, &text));
    assert_string_equal(text, "CUDA_ERROR_NO_BINARY_FOR_GPU");
    CU(cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text));
    assert_string_equal(text, "out of memory");
    assert_int_equal(cuGetErrorString((CUresult)12345, &text), CUDA_ERROR_INVALID_VALUE);
    assert_null(text);
    CU(cuInit(0));
    CU(cuDeviceGetCount(&count));
    assert_int_equal(count, 4);
}

static void primary_contexts_become_active_when_they_are_used(void **state)
{
    unsigned flags;
    int active, device;
    CUcontext context, current;

    (void)state;
    CU(cuDevicePrimaryCtxGetState(2, &flags, &active));
    assert_int_equal(active, 0);
    CU(cuCtxGetCurrent(&current));
    assert_null(current);
    assert_int_equal(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuDevicePrimaryCtxRetain(&context, 2));
    CU(cuDevicePrimaryCtxGetState(2, &flags, &active));
    assert_int_equal(active, 1);
    CU(cuDevicePrimaryCtxRelease(2));
    CU(cuDevicePrimaryCtxGetState(2, &flags, &active));
    assert_int_equal(active, 0);
    assert_int_equal(cuDevicePrimaryCtxRelease(2), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuDevicePrimaryCtxGetState(3, &flags, &active));
    assert_int_equal(active, 0);
    OK(cudaSetDevice(3));
    CU(cuDevicePrimaryCtxGetState(3, &flags, &active));
    assert_int_equal(active, 1);
    CU(cuCtxGetDevice(&device));
    assert_int_equal(device, 3);
    CU(cuCtxSetCurrent(context));
    OK(cudaGetDevice(&device));
    assert_int_equal(device, 2);
    CU(cuCtxSetCurrent(NULL));
    CU(cuCtxGetCurrent(&current));
    assert_null(current);
    assert_int_equal(cuCtxSetCurrent((CUcontext)&current), CUDA_ERROR_INVALID_CONTEXT);
}

static void *own_stack(void *arg)
{
    CUcontext current;

    (void)arg;
    return cuCtxGetCurrent(&current) ? (void *)1 : (void *)current;
}

static void contexts_are_a_stack_of_each_thread(void **state)
{
    CUcontext first, second, popped;
    pthread_t thread;
    void *seen;
    int device;

    (void)state;
    CU(cuCtxCreate(&first, NULL, 0, 1));
    CU(cuCtxCreate(&second, NULL, 0, 2));
    CU(cuCtxGetDevice(&device));
    assert_int_equal(device, 2);
    CU(cuCtxGetDevice_v2(&device, first));
    assert_int_equal(device, 1);
    CU(cuCtxSynchronize_v2(first));
    assert_int_equal(cuCtxSynchronize_v2((CUcontext)(uintptr_t)64), CUDA_ERROR_INVALID_CONTEXT);
    pthread_create(&thread, NULL, own_stack, NULL);
    pthread_join(thread, &seen);
    assert_null(seen);
    CU(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, second);
    CU(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    CU(cuCtxPushCurrent(second));
    CU(cuCtxDestroy(second));
    assert_int_equal(cuCtxPushCurrent(second), CUDA_ERROR_INVALID_CONTEXT);
    CU(cuCtxDestroy(first));
    assert_int_equal(cuCtxPopCurrent(&popped), CUDA_ERROR_INVALID_CONTEXT);
}

static void runtime_and_driver_share_memory_and_streams(void **state)
{
    CUdeviceptr p, base;
    void *q;
    size_t bytes;
    unsigned type, value = 0;
    int device = -7;
    cudaStream_t stream;
    CUpointer_attribute attributes[2] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[2] = {&type, &device};

    (void)state;
    OK(cudaSetDevice(1));
    CU(cuMemAlloc(&p, 4096));
    OK(cudaMemset((void *)(uintptr_t)p, 1, 4096));
    OK(cudaStreamCreate(&stream));
    CU(cuMemsetD32Async(p, 0xabcdef01, 3, stream));
    CU(cuStreamSynchronize(stream));
    CU(cuMemcpyDtoH(&value, p + 8, 4));
    assert_int_equal(value, 0xabcdef01);
    CU(cuMemcpyDtoH(&value, p + 12, 4));
    assert_int_equal(value, 0x01010101);
    OK(cudaMalloc(&q, 100));
    CU(cuMemGetAddressRange(&base, &bytes, (CUdeviceptr)(uintptr_t)q + 50));
    assert_int_equal(base, (uintptr_t)q);
    assert_int_equal(bytes, 100);
    CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base));
    assert_int_equal(type, CU_MEMORYTYPE_DEVICE);
    assert_int_equal(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&q),
                     CUDA_ERROR_INVALID_VALUE);
    CU(cuPointerGetAttributes(2, attributes, values, (CUdeviceptr)(uintptr_t)&q));
    assert_int_equal(type, 0);
    assert_int_equal(device, CU_DEVICE_INVALID);
    CU(cuMemFree((CUdeviceptr)(uintptr_t)q));
    OK(cudaFree((void *)(uintptr_t)p));
    CU(cuStreamDestroy(stream));
    OK(cudaSetDevice(0));
}

static void streams_write_and_wait_for_values(void **state)
{
    CUstream a, b;
    CUdeviceptr p;
    uint32_t *value;

    (void)state;
    CU(cuMemAlloc(&p, 8));
    value = (void *)(uintptr_t)p;
    CU(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    CU(cuStreamWaitValue32(a, p, 5, CU_STREAM_WAIT_VALUE_GEQ));
    CU(cuStreamWriteValue32(a, p + 4, 9, 0));
    assert_int_equal(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    CU(cuStreamWriteValue32(b, p, 6, 0));
    CU(cuStreamSynchronize(a));
    assert_int_equal(value[1], 9);
    assert_int_equal(cuStreamWaitValue32(a, p, 5, 7), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy(a));
    CU(cuStreamDestroy(b));
    CU(cuMemFree(p));
}

static void every_condition_is_met_by_its_values(void **state)
{
    static const struct {
        const char *text;
        unsigned condition;
        uint64_t wanted, not_yet, met;
        bool wide;
    } cases[] = {
        {"at least", CU_STREAM_WAIT_VALUE_GEQ, 5, 4, 6, false},
        {"at least, in a circle", CU_STREAM_WAIT_VALUE_GEQ, 0xfffffffe, 0xfffffff0, 5, false},
        {"at least, 64 bits", CU_STREAM_WAIT_VALUE_GEQ, 5ull << 32, 4ull << 32 | 9, 5ull << 32, true},
        {"at least, 64 bits, in a circle", CU_STREAM_WAIT_VALUE_GEQ, UINT64_MAX - 1, UINT64_MAX - 9, 4, true},
        {"equal", CU_STREAM_WAIT_VALUE_EQ, 5, 6, 5, false},
        {"equal, 64 bits", CU_STREAM_WAIT_VALUE_EQ, 5ull << 32, 5, 5ull << 32, true},
        {"and", CU_STREAM_WAIT_VALUE_AND, 4, 3, 6, false},
        {"and, 64 bits", CU_STREAM_WAIT_VALUE_AND, 4ull << 40, 4, 7ull << 40, true},
        {"nor", CU_STREAM_WAIT_VALUE_NOR, 0xffffff00, 0xff, 0xfe, false},
        {"nor, 64 bits", CU_STREAM_WAIT_VALUE_NOR, UINT64_MAX - 1, 1, 2, true},
    };
    CUstream stream;
    CUdeviceptr p;

    (void)state;
    CU(cuMemAlloc(&p, 8));
    CU(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    FOR_EACH_CASE(c, cases)
    {
        CUstreamBatchMemOpParams op[3] = {0};

        memcpy((void *)(uintptr_t)p, &c->not_yet, c->wide ? 8 : 4);
        op[0].waitValue.operation = c->wide ? CU_STREAM_MEM_OP_WAIT_VALUE_64 : CU_STREAM_MEM_OP_WAIT_VALUE_32;
        op[0].waitValue.address = p;
        op[0].waitValue.value64 = c->wanted;
        op[0].waitValue.flags = c->condition;
        op[1].operation = CU_STREAM_MEM_OP_BARRIER;
        op[2].writeValue.operation = c->wide ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
        op[2].writeValue.address = p;
        op[2].writeValue.value64 = 77;
        CU(cuStreamBatchMemOp(stream, 3, op, 0));
        expect_case(c->text, cuStreamQuery(stream) == CUDA_ERROR_NOT_READY);
        if (c->wide)
            __atomic_store_n((uint64_t *)(uintptr_t)p, c->met, __ATOMIC_RELEASE);
        else
            __atomic_store_n((uint32_t *)(uintptr_t)p, (uint32_t)c->met, __ATOMIC_RELEASE);
        CU(cuStreamSynchronize(stream));
        expect_case(c->text, *(uint32_t *)(uintptr_t)p == 77);
    }
    CUstreamBatchMemOpParams wrong = {.operation = (CUstreamBatchMemOpType)9};
    assert_int_equal(cuStreamBatchMemOp(stream, 1, &wrong, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuStreamBatchMemOp(stream, 0, &wrong, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamDestroy(stream));
    CU(cuMemFree(p));
}

/* ---- rows, boxes, pools ---- */

static void rows_and_boxes_are_copied_and_filled(void **state)
{
    char host[2][3][4], back[4 * 4] = {0};
    CUdeviceptr p;
    size_t pitch;

    (void)state;
    for (int i = 0; i < 24; i++) (&host[0][0][0])[i] = (char)(i + 1);
    CU(cuMemAllocPitch(&p, &pitch, 4, 6, 4));
    assert_int_equal(pitch % 512, 0);
    assert_int_equal(cuMemAllocPitch(&p, &pitch, 4, 6, 3), CUDA_ERROR_INVALID_VALUE);
    const CUDA_MEMCPY3D in = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                              .srcHost = host,
                              .srcPitch = 4,
                              .srcHeight = 3,
                              .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                              .dstDevice = p,
                              .dstPitch = pitch,
                              .dstHeight = 3,
                              .WidthInBytes = 4,
                              .Height = 3,
                              .Depth = 2};
    CU(cuMemcpy3D(&in));
    CUDA_MEMCPY2D out = {.srcXInBytes = 1,
                         .srcY = 4, /* the second row of the second slice */
                         .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                         .srcDevice = p,
                         .srcPitch = pitch,
                         .dstXInBytes = 1,
                         .dstMemoryType = CU_MEMORYTYPE_HOST,
                         .dstHost = back,
                         .dstPitch = 4,
                         .WidthInBytes = 2,
                         .Height = 2};
    CU(cuMemcpy2D(&out));
    assert_memory_equal(back, ((char[]){0, host[1][1][1], host[1][1][2], 0, 0, host[1][2][1]}), 6);
    out.WidthInBytes = 4; /* with the column that is left out, more than a row */
    assert_int_equal(cuMemcpy2DUnaligned(&out), CUDA_ERROR_INVALID_VALUE);
    out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
    assert_int_equal(cuMemcpy2DAsync(&out, NULL), CUDA_ERROR_NOT_SUPPORTED);
    CU(cuMemsetD2D16(p, pitch, 0x0201, 1, 2));
    CU(cuMemsetD2D8Async(p + pitch, pitch, 9, 1, 1, NULL));
    CU(cuCtxSynchronize());
    assert_int_equal(((char *)(uintptr_t)p)[1], 2);
    assert_int_equal(((char *)(uintptr_t)p)[2], 3);
    assert_int_equal(((char *)(uintptr_t)p)[pitch], 9);
    assert_int_equal(((char *)(uintptr_t)p)[pitch + 1], 2);
    assert_int_equal(cuMemsetD2D32(p, pitch + 2, 0, 1, 2), CUDA_ERROR_INVALID_VALUE);

    CUdeviceptr to[1] = {p}, from[1] = {p + 1};
    size_t bytes[1] = {1}, first[1] = {0};
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    CU(cuMemcpyBatchAsync(to, from, bytes, 1, &how, first, 1, CU_STREAM_PER_THREAD));
    CU(cuCtxSynchronize());
    assert_int_equal(((char *)(uintptr_t)p)[0], 2);
    CU(cuMemFree(p));
}

/* The functions of CUDA 12.8 and 13 have the same names, and other parameters. */
static void batches_are_of_the_version_that_was_asked_for(void **state)
{
    CUresult (*older)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *,
                      CUstream);
    CUresult (*older_boxes)(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);
    CUresult (*boxes)(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long, CUstream);
    CUdeviceptr p, to[2], from[2];
    size_t bytes[2] = {1, 1}, first[1] = {0}, failed = 0;
    char host[8] = "abcdefgh";
    CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

    (void)state;
    CU(cuGetProcAddress("cuMemcpyBatchAsync", (void **)&older, 12080, 0, NULL));
    CU(cuGetProcAddress("cuMemcpy3DBatchAsync", (void **)&older_boxes, 12080, 0, NULL));
    CU(cuGetProcAddress("cuMemcpy3DBatchAsync", (void **)&boxes, 13000, 0, NULL));
    assert_ptr_equal(boxes, cuMemcpy3DBatchAsync);
    CU(cuMemAlloc(&p, 64));
    CU(cuMemcpyHtoD(p, host, 8));
    to[0] = p, from[0] = p + 1, to[1] = p + 2, from[1] = p + 3;
    CU(older(to, from, bytes, 2, &how, first, 1, &failed, CU_STREAM_PER_THREAD));
    assert_int_equal(failed, SIZE_MAX);
    bytes[1] = 100; /* more than there is */
    assert_int_equal(older(to, from, bytes, 2, &how, first, 1, &failed, CU_STREAM_PER_THREAD),
                     CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(failed, 1);
    CUDA_MEMCPY3D_BATCH_OP op[2] = {
        {.src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = p, .rowLength = 4}},
         .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = p + 32, .rowLength = 8, .layerHeight = 3}},
         .extent = {2, 2, 1},
         .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};
    op[1] = op[0];
    op[1].dst.op.ptr.layerHeight = 1; /* less than the box */
    op[1].extent.depth = 2;
    CU(boxes(1, op, 0, CU_STREAM_PER_THREAD));
    CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    assert_memory_equal((char *)(uintptr_t)p + 32, "bb", 2);
    assert_memory_equal((char *)(uintptr_t)p + 40, "ef", 2);
    assert_int_equal(older_boxes(2, op, &failed, 0, CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(failed, 1);
    assert_int_equal(boxes(1, op, 1, CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_VALUE);
    CU(cuStreamSynchronize(CU_STREAM_PER_THREAD));
    CU(cuMemFree(p));
}

static void pools_are_those_of_the_runtime(void **state)
{
    const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                       .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemLocation peer = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc access = {peer, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemAccess_flags flags;
    CUmemoryPool pool, current, default_pool;
    cudaMemPool_t same;
    CUdeviceptr p;
    uint64_t used = 0;

    (void)state;
    CU(cuMemPoolCreate(&pool, &properties));
    CU(cuDeviceGetDefaultMemPool(&default_pool, 0));
    OK(cudaDeviceGetDefaultMemPool(&same, 0));
    assert_ptr_equal((void *)default_pool, (void *)same);
    CU(cuDeviceSetMemPool(0, pool));
    CU(cuDeviceGetMemPool(&current, 0));
    assert_ptr_equal((void *)current, (void *)pool);
    assert_int_equal(cuDeviceSetMemPool(1, pool), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemAllocFromPoolAsync(&p, 1000, pool, NULL));
    CU(cuPointerGetAttribute(&current, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p + 999));
    assert_ptr_equal((void *)current, (void *)pool);
    CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
    assert_int_equal(used, 1024);
    CU(cuMemPoolSetAccess(pool, &access, 1));
    CU(cuMemPoolGetAccess(&flags, pool, &peer));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    used = UINT64_MAX;
    CU(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &used));
    CU(cuMemFreeAsync(p, NULL));
    CU(cuCtxSynchronize());
    CU(cuMemPoolTrimTo(pool, 0));
    CU(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &used));
    assert_int_equal(used, 0);
    CU(cuMemPoolDestroy(pool));
    assert_int_equal(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemAllocFromPoolAsync(&p, 10, pool, NULL), CUDA_ERROR_INVALID_VALUE);
}

static void functions_are_found_by_name_and_version(void **state)
{
    static const char *const needed[] = {"cuDeviceGetAttribute",
                                         "cuMemAddressReserve",
                                         "cuMemRelease",
                                         "cuMemMap",
                                         "cuMemAddressFree",
                                         "cuMemSetAccess",
                                         "cuMemUnmap",
                                         "cuMemCreate",
                                         "cuMemGetAllocationGranularity",
                                         "cuMemExportToShareableHandle",
                                         "cuMemImportFromShareableHandle",
                                         "cuMemsetD32Async",
                                         "cuStreamWriteValue32",
                                         "cuGetErrorString",
                                         "cuCtxGetCurrent",
                                         "cuPointerGetAttribute",
                                         "cuMemGetHandleForAddressRange",
                                         "cuLaunchKernelEx"};
    CUdriverProcAddressQueryResult status;
    enum cudaDriverEntryPointQueryResult found;
    CUresult (*alloc)(CUdeviceptr *, size_t) = NULL;
    void *function, *older;

    (void)state;
    FOR_EACH_CASE(name, needed)
    {
        CU(cuGetProcAddress(*name, &function, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &status));
        expect_case(*name, function && status == CU_GET_PROC_ADDRESS_SUCCESS);
    }
    CU(cuGetProcAddress("cuMemAlloc", &function, 12000, 0, &status));
    memcpy(&alloc, &function, sizeof alloc);
    assert_true(alloc == cuMemAlloc);
    CU(cuGetProcAddress("cuMemAlloc", &older, 2000, 0, &status));
    assert_ptr_not_equal(older, function);
    CU(cuGetProcAddress("cuMemCreate", &function, 9000, 0, &status));
    assert_null(function);
    assert_int_equal(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    CU(cuGetProcAddress("cuNothing", &function, 12000, 0, &status));
    assert_int_equal(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    assert_int_equal(cuGetProcAddress("cuInit", &function, 14000, 0, &status), CUDA_ERROR_INVALID_VALUE);
    OK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, cudaEnableDefault, &found));
    memcpy(&alloc, &function, sizeof alloc);
    assert_true(alloc == cuMemAlloc);
    OK(cudaGetDriverEntryPoint("cuNothing", &function, cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
    assert_null(function);
}

/* The legacy stream would wait for the blocking one, nothing has to wait for the thread's own. */
static void functions_for_threads_use_their_streams(void **state)
{
    CUresult (*copy)(CUdeviceptr, const void *, size_t), (*query)(CUstream),
        (*fill)(CUdeviceptr, unsigned char, size_t);
    CUresult (*synchronize)(CUstream), (*call)(CUstream, CUhostFn, void *), (*host)(void *, CUdeviceptr, size_t);
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    atomic_int go = 0;
    char back[4] = "";
    CUdeviceptr p;

    (void)state;
    CU(cuGetProcAddress("cuMemcpyHtoD", (void **)&copy, 13000, own, NULL));
    CU(cuGetProcAddress("cuMemcpyDtoH", (void **)&host, 13000, own, NULL));
    CU(cuGetProcAddress("cuMemsetD8", (void **)&fill, 13000, own, NULL));
    CU(cuGetProcAddress("cuStreamQuery", (void **)&query, 13000, own, NULL));
    CU(cuGetProcAddress("cuStreamSynchronize", (void **)&synchronize, 13000, own, NULL));
    CU(cuGetProcAddress("cuLaunchHostFunc", (void **)&call, 13000, own, NULL));
    assert_ptr_not_equal(query, cuStreamQuery);
    CU(cuMemAlloc(&p, 4));
    CU(cuCtxSynchronize());
    CU(call(NULL, wait_for_flag, &go));
    assert_int_equal(query(NULL), CUDA_ERROR_NOT_READY);
    assert_int_equal(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    CU(synchronize(NULL));
    CU(copy(p, "abc", 4));
    CU(fill(p + 1, 'x', 1));
    CU(host(back, p, 4));
    assert_string_equal(back, "axc");
    CU(cuMemFree(p));
}

static void count_call(CUstream stream, CUresult status, void *argument)
{
    (void)stream;
    *(int *)argument += status == CUDA_SUCCESS;
}

/* A capture of the thread's stream gets the work that per-thread functions queue on stream 0. */
static void everything_for_threads_is_on_their_streams(void **state)
{
    CUresult (*callback)(CUstream, CUstreamCallback, void *, unsigned), (*get)(CUstream, CUstreamAttrID, void *);
    CUresult (*prefetch)(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
    CUresult (*box)(const CUDA_MEMCPY3D_PEER *, CUstream);
    const cuuint64_t own = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    const CUmemLocation host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    const CUstream mine = CU_STREAM_PER_THREAD;
    CUstreamAttrValue value = {.priority = 7};
    CUcontext context;
    CUdeviceptr p;
    CUgraph graph;
    size_t nodes = 0;
    int calls = 0;

    (void)state;
    CU(cuGetProcAddress("cuStreamAddCallback", (void **)&callback, 13000, own, NULL));
    CU(cuGetProcAddress("cuStreamGetAttribute", (void **)&get, 13000, own, NULL));
    CU(cuGetProcAddress("cuMemPrefetchAsync", (void **)&prefetch, 13000, own, NULL));
    CU(cuGetProcAddress("cuMemcpy3DPeerAsync", (void **)&box, 13000, own, NULL));
    CU(get(NULL, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
    assert_int_equal(value.priority, 0);
    CU(callback(NULL, count_call, &calls, 0));
    CU(cuStreamSynchronize(mine));
    assert_int_equal(calls, 1);
    CU(cuMemAllocManaged(&p, 64, 1));
    CU(cuMemAdvise(p, 64, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, host));
    CU(prefetch(p, 64, host, 0, NULL));
    assert_int_equal(prefetch(p, 64, host, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemsetD8(p, 'x', 64));
    CU(cuCtxGetCurrent(&context));
    CUDA_MEMCPY3D_PEER copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
                               .srcDevice = p,
                               .srcContext = context,
                               .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                               .dstDevice = p + 8,
                               .WidthInBytes = 8,
                               .Height = 1,
                               .Depth = 1};
    assert_int_equal(box(&copy, NULL), CUDA_ERROR_INVALID_CONTEXT);
    copy.dstContext = context;
    CU(cuStreamBeginCapture(mine, CU_STREAM_CAPTURE_MODE_RELAXED));
    CU(box(&copy, NULL));
    CU(cuStreamEndCapture(mine, &graph));
    CU(cuGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 1);
    CU(cuGraphDestroy(graph));
    CU(cuMemFree(p));
}

static void machine_code_is_refused(void **state)
{
    CUmodule module;
    CUuuid id = {{0}};
    const void *table;

    (void)state;
    assert_int_equal(cuModuleLoadData(&module, "code"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(cuModuleLoad(&module, "file"), CUDA_ERROR_NO_BINARY_FOR_GPU);
    assert_int_equal(cuGetExportTable(&table, &id), CUDA_ERROR_NOT_FOUND);
}

/* ---- addresses and memory apart ---- */

/* Device 0 keeps its access; device 1 may only read. */
static void give_another_device_less(CUdeviceptr p, size_t bytes)
{
    const CUmemLocation device[3] = {
        {CU_MEM_LOCATION_TYPE_DEVICE, 0}, {CU_MEM_LOCATION_TYPE_DEVICE, 1}, {CU_MEM_LOCATION_TYPE_DEVICE, 99}};
    CUmemAccessDesc read = {.location = device[1], .flags = CU_MEM_ACCESS_FLAGS_PROT_READ};
    unsigned long long flags;

    CU(cuMemGetAccess(&flags, &device[1], p));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE);
    CU(cuMemSetAccess(p, bytes, &read, 1));
    CU(cuMemGetAccess(&flags, &device[1], p));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CU(cuMemGetAccess(&flags, &device[0], p + bytes - 1));
    assert_int_equal(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    assert_int_equal(cuMemGetAccess(&flags, &device[2], p), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetAccess(&flags, &device[0], p + bytes), CUDA_ERROR_INVALID_VALUE);
    read.location = device[2];
    assert_int_equal(cuMemSetAccess(p, bytes, &read, 1), CUDA_ERROR_INVALID_VALUE);
}

static void memory_is_mapped_where_it_is_wanted(void **state)
{
    const size_t unit = 2 << 20;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle, imported;
    CUdeviceptr p;
    size_t granularity, before, after, total;
    int fd;

    (void)state;
    OK(cudaSetDevice(0));
    CU(cuMemGetInfo(&before, &total));
    CU(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    assert_int_equal(granularity, unit);
    assert_int_equal(cuMemCreate(&handle, 1000, &properties, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemCreate(&handle, 1 << 30, &properties, 0), CUDA_ERROR_OUT_OF_MEMORY);
    CU(cuMemCreate(&handle, 2 * unit, &properties, 0));
    CU(cuMemGetInfo(&after, &total));
    assert_int_equal(before - after, 2 * unit);
    CU(cuMemAddressReserve(&p, 8 * unit, 0, 0, 0));
    assert_int_equal(p % unit, 0);
    CU(cuMemMap(p + unit, 2 * unit, 0, handle, 0));
    assert_int_equal(cuMemMap(p + 2 * unit, 2 * unit, 0, handle, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemSetAccess(p + unit, 2 * unit, &access, 1));
    give_another_device_less(p + unit, 2 * unit);
    ((char *)(uintptr_t)p)[unit] = 77;
    CU(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    assert_int_equal(cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
    CU(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(fd);
    CU(cuMemMap(p + 4 * unit, unit, 0, imported, 0));
    CU(cuMemSetAccess(p + 4 * unit, unit, &access, 1));
    assert_int_equal(((char *)(uintptr_t)p)[4 * unit], 77);
    assert_int_equal(cuMemAddressFree(p, 8 * unit), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemRelease(handle)); /* the mapping keeps it */
    assert_int_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemRelease(imported));
    assert_int_equal(((char *)(uintptr_t)p)[unit], 77);
    CU(cuMemUnmap(p + 4 * unit, unit));
    CU(cuMemUnmap(p + unit, 2 * unit));
    CU(cuMemAddressFree(p, 8 * unit));
    CU(cuMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    assert_int_equal(cuMemRelease(handle), CUDA_ERROR_INVALID_VALUE);
}

/* ---- for network adapters ---- */

/* The descriptor's position is where the range begins. */
static void expect_byte(int fd, size_t at, char wanted)
{
    const off_t begin = lseek(fd, 0, SEEK_CUR);
    char found = 0;

    assert_int_equal(pread(fd, &found, 1, begin + (off_t)at), 1);
    assert_int_equal(found, wanted);
}

static void device_memory_has_descriptors_of_ranges(void **state)
{
    const size_t page = 4096;
    CUdeviceptr small, p;
    void *pinned;
    int fd, flagged, works;

    (void)state;
    OK(cudaSetDevice(1));
    CU(cuDeviceGetAttribute(&works, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1));
    assert_int_equal(works, 1);
    CU(cuMemAlloc(&small, 100));
    CU(cuMemAlloc(&p, 3 * page)); /* it does not begin with a page */
    const CUdeviceptr begin = p / page * page;
    CU(cuMemGetHandleForAddressRange(&fd, begin, 4 * page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    CU(cuMemGetHandleForAddressRange(&flagged, begin + page, page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD,
                                     CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE));
    CU(cuMemsetD8(p, 5, 3 * page));
    CU(cuMemsetD8(p + page, 6, 1));
    expect_byte(fd, p - begin, 5);
    expect_byte(fd, p - begin + page, 6);
    expect_byte(flagged, p - begin, 6);
    const char written = 9;
    assert_int_equal(pwrite(flagged, &written, 1, lseek(flagged, 0, SEEK_CUR) + (off_t)(p - begin)), 1);
    assert_int_equal(((char *)(uintptr_t)p)[page], 9);
    assert_int_equal(cuMemGetHandleForAddressRange(&works, begin + 512, page, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetHandleForAddressRange(&works, begin, 512, 1, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetHandleForAddressRange(&works, begin, page, 2, 0), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetHandleForAddressRange(&works, begin, page, 1, 2), CUDA_ERROR_INVALID_VALUE);
    assert_int_equal(cuMemGetHandleForAddressRange(&works, begin, (size_t)100 << 20, 1, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cudaMallocHost(&pinned, page));
    assert_int_equal(cuMemGetHandleForAddressRange(&works, (uintptr_t)pinned, page, 1, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cudaFreeHost(pinned));
    close(fd);
    close(flagged);
    CU(cuMemFree(p));
    CU(cuMemFree(small));
}

static void mapped_memory_has_descriptors_of_ranges(void **state)
{
    const size_t unit = 2 << 20, page = 4096;
    CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr p;
    int fd;

    (void)state;
    OK(cudaSetDevice(0));
    CU(cuMemCreate(&handle, 2 * unit, &properties, 0));
    CU(cuMemAddressReserve(&p, 2 * unit, 0, 0, 0));
    assert_int_equal(cuMemGetHandleForAddressRange(&fd, p, unit, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemMap(p, unit, unit, handle, 0)); /* the second half of the memory */
    CU(cuMemSetAccess(p, unit, &access, 1));
    CU(cuMemsetD8(p + page, 7, 2));
    CU(cuMemGetHandleForAddressRange(&fd, p + page, unit - page, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0));
    expect_byte(fd, 1, 7);
    expect_byte(fd, 2, 0);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), unit + page);
    close(fd);
    assert_int_equal(cuMemGetHandleForAddressRange(&fd, p + page, unit, 1, 0), CUDA_ERROR_INVALID_VALUE);
    CU(cuMemUnmap(p, unit));
    CU(cuMemAddressFree(p, 2 * unit));
    CU(cuMemRelease(handle));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_works_before_the_start),
        cmocka_unit_test(primary_contexts_become_active_when_they_are_used),
        cmocka_unit_test(contexts_are_a_stack_of_each_thread),
        cmocka_unit_test(runtime_and_driver_share_memory_and_streams),
        cmocka_unit_test(streams_write_and_wait_for_values),
        cmocka_unit_test(every_condition_is_met_by_its_values),
        cmocka_unit_test(rows_and_boxes_are_copied_and_filled),
        cmocka_unit_test(batches_are_of_the_version_that_was_asked_for),
        cmocka_unit_test(pools_are_those_of_the_runtime),
        cmocka_unit_test(functions_are_found_by_name_and_version),
        cmocka_unit_test(functions_for_threads_use_their_streams),
        cmocka_unit_test(everything_for_threads_is_on_their_streams),
        cmocka_unit_test(machine_code_is_refused),
        cmocka_unit_test(memory_is_mapped_where_it_is_wanted),
        cmocka_unit_test(device_memory_has_descriptors_of_ranges),
        cmocka_unit_test(mapped_memory_has_descriptors_of_ranges),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
