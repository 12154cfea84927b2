/* SPDX-License-Identifier: Apache-2.0 */
/** cooperative_groups/memcpy_async.h - copies that a group does together. They are done when the call returns; wait() is a barrier. */
#ifndef KOLO_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H
#define KOLO_CUDA_COOPERATIVE_GROUPS_MEMCPY_ASYNC_H

#include "../cooperative_groups.h"

#pragma GCC system_header

namespace cooperative_groups
{

template <class Group, class T> inline void memcpy_async(const Group &group, T *to, const T *from, size_t bytes)
{
    size_t share = (bytes + group.size() - 1) / group.size(), at = share * group.thread_rank();

    if (at < bytes) memcpy((char *)to + at, (const char *)from + at, bytes - at < share ? bytes - at : share);
}

/** Elements, as many as there are and there is room for. */
template <class Group, class T>
inline void memcpy_async(const Group &group, T *to, size_t room, const T *from, size_t count)
{
    memcpy_async(group, to, from, (room < count ? room : count) * sizeof(T));
}

template <class Group> inline void wait(const Group &group, KOLO_CUDA_HERE)
{
    group.sync(file, line);
}

template <unsigned Stages, class Group> inline void wait_prior(const Group &group, KOLO_CUDA_HERE)
{
    group.sync(file, line);
}

} // namespace cooperative_groups

#endif
