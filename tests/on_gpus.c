/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_gpus.c - lets programs that were written for host devices run with KOLO_DEVICES=cuda: the linker gives them these
 * functions instead of kolo.h's for devices, streams, events and memory, which are for host devices (-Wl,--wrap), and the
 * compiler replaces malloc, calloc and free by functions for memory of GPUs. Programs read and write that memory on the CPU, which
 * managed and pinned memory allow on any GPU, and all memory on the stand-in.
 *
 * TEST_GPUS: ranks of new communicators are spread over so many GPUs (1), and the program's devices are these by turns.
 *
 * Suites have buffers in static memory and on the stack of main, too: on_gpus_cases.c registers them (on_gpus_begin).
 */
#undef malloc
#undef calloc
#undef free
#include "device/cuda/context.h"
#include "include/kolo.h"
#include "tests/gpu_memory.h"
#include "tests/on_gpus.h"

#include <pthread.h>
#include <stdatomic.h>

static const struct kl_cuda_driver *driver(void)
{
    const struct kl_cuda_driver *cu;

    if (!kl_cuda_driver(&cu)) return cu;
    fprintf(stderr, "%s\n", kl_error_text());
    abort();
}

static ncclResult_t result(int rc)
{
    return !rc ? ncclSuccess : rc == 600 ? ncclInProgress : ncclUnhandledCudaError; /* CUDA_ERROR_NOT_READY */
}

/* ---- devices ---- */

static int spread(void)
{
    const char *gpus = getenv("TEST_GPUS");
    const int n = gpus ? (int)strtol(gpus, NULL, 10) : 1;

    return n > 0 ? n : 1;
}

ncclResult_t __wrap_koloSetDevice(int device);
ncclResult_t __wrap_koloSetDevice(int device)
{
    const struct kl_cuda_context *c;
    const ncclResult_t rc = kl_cuda_context_of(device % spread(), NULL, 0, &c);

    return rc ? rc : result(GPU_CALL(cuCtxSetCurrent, (kl_cu_context), c->handle));
}

/* A thread without a context uses device 0, as in CUDA's runtime. */
static const struct kl_cuda_driver *ready(void)
{
    const struct kl_cuda_driver *cu = driver();
    kl_cu_context context = NULL;

    if (cu->cuCtxGetCurrent(&context) || !context) (void)__wrap_koloSetDevice(0);
    return cu;
}

ncclResult_t __wrap_koloGetDevice(int *device);
ncclResult_t __wrap_koloGetDevice(int *device)
{
    *device = kl_cuda_current();
    return ncclSuccess;
}

ncclResult_t __wrap_koloGetDeviceCount(int *count);
ncclResult_t __wrap_koloGetDeviceCount(int *count)
{
    *count = driver()->devices;
    return ncclSuccess;
}

ncclResult_t __wrap_koloDeviceSynchronize(void);
ncclResult_t __wrap_koloDeviceSynchronize(void)
{
    (void)ready();
    return result(GPU_CALL(cuCtxSynchronize, (void)));
}

static void choose_device(int rank)
{
    (void)__wrap_koloSetDevice(rank);
}

ncclResult_t __real_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t __wrap_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank);
ncclResult_t __wrap_ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank)
{
    choose_device(rank);
    return __real_ncclCommInitRank(comm, nranks, id, rank);
}

ncclResult_t __real_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *c);
ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *c);
ncclResult_t __wrap_ncclCommInitRankConfig(ncclComm_t *comm, int nranks, ncclUniqueId id, int rank, ncclConfig_t *c)
{
    choose_device(rank);
    return __real_ncclCommInitRankConfig(comm, nranks, id, rank, c);
}

/* A GPU each, from 0 on, as ncclCommInitAll has it; where there are fewer, ranks share them. */
ncclResult_t __real_ncclCommInitAll(ncclComm_t *comms, int n, const int *list);
ncclResult_t __wrap_ncclCommInitAll(ncclComm_t *comms, int n, const int *list);
ncclResult_t __wrap_ncclCommInitAll(ncclComm_t *comms, int n, const int *list)
{
    const int before = kl_cuda_current();
    ncclUniqueId id;

    if (list || !comms || n <= spread()) return __real_ncclCommInitAll(comms, n, list);
    ncclResult_t rc = ncclGetUniqueId(&id);
    if (!rc) rc = ncclGroupStart();
    for (int r = 0; r < n && !rc; r++) rc = __wrap_ncclCommInitRank(&comms[r], n, id, r);
    if (!rc) rc = ncclGroupEnd();
    (void)__wrap_koloSetDevice(before);
    return rc;
}

/* ---- streams ---- */

static kl_cu_stream stream_of(koloStream_t stream)
{
    return (kl_cu_stream)(void *)stream;
}

ncclResult_t __wrap_koloStreamCreate(koloStream_t *stream, unsigned flags);
ncclResult_t __wrap_koloStreamCreate(koloStream_t *stream, unsigned flags)
{
    kl_cu_stream made = NULL;
    const int rc = ready()->cuStreamCreateWithPriority(&made, flags ? 0 : KL_CU_STREAM_NON_BLOCKING, 0);

    *stream = (koloStream_t)(void *)made;
    return result(rc);
}

