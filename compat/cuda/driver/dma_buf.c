/* SPDX-License-Identifier: Apache-2.0 */
/**
 * dma_buf.c - descriptors of address ranges, for network adapters: a memfd takes the place of a DMA-BUF.
 *
 * A DMA-BUF begins with the range, a memfd with the device's memory. So each descriptor is opened anew, and its file position
 * is where the range begins: an emulated adapter adds it to offsets.
 */
#include "compat/cuda/core/memory.h"
#include "compat/cuda/driver/driver.h"
#include "compat/cuda/driver/virtual.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* An allocation of which a part is in this page: pieces are smaller than pages, or begin within one. */
static bool piece_in(const char *page, struct kl_cuda_range *piece)
{
    if (kl_cuda_ranges_find(page, piece)) return true;
    return kl_cuda_ranges_next(page, piece) && piece->base < page + PAGE;
}

/* Whole pages of a device's memory, the first and the last of which are in use. */
static CUresult segment_of(const char *begin, size_t bytes, int *fd, size_t *offset)
{
    struct kl_cuda_range first, last;

    if (!piece_in(begin, &first) || !piece_in(begin + bytes - PAGE, &last)) return CUDA_ERROR_INVALID_VALUE;
    if (first.kind == KL_CUDA_MEMORY_MAPPED) return kl_cu_mapped_segment(begin, bytes, fd, offset);
    if (first.kind != KL_CUDA_MEMORY_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
    if (last.kind != KL_CUDA_MEMORY_DEVICE || last.device != first.device) return CUDA_ERROR_INVALID_VALUE;
    *fd = kl_cuda_memory_segment(first.device);
    *offset = (size_t)((ptrdiff_t)kl_cuda_memory_offset(&first) + (begin - first.base));
    return CUDA_SUCCESS;
}

/* The same segment, with a position of its own. */
static CUresult open_at(int fd, size_t offset, int *out)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int opened = open(path, O_RDWR | O_CLOEXEC);
    if (opened < 0) return CUDA_ERROR_OPERATING_SYSTEM;
    if (lseek(opened, (off_t)offset, SEEK_SET) < 0) {
        close(opened);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *out = opened;
    return CUDA_SUCCESS;
}

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr ptr, size_t bytes, CUmemRangeHandleType type,
                                       unsigned long long flags)
{
    size_t offset;
    int fd;

    KL_CU_TRY(kl_cu_enter());
    if (!handle || !bytes || ptr % PAGE || bytes % PAGE || bytes > SIZE_MAX - ptr ||
        type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags & ~(unsigned)CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE)
        return CUDA_ERROR_INVALID_VALUE;
    KL_CU_TRY(segment_of(kl_cu_address(ptr), bytes, &fd, &offset));
    return open_at(fd, offset, handle);
}
