/* SPDX-License-Identifier: Apache-2.0 */
/** memory_cuda_test.c - memory: limits, pointers, registration, copies of every shape. */
#include "cuda_test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static const size_t mib = 1 << 20;

/* ---- devices and errors ---- */

static void the_thread_chooses_its_device(void **state)
{
    int device;

    (void)state;
    OK(cudaSetDevice(2));
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(4));
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(-1));
    OK(cudaGetDevice(&device));
    assert_int_equal(device, 2);
    OK(cudaSetDevice(0));
}

static void *new_thread(void *arg)
{
    int device = -1;
    cudaError_t before = cudaPeekAtLastError();

    (void)arg;
    if (cudaGetDevice(&device) || before) return (void *)1;
    return device == 0 ? NULL : (void *)2;
}

static void a_new_thread_has_device_0_and_no_error(void **state)
{
    pthread_t thread;
    void *wrong;

    (void)state;
    OK(cudaSetDevice(3));
    FAILS(cudaErrorInvalidDevice, cudaSetDevice(99));
    pthread_create(&thread, NULL, new_thread, NULL);
    pthread_join(thread, &wrong);
    assert_null(wrong);
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidDevice);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
    OK(cudaSetDevice(0));
}

static void errors_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_string_equal(cudaGetErrorString(cudaErrorStreamCaptureImplicit),
                        "operation would make the legacy stream depend on a capturing blocking stream");
    assert_string_equal(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
    assert_string_equal(cudaGetErrorString((cudaError_t)12345), "unrecognized error code");
}

/* ---- allocations ---- */

static void allocations_are_aligned_counted_and_freed_once(void **state)
{
    size_t free_before, free_now, total;
    void *p, *q;

    (void)state;
    OK(cudaMemGetInfo(&free_before, &total));
    assert_int_equal(total, 64 * mib);
    OK(cudaMalloc(&p, 1000));
    OK(cudaMalloc(&q, 10 * mib));
    assert_int_equal((uintptr_t)p % 256, 0);
    assert_int_equal((uintptr_t)q % 256, 0);
    OK(cudaMemGetInfo(&free_now, &total));
    assert_in_range(free_before - free_now, 10 * mib + 1000, 11 * mib);
    OK(cudaFree(q));
    OK(cudaFree(p));
    OK(cudaMemGetInfo(&free_now, &total));
    assert_int_equal(free_now, free_before);
    FAILS(cudaErrorInvalidValue, cudaFree(p));
    FAILS(cudaErrorInvalidValue, cudaFree(&total));
    OK(cudaFree(NULL));
    p = &total;
    OK(cudaMalloc(&p, 0));
    assert_null(p);
    OK(cudaMalloc(&p, 100));
    FAILS(cudaErrorInvalidValue, cudaFree((char *)p + 8));
    OK(cudaFree(p));
    cudaGetLastError();
}

static void too_much_is_refused_and_less_still_works(void **state)
{
    void *p = (void *)state, *q;

    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, 65 * mib));
    assert_ptr_equal(p, state);
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&p, SIZE_MAX));
    OK(cudaMalloc(&p, 60 * mib));
    FAILS(cudaErrorMemoryAllocation, cudaMalloc(&q, 5 * mib));
    FAILS(cudaErrorMemoryAllocation, cudaMallocManaged(&q, 5 * mib, cudaMemAttachGlobal));
    OK(cudaMalloc(&q, mib));
    OK(cudaFree(q));
    OK(cudaFree(p));
    assert_int_equal(cudaGetLastError(), cudaErrorMemoryAllocation);
    OK(cudaSetDevice(1)); /* every device has its own */
    OK(cudaMalloc(&p, 60 * mib));
    OK(cudaFree(p));
    OK(cudaSetDevice(0));
}

