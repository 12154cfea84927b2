/* SPDX-License-Identifier: Apache-2.0 */
/**
 * nvls.cuh - collectives over a multicast object: contributions are copied to the GPU's own copy of a room, and switches
 * reduce them; or switches write them to all copies (nvls_job.h).
 *
 * Results: of integers, and minima and maxima, are reduce.cuh's. Sums of floats are added in the switch's order; of
 *          16 bits in 32 bits, and rounded once. NaNs are the positive quiet one.
 * Order:   multimem accesses to data are relaxed. A block's accesses before a meeting come before all blocks' accesses
 *          behind it: __syncthreads, thread 0 adds to the counters with release, another GPU's thread 0 loads its own with
 *          acquire, __syncthreads. Two addresses of one memory, as here of a copy and of all copies, need a proxy fence
 *          (fence.proxy.alias) in between: each thread has one in front of the release, and one behind the acquire.
 */
#ifndef KL_COLL_GPU_NVLS_CUH
#define KL_COLL_GPU_NVLS_CUH

#include "coll/gpu/flags.cuh"
#include "coll/gpu/nvls_job.h"
#include "coll/gpu/reduce.cuh"

#if defined(KL_FOR_STAND_IN) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

/* ---- all copies at once ---- */

ON_GPU void store_to_all(uint64_t at, uint4 x)
{
    asm volatile("multimem.st.relaxed.sys.global.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(at), "f"(float_of(x.x)),
                 "f"(float_of(x.y)), "f"(float_of(x.z)), "f"(float_of(x.w))
                 : "memory");
}

ON_GPU void add_to_all(uint64_t at, uint32_t value)
{
    asm volatile("multimem.red.release.sys.global.add.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

#define KL_LD_REDUCE "multimem.ld_reduce.relaxed.sys.global."

/* A unit, whose four or two elements are reduced one by one: vectors are for floats. */
#define KL_LOAD_ONE(to, at, constraint, operation)                                                                     \
    asm volatile(KL_LD_REDUCE operation " %0, [%1];" : constraint(to) : "l"(at) : "memory")
#define KL_LOAD_32(name, operation)                                                                                    \
    ON_GPU uint4 name(uint64_t at)                                                                                     \
    {                                                                                                                  \
        uint4 x;                                                                                                       \
        KL_LOAD_ONE(x.x, at, "=r", operation);                                                                         \
        KL_LOAD_ONE(x.y, at + 4, "=r", operation);                                                                     \
        KL_LOAD_ONE(x.z, at + 8, "=r", operation);                                                                     \
        KL_LOAD_ONE(x.w, at + 12, "=r", operation);                                                                    \
        return x;                                                                                                      \
    }
#define KL_LOAD_64(name, type, constraint, operation)                                                                  \
    ON_GPU uint4 name(uint64_t at)                                                                                     \
    {                                                                                                                  \
        pack<type> x;                                                                                                  \
        KL_LOAD_ONE(x.code[0], at, constraint, operation);                                                             \
        KL_LOAD_ONE(x.code[1], at + 8, constraint, operation);                                                         \
        return x.whole;                                                                                                \
    }
KL_LOAD_32(load_add_32, "add.u32")
KL_LOAD_32(load_max_u32, "max.u32")
KL_LOAD_32(load_min_u32, "min.u32")
KL_LOAD_32(load_max_i32, "max.s32")
KL_LOAD_32(load_min_i32, "min.s32")
KL_LOAD_32(load_and, "and.b32")
KL_LOAD_32(load_or, "or.b32")
KL_LOAD_32(load_xor, "xor.b32")
KL_LOAD_64(load_add_64, uint64_t, "=l", "add.u64")
KL_LOAD_64(load_max_u64, uint64_t, "=l", "max.u64")
KL_LOAD_64(load_min_u64, uint64_t, "=l", "min.u64")
KL_LOAD_64(load_max_i64, uint64_t, "=l", "max.s64")
KL_LOAD_64(load_min_i64, uint64_t, "=l", "min.s64")
KL_LOAD_64(load_add_f64, double, "=d", "add.f64")
#undef KL_LOAD_32
#undef KL_LOAD_64
#undef KL_LOAD_ONE
#undef KL_LD_REDUCE

ON_GPU uint4 load_add_f32(uint64_t at)
{
    float a, b, c, d;
    uint4 x;

    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d)
                 : "l"(at)
                 : "memory");
    x.x = bits_of(a);
    x.y = bits_of(b);
    x.z = bits_of(c);
    x.w = bits_of(d);
    return x;
}

