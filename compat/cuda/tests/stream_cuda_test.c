/* SPDX-License-Identifier: Apache-2.0 */
/** stream_cuda_test.c - streams, events, host functions. */
#include "cuda_test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static void set_flag(void *arg)
{
    atomic_store((atomic_int *)arg, 1);
}

static cudaStream_t new_stream(unsigned flags)
{
    cudaStream_t stream;

    OK(cudaStreamCreateWithFlags(&stream, flags));
    return stream;
}

/* ---- order between streams ---- */

static void non_blocking_streams_overlap(void **state)
{
    atomic_int go = 0;
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);

    (void)state;
    OK(cudaLaunchHostFunc(a, wait_for_flag, &go));
    OK(cudaLaunchHostFunc(b, set_flag, &go));
    OK(cudaStreamSynchronize(b));
    OK(cudaStreamSynchronize(a));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
}

static void the_legacy_stream_and_blocking_streams_wait_for_each_other(void **state)
{
    atomic_int go = 0, after = 0, later = 0, unordered = 0;
    cudaStream_t blocking = new_stream(cudaStreamDefault), free_one = new_stream(cudaStreamNonBlocking);

    (void)state;
    OK(cudaLaunchHostFunc(blocking, wait_for_flag, &go));
    OK(cudaLaunchHostFunc(cudaStreamLegacy, set_flag, &after));
    OK(cudaLaunchHostFunc(blocking, set_flag, &later));
    OK(cudaLaunchHostFunc(free_one, set_flag, &unordered));
    OK(cudaStreamSynchronize(free_one));
    FAILS(cudaErrorNotReady, cudaStreamQuery(NULL));
    assert_int_equal(atomic_load(&after), 0);
    atomic_store(&go, 1);
    OK(cudaStreamSynchronize(blocking));
    assert_int_equal(atomic_load(&after), 1);
    assert_int_equal(atomic_load(&later), 1);
    OK(cudaStreamDestroy(blocking));
    OK(cudaStreamDestroy(free_one));
    cudaGetLastError();
}

/* Work in non-blocking streams relies on it, though CUDA promises it for some kinds of memory only. */
static void a_synchronous_call_with_nothing_before_it_is_done_at_once(void **state)
{
    int *device;

    (void)state;
    OK(cudaMalloc((void **)&device, sizeof *device));
    for (int i = 1; i < 100; i++) {
        OK(cudaMemcpy(device, &i, sizeof i, cudaMemcpyHostToDevice));
        assert_int_equal(*device, i); /* device memory is host memory */
        OK(cudaMemset(device, 0, sizeof *device));
        assert_int_equal(*device, 0);
    }
    OK(cudaFree(device));
}

static void the_threads_stream_is_its_own(void **state)
{
    atomic_int done = 0;
    unsigned long long legacy, own;
    unsigned flags;

    (void)state;
    OK(cudaLaunchHostFunc(cudaStreamPerThread, set_flag, &done));
    OK(cudaStreamSynchronize(cudaStreamPerThread));
    assert_int_equal(done, 1);
    OK(cudaStreamGetId(cudaStreamPerThread, &own));
    OK(cudaStreamGetId(NULL, &legacy));
    assert_int_not_equal(own, legacy);
    OK(cudaStreamGetFlags(cudaStreamPerThread, &flags));
    assert_int_equal(flags, cudaStreamDefault);
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(NULL));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(cudaStreamPerThread));
    cudaGetLastError();
}

static void streams_know_what_they_are(void **state)
{
    int least, greatest, priority, device;
    unsigned flags;
    cudaStream_t s;

    (void)state;
    OK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    assert_int_equal(least, 0);
    assert_int_equal(greatest, -5);
    OK(cudaSetDevice(1));
    OK(cudaStreamCreateWithPriority(&s, cudaStreamNonBlocking, -100));
    OK(cudaStreamGetPriority(s, &priority));
    assert_int_equal(priority, -5);
    OK(cudaSetDevice(0));
    OK(cudaStreamGetDevice(s, &device));
    assert_int_equal(device, 1);
    OK(cudaStreamGetFlags(s, &flags));
    assert_int_equal(flags, cudaStreamNonBlocking);
    FAILS(cudaErrorInvalidValue, cudaStreamCreateWithFlags(&s, 2));
    OK(cudaStreamDestroy(s));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamDestroy(s));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamSynchronize(s));
    FAILS(cudaErrorInvalidResourceHandle, cudaStreamGetFlags(s, &flags));
    cudaGetLastError();
}