static void freed_memory_comes_back_zero_and_pieces_join(void **state)
{
    char *p[6], *all, *host = malloc(mib);

    (void)state;
    for (int i = 0; i < 6; i++) {
        OK(cudaMalloc((void **)&p[i], 9 * mib + (size_t)i * 512));
        OK(cudaMemset(p[i], 0xee, 9 * mib));
    }
    OK(cudaDeviceSynchronize());
    for (int i = 0; i < 6; i += 2) OK(cudaFree(p[i]));
    for (int i = 1; i < 6; i += 2) OK(cudaFree(p[i]));
    OK(cudaMalloc((void **)&all, 63 * mib));
    OK(cudaMemcpy(host, all + 20 * mib, mib, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < mib; i++) assert_int_equal(host[i], 0);
    OK(cudaFree(all));
    free(host);
}

static void free_waits_for_the_work_of_its_device(void **state)
{
    struct freeing f = {0};
    cudaStream_t stream;

    (void)state;
    OK(cudaMalloc(&f.ptr, 100));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaLaunchHostFunc(stream, until_go, &f));
    expect_free_to_wait(&f);
    OK(cudaStreamDestroy(stream));
}

/* ---- attributes of pointers ---- */

static void expect_pointer(const void *p, enum cudaMemoryType type, int device, const void *on_device,
                           const void *on_host)
{
    struct cudaPointerAttributes a;

    memset(&a, 0x5a, sizeof a);
    OK(cudaPointerGetAttributes(&a, p));
    assert_int_equal(a.type, type);
    assert_int_equal(a.device, device);
    assert_ptr_equal(a.devicePointer, on_device);
    assert_ptr_equal(a.hostPointer, on_host);
    assert_int_equal(a.reserved[0], 0x5a5a5a5a5a5a5a5a); /* callers of older versions have no room there */
}

static void pointers_say_what_they_are(void **state)
{
    char *device, *pinned, *managed, *own = malloc(100);

    (void)state;
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&device, 100));
    OK(cudaMallocManaged((void **)&managed, 100, cudaMemAttachGlobal));
    OK(cudaHostAlloc((void **)&pinned, 100, cudaHostAllocPortable));
    expect_pointer(device, cudaMemoryTypeDevice, 1, device, NULL);
    expect_pointer(device + 60, cudaMemoryTypeDevice, 1, device + 60, NULL);
    expect_pointer(managed, cudaMemoryTypeManaged, 1, managed, managed);
    expect_pointer(pinned + 7, cudaMemoryTypeHost, 1, pinned + 7, pinned + 7);
    expect_pointer(own, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, NULL, own);
    OK(cudaFree(device));
    OK(cudaFree(managed));
    OK(cudaFreeHost(pinned));
    FAILS(cudaErrorInvalidValue, cudaFreeHost(pinned));
    expect_pointer(device, cudaMemoryTypeUnregistered, cudaInvalidDeviceId, NULL, device);
    OK(cudaSetDevice(0));
    cudaGetLastError();
    free(own);
}

static void host_memory_is_registered_once(void **state)
{
    char *own = malloc(10000);
    void *on_device;
    unsigned flags;

    (void)state;
    FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
    OK(cudaHostRegister(own, 10000, cudaHostRegisterMapped));
    FAILS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own, 10000, 0));
    FAILS(cudaErrorHostMemoryAlreadyRegistered, cudaHostRegister(own + 5000, 100, 0));
    OK(cudaHostGetDevicePointer(&on_device, own + 10, 0));
    assert_ptr_equal(on_device, own + 10);
    OK(cudaHostGetFlags(&flags, own));
    expect_pointer(own + 9999, cudaMemoryTypeHost, 0, own + 9999, own + 9999);
    OK(cudaHostUnregister(own));
    FAILS(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
    FAILS(cudaErrorInvalidValue, cudaHostRegister(NULL, 10, 0));
    cudaGetLastError();
    free(own);
}

