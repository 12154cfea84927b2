/* SPDX-License-Identifier: Apache-2.0 */
/**
 * reduce.cuh - a reduction of all ranks' buffers by one kernel, which waits for nothing.
 *
 * Packs of 16 bytes, where all addresses allow that, then elements. Loads of several ranks are in flight at once.
 */
#ifndef KL_COLL_GPU_REDUCE_CUH
#define KL_COLL_GPU_REDUCE_CUH

#include "coll/gpu/job.h"
#include "coll/gpu/operation.cuh"

template <class Code> union pack {
    uint4 whole;
    Code code[16 / sizeof(Code)];
};

ON_GPU uint64_t first_thread()
{
    return (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
}

ON_GPU uint64_t all_threads()
{
    return (uint64_t)gridDim.x * blockDim.x;
}

/* An element at any address. */
template <class Code> ON_GPU Code load(uint64_t at, bool aligned)
{
    union {
        Code code;
        uint8_t byte[sizeof(Code)];
    } x;

    if (aligned) return *(const Code *)at;
    for (int i = 0; i < (int)sizeof(Code); i++) x.byte[i] = ((const uint8_t *)at)[i];
    return x.code;
}

template <class Code> ON_GPU void store(uint64_t at, Code code, bool aligned)
{
    union {
        Code code;
        uint8_t byte[sizeof(Code)];
    } x;

    x.code = code;
    if (aligned)
        *(Code *)at = code;
    else
        for (int i = 0; i < (int)sizeof(Code); i++) ((uint8_t *)at)[i] = x.byte[i];
}

/* Of rank r: from the job, or from memory now. */
template <class F, class Op> ON_GPU typename F::value factor_of(const kl_gpu_job &j, uint32_t r)
{
    if (!Op::SCALES) return F::factor(0);
    if (j.scale_there[r / 64] >> r % 64 & 1) return F::read(load<typename F::code>(j.scale[r], false));
    return F::factor(j.scale[r]);
}

template <class F, class Op> ON_GPU void reduce_pack(const kl_gpu_job &j, uint64_t from, uint64_t at, uint64_t only)
{
    typedef typename F::code code;
    const int n = 16 / (int)sizeof(code);
    pack<code> all, one;
    typename F::value by = factor_of<F, Op>(j, 0);

    all.whole = *(const uint4 *)(j.in[0] + from + at);
#pragma unroll
    for (int e = 0; e < n; e++) all.code[e] = Op::first(all.code[e], by);
#pragma unroll 4
    for (uint32_t r = 1; r < j.ranks; r++) {
        one.whole = *(const uint4 *)(j.in[r] + from + at);
        by = factor_of<F, Op>(j, r);
#pragma unroll
        for (int e = 0; e < n; e++) all.code[e] = Op::join(all.code[e], one.code[e], by);
    }
#pragma unroll
    for (int e = 0; e < n; e++) all.code[e] = Op::last(all.code[e], j.divisor);
    if (only) {
        *(uint4 *)(only + at) = all.whole;
        return;
    }
    for (uint32_t r = 0; r < j.ranks; r++)
        if (j.out[r]) *(uint4 *)(j.out[r] + at) = all.whole;
}

template <class F, class Op> ON_GPU void reduce_element(const kl_gpu_job &j, uint64_t from, uint64_t at, uint64_t only)
{
    typedef typename F::code code;
    const bool aligned = j.unit >= sizeof(code);
    code all = Op::first(load<code>(j.in[0] + from + at, aligned), factor_of<F, Op>(j, 0));

    for (uint32_t r = 1; r < j.ranks; r++)
        all = Op::join(all, load<code>(j.in[r] + from + at, aligned), factor_of<F, Op>(j, r));
    all = Op::last(all, j.divisor);
    if (only) {
        store<code>(only + at, all, aligned);
        return;
    }
    for (uint32_t r = 0; r < j.ranks; r++)
        if (j.out[r]) store<code>(j.out[r] + at, all, aligned);
}

/* By loads that a GPU caches: one of host memory for each multiprocessor. A kernel that has begun goes on. */
ON_GPU bool has_failed(const kl_gpu_job &j)
{
    return j.over && *(const uint32_t *)j.over;
}

template <class F, class Op> ON_GPU void reduce(const kl_gpu_job &j)
{
    const uint64_t size = sizeof(typename F::code), part = j.scattered ? blockIdx.y : 0, from = part * j.stride;
    const uint64_t only = j.scattered ? j.out[part] : 0, step = all_threads();
    const uint64_t packs = j.unit >= 16 ? j.count * size / 16 : 0;

    if (has_failed(j) || (j.scattered && !only)) return; /* another GPU's part */
    for (uint64_t i = first_thread(); i < packs; i += step) reduce_pack<F, Op>(j, from, 16 * i, only);
    for (uint64_t i = packs * 16 / size + first_thread(); i < j.count; i += step)
        reduce_element<F, Op>(j, from, size * i, only);
}

#endif
