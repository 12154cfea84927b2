/* SPDX-License-Identifier: Apache-2.0 */
/** device_types.h - types of device code. */
#ifndef KOLO_CUDA_DEVICE_TYPES_H
#define KOLO_CUDA_DEVICE_TYPES_H

enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };

#endif