static void managed_memory_is_the_hosts_too(void **state)
{
    const struct cudaMemLocation here = {.type = cudaMemLocationTypeDevice, .id = 0},
                                 nowhere = {.type = cudaMemLocationTypeDevice, .id = 9};
    int *m;

    (void)state;
    OK(cudaMallocManaged((void **)&m, 1000 * sizeof *m, cudaMemAttachGlobal));
    OK(cudaMemPrefetchAsync(m, 1000 * sizeof *m, here, 0, NULL));
    FAILS(cudaErrorInvalidDevice, cudaMemPrefetchAsync(m, 1000 * sizeof *m, nowhere, 0, NULL));
    FAILS(cudaErrorInvalidValue, cudaMemPrefetchAsync(&m, 8, here, 0, NULL));
    OK(cudaMemAdvise(m, 1000, cudaMemAdviseSetReadMostly, here));
    FAILS(cudaErrorInvalidValue, cudaMemAdvise(m, 1000, (enum cudaMemoryAdvise)7, here));
    OK(cudaMemsetAsync(m, 1, 1000 * sizeof *m, NULL));
    OK(cudaDeviceSynchronize());
    assert_int_equal(m[999], 0x01010101);
    OK(cudaFree(m));
    cudaGetLastError();
}

/* ---- copies ---- */

static void a_pageable_source_may_be_reused_at_once(void **state)
{
    enum { N = 1 << 20 };
    atomic_int go = 0;
    cudaStream_t stream;
    char *host = malloc(N), *device, *back;

    (void)state;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMalloc((void **)&device, N));
    OK(cudaMallocHost((void **)&back, N));
    OK(cudaLaunchHostFunc(stream, wait_for_flag, &go));
    memset(host, 7, N);
    OK(cudaMemcpyAsync(device, host, N, cudaMemcpyHostToDevice, stream)); /* returns, though the stream stands */
    memset(host, 9, N);
    OK(cudaMemcpyAsync(back, device, N, cudaMemcpyDeviceToHost, stream));
    FAILS(cudaErrorNotReady, cudaStreamQuery(stream));
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    atomic_store(&go, 1);
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(back[0], 7);
    assert_int_equal(back[N - 1], 7);
    memset(host, 0, N);
    OK(cudaMemcpyAsync(host, device, N, cudaMemcpyDeviceToHost,
                       stream)); /* pageable: it is there when the call returns */
    assert_int_equal(host[N - 1], 7);
    OK(cudaFree(device));
    OK(cudaFreeHost(back));
    OK(cudaStreamDestroy(stream));
    free(host);
}

static void copies_check_their_arguments(void **state)
{
    char *device, host[200];

    (void)state;
    OK(cudaMalloc((void **)&device, 100));
    FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, 10, (enum cudaMemcpyKind)5));
    FAILS(cudaErrorInvalidMemcpyDirection, cudaMemcpy(device, host, 10, (enum cudaMemcpyKind) - 1));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(NULL, host, 10, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidValue, cudaMemcpy(device, host, 101, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidValue, cudaMemset(device + 50, 0, 51));
    FAILS(cudaErrorInvalidPitchValue, cudaMemcpy2D(device, 8, host, 16, 9, 2, cudaMemcpyHostToDevice));
    FAILS(cudaErrorInvalidResourceHandle, cudaMemcpyAsync(device, host, 10, cudaMemcpyDefault, (cudaStream_t)0x77));
    OK(cudaMemcpy(NULL, NULL, 0, cudaMemcpyDefault));
    OK(cudaFree(device));
    cudaGetLastError();
}

