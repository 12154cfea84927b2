/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/runtime/kernel.h"

#include "compat/cuda/core/device.h"
#include "compat/cuda/core/multicast.h"
#include "compat/cuda/core/peer.h"
#include "compat/cuda/core/stream.h"
#include "compat/cuda/core/strict.h"
#include "compat/cuda/engine/engine.h"
#include "compat/cuda/runtime/entry.h"
#include "compat/cuda/runtime/settings.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    SHARED_WITHOUT_ASKING = 48 << 10,
    MAX_THREADS = 1024,
    CLUSTER_MAX = 16, /* blocks */
    REGISTERS = 32,
    PTX_VERSION = 80 /* as kolo-nvcc tells templates */
};

/* ---- programs' settings of functions ---- */

struct asked {
    const void *function;
    int shared_bytes, carveout;
    struct asked *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct asked *all_asked;

static struct asked asked_for(const void *function)
{
    struct asked found = {.shared_bytes = SHARED_WITHOUT_ASKING, .carveout = -1};

    pthread_mutex_lock(&lock);
    for (const struct asked *a = all_asked; a; a = a->next)
        if (a->function == function) found = *a;
    pthread_mutex_unlock(&lock);
    return found;
}

static cudaError_t ask(const void *function, enum cudaFuncAttribute attribute, int value)
{
    struct asked *a;

    pthread_mutex_lock(&lock);
    for (a = all_asked; a && a->function != function;) a = a->next;
    if (!a && (a = malloc(sizeof *a))) {
        *a = (struct asked){
            .function = function, .shared_bytes = SHARED_WITHOUT_ASKING, .carveout = -1, .next = all_asked};
        all_asked = a;
    }
    if (a && attribute == cudaFuncAttributeMaxDynamicSharedMemorySize) a->shared_bytes = value;
    if (a && attribute == cudaFuncAttributePreferredSharedMemoryCarveout) a->carveout = value;
    pthread_mutex_unlock(&lock);
    return a ? cudaSuccess : cudaErrorMemoryAllocation;
}

/* ---- attributes of functions ---- */

/* A kernel of the engine, or (NULL) one for a GPU. */
static cudaError_t find(const void *function, const struct kl_engine_kernel **kernel)
{
    *kernel = kl_engine_find_kernel(function);
    return *kernel || kl_cudart_foreign_kernel(function) ? cudaSuccess : cudaErrorInvalidDeviceFunction;
}

static size_t static_shared(const struct kl_engine_kernel *kernel)
{
    return kernel && kernel->shared_bytes ? *kernel->shared_bytes : 0;
}

static int threads_of(const struct kl_engine_kernel *kernel)
{
    return kernel && kernel->max_threads ? (int)kernel->max_threads : MAX_THREADS;
}

static const struct kl_cuda_model *model(void)
{
    const struct kl_cuda_device *d;

    return kl_cuda_device(kl_cuda_current(), &d) ? kl_cuda_model(0, 0) : d->model;
}

/* How many blocks a multiprocessor holds at once. */
static int active_blocks(const struct kl_engine_kernel *kernel, int threads, size_t shared_bytes)
{
    const struct kl_cuda_model *m = model();
    size_t shared = shared_bytes + static_shared(kernel);

    if (threads > threads_of(kernel)) return 0;
    int by_threads = (int)m->threads / ((threads + 31) / 32 * 32), most = (int)m->blocks;
    int by_shared = shared ? (int)(((size_t)m->shared_kib << 10) / shared) : most;
    if (by_threads < most) most = by_threads;
    return by_shared < most ? by_shared : most;
}

/* ---- launches ---- */

struct grid {
    struct kl_engine_launch launch;
    unsigned threads, room; /* of a block; that the device holds: in strict mode */
    _Alignas(64) char arguments[];
};

static void enter_block(const struct kl_engine_launch *launch)
{
    const struct grid *g = (const struct grid *)launch; /* its first member */

    kl_cuda_strict_enter_block(launch->device, g->threads, g->room);
}

static void leave_block(const struct kl_engine_launch *launch)
{
    kl_cuda_strict_leave_block(launch->device, ((const struct grid *)launch)->threads);
}

static void limit(struct grid *g)
{
    const struct kl_engine_dim *b = &g->launch.block;

    g->threads = (b->x * b->y * b->z + 31) / 32 * 32;
    g->room = model()->processors * model()->threads;
    g->launch.enter = enter_block;
    g->launch.leave = leave_block;
}

static void run_grid(void *data)
{
    const struct grid *g = data;

    if (kl_cuda_failure(g->launch.device)) return;
    kl_cuda_strict_enter(g->launch.device);
    kl_cuda_turn_begun();
    int rc = kl_engine_run(&g->launch);
    kl_cuda_strict_leave(g->launch.device);
    if (rc) kl_cuda_fail_device(g->launch.device, (cudaError_t)rc);
}

static cudaError_t check_extents(const struct kl_cudart_launch *l)
{
    const uint64_t threads = (uint64_t)l->block.x * l->block.y * l->block.z;

    if (!threads || threads > MAX_THREADS || l->block.x > MAX_THREADS || l->block.y > MAX_THREADS || l->block.z > 64)
        return cudaErrorInvalidConfiguration;
    if (!l->grid.x || !l->grid.y || !l->grid.z || l->grid.x > INT32_MAX || l->grid.y > 65535 || l->grid.z > 65535)
        return cudaErrorInvalidConfiguration;
    return cudaSuccess;
}

static cudaError_t check(const struct kl_cudart_launch *l, const struct kl_engine_kernel *kernel)
{
    const int threads = (int)(l->block.x * l->block.y * l->block.z);
    int asked = asked_for(l->function).shared_bytes;

    if (threads > threads_of(kernel)) return cudaErrorLaunchOutOfResources;
    if (asked < SHARED_WITHOUT_ASKING) asked = SHARED_WITHOUT_ASKING;
    if (l->shared_bytes > (size_t)asked) return cudaErrorInvalidValue;
    uint64_t blocks = (uint64_t)l->grid.x * l->grid.y * l->grid.z;
    if (l->cooperative && blocks > (uint64_t)active_blocks(kernel, threads, l->shared_bytes) * model()->processors)
        return cudaErrorCooperativeLaunchTooLarge;
    return cudaSuccess;
}

static struct kl_engine_dim dim(dim3 d)
{
    return (struct kl_engine_dim){d.x, d.y, d.z};
}

/* The extents of a cluster, from the launch, or from the kernel. 0: it has none. */
static struct kl_engine_dim cluster_of(const struct kl_cudart_launch *l, const struct kl_engine_kernel *kernel)
{
    const uint32_t *own = kernel->cluster;

