/* SPDX-License-Identifier: Apache-2.0 */
/**
 * schedule.cuh - blocks that follow the rows of schedules (rows.h), and wait for each other: all of them are resident. The
 * loops, places and merges are those of coll/pipeline/pipeline.c, so results have the same bits.
 *
 * The threads of a block are divided among the lanes of its program, which have barriers of their own. The first threads
 * of a lane poll one edge each, then all of them move the data, then the first ones tell the other sides.
 */
#ifndef KL_COLL_GPU_SCHEDULE_CUH
#define KL_COLL_GPU_SCHEDULE_CUH

#include "coll/gpu/edges.cuh"
#include "coll/gpu/reduce.cuh"
#include "coll/gpu/rows.h"

/* Shared by a block. */
struct board {
    struct kl_gpu_ends ends;
    uint32_t stopped[KL_ROW_LANES]
                    [2]; /* by parity of the hop: it is read before the hop after the next one can set it */
};

struct lane {
    uint32_t number, thread, threads;
};

/* A row's share of a loop: addresses of its first element, also in the slots of its first edges. */
struct place {
    uint64_t own, result, count;
    uint64_t in, out;
};

/* The numbers of named barriers are constants: a variable would claim all of them. */
ON_GPU void meet(const lane &l)
{
    if (l.number == 0)
        asm volatile("barrier.sync 1, %0;" ::"r"(l.threads) : "memory");
    else
        asm volatile("barrier.sync 2, %0;" ::"r"(l.threads) : "memory");
}

/* ---- edges ---- */

ON_GPU bool has(uint32_t edges, uint32_t edge)
{
    return edges >> edge & 1;
}

ON_GPU uint32_t first_edge(uint32_t edges)
{
    return (uint32_t)__ffs((int)edges) - 1;
}

ON_GPU uint64_t slot_of(const kl_gpu_schedule &s, const kl_gpu_end &e)
{
    return e.slots + (e.step & (s.slots - 1)) * s.slot_bytes;
}

/* The flag of a chunk: as lines have steps of their own, the steps of a slot differ by the number of slots. */
ON_GPU uint64_t flag_of(const kl_gpu_end &e)
{
    return e.step + 1;
}

/* One edge by each of the first threads: the chunk is there, or a slot is free. */
ON_GPU bool await_edges(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, uint32_t thread)
{
    const uint32_t edge = thread % KL_ROW_EDGES;

    if (thread < KL_ROW_EDGES) {
        const kl_gpu_end &e = b.ends.recv[edge];
        return s.line_bytes || !has(row.recv, edge) || await(e.poll, e.step + 1, s.stop);
    }
    if (thread >= 2 * KL_ROW_EDGES || !has(row.send, edge)) return true;
    const kl_gpu_end &e = b.ends.send[edge];
    return e.step < s.slots || await(e.poll, e.step + 1 - s.slots, s.stop);
}

ON_GPU void tell_edges(const kl_gpu_schedule &s, board &b, const kl_gpu_row &row, uint32_t thread)
{
    const uint32_t edge = thread % KL_ROW_EDGES;

    if (thread >= 2 * KL_ROW_EDGES) return;
    const bool receives = thread < KL_ROW_EDGES;
    if (!has(receives ? row.recv : row.send, edge)) return;
    kl_gpu_end &e = receives ? b.ends.recv[edge] : b.ends.send[edge];
    e.step++;
    if (receives || !s.line_bytes) store_step(e.tell, e.step);
}

/* ---- values ---- */

template <class Code, int N> struct some {
    Code code[N];
};

/* 16 bytes, or an element. */
template <class Code, int N> ON_GPU void get(some<Code, N> *to, uint64_t at, bool aligned)
{
    if (N > 1) {
        pack<Code> p;
        p.whole = *(const uint4 *)at;
#pragma unroll
        for (int e = 0; e < N; e++) to->code[e] = p.code[e];
    } else {
        to->code[0] = load<Code>(at, aligned);
    }
}

template <class Code, int N> ON_GPU void put(const some<Code, N> &from, uint64_t at, bool aligned)
{
    if (N > 1) {
        pack<Code> p;
#pragma unroll
        for (int e = 0; e < N; e++) p.code[e] = from.code[e];
        *(uint4 *)at = p.whole;
    } else {
        store<Code>(at, from.code[0], aligned);
    }
}

/* Two partial results: contributions are scaled before they become one. */
template <class F, class Op> ON_GPU typename F::code merge(typename F::code a, typename F::code b)
{
    return Op::SCALES ? op_sum<F>::join(a, b, F::factor(0)) : Op::join(a, b, F::factor(0));
}