static void rows_and_boxes_move(void **state)
{
    enum { W = 5, H = 4, D = 3, PITCH = 9 };
    char host[D * H * W], padded[D * H * PITCH] = {0}, back[D * H * W] = {0};
    struct cudaPitchedPtr volume;
    char *plane;
    size_t pitch;

    (void)state;
    for (int i = 0; i < D * H * W; i++) host[i] = (char)(i + 1);
    OK(cudaMallocPitch((void **)&plane, &pitch, W, H));
    assert_int_equal(pitch % 512, 0);
    OK(cudaMemcpy2D(plane, pitch, host, W, W, H, cudaMemcpyHostToDevice));
    OK(cudaMemcpy2D(padded, PITCH, plane, pitch, W, H, cudaMemcpyDefault));
    for (int y = 0; y < H; y++) assert_memory_equal(padded + y * PITCH, host + y * W, W);
    assert_int_equal(padded[W], 0);
    OK(cudaMemset2D(plane, pitch, 3, 2, H));
    OK(cudaMemcpy2D(back, W, plane, pitch, W, H, cudaMemcpyDeviceToHost));
    assert_int_equal(back[W + 1], 3);
    assert_int_equal(back[W + 2], host[W + 2]);
    OK(cudaFree(plane));

    OK(cudaMalloc3D(&volume, make_cudaExtent(W, H, D)));
    struct cudaMemcpy3DParms p = {.srcPtr = make_cudaPitchedPtr(host, W, W, H),
                                  .dstPtr = volume,
                                  .extent = make_cudaExtent(W, H, D),
                                  .kind = cudaMemcpyHostToDevice};
    OK(cudaMemcpy3D(&p));
    p = (struct cudaMemcpy3DParms){.srcPtr = volume,
                                   .srcPos = make_cudaPos(1, 1, 1),
                                   .dstPtr = make_cudaPitchedPtr(padded, PITCH, PITCH, H),
                                   .dstPos = make_cudaPos(2, 0, 0),
                                   .extent = make_cudaExtent(3, 2, 2),
                                   .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&p));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 2; y++)
            assert_memory_equal(padded + (z * H + y) * PITCH + 2, host + ((z + 1) * H + y + 1) * W + 1, 3);
    OK(cudaMemset3D(volume, 0x55, make_cudaExtent(W, H, D)));
    p = (struct cudaMemcpy3DParms){.srcPtr = volume,
                                   .dstPtr = make_cudaPitchedPtr(back, W, W, H),
                                   .extent = make_cudaExtent(W, H, D),
                                   .kind = cudaMemcpyDeviceToHost};
    OK(cudaMemcpy3D(&p));
    for (int i = 0; i < D * H * W; i++) assert_int_equal(back[i], 0x55);
    OK(cudaFree(volume.ptr));
}