ncclResult_t __wrap_koloStreamDestroy(koloStream_t stream);
ncclResult_t __wrap_koloStreamDestroy(koloStream_t stream)
{
    const int rc = ready()->cuStreamSynchronize(stream_of(stream));

    return result(rc ? rc : driver()->cuStreamDestroy(stream_of(stream)));
}

ncclResult_t __wrap_koloStreamSynchronize(koloStream_t stream);
ncclResult_t __wrap_koloStreamSynchronize(koloStream_t stream)
{
    return result(ready()->cuStreamSynchronize(stream_of(stream)));
}

ncclResult_t __wrap_koloStreamQuery(koloStream_t stream);
ncclResult_t __wrap_koloStreamQuery(koloStream_t stream)
{
    (void)ready();
    return result(GPU_CALL(cuStreamQuery, (kl_cu_stream), stream_of(stream)));
}

ncclResult_t __wrap_koloMemcpyAsync(void *to, const void *from, size_t bytes, koloStream_t stream);
ncclResult_t __wrap_koloMemcpyAsync(void *to, const void *from, size_t bytes, koloStream_t stream)
{
    return result(ready()->cuMemcpyAsync((uint64_t)(uintptr_t)to, (uint64_t)(uintptr_t)from, bytes, stream_of(stream)));
}

ncclResult_t __wrap_koloMemsetAsync(void *at, int value, size_t bytes, koloStream_t stream);
ncclResult_t __wrap_koloMemsetAsync(void *at, int value, size_t bytes, koloStream_t stream)
{
    (void)ready();
    return result(GPU_CALL(cuMemsetD8Async, (uint64_t, unsigned char, size_t, kl_cu_stream), (uint64_t)(uintptr_t)at,
                           (unsigned char)value, bytes, stream_of(stream)));
}

ncclResult_t __wrap_koloStreamLaunch(koloStream_t stream, void (*fn)(void *), void *arg);
ncclResult_t __wrap_koloStreamLaunch(koloStream_t stream, void (*fn)(void *), void *arg)
{
    return result(ready()->cuLaunchHostFunc(stream_of(stream), fn, arg));
}

/* ---- graphs: CUDA's numbers of modes are kolo.h's ---- */

ncclResult_t __wrap_koloStreamBeginCapture(koloStream_t stream, koloCaptureMode_t mode);
ncclResult_t __wrap_koloStreamBeginCapture(koloStream_t stream, koloCaptureMode_t mode)
{
    (void)ready();
    return result(GPU_CALL(cuStreamBeginCapture_v2, (kl_cu_stream, int), stream_of(stream), (int)mode));
}

ncclResult_t __wrap_koloStreamEndCapture(koloStream_t stream, koloGraph_t *graph);
ncclResult_t __wrap_koloStreamEndCapture(koloStream_t stream, koloGraph_t *graph)
{
    (void)ready();
    return result(GPU_CALL(cuStreamEndCapture, (kl_cu_stream, koloGraph_t *), stream_of(stream), graph));
}

ncclResult_t __wrap_koloGraphInstantiate(koloGraphExec_t *exec, koloGraph_t graph);
ncclResult_t __wrap_koloGraphInstantiate(koloGraphExec_t *exec, koloGraph_t graph)
{
    (void)ready();
    return result(
        GPU_CALL(cuGraphInstantiateWithFlags, (koloGraphExec_t *, koloGraph_t, unsigned long long), exec, graph, 0));
}

ncclResult_t __wrap_koloGraphLaunch(koloGraphExec_t exec, koloStream_t stream);
ncclResult_t __wrap_koloGraphLaunch(koloGraphExec_t exec, koloStream_t stream)
{
    (void)ready();
    return result(GPU_CALL(cuGraphLaunch, (koloGraphExec_t, kl_cu_stream), exec, stream_of(stream)));
}

ncclResult_t __wrap_koloGraphDestroy(koloGraph_t graph);
ncclResult_t __wrap_koloGraphDestroy(koloGraph_t graph)
{
    return result(GPU_CALL(cuGraphDestroy, (koloGraph_t), graph));
}

ncclResult_t __wrap_koloGraphExecDestroy(koloGraphExec_t exec);
ncclResult_t __wrap_koloGraphExecDestroy(koloGraphExec_t exec)
{
    return result(GPU_CALL(cuGraphExecDestroy, (koloGraphExec_t), exec));
}

/* ---- events ---- */

static kl_cu_event event_of(koloEvent_t event)
{
    return (kl_cu_event)(void *)event;
}

ncclResult_t __wrap_koloEventCreate(koloEvent_t *event);
ncclResult_t __wrap_koloEventCreate(koloEvent_t *event)
{
    kl_cu_event made = NULL;
    const int rc = ready()->cuEventCreate(&made, 0);

    *event = (koloEvent_t)(void *)made;
    return result(rc);
}

ncclResult_t __wrap_koloEventCreateWithFlags(koloEvent_t *event, unsigned flags);
ncclResult_t __wrap_koloEventCreateWithFlags(koloEvent_t *event, unsigned flags)
{
    (void)flags; /* of time and waiting */
    return __wrap_koloEventCreate(event);
}