static void a_busy_stream_may_be_destroyed(void **state)
{
    atomic_int go = 0, done = 0;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);

    (void)state;
    OK(cudaLaunchHostFunc(s, wait_for_flag, &go));
    OK(cudaLaunchHostFunc(s, set_flag, &done));
    OK(cudaStreamDestroy(s));
    atomic_store(&go, 1);
    while (!atomic_load(&done)) continue;
}

static int count_threads(void)
{
    DIR *dir = opendir("/proc/self/task");
    int n = 0;

    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

static void streams_cost_no_threads(void **state)
{
    enum { DEVICES = 4, EACH = 64 };
    static cudaStream_t s[DEVICES][EACH];
    int before = count_threads();

    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        OK(cudaSetDevice(d));
        for (int i = 0; i < EACH; i++) s[d][i] = new_stream(cudaStreamNonBlocking);
    }
    assert_in_range(count_threads(), 1, before);
    for (int d = 0; d < DEVICES; d++)
        for (int i = 0; i < EACH; i++) OK(cudaStreamDestroy(s[d][i]));
    OK(cudaSetDevice(0));
}

/* ---- events ---- */

static void an_event_that_was_never_recorded(void **state)
{
    cudaEvent_t a, b, quick;
    cudaStream_t s = new_stream(0);
    float ms;

    (void)state;
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    OK(cudaEventCreateWithFlags(&quick, cudaEventDisableTiming));
    OK(cudaEventQuery(a));
    OK(cudaEventSynchronize(a));
    OK(cudaStreamWaitEvent(s, a, 0));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, b));
    OK(cudaEventRecord(a, s));
    OK(cudaEventRecord(quick, s));
    OK(cudaStreamSynchronize(s));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventElapsedTime(&ms, a, quick));
    FAILS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&b, cudaEventInterprocess));
    FAILS(cudaErrorInvalidValue, cudaEventCreateWithFlags(&b, 8));
    OK(cudaEventDestroy(a));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventDestroy(a));
    FAILS(cudaErrorInvalidResourceHandle, cudaEventQuery(a));
    OK(cudaEventDestroy(b));
    OK(cudaEventDestroy(quick));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void a_later_record_does_not_move_earlier_waits(void **state)
{
    atomic_int go = 0, first = 0;
    cudaStream_t a = new_stream(cudaStreamNonBlocking), b = new_stream(cudaStreamNonBlocking);
    cudaEvent_t e;

    (void)state;
    OK(cudaEventCreate(&e));
    OK(cudaEventRecord(e, a));
    OK(cudaStreamWaitEvent(b, e, 0));
    OK(cudaLaunchHostFunc(a, wait_for_flag, &go));
    OK(cudaEventRecord(e, a));
    OK(cudaLaunchHostFunc(b, set_flag, &first));
    OK(cudaStreamSynchronize(b));
    assert_int_equal(first, 1);
    FAILS(cudaErrorNotReady, cudaEventQuery(e));
    assert_int_equal(cudaGetLastError(), cudaErrorNotReady);
    atomic_store(&go, 1);
    OK(cudaEventSynchronize(e));
    OK(cudaEventDestroy(e));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
}

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void take_two_ms(void *arg)
{
    double until = now_ms() + 2;

    while (now_ms() < until) continue;
    *(double *)arg = now_ms();
}