/* Without the rows of a slice the start of the next one is unknown. */
static void slices_need_a_height(void **state)
{
    char host[3 * 4 * 5] = {0};
    struct cudaPitchedPtr volume, flat;

    (void)state;
    OK(cudaMalloc3D(&volume, make_cudaExtent(5, 4, 3)));
    flat = volume;
    flat.ysize = 0;
    struct cudaMemcpy3DParms p = {.srcPtr = make_cudaPitchedPtr(host, 5, 5, 4),
                                  .dstPtr = flat,
                                  .extent = make_cudaExtent(5, 4, 1),
                                  .kind = cudaMemcpyHostToDevice};
    OK(cudaMemcpy3D(&p));
    p.dstPos.z = 1;
    FAILS(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    p.dstPtr = volume;
    OK(cudaMemcpy3D(&p));
    p.dstPos.y = 1; /* the last row is of the next slice */
    FAILS(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    p.dstPos = make_cudaPos(0, 0, 0);
    p.extent.depth = 3;
    OK(cudaMemcpy3D(&p));
    p.srcPtr.ysize = 0;
    FAILS(cudaErrorInvalidValue, cudaMemcpy3D(&p));
    FAILS(cudaErrorInvalidValue, cudaMemset3D(flat, 1, make_cudaExtent(5, 4, 2)));
    OK(cudaMemset3D(flat, 1, make_cudaExtent(5, 4, 1)));
    p.srcPtr.ysize = 4;
    p.srcPos.x = SIZE_MAX; /* with the width it would be less than the pitch */
    FAILS(cudaErrorInvalidPitchValue, cudaMemcpy3D(&p));
    OK(cudaFree(volume.ptr));
    cudaGetLastError();
}

static void copies_between_devices(void **state)
{
    char *a, *b, host[64], back[64] = {0};

    (void)state;
    memset(host, 42, sizeof host);
    OK(cudaSetDevice(0));
    OK(cudaMalloc((void **)&a, 64));
    OK(cudaSetDevice(1));
    OK(cudaMalloc((void **)&b, 64));
    OK(cudaMemcpy(a, host, 64, cudaMemcpyHostToDevice));
    OK(cudaMemcpyPeer(b, 1, a, 0, 64));
    OK(cudaMemcpy(back, b, 64, cudaMemcpyDeviceToHost));
    assert_memory_equal(host, back, 64);
    FAILS(cudaErrorInvalidDevice, cudaMemcpyPeer(b, 7, a, 0, 64));
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaSetDevice(0));
    cudaGetLastError();
}

static void many_copies_go_by_one_call(void **state)
{
    enum { N = 3, EACH = 1000 };
    char *device, *pinned, own[EACH], back[EACH] = {0}, plane[4] = "ABCD";
    atomic_int go = 0;
    cudaStream_t stream;

    (void)state;
    memset(own, 3, sizeof own);
    OK(cudaMalloc((void **)&device, N * EACH));
    OK(cudaMallocHost((void **)&pinned, 2 * EACH));
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    memset(pinned, 1, 2 * EACH);
    void *to[N] = {device, device + EACH, device + 2 * EACH};
    const void *from[N] = {pinned, pinned + EACH, own};
    size_t bytes[N] = {EACH, EACH, EACH}, first[2] = {0, 1};
    struct cudaMemcpyAttributes how[2] = {{.srcAccessOrder = cudaMemcpySrcAccessOrderStream},
                                          {.srcAccessOrder = cudaMemcpySrcAccessOrderDuringApiCall}};
    OK(cudaLaunchHostFunc(stream, wait_for_flag, &go));
    OK(cudaMemcpyBatchAsync(to, from, bytes, N, how, first, 2, stream));
    memset(pinned, 2, 2 * EACH); /* the first is read in its turn, the second has been */
    memset(own, 4, sizeof own);
    atomic_store(&go, 1);
    for (int i = 0; i < N; i++) {
        OK(cudaMemcpyAsync(back, device + i * EACH, EACH, cudaMemcpyDeviceToHost, stream));
        assert_int_equal(back[EACH - 1], i == 0 ? 2 : i == 1 ? 1 : 3);
    }
    first[1] = 0;
    FAILS(cudaErrorInvalidValue, cudaMemcpyBatchAsync(to, from, bytes, N, how, first, 2, stream));
    how[0].srcAccessOrder = cudaMemcpySrcAccessOrderInvalid;
    FAILS(cudaErrorInvalidValue, cudaMemcpyBatchAsync(to, from, bytes, N, how, first, 1, stream));
    how[0].srcAccessOrder = cudaMemcpySrcAccessOrderAny;
    FAILS(cudaErrorInvalidValue, cudaMemcpyBatchAsync(to, from, bytes, N, how, first, 1, NULL));
    OK(cudaMemcpyBatchAsync(to, from, bytes, N, how, first, 1, cudaStreamPerThread));
    OK(cudaStreamSynchronize(cudaStreamPerThread));

    struct cudaMemcpy3DBatchOp box = {
        .src = {.type = cudaMemcpyOperandTypePointer, .op.ptr = {.ptr = plane}}, /* 2 rows of 2, without gaps */
        .dst = {.type = cudaMemcpyOperandTypePointer, .op.ptr = {.ptr = device, .rowLength = 100}},
        .extent = {.width = 2, .height = 2, .depth = 1},
        .srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    OK(cudaMemcpy3DBatchAsync(1, &box, 0, stream));
    OK(cudaMemcpyAsync(back, device, 102, cudaMemcpyDeviceToHost, stream));
    assert_memory_equal(back, "AB\2", 3);
    assert_memory_equal(back + 100, "CD", 2);
    box.src.type = cudaMemcpyOperandTypeArray;
    FAILS(cudaErrorNotSupported, cudaMemcpy3DBatchAsync(1, &box, 0, stream));
    OK(cudaFree(device));
    OK(cudaFreeHost(pinned));
    OK(cudaStreamDestroy(stream));
    cudaGetLastError();
}

static void *of_cuda_12(const char *name)
{
    void *library = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD); /* it serves both */

    return library ? dlvsym(library, name, "libcudart.so.12") : NULL;
}

/* Functions with other parameters in CUDA 12, also for a default stream of each thread. */
static void cuda_12_has_its_own_parameters(void **state)
{
    cudaError_t (*batch)(void **, void **, size_t *, size_t, struct cudaMemcpyAttributes *, size_t *, size_t, size_t *,
                         cudaStream_t);
    cudaError_t (*prefetch)(const void *, size_t, int, cudaStream_t);
    cudaError_t (*info)(cudaStream_t, enum cudaStreamCaptureStatus *, unsigned long long *);
    struct cudaMemcpyAttributes how = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusActive;
    unsigned long long id = 1;
    char *m;

    (void)state;
    OK(cudaMallocManaged((void **)&m, 100, cudaMemAttachGlobal));
    void *to[1] = {m}, *from[1] = {m + 1};
    size_t bytes[1] = {1}, first[1] = {0}, failed = 0;
    *(void **)&batch = of_cuda_12("cudaMemcpyBatchAsync_ptsz");
    *(void **)&prefetch = of_cuda_12("cudaMemPrefetchAsync_ptsz");
    *(void **)&info = of_cuda_12("cudaStreamGetCaptureInfo_ptsz");
    assert_true(batch && prefetch && info);
    m[1] = 7;
    OK(batch(to, from, bytes, 1, &how, first, 1, &failed, NULL));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    assert_int_equal(m[0], 7);
    assert_int_equal(failed, SIZE_MAX);
    OK(prefetch(m, 100, 0, NULL));
    FAILS(cudaErrorInvalidDevice, prefetch(m, 100, 99, NULL));
    OK(info(NULL, &status, &id));
    assert_int_equal(status, cudaStreamCaptureStatusNone);
    assert_int_equal(id, 0);
    OK(cudaFree(m));
    cudaGetLastError();
}

static void a_reset_frees_what_the_device_gave(void **state)
{
    size_t before, after, total;
    cudaStream_t stream;
    cudaEvent_t event;
    void *p, *pinned;

    (void)state;
    OK(cudaSetDevice(3));
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMallocHost(&pinned, mib));
    OK(cudaMalloc(&p, mib));
    OK(cudaStreamCreate(&stream));
    OK(cudaMallocAsync(&p, mib, stream));
    OK(cudaEventCreate(&event));
    OK(cudaDeviceReset());
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(stream));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventQuery(event));
    FAILS(cudaErrorInvalidValue, cudaFreeHost(pinned));
    OK(cudaSetDevice(0));
    cudaGetLastError();
}

