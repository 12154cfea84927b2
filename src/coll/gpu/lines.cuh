/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lines.cuh - small operations of GPUs that have a rank each: every rank writes its data into lines in the memory of the
 * others, and takes theirs from its own (flags_job.h). Reductions merge in the order of ranks, as reduce.cuh does.
 */
#ifndef KL_COLL_GPU_LINES_CUH
#define KL_COLL_GPU_LINES_CUH

#include "coll/gpu/flags.cuh"
#include "coll/gpu/reduce.cuh"

struct line {
    uint64_t low, high;
};

/* Words of 64 bits, each of which is there as a whole; they may come in any order. */
ON_GPU void put_line(uint64_t at, uint64_t data, uint32_t epoch)
{
    const uint64_t flag = (uint64_t)epoch << 32;
    const uint64_t low = flag | (uint32_t)data;
    const uint64_t high = flag | data >> 32;

    asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(low), "l"(high) : "memory");
}

ON_GPU line get_line(uint64_t at)
{
    uint64_t low, high;

    asm volatile("ld.relaxed.sys.global.v2.u64 {%0, %1}, [%2];" : "=l"(low), "=l"(high) : "l"(at) : "memory");
    return {low, high};
}

ON_GPU bool is_of(const line &x, uint32_t epoch)
{
    return x.low >> 32 == epoch && x.high >> 32 == epoch;
}

/* The data of a line that was looked at. */
ON_GPU uint64_t await_line(const kl_lines_job &j, uint64_t at, line x, uint32_t epoch)
{
    for (uint32_t polls = 0; !is_of(x, epoch) && !is_over(j.stop, &polls);) x = get_line(at);
    return (uint32_t)x.low | x.high << 32;
}

/* ---- units in buffers: the last one of a message may be short ---- */

ON_GPU uint64_t load_unit(const kl_lines_job &j, uint64_t from, uint64_t unit)
{
    const uint64_t at = from + unit * KL_LINES_UNIT, left = j.bytes - unit * KL_LINES_UNIT;
    uint64_t data = 0;

    if (left >= KL_LINES_UNIT && at % KL_LINES_UNIT == 0) return *(const uint64_t *)at;
    for (uint32_t i = 0; i < KL_LINES_UNIT; i++)
        if (i < left) data |= (uint64_t)((const uint8_t *)at)[i] << 8 * i;
    return data;
}

ON_GPU void store_unit(const kl_lines_job &j, uint64_t to, uint64_t unit, uint64_t data)
{
    const uint64_t at = to + unit * KL_LINES_UNIT, left = j.bytes - unit * KL_LINES_UNIT;

    if (left >= KL_LINES_UNIT && at % KL_LINES_UNIT == 0) {
        *(uint64_t *)at = data;
        return;
    }
    for (uint32_t i = 0; i < KL_LINES_UNIT; i++)
        if (i < left) ((uint8_t *)at)[i] = (uint8_t)(data >> 8 * i);
}

/* ---- messages ---- */

ON_GPU bool has_rank(uint64_t ranks, uint32_t rank)
{
    return ranks >> rank & 1;
}

/* This block's units: [begin, end), of the room that it has. */
struct span {
    uint64_t begin, end;
};

ON_GPU span own_span(const kl_lines_job &j)
{
    const uint64_t units = (j.bytes + KL_LINES_UNIT - 1) / KL_LINES_UNIT;
    const uint64_t begin = (uint64_t)blockIdx.x * KL_LINES_BLOCK, end = begin + KL_LINES_BLOCK;

    return {begin, units < end ? units : end};
}

/* Where `rank` has the lines of a sender. */
ON_GPU uint64_t slot_of(const kl_lines_job &j, uint32_t rank, uint32_t sender, uint32_t epoch)
{
    return j.lines[rank] + ((epoch & 1) * j.ranks + sender) * (uint64_t)j.units * KL_LINES_LINE;
}

/* To all other ranks; to one that gets no message a first line alone. */
template <class Work> ON_GPU void send_lines(const kl_lines_job &j, uint32_t epoch, const Work &work)
{
    const span own = own_span(j);
    const bool renews = epoch % KL_LINES_RENEWED < 2, sends = has_rank(j.senders, j.rank);
    uint64_t data = 0;

    for (uint64_t u = own.begin + threadIdx.x; u < own.begin + KL_LINES_BLOCK; u += blockDim.x) {
        if (sends && !j.send_stride && u < own.end) data = work.prepare(load_unit(j, j.send, u));
        for (uint32_t i = 1; i < j.ranks; i++) {
            const uint32_t to = (j.rank + i) % j.ranks;
            const bool is_message = sends && has_rank(j.receivers, to) && u < own.end;
            if (is_message && j.send_stride) data = work.prepare(load_unit(j, j.send + to * j.send_stride, u));
            if (is_message || renews || u == own.begin)
                put_line(slot_of(j, to, j.rank, epoch) + u * KL_LINES_LINE, data, epoch);
        }
    }
}

