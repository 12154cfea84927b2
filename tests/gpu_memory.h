/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_memory.h - memory of every kind that CUDA has, for tests; of these only cuMemAlloc's can be mapped by other processes
 * with CUDA IPC. It is for the current device, and all others of the process that can have it have access to it.
 */
#ifndef KOLO_TEST_GPU_MEMORY_H
#define KOLO_TEST_GPU_MEMORY_H

#include "device/cuda/driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum gpu_memory_kind { GPU_DEVICE, GPU_POOL, GPU_MANAGED, GPU_PINNED, GPU_VIRTUAL, GPU_MEMORY_KINDS };

static const char *const gpu_memory_names[] = {"device", "pool", "managed", "pinned", "cuMemCreate"};

struct gpu_memory {
    enum gpu_memory_kind kind;
    uint64_t at;
    size_t bytes;
    unsigned long long handle; /* of cuMemCreate */
};

/* As in cuda.h. */
struct gpu_access {
    struct kl_cu_location location;
    int flags;
};
struct gpu_properties {
    int type, handle_types;
    struct kl_cu_location location;
    void *windows;
    unsigned char flags[8];
};

/* A function of the driver; the library does not use it. */
static inline void *gpu_function(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library ? dlsym(library, name) : NULL;

    if (found) return found;
    fprintf(stderr, "libcuda.so.1 has no %s\n", name);
    exit(1);
}

#define GPU_CALL(name, parameters, ...) (((int(*) parameters)gpu_function(#name))(__VA_ARGS__))

static inline size_t gpu_list_access(const struct kl_cuda_driver *cu, struct gpu_access *list, int owner, bool others)
{
    size_t n = 0;

    for (int d = 0; d < cu->devices; d++) {
        int can = !others;
        if (d != owner && cu->cuDeviceCanAccessPeer(&can, d, owner)) can = 0;
        if (!can) continue;
        list[n++] =
            (struct gpu_access){.location = {.type = KL_CU_LOCATION_DEVICE, .id = d}, .flags = KL_CU_ACCESS_READ_WRITE};
    }
    return n;
}

static inline int gpu_pool_alloc(const struct kl_cuda_driver *cu, struct gpu_memory *m, int device)
{
    struct gpu_access others[64];
    const size_t n = gpu_list_access(cu, others, device, true);
    void *pool;

    int rc = GPU_CALL(cuDeviceGetDefaultMemPool, (void **, int), &pool, device);
    if (!rc && n) rc = GPU_CALL(cuMemPoolSetAccess, (void *, const struct gpu_access *, size_t), pool, others, n);
    if (!rc) rc = GPU_CALL(cuMemAllocAsync, (uint64_t *, size_t, kl_cu_stream), &m->at, m->bytes, NULL);
    return rc ? rc : cu->cuStreamSynchronize(NULL);
}

static inline int gpu_virtual_alloc(const struct kl_cuda_driver *cu, struct gpu_memory *m, int device)
{
    const struct gpu_properties p = {.type = 1, .location = {.type = KL_CU_LOCATION_DEVICE, .id = device}};
    struct gpu_access all[64];
    const size_t n = gpu_list_access(cu, all, device, false);

    m->bytes = (m->bytes + (2 << 20) - 1) >> 21 << 21;
    int rc = GPU_CALL(cuMemCreate, (unsigned long long *, size_t, const struct gpu_properties *, unsigned long long),
                      &m->handle, m->bytes, &p, 0);
    if (!rc)
        rc = GPU_CALL(cuMemAddressReserve, (uint64_t *, size_t, size_t, uint64_t, unsigned long long), &m->at, m->bytes,
                      0, 0, 0);
    if (!rc)
        rc = GPU_CALL(cuMemMap, (uint64_t, size_t, size_t, unsigned long long, unsigned long long), m->at, m->bytes, 0,
                      m->handle, 0);
    return rc ? rc
              : GPU_CALL(cuMemSetAccess, (uint64_t, size_t, const struct gpu_access *, size_t), m->at, m->bytes, all,
                         n);
}

static inline int gpu_pinned_alloc(struct gpu_memory *m)
{
    void *ptr = NULL;
    int rc = GPU_CALL(cuMemHostAlloc, (void **, size_t, unsigned), &ptr, m->bytes, KL_CU_HOST_PORTABLE_MAPPED);

    m->at = (uint64_t)(uintptr_t)ptr;
    return rc;
}

/** Returns CUDA's result. `device` is the current one. */
static inline int gpu_memory_alloc(const struct kl_cuda_driver *cu, struct gpu_memory *m, enum gpu_memory_kind kind,
                                   int device, size_t bytes)
{
    *m = (struct gpu_memory){.kind = kind, .bytes = bytes};
    switch (kind) {
    case GPU_POOL:
        return gpu_pool_alloc(cu, m, device);
    case GPU_MANAGED:
        return GPU_CALL(cuMemAllocManaged, (uint64_t *, size_t, unsigned), &m->at, bytes, 1);
    case GPU_PINNED:
        return gpu_pinned_alloc(m);
    case GPU_VIRTUAL:
        return gpu_virtual_alloc(cu, m, device);
    default:
        return cu->cuMemAlloc(&m->at, bytes);
    }
}

static inline int gpu_memory_free(const struct kl_cuda_driver *cu, const struct gpu_memory *m)
{
    if (m->kind == GPU_PINNED) return GPU_CALL(cuMemFreeHost, (void *), (void *)(uintptr_t)m->at);
    if (m->kind != GPU_VIRTUAL) return cu->cuMemFree(m->at);
    int rc = GPU_CALL(cuMemUnmap, (uint64_t, size_t), m->at, m->bytes);
    if (!rc) rc = GPU_CALL(cuMemRelease, (unsigned long long), m->handle);
    return rc ? rc : GPU_CALL(cuMemAddressFree, (uint64_t, size_t), m->at, m->bytes);
}

#endif
