/* SPDX-License-Identifier: Apache-2.0 */
/** processes_cuda_test.c - sharing between processes: memory, events, pools. The second process is this program, with arguments. */
#include "driver_test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- memory and events ---- */

struct parcel {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

static int receive(int from, int to)
{
    struct parcel parcel;
    char *p, *again, answer = 0;
    cudaEvent_t event;
    cudaStream_t stream;

    if (read(from, &parcel, sizeof parcel) != sizeof parcel) return 1;
    if (cudaIpcOpenMemHandle((void **)&p, parcel.memory, cudaIpcMemLazyEnablePeerAccess)) return 2;
    if (cudaIpcOpenMemHandle((void **)&again, parcel.memory, cudaIpcMemLazyEnablePeerAccess) || again != p) return 3;
    if (cudaIpcOpenEventHandle(&event, parcel.event)) return 4;
    if (cudaStreamCreate(&stream) || cudaStreamWaitEvent(stream, event, 0)) return 5;
    if (cudaMemsetAsync(p + 5, 9, 1, stream)) return 6;
    if (cudaStreamQuery(stream) != cudaErrorNotReady) return 7;
    if (write(to, &answer, 1) != 1 || cudaStreamSynchronize(stream)) return 8;
    if (p[0] != 42) return 9;
    if (cudaIpcCloseMemHandle(p) || cudaMemset(p + 6, 10, 1) || cudaIpcCloseMemHandle(p)) return 10;
    if (cudaIpcCloseMemHandle(p) != cudaErrorInvalidValue) return 11;
    if (cudaEventDestroy(event) || cudaStreamDestroy(stream)) return 12;
    return 0;
}

struct gate {
    int fd;
};

static void wait_for_answer(void *arg)
{
    char answer;

    if (read(((struct gate *)arg)->fd, &answer, 1) != 1) abort();
}

/* The second process is a fresh program, as a child of this one could not use CUDA. */
static void processes_share_memory_and_events(void **state)
{
    int there[2], back[2], status;
    char *block, *p, path[64], from[16], to[16];
    struct parcel parcel;
    cudaStream_t stream;

    (void)state;
    OK(cudaSetDevice(0));
    assert_int_equal(pipe(there), 0);
    assert_int_equal(pipe(back), 0);
    OK(cudaMalloc((void **)&block, 3000));
    OK(cudaMalloc((void **)&p, 3000));
    OK(cudaMemset(p, 0, 3000));
    cudaEvent_t event, plain;
    OK(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    OK(cudaEventCreate(&plain));
    OK(cudaStreamCreate(&stream));
    OK(cudaIpcGetMemHandle(&parcel.memory, p + 100)); /* the handle of the whole allocation */
    OK(cudaIpcGetEventHandle(&parcel.event, event));
    FAILS(cudaErrorInvalidValue, cudaIpcGetEventHandle(&parcel.event, plain));
    FAILS(cudaErrorInvalidValue, cudaIpcGetMemHandle(&parcel.memory, &status));
    OK(cudaIpcGetMemHandle(&parcel.memory, p));
    void *mine;
    FAILS(cudaErrorDeviceUninitialized, cudaIpcOpenMemHandle(&mine, parcel.memory, cudaIpcMemLazyEnablePeerAccess));
    struct gate gate = {back[0]};
    OK(cudaLaunchHostFunc(stream, wait_for_answer, &gate));
    OK(cudaMemsetAsync(p, 42, 1, stream));
    OK(cudaEventRecord(event, stream));
    FAILS(cudaErrorNotReady, cudaEventQuery(event));
    pid_t child = fork();
    if (!child) {
        snprintf(path, sizeof path, "/proc/self/exe");
        snprintf(from, sizeof from, "%d", there[0]);
        snprintf(to, sizeof to, "%d", back[1]);
        execl(path, "processes_cuda_test", from, to, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(write(there[1], &parcel, sizeof parcel), sizeof parcel);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    OK(cudaEventSynchronize(event));
    OK(cudaDeviceSynchronize());
    assert_int_equal(p[5], 9);
    assert_int_equal(p[6], 10);
    OK(cudaFree(p));
    OK(cudaFree(block));
    OK(cudaEventDestroy(event));
    OK(cudaEventDestroy(plain));
    OK(cudaStreamDestroy(stream));
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(back[i]);
    }
    cudaGetLastError();
}

/* ---- pools ---- */

struct pool_parcel {
    int fd;
    struct cudaMemPoolPtrExportData place;
};

static int receive_pool(int from)
{
    struct pool_parcel parcel;
    struct cudaPointerAttributes what;
    cudaMemPool_t pool, none;
    uint64_t used = 1;
    size_t before, after, total;
    char *p, *same;

    if (read(from, &parcel, sizeof parcel) != sizeof parcel || cudaSetDevice(1)) return 1;
    if (cudaMemPoolImportFromShareableHandle(&none, (void *)(uintptr_t)from, cudaMemHandleTypePosixFileDescriptor, 0) !=
        cudaErrorInvalidValue)
        return 2;
    if (cudaMemPoolImportFromShareableHandle(&pool, (void *)(uintptr_t)parcel.fd, cudaMemHandleTypePosixFileDescriptor,
                                             0))
        return 3;
    close(parcel.fd);
    if (cudaMemGetInfo(&before, &total) || cudaMemPoolImportPointer((void **)&p, pool, &parcel.place)) return 4;
    if (cudaPointerGetAttributes(&what, p) || what.type != cudaMemoryTypeDevice || what.device != 1) return 5;
    if (cudaMemPoolImportPointer((void **)&same, pool, &parcel.place)) return 6;
    if (p[3] != 42 || cudaMemset(p + 4, 7, 1) || cudaDeviceSynchronize() || same[4] != 7) return 7;
    if (cudaMallocFromPoolAsync((void **)&same, 10, pool, NULL) != cudaErrorInvalidValue) return 8;
    if (cudaDeviceSetMemPool(1, pool) != cudaErrorInvalidValue) return 9;
    if (cudaMemPoolExportPointer(&parcel.place, p) != cudaErrorInvalidValue) return 10;
    if (cudaFreeAsync(p, NULL) || cudaDeviceSynchronize() || cudaFree(same)) return 11;
    if (cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &used) || used) return 12;
    if (cudaPointerGetAttributes(&what, p) || what.type != cudaMemoryTypeUnregistered) return 13;
    if (cudaMemGetInfo(&after, &total) || after != before) return 14; /* it was never this device's */
    return cudaMemPoolDestroy(pool) ? 15 : 0;
}

static void processes_share_pools(void **state)
{
    const struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                                .handleTypes = cudaMemHandleTypePosixFileDescriptor,
                                                .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    struct cudaMemPoolProps fabric = properties;
    int there[2], status;
    char *p, *plain, from[16];
    cudaMemPool_t pool;
    struct pool_parcel parcel;
    CUmemPoolPtrExportData same;

    (void)state;
    fabric.handleTypes = cudaMemHandleTypeFabric;
    FAILS(cudaErrorNotSupported, cudaMemPoolCreate(&pool, &fabric));
    OK(cudaDeviceGetDefaultMemPool(&pool, 0));
    FAILS(cudaErrorInvalidValue,
          cudaMemPoolExportToShareableHandle(&parcel.fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    OK(cudaMallocAsync((void **)&plain, 100, NULL));
    FAILS(cudaErrorInvalidValue, cudaMemPoolExportPointer(&parcel.place, plain));
    OK(cudaFree(plain));
    OK(cudaMemPoolCreate(&pool, &properties));
    OK(cudaMallocFromPoolAsync((void **)&p, 5000, pool, NULL));
    OK(cudaMallocFromPoolAsync((void **)&p, 5000, pool, NULL)); /* does not begin with a page */
    OK(cudaMemset(p, 42, 5000));
    OK(cudaMemPoolExportToShareableHandle(&parcel.fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    OK(cudaMemPoolExportPointer(&parcel.place, p));
    CU(cuMemPoolExportPointer(&same, (CUdeviceptr)(uintptr_t)p));
    assert_memory_equal(&same, &parcel.place, sizeof same);
    assert_int_equal(fcntl(parcel.fd, F_SETFD, 0), 0); /* the child inherits it */
    assert_int_equal(pipe(there), 0);
    pid_t child = fork();
    if (!child) {
        snprintf(from, sizeof from, "%d", there[0]);
        execl("/proc/self/exe", "processes_cuda_test", from, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(write(there[1], &parcel, sizeof parcel), sizeof parcel);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(p[4], 7);
    OK(cudaFree(p));
    OK(cudaMemPoolDestroy(pool));
    close(there[0]);
    close(there[1]);
    close(parcel.fd);
    cudaGetLastError();
}

/* A child of a process that has used CUDA gets an error, and does not hang. */
static void a_forked_child_is_told(void **state)
{
    int status;

    (void)state;
    pid_t child = fork();
    if (!child) {
        void *p;
        _exit(cudaMalloc(&p, 10) == cudaErrorInitializationError ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_share_memory_and_events),
        cmocka_unit_test(processes_share_pools),
        cmocka_unit_test(a_forked_child_is_told),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    setenv("KOLO_DEVICE_MEMORY", "64M", 1);
    if (argc == 2) return receive_pool(atoi(argv[1]));
    if (argc == 3) return receive(atoi(argv[1]), atoi(argv[2]));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