ON_GPU uint4 load_add_f16(uint64_t at)
{
    uint4 x;

    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.f16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(at)
                 : "memory");
    return x;
}

ON_GPU uint4 load_add_bf16(uint64_t at)
{
    uint4 x;

    asm volatile("multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(at)
                 : "memory");
    return x;
}

/* ---- an operation of reduce.cuh in the switch: `load` reduces a unit, whose elements `put` prepared and `get` finishes ---- */

template <class F> struct as_it_is {
    typedef typename F::code code;
    ON_GPU code put(code x)
    {
        return x;
    }
    ON_GPU code get(code x)
    {
        return x;
    }
};

template <class F> struct adds : as_it_is<F> {
    ON_GPU uint4 load(uint64_t at)
    {
        return sizeof(typename F::code) == 4 ? load_add_32(at) : load_add_64(at);
    }
};

/* A number is not changed by `larger` of it and itself; a NaN becomes the quiet one. */
#define KL_ADDS(format, reduced)                                                                                       \
    template <> struct adds<format> : as_it_is<format> {                                                               \
        ON_GPU uint4 load(uint64_t at)                                                                                 \
        {                                                                                                              \
            return reduced;                                                                                            \
        }                                                                                                              \
        ON_GPU code get(code x)                                                                                        \
        {                                                                                                              \
            return format::larger(x, x);                                                                               \
        }                                                                                                              \
    };
KL_ADDS(f16, load_add_f16(at))
KL_ADDS(bf16, load_add_bf16(at))
KL_ADDS(f32, load_add_f32(at))
KL_ADDS(f64, load_add_f64(at))
#undef KL_ADDS

template <class F> struct largest;
template <class F> struct smallest;

#define KL_EXTREMES(format, maximum, minimum)                                                                          \
    template <> struct largest<format> : as_it_is<format> {                                                            \
        ON_GPU uint4 load(uint64_t at)                                                                                 \
        {                                                                                                              \
            return maximum;                                                                                            \
        }                                                                                                              \
    };                                                                                                                 \
    template <> struct smallest<format> : as_it_is<format> {                                                           \
        ON_GPU uint4 load(uint64_t at)                                                                                 \
        {                                                                                                              \
            return minimum;                                                                                            \
        }                                                                                                              \
    };
KL_EXTREMES(u32, load_max_u32(at), load_min_u32(at))
KL_EXTREMES(i32, load_max_i32(at), load_min_i32(at))
KL_EXTREMES(u64, load_max_u64(at), load_min_u64(at))
KL_EXTREMES(i64, load_max_i64(at), load_min_i64(at))
#undef KL_EXTREMES

/* Floats as integers of the same order, where a NaN is beyond all numbers: LAST is the largest integer. */
template <class F, typename F::code LAST, bool MAXIMUM> struct ranked {
    typedef typename F::code code;
    ON_GPU code put(code x)
    {
        return F::is_nan(x) ? MAXIMUM ? LAST : (code)~LAST : (code)F::rank_of(x);
    }
    ON_GPU code get(code x)
    {
        const code back = (code)F::rank_of(x);
        return F::larger(back, back);
    }
};
template <> struct largest<f32> : ranked<f32, 0x7fffffff, true> {
    ON_GPU uint4 load(uint64_t at)
    {
        return load_max_i32(at);
    }
};
template <> struct smallest<f32> : ranked<f32, 0x7fffffff, false> {
    ON_GPU uint4 load(uint64_t at)
    {
        return load_min_i32(at);
    }
};
template <> struct largest<f64> : ranked<f64, 0x7fffffffffffffff, true> {
    ON_GPU uint4 load(uint64_t at)
    {
        return load_max_i64(at);
    }
};
template <> struct smallest<f64> : ranked<f64, 0x7fffffffffffffff, false> {
    ON_GPU uint4 load(uint64_t at)
    {
        return load_min_i64(at);
    }
};

