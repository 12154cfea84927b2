/* SPDX-License-Identifier: Apache-2.0 */
/**
 * warps.h - operations of warps in kernels that are loops over threads: of the values of all lanes at once.
 *
 * `live` are the lanes that have not returned; a mask is one for all lanes, or one of each lane. Each gives the bits of
 * sync.h's function; a lane that takes no part gives 0.
 */
#ifndef KOLO_CUDA_WARPS_H
#define KOLO_CUDA_WARPS_H

#pragma GCC system_header

#include "sync.h"
#include "warp_moves.h"

namespace __kolo
{

static const unsigned all_lanes = 0xffffffffu;

/** The values of all lanes, which f gives. */
template <class F>
__attribute__((always_inline)) inline auto values(unsigned live, F f) -> lanes<std::decay_t<decltype(f(0))>>
{
    lanes<std::decay_t<decltype(f(0))>> result;

    if (__builtin_expect(live == all_lanes, 1)) {
#pragma omp simd
        for (int i = 0; i < 32; i++) result.at[i] = f(i);
    } else {
        memset((void *)&result, 0, sizeof result);
        for (int i = 0; i < 32; i++)
            if (live >> i & 1) result.at[i] = f(i);
    }
    return result;
}

[[noreturn]] inline void wait_forever()
{
    __koloTrap("lanes of a warp wait for each other forever: their masks differ, or name not all that are there");
}

/** The lanes that take part with each lane. */
inline unsigned members(unsigned live, unsigned mask, int)
{
    if (__builtin_expect(live & ~mask, 0)) wait_forever();
    return live;
}
inline unsigned members(unsigned live, const lanes<unsigned> &mask, int lane)
{
    const unsigned own = mask.at[lane] | 1u << lane, needed = own & live;

    for (int i = 0; i < 32; i++)
        if (needed >> i & 1 && (mask.at[i] | 1u << i) != own) wait_forever();
    return needed;
}

inline unsigned of_lane(unsigned value, int)
{
    return value;
}
inline unsigned of_lane(const lanes<unsigned> &value, int lane)
{
    return value.at[lane];
}

/** Each live lane takes the value of the lane that `source` gives for it. */
template <class M, class T, class F> inline lanes<T> take(unsigned live, const M &mask, const lanes<T> &from, F source)
{
    lanes<T> result;

    memset((void *)&result, 0, sizeof result);
    for (int i = 0; i < 32; i++) {
        const unsigned other = source((unsigned)i) % 32;

        if (live >> i & 1 && members(live, mask, i) >> other & 1) result.at[i] = from.at[other];
    }
    return result;
}

inline bool is_full(unsigned live, unsigned mask)
{
    return __builtin_expect((live & mask) == all_lanes, 1);
}
inline bool is_full(unsigned, const lanes<unsigned> &)
{
    return false;
}

template <class M, class T, class O>
inline lanes<T> warp_shfl_sync(unsigned live, const M &mask, const lanes<T> &from, const O &source, unsigned width = 32)
{
    return take(live, mask, from,
                [&](unsigned lane) { return (lane & ~(width - 1)) + (of_lane(source, (int)lane) & (width - 1)); });
}

template <class T> inline T warp_shfl_sync_one(unsigned live, unsigned mask, const lanes<T> &from, unsigned source)
{
    T none;

    if (members(live, mask, 0) >> source % 32 & 1) return from.at[source % 32];
    memset((void *)&none, 0, sizeof none);
    return none;
}

template <class M, class T, class O>
inline lanes<T> warp_shfl_up_sync(unsigned live, const M &mask, const lanes<T> &from, const O &delta,
                                  unsigned width = 32)
{
    if constexpr (std::is_same<O, unsigned>::value) {
        if (width == 32 && delta < 32 && is_full(live, mask)) return moved<UP>(from, delta);
    }
    return take(live, mask, from, [&](unsigned lane) {
        const unsigned group = lane & ~(width - 1), by = of_lane(delta, (int)lane);

        return lane - group < by ? lane : lane - by;
    });
}

template <class M, class T, class O>
inline lanes<T> warp_shfl_down_sync(unsigned live, const M &mask, const lanes<T> &from, const O &delta,
                                    unsigned width = 32)
{
    if constexpr (std::is_same<O, unsigned>::value) {
        if (width == 32 && delta < 32 && is_full(live, mask)) return moved<DOWN>(from, delta);
    }
    return take(live, mask, from, [&](unsigned lane) {
        const unsigned end = (lane & ~(width - 1)) + width, by = of_lane(delta, (int)lane);

        return by >= end - lane ? lane : lane + by;
    });
}

template <class M, class T, class O>
inline lanes<T> warp_shfl_xor_sync(unsigned live, const M &mask, const lanes<T> &from, const O &other,
                                   unsigned width = 32)
{
    if constexpr (std::is_same<O, unsigned>::value) {
        if (width == 32 && other < 32 && is_full(live, mask)) return moved<BESIDE>(from, other);
    }
    return take(live, mask, from, [&](unsigned lane) {
        const unsigned end = (lane & ~(width - 1)) + width, source = lane ^ of_lane(other, (int)lane);

        return source >= end ? lane : source;
    });
}

/** Bit i for lane i: vectors of them are combined where shifts by different numbers are not there. */
struct bits_of_lanes {
    unsigned at[32];