/* A unit of each rank's message to this one, in the order of ranks. Loads of several lines are in flight at once. */
template <class Work> ON_GPU void take_unit(const kl_lines_job &j, uint32_t epoch, uint64_t unit, Work &work)
{
    const uint32_t AT_ONCE = 4;
    const uint64_t first = slot_of(j, j.rank, 0, epoch) + unit * KL_LINES_LINE;
    const uint64_t slot = (uint64_t)j.units * KL_LINES_LINE;
    line x[AT_ONCE] = {};

    for (uint32_t r = 0; r < j.ranks; r += AT_ONCE) {
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++)
            if (r + i < j.ranks && r + i != j.rank) x[i] = get_line(first + (r + i) * slot);
#pragma unroll
        for (uint32_t i = 0; i < AT_ONCE; i++) {
            if (r + i >= j.ranks || !has_rank(j.senders, r + i)) continue;
            if (r + i == j.rank)
                work.take(r + i, unit, work.prepare(load_unit(j, j.send + j.rank * j.send_stride, unit)));
            else
                work.take(r + i, unit, await_line(j, first + (r + i) * slot, x[i], epoch));
        }
        if (r + AT_ONCE >= j.ranks) work.finish(unit);
    }
}

/* From ranks that have no message for this one. */
ON_GPU void await_first_lines(const kl_lines_job &j, uint32_t epoch)
{
    const bool receives = has_rank(j.receivers, j.rank);

    for (uint32_t r = threadIdx.x; r < j.ranks; r += blockDim.x) {
        if (r == j.rank || (receives && has_rank(j.senders, r))) continue;
        const uint64_t at = slot_of(j, j.rank, r, epoch) + own_span(j).begin * KL_LINES_LINE;
        (void)await_line(j, at, get_line(at), epoch);
    }
}

template <class Work> ON_GPU void move_lines(const kl_lines_job &j, Work &work)
{
    uint32_t *own_epoch = (uint32_t *)j.epochs + blockIdx.x;
    const uint32_t epoch = *own_epoch + 1;
    const span own = own_span(j);

    send_lines(j, epoch, work);
    __syncthreads(); /* all has left before any thread waits, and before results replace data */
    if (has_rank(j.receivers, j.rank))
        for (uint64_t u = own.begin + threadIdx.x; u < own.end; u += blockDim.x) take_unit(j, epoch, u, work);
    await_first_lines(j, epoch);
    __syncthreads();
    if (threadIdx.x == 0) *own_epoch = epoch;
}

/* ---- copies ---- */

struct copied {
    const kl_lines_job &j;

    __device__ __forceinline__ uint64_t prepare(uint64_t data) const
    {
        return data;
    }
    __device__ __forceinline__ void take(uint32_t rank, uint64_t unit, uint64_t data)
    {
        store_unit(j, j.recv + rank * j.recv_stride, unit, data);
    }
    __device__ __forceinline__ void finish(uint64_t)
    {
    }
};

ON_GPU void copy_lines(const kl_lines_job &j)
{
    copied work = {j};

    move_lines(j, work);
}

/* ---- reductions ---- */

/* Contributions are scaled by their sender, so that no rank needs the factors of others. */
template <class F, class Op> struct reduced {
    typedef typename F::code code;
    union unit {
        uint64_t whole;
        code each[KL_LINES_UNIT / sizeof(code)];
    };
    static const int N = KL_LINES_UNIT / (int)sizeof(code);

    const kl_lines_job &j;
    typename F::value by;
    unit all;

    __device__ __forceinline__ uint64_t prepare(uint64_t data) const
    {
        unit x;

        x.whole = data;
        if (Op::SCALES)
#pragma unroll
            for (int e = 0; e < N; e++) x.each[e] = Op::first(x.each[e], by);
        return x.whole;
    }
    __device__ __forceinline__ code join(code a, code b)
    {
        return Op::SCALES ? op_sum<F>::join(a, b, by) : Op::join(a, b, by);
    }
    __device__ __forceinline__ void take(uint32_t rank, uint64_t, uint64_t data)
    {
        unit x;

        x.whole = data;
#pragma unroll
        for (int e = 0; e < N; e++)
            all.each[e] = rank ? join(all.each[e], x.each[e]) : Op::SCALES ? x.each[e] : Op::first(x.each[e], by);
    }
    __device__ __forceinline__ void finish(uint64_t at)
    {
#pragma unroll
        for (int e = 0; e < N; e++) all.each[e] = Op::last(all.each[e], j.divisor);
        store_unit(j, j.recv, at, all.whole);
    }
};

template <class F, class Op> ON_GPU void reduce_lines(const kl_lines_job &j)
{
    reduced<F, Op> work = {j, F::factor(0), {}};

    if (Op::SCALES) work.by = j.factor_there ? F::read(load<typename F::code>(j.factor, false)) : F::factor(j.factor);
    move_lines(j, work);
}

#endif