    return l->cluster.x ? dim(l->cluster) : (struct kl_engine_dim){own[0], own[1], own[2]};
}

static cudaError_t check_cluster(const struct kl_cudart_launch *l, const struct kl_engine_kernel *kernel)
{
    const struct kl_engine_dim c = cluster_of(l, kernel);
    const uint32_t *own = kernel->cluster;

    if (!c.x && !c.y && !c.z) return cudaSuccess;
    if (!c.x || !c.y || !c.z || l->grid.x % c.x || l->grid.y % c.y || l->grid.z % c.z)
        return cudaErrorInvalidConfiguration;
    if (own[0] && (own[0] != c.x || own[1] != c.y || own[2] != c.z)) return cudaErrorInvalidConfiguration;
    if ((uint64_t)c.x * c.y * c.z > CLUSTER_MAX) return cudaErrorInvalidClusterSize;
    return l->cooperative && c.x * c.y * c.z > 1 ? cudaErrorNotSupported : cudaSuccess;
}

/* Any word among the parameters may be an address: kernels with another device's memory, where there is no access. */
static enum kl_cuda_reach reach_of(const struct grid *g, const struct kl_engine_kernel *kernel)
{
    enum kl_cuda_reach reach = KL_CUDA_REACH_ALL;

    for (size_t i = 0; i + sizeof(void *) <= kernel->argument_bytes && reach == KL_CUDA_REACH_ALL;
         i += sizeof(void *)) {
        const void *address;

        memcpy(&address, g->arguments + i, sizeof address);
        reach = kl_cuda_peer_reach(g->launch.device, address);
    }
    return reach;
}

static cudaError_t queue(const struct kl_cudart_launch *l, const struct kl_engine_kernel *kernel, cudaStream_t stream)
{
    struct grid *g = aligned_alloc(64, (sizeof *g + kernel->argument_bytes + 63) / 64 * 64);

    if (!g) return cudaErrorMemoryAllocation;
    g->launch = (struct kl_engine_launch){.kernel = kernel,
                                          .grid = dim(l->grid),
                                          .block = dim(l->block),
                                          .cluster = cluster_of(l, kernel),
                                          .shared_bytes = l->shared_bytes,
                                          .arguments = g->arguments,
                                          .device = kl_cuda_current(),
                                          .cooperative = l->cooperative,
                                          .explain = kl_cuda_multicast_explain};
    if (kl_cuda_strict()) limit(g);
    if (kernel->parameter_count) kl_engine_pack(kernel, l->arguments, g->arguments);
    const enum kl_cuda_reach reach = reach_of(g, kernel);
    if (reach != KL_CUDA_REACH_ALL) {
        free(g);
        return reach == KL_CUDA_REACH_LOST ? cudaSuccess : cudaErrorIllegalAddress;
    }
    return kl_cuda_stream_call(stream, run_grid, free, g);
}

/* From a kernel: the streams of a block are one, but for the tail stream. */
static cudaError_t launch_child(const struct kl_cudart_launch *l, cudaStream_t stream)
{
    struct kl_engine_launch launch = {.kernel = kl_engine_find_kernel(l->function),
                                      .grid = dim(l->grid),
                                      .block = dim(l->block),
                                      .shared_bytes = l->shared_bytes,
                                      .cooperative = l->cooperative,
                                      .explain = kl_cuda_multicast_explain};

    if (!launch.kernel) return cudaErrorInvalidDeviceFunction;
    KL_CUDA_TRY(check_cluster(l, launch.kernel));
    launch.cluster = cluster_of(l, launch.kernel);
    return (cudaError_t)kl_engine_launch_child(&launch, l->arguments, stream == cudaStreamTailLaunch);
}

cudaError_t kl_cudart_launch(const struct kl_cudart_launch *l, cudaStream_t stream)
{
    const struct kl_engine_kernel *kernel;
    int device;

    if (kl_engine_inside()) return launch_child(l, stream);
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(find(l->function, &kernel));
    if (!kernel) return kl_cudart_refuse_kernel(kl_cudart_foreign_kernel(l->function));
    if (kernel->parameter_count && !l->arguments) return cudaErrorInvalidValue;
    KL_CUDA_TRY(check_extents(l));
    KL_CUDA_TRY(check(l, kernel));
    KL_CUDA_TRY(check_cluster(l, kernel));
    if (koloStreamGetInfo(stream, &device, NULL) || device != kl_cuda_current()) return cudaErrorInvalidResourceHandle;
    KL_CUDA_TRY(queue(l, kernel, stream));
    return kl_cudart_launch_blocking() && !kl_cuda_stream_captures(stream) ? kl_cuda_stream_synchronize(stream)
                                                                           : cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments, size_t shared_bytes,
                             cudaStream_t stream)
{
    const struct kl_cudart_launch l = {
        .function = function, .grid = grid, .block = block, .arguments = arguments, .shared_bytes = shared_bytes};

    return kl_cudart_done(kl_cudart_launch(&l, stream));
}
KL_CUDART_ENTRY(cudaLaunchKernel);

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                                        size_t shared_bytes, cudaStream_t stream)
{
    const struct kl_cudart_launch l = {.function = function,
                                       .grid = grid,
                                       .block = block,
                                       .arguments = arguments,
                                       .shared_bytes = shared_bytes,
                                       .cooperative = true};

    return kl_cudart_done(kl_cudart_launch(&l, stream));
}
KL_CUDART_ENTRY(cudaLaunchCooperativeKernel);

