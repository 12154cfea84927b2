/* SPDX-License-Identifier: Apache-2.0 */
/**
 * multimem.h - instructions on multicast objects, as loops over the copies, in the order of the devices' ordinals.
 *
 * Source of the meanings: PTX ISA, multimem. It leaves the order of a sum open; without .acc::f32 each addition here rounds to
 * the type, and numbers of 8 bits are added as float, or, with .acc::f16, as half.
 */
#ifndef KOLO_CUDA_MULTIMEM_H
#define KOLO_CUDA_MULTIMEM_H

#pragma GCC system_header

#include "atomic.h"
#include "small_float.h"

namespace __kolo
{
namespace multimem
{

/* ---- types: `bits` is an element as registers and memory hold it ---- */

template <class T> struct plain {
    using bits = T;

    static T add(T a, T b)
    {
        if constexpr (std::is_floating_point<T>::value)
            return a + b;
        else
            return (T)((std::make_unsigned_t<T>)a + (std::make_unsigned_t<T>)b);
    }
    static T least(T a, T b)
    {
        return b < a ? b : a;
    }
    static T greatest(T a, T b)
    {
        return b > a ? b : a;
    }
};

/** Several numbers of a format in one element. */
template <class F, class Code, unsigned N> struct small {
    using format = F;
    using code = Code;
    using bits = typename word_of_size<N * sizeof(Code)>::type;
    static constexpr unsigned lanes = N;

    static Code lane(bits b, unsigned n)
    {
        return (Code)(b >> 8 * sizeof(Code) * n);
    }

    /** change(lane of a, lane of b) for each lane. */
    template <class Change> static bits each(bits a, bits b, Change change)
    {
        bits result = 0;

        for (unsigned n = 0; n < N; n++)
            result = (bits)(result | (bits)change(lane(a, n), lane(b, n)) << 8 * sizeof(Code) * n);
        return result;
    }

    static bits add(bits a, bits b)
    {
        return each(a, b, [](Code x, Code y) { return F::nearest(F::decode(x) + F::decode(y)); });
    }

    /* NaN loses against a number; -0 is less than 0. */
    static Code before(Code x, Code y, bool less)
    {
        const float a = F::decode(x), b = F::decode(y);
        const Code sign = (Code)((Code)1 << (8 * sizeof(Code) - 1));

        if (a != a) return b != b ? F::nearest(a) : y;
        if (b != b) return x;
        if (a == b) return ((x & sign) != 0) == less ? x : y;
        return (a < b) == less ? x : y;
    }

    static bits least(bits a, bits b)
    {
        return each(a, b, [](Code x, Code y) { return before(x, y, true); });
    }
    static bits greatest(bits a, bits b)
    {
        return each(a, b, [](Code x, Code y) { return before(x, y, false); });
    }
};

using f16 = small<half_format, uint16_t, 1>;
using f16x2 = small<half_format, uint16_t, 2>;
using bf16 = small<bfloat16_format, uint16_t, 1>;
using bf16x2 = small<bfloat16_format, uint16_t, 2>;
using e4m3 = small<e4m3_format, uint8_t, 1>;
using e4m3x2 = small<e4m3_format, uint8_t, 2>;
using e4m3x4 = small<e4m3_format, uint8_t, 4>;
using e5m2 = small<e5m2_format, uint8_t, 1>;
using e5m2x2 = small<e5m2_format, uint8_t, 2>;
using e5m2x4 = small<e5m2_format, uint8_t, 4>;

/* ---- operations: first() of one copy, next() with each other one, last() is the result ---- */

#define KOLO_MULTIMEM_OPERATION(name, ...)                                                                             \
    template <class T> struct name {                                                                                   \
        using bits = typename T::bits;                                                                                 \
        static bits first(bits a)                                                                                      \
        {                                                                                                              \
            return a;                                                                                                  \
        }                                                                                                              \
        static bits next(bits a, bits b)                                                                               \
        {                                                                                                              \
            return __VA_ARGS__;                                                                                        \
        }                                                                                                              \
        static bits last(bits a)                                                                                       \
        {                                                                                                              \
            return a;                                                                                                  \
        }                                                                                                              \
    };
KOLO_MULTIMEM_OPERATION(add, T::add(a, b))
KOLO_MULTIMEM_OPERATION(min, T::least(a, b))
KOLO_MULTIMEM_OPERATION(max, T::greatest(a, b))
KOLO_MULTIMEM_OPERATION(and_, (bits)(a &b))
KOLO_MULTIMEM_OPERATION(or_, (bits)(a | b))
KOLO_MULTIMEM_OPERATION(xor_, (bits)(a ^ b))
#undef KOLO_MULTIMEM_OPERATION

inline float as_float(float x)
{
    return x;
}

inline float as_half(float x)
{
    return half_format::decode(half_format::nearest(x));
}

/** Sums in another precision, rounded to the type once. */
template <class T, float (*Round)(float)> struct add_as {
    using bits = typename T::bits;
    struct sums {
        float lane[T::lanes];
    };

    static sums first(bits a)
    {
        sums s;

        for (unsigned n = 0; n < T::lanes; n++) s.lane[n] = T::format::decode(T::lane(a, n));
        return s;
    }
    static sums next(sums s, bits b)
    {
        for (unsigned n = 0; n < T::lanes; n++) s.lane[n] = Round(s.lane[n] + T::format::decode(T::lane(b, n)));
        return s;
    }
    static bits last(sums s)
    {
        bits result = 0;

        for (unsigned n = 0; n < T::lanes; n++)
            result = (bits)(result | (bits)T::format::nearest(s.lane[n]) << 8 * sizeof(typename T::code) * n);
        return result;
    }
};
template <class T> using add_f32 = add_as<T, as_float>;
template <class T> using add_f16 = add_as<T, as_half>;

/* ---- copies ---- */

struct copies {
    char *first;
    size_t stride;
    unsigned count;

