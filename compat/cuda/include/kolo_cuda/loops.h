/* SPDX-License-Identifier: Apache-2.0 */
/** loops.h - kernels whose code between barriers is a loop over the threads of a block. For kolo-nvcc's output only. */
#ifndef KOLO_CUDA_LOOPS_H
#define KOLO_CUDA_LOOPS_H

#pragma GCC system_header

#include "abi.h"
#include "atomic.h"
#include "warps.h"

#include <type_traits>

namespace __kolo
{

/** A variable of each thread that is needed behind a barrier. */
template <class T> struct kept {
    using type = std::remove_const_t<T>;
    using element = std::remove_all_extents_t<type>;

    static_assert(std::is_trivially_copyable<element>::value && std::is_trivially_destructible<element>::value,
                  "a variable that bytes alone do not hold stays with fibres");

    type *const at;

    explicit kept(unsigned threads) : at(static_cast<type *>(__koloKeep(threads * sizeof(type))))
    {
    }
    ~kept()
    {
        __koloDrop(at);
    }
    kept(const kept &) = delete;
    kept &operator=(const kept &) = delete;
};

template <class T> inline void keep(T &to, const T &from)
{
    if constexpr (std::is_array<T>::value || !std::is_trivially_copy_assignable<T>::value)
        __builtin_memcpy((void *)&to, (const void *)&from, sizeof to);
    else
        to = from;
}

/** A variable of each lane of a warp; of a class without a default it is bytes. */
template <class T> struct bytes_of_lanes {
    using type = std::remove_const_t<T>;

    alignas(type) unsigned char room[32 * sizeof(type)];
    type *const at = reinterpret_cast<type *>(room);

    static_assert(std::is_trivially_copyable<std::remove_all_extents_t<type>>::value &&
                      std::is_trivially_destructible<std::remove_all_extents_t<type>>::value,
                  "a variable that bytes alone do not hold stays with fibres");
};
template <class T>
using narrow = std::conditional_t<std::is_trivially_default_constructible<std::remove_const_t<T>>::value,
                                  lanes<std::remove_const_t<T>>, bytes_of_lanes<T>>;

/** The values of a warp in its variables' arrays: of its own, or of all threads. */
template <class T> inline const lanes<T> &lanes_of(const lanes<T> &of_warp)
{
    return of_warp;
}
template <class T> inline const lanes<std::remove_const_t<T>> &lanes_of(const bytes_of_lanes<T> &of_warp)
{
    return *reinterpret_cast<const lanes<std::remove_const_t<T>> *>(of_warp.room);
}
template <class T> inline const lanes<std::remove_const_t<T>> &lanes_of(const kept<T> &of_threads, long base)
{
    return *reinterpret_cast<const lanes<std::remove_const_t<T>> *>(of_threads.at + base);
}

/** Has `x[i]` of the type nothing that lies in x itself? */
template <class T>
constexpr bool points =
    !std::is_array<std::remove_reference_t<T>>::value && !std::is_class<std::remove_reference_t<T>>::value;

/** The threads that have returned. */
struct gone_threads : kept<unsigned char> {
    unsigned live;

