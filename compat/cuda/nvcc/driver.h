/* SPDX-License-Identifier: Apache-2.0 */
/** driver.h - from sources to objects to a program: which command runs with which words. */
#ifndef KL_NVCC_DRIVER_H
#define KL_NVCC_DRIVER_H

#include "compat/cuda/nvcc/options.h"
#include "compat/cuda/nvcc/places.h"

/** Execute the options; returns the exit status. */
int drive(const struct options *o, const struct places *p);

#endif
