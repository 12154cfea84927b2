/* SPDX-License-Identifier: Apache-2.0 */
/**
 * atomic.h - atomicAdd and its kin: relaxed, each giving the old value, in three scopes that are one here.
 *
 * A thread that polls in a loop yields from time to time.
 */
#ifndef KOLO_CUDA_ATOMIC_H
#define KOLO_CUDA_ATOMIC_H

#pragma GCC system_header

#include "sync.h"

namespace __kolo
{

template <size_t Bytes> struct word_of_size;
template <> struct word_of_size<1> {
    using type = uint8_t;
};
template <> struct word_of_size<2> {
    using type = uint16_t;
};
template <> struct word_of_size<4> {
    using type = uint32_t;
};
template <> struct word_of_size<8> {
    using type = uint64_t;
};
template <class T> using word = typename word_of_size<sizeof(T)>::type;

template <class T> inline T load_relaxed(const T *p)
{
    word<T> bits = __atomic_load_n(reinterpret_cast<const word<T> *>(p), __ATOMIC_RELAXED);
    T value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

/** old = *p; *p = change(old), at once. */
template <class T, class Change> inline T update(T *p, Change change)
{
    word<T> *at = reinterpret_cast<word<T> *>(p), before = __atomic_load_n(at, __ATOMIC_RELAXED), after;
    T old, made;

    do {
        memcpy(&old, &before, sizeof old);
        made = change(old);
        memcpy(&after, &made, sizeof after);
    } while (!__atomic_compare_exchange_n(at, &before, after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    patience();
    return old;
}

template <class T> inline T exchange(T *p, T value)
{
    word<T> bits, old;

    memcpy(&bits, &value, sizeof bits);
    old = __atomic_exchange_n(reinterpret_cast<word<T> *>(p), bits, __ATOMIC_RELAXED);
    memcpy(&value, &old, sizeof value);
    patience();
    return value;
}

template <class T> inline T compare_and_swap(T *p, T expected, T value)
{
    word<T> bits, old;

    memcpy(&bits, &value, sizeof bits);
    memcpy(&old, &expected, sizeof old);
    (void)__atomic_compare_exchange_n(reinterpret_cast<word<T> *>(p), &old, bits, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
    memcpy(&value, &old, sizeof value);
    patience();
    return value;
}

template <class T> inline T add_integer(T *p, T value)
{
    T old = __atomic_fetch_add(p, value, __ATOMIC_RELAXED);

    patience();
    return old;
}

template <class T> inline T add_real(T *p, T value)
{
    return update(p, [value](T old) { return (T)(old + value); });
}

} // namespace __kolo

/* clang-format off */
/* A function in its three scopes. */
#define KOLO_CUDA_ATOMIC(name, type, parameters, ...)                                                                                      \
    static inline type name parameters { __VA_ARGS__; }                                                                                    \
    static inline type name##_block parameters { __VA_ARGS__; }                                                                            \
    static inline type name##_system parameters { __VA_ARGS__; }
#define KOLO_CUDA_ATOMIC1(name, type, ...) KOLO_CUDA_ATOMIC(name, type, (type *p, type v), __VA_ARGS__)

#define KOLO_CUDA_ATOMIC_BITS(type)                                                                                                        \
    KOLO_CUDA_ATOMIC1(atomicAnd, type, type old = __atomic_fetch_and(p, v, __ATOMIC_RELAXED); __kolo::patience(); return old)              \
    KOLO_CUDA_ATOMIC1(atomicOr, type, type old = __atomic_fetch_or(p, v, __ATOMIC_RELAXED); __kolo::patience(); return old)                \
    KOLO_CUDA_ATOMIC1(atomicXor, type, type old = __atomic_fetch_xor(p, v, __ATOMIC_RELAXED); __kolo::patience(); return old)
#define KOLO_CUDA_ATOMIC_ORDER(type)                                                                                                       \
    KOLO_CUDA_ATOMIC1(atomicMin, type, return __kolo::update(p, [v](type old) { return v < old ? v : old; }))                              \
    KOLO_CUDA_ATOMIC1(atomicMax, type, return __kolo::update(p, [v](type old) { return v > old ? v : old; }))
#define KOLO_CUDA_ATOMIC_SWAP(type)                                                                                                        \
    KOLO_CUDA_ATOMIC(atomicCAS, type, (type *p, type expected, type v), return __kolo::compare_and_swap(p, expected, v))

KOLO_CUDA_ATOMIC1(atomicAdd, int, return __kolo::add_integer(p, v))
KOLO_CUDA_ATOMIC1(atomicAdd, unsigned, return __kolo::add_integer(p, v))
KOLO_CUDA_ATOMIC1(atomicAdd, unsigned long long, return __kolo::add_integer(p, v))
KOLO_CUDA_ATOMIC1(atomicAdd, float, return __kolo::add_real(p, v))
KOLO_CUDA_ATOMIC1(atomicAdd, double, return __kolo::add_real(p, v))
KOLO_CUDA_ATOMIC1(atomicSub, int, return __kolo::add_integer(p, (int)(0u - (unsigned)v)))
KOLO_CUDA_ATOMIC1(atomicSub, unsigned, return __kolo::add_integer(p, 0u - v))
KOLO_CUDA_ATOMIC1(atomicExch, int, return __kolo::exchange(p, v))
KOLO_CUDA_ATOMIC1(atomicExch, unsigned, return __kolo::exchange(p, v))
KOLO_CUDA_ATOMIC1(atomicExch, unsigned long long, return __kolo::exchange(p, v))
KOLO_CUDA_ATOMIC1(atomicExch, float, return __kolo::exchange(p, v))
KOLO_CUDA_ATOMIC_ORDER(int)
KOLO_CUDA_ATOMIC_ORDER(unsigned)
KOLO_CUDA_ATOMIC_ORDER(long long)
KOLO_CUDA_ATOMIC_ORDER(unsigned long long)
KOLO_CUDA_ATOMIC1(atomicInc, unsigned, return __kolo::update(p, [v](unsigned old) { return old >= v ? 0 : old + 1; }))
KOLO_CUDA_ATOMIC1(atomicDec, unsigned, return __kolo::update(p, [v](unsigned old) { return old == 0 || old > v ? v : old - 1; }))
KOLO_CUDA_ATOMIC_SWAP(int)
KOLO_CUDA_ATOMIC_SWAP(unsigned)
KOLO_CUDA_ATOMIC_SWAP(unsigned long long)
KOLO_CUDA_ATOMIC_SWAP(unsigned short)
KOLO_CUDA_ATOMIC_BITS(int)
KOLO_CUDA_ATOMIC_BITS(unsigned)
KOLO_CUDA_ATOMIC_BITS(unsigned long long)

/* Each element by itself, as on devices. */
KOLO_CUDA_ATOMIC1(atomicAdd, float2, return make_float2(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)))
KOLO_CUDA_ATOMIC1(atomicAdd, float4, return make_float4(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w)))

#undef KOLO_CUDA_ATOMIC_SWAP
#undef KOLO_CUDA_ATOMIC_ORDER
#undef KOLO_CUDA_ATOMIC_BITS
/* clang-format on */

#endif