    explicit gone_threads(unsigned threads) : kept(threads), live(threads)
    {
        __builtin_memset(at, 0, threads);
    }
    void note(long thread)
    {
        at[thread] = 1;
        live--;
    }
    bool all() const
    {
        return !live;
    }
    /** The lanes of the warp from thread `base` on that have not returned. */
    unsigned living(long base) const
    {
        unsigned lanes = 0;

        for (unsigned i = 0; i < 32; i++) lanes |= (unsigned)!at[base + i] << i;
        return lanes;
    }
};

/** Threads [first, end) of a row of n. */
struct range {
    unsigned first, end;
};

template <class B> constexpr bool is_number = std::is_integral<B>::value || std::is_enum<B>::value;

/** How many of 0, 1, ..., n - 1, as numbers of type T, are below a bound: the comparison is C++'s, which may convert. */
template <class T, class B> inline unsigned count_below(unsigned n, B bound)
{
    using C = decltype(T() + bound);

    if constexpr (is_number<B>) {
        const C limit = (C)bound;

        return limit <= (C)0 ? 0 : limit >= (C)n ? n : (unsigned)limit;
    } else {
        unsigned x = 0;

        while (x < n && (T)x < bound) x++;
        return x;
    }
}

template <class T, class B> inline unsigned count_up_to(unsigned n, B bound)
{
    const unsigned below = count_below<T>(n, bound);

    return below < n && (T)below <= bound ? below + 1 : below;
}

template <class T, class B> inline range below(unsigned n, B bound)
{
    return {0, count_below<T>(n, bound)};
}
template <class T, class B> inline range up_to(unsigned n, B bound)
{
    return {0, count_up_to<T>(n, bound)};
}
template <class T, class B> inline range above(unsigned n, B bound)
{
    return {count_up_to<T>(n, bound), n};
}
template <class T, class B> inline range from(unsigned n, B bound)
{
    return {count_below<T>(n, bound), n};
}
template <class T, class B> inline range only(unsigned n, B bound)
{
    return {count_below<T>(n, bound), count_up_to<T>(n, bound)};
}

/** Of n threads, whose counters are first, first + 1, ...: the threads whose counter is below the bound, if the counter of the first is. */
template <bool Natural, class T, class B> inline range rest(unsigned n, T first, B bound)
{
    using C = decltype(first + bound);
    static_assert(is_number<B>, "a counter of integers ends at one");
    static_assert(Natural || std::is_signed<T>::value == std::is_signed<C>::value,
                  "a negative counter that is compared as a number without a sign");
    using U = std::make_unsigned_t<C>;
    const U left = (U)(C)bound - (U)(C)first;

    return {0, left < n ? (unsigned)left : n};
}

/** Atomics on shared memory: the threads of a block run one after the other, so that nothing comes between. */
namespace in_block
{

/** Through unsigned numbers, whose sums wrap around. */
template <class T, bool = std::is_integral<T>::value> struct wrapping {
    using type = T;
};
template <class T> struct wrapping<T, true> {
    using type = std::make_unsigned_t<T>;
};

template <class T> struct same {
    using type = T;
};
template <class T> using value = typename same<T>::type;

#define KOLO_CUDA_IN_BLOCK(name, expression)                                                                           \
    template <class T> inline T name(T *p, value<T> v)                                                                 \
    {                                                                                                                  \
        if constexpr (std::is_arithmetic<T>::value) {                                                                  \
            using U = typename wrapping<T>::type;                                                                      \
            const T old = *p;                                                                                          \
                                                                                                                       \
            *p = (T)(expression);                                                                                      \
            return old;                                                                                                \
        } else {                                                                                                       \
            return ::name(p, v);                                                                                       \
        }                                                                                                              \
    }
KOLO_CUDA_IN_BLOCK(atomicAdd, (U)((U)old + (U)v))
KOLO_CUDA_IN_BLOCK(atomicSub, (U)((U)old - (U)v))
KOLO_CUDA_IN_BLOCK(atomicMin, v < old ? v : old)
KOLO_CUDA_IN_BLOCK(atomicMax, v > old ? v : old)
KOLO_CUDA_IN_BLOCK(atomicExch, (U)v)
#undef KOLO_CUDA_IN_BLOCK

#define KOLO_CUDA_BITS_IN_BLOCK(name, sign)                                                                            \
    template <class T> inline T name(T *p, value<T> v)                                                                 \
    {                                                                                                                  \
        const T old = *p;                                                                                              \
                                                                                                                       \
        *p = old sign v;                                                                                               \
        return old;                                                                                                    \
    }
KOLO_CUDA_BITS_IN_BLOCK(atomicAnd, &)
KOLO_CUDA_BITS_IN_BLOCK(atomicOr, |)
KOLO_CUDA_BITS_IN_BLOCK(atomicXor, ^)
#undef KOLO_CUDA_BITS_IN_BLOCK

} // namespace in_block

} // namespace __kolo

#endif
