/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/window.h"

#include <sys/mman.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

bool kl_cuda_window_open(struct kl_cuda_window *w, int fd, uint64_t offset, uint64_t bytes)
{
    size_t lead = offset % PAGE;
    struct stat s;

    if (fstat(fd, &s) || offset > (uint64_t)s.st_size || bytes > (uint64_t)s.st_size - offset) return false;
    w->map_bytes = bytes + lead;
    w->map = mmap(NULL, w->map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(offset - lead));
    if (w->map == MAP_FAILED) return false;
    w->ptr = w->map + lead;
    return true;
}

void kl_cuda_window_close(const struct kl_cuda_window *w)
{
    munmap(w->map, w->map_bytes);
}

uint64_t kl_cuda_segment_number(int fd)
{
    struct stat s;

    return fstat(fd, &s) ? 0 : s.st_ino;
}
