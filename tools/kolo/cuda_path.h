/* SPDX-License-Identifier: Apache-2.0 */
/** cuda_path.h - the folder of the libraries that replace CUDA's and NCCL's: beside this tool, built or installed. */
#ifndef KOLO_TOOL_CUDA_PATH_H
#define KOLO_TOOL_CUDA_PATH_H

#include <stdbool.h>
#include <stddef.h>

/** Put them first in LD_LIBRARY_PATH, for programs that are started. False, and `why`: they are not there. */
bool kl_cuda_path_use(char *why, size_t bytes);

#endif