#define KL_BITS(name, loaded)                                                                                          \
    template <class F> struct name : as_it_is<F> {                                                                     \
        ON_GPU uint4 load(uint64_t at)                                                                                 \
        {                                                                                                              \
            return loaded(at);                                                                                         \
        }                                                                                                              \
    };
KL_BITS(ands, load_and)
KL_BITS(ors, load_or)
KL_BITS(xors, load_xor)
#undef KL_BITS

template <class Op> struct in_switch;
template <class F> struct in_switch<op_sum<F>> : adds<F> {
};
template <class F> struct in_switch<op_scaled<F>> : adds<F> {
};
template <class F> struct in_switch<op_mean<F>> : adds<F> {
};
template <class F> struct in_switch<op_max<F>> : largest<F> {
};
template <class F> struct in_switch<op_min<F>> : smallest<F> {
};
template <class F> struct in_switch<op_bits_and<F>> : ands<F> {
};
template <class F> struct in_switch<op_bits_or<F>> : ors<F> {
};
template <class F> struct in_switch<op_bits_xor<F>> : xors<F> {
};
template <class F> struct in_switch<op_truth_and<F>> : ands<F> {
};
template <class F> struct in_switch<op_truth_or<F>> : ors<F> {
};
template <class F> struct in_switch<op_truth_xor<F>> : xors<F> {
};

/* ---- units: of a buffer, at any address, whose last one may be short; of a copy; of all copies ---- */

struct in_buffer {
    uint64_t at, bytes;

    __device__ __forceinline__ uint4 load(uint64_t unit) const
    {
        const uint64_t from = at + unit * KL_NVLS_UNIT, left = bytes - unit * KL_NVLS_UNIT;
        pack<uint32_t> words = {};
        pack<uint8_t> some = {};

        if (left >= KL_NVLS_UNIT && from % 16 == 0) return *(const uint4 *)from;
        if (left >= KL_NVLS_UNIT && from % 4 == 0) {
#pragma unroll
            for (int i = 0; i < 4; i++) words.code[i] = ((const uint32_t *)from)[i];
            return words.whole;
        }
#pragma unroll
        for (int i = 0; i < 16; i++)
            if (i < left) some.code[i] = ((const uint8_t *)from)[i];
        return some.whole;
    }
    __device__ __forceinline__ void store(uint64_t unit, uint4 x) const
    {
        const uint64_t to = at + unit * KL_NVLS_UNIT, left = bytes - unit * KL_NVLS_UNIT;
        pack<uint32_t> words;
        pack<uint8_t> some;

        words.whole = some.whole = x;
        if (left >= KL_NVLS_UNIT && to % 16 == 0) {
            *(uint4 *)to = x;
        } else if (left >= KL_NVLS_UNIT && to % 4 == 0) {
#pragma unroll
            for (int i = 0; i < 4; i++) ((uint32_t *)to)[i] = words.code[i];
        } else {
#pragma unroll
            for (int i = 0; i < 16; i++)
                if (i < left) ((uint8_t *)to)[i] = some.code[i];
        }
    }
};

struct in_own_copy {
    uint64_t at;

    __device__ __forceinline__ uint4 load(uint64_t unit) const
    {
        return *(const uint4 *)(at + unit * KL_NVLS_UNIT);
    }
    __device__ __forceinline__ void store(uint64_t unit, uint4 x) const
    {
        *(uint4 *)(at + unit * KL_NVLS_UNIT) = x;
    }
};

struct in_all_copies {
    uint64_t at;

    __device__ __forceinline__ void store(uint64_t unit, uint4 x) const
    {
        store_to_all(at + unit * KL_NVLS_UNIT, x);
    }
};

/* A contribution, as the switch takes it. */
template <class F, class Op> struct contributed {
    typedef typename F::code code;
    in_buffer from;
    typename F::value by;

    __device__ __forceinline__ uint4 load(uint64_t unit) const
    {
        pack<code> x;

        x.whole = from.load(unit);
#pragma unroll
        for (int e = 0; e < 16 / (int)sizeof(code); e++) x.code[e] = in_switch<Op>::put(Op::first(x.code[e], by));
        return x.whole;
    }
};

