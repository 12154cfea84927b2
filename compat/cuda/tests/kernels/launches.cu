/* SPDX-License-Identifier: Apache-2.0 */
/* Launches in every shape that programs write them in; similar text that is no launch stays. */
#include "check.h"
#include "launches.cuh"

#include <string>
#include <utility>

/* kernel<<<1, 1>>>(nothing) in a comment */
static const char *text = "kernel<<<1, 1>>>(p)";
static const char *raw = R"(kernel<<<1, "1">>>(p))";
static const int separated = 1'000'000;

__global__ void set(int *p, int value)
{
    p[threadIdx.x + blockIdx.x * blockDim.x] = value;
}

__global__ void with_default(int *p, int value = 41);
__global__ void with_default(int *p, int value)
{
    *p = value;
}

__global__ void unnamed(int *p, int, float, const char *)
{
    *p = 5;
}

__global__ void nothing(void)
{
}

void __global__ other_order(int *p)
{
    *p = 6;
}

extern "C" __global__ void with_c_name(int *p)
{
    *p = 7;
}

static __global__ void __launch_bounds__(64, 2) bounded(int *__restrict__ p, const int *const q)
{
    *p = q ? 1 : 8;
}

__global__ void overloaded(int *p)
{
    *p = 9;
}

__global__ void overloaded(int *p, double)
{
    *p = 10;
}

template <typename T, int N, bool = (N > 3)> __global__ void with_arguments(T *p)
{
    *p = (T)N;
}

template <> __global__ void with_arguments<float, 3, false>(float *p)
{
    *p = 33;
}

template <typename T> __global__ void deduced(T *p, T value)
{
    *p = value;
}

template <typename... A> __global__ void pack(int *p, A... values)
{
    *p = (0 + ... + (int)values);
}

template <template <typename> class W, typename T> __global__ void with_template(T *p, W<T> w)
{
    *p = w.value;
}

template <typename T> struct wrapped {
    T value;
};

template <int A, int B> struct extents {
    static constexpr int n = A + B;
};

template <class T, class> struct first_of {
    using type = T;
};

template <typename T, typename std::enable_if<(sizeof(T) > 1), int>::type = 0> __global__ void constrained(T *p)
{
    *p = sizeof(T);
}

namespace outer
{
namespace
{
__global__ void hidden(int *p)
{
    *p = 11;
}
} // namespace
namespace inner
{
__global__ void nested(int *p)
{
    *p = 12;
}
} // namespace inner
} // namespace outer

struct large {
    int at[300];
};

__global__ void by_value(int *p, const large l)
{
    *p = l.at[299];
}

template <class F> __global__ void call(F f, int n)
{
    int i = threadIdx.x;

    if (i < n) f(i);
}

typedef void (*kernel_type)(int *, int);

static int evaluated;

static int counted(int value)
{
    evaluated++;
    return value;
}

#define SETS(p, v)                                                                                                                         \
    do {                                                                                                                                   \
        set<<<1,                                                                                                                           \
              1>>>(p, v);                                                                                                                  \
    } while (0)

struct launcher {
    int *p;

    void go(int value) const
    {
        set<<<1, 1, 0, cudaStream_t(0)>>>(p, value);
    }
    template <int N> void go_with() const
    {
        with_arguments<int, N><<<1, 1>>>(p);
    }
};

template <typename T> void launch_from_template(T *p)
{
    deduced<T><<<1, 1>>>(p, T(13));
}

static int expect(int *p, int value)
{
    DONE();
    if (*p != value) std::fprintf(stderr, "%d instead of %d\n", *p, value);
    EXPECT(*p == value);
    *p = -1;
    return 0;
}

/* The text between the brackets. */
static void configurations(int *p)
{
    int n = 64;
    dim3 grid(1), block(1, 1);

    EXPECT(std::string(text) == "kernel<<<1, 1>>>(p)" && raw[8] == '<' && separated == 1000000);
    set<<<1, 1>>>(p, 1), expect(p, 1);
    set<<<grid, block>>>(p, 2), expect(p, 2);
    set<<<dim3{1, 1, 1}, {1, 1, 1}>>>(p, 3), expect(p, 3);
    set <<<n>>1, n / n, 0, 0>>> (p, 4), expect(p, 4);
    set<<<extents<1, extents<2, 3>::n>::n, 1>>>(p, 5), expect(p, 5);
    set<<<first_of<int, first_of<int, wrapped<wrapped<int>>>>::type(1), 1>>>(p, 6), expect(p, 6);
    set<<<(n > 3 ? 1 : 2), n > 3 ? 1 : 2>>>(p, 7), expect(p, 7);
    set<<<[] { return 1; }(), [&](int a) { return a > 0 ? 1 : 2; }(n)>>>(p, 8), expect(p, 8);
}

