/* SPDX-License-Identifier: Apache-2.0 */
/**
 * mma.h - products of small matrices by a warp: nvcuda::wmma, shapes and types as on sm_80 and later.
 *
 * A fragment's element e = 32 i + lane, in rows, is x[i] of its lane. NVIDIA leaves the layout open, and keeps each half of a
 * matrix_a or matrix_b twice; programs that go by num_elements do not notice.
 * Sums:    exact products, added in order of k in float, double or int32; half accumulators are rounded once, at the end.
 * Threads: all lanes of a warp call together, as on a GPU.
 */
#ifndef KOLO_CUDA_MMA_H
#define KOLO_CUDA_MMA_H

#pragma GCC system_header

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace nvcuda
{
namespace wmma
{

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;

namespace precision
{
struct tf32;
} // namespace precision

enum layout_t { mem_row_major, mem_col_major };

} // namespace wmma
} // namespace nvcuda

namespace __kolo
{

namespace w = nvcuda::wmma;

/** The type in which a fragment keeps an element. */
template <class T> struct fragment_element {
    using type = T;
};
template <> struct fragment_element<w::precision::tf32> {
    using type = float;
};

template <class Use, int M, int N, int K> struct fragment_size {
    static constexpr int rows = std::is_same_v<Use, w::matrix_b> ? K : M;
    static constexpr int columns = std::is_same_v<Use, w::matrix_a> ? K : N;
};

/** Shapes that exist for elements of `T` in matrix_a and matrix_b. */
template <class T, int M, int N, int K> constexpr bool fragment_exists()
{
    constexpr bool by_16 = K == 16 && ((M == 16 && N == 16) || (M == 32 && N == 8) || (M == 8 && N == 32));

    if (std::is_same_v<T, w::precision::tf32>) return M == 16 && N == 16 && K == 8;
    if (std::is_same_v<T, double>) return M == 8 && N == 8 && K == 4;
    return by_16 && (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, signed char> ||
                     std::is_same_v<T, unsigned char>);
}

template <class T, int M, int N, int K> constexpr bool accumulator_exists()
{
    constexpr bool by_16 = fragment_exists<__half, M, N, K>();

    if (std::is_same_v<T, float>) return by_16 || fragment_exists<w::precision::tf32, M, N, K>();
    if (std::is_same_v<T, double>) return fragment_exists<double, M, N, K>();
    return by_16 && (std::is_same_v<T, __half> || std::is_same_v<T, int>);
}

/** Bits below tf32's mantissa of 10 are ignored by its product. */
inline float tf32_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    bits &= 0xffffe000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

template <class Sum, class T> inline Sum factor(const T &x)
{
    if constexpr (std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>)
        return (Sum)(float)x;
    else
        return (Sum)x;
}

/** int32 sums are kept in 64 bits, so that saturation sees the overflow. */
template <class T>
using sum_of =
    std::conditional_t<std::is_same_v<T, double>, double, std::conditional_t<std::is_same_v<T, int>, int64_t, float>>;

template <class T, class Sum> inline T result(Sum sum, bool saturate)
{
    if constexpr (std::is_same_v<T, int>) {
        if (!saturate) return (int)(uint32_t)(uint64_t)sum;
        return sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : (int)sum;
    } else {
        constexpr float most = std::is_same_v<T, __half> ? 65504.0f : std::numeric_limits<float>::max();

        if (saturate && std::is_same_v<Sum, float>)
            sum = std::isnan(sum) ? 0 : sum > most ? most : sum < -most ? -most : sum;
        return (T)sum;
    }
}

/** Where the lanes of a warp have their fragments: on the stack of lane 0, which multiplies for all. */
template <class D, class A, class B, class C> struct product {
    D *d[32];
    const A *a[32];
    const B *b[32];
    const C *c[32];

    template <class F> static auto at(const F *const *lanes, int row, int column)
    {
        int e = row * F::columns + column;

        return lanes[e % 32]->x[e / 32];
    }

    void multiply(bool saturate) const
    {
        using sum = sum_of<typename C::element_type>;
        constexpr int rows = A::rows, columns = B::columns, depth = A::columns;
        static_assert(rows == C::rows && columns == C::columns && depth == B::rows, "shapes of a product");
        sum left[rows][depth], right[depth][columns], out[rows][columns];

        for (int r = 0; r < rows; r++)
            for (int k = 0; k < depth; k++) left[r][k] = A::value(factor<sum>(at(a, r, k)));
        for (int k = 0; k < depth; k++)
            for (int n = 0; n < columns; n++) right[k][n] = B::value(factor<sum>(at(b, k, n)));
        for (int r = 0; r < rows; r++)
            for (int n = 0; n < columns; n++) out[r][n] = factor<sum>(at(c, r, n));
        for (int r = 0; r < rows; r++)
            for (int k = 0; k < depth; k++)
                for (int n = 0; n < columns; n++) out[r][n] += left[r][k] * right[k][n];
        for (int e = 0; e < rows * columns; e++)
            d[e % 32]->x[e / 32] = result<typename D::element_type>(out[e / columns][e % columns], saturate);
    }
};

} // namespace __kolo