/* The result of all contributions. */
template <class F, class Op> struct combined {
    typedef typename F::code code;
    uint64_t at;
    uint32_t divisor;

    __device__ __forceinline__ uint4 load(uint64_t unit) const
    {
        pack<code> x;

        x.whole = in_switch<Op>::load(at + unit * KL_NVLS_UNIT);
#pragma unroll
        for (int e = 0; e < 16 / (int)sizeof(code); e++) x.code[e] = Op::last(in_switch<Op>::get(x.code[e]), divisor);
        return x.whole;
    }
};

/* The block's threads move units [begin, end). Loads of several are in flight at once. */
template <class From, class To> ON_GPU void move_units(uint64_t begin, uint64_t end, const From &from, const To &to)
{
    const int AT_ONCE = 4;
    uint4 x[AT_ONCE];

    for (uint64_t u = begin + threadIdx.x; u < end; u += AT_ONCE * blockDim.x) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (u + i * blockDim.x < end) x[i] = from.load(u + i * blockDim.x);
#pragma unroll
        for (int i = 0; i < AT_ONCE; i++)
            if (u + i * blockDim.x < end) to.store(u + i * blockDim.x, x[i]);
    }
}

/* ---- meetings ---- */

ON_GPU uint32_t *epoch_of_block(const kl_nvls_job &j)
{
    return (uint32_t *)(j.own + KL_NVLS_EPOCHS) + blockIdx.x;
}

ON_GPU void fence_aliases()
{
    asm volatile("fence.proxy.alias;" ::: "memory");
}

ON_GPU void arrive(const kl_nvls_job &j)
{
    fence_aliases();
    __syncthreads();
    if (threadIdx.x == 0) add_to_all(j.all + blockIdx.x * KL_NVLS_COUNTER, 1);
}

/* False: the host has said that no other GPU will come. */
ON_GPU bool await_all(const kl_nvls_job &j, uint32_t epoch)
{
    const uint64_t counter = j.own + blockIdx.x * KL_NVLS_COUNTER;
    bool there = true;
    uint32_t polls = 0;

    if (threadIdx.x == 0) {
        fence_aliases(); /* the own arrival went to all copies */
        while (there && (int32_t)(load_acquire(counter) - j.ranks * epoch) < 0) there = !is_over(j.stop, &polls);
    }
    there = __syncthreads_and(there);
    fence_aliases();
    return there;
}

ON_GPU bool meet_all(const kl_nvls_job &j, uint32_t *epoch)
{
    arrive(j);
    return await_all(j, ++*epoch);
}

/* The last arrival of an operation. */
ON_GPU void leave_all(const kl_nvls_job &j, uint32_t epoch)
{
    arrive(j);
    if (threadIdx.x == 0) *epoch_of_block(j) = epoch + 1;
}

/* ---- chunks of this block ---- */

ON_GPU uint64_t chunks_of_block(const kl_nvls_job &j)
{
    const uint64_t chunks = (j.bytes + j.piece - 1) / j.piece;

    return (chunks - blockIdx.x + gridDim.x - 1) / gridDim.x;
}

/* Bytes [at, at + bytes) of a part. */
struct chunk {
    uint64_t at, bytes, units;

    __device__ __forceinline__ chunk(const kl_nvls_job &j, uint64_t number)
        : at((number * gridDim.x + blockIdx.x) * j.piece), bytes(j.bytes - at < j.piece ? j.bytes - at : j.piece),
          units((bytes + KL_NVLS_UNIT - 1) / KL_NVLS_UNIT)
    {
    }
    __device__ __forceinline__ in_buffer of(const kl_nvls_job &j, uint64_t buffer, uint32_t part) const
    {
        return {buffer + part * j.bytes + at, bytes};
    }
};

/* The block's room in the half of an epoch, behind the begin of the set. */
ON_GPU uint64_t room_of(uint32_t epoch)
{
    return KL_NVLS_HEAD + ((epoch & 1) * KL_NVLS_BLOCKS + blockIdx.x) * (uint64_t)KL_NVLS_ROOM;
}

/* ---- reductions ---- */

