/* SPDX-License-Identifier: Apache-2.0 */
/**
 * places.h - where the stand-in's headers and libraries are, from where the program itself is.
 *
 *     PREFIX/bin/kolo-nvcc               BUILD/kolo-nvcc
 *     PREFIX/lib/kolo/cuda/include       BUILD/lib/kolo/cuda/include
 *     PREFIX/lib/kolo/nccl/libnccl.so    BUILD/lib/kolo/nccl/libnccl.so
 *     PREFIX/include/nccl.h              BUILD/include/nccl.h
 */
#ifndef KL_NVCC_PLACES_H
#define KL_NVCC_PLACES_H

#include <stdbool.h>

struct places {
    char *cuda;         /* a tree of the toolkit's shape */
    char *libraries;    /* the folder of libcudart.so */
    char *nccl;         /* the folder of libnccl.so; NULL: not found */
    char *nccl_include; /* the folder of nccl.h; NULL: not found, or found by any compiler */
    char *cccl;         /* the folder of cub/ and thrust/; NULL: not found, -I is needed */
};

/** Find them. False: the headers for kernels are not where they should be, and that has been told. */
bool places_find(struct places *p);
void places_drop(struct places *p);

#endif
