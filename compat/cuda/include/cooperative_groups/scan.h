/* SPDX-License-Identifier: Apache-2.0 */
/** cooperative_groups/scan.h - prefix sums over the threads of a group, with the own value or without. */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_SCAN_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_SCAN_H

#include "reduce.h"

#pragma GCC system_header

namespace cooperative_groups
{

template <class Group, class T, class F> inline T scan_of_lanes(const Group &group, T value, F operation)
{
    for (unsigned d = 1; d < group.size(); d *= 2) {
        T below = group.shfl_up(value, d);

        if (group.thread_rank() >= d) value = operation(below, value);
    }
    return value;
}

template <class T, class F> inline T inclusive_scan(const coalesced_group &group, T value, F operation)
{
    return scan_of_lanes(group, value, operation);
}

template <unsigned Size, class Parent, class T, class F>
inline T inclusive_scan(const thread_block_tile<Size, Parent> &tile, T value, F operation)
{
    if constexpr (Size > 32) {
        thread_block_tile<32> warp;
        T of_lanes = scan_of_lanes(warp, value, operation);

        return tile.with_values(warp.shfl(of_lanes, (int)warp.size() - 1),
                                [=](const T *values, unsigned, unsigned mine) {
                                    if (!mine) return of_lanes;
                                    T before = values[0];
                                    for (unsigned i = 1; i < mine; i++) before = operation(before, values[i]);
                                    return operation(before, of_lanes);
                                });
    } else {
        return scan_of_lanes(tile, value, operation);
    }
}

template <class Group, class T> inline T inclusive_scan(const Group &group, T value)
{
    return inclusive_scan(group, value, plus<T>());
}

/** The first thread gets T(). */
template <class Group, class T, class F> inline T exclusive_scan(const Group &group, T value, F operation)
{
    T upto = inclusive_scan(group, value, operation), below;

    if constexpr (std::is_base_of<tile_base, Group>::value || std::is_same<Group, coalesced_group>::value) {
        below = group.shfl_up(upto, 1);
    } else {
        thread_block_tile<32> warp;
        below = warp.shfl_up(upto, 1);
        T of_warps =
            group.with_values(warp.shfl(upto, (int)warp.size() - 1),
                              [](const T *values, unsigned, unsigned mine) { return values[mine ? mine - 1 : 0]; });
        if (warp.thread_rank() == 0) below = of_warps;
    }
    return group.thread_rank() ? below : T();
}

template <class Group, class T> inline T exclusive_scan(const Group &group, T value)
{
    return exclusive_scan(group, value, plus<T>());
}

} // namespace cooperative_groups

#endif
