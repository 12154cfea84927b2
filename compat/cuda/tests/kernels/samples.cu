/* SPDX-License-Identifier: Apache-2.0 */
/* Programs as textbooks and vendors' samples have them, on one device and on eight: one program, since compilers take their time. */
#include "check.h"

#include "samples/atomics.cuh"
#include "samples/histogram.cuh"
#include "samples/matrices.cuh"
#include "samples/reduction.cuh"
#include "samples/scan.cuh"
#include "samples/simulations.cuh"
#include "samples/sorting.cuh"

static void test(int)
{
    test_reduction();
    test_scan();
    test_histogram();
    test_matrices();
    test_sorting();
    test_atomics();
    test_simulations();
}

int main()
{
    setenv("KOLO_HOST_DEVICES", "8", 0); /* with real ones: those */
    return on_all_devices(test);
}
