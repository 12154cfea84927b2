/* SPDX-License-Identifier: Apache-2.0 */
/**
 * warp_moves.h - the values of a whole warp, moved by a power of two of lanes: sixteen bytes at a time.
 *
 * As loops compilers make them copies of arrays by `rep movs`, and loads that span two stores, which wait for both.
 */
#ifndef KOLO_CUDA_WARP_MOVES_H
#define KOLO_CUDA_WARP_MOVES_H

#pragma GCC system_header

#include <cstring>
#include <type_traits>

namespace __kolo
{

/** A value of each lane of a warp. */
template <class T> struct lanes {
    T at[32];
};

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define KOLO_CUDA_MOVES
#endif
#endif

#ifdef KOLO_CUDA_MOVES

/** The lanes in vectors of sixteen bytes; `words` of them in each. */
template <class T> struct vectors {
    using word = std::conditional_t<sizeof(T) == 4, int, long long>;
    typedef word vector __attribute__((vector_size(16)));

    static constexpr bool fit = (sizeof(T) == 4 || sizeof(T) == 8) && std::is_trivially_copyable<T>::value;
    static constexpr int words = 16 / (int)sizeof(word), count = 32 / words;

    static vector get(const lanes<T> &from, int k)
    {
        vector v;

        __builtin_memcpy((void *)&v, (const void *)&from.at[k * words], sizeof v);
        return v;
    }
    static void put(lanes<T> &to, int k, vector v)
    {
        __builtin_memcpy((void *)&to.at[k * words], (const void *)&v, sizeof v);
    }
};

/** Vector k of the result of each move; By lanes, fewer than there are in a vector. */
template <class T, int By>
inline auto below(const lanes<T> &from, int k) /* down: lane i has lane i + By's, the last ones their own */
{
    using V = vectors<T>;
    const bool last = k + 1 == V::count;
    const auto a = V::get(from, k), b = V::get(from, last ? k : k + 1);

    if constexpr (V::words == 2)
        return last ? __builtin_shufflevector(a, a, 1, 1) : __builtin_shufflevector(a, b, 1, 2);
    else if constexpr (By == 1)
        return last ? __builtin_shufflevector(a, a, 1, 2, 3, 3) : __builtin_shufflevector(a, b, 1, 2, 3, 4);
    else
        return last ? __builtin_shufflevector(a, a, 2, 3, 2, 3) : __builtin_shufflevector(a, b, 2, 3, 4, 5);
}
template <class T, int By>
inline auto behind(const lanes<T> &from, int k) /* up: lane i has lane i - By's, the first ones their own */
{
    using V = vectors<T>;
    const auto b = V::get(from, k), a = V::get(from, k ? k - 1 : k);

    if constexpr (V::words == 2)
        return k ? __builtin_shufflevector(a, b, 1, 2) : __builtin_shufflevector(b, b, 0, 0);
    else if constexpr (By == 1)
        return k ? __builtin_shufflevector(a, b, 3, 4, 5, 6) : __builtin_shufflevector(b, b, 0, 0, 1, 2);
    else
        return k ? __builtin_shufflevector(a, b, 2, 3, 4, 5) : __builtin_shufflevector(b, b, 0, 1, 0, 1);
}
template <class T, int By> inline auto beside(const lanes<T> &from, int k) /* xor */
{
    using V = vectors<T>;
    const auto a = V::get(from, k);

    if constexpr (V::words == 2)
        return __builtin_shufflevector(a, a, 1, 0);
    else if constexpr (By == 1)
        return __builtin_shufflevector(a, a, 1, 0, 3, 2);
    else
        return __builtin_shufflevector(a, a, 2, 3, 0, 1);
}

enum move { DOWN, UP, BESIDE };

template <move Kind, int By, class T> inline void move_by(const lanes<T> &from, lanes<T> &to)
{
    using V = vectors<T>;

#pragma GCC unroll 16
    for (int k = 0; k < V::count; k++) {
        if constexpr (By >= V::words) {
            constexpr int by = By / V::words;
            const int other = Kind == DOWN ? k + by : Kind == UP ? k - by : k ^ by;

            V::put(to, k, V::get(from, other < 0 || other >= V::count ? k : other));
        } else if constexpr (Kind == DOWN) {
            V::put(to, k, below<T, By>(from, k));
        } else if constexpr (Kind == UP) {
            V::put(to, k, behind<T, By>(from, k));
        } else {
            V::put(to, k, beside<T, By>(from, k));
        }
    }
}

/** False: it is not one of these moves. */
template <move Kind, class T> inline bool move_quickly(const lanes<T> &from, unsigned by, lanes<T> &to)
{
    if constexpr (vectors<T>::fit) {
        switch (by) {
        case 1:
            move_by<Kind, 1>(from, to);
            return true;
        case 2:
            move_by<Kind, 2>(from, to);
            return true;
        case 4:
            move_by<Kind, 4>(from, to);
            return true;
        case 8:
            move_by<Kind, 8>(from, to);
            return true;
        case 16:
            move_by<Kind, 16>(from, to);
            return true;
        }
    }
    return false;
}

#else

enum move { DOWN, UP, BESIDE };
template <move Kind, class T> inline bool move_quickly(const lanes<T> &, unsigned, lanes<T> &)
{
    return false;
}

#endif

/** Lane i has the value of lane i + by (DOWN), i - by (UP), or i ^ by; its own if there is no such lane. With one variable to return it lies
 * where the caller needs it. */
template <move Kind, class T> inline lanes<T> moved(const lanes<T> &from, unsigned by)
{
    lanes<T> result;

    if (!move_quickly<Kind>(from, by, result))
        for (unsigned i = 0; i < 32; i++) {
            const unsigned other = Kind == DOWN ? i + by : Kind == UP ? i - by : i ^ by;

            result.at[i] = from.at[other < 32 ? other : i];
        }
    return result;
}

} // namespace __kolo

#endif