/* A record for which there is no memory: the event is as it was before. */
static void a_record_that_fails_is_none(void **state)
{
    struct rlimit before;
    atomic_int go = 0;
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    cudaEvent_t e;

    (void)state;
    OK(cudaEventCreateWithFlags(&e, cudaEventInterprocess | cudaEventDisableTiming));
    OK(cudaLaunchHostFunc(s, wait_for_flag, &go));
    OK(cudaEventRecord(e, s));
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_max = before.rlim_max}), 0);
    cudaError_t rc = cudaEventRecord(e, s);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    FAILS(cudaErrorMemoryAllocation, rc);
    FAILS(cudaErrorNotReady, cudaEventQuery(e)); /* of the record before */
    atomic_store(&go, 1);
    OK(cudaEventSynchronize(e));
    OK(cudaStreamSynchronize(s));
    OK(cudaEventDestroy(e));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void elapsed_time_is_that_of_the_work_between(void **state)
{
    cudaStream_t s = new_stream(0);
    cudaEvent_t a, b;
    double end;
    float ms;

    (void)state;
    OK(cudaEventCreate(&a));
    OK(cudaEventCreate(&b));
    double before = now_ms();
    OK(cudaEventRecord(a, s));
    OK(cudaLaunchHostFunc(s, take_two_ms, &end));
    OK(cudaEventRecord(b, s));
    cudaError_t rc = cudaEventElapsedTime(&ms, a, b);
    assert_true(rc == cudaSuccess || rc == cudaErrorNotReady);
    OK(cudaEventSynchronize(b));
    OK(cudaEventElapsedTime(&ms, a, b));
    assert_true(ms >= 2);
    assert_true(ms <= now_ms() - before);
    OK(cudaEventElapsedTime(&ms, b, a));
    assert_true(ms <= -2);
    OK(cudaEventDestroy(a));
    OK(cudaEventDestroy(b));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void events_order_streams_of_different_devices(void **state)
{
    atomic_int go = 0, done = 0;
    cudaStream_t a = new_stream(0), b;
    cudaEvent_t e;

    (void)state;
    OK(cudaEventCreate(&e));
    OK(cudaLaunchHostFunc(a, wait_for_flag, &go));
    OK(cudaEventRecord(e, a));
    OK(cudaSetDevice(1));
    b = new_stream(0);
    FAILS(cudaErrorInvalidResourceHandle, cudaEventRecord(e, b));
    OK(cudaStreamWaitEvent(b, e, 0));
    OK(cudaLaunchHostFunc(b, set_flag, &done));
    FAILS(cudaErrorNotReady, cudaStreamQuery(b));
    assert_int_equal(done, 0);
    atomic_store(&go, 1);
    OK(cudaStreamSynchronize(b));
    assert_int_equal(done, 1);
    OK(cudaStreamDestroy(b));
    OK(cudaSetDevice(0));
    OK(cudaStreamDestroy(a));
    OK(cudaEventDestroy(e));
    cudaGetLastError();
}

/* ---- host functions ---- */

struct chain {
    int order[4], n;
};

static void note(void *arg)
{
    struct chain *c = arg;

    c->order[c->n] = c->n;
    c->n++;
}

static void called_back(cudaStream_t stream, cudaError_t status, void *arg)
{
    (void)stream;
    *(int *)arg = status == cudaSuccess ? 7 : (int)status;
}

static void host_functions_run_in_order(void **state)
{
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    struct chain c = {0};
    int status = 0;

    (void)state;
    for (int i = 0; i < 4; i++) OK(cudaLaunchHostFunc(s, note, &c));
    OK(cudaStreamAddCallback(s, called_back, &status, 0));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(c.n, 4);
    assert_int_equal(status, 7);
    FAILS(cudaErrorInvalidValue, cudaLaunchHostFunc(s, NULL, NULL));
    FAILS(cudaErrorInvalidValue, cudaStreamAddCallback(s, called_back, &status, 1));
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

static void call_cuda(void *arg)
{
    void *p;

    *(cudaError_t *)arg = cudaMalloc(&p, 10);
}

static void host_functions_may_not_call_cuda(void **state)
{
    cudaStream_t s = new_stream(cudaStreamNonBlocking);
    cudaError_t rc = cudaSuccess;

    (void)state;
    OK(cudaLaunchHostFunc(s, call_cuda, &rc));
    OK(cudaStreamSynchronize(s));
    assert_int_equal(rc, cudaErrorNotPermitted);
    OK(cudaStreamDestroy(s));
    cudaGetLastError();
}

/* Each waits for the other; more of them than there are cores. */
static void host_functions_of_different_streams_may_wait_for_each_other(void **state)
{
    enum { N = 6 };
    static atomic_int flag[N + 1];
    cudaStream_t s[N];

    (void)state;
    for (int i = 0; i < N; i++) {
        s[i] = new_stream(cudaStreamNonBlocking);
        OK(cudaLaunchHostFunc(s[i], wait_for_flag, &flag[i + 1]));
        OK(cudaLaunchHostFunc(s[i], set_flag, &flag[i]));
    }
    set_flag(&flag[N]);
    for (int i = 0; i < N; i++) {
        OK(cudaStreamSynchronize(s[i]));
        OK(cudaStreamDestroy(s[i]));
    }
}

/* ---- peers, limits ---- */

static void peers_are_enabled_one_way(void **state)
{
    int can;
    size_t bytes;

    (void)state;
    OK(cudaDeviceCanAccessPeer(&can, 0, 0));
    assert_int_equal(can, 0);
    OK(cudaDeviceCanAccessPeer(&can, 0, 1));
    FAILS(cudaErrorInvalidDevice, cudaDeviceCanAccessPeer(&can, 0, 9));
    FAILS(cudaErrorInvalidValue, cudaDeviceEnablePeerAccess(1, 1));
    FAILS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    if (can) {
        OK(cudaDeviceEnablePeerAccess(1, 0));
        FAILS(cudaErrorPeerAccessAlreadyEnabled, cudaDeviceEnablePeerAccess(1, 0));
        OK(cudaDeviceDisablePeerAccess(1));
        FAILS(cudaErrorPeerAccessNotEnabled, cudaDeviceDisablePeerAccess(1));
    } else {
        FAILS(cudaErrorPeerAccessUnsupported, cudaDeviceEnablePeerAccess(1, 0));
    }
    OK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 12345));
    OK(cudaDeviceGetLimit(&bytes, cudaLimitPrintfFifoSize));
    assert_int_equal(bytes, 12345);
    FAILS(cudaErrorUnsupportedLimit, cudaDeviceGetLimit(&bytes, (enum cudaLimit)77));
    cudaGetLastError();
}

