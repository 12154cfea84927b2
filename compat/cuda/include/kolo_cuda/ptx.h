/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KOLO_CUDA_PTX_H
#define KOLO_CUDA_PTX_H

#pragma GCC system_header
#endif