/* ---- pools ---- */

static uint64_t pool_says(cudaMemPool_t pool, enum cudaMemPoolAttr attribute)
{
    uint64_t value;

    OK(cudaMemPoolGetAttribute(pool, attribute, &value));
    return value;
}

static void pools_keep_what_they_are_told_to(void **state)
{
    uint64_t threshold = UINT64_MAX, zero = 0;
    cudaMemPool_t pool, same;
    cudaStream_t stream;
    void *p, *q;

    (void)state;
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    OK(cudaDeviceGetMemPool(&same, 0));
    assert_ptr_equal(pool, same);
    OK(cudaStreamCreate(&stream));
    OK(cudaMallocAsync(&p, mib, stream));
    assert_int_equal(pool_says(pool, cudaMemPoolAttrUsedMemCurrent), mib);
    OK(cudaMemsetAsync(p, 1, mib, stream));
    OK(cudaFreeAsync(p, stream));
    assert_int_equal(pool_says(pool, cudaMemPoolAttrUsedMemCurrent), 0);
    OK(cudaStreamSynchronize(stream)); /* nothing is to be kept */
    assert_int_equal(pool_says(pool, cudaMemPoolAttrReservedMemCurrent), 0);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    OK(cudaMallocAsync(&p, mib, stream));
    OK(cudaFreeAsync(p, stream));
    OK(cudaMallocAsync(&q, mib, stream)); /* in order, so it may be the same */
    assert_ptr_equal(p, q);
    OK(cudaFreeAsync(q, stream));
    FAILS(cudaErrorInvalidValue, cudaFreeAsync(q, stream));
    OK(cudaStreamSynchronize(stream));
    assert_int_equal(pool_says(pool, cudaMemPoolAttrReservedMemCurrent), mib);
    assert_int_equal(pool_says(pool, cudaMemPoolAttrUsedMemHigh), mib);
    OK(cudaMemPoolTrimTo(pool, 0));
    assert_int_equal(pool_says(pool, cudaMemPoolAttrReservedMemCurrent), 0);
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &zero));
    OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
    assert_int_equal(pool_says(pool, cudaMemPoolAttrUsedMemHigh), 0);
    OK(cudaMallocAsync(&p, mib, stream));
    OK(cudaFree(p)); /* takes it, too */
    FAILS(cudaErrorMemoryAllocation, cudaMallocAsync(&p, 100 * mib, stream));
    OK(cudaStreamDestroy(stream));
    cudaGetLastError();
}

