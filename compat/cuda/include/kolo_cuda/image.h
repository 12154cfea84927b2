/* SPDX-License-Identifier: Apache-2.0 */
/**
 * image.h - kernels that kolo-nvcc compiled, as an image for cuLibraryLoadData: in place of machine code, which CPUs cannot run.
 * The image stays where it is as long as its library is loaded.
 */
#ifndef KOLO_CUDA_IMAGE_H
#define KOLO_CUDA_IMAGE_H

/* The first 16 bytes, with the final zero. */
#define KOLO_CUDA_IMAGE "kolo kernels 01"

struct kolo_cuda_kernel {
    const char *name; /* 0: behind the last one */
    const void *function;
};

struct kolo_cuda_image {
    char magic[16];
    const struct kolo_cuda_kernel *kernel;
};

#endif