    copies(uint64_t address, long offset, size_t bytes)
    {
        first = __koloMulticast((const void *)(uintptr_t)(address + (uint64_t)offset), bytes, &count, &stride);
    }
};

/** All elements of one copy, by words of up to 8 bytes. */
template <int Order, class B, unsigned N> inline void read(const char *from, B (&to)[N])
{
    constexpr size_t step = sizeof to < 8 ? sizeof to : 8;
    using word = typename word_of_size<step>::type;

    for (size_t at = 0; at < sizeof to; at += step) {
        word w = __atomic_load_n((const word *)(from + at), Order);

        memcpy((char *)to + at, &w, step);
    }
}

template <int Order, class B, unsigned N> inline void write(char *to, const B (&from)[N])
{
    constexpr size_t step = sizeof from < 8 ? sizeof from : 8;
    using word = typename word_of_size<step>::type;

    for (size_t at = 0; at < sizeof from; at += step) {
        word w;

        memcpy(&w, (const char *)from + at, step);
        __atomic_store_n((word *)(to + at), w, Order);
    }
}

/* ---- instructions ---- */

/** multimem.ld_reduce */
template <int Order, class Operation, unsigned N>
inline void load(const copies &c, typename Operation::bits (&result)[N])
{
    typename Operation::bits each[N];
    decltype(Operation::first(each[0])) sum[N];

    read<Order>(c.first, each);
    for (unsigned n = 0; n < N; n++) sum[n] = Operation::first(each[n]);
    for (unsigned d = 1; d < c.count; d++) {
        read<Order>(c.first + d * c.stride, each);
        for (unsigned n = 0; n < N; n++) sum[n] = Operation::next(sum[n], each[n]);
    }
    for (unsigned n = 0; n < N; n++) result[n] = Operation::last(sum[n]);
    patience();
}

/** multimem.st */
template <int Order, class B, unsigned N> inline void store(const copies &c, const B (&value)[N])
{
    for (unsigned d = 0; d < c.count; d++) write<Order>(c.first + d * c.stride, value);
}

/** multimem.red: each element of each copy at once. */
template <int Order, class Operation, unsigned N>
inline void reduce(const copies &c, const typename Operation::bits (&value)[N])
{
    using bits = typename Operation::bits;

    if (Order != __ATOMIC_RELAXED) __atomic_thread_fence(Order);
    for (unsigned d = 0; d < c.count; d++)
        for (unsigned n = 0; n < N; n++) {
            const bits by = value[n];

            update((bits *)(c.first + d * c.stride) + n, [by](bits old) { return Operation::next(old, by); });
        }
}

} // namespace multimem
} // namespace __kolo

#endif