/* The rank's own data, as they are or as the first contribution. */
template <class F, class Op, int N>
ON_GPU void begin(some<typename F::code, N> *v, const some<typename F::code, N> &own, uint32_t actions,
                  typename F::value by)
{
#pragma unroll
    for (int e = 0; e < N; e++) v->code[e] = actions & KL_ROW_FIRST ? Op::first(own.code[e], by) : own.code[e];
}

template <class F, class Op, int N>
ON_GPU void join_own(some<typename F::code, N> *v, const some<typename F::code, N> &own, typename F::value by)
{
#pragma unroll
    for (int e = 0; e < N; e++) v->code[e] = Op::join(v->code[e], own.code[e], by);
}

template <class F, class Op, int N>
ON_GPU void merge_into(some<typename F::code, N> *v, const some<typename F::code, N> &other)
{
#pragma unroll
    for (int e = 0; e < N; e++) v->code[e] = merge<F, Op>(v->code[e], other.code[e]);
}

template <class F, class Op, int N> ON_GPU void finish(some<typename F::code, N> *v, uint32_t actions, uint32_t by)
{
    if (!(actions & KL_ROW_FINISH)) return;
#pragma unroll
    for (int e = 0; e < N; e++) v->code[e] = Op::last(v->code[e], by);
}

/* ---- slots ---- */

/* The value at `at` bytes of a row's chunk. */
template <class F, class Op, int N>
ON_GPU void move_some(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, const place &p, uint64_t at,
                      bool aligned, typename F::value by)
{
    some<typename F::code, N> v, other;
    uint32_t from = row.recv;

    if (!from || row.actions & KL_ROW_REDUCE) get(&other, p.own + at, aligned);
    if (!from) {
        begin<F, Op, N>(&v, other, row.actions, by);
    } else {
        get(&v, p.in + at, true);
        if (row.actions & KL_ROW_REDUCE) join_own<F, Op, N>(&v, other, by);
        for (from &= from - 1; from; from &= from - 1) {
            get(&other, slot_of(s, b.ends.recv[first_edge(from)]) + at, true);
            merge_into<F, Op, N>(&v, other);
        }
    }
    finish<F, Op, N>(&v, row.actions, s.job.divisor);
    if (row.actions & KL_ROW_KEEP) put(v, p.result + at, aligned);
    if (row.send) put(v, p.out + at, true);
    for (uint32_t to = row.send & (row.send - 1); to; to &= to - 1)
        put(v, slot_of(s, b.ends.send[first_edge(to)]) + at, true);
}

/* The addresses that a row uses, in one number for questions about their alignment. */
ON_GPU uint64_t used(const kl_gpu_row &row, const place &p)
{
    const bool own = !row.recv || row.actions & KL_ROW_REDUCE;

    return (own ? p.own : 0) | (row.actions & KL_ROW_KEEP ? p.result : 0);
}

template <class F, class Op>
ON_GPU void move_slots(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, place p, const lane &l,
                       typename F::value by)
{
    const uint64_t size = sizeof(typename F::code), all = used(row, p);
    const uint64_t packs = all % 16 ? 0 : p.count * size / 16;
    const bool aligned = all % size == 0;

    if (row.recv) p.in = slot_of(s, b.ends.recv[first_edge(row.recv)]);
    if (row.send) p.out = slot_of(s, b.ends.send[first_edge(row.send)]);
    for (uint64_t i = l.thread; i < packs; i += l.threads)
        move_some<F, Op, 16 / sizeof(typename F::code)>(s, b, row, p, 16 * i, true, by);
    for (uint64_t i = packs * 16 / size + l.thread; i < p.count; i += l.threads)
        move_some<F, Op, 1>(s, b, row, p, size * i, aligned, by);
}

/* ---- lines ---- */

enum { WORD = 8 };

template <class Code> union line_data {
    uint64_t whole;
    some<Code, WORD / sizeof(Code)> part;
};

/* The part of a line of one thread: words, of which the last ones may be short, or missing. */
template <class Code, int WORDS> struct line_words {
    line_data<Code> word[WORDS];
};

/* Elements of a word; `whole`: all of them, at an address that is a multiple of 8. */
struct extent {
    uint32_t n;
    bool whole;
};