    constexpr bits_of_lanes() : at()
    {
        for (int i = 0; i < 32; i++) at[i] = 1u << i;
    }
};
static constexpr bits_of_lanes lane_bits;

inline unsigned true_lanes(unsigned lanes_here, const lanes<int> &from)
{
    unsigned result = 0;

#pragma omp simd reduction(| : result)
    for (int i = 0; i < 32; i++) result |= from.at[i] != 0 ? lane_bits.at[i] : 0;
    return result & lanes_here;
}

/** One result for all lanes, or one for each lane, by the kind of the mask. */
template <class F> inline auto for_masks(unsigned live, unsigned mask, F f)
{
    return f(members(live, mask, 0));
}
template <class F> inline auto for_masks(unsigned live, const lanes<unsigned> &mask, F f)
{
    lanes<decltype(f(0u))> result;

    memset((void *)&result, 0, sizeof result);
    for (int i = 0; i < 32; i++)
        if (live >> i & 1) result.at[i] = f(members(live, mask, i));
    return result;
}

template <class M> inline auto warp_ballot_sync(unsigned live, const M &mask, const lanes<int> &from)
{
    return for_masks(live, mask, [&](unsigned here) { return true_lanes(here, from); });
}
template <class M> inline auto warp_any_sync(unsigned live, const M &mask, const lanes<int> &from)
{
    return for_masks(live, mask, [&](unsigned here) { return (int)(true_lanes(here, from) != 0); });
}
template <class M> inline auto warp_all_sync(unsigned live, const M &mask, const lanes<int> &from)
{
    return for_masks(live, mask, [&](unsigned here) { return (int)(true_lanes(here, from) == here); });
}
template <class M> inline auto warp_uni_sync(unsigned live, const M &mask, const lanes<int> &from)
{
    return for_masks(live, mask, [&](unsigned here) {
        const unsigned yes = true_lanes(here, from);

        return (int)(yes == here || yes == 0);
    });
}

inline unsigned warp_activemask(unsigned live)
{
    return live;
}

/** The lanes of `rest` with the value of its first lane. */
template <class B> inline unsigned like_first(unsigned rest, const B *bits)
{
    const B value = bits[__builtin_ctz(rest)];
    unsigned same = 0;

#pragma omp simd reduction(| : same)
    for (int i = 0; i < 32; i++) same |= bits[i] == value ? lane_bits.at[i] : 0;
    return same & rest;
}

/** For each lane of `rest` the lanes with its value, through a table: each lane looks for the first lane that has it. */
template <class B> inline void find_alike(unsigned rest, const B *bits, unsigned *same)
{
    enum { PLACES = 64, NONE = 32 };
    unsigned char first[PLACES], found[32];
    unsigned alike[32];

    memset(first, NONE, sizeof first);
    for (unsigned left = rest; left; left &= left - 1) {
        const int i = __builtin_ctz(left);
        unsigned place = (unsigned)((uint64_t)bits[i] * 0x9e3779b97f4a7c15ull >> 58);

        while (first[place] != NONE && bits[first[place]] != bits[i]) place = (place + 1) % PLACES;
        if (first[place] == NONE) {
            first[place] = (unsigned char)i;
            alike[i] = 0;
        }
        found[i] = first[place];
        alike[found[i]] |= 1u << i;
    }
    for (unsigned left = rest; left; left &= left - 1) {
        const int i = __builtin_ctz(left);

        same[i] = alike[found[i]];
    }
}

template <class M, class T>
inline lanes<unsigned> warp_match_any_sync(unsigned live, const M &mask, const lanes<T> &from)
{
    using B = std::conditional_t<sizeof(T) <= 4, uint32_t, uint64_t>;
    lanes<unsigned> result;
    unsigned rest = live, many;
    B bits[32];

    for (int i = 0; i < 32; i++) bits[i] = (B)to_bits(from.at[i]);
    if (live != all_lanes) memset((void *)&result, 0, sizeof result);
    do { /* to compare all lanes at once is quicker than a table as long as many are alike */
        const unsigned same = like_first(rest, bits);

        many = 0;
        for (unsigned left = same; left; left &= left - 1, many++) result.at[__builtin_ctz(left)] = same;
        rest &= ~same;
    } while (rest && many >= 8);
    if (rest) find_alike(rest, bits, result.at);
    for (int i = 0; i < 32; i++)
        if (live >> i & 1) result.at[i] &= members(live, mask, i);
    return result;
}

/** Of numbers of 32 bits, in the order of the lanes: it makes no difference. */
#define KOLO_CUDA_REDUCE(name, expression)                                                                             \
    template <class M, class T> inline auto warp_##name(unsigned live, const M &mask, const lanes<T> &from)            \
    {                                                                                                                  \
        using R = decltype(::__##name(0u, from.at[0]));                                                                \
                                                                                                                       \
        return for_masks(live, mask, [&](unsigned here) {                                                              \
            R result = 0;                                                                                              \
            bool any = false;                                                                                          \
                                                                                                                       \
            for (int i = 0; i < 32; i++) {                                                                             \
                if (!(here >> i & 1)) continue;                                                                        \
                const R a = result, b = (R)from.at[i];                                                                 \
                                                                                                                       \
                result = any ? (R)(expression) : b;                                                                    \
                any = true;                                                                                            \
            }                                                                                                          \
            return result;                                                                                             \
        });                                                                                                            \
    }
KOLO_CUDA_REDUCE(reduce_add_sync, (unsigned)a + (unsigned)b)
KOLO_CUDA_REDUCE(reduce_min_sync, a < b ? a : b)
KOLO_CUDA_REDUCE(reduce_max_sync, a > b ? a : b)
KOLO_CUDA_REDUCE(reduce_and_sync, (unsigned)a &(unsigned)b)
KOLO_CUDA_REDUCE(reduce_or_sync, (unsigned)a | (unsigned)b)
KOLO_CUDA_REDUCE(reduce_xor_sync, (unsigned)a ^ (unsigned)b)
#undef KOLO_CUDA_REDUCE

} // namespace __kolo

#endif
