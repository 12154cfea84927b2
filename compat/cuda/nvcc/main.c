/* SPDX-License-Identifier: Apache-2.0 */
/* kolo-nvcc - compiles CUDA C++ for CPUs: nvcc's options, the system's compiler. */
#include "compat/cuda/nvcc/driver.h"

#include <stdio.h>

static const char version[] =
    "nvcc: NVIDIA (R) Cuda compiler driver\n"
    "(not NVIDIA's: kolo-nvcc, which compiles kernels for CPUs and answers as that release would)\n"
    "Built on Kolo\n"
    "Cuda compilation tools, release 13.0, V13.0.88\n"
    "Build kolo_nvcc.13.0\n";

static const char help[] =
    "usage: kolo-nvcc [nvcc's options] FILE...\n"
    "\n"
    "Compiles CUDA C++ (.cu) for CPUs, with the system's C++ compiler, and links it with Kolo's CUDA runtime.\n"
    "Use it as nvcc:  kolo-nvcc x.cu -o x -lnccl   make NVCC=kolo-nvcc   cmake "
    "-DCMAKE_TOOLCHAIN_FILE=.../kolo-cuda.cmake\n"
    "\n"
    "  -c  -E  -M  -MD  -dc  -dlink  -lib  -shared   the kind of output\n"
    "  -ccbin COMPILER                               the C++ compiler (g++; also NVCC_CCBIN)\n"
    "  -Xcompiler WORDS  -Xlinker WORDS              for the compiler, for the linker\n"
    "  --translate                                   show the C++ that kernels become\n"
    "  --barriers=fibres                             no loops over threads between barriers: a fibre for each thread\n"
    "  --resource-usage                              tell of each kernel with barriers whether it is loops, or why "
    "not\n"
    "  -v  --dryrun  --keep                          show commands, do not run them, keep intermediate files\n"
    "  --list-options                                list all options: names, with or without value, used or not\n"
    "\n"
    "Options for GPUs (-gencode, -arch, -maxrregcount, -Xptxas ...) are accepted and do nothing; others go to the "
    "compiler.\n";

int main(int argc, char **argv)
{
    struct options options;
    struct places places = {0};
    int rc = 1;

    if (options_read(&options, argc, (const char *const *)argv)) {
        if (options.version) {
            rc = fputs(version, stdout) < 0;
        } else if (options.help) {
            rc = fputs(help, stdout) < 0;
        } else if (options.list) {
            options_list(stdout);
            rc = ferror(stdout);
        } else if (!options.input_count && !options.order.count && options.phase != PHASE_DEVICE_LINK) {
            fputs("kolo-nvcc: no input files (kolo-nvcc --help)\n", stderr);
        } else if (places_find(&places)) {
            rc = drive(&options, &places);
        }
    }
    places_drop(&places);
    options_drop(&options);
    return rc;
}
