/* SPDX-License-Identifier: Apache-2.0 */
/** cooperative_groups/reduce.h - one value of all that the threads of a group have. */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_REDUCE_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_REDUCE_H

#include "../cooperative_groups.h"

#pragma GCC system_header

namespace cooperative_groups
{

/* clang-format off */
template <class T = void> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T = void> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T = void> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T = void> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T = void> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T = void> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
template <> struct plus<void> { template <class T> T operator()(T a, T b) const { return a + b; } };
template <> struct less<void> { template <class T> T operator()(T a, T b) const { return b < a ? b : a; } };
template <> struct greater<void> { template <class T> T operator()(T a, T b) const { return a < b ? b : a; } };
template <> struct bit_and<void> { template <class T> T operator()(T a, T b) const { return a & b; } };
template <> struct bit_or<void> { template <class T> T operator()(T a, T b) const { return a | b; } };
template <> struct bit_xor<void> { template <class T> T operator()(T a, T b) const { return a ^ b; } };
/* clang-format on */

/** All values in their order. */
template <class Group, class T, class F> inline T reduce_in_order(const Group &group, T value, F operation)
{
    T result = group.shfl(value, 0);

    for (unsigned i = 1; i < group.size(); i++) result = operation(result, group.shfl(value, i));
    return result;
}

/** Halves of the group are combined, then quarters; where lanes are missing, all values in their order. */
template <unsigned Size, class Parent, class T, class F>
inline T reduce(const thread_block_tile<Size, Parent> &tile, T value, F operation)
{
    if constexpr (Size > 32) {
        T of_warp = reduce(thread_block_tile<32>(), value, operation);

        return tile.with_values(of_warp, [=](const T *values, unsigned n, unsigned) {
            T result = values[0];
            for (unsigned i = 1; i < n; i++) result = operation(result, values[i]);
            return result;
        });
    } else {
        if (tile.size() != Size) return reduce_in_order(tile, value, operation);
        for (unsigned d = Size / 2; d; d /= 2) value = operation(value, tile.shfl_xor(value, d));
        return value;
    }
}

template <class T, class F> inline T reduce(const coalesced_group &group, T value, F operation)
{
    return reduce_in_order(group, value, operation);
}

} // namespace cooperative_groups

#endif
