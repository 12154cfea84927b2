/* SPDX-License-Identifier: Apache-2.0 */
/** driver_test.h - shared by tests of the driver's functions. */
#ifndef KOLO_DRIVER_TEST_H
#define KOLO_DRIVER_TEST_H

#include "cuda_test.h"

#include "cuda.h"

/** A call of the driver that must succeed. */
#define CU(call) assert_int_equal(call, CUDA_SUCCESS)

#endif
