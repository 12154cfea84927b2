/* SPDX-License-Identifier: Apache-2.0 */
/** ptx_lanes.h - PTX for the lanes of a warp. `place` notes the caller's file and line, as in sync.h. */
#ifndef KOLO_CUDA_PTX_LANES_H
#define KOLO_CUDA_PTX_LANES_H

#pragma GCC system_header

#include "sync.h"

namespace __kolo
{
namespace ptx
{

/** The value of lane `source` if it is in the segment, else the own one; `inside` says which. Source: PTX ISA, shfl.sync. */
inline uint32_t shuffled(uint32_t value, unsigned source, bool inside, uint32_t lanes, bool &valid, const char *file,
                         int line)
{
    valid = inside;
    return take_from(lanes, value, inside ? source : lane(), file, line);
}

/* `clamp` has the last lane of a segment in its low bits, and in bits 8 to 12 the bits of a lane's number that name the segment. */
inline unsigned last_lane(uint32_t clamp)
{
    unsigned segment = clamp >> 8 & 31;

    return (lane() & segment) | (clamp & 31 & ~segment);
}

inline uint32_t shuffle_up(uint32_t value, uint32_t by, uint32_t clamp, uint32_t lanes, bool &valid, KOLO_CUDA_HERE)
{
    int source = (int)lane() - (int)(by & 31);

    return shuffled(value, (unsigned)source, source >= (int)last_lane(clamp), lanes, valid, file, line);
}

inline uint32_t shuffle_down(uint32_t value, uint32_t by, uint32_t clamp, uint32_t lanes, bool &valid, KOLO_CUDA_HERE)
{
    unsigned source = lane() + (by & 31);

    return shuffled(value, source, source <= last_lane(clamp), lanes, valid, file, line);
}

inline uint32_t shuffle_bfly(uint32_t value, uint32_t by, uint32_t clamp, uint32_t lanes, bool &valid, KOLO_CUDA_HERE)
{
    unsigned source = lane() ^ (by & 31);

    return shuffled(value, source, source <= last_lane(clamp), lanes, valid, file, line);
}

inline uint32_t shuffle_idx(uint32_t value, uint32_t index, uint32_t clamp, uint32_t lanes, bool &valid, KOLO_CUDA_HERE)
{
    unsigned segment = clamp >> 8 & 31, source = (lane() & segment) | (index & 31 & ~segment);

    return shuffled(value, source, source <= last_lane(clamp), lanes, valid, file, line);
}

template <class T> inline uint32_t match_any(T value, uint32_t lanes, bool &, KOLO_CUDA_HERE)
{
    return __match_any_sync(lanes, value, file, line);
}

template <class T> inline uint32_t match_all(T value, uint32_t lanes, bool &all, KOLO_CUDA_HERE)
{
    int equal;
    uint32_t result = __match_all_sync(lanes, value, &equal, file, line);

    all = equal != 0;
    return result;
}

/** The lowest lane that takes part, for all of them. */
inline uint32_t elect(uint32_t lanes, bool &elected, KOLO_CUDA_HERE)
{
    uint32_t first = (uint32_t)__builtin_ctz(present(lanes, file, line));

    elected = lane() == first;
    return first;
}

} // namespace ptx
} // namespace __kolo

#endif