/* All parts, to the own copy. */
template <class F, class Op> ON_GPU void contribute(const kl_nvls_job &j, uint64_t number, uint32_t epoch)
{
    const chunk c(j, number);
    typename F::value by = F::factor(0);

    if (Op::SCALES) by = j.factor_there ? F::read(load<typename F::code>(j.factor, false)) : F::factor(j.factor);
    for (uint32_t p = 0; p < j.parts; p++) {
        const contributed<F, Op> from = {c.of(j, j.send, p), by};
        const in_own_copy to = {j.own + room_of(epoch) + p * j.piece};

        move_units(0, c.units, from, to);
    }
}

/* The results of an all-reduce are in the second half of rooms. */
ON_GPU uint64_t results_of(uint32_t epoch)
{
    return room_of(epoch) + KL_NVLS_ROOM / 2;
}

/* A slice, to all copies; or the own part, to the buffer. */
template <class F, class Op> ON_GPU void combine(const kl_nvls_job &j, uint64_t number, uint32_t epoch)
{
    const chunk c(j, number);
    const combined<F, Op> from = {j.all + room_of(epoch) + j.part * j.piece, j.divisor};

    if (j.spread) {
        const in_all_copies to = {j.all + results_of(epoch + 1)};
        move_units(c.units * j.rank / j.ranks, c.units * (j.rank + 1) / j.ranks, from, to);
    } else if (j.recv) {
        move_units(0, c.units, from, c.of(j, j.recv, 0));
    }
}

ON_GPU void take_results(const kl_nvls_job &j, uint64_t number, uint32_t epoch)
{
    const chunk c(j, number);
    const in_own_copy from = {j.own + results_of(epoch)};

    move_units(0, c.units, from, c.of(j, j.recv, 0));
}

/* Chunk i is contributed before a meeting, combined behind it, and taken, if all get it, behind the next one. */
template <class F, class Op> ON_GPU void reduce_over_all(const kl_nvls_job &j)
{
    const uint64_t chunks = chunks_of_block(j), last = chunks + (j.spread ? 1 : 0);
    uint32_t epoch = *epoch_of_block(j);

    if (!await_all(j, epoch)) return;
    for (uint64_t i = 0; i <= last; i++) {
        if (i < chunks) contribute<F, Op>(j, i, epoch + 1);
        if (i > 0 && i <= chunks) combine<F, Op>(j, i - 1, epoch);
        if (j.spread && i > 1) take_results(j, i - 2, epoch);
        if (i < last && !meet_all(j, &epoch)) return;
    }
    leave_all(j, epoch);
}

/* ---- copies ---- */

ON_GPU void send_to_all(const kl_nvls_job &j, uint64_t number, uint32_t epoch)
{
    const chunk c(j, number);
    const in_all_copies to = {j.all + room_of(epoch) + j.part * j.piece};

    if (j.send) move_units(0, c.units, c.of(j, j.send, 0), to);
}

ON_GPU void take_parts(const kl_nvls_job &j, uint64_t number, uint32_t epoch)
{
    const chunk c(j, number);

    for (uint32_t p = 0; p < j.parts; p++) {
        const in_own_copy from = {j.own + room_of(epoch) + p * j.piece};
        move_units(0, c.units, from, c.of(j, j.recv, p));
    }
}

/* Chunk i is sent before a meeting, and taken behind it. */
ON_GPU void copy_over_all(const kl_nvls_job &j)
{
    const uint64_t chunks = chunks_of_block(j);
    uint32_t epoch = *epoch_of_block(j);

    if (!await_all(j, epoch)) return;
    for (uint64_t i = 0; i <= chunks; i++) {
        if (i < chunks) send_to_all(j, i, epoch + 1);
        if (i > 0) take_parts(j, i - 1, epoch);
        if (i < chunks && !meet_all(j, &epoch)) return;
    }
    leave_all(j, epoch);
}

#else /* not launched on GPUs that have no multimem instructions, which have no multicast objects either */

template <class F, class Op> ON_GPU void reduce_over_all(const kl_nvls_job &)
{
}

ON_GPU void copy_over_all(const kl_nvls_job &)
{
}

#endif

#endif