static void pools_are_made_and_destroyed(void **state)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice, .id = 1}};
    cudaMemPool_t pool;
    void *p;

    (void)state;
    OK(cudaSetDevice(1));
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync(&p, 1000, pool, NULL));
    OK(cudaMemPoolDestroy(pool));
    FAILS(cudaErrorInvalidValue, cudaMemPoolDestroy(pool));
    OK(cudaFreeAsync(p, NULL)); /* outlives its pool */
    OK(cudaDeviceSynchronize());
    OK(cudaSetDevice(0));
    cudaGetLastError();
}

static void expect_access(cudaMemPool_t pool, int device, enum cudaMemAccessFlags wanted)
{
    struct cudaMemLocation where = {.type = cudaMemLocationTypeDevice, .id = device};
    enum cudaMemAccessFlags flags;

    OK(cudaMemPoolGetAccess(&flags, pool, &where));
    assert_int_equal(flags, wanted);
}

static void pools_say_who_may_access_them(void **state)
{
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = 1}};
    struct cudaMemAccessDesc list[2] = {
        {.location = {.type = cudaMemLocationTypeDevice, .id = 0}, .flags = cudaMemAccessFlagsProtReadWrite},
        {.location = {.type = cudaMemLocationTypeDevice, .id = 2}, .flags = cudaMemAccessFlagsProtRead}};
    struct cudaMemLocation nowhere = {.type = cudaMemLocationTypeDevice, .id = 4};
    enum cudaMemAccessFlags flags;
    cudaMemPool_t pool;

    (void)state;
    OK(cudaMemPoolCreate(&pool, &properties));
    expect_access(pool, 1, cudaMemAccessFlagsProtReadWrite);
    expect_access(pool, 0, cudaMemAccessFlagsProtNone);
    OK(cudaMemPoolSetAccess(pool, list, 2));
    expect_access(pool, 0, cudaMemAccessFlagsProtReadWrite);
    expect_access(pool, 2, cudaMemAccessFlagsProtRead);
    expect_access(pool, 3, cudaMemAccessFlagsProtNone);
    list[0].flags = cudaMemAccessFlagsProtNone;
    list[1].flags = (enum cudaMemAccessFlags)2;
    FAILS(cudaErrorInvalidValue, cudaMemPoolSetAccess(pool, list, 2)); /* neither */
    expect_access(pool, 0, cudaMemAccessFlagsProtReadWrite);
    OK(cudaMemPoolSetAccess(pool, list, 1));
    expect_access(pool, 0, cudaMemAccessFlagsProtNone);
    list[0].location.id = 1; /* its own */
    FAILS(cudaErrorInvalidDevice, cudaMemPoolSetAccess(pool, list, 1));
    FAILS(cudaErrorInvalidDevice, cudaMemPoolGetAccess(&flags, pool, &nowhere));
    OK(cudaMemPoolDestroy(pool));
    cudaGetLastError();
}

