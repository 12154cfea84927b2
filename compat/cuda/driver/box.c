/* SPDX-License-Identifier: Apache-2.0 */
/** box.c - copies and fills of rows and boxes. Arrays: 801. */
#include "compat/cuda/core/copy.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/driver/copies.h"
#include "compat/cuda/driver/driver.h"

#include <string.h>

_Static_assert(sizeof(CUDA_MEMCPY3D_PEER) == sizeof(CUDA_MEMCPY3D), "a context is where the other has room");

/* ---- copies ---- */

/* One end of a copy: its start, and the strides of rows and slices. */
struct end {
    CUmemorytype type;
    void *host;
    CUdeviceptr device;
    size_t x, y, z, pitch, height;
};

static CUresult check_end(const struct end *e)
{
    if (e->type == CU_MEMORYTYPE_ARRAY) return CUDA_ERROR_NOT_SUPPORTED;
    return e->type < CU_MEMORYTYPE_HOST || e->type > CU_MEMORYTYPE_UNIFIED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static CUresult place(const struct end *e, const struct kl_cuda_box *box, char **at, size_t *slice)
{
    KL_CU_TRY(check_end(e));
    const struct kl_cuda_volume v = {.base = e->type == CU_MEMORYTYPE_HOST ? e->host : kl_cu_address(e->device),
                                     .pitch = e->pitch,
                                     .height = e->height,
                                     .x = e->x,
                                     .y = e->y,
                                     .z = e->z};
    return !v.base || kl_cuda_corner(&v, box, at, slice) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

static int kind_of(CUmemorytype from, CUmemorytype to)
{
    static const int kinds[2][2] = {{cudaMemcpyHostToHost, cudaMemcpyHostToDevice},
                                    {cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice}};

    if (from == CU_MEMORYTYPE_UNIFIED || to == CU_MEMORYTYPE_UNIFIED) return cudaMemcpyDefault;
    return kinds[from == CU_MEMORYTYPE_DEVICE][to == CU_MEMORYTYPE_DEVICE];
}

struct extent {
    size_t width, height, depth;
};

static CUresult copy(struct end from, struct end to, struct extent e, CUstream stream, enum kl_cuda_how how)
{
    char *source, *target;
    struct kl_cuda_box box = {.width = e.width, .height = e.height, .depth = e.depth};

    KL_CU_TRY(kl_cu_enter());
    if (!e.width || !e.height || !e.depth) return CUDA_SUCCESS;
    if (!from.pitch) from.pitch = from.x + e.width; /* one row */
    if (!to.pitch) to.pitch = to.x + e.width;
    KL_CU_TRY(place(&from, &box, &source, &box.from_slice));
    KL_CU_TRY(place(&to, &box, &target, &box.to_slice));
    box.from = source;
    box.to = target;
    box.from_pitch = from.pitch;
    box.to_pitch = to.pitch;
    return (CUresult)kl_cuda_copy(&box, kind_of(from.type, to.type), stream, how);
}

#define END(p, side)                                                                                                   \
    {                                                                                                                  \
        .type = (p)->side##MemoryType, .host = (void *)(uintptr_t)(p)->side##Host, .device = (p)->side##Device,        \
        .x = (p)->side##XInBytes, .y = (p)->side##Y, .pitch = (p)->side##Pitch                                         \
    }

CUresult kl_cu_copy_rows(const CUDA_MEMCPY2D *p, CUstream stream, enum kl_cuda_how how)
{
    if (!p) return CUDA_ERROR_INVALID_VALUE;
    const struct end from = END(p, src), to = END(p, dst);
    return copy(from, to, (struct extent){p->WidthInBytes, p->Height, 1}, stream, how);
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D *copy_of)
{
    return kl_cu_copy_rows(copy_of, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D *copy_of)
{
    return kl_cu_copy_rows(copy_of, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D *copy_of, CUstream stream)
{
    return kl_cu_copy_rows(copy_of, stream, KL_CUDA_ASYNC);
}

CUresult kl_cu_copy_box(const CUDA_MEMCPY3D *p, CUstream stream, enum kl_cuda_how how)
{
    if (!p || p->srcLOD || p->dstLOD) return CUDA_ERROR_INVALID_VALUE;
    struct end from = END(p, src), to = END(p, dst);
    from.z = p->srcZ;
    to.z = p->dstZ;
    from.height = p->srcHeight;
    to.height = p->dstHeight;
    return copy(from, to, (struct extent){p->WidthInBytes, p->Height, p->Depth}, stream, how);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D *copy_of)
{
    return kl_cu_copy_box(copy_of, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D *copy_of, CUstream stream)
{
    return kl_cu_copy_box(copy_of, stream, KL_CUDA_ASYNC);
}

/* Between devices: the same layout, with a context where the other has room. */
CUresult kl_cu_copy_box_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, enum kl_cuda_how how)
{
    CUDA_MEMCPY3D same;

    if (!p) return CUDA_ERROR_INVALID_VALUE;
    if (!p->srcContext || !p->dstContext) return CUDA_ERROR_INVALID_CONTEXT;
    memcpy(&same, p, sizeof same);
    return kl_cu_copy_box(&same, stream, how);
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *copy_of)
{
    return kl_cu_copy_box_peer(copy_of, NULL, KL_CUDA_SYNC);
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *copy_of, CUstream stream)
{
    return kl_cu_copy_box_peer(copy_of, stream, KL_CUDA_ASYNC);
}

/* ---- as the runtime has them ---- */

static struct cudaPitchedPtr pitched(const struct end *e, const CUDA_MEMCPY3D *p)
{
    return (struct cudaPitchedPtr){.ptr = e->type == CU_MEMORYTYPE_HOST ? e->host : kl_cu_address(e->device),
                                   .pitch = e->pitch ? e->pitch : e->x + p->WidthInBytes,
                                   .xsize = p->WidthInBytes,
                                   .ysize = e->height};
}

CUresult kl_cu_copy_to_runtime(struct cudaMemcpy3DParms *to, const CUDA_MEMCPY3D *p)
{
    if (!p || p->srcLOD || p->dstLOD) return CUDA_ERROR_INVALID_VALUE;
    struct end source = END(p, src), target = END(p, dst);
    source.height = p->srcHeight;
    target.height = p->dstHeight;
    KL_CU_TRY(check_end(&source));
    KL_CU_TRY(check_end(&target));
    *to = (struct cudaMemcpy3DParms){.srcPtr = pitched(&source, p),
                                     .srcPos = {p->srcXInBytes, p->srcY, p->srcZ},
                                     .dstPtr = pitched(&target, p),
                                     .dstPos = {p->dstXInBytes, p->dstY, p->dstZ},
                                     .extent = {p->WidthInBytes, p->Height, p->Depth},
                                     .kind = (enum cudaMemcpyKind)kind_of(source.type, target.type)};
    return CUDA_SUCCESS;
}

#define SET_END(to, side, p, memory)                                                                                   \
    do {                                                                                                               \
        (to)->side##XInBytes = (p)->side##Pos.x;                                                                       \
        (to)->side##Y = (p)->side##Pos.y;                                                                              \
        (to)->side##Z = (p)->side##Pos.z;                                                                              \
        (to)->side##MemoryType = (memory);                                                                             \
        if ((memory) == CU_MEMORYTYPE_HOST)                                                                            \
            (to)->side##Host = (p)->side##Ptr.ptr;                                                                     \
        else                                                                                                           \
            (to)->side##Device = (CUdeviceptr)(uintptr_t)(p)->side##Ptr.ptr;                                           \
        (to)->side##Pitch = (p)->side##Ptr.pitch;                                                                      \
        (to)->side##Height = (p)->side##Ptr.ysize;                                                                     \
    } while (0)

void kl_cu_copy_of_runtime(CUDA_MEMCPY3D *to, const struct cudaMemcpy3DParms *p)
{
    static const CUmemorytype of_kind[][2] = {
        [cudaMemcpyHostToHost] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_HOST},
        [cudaMemcpyHostToDevice] = {CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDeviceToHost] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST},
        [cudaMemcpyDeviceToDevice] = {CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE},
        [cudaMemcpyDefault] = {CU_MEMORYTYPE_UNIFIED, CU_MEMORYTYPE_UNIFIED},
    };

    *to = (CUDA_MEMCPY3D){.WidthInBytes = p->extent.width, .Height = p->extent.height, .Depth = p->extent.depth};
    SET_END(to, src, p, of_kind[p->kind][0]);
    SET_END(to, dst, p, of_kind[p->kind][1]);
}

/* ---- rows of memory, filled ---- */

CUresult kl_cu_fill_rows(CUdeviceptr ptr, struct kl_cu_rows rows, unsigned value, CUstream stream, enum kl_cuda_how how)
{
    KL_CU_TRY(kl_cu_enter());
    if (rows.width > SIZE_MAX / 8 || (rows.height > 1 && rows.pitch < rows.width * rows.element) ||
        rows.pitch % rows.element)
        return CUDA_ERROR_INVALID_VALUE;
    const struct kl_cuda_box box = {.to = kl_cu_address(ptr),
                                    .width = rows.width * rows.element,
                                    .height = rows.height,
                                    .depth = 1,
                                    .to_pitch = rows.pitch};
    return (CUresult)kl_cuda_fill(&box, value, (int)rows.element, stream, how);
}

#define FILL(name, async, type, bytes)                                                                                 \
    CUresult name(CUdeviceptr ptr, size_t pitch, type value, size_t width, size_t height)                              \
    {                                                                                                                  \
        return kl_cu_fill_rows(ptr, (struct kl_cu_rows){pitch, width, height, bytes}, value, NULL, KL_CUDA_SYNC);      \
    }                                                                                                                  \
    CUresult async(CUdeviceptr ptr, size_t pitch, type value, size_t width, size_t height, CUstream stream)            \
    {                                                                                                                  \
        return kl_cu_fill_rows(ptr, (struct kl_cu_rows){pitch, width, height, bytes}, value, stream, KL_CUDA_ASYNC);   \
    }

FILL(cuMemsetD2D8, cuMemsetD2D8Async, unsigned char, 1)
FILL(cuMemsetD2D16, cuMemsetD2D16Async, unsigned short, 2)
FILL(cuMemsetD2D32, cuMemsetD2D32Async, unsigned int, 4)

CUresult cuMemAllocPitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height, unsigned int element)
{
    enum { PITCH = 512 };
    void *p;

    if (!ptr || !pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
        width > SIZE_MAX / 4 || height > SIZE_MAX / 4 / (width + PITCH))
        return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(kl_cu_enter());
    KL_CU_TRY(kl_cuda_unsafe());
    size_t row = (width + PITCH - 1) / PITCH * PITCH;
    KL_CU_TRY(kl_cuda_alloc(kl_cuda_current(), KL_CUDA_MEMORY_DEVICE, row * height, 0, NULL, &p));
    *ptr = (CUdeviceptr)(uintptr_t)p;
    *pitch = row;
    return CUDA_SUCCESS;
}
