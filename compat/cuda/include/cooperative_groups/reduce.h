/* SPDX-License-Identifier: Apache-2.0 */
/** cooperative_groups/reduce.h - one value of all that the threads of a tile have. */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"

#pragma GCC system_header

namespace cooperative_groups
{

/* clang-format off */
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
/* clang-format on */

/** Halves of the group are combined, then quarters; where lanes are missing, all values in their order. */
template <unsigned Size, class Parent, class T, class F>
inline T reduce(const thread_block_tile<Size, Parent> &tile, T value, F operation)
{
    T result = value;

    if (tile.size() == Size) {
        for (unsigned d = Size / 2; d; d /= 2) result = operation(result, tile.shfl_xor(result, d));
        return result;
    }
    result = tile.shfl(value, 0);
    for (unsigned i = 1; i < tile.size(); i++) result = operation(result, tile.shfl(value, (int)i));
    return result;
}

template <class T, class F> inline T reduce(const coalesced_group &, T value, F)
{
    return value;
}

template <unsigned Size, class Parent, class T, class F>
inline T inclusive_scan(const thread_block_tile<Size, Parent> &tile, T value, F operation)
{
    for (unsigned d = 1; d < Size; d *= 2) {
        T below = tile.shfl_up(value, d);

        if (tile.thread_rank() >= d) value = operation(below, value);
    }
    return value;
}

template <unsigned Size, class Parent, class T>
inline T inclusive_scan(const thread_block_tile<Size, Parent> &tile, T value)
{
    return inclusive_scan(tile, value, plus<T>());
}

template <unsigned Size, class Parent, class T>
inline T exclusive_scan(const thread_block_tile<Size, Parent> &tile, T value)
{
    T below = tile.shfl_up(inclusive_scan(tile, value, plus<T>()), 1);

    return tile.thread_rank() ? below : T();
}

} // namespace cooperative_groups

#endif