ncclResult_t __wrap_koloEventRecord(koloEvent_t event, koloStream_t stream);
ncclResult_t __wrap_koloEventRecord(koloEvent_t event, koloStream_t stream)
{
    return result(ready()->cuEventRecord(event_of(event), stream_of(stream)));
}

ncclResult_t __wrap_koloEventQuery(koloEvent_t event);
ncclResult_t __wrap_koloEventQuery(koloEvent_t event)
{
    return result(GPU_CALL(cuEventQuery, (kl_cu_event), event_of(event)));
}

ncclResult_t __wrap_koloEventSynchronize(koloEvent_t event);
ncclResult_t __wrap_koloEventSynchronize(koloEvent_t event)
{
    return result(GPU_CALL(cuEventSynchronize, (kl_cu_event), event_of(event)));
}

ncclResult_t __wrap_koloEventDestroy(koloEvent_t event);
ncclResult_t __wrap_koloEventDestroy(koloEvent_t event)
{
    return result(driver()->cuEventDestroy(event_of(event)));
}

ncclResult_t __wrap_koloStreamWaitEvent(koloStream_t stream, koloEvent_t event, unsigned flags);
ncclResult_t __wrap_koloStreamWaitEvent(koloStream_t stream, koloEvent_t event, unsigned flags)
{
    return result(ready()->cuStreamWaitEvent(stream_of(stream), event_of(event), flags));
}

/* ---- memory ---- */

/* Before each allocation; as large as the strictest alignment. */
struct header {
    struct gpu_memory memory;
    char unused[256 - sizeof(struct gpu_memory)];
};

static struct header *allocate(enum gpu_memory_kind kind, size_t bytes)
{
    const struct kl_cuda_driver *cu = ready();
    struct gpu_memory m;

    const int rc = gpu_memory_alloc(cu, &m, kind, kl_cuda_current(), bytes + sizeof(struct header));
    if (rc) {
        fprintf(stderr, "%zu bytes of %s memory: %s\n", bytes, gpu_memory_names[kind], kl_cuda_error_name(cu, rc));
        return NULL;
    }
    struct header *h = (struct header *)(uintptr_t)m.at;
    h->memory = m;
    return h;
}

ncclResult_t __wrap_koloMalloc(void **ptr, size_t bytes);
ncclResult_t __wrap_koloMalloc(void **ptr, size_t bytes)
{
    struct header *h = allocate(GPU_POOL, bytes);

    *ptr = h ? h + 1 : NULL;
    return h ? ncclSuccess : ncclSystemError;
}

void *kolo_test_malloc(size_t bytes);
void kolo_test_free(void *ptr);
void *kolo_test_calloc(size_t n, size_t bytes);

/* By turns. */
void *kolo_test_malloc(size_t bytes)
{
    static const enum gpu_memory_kind kinds[] = {GPU_PINNED, GPU_DEVICE, GPU_MANAGED, GPU_POOL, GPU_VIRTUAL};
    static atomic_uint turn;
    struct header *h = allocate(kinds[atomic_fetch_add(&turn, 1) % GPU_MEMORY_KINDS], bytes);

    return h ? h + 1 : NULL;
}

/* It is no buffer: programs keep their own state in it. */
void *kolo_test_calloc(size_t n, size_t bytes)
{
    struct header *h = calloc(1, sizeof *h + n * bytes);

    if (h) h->memory.bytes = 0;
    return h ? h + 1 : NULL;
}

void kolo_test_free(void *ptr)
{
    struct header *h = ptr ? (struct header *)ptr - 1 : NULL;

    if (!h) return;
    if (h->memory.bytes) {
        const struct gpu_memory m = h->memory;
        (void)gpu_memory_free(ready(), &m);
    } else {
        free(h);
    }
}

ncclResult_t __wrap_koloFree(void *ptr);
ncclResult_t __wrap_koloFree(void *ptr)
{
    kolo_test_free(ptr);
    return ncclSuccess;
}

/* ---- memory that a program has without a call ---- */

extern char __executable_start, end; /* of the linker */

static void register_range(const char *from, const char *to)
{
    const int rc = ready()->cuMemHostRegister((void *)(uintptr_t)from, (size_t)(to - from), KL_CU_HOST_PORTABLE_MAPPED);

    if (!rc) return;
    fprintf(stderr, "registering %zu bytes of the program: %d\n", (size_t)(to - from), rc);
    abort();
}

/* Of a stack that grows, a part that suffices. */
void on_gpus_begin(void)
{
    char deep[512 << 10];
    static bool done;
    pthread_attr_t attributes;
    size_t bytes = 0;
    void *low = NULL;

    if (done) return;
    done = true;
    memset(deep, 0, sizeof deep);
    if (pthread_getattr_np(pthread_self(), &attributes) || pthread_attr_getstack(&attributes, &low, &bytes)) abort();
    pthread_attr_destroy(&attributes);
    register_range(deep, (char *)low + bytes);
    register_range(&__executable_start, &end);
}