/* ---- devices ---- */

static void attributes_and_properties_agree(void **state)
{
    struct {
        struct cudaDeviceProp p;
        char canary[64];
    } room;
    int value;

    (void)state;
    memset(&room, 0x5a, sizeof room);
    OK(cudaGetDeviceProperties(&room.p, 1));
    for (size_t i = 0; i < sizeof room.canary; i++) assert_int_equal(room.canary[i], 0x5a);
    const struct {
        enum cudaDeviceAttr attribute;
        long value;
    } same[] = {
        {cudaDevAttrMaxThreadsPerBlock, room.p.maxThreadsPerBlock},
        {cudaDevAttrMaxGridDimX, room.p.maxGridSize[0]},
        {cudaDevAttrMaxBlockDimZ, room.p.maxThreadsDim[2]},
        {cudaDevAttrMaxSharedMemoryPerBlock, (long)room.p.sharedMemPerBlock},
        {cudaDevAttrMaxSharedMemoryPerBlockOptin, (long)room.p.sharedMemPerBlockOptin},
        {cudaDevAttrWarpSize, room.p.warpSize},
        {cudaDevAttrMultiProcessorCount, room.p.multiProcessorCount},
        {cudaDevAttrComputeCapabilityMajor, room.p.major},
        {cudaDevAttrComputeCapabilityMinor, room.p.minor},
        {cudaDevAttrPciBusId, room.p.pciBusID},
        {cudaDevAttrPciDeviceId, room.p.pciDeviceID},
        {cudaDevAttrPciDomainId, room.p.pciDomainID},
        {cudaDevAttrL2CacheSize, room.p.l2CacheSize},
        {cudaDevAttrGlobalMemoryBusWidth, room.p.memoryBusWidth},
        {cudaDevAttrMaxThreadsPerMultiProcessor, room.p.maxThreadsPerMultiProcessor},
        {cudaDevAttrMaxBlocksPerMultiprocessor, room.p.maxBlocksPerMultiProcessor},
        {cudaDevAttrManagedMemory, room.p.managedMemory},
        {cudaDevAttrConcurrentManagedAccess, room.p.concurrentManagedAccess},
        {cudaDevAttrPageableMemoryAccess, room.p.pageableMemoryAccess},
        {cudaDevAttrCooperativeLaunch, room.p.cooperativeLaunch},
        {cudaDevAttrMemoryPoolsSupported, room.p.memoryPoolsSupported},
        {cudaDevAttrGPUDirectRDMASupported, room.p.gpuDirectRDMASupported},
        {cudaDevAttrGPUDirectRDMAFlushWritesOptions, (long)room.p.gpuDirectRDMAFlushWritesOptions},
        {cudaDevAttrIpcEventSupport, room.p.ipcEventSupported},
        {cudaDevAttrMemoryPoolSupportedHandleTypes, (int)room.p.memoryPoolSupportedHandleTypes},
        {cudaDevAttrClusterLaunch, room.p.clusterLaunch},
        {cudaDevAttrHostRegisterSupported, room.p.hostRegisterSupported},
        {cudaDevAttrAsyncEngineCount, room.p.asyncEngineCount},
        {cudaDevAttrHostNumaId, room.p.hostNumaId},
    };
    FOR_EACH_CASE(c, same)
    {
        OK(cudaDeviceGetAttribute(&value, c->attribute, 1));
        if (value != c->value) fail_msg("attribute %d is %d, the property %ld", c->attribute, value, c->value);
    }
    FAILS(cudaErrorInvalidValue, cudaDeviceGetAttribute(&value, (enum cudaDeviceAttr)4000, 0));
    FAILS(cudaErrorInvalidDevice, cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99));
    cudaGetLastError();
}

