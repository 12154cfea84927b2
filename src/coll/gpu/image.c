/* SPDX-License-Identifier: Apache-2.0 */
/* The only content of libkolo-cuda.so.0: the output of nvcc for kernels.cu, as bytes. */
__asm__(".pushsection .rodata\n"
        ".globl kolo_cuda_image\n"
        ".type kolo_cuda_image, %object\n"
        ".balign 64\n"
        "kolo_cuda_image:\n"
        ".incbin \"" KL_FATBIN "\"\n"
        ".size kolo_cuda_image, . - kolo_cuda_image\n"
        ".popsection\n");