template <class Code> ON_GPU void get_word(line_data<Code> *to, uint64_t at, extent e, bool aligned)
{
    to->whole = 0;
    if (e.whole) {
        to->whole = *(const uint64_t *)at;
        return;
    }
    for (uint32_t i = 0; i < e.n; i++) to->part.code[i] = load<Code>(at + i * sizeof(Code), aligned);
}

template <class Code> ON_GPU void put_word(const line_data<Code> &from, uint64_t at, extent e, bool aligned)
{
    if (e.whole) {
        *(uint64_t *)at = from.whole;
        return;
    }
    for (uint32_t i = 0; i < e.n; i++) store<Code>(at + i * sizeof(Code), from.part.code[i], aligned);
}

template <class Code, class Line> ON_GPU extent extent_of(const Line &line, int word, uint64_t count, bool all_whole)
{
    const uint32_t most = WORD / sizeof(Code);
    const uint64_t first = (line.data + WORD * word) / sizeof(Code);
    const uint64_t left = line.has(word) && count > first ? count - first : 0;

    return {left < most ? (uint32_t)left : most, all_whole && left >= most};
}

template <class Code, class Line>
ON_GPU bool receive_line(const kl_gpu_schedule &s, const kl_gpu_end &e, const Line &line,
                         line_words<Code, Line::WORDS> *to)
{
    uint64_t word[Line::WORDS] = {};

    if (!line.read(slot_of(s, e), flag_of(e), s.stop, word)) return false;
#pragma unroll
    for (int w = 0; w < Line::WORDS; w++) to->word[w].whole = word[w];
    return true;
}

template <class Code, class Line>
ON_GPU void send_line(const kl_gpu_schedule &s, const kl_gpu_end &e, const Line &line,
                      const line_words<Code, Line::WORDS> &from)
{
    uint64_t word[Line::WORDS];

#pragma unroll
    for (int w = 0; w < Line::WORDS; w++) word[w] = from.word[w].whole;
    line.write(slot_of(s, e), flag_of(e), word);
}

template <class F, class Op, class Line>
ON_GPU bool move_line(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, const place &p, const Line &line,
                      typename F::value by)
{
    typedef typename F::code code;
    const int most = WORD / sizeof(code), words = Line::WORDS;
    const uint64_t all = used(row, p);
    const bool all_whole = all % WORD == 0, aligned = all % sizeof(code) == 0;
    line_words<code, words> v, other;
    extent e[words];
    uint32_t from = row.recv;

#pragma unroll
    for (int w = 0; w < words; w++) {
        e[w] = extent_of<code>(line, w, p.count, all_whole);
        if (!from || row.actions & KL_ROW_REDUCE) get_word(&other.word[w], p.own + line.data + WORD * w, e[w], aligned);
        if (!from) begin<F, Op, most>(&v.word[w].part, other.word[w].part, row.actions, by);
    }
    if (from) {
        if (!receive_line<code>(s, b.ends.recv[first_edge(from)], line, &v)) return false;
#pragma unroll
        for (int w = 0; w < words; w++)
            if (row.actions & KL_ROW_REDUCE) join_own<F, Op, most>(&v.word[w].part, other.word[w].part, by);
        for (from &= from - 1; from; from &= from - 1) {
            if (!receive_line<code>(s, b.ends.recv[first_edge(from)], line, &other)) return false;
#pragma unroll
            for (int w = 0; w < words; w++) merge_into<F, Op, most>(&v.word[w].part, other.word[w].part);
        }
    }
#pragma unroll
    for (int w = 0; w < words; w++) {
        finish<F, Op, most>(&v.word[w].part, row.actions, s.job.divisor);
        if (row.actions & KL_ROW_KEEP) put_word(v.word[w], p.result + line.data + WORD * w, e[w], aligned);
    }
    for (uint32_t to = row.send; to; to &= to - 1) send_line<code>(s, b.ends.send[first_edge(to)], line, v);
    return true;
}

/* The threads of a warp go through the same number of lines, so that they can vote. */
template <class F, class Op, class Line>
ON_GPU bool move_lines(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, const place &p, const lane &l,
                       typename F::value by)
{
    const uint64_t lines = (p.count * sizeof(typename F::code) + Line::DATA - 1) / Line::DATA;

    for (uint64_t i = Line::first(l.thread); i < lines; i += Line::step(l.threads))
        if (!move_line<F, Op>(s, b, row, p, Line(i, lines), by)) return false;
    return true;
}