/* The text before them. */
static void plain_kernels(int *p)
{
    with_default<<<1, 1>>>(p), expect(p, 41);
    unnamed<<<1, 1>>>(p, 0, 0, NULL), expect(p, 5);
    unnamed<<<1, 1>>>(p, 0, 0, 0), expect(p, 5);
    nothing<<<1, 1>>>();
    other_order<<<1, 1>>>(p), expect(p, 6);
    with_c_name<<<1, 1>>>(p), expect(p, 7);
    bounded<<<1, 1>>>(p, nullptr), expect(p, 8);
    overloaded<<<1, 1>>>(p), expect(p, 9);
    overloaded<<<1, 1>>>(p, 0), expect(p, 10);
    outer::hidden<<<1, 1>>>(p), expect(p, 11);
    ::outer::inner::nested<<<1, 1>>>(p), expect(p, 12);
}

static void templates(int *p)
{
    float *f = managed<float>(1);

    with_arguments<int, 3><<<1, 1>>>(p), expect(p, 3);
    with_arguments<int, (5 > 3)><<<1, 1>>>(p), expect(p, 1);
    with_arguments<float, 3><<<1, 1>>>(f);
    DONE();
    EXPECT(*f == 33);
    deduced<<<1, 1>>>(p, 14), expect(p, 14);
    pack<<<1, 1>>>(p), expect(p, 0);
    pack<<<1, 1>>>(p, 1, 2.0, 'a'), expect(p, 100);
    with_template<<<1, 1>>>(p, wrapped<int>{15}), expect(p, 15);
    constrained<<<1, 1>>>(p), expect(p, 4);
    (with_arguments<int, 19>)<<<1, 1>>>(p), expect(p, 19);
    CUDA(cudaFree(f));
}

static void expressions(int *p)
{
    kernel_type fp = set, table[2] = {set, set};
    int n = 64;

    fp<<<1, 1>>>(p, 16), expect(p, 16);
    (*fp)<<<1, 1>>>(p, 17), expect(p, 17);
    table[n > 3]<<<1, 1>>>(p, 18), expect(p, 18);
    launcher{p}.go(20), expect(p, 20);
    launcher{p}.go_with<21>(), expect(p, 21);
    launch_from_template(p), expect(p, 13);
    SETS(p, 22);
    expect(p, 22);
    LAUNCH(set, 1, 1, p, 23);
    expect(p, 23);
    LAUNCH((from_header<int>), 1, 1, p, 24);
    expect(p, 24);
    launch_from_header(p), expect(p, 77);
}

/* Arguments are evaluated once, and copied at the launch. */
static void arguments(int *p)
{
    large l = {};

    l.at[299] = 25;
    by_value<<<1, 1>>>(p, l);
    l.at[299] = 0;
    expect(p, 25);
    evaluated = 0;
    set<<<counted(1), counted(1), counted(0)>>>((counted(0), p), counted(30)), expect(p, 30);
    EXPECT(evaluated == 5);
}

static void statements(int *p)
{
    int n = 64;

    if (n)
        set<<<1, 1>>>(p, 26);
    else
        set<<<1, 1>>>(p, 27);
    expect(p, 26);
    n ? set<<<1, 1>>>(p, 28) : set<<<1, 1>>>(p, 29);
    expect(p, 28);
    for (int i = 0; i < 3; i++) set<<<1, 1>>>(p + i, i);
    DONE();
    EXPECT(p[2] == 2);
}

static void lambdas(int *p)
{
    int n = 64;

    call<<<1, 32>>>([=] __device__(int i) { p[i] = i * n; }, 32);
    DONE();
    EXPECT(p[31] == 31 * 64);
    call<<<1, 1>>>([=] __host__ __device__(int i) mutable { p[i] = 31; }, 1), expect(p, 31);
}

static void by_address(int *p)
{
    int value = 32;
    void *list[] = {&p, &value};

    CUDA(cudaLaunchKernel((const void *)set, dim3(2), dim3(4), list, 0, 0));
    value = 0;
    DONE();
    EXPECT(p[7] == 32);
    CUDA(cudaLaunchKernel((const void *)&with_arguments<int, 99>, dim3(1), dim3(1), list, 0, 0));
    expect(p, 99);
}

static void test(int)
{
    static void (*const tests[])(int *) = {configurations, plain_kernels, templates,  expressions,
                                           arguments,      statements,    lambdas,    by_address};
    int *p = managed<int>(64);

    for (auto t : tests) t(p);
    CUDA(cudaFree(p));
}

int main()
{
    return on_all_devices(test);
}
