/* SPDX-License-Identifier: Apache-2.0 */
/* Real numbers to integers: saturated, 0 for NaN, towards zero; by casts and by functions that name the rounding. */
#include "check.h"

#include <climits>
#include <cmath>

struct converted {
    int c_style, by_static_cast, nearest, up, down;
    unsigned u, u_function;
    long long large, large_function;
    unsigned long long ull;
    short narrow;
    int of_double, initial, function, of_template;
};

template <class T> __device__ T convert_to(float x)
{
    T by_function = T(x), by_cast = (T)x;

    return by_function == by_cast ? static_cast<T>(x) : T();
}

__global__ void convert(const float *in, converted *out)
{
    int i = threadIdx.x;
    float x = in[i];
    converted *c = &out[i];

    c->c_style = (int)x;
    c->by_static_cast = static_cast<int>(in[i]) + 0;
    c->nearest = __float2int_rn(x);
    c->up = __float2int_ru(x);
    c->down = __float2int_rd(x);
    c->u = (unsigned int)x;
    c->u_function = __float2uint_rz(x);
    c->large = (long long)x;
    c->large_function = __float2ll_rz(x);
    c->ull = (unsigned long long)(x * 1.0f);
    c->narrow = (short)i;
    c->of_double = (int)(double)x;
    int initial = x, also = in[i] * 1.0f;
    c->initial = initial == also ? initial : 0;
    c->function = int(x) + 0;
    c->of_template = convert_to<int>(x);
}

/* The result of a call, cast to the type of a wrapper's parameter: void, an integer, a class. */
template <class R, class F> __device__ R call(F f)
{
    return static_cast<R>(f());
}

struct pair {
    int a, b;
};

__global__ void call_all(int *out)
{
    call<void>([out] { out[0] = 1; });
    call<void>([out] { return out[1] = 2; });
    out[2] = call<int>([out] { return (float)out[4] + 1e10f; });
    out[3] = call<pair>([] { return pair{3, 4}; }).b;
    call<int &>([out]() -> int & { return out[4]; }) = 5;
}

static void test_calls()
{
    int *out = managed<int>(5);

    call_all<<<1, 1>>>(out);
    DONE();
    EXPECT(out[0] == 1 && out[1] == 2 && out[2] == INT_MAX && out[3] == 4 && out[4] == 5);
    CUDA(cudaFree(out));
}

/* Declarations of several variables with signs that may belong to template arguments, which they do not. */
template <int A, int B> __host__ __device__ int difference(int x)
{
    return (A - B) * x;
}

__host__ __device__ long long declare(unsigned long long x, unsigned long long y)
{
    const unsigned long long a = x << 32, b = y;
    const unsigned long long c = x << 3, d = y >> 2;
    int e = x < y, f = y > (x), g = difference<7, (3 > 2)>(5), h = difference<1 << 4, 2>(2);
    long long sum = (unsigned)x < y, i = x < y >> 1, j = (int)difference<2, 1>(3);

    for (int n = x << 1, m = y >> 1; n < m && m > (n); n++) sum += n;
    return a + 3 * b + 5 * c + 7 * d + 11 * e + 13 * f + 17 * g + 19 * h + 23 * i + 29 * j + 31 * sum;
}

__global__ void declare_all(const int *in, long long *out)
{
    const int x = in[2 * threadIdx.x], y = in[2 * threadIdx.x + 1];
    const bool less = x < y, more = y > (x);

    __syncthreads();
    out[threadIdx.x] = less == more ? declare(x, y) : 0;
}

static void test_declarations()
{
    enum { PAIRS = 16 };
    int *in = managed<int>(2 * PAIRS);
    long long *out = managed<long long>(PAIRS);

    for (int i = 0; i < 2 * PAIRS; i++) in[i] = 5 + i * 37 % 41;
    declare_all<<<1, PAIRS>>>(in, out);
    DONE();
    for (int i = 0; i < PAIRS; i++) EXPECT(out[i] == declare(in[2 * i], in[2 * i + 1]));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

static void test(int)
{
    test_declarations();
    const float values[] = {2.5f, -2.5f, 3e9f, -3e9f, 1e30f, -1e30f, NAN, INFINITY, -INFINITY, 0.9f};
    const int n = sizeof values / sizeof values[0];
    test_calls();
    float *in = managed<float>(n);
    converted *c = managed<converted>(n);

    for (int i = 0; i < n; i++) in[i] = values[i];
    convert<<<1, n>>>(in, c);
    DONE();
    for (int i = 0; i < n; i++) {
        EXPECT(c[i].c_style == c[i].by_static_cast && c[i].narrow == i);
        EXPECT(c[i].of_double == (in[i] == in[i] ? c[i].c_style : INT_MIN));
        EXPECT(c[i].c_style == c[i].initial && c[i].c_style == c[i].function && c[i].c_style == c[i].of_template);
        EXPECT(c[i].u == c[i].u_function && c[i].large == c[i].large_function);
    }
    EXPECT(c[0].c_style == 2 && c[0].nearest == 2 && c[0].up == 3 && c[0].down == 2 && c[0].u == 2);
    EXPECT(c[1].c_style == -2 && c[1].nearest == -2 && c[1].up == -2 && c[1].down == -3 && c[1].u == 0);
    EXPECT(c[2].c_style == INT_MAX && c[2].u == 3000000000u && c[2].large == 3000000000ll && c[2].nearest == INT_MAX);
    EXPECT(c[3].c_style == INT_MIN && c[3].u == 0 && c[3].large == -3000000000ll);
    EXPECT(c[4].large == LLONG_MAX && c[4].ull == ULLONG_MAX && c[4].u == UINT_MAX);
    EXPECT(c[5].large == LLONG_MIN && c[5].ull == 0);
    EXPECT(c[6].c_style == 0 && c[6].u == 0 && c[6].nearest == 0);
    EXPECT(c[6].large == LLONG_MIN && c[6].ull == 1ull << 63); /* 64-bit types give the highest bit */
    EXPECT(c[7].c_style == INT_MAX && c[8].c_style == INT_MIN && c[9].c_style == 0 && c[9].up == 1);
    CUDA(cudaFree(in));
    CUDA(cudaFree(c));
}

int main()
{
    return on_all_devices(test);
}
