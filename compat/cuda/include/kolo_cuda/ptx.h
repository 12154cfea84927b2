/* SPDX-License-Identifier: Apache-2.0 */
/** ptx.h - functions for translated PTX: operands have the instruction's type, whatever the program's variables are. */
#ifndef KOLO_CUDA_PTX_H
#define KOLO_CUDA_PTX_H

#pragma GCC system_header

#include "access.h"
#include "atomic.h"

namespace __kolo
{
namespace ptx
{

/** The orders of instructions. */
enum {
    weak = -1,
    relaxed = __ATOMIC_RELAXED,
    acquire = __ATOMIC_ACQUIRE,
    release = __ATOMIC_RELEASE,
    acq_rel = __ATOMIC_ACQ_REL,
    seq_cst = __ATOMIC_SEQ_CST
};

/** A register holds bits: a value of the same size is copied, else converted. */
template <class D, class T> inline void put(D &to, T value)
{
    if constexpr (sizeof(D) == sizeof(T))
        memcpy((void *)&to, &value, sizeof value);
    else
        to = (D)value;
}

/** The type of the variable that holds an operand. */
template <class T> using variable = std::remove_cv_t<std::remove_reference_t<T>>;

template <class T, class S> inline T take(const S &from)
{
    if constexpr (std::is_same<T, bool>::value) {
        return from != 0;
    } else if constexpr (sizeof(S) == sizeof(T)) {
        T value;

        memcpy(&value, &from, sizeof value);
        return value;
    } else {
        return (T)from;
    }
}

template <class T, class A> inline T *global(A address, long offset)
{
    return (T *)((char *)(uintptr_t)address + offset);
}

/** An address in shared memory: 32 bits that cvta or __cvta_generic_to_shared gave, or a pointer. */
template <class T, class A> inline T *shared(A address, long offset)
{
    uint64_t bits = (uint64_t)(uintptr_t)address;

    return (T *)((bits >> 32 ? (char *)bits : (char *)__cvta_shared_to_generic(bits)) + offset);
}

template <class A> inline uint64_t to_shared(A address)
{
    return __cvta_generic_to_shared((const void *)(uintptr_t)address);
}

template <class A> inline uint64_t of_shared(A address)
{
    return (uint64_t)__cvta_shared_to_generic((size_t)address);
}

template <int Order, class T> inline T load(const T *p)
{
    word<T> bits = __atomic_load_n(reinterpret_cast<const word<T> *>(p), Order);

    patience();
    return take<T>(bits);
}

template <int Order, class T> inline void store(T *p, T value)
{
    __atomic_store_n(reinterpret_cast<word<T> *>(p), take<word<T>>(value), Order);
}

/** Several elements of a vector in one access of 2, 4 or 8 bytes. */
template <int Order, unsigned Bytes, class T> inline typename word_of_size<Bytes>::type load_word(const T *p)
{
    typedef typename word_of_size<Bytes>::type word;
    word bits = __atomic_load_n(reinterpret_cast<const word *>(p), Order == weak ? __ATOMIC_RELAXED : Order);

    if (Order != weak) patience();
    return bits;
}

template <class T, class W> inline T element(W word, unsigned n)
{
    T value;

    memcpy(&value, (const char *)&word + n * sizeof value, sizeof value);
    return value;
}

template <int Order, class T, class... V> inline void store_word(T *p, V... values)
{
    const T each[] = {(T)values...};
    typename word_of_size<sizeof each>::type bits;

    memcpy(&bits, each, sizeof bits);
    __atomic_store_n(reinterpret_cast<decltype(bits) *>(p), bits, Order);
}

template <class T> inline T fenced(T old)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* the operation before is a locked one: nothing passes it either */
    return old;
}

/* clang-format off */
template <class T> inline T atomic_add(T *p, T v) { return update(p, [v](T old) { return (T)(old + v); }); }
template <class T> inline T atomic_min(T *p, T v) { return update(p, [v](T old) { return v < old ? v : old; }); }
template <class T> inline T atomic_max(T *p, T v) { return update(p, [v](T old) { return v > old ? v : old; }); }
template <class T> inline T atomic_and(T *p, T v) { return update(p, [v](T old) { return (T)(old & v); }); }
template <class T> inline T atomic_or(T *p, T v) { return update(p, [v](T old) { return (T)(old | v); }); }
template <class T> inline T atomic_xor(T *p, T v) { return update(p, [v](T old) { return (T)(old ^ v); }); }
template <class T> inline T atomic_inc(T *p, T v) { return update(p, [v](T old) { return (T)(old >= v ? 0 : old + 1); }); }
template <class T> inline T atomic_dec(T *p, T v) { return update(p, [v](T old) { return (T)(old == 0 || old > v ? v : old - 1); }); }
template <class T> inline T atomic_exch(T *p, T v) { return exchange(p, v); }
template <class T> inline T atomic_cas(T *p, T expected, T v) { return compare_and_swap(p, expected, v); }
/* clang-format on */

/** cp.async: `valid` bytes, and zeros up to `bytes`. Done when it returns. */
inline void copy(char *to, const char *from, uint32_t bytes, uint32_t valid)
{
    memcpy(to, from, valid < bytes ? valid : bytes);
    if (valid < bytes) memset(to + valid, 0, bytes - valid);
}

} // namespace ptx
} // namespace __kolo

#include "multimem.h"
#include "ptx_arithmetic.h"
#include "ptx_lanes.h"

#endif
