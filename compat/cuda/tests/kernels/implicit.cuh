/* SPDX-License-Identifier: Apache-2.0 */
/* Included by the command line, before the source: CUDA's types are there all the same. */
static inline dim3 blocks_for(unsigned n, dim3 block)
{
    return dim3((n + block.x - 1) / block.x);
}

__device__ inline float4 scaled(float4 v, float by)
{
    return make_float4(v.x * by, v.y * by, v.z * by, v.w * by);
}
