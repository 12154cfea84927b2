/* SPDX-License-Identifier: Apache-2.0 */
/** window.h - a part of a segment, mapped: of another process, by its descriptor. */
#ifndef KL_CUDA_WINDOW_H
#define KL_CUDA_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kl_cuda_window {
    char *ptr, *map;
    size_t map_bytes;
};

/** False: the segment does not have these bytes, or they cannot be mapped. */
bool kl_cuda_window_open(struct kl_cuda_window *window, int fd, uint64_t offset, uint64_t bytes);
void kl_cuda_window_close(const struct kl_cuda_window *window);

/** The number of a descriptor's segment; 0: none. */
uint64_t kl_cuda_segment_number(int fd);

#endif
