/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KOLO_CUDA_ARITHMETIC_H
#define KOLO_CUDA_ARITHMETIC_H
#endif
