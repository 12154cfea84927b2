/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices by warps (mma.h): all shapes, types and layouts, sums of several steps, several warps of a block. */
#include "check.h"

#include <mma.h>

#include <type_traits>

using namespace nvcuda;

enum { STEPS = 3, WARPS = 4 };

/* The type of memory of a fragment's elements. */
template <class T> struct memory {
    using type = T;
};
template <> struct memory<wmma::precision::tf32> {
    using type = float;
};

/* The product of WARPS pairs of matrices, each of STEPS fragments along k, by a warp each; twice of it added to `c`. */
template <class T, class Sum, int M, int N, int K, class LayoutA, class LayoutB>
__global__ void multiply(const typename memory<T>::type *a, const typename memory<T>::type *b, Sum *c, wmma::layout_t layout)
{
    constexpr bool a_by_rows = std::is_same<LayoutA, wmma::row_major>::value, b_by_rows = std::is_same<LayoutB, wmma::row_major>::value;
    constexpr int depth = K * STEPS;
    int warp = threadIdx.x / 32;
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> left;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> right;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> sum, before;

    a += warp * M * depth;
    b += warp * depth * N;
    c += warp * M * N;
    wmma::fill_fragment(sum, (Sum)0.0f);
    for (int k = 0; k < depth; k += K) {
        wmma::load_matrix_sync(left, a + (a_by_rows ? k : k * M), a_by_rows ? depth : M);
        wmma::load_matrix_sync(right, b + (b_by_rows ? k * N : k), b_by_rows ? N : depth);
        wmma::mma_sync(sum, left, right, sum);
    }
    wmma::load_matrix_sync(before, c, layout == wmma::mem_row_major ? N : M, layout);
    for (int i = 0; i < sum.num_elements; i++) sum.x[i] = (Sum)((float)sum.x[i] * 2.0f + (float)before.x[i]);
    wmma::store_matrix_sync(c, sum, layout == wmma::mem_row_major ? N : M, layout);
}

/* Small numbers: all sums are exact in all types. */
static int number(int i)
{
    return i * 7 % 5 - (i % 3);
}

template <class T> static T as(int v)
{
    return (T)(float)(std::is_same<T, unsigned char>::value ? v + 2 : v);
}

template <class T, class Sum, int M, int N, int K, class LayoutA, class LayoutB> static void check_layouts(wmma::layout_t layout)
{
    using element = typename memory<T>::type;
    constexpr bool a_by_rows = std::is_same<LayoutA, wmma::row_major>::value, b_by_rows = std::is_same<LayoutB, wmma::row_major>::value;
    constexpr int depth = K * STEPS;
    element *a = managed<element>(WARPS * M * depth), *b = managed<element>(WARPS * depth * N);
    Sum *c = managed<Sum>(WARPS * M * N);

    for (int i = 0; i < WARPS * M * depth; i++) a[i] = as<element>(number(i));
    for (int i = 0; i < WARPS * depth * N; i++) b[i] = as<element>(number(i + 1));
    for (int i = 0; i < WARPS * M * N; i++) c[i] = (Sum)(float)(i % 11);
    multiply<T, Sum, M, N, K, LayoutA, LayoutB><<<1, 32 * WARPS>>>(a, b, c, layout);
    DONE();
    for (int w = 0; w < WARPS; w++)
        for (int m = 0; m < M; m++)
            for (int n = 0; n < N; n++) {
                int at = w * M * N + (layout == wmma::mem_row_major ? m * N + n : n * M + m), sum = 0;
                for (int k = 0; k < depth; k++)
                    sum += (int)(float)a[w * M * depth + (a_by_rows ? m * depth + k : k * M + m)] *
                           (int)(float)b[w * depth * N + (b_by_rows ? k * N + n : n * depth + k)];
                EXPECT((float)c[at] == (float)(2 * sum + at % 11));
            }
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
    CUDA(cudaFree(c));
}

/* Layouts and types do not depend on each other. */
static void check_all_layouts()
{
    check_layouts<__half, float, 16, 16, 16, wmma::row_major, wmma::row_major>(wmma::mem_row_major);
    check_layouts<__half, float, 32, 8, 16, wmma::row_major, wmma::col_major>(wmma::mem_col_major);
    check_layouts<__half, float, 8, 32, 16, wmma::col_major, wmma::row_major>(wmma::mem_row_major);
    check_layouts<__half, float, 16, 16, 16, wmma::col_major, wmma::col_major>(wmma::mem_col_major);
}

template <class T, class Sum, int M, int N, int K> static void check()
{
    check_layouts<T, Sum, M, N, K, wmma::row_major, wmma::col_major>(wmma::mem_row_major);
}

template <class T, class Sum> static void check_by_16()
{
    check<T, Sum, 16, 16, 16>();
    check<T, Sum, 32, 8, 16>();
    check<T, Sum, 8, 32, 16>();
}

/* int32 sums wrap around, or stay at the end of the range. */
__global__ void overflow(int *wrapped, int *saturated)
{
    wmma::fragment<wmma::matrix_a, 16, 16, 16, signed char, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, signed char, wmma::col_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, int> c, d;

    wmma::fill_fragment(a, (signed char)100);
    wmma::fill_fragment(b, (signed char)100);
    wmma::fill_fragment(c, 2147483647 - 1000);
    wmma::mma_sync(d, a, b, c);
    wmma::store_matrix_sync(wrapped, d, 16, wmma::mem_row_major);
    wmma::mma_sync(d, a, b, c, true);
    wmma::store_matrix_sync(saturated, d, 16, wmma::mem_row_major);
}

static void check_overflow()
{
    int *wrapped = managed<int>(256), *saturated = managed<int>(256);

    overflow<<<1, 32>>>(wrapped, saturated);
    DONE();
    for (int i = 0; i < 256; i++) EXPECT(wrapped[i] == (int)(2147483647u - 1000u + 160000u) && saturated[i] == 2147483647);
    CUDA(cudaFree(wrapped));
    CUDA(cudaFree(saturated));
}

/* tf32 has 10 bits of mantissa. */
__global__ void round_to_tf32(float *x)
{
    x[threadIdx.x] = wmma::__float_to_tf32(x[threadIdx.x]);
}

static void check_tf32()
{
    float *x = managed<float>(3);

    x[0] = 1 + 1 / 4096.0f; /* below the middle between two */
    x[1] = 1 + 3 / 4096.0f;
    x[2] = -3.25f;
    round_to_tf32<<<1, 3>>>(x);
    DONE();
    EXPECT(x[0] == 1 && x[1] == 1 + 1 / 1024.0f && x[2] == -3.25f);
    CUDA(cudaFree(x));
}

int main()
{
    return on_all_devices([](int) {
        check_all_layouts();
        check_by_16<__half, __half>();
        check<__nv_bfloat16, float, 32, 8, 16>();
        check_by_16<signed char, int>();
        check<unsigned char, int, 16, 16, 16>();
        check<wmma::precision::tf32, float, 16, 16, 8>();
        check<double, double, 8, 8, 4>();
        check_overflow();
        check_tf32();
    });
}