/* Only attributes that change results count. */
static void read_attributes(const cudaLaunchConfig_t *config, struct kl_cudart_launch *l)
{
    for (unsigned i = 0; i < config->numAttrs; i++) {
        const cudaLaunchAttribute *a = &config->attrs[i];

        if (a->id == cudaLaunchAttributeCooperative) l->cooperative = a->val.cooperative;
        if (a->id == cudaLaunchAttributeClusterDimension)
            l->cluster = (dim3){a->val.clusterDim.x, a->val.clusterDim.y, a->val.clusterDim.z};
    }
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function, void **arguments)
{
    if (!config || (config->numAttrs && !config->attrs)) return kl_cudart_done(cudaErrorInvalidValue);
    struct kl_cudart_launch l = {.function = function,
                                 .grid = config->gridDim,
                                 .block = config->blockDim,
                                 .arguments = arguments,
                                 .shared_bytes = config->dynamicSmemBytes};
    read_attributes(config, &l);
    return kl_cudart_done(kl_cudart_launch(&l, config->stream));
}
KL_CUDART_ENTRY(cudaLaunchKernelExC);

/* ---- attributes ---- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    const struct kl_engine_kernel *kernel;
    const struct kl_cuda_device *d;
    cudaError_t rc = attributes ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = find(function, &kernel);
    if (!rc) rc = kl_cuda_device(kl_cuda_current(), &d);
    if (rc) return kl_cudart_done(rc);
    struct asked asked = asked_for(function);
    *attributes = (struct cudaFuncAttributes){.sharedSizeBytes = static_shared(kernel),
                                              .maxThreadsPerBlock = threads_of(kernel),
                                              .numRegs = REGISTERS,
                                              .ptxVersion = PTX_VERSION,
                                              .binaryVersion = d->sm,
                                              .maxDynamicSharedSizeBytes = asked.shared_bytes,
                                              .preferredShmemCarveout = asked.carveout};
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaFuncGetAttributes);

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    const struct kl_engine_kernel *kernel;
    cudaError_t rc = kl_cuda_enter();

    if (!rc) rc = find(function, &kernel);
    if (rc) return kl_cudart_done(rc);
    size_t most = ((size_t)model()->optin_kib << 10) - static_shared(kernel);
    if (attribute < cudaFuncAttributeMaxDynamicSharedMemorySize || attribute >= cudaFuncAttributeMax)
        rc = cudaErrorInvalidValue;
    else if (attribute == cudaFuncAttributeMaxDynamicSharedMemorySize && (value < 0 || (size_t)value > most))
        rc = cudaErrorInvalidValue;
    else if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout && (value < -1 || value > 100))
        rc = cudaErrorInvalidValue;
    return kl_cudart_done(rc ? rc : ask(function, attribute, value));
}
KL_CUDART_ENTRY(cudaFuncSetAttribute);

static cudaError_t must_be_kernel(const void *function)
{
    const struct kl_engine_kernel *kernel;

    KL_CUDA_TRY(kl_cuda_enter());
    return find(function, &kernel);
}

/* A kernel's handle, also the driver's, is the address of its host function. */
cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    cudaError_t rc = function ? must_be_kernel(symbol) : cudaErrorInvalidValue;

    if (!rc) *function = (cudaFunction_t)(uintptr_t)symbol;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGetFuncBySymbol);

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *symbol)
{
    cudaError_t rc = kernel ? must_be_kernel(symbol) : cudaErrorInvalidValue;

    if (!rc) *kernel = (cudaKernel_t)(uintptr_t)symbol;
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaGetKernel);

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
    if ((unsigned)config > cudaFuncCachePreferEqual) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(must_be_kernel(function));
}
KL_CUDART_ENTRY(cudaFuncSetCacheConfig);