static void pci_ids_go_round(void **state)
{
    char id[16], small[12];
    int device;

    (void)state;
    for (int i = 0; i < 4; i++) {
        OK(cudaDeviceGetPCIBusId(id, sizeof id, i));
        assert_int_equal(strlen(id), 12);
        OK(cudaDeviceGetByPCIBusId(&device, id));
        assert_int_equal(device, i);
    }
    FAILS(cudaErrorInvalidValue, cudaDeviceGetPCIBusId(small, sizeof small, 0));
    FAILS(cudaErrorInvalidDevice, cudaDeviceGetByPCIBusId(&device, "0001:02:1f.0"));
    FAILS(cudaErrorInvalidValue, cudaDeviceGetByPCIBusId(&device, "nonsense"));
    cudaGetLastError();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(non_blocking_streams_overlap),
        cmocka_unit_test(the_legacy_stream_and_blocking_streams_wait_for_each_other),
        cmocka_unit_test(a_synchronous_call_with_nothing_before_it_is_done_at_once),
        cmocka_unit_test(the_threads_stream_is_its_own),
        cmocka_unit_test(streams_know_what_they_are),
        cmocka_unit_test(a_busy_stream_may_be_destroyed),
        cmocka_unit_test(streams_cost_no_threads),
        cmocka_unit_test(an_event_that_was_never_recorded),
        cmocka_unit_test(a_later_record_does_not_move_earlier_waits),
        cmocka_unit_test(a_record_that_fails_is_none),
        cmocka_unit_test(elapsed_time_is_that_of_the_work_between),
        cmocka_unit_test(events_order_streams_of_different_devices),
        cmocka_unit_test(host_functions_run_in_order),
        cmocka_unit_test(host_functions_may_not_call_cuda),
        cmocka_unit_test(host_functions_of_different_streams_may_wait_for_each_other),
        cmocka_unit_test(peers_are_enabled_one_way),
        cmocka_unit_test(attributes_and_properties_agree),
        cmocka_unit_test(pci_ids_go_round),
    };

    setenv("KOLO_HOST_DEVICES", "4", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