static void a_pool_that_is_destroyed_gives_back_what_comes_later(void **state)
{
    struct cudaMemPoolProps properties = {
        .allocType = cudaMemAllocationTypePinned, .location = {.type = cudaMemLocationTypeDevice}, .maxSize = 2 * mib};
    size_t before, after, total;
    atomic_int go = 0;
    cudaMemPool_t pool;
    cudaStream_t stream;
    void *p, *q;

    (void)state;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    OK(cudaMemGetInfo(&before, &total));
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync(&p, mib + 1, pool, stream));
    FAILS(cudaErrorMemoryAllocation, cudaMallocFromPoolAsync(&q, mib, pool, stream)); /* its own limit */
    OK(cudaLaunchHostFunc(stream, wait_for_flag, &go));
    OK(cudaFreeAsync(p, stream));
    OK(cudaMemPoolDestroy(pool)); /* the stream has not come to the free */
    OK(cudaMemGetInfo(&after, &total));
    assert_true(after < before);
    atomic_store(&go, 1);
    OK(cudaStreamSynchronize(stream));
    OK(cudaMemGetInfo(&after, &total));
    assert_int_equal(after, before);
    OK(cudaStreamDestroy(stream));
    cudaGetLastError();
}

struct borrower {
    void *freed;
    atomic_int go, is_freed;
};

/* Frees in its own stream, which stands. */
static void *free_in_the_threads_stream(void *arg)
{
    struct borrower *b = arg;

    cudaMallocAsync(&b->freed, mib, cudaStreamPerThread);
    cudaLaunchHostFunc(cudaStreamPerThread, wait_for_flag, &b->go);
    cudaFreeAsync(b->freed, cudaStreamPerThread);
    atomic_store(&b->is_freed, 1);
    cudaStreamSynchronize(cudaStreamPerThread);
    return NULL;
}

static void streams_of_threads_are_not_the_same(void **state)
{
    struct borrower b = {0};
    pthread_t thread;
    void *p;

    (void)state;
    pthread_create(&thread, NULL, free_in_the_threads_stream, &b);
    while (!atomic_load(&b.is_freed)) continue;
    OK(cudaMallocAsync(&p, mib, cudaStreamPerThread));
    assert_ptr_not_equal(p, b.freed);
    atomic_store(&b.go, 1);
    pthread_join(thread, NULL);
    OK(cudaFreeAsync(p, cudaStreamPerThread));
    OK(cudaDeviceSynchronize());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_thread_chooses_its_device),
        cmocka_unit_test(a_new_thread_has_device_0_and_no_error),
        cmocka_unit_test(errors_have_names_and_texts),
        cmocka_unit_test(allocations_are_aligned_counted_and_freed_once),
        cmocka_unit_test(too_much_is_refused_and_less_still_works),
        cmocka_unit_test(freed_memory_comes_back_zero_and_pieces_join),
        cmocka_unit_test(free_waits_for_the_work_of_its_device),
        cmocka_unit_test(pointers_say_what_they_are),
        cmocka_unit_test(host_memory_is_registered_once),
        cmocka_unit_test(managed_memory_is_the_hosts_too),
        cmocka_unit_test(a_pageable_source_may_be_reused_at_once),
        cmocka_unit_test(copies_check_their_arguments),
        cmocka_unit_test(rows_and_boxes_move),
        cmocka_unit_test(slices_need_a_height),
        cmocka_unit_test(copies_between_devices),
        cmocka_unit_test(many_copies_go_by_one_call),
        cmocka_unit_test(cuda_12_has_its_own_parameters),
        cmocka_unit_test(a_reset_frees_what_the_device_gave),
        cmocka_unit_test(pools_keep_what_they_are_told_to),
        cmocka_unit_test(pools_are_made_and_destroyed),
        cmocka_unit_test(pools_say_who_may_access_them),
        cmocka_unit_test(a_pool_that_is_destroyed_gives_back_what_comes_later),
        cmocka_unit_test(streams_of_threads_are_not_the_same),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
