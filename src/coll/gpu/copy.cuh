/* SPDX-License-Identifier: Apache-2.0 */
/** copy.cuh - copies of ranks' buffers by one kernel, which waits for nothing: in units that all addresses are multiples of. */
#ifndef KL_COLL_GPU_COPY_CUH
#define KL_COLL_GPU_COPY_CUH

#include "coll/gpu/reduce.cuh"

/* One part to all ranks: read once. */
template <class Unit>
ON_GPU void spread_units(const kl_gpu_job &j, uint64_t from, uint64_t behind, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin + first_thread(); i < end; i += all_threads()) {
        const Unit x = ((const Unit *)from)[i];

        for (uint32_t r = 0; r < j.ranks; r++)
            if (j.out[r] && j.out[r] + behind != from) ((Unit *)(j.out[r] + behind))[i] = x;
    }
}

/* Both directions between two ranks; of a rank with itself there is one. */
struct directions {
    uint64_t from, to, back_from, back_to;
};

template <class Unit> ON_GPU void exchange_units(const directions &d, uint64_t begin, uint64_t end)
{
    for (uint64_t i = begin + first_thread(); i < end; i += all_threads()) {
        const Unit x = ((const Unit *)d.from)[i], y = ((const Unit *)d.back_from)[i];

        ((Unit *)d.to)[i] = x;
        if (d.from != d.back_from) ((Unit *)d.back_to)[i] = y;
    }
}

ON_GPU void gather(const kl_gpu_job &j)
{
    const uint64_t from = j.in[blockIdx.y], behind = blockIdx.y * j.stride, units = j.count / j.unit;

    if (has_failed(j) || !from) return; /* another GPU's part */
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

/* Of two ranks, the lower one's GPU works for every second pair, the higher one's for the others. */
ON_GPU bool is_own_pair(const kl_gpu_job &j, uint32_t low, uint32_t high)
{
    const uint32_t rank = (low + high) % 2 ? low : high;

    return low <= high && (j.own[rank / 64] >> rank % 64 & 1);
}

ON_GPU void exchange(const kl_gpu_job &j)
{
    const uint32_t low = blockIdx.y, high = blockIdx.z;
    const uint64_t units = j.count / j.unit;
    const directions d = {j.in[low] + high * j.stride, j.out[high] + low * j.stride, j.in[high] + low * j.stride,
                          j.out[low] + high * j.stride};

    if (has_failed(j) || !is_own_pair(j, low, high)) return;
    if (j.unit == 16)
        exchange_units<uint4>(d, 0, units);
    else if (j.unit == 8)
        exchange_units<uint64_t>(d, 0, units);
    else if (j.unit == 4)
        exchange_units<uint32_t>(d, 0, units);
    else if (j.unit == 2)
        exchange_units<uint16_t>(d, 0, units);
    exchange_units<uint8_t>(d, j.unit > 1 ? units * j.unit : 0, j.count);
}

#endif