/* By the protocol; false: the kernel is to end. */
template <class F, class Op>
ON_GPU bool move(const kl_gpu_schedule &s, const board &b, const kl_gpu_row &row, const place &p, const lane &l,
                 typename F::value by)
{
    if (s.line_bytes == KL_LINE_LL128) return move_lines<F, Op, wide>(s, b, row, p, l, by);
    if (s.line_bytes) return move_lines<F, Op, narrow>(s, b, row, p, l, by);
    move_slots<F, Op>(s, b, row, p, l, by);
    return true;
}

/* ---- rows ---- */

/* One hop; `hop` counts all of the lane's. False: the kernel is to end. */
template <class F, class Op>
ON_GPU bool follow_row(const kl_gpu_schedule &s, board &b, const kl_gpu_row &row, const place &p, const lane &l,
                       typename F::value by, uint32_t hop)
{
    uint32_t &stopped = b.stopped[l.number][hop % 2];

    if (!await_edges(s, b, row, l.thread)) stopped = 1;
    meet(l);
    if (!move<F, Op>(s, b, row, p, l, by)) stopped = 1;
    meet(l);
    tell_edges(s, b, row, l.thread);
    return !*(volatile uint32_t *)&stopped;
}

/* Elements [*first, *end) of a channel. */
ON_GPU void range_of(const kl_gpu_schedule &s, uint64_t channel, uint64_t *first, uint64_t *end)
{
    *first = channel ? s.lo + (channel - 1) * s.mid : 0;
    *end = *first + (!channel ? s.lo : channel == gridDim.y - 1 && s.hi ? s.hi : s.mid);
}

ON_GPU uint64_t chunk_of(const kl_gpu_schedule &s, uint64_t chunks, uint64_t left)
{
    uint64_t share = (left + chunks - 1) / chunks;

    if (chunks > 1) share = (share + s.grain - 1) / s.grain * s.grain;
    return share < s.most ? share : s.most;
}

/* The row's slice, `from` elements behind the begin of its chunk, of a loop. */
template <class Code>
ON_GPU place place_of(const kl_gpu_schedule &s, const kl_gpu_program &p, const kl_gpu_row &row, uint64_t first,
                      uint64_t end, uint64_t chunk, uint64_t from)
{
    const uint64_t own = first + row.own_chunk * chunk, result = first + row.result_chunk * chunk;
    uint64_t left = end > own ? end - own : 0;

    if (left > chunk) left = chunk;
    left = left > from ? left - from : 0;
    return place{s.job.in[p.rank] + (row.own_part * s.job.count + own + from) * sizeof(Code),
                 s.job.out[p.rank] + (row.result_part * s.job.count + result + from) * sizeof(Code),
                 left < s.slice ? left : s.slice, 0, 0};
}

/* Hops without elements are left out, at both ends of their edges. */
template <class F, class Op>
ON_GPU void follow_lane(const kl_gpu_schedule &s, board &b, const kl_gpu_program &p, const lane &l)
{
    const kl_gpu_row *rows = (const kl_gpu_row *)p.row[l.number];
    const typename F::value by = factor_of<F, Op>(s.job, p.rank);
    uint32_t hop = 0;
    uint64_t first, end;

    range_of(s, blockIdx.y, &first, &end);
    for (uint64_t chunk; p.rows[l.number] && first < end; first += chunk * p.chunks) {
        chunk = chunk_of(s, p.chunks, end - first);
        for (uint64_t from = 0; from < chunk; from += s.slice)
            for (uint32_t r = 0; r < p.rows[l.number]; r++) {
                const kl_gpu_row row = rows[r];
                const place at = place_of<typename F::code>(s, p, row, first, end, chunk, from);
                if (at.count && !follow_row<F, Op>(s, b, row, at, l, by, hop++)) return;
            }
    }
}

template <class F, class Op> ON_GPU void follow(const kl_gpu_schedule &s, board &b)
{
    const kl_gpu_program &p = ((const kl_gpu_program *)s.programs)[blockIdx.y * gridDim.x + blockIdx.x];
    const uint32_t threads = blockDim.x / p.lanes, words = sizeof(kl_gpu_ends) / sizeof(uint64_t);
    const lane l = {threadIdx.x / threads, threadIdx.x % threads, threads};
    uint64_t *kept = (uint64_t *)p.ends, *here = (uint64_t *)&b.ends;

    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) here[i] = kept[i];
    if (threadIdx.x < 2 * KL_ROW_LANES) b.stopped[threadIdx.x / 2][threadIdx.x % 2] = 0;
    __syncthreads();
    follow_lane<F, Op>(s, b, p, l);
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < words; i += blockDim.x) kept[i] = here[i]; /* for the next kernel */
}

#endif
