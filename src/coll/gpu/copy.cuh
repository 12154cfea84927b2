/* SPDX-License-Identifier: Apache-2.0 */
/** copy.cuh - copies of ranks' buffers by one kernel, which waits for nothing: in units that all addresses are multiples of. */
#ifndef KL_COLL_GPU_COPY_CUH
#define KL_COLL_GPU_COPY_CUH

#include "reduce.cuh"

/* One part to all ranks: read once. */
template <class Unit> ON_GPU void spread_units(const kl_gpu_job &j, uint64_t from, uint64_t behind, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin + first_thread(); i < end; i += all_threads()) {
        const Unit x = ((const Unit *)from)[i];

        for (uint32_t r = 0; r < j.ranks; r++)
            if (j.out[r] && j.out[r] + behind != from) ((Unit *)(j.out[r] + behind))[i] = x;
    }
}

template <class Unit> ON_GPU void copy_units(uint64_t from, uint64_t to, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin + first_thread(); i < end; i += all_threads()) ((Unit *)to)[i] = ((const Unit *)from)[i];
}

ON_GPU void gather(const kl_gpu_job &j)
{
    const uint64_t from = j.in[blockIdx.y], behind = blockIdx.y * j.stride, units = j.count / j.unit;

    if (!from) return; /* another GPU's part */
    if (j.unit == 16)
        spread_units<uint4>(j, from, behind, 0, units);
    else if (j.unit == 8)
        spread_units<uint64_t>(j, from, behind, 0, units);
    else if (j.unit == 4)
        spread_units<uint32_t>(j, from, behind, 0, units);
    else if (j.unit == 2)
        spread_units<uint16_t>(j, from, behind, 0, units);
    spread_units<uint8_t>(j, from, behind, j.unit > 1 ? units * j.unit : 0, j.count);
}

ON_GPU void exchange(const kl_gpu_job &j)
{
    const uint64_t source = blockIdx.y, to = j.out[blockIdx.z] + source * j.stride, units = j.count / j.unit;
    const uint64_t from = j.in[source] + blockIdx.z * j.stride;

    if (!j.in[source]) return; /* another GPU's part */
    if (j.unit == 16)
        copy_units<uint4>(from, to, 0, units);
    else if (j.unit == 8)
        copy_units<uint64_t>(from, to, 0, units);
    else if (j.unit == 4)
        copy_units<uint32_t>(from, to, 0, units);
    else if (j.unit == 2)
        copy_units<uint16_t>(from, to, 0, units);
    copy_units<uint8_t>(from, to, j.unit > 1 ? units * j.unit : 0, j.count);
}

#endif