namespace nvcuda
{
namespace wmma
{

template <class Use, int M, int N, int K, class T, class Layout = void> struct fragment {
    static constexpr bool sums = std::is_same_v<Use, accumulator>;
    static_assert(sums ? __kolo::accumulator_exists<T, M, N, K>() : __kolo::fragment_exists<T, M, N, K>(),
                  "wmma has no fragments of this shape and type");
    static_assert(sums == std::is_same_v<Layout, void>, "matrix_a and matrix_b have a layout, accumulators have none");

    using element_type = typename __kolo::fragment_element<T>::type;
    using storage_element_type = element_type;
    static constexpr int rows = __kolo::fragment_size<Use, M, N, K>::rows,
                         columns = __kolo::fragment_size<Use, M, N, K>::columns;
    static constexpr int num_elements = rows * columns / 32, num_storage_elements = num_elements;

    element_type x[num_elements];

    template <class V> static V value(V v)
    {
        if constexpr (std::is_same_v<T, precision::tf32>)
            return __kolo::tf32_of(v);
        else
            return v;
    }
};

static inline float __float_to_tf32(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if (std::isfinite(x)) bits += 0x1000u; /* ties go away from zero */
    memcpy(&x, &bits, sizeof x);
    return __kolo::tf32_of(x);
}

template <class Use, int M, int N, int K, class T, class Layout, class V>
static inline void fill_fragment(fragment<Use, M, N, K, T, Layout> &f, const V &v)
{
    for (auto &x : f.x) x = (typename fragment<Use, M, N, K, T, Layout>::element_type)v;
}

} // namespace wmma
} // namespace nvcuda

namespace __kolo
{

/** `move(element of the fragment, its place in memory)` for the elements of this lane. */
template <class F, class Move> inline void each_element(F &f, unsigned stride, bool by_columns, Move move)
{
    for (int i = 0; i < F::num_elements; i++) {
        unsigned e = (unsigned)i * 32 + lane(), row = e / F::columns, column = e % F::columns;

        move(f.x[i], by_columns ? (size_t)column * stride + row : (size_t)row * stride + column);
    }
}

} // namespace __kolo

namespace nvcuda
{
namespace wmma
{

template <class Use, int M, int N, int K, class T, class Layout>
static inline void load_matrix_sync(fragment<Use, M, N, K, T, Layout> &f,
                                    const typename fragment<Use, M, N, K, T, Layout>::element_type *from,
                                    unsigned stride, KOLO_CUDA_HERE)
{
    static_assert(!std::is_same_v<Use, accumulator>, "say in which layout an accumulator lies in memory");
    __syncwarp(0xffffffffu, file, line);
    __kolo::each_element(f, stride, std::is_same_v<Layout, col_major>, [&](auto &x, size_t at) { x = from[at]; });
}

template <int M, int N, int K, class T>
static inline void load_matrix_sync(fragment<accumulator, M, N, K, T> &f, const T *from, unsigned stride,
                                    layout_t layout, KOLO_CUDA_HERE)
{
    __syncwarp(0xffffffffu, file, line);
    __kolo::each_element(f, stride, layout == mem_col_major, [&](auto &x, size_t at) { x = from[at]; });
}

template <int M, int N, int K, class T>
static inline void store_matrix_sync(T *to, const fragment<accumulator, M, N, K, T> &f, unsigned stride,
                                     layout_t layout, KOLO_CUDA_HERE)
{
    __kolo::each_element(f, stride, layout == mem_col_major, [&](const auto &x, size_t at) { to[at] = x; });
    __syncwarp(0xffffffffu, file, line);
}

/** d = a b + c, where d may be c. */
template <int M, int N, int K, class D, class T, class LayoutA, class LayoutB, class C>
static inline void mma_sync(fragment<accumulator, M, N, K, D> &d, const fragment<matrix_a, M, N, K, T, LayoutA> &a,
                            const fragment<matrix_b, M, N, K, T, LayoutB> &b,
                            const fragment<accumulator, M, N, K, C> &c, bool satf = false, KOLO_CUDA_HERE)
{
    using product = __kolo::product<fragment<accumulator, M, N, K, D>, fragment<matrix_a, M, N, K, T, LayoutA>,
                                    fragment<matrix_b, M, N, K, T, LayoutB>, fragment<accumulator, M, N, K, C>>;
    product own, *all = (product *)__kolo::take_from(0xffffffffu, (uintptr_t)&own, 0, file, line);
    unsigned lane = __kolo::lane();

    all->d[lane] = &d;
    all->a[lane] = &a;
    all->b[lane] = &b;
    all->c[lane] = &c;
    __syncwarp(0xffffffffu, file, line);
    if (lane == 0) all->multiply(satf);
    __syncwarp(0xffffffffu, file, line);
}

} // namespace wmma
} // namespace nvcuda

#endif
