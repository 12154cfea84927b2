/* SPDX-License-Identifier: Apache-2.0 */
/* The other half of linked.cu. */

__device__ int shared_counter = 7;
__constant__ float shared_weights[2] = {1, 2};

__device__ int from_other_file(int x)
{
    return x * 10;
}

__global__ void kernel_of_other_file(int *out)
{
    *out = shared_counter;
}