cudaError_t cudaFuncSetSharedMemConfig(const void *function, enum cudaSharedMemConfig config)
{
    if ((unsigned)config > cudaSharedMemBankSizeEightByte) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(must_be_kernel(function));
}
KL_CUDART_ENTRY(cudaFuncSetSharedMemConfig);

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    const struct kl_engine_kernel *kernel;
    cudaError_t rc = name ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = find(function, &kernel);
    if (!rc) *name = kernel ? kernel->name : kl_cudart_foreign_kernel(function);
    return kl_cudart_done(rc);
}
KL_CUDART_ENTRY(cudaFuncGetName);

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    const struct kl_engine_kernel *kernel;
    cudaError_t rc = offset ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = find(function, &kernel);
    if (!rc && (!kernel || index >= kernel->parameter_count)) rc = cudaErrorInvalidValue;
    if (rc) return kl_cudart_done(rc);
    *offset = kernel->parameters[index].offset;
    if (bytes) *bytes = kernel->parameters[index].bytes;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaFuncGetParamInfo);

/* ---- occupancy ---- */

static cudaError_t occupancy(int *blocks, const void *function, int threads, size_t shared_bytes)
{
    const struct kl_engine_kernel *kernel;

    if (!blocks || threads <= 0) return cudaErrorInvalidValue;
    KL_CUDA_TRY(kl_cuda_enter());
    KL_CUDA_TRY(find(function, &kernel));
    *blocks = active_blocks(kernel, threads, shared_bytes);
    return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int block_threads,
                                                          size_t shared_bytes)
{
    return kl_cudart_done(occupancy(blocks, function, block_threads, shared_bytes));
}
KL_CUDART_ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor);

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int block_threads,
                                                                   size_t shared_bytes, unsigned int flags)
{
    if (flags > cudaOccupancyDisableCachingOverride) return kl_cudart_done(cudaErrorInvalidValue);
    return kl_cudart_done(occupancy(blocks, function, block_threads, shared_bytes));
}
KL_CUDART_ENTRY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags);

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks,
                                                      int block_threads)
{
    const struct kl_engine_kernel *kernel;
    cudaError_t rc = bytes && blocks > 0 && block_threads > 0 ? kl_cuda_enter() : cudaErrorInvalidValue;

    if (!rc) rc = find(function, &kernel);
    if (rc) return kl_cudart_done(rc);
    size_t each = ((size_t)model()->shared_kib << 10) / (size_t)blocks, of_block = (size_t)model()->optin_kib << 10;
    if (each > of_block) each = of_block;
    *bytes = each > static_shared(kernel) ? each - static_shared(kernel) : 0;
    return cudaSuccess;
}
KL_CUDART_ENTRY(cudaOccupancyAvailableDynamicSMemPerBlock);
