/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/translate.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>

/* The errors of `text`, to be freed; *good is the result. */
static char *errors_of(const char *text, bool *good, struct text *out)
{
    char *said;
    size_t bytes;
    struct translate_options options = {0};
    FILE *errors = open_memstream(&said, &bytes);

    assert_non_null(errors);
    *good = translate(text, strlen(text), &options, out, errors);
    assert_int_equal(fclose(errors), 0);
    return said;
}

/* ---- translations ---- */

static const struct {
    const char *text, *has, *lacks;
} translations[] = {
    {"void f(){k<<<1,2>>>(x);}", "(__kolo::push(1,2) ? (void)0 : k(x))", "<<<"},
    {"void f(){k<<<1,\n2>>>\n(x);\ng();}", "\n\n(x));\ng();", "<<<"},
    {"void f(){a::b<int>::k<c<d>><<<n>>1, 2>>>(x);}", "? (void)0 : a::b<int>::k<c<d>> (x))", "<<<"},
    {"void f(){(*p)<<<1,1>>>();t[2]<<<1,1>>>();}", ": t[2]())", "<<<"},
    {"void f(){o.p->k<<<1,1>>>();}", ": o.p->k())", "<<<"},
    {"const char *s = \"k<<<1,1>>>()\"; // k<<<1,1>>>()", "\"k<<<1,1>>>()\"; // k<<<1,1>>>()", "push"},
    {"const char *s = R\"x(k<<<1,\")1>>>())x\"; int a = 1'000;", "k<<<1,\")1>>>()", "push"},
    {"void f(){k<<<R\"x(\n)x\",1>>>(x);}\nint a;", "(__kolo::push(R\"x(\n)x\",1) ? (void)0 : k(x));}\nint a;", NULL},
    {"__device__ void f(){asm(\"membar.gl;\" ::: R\"x(memory\n)x\");\n}", "\n;\n}", NULL},
    {"char c = '<'; int a = b << c >> d;", "b << c >> d", "push"},
    {"__global__ void k(int a, T *) {}", "__kolo::address(a), __kolo::address(__kolo_p1)", "__global__"},
    {"__global__ void k(int a, T *) {}", "T * __kolo_p1)", NULL},
    {"template <class T, int N> __global__ void k(T (*p)[N]) {}", "&k <T, N>), (unsigned)(0)>", NULL},
    {"template <typename... A> __global__ void k(A... a) {}", "parameter<decltype(a)>...)>(&k <A...>)", NULL},
    {"template <class T, class = X<T>> __global__ void k(T a) {}", "class __kolo_t1 = X<T>", NULL},
    {"__global__ void __launch_bounds__(64, 2) k() {}", "(unsigned)( 64)>", "__launch_bounds__"},
    {"__global__ void k(int);", "void k(int);", "push"},
    {"__device__ __forceinline__ int f();", "inline int f();", "__device__"},
    {"__device__ inline __forceinline__ int f();", "inline  int f();", "inline inline"},
    {"struct __align__(16) S { int a; };", "struct __attribute__((aligned(16))) S", "__align__"},
    {"void f() { __shared__ float s[32]; }", "static thread_local float s[32]", "__shared__"},
    {"template <int N> __global__ void k(T *p) { __shared__ struct { int u; } s, t[N]; }",
     "shared_variable<static_cast<void (*)(__kolo::parameter<decltype(p)>)>(&k <N>), sizeof(t), alignof(decltype(t)), "
     "1>::registered;",
     NULL},
    {"__device__ void f() { __shared__ int s; }", "thread_local int s; }", "shared_variable"},
    {"void f() { extern __shared__ __align__(16) T s[]; }", "T *const s = reinterpret_cast<T *>(__koloShared)",
     "__shared__"},
    {"void f() { extern __shared__ float s[][4]; }",
     "float (*const s)[4] = reinterpret_cast<float (*)[4]>(__koloShared)", "extern"},
    {"__device__ int n; __device__ int f() { return n; } int g() { return n; }", "return n__kolo();", NULL},
    {"__device__ int n; int g() { return n; }", "{ return n; }", NULL},
    {"__device__ int n; __device__ int f(int n) { return n; }", "{ return n; }", NULL},
    {"__device__ int n; __device__ int f() { int n = 1; return n; }", "return n; }", NULL},
    {"__device__ int n; __device__ int f() { { T *n = 0; } return n; }", "return n__kolo(); }", NULL},
    {"__device__ int n; __device__ int f() { return a.n + b->n + c::n; }", "a.n + b->n + c::n__kolo();", NULL},
    {"__device__ int n; void f() { g([=] __device__ (int i) { return n; }); return n; }",
     "{ return n__kolo(); }); return n; }", NULL},
    {"__device__ const int n = 4; __device__ int f() { return n; }", "return n; }", "__kolo"},
    {"__constant__ float a[2] = {1, 2}, b;", "__kolo::constant};", "__constant__"},
    {"__device__ int f() { static int n = 1, m[2]; return n; }",
     "auto &n = n__kolo_images.found(); static __kolo::variable<decltype(m__kolo_initial)>", NULL},
    {"__device__ void f() { static const int n = 1; static constexpr int m = 2; }", "static const int n = 1;", "kolo"},
    {"void f() { static int n; g([=] __device__ () { static int m; }); }",
     "static int n; g([=]  () { static int m__kolo", "n__kolo"},
    {"__device__ int f(int); __device__ int (*p)(int) = f;", "decltype(p)", "decltype(f)"},
    {"__device__ void f() { printf(\"%d\", 1); } void g() { printf(\"\"); }",
     "__kolo_printf(\"%d\", 1); } void g() { printf(\"\")", NULL},
    {"__device__ void f() { asm volatile(\"bar.sync 0;\"); }", "__koloBarrier(((uint32_t)0LL), 0, KOLO_BARRIER_PLAIN",
     "asm"},
    {"__device__ void f() { asm(\"{ .reg .pred p; setp.lt.s32 p, %1, 3; @!p add.u32 %0, %0, %1; }\" : \"+r\"(a) : "
     "\"r\"(b)); }",
     "if (!__kolo::ptx::take<bool>(__kolo_r0)) { __kolo::ptx::put(__kolo_v0, __kolo::ptx::add<uint32_t>(", "asm"},
    {"__device__ void f() { asm volatile(\"multimem.ld_reduce.relaxed.sys.global.add.acc::f32.v2.bf16x2 {%0, %1}, "
     "[%2+8];\" : \"=r\"(a), \"=r\"(b) : \"l\"(p)); }",
     "__kolo::multimem::copies __kolo_at(__kolo::ptx::take<uint64_t>(__kolo_v2), 8, 2 * sizeof(uint32_t)); uint32_t "
     "__kolo_each[2]; __kolo::multimem::load<__kolo::ptx::relaxed, "
     "__kolo::multimem::add_f32<__kolo::multimem::bf16x2>>(__kolo_at, __kolo_each); ",
     "asm"},
    {"__device__ void f() { asm(\"mov.u32 %0, 7;\" : \"=\" \"r\"(a)); }", "(a) = __kolo_v0; ", "asm"},
    {"__device__ void f() { asm volatile(\"multimem.red.release.gpu.add.u64 [%0], %1;\" :: \"l\"(p), \"l\"(a)); }",
     "__kolo::multimem::reduce<__kolo::ptx::release, __kolo::multimem::add<__kolo::multimem::plain<uint64_t>>>(",
     "asm"},
    {"__device__ void f() { asm volatile(\"multimem.ld_reduce.add.v4.u32 {%0, %0, %0, %0}, [%1];\" : \"=r\"(a) : "
     "\"l\"(p)); }",
     "no translation to CPUs for the PTX instruction \\\"multimem.ld_reduce.add.v4.u32", NULL},
    {"__device__ void f() { asm volatile(\"multimem.ld_reduce.min.f32 %0, [%1];\" : \"=f\"(a) : \"l\"(p)); }",
     "no translation to CPUs for the PTX instruction \\\"multimem.ld_reduce.min.f32", NULL},
    {"__device__ void f() { asm(R\"(mov.b64 {%0, %1}, %2;)\" : \"=r\"(a), \"=r\"(b) : \"l\"(c)); }",
     "__kolo::ptx::part<uint32_t>(__kolo_whole, 1)", "asm"},
    {"__device__ void f() { asm(\"mov.u32 %0, 0; L: add.u32 %0, %0, 1; bra L;\" : \"=r\"(a)); }", "goto __kolo_l",
     "asm"},
    {"__device__ void f() {\n\n asm(\"add.u32 %0, %0, 1; wgmma.fence; trap;\" : \"+r\"(a)); }",
     "error(\"no translation to CPUs for the PTX instruction \\\"wgmma.fence\\\"\")", "trap"},
    {"__device__ void f() { asm(\"@p bra X;\"); }", "no translation to CPUs for the PTX instruction \\\"@p bra X\\\"",
     "goto"},
    {"__device__ void f() { asm volatile(\"ld.u32 %3, [%1];\" : \"=r\"(a) : \"l\"(p)); }", "no translation to CPUs",
     NULL},
    {"__device__ void f() { asm(\"add.rz.f32 %0, %0, %0;\" : \"+f\"(a)); }", "no translation to CPUs", NULL},
    {"__device__ void f() { asm(\".reg .b128 x;\"); }", "PTX instruction \\\".reg .b128 x\\\"", NULL},
    {"__global__ void f() {\n if (x)\n  k<<<1, 1>>>(); }", "(__kolo::push(1, 1) ? (void)0 : ", "<<<"},
    {"__global__ void k(T a, U b = {}) { a++; }", "__kolo::launch<static_cast", "__global__"},
    {"__device__ int f() { return __CUDA_ARCH__; }", "return 800", NULL},
    {"__device__ void f() { if (__kolo_for_device) { a(); } }", "if (true)", NULL},
    {"__host__ __device__ void f() { if (__kolo_for_device) { a(); } }", "if (__kolo::in_kernel())", NULL},
    {"__device__ void f() { a = (int)x * 2; }", "a = __kolo::cast<int>(x) * 2;", NULL},
    {"__device__ void f() { a = (unsigned)-x[1].y(3)->z < b; }", "__kolo::cast<unsigned>(-x[1].y(3)->z) < b", NULL},
    {"__device__ void f() { a = (int)(long)floor<T>(x) + 1; }",
     "__kolo::cast<int>(__kolo::cast<long>(floor<T>(x))) + 1", NULL},
    {"__device__ void f() { g((int)(x + 1), static_cast<size_t>(y)); }",
     "g(__kolo::cast<int>((x + 1)), __kolo::cast<size_t>(y))", NULL},
    {"__device__ void f() { const int a = x << 32, b = y; const long c = x << 3, d = y >> 2, e = x < y, g = y > x; }",
     "const int a = __kolo::cast<int>(x << 32), b = __kolo::cast<int>(y); const long c = __kolo::cast<long>(x << 3), "
     "d = __kolo::cast<long>(y >> 2), e = __kolo::cast<long>(x < y), g = __kolo::cast<long>(y > x);",
     NULL},
    {"__device__ void f() { for (int i = 0, n = x < y, m = y > (x); i < n && n > (i); i++) g(n); }",
     "for (int i = 0, n = __kolo::cast<int>(x < y), m = __kolo::cast<int>(y > (x)); i < n && n > (i); i++)", NULL},
    {"__device__ void f() { int a = g<b, c>(d), e = h<1 << 2>(d), i = j<k<l>>(d), m = x < y >> 1, o = A<b, c>::d; }",
     "int a = __kolo::cast<int>(g<b, c>(d)), e = __kolo::cast<int>(h<1 << 2>(d)), i = __kolo::cast<int>(j<k<l>>(d)), "
     "m = __kolo::cast<int>(x < y >> 1), o = __kolo::cast<int>(A<b, c>::d);",
     NULL},
    {"__device__ void f(int x, float y) { g((int)x < y, y > (x)); g((int)y << 1, y >> (x)); g((int)h<x, 1>(y)); }",
     "g(__kolo::cast<int>(x) < y, y > (x)); g(__kolo::cast<int>(y) << 1, y >> (x)); g(__kolo::cast<int>(h<x, 1>(y)));",
     NULL},
    {"__device__ int x = a << 2, y = b >> 1;", "x__kolo() {", NULL},
    {"__device__ int x = a << 2, y = b >> 1; __device__ int f() { return y; }", "return y__kolo();", NULL},
    {"__device__ void f() { a = sizeof(int) * x; g(int); (int)sizeof(x); }", "sizeof(int) * x; g(int); (int)sizeof(x);",
     "cast"},
    {"__device__ void f() { int i = x, j = 3, k{4}; const unsigned u = g(i) * 2; for (long n = y; n;) {} }",
     "int i = __kolo::cast<int>(x), j = 3, k{4}; const unsigned u = __kolo::cast<unsigned>(g(i) * 2); "
     "for (long n = __kolo::cast<long>(y); n;) {}",
     NULL},
    {"__device__ void f() { int i = blockIdx.x * blockDim.x + threadIdx.x; int *p = &i; float x = i; }",
     "int i = blockIdx.x * blockDim.x + threadIdx.x; int *p = &i; float x = i;", "cast"},
    {"__device__ void f() { a = int(x * 2) + unsigned(y); return int(x); }",
     "a = __kolo::cast<int>(x * 2) + __kolo::cast<unsigned>(y); return __kolo::cast<int>(x);", NULL},
    {"__device__ void f() { int(x); g<int(float)>(a); int (*p)(int) = h; int i(); }",
     "int(x); g<int(float)>(a); int (*p)(int) = h; int i();", "cast"},
    {"template <class T> __device__ T f(float x) { T t(x); g(sizeof(T)); return (T)x + static_cast<T>(x) + T(x); }",
     "T t(x); g(sizeof(T)); return __kolo::cast_to<T>(x) + __kolo::cast_to<T>(x) + __kolo::cast_to<T>(x);", NULL},
    {"template <class T> struct S { __device__ T f() { return (T)x; } }; __device__ int g() { return (T)x; }",
     "return __kolo::cast_to<T>(x); } };  int g() { return (T)x; }", NULL},
    {"template <class R> __device__ R f() { return static_cast<R>(g(1)) + static_cast<R>(2); }",
     "__kolo::cast_to<R>((g(1), __kolo::nothing())) + __kolo::cast_to<R>(2)", NULL},
    {"__host__ __device__ void f() { k<<<1, 1>>>(); }", "push(1, 1)", NULL},
    {"void f() { tex2D(a, b); }", "tex2D(a, b)", NULL},
    {"void f() { a = (int)x; }", "a = (int)x;", "cast"},
    {"void f() { asm volatile(\"pause\"); }", "asm volatile(\"pause\")", "kolo"},
    {"#pragma GCC unroll 65534\nint a;\n#pragma GCC unroll 4\n", "\nint a;\n#pragma GCC unroll 4\n", "65534"},
    {"#pragma unroll 4\nint a;\n#pragma once\n", "\nint a;\n#pragma once\n", "unroll"},
    {"void f() __attribute__((__noinline__)); __noinline__ void g();",
     "__attribute__((__noinline__)); __attribute__((noinline)) void g()", NULL},
};

static void translates(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, translations)
    {
        struct text out = {0};
        struct translate_options options = {0};
        bool good = translate(c->text, strlen(c->text), &options, &out, stderr);

        expect_case(c->text, good);
        if (!strstr(out.at, c->has)) fail_msg("%s\n  became %s\n  without %s", c->text, out.at, c->has);
        if (c->lacks && strstr(out.at, c->lacks)) fail_msg("%s\n  became %s\n  with %s", c->text, out.at, c->lacks);
        text_drop(&out);
    }
}

/* ---- barriers ---- */

/* Kernels, and why they keep their fibres; NULL: they become loops. */
static const struct {
    const char *text, *why;
} barriers[] = {
    {"__global__ void k(int *p) { p[0] = 1; __syncthreads(); p[1] = 2; }", NULL},
    {"__global__ void k(int *p, int n) { for (int i = 0; i < n; i++) { p[threadIdx.x] = i; __syncthreads(); } }", NULL},
    {"__global__ void k(int *p, int n) { if (n) __syncthreads(); else { p[0] = 1; __syncthreads(); } }", NULL},
    {"__global__ void k(int *p) { if (threadIdx.x > 3) return; __syncthreads(); p[0]++; }", NULL},
    {"__global__ void k(int *p) { int a[4]; a[0] = 1; __syncthreads(); p[0] = a[0]; }", NULL},
    {"__device__ int f(int a) { return a; } __global__ void k(int *p) { p[0] = f(1); __syncthreads(); }", NULL},
    {"__device__ int f(int a); __global__ void k(int *p) { p[0] = f(1); __syncthreads(); }", "\"f\""},
    {"__device__ void f() { __syncthreads(); } __global__ void k() { f(); __syncthreads(); }", NULL},
    {"__device__ void g() { __syncthreads(); } __device__ void f() { g(); } __global__ void k() { f(); "
     "__syncthreads(); }",
     NULL},
    {"__device__ int f(int a) { return a ? f(a - 1) : 0; } __global__ void k(int *p) { p[0] = f(1); __syncthreads(); }",
     "\"f\""},
    {"__device__ int f() { return threadIdx.x; } __global__ void k(int *p) { p[0] = f(); __syncthreads(); }", NULL},
    {"struct S { int x; __device__ S operator+(S o) { __syncthreads(); return o; } }; __global__ void k() { "
     "__syncthreads(); }",
     "operator"},
    {"struct S { __device__ S() { __syncthreads(); } }; __global__ void k() { S s; __syncthreads(); }", "constructor"},
    {"struct S { __device__ ~S(); }; __device__ S::~S() { __syncwarp(); } __global__ void k() { __syncthreads(); }",
     "constructor"},
    {"template <class F> __global__ void k(F f, int *p) { p[0] = f(1); __syncthreads(); }", NULL},
    {"__device__ int w() { return threadIdx.x; } __device__ int (*q)() = w; template <class F> __global__ void k(F f, "
     "int *p) "
     "{ p[0] = f(); __syncthreads(); }",
     "\"f\""},
    {"template <class F> __global__ void k(F f, int *p) { p[0] = f(1); __syncthreads(); } void h(int *p) { k<<<1, "
     "2>>>([=] "
     "__device__ (int i) { return i + threadIdx.x; }, p); }",
     "\"f\""},
    {"struct C { int n; __device__ int operator()(int a) { return n += a; } }; template <class F> __global__ void k(F "
     "f, int "
     "*p) { p[0] = f(1); __syncthreads(); }",
     "\"f\""},
    {"struct C { int n; __device__ int operator()(int a) const { return n + a; } }; template <class F> __global__ void "
     "k(F f, "
     "int *p) { p[0] = f(1); __syncthreads(); p[1] = F()(2); }",
     NULL},
    {"struct S { int t; __device__ S() : t(threadIdx.x) {} }; __global__ void k() { S s; __syncthreads(); }",
     "constructor"},
    {"struct S { int t = threadIdx.x; }; __global__ void k() { S s; __syncthreads(); }", "constructor"},
    {"__device__ int f() { return threadIdx.x; } struct S { int t; __device__ S() : t(f()) {} }; __global__ void k() { "
     "S s; "
     "__syncthreads(); }",
     "constructor"},
    {"struct P { int *q; int n; }; __global__ void k(P p) { for (int i = 0; i < p.n; i++) { p.q[threadIdx.x] = i; "
     "__syncthreads(); } }",
     NULL},
    {"struct P { int *q; int n; }; __global__ void k(P p) { p.n = threadIdx.x; __syncthreads(); p.q[0] = p.n; }",
     "parameter"},
    {"struct P { int n; __device__ int get() const { return n; } }; __global__ void k(P s, int *p) { p[0] = s.get(); "
     "__syncthreads(); p[1] = s.get(); }",
     NULL},
    {"struct P { int n; __device__ int next() { return n++; } }; __global__ void k(P s, int *p) { p[0] = s.next(); "
     "__syncthreads(); p[1] = s.next(); }",
     "parameter"},
    {"struct R { int *s; __device__ int sum(int v) { s[threadIdx.x] = v; __syncthreads(); return s[0]; } }; __global__ "
     "void "
     "k(int *p) { extern __shared__ int m[]; R r = {m}; p[0] = r.sum(1); }",
     NULL},
    {"template <class T, int N> class R { T *s; public: __device__ R(T *m) : s(m) {} __device__ T sum(T v) { if (N == "
     "1) "
     "return v; return part(v); } private: __device__ T part(T v) { s[threadIdx.x] = v; __syncthreads(); return s[0]; "
     "} }; "
     "__global__ void k(int *p) { extern __shared__ int m[]; p[0] = R<int, 4>(m).sum(1); typedef R<int, 1> One; One "
     "one(m); "
     "p[1] = one.sum(2); }",
     NULL},
    {"struct R { static __device__ int sum(int *s, int v) { s[threadIdx.x] = v; __syncthreads(); return s[0]; } }; "
     "__global__ void k(int *p) { extern __shared__ int m[]; p[0] = R::sum(m, 1); }",
     NULL},
    {"struct R { int *s; virtual __device__ int sum(int v) { s[0] = v; __syncthreads(); return s[0]; } }; __global__ "
     "void k(R "
     "*r, int *p) { p[0] = r->sum(1); }",
     "not found"},
    {"struct B { int *s; }; struct R : B { __device__ int sum(int v) { s[0] = v; __syncthreads(); return s[0]; } }; "
     "__global__ void k(int *p) { R r; p[0] = r.sum(1); }",
     "not found"},
    {"struct R { int *s; __device__ R *me() { __syncthreads(); return this; } }; __global__ void k(int *p) { R r; "
     "r.me(); }",
     "as a whole"},
    {"__global__ void k(int (*f)(int), int *p) { p[0] = (*f)(1); __syncthreads(); }", "known"},
    {"__global__ void k(int (*f)(int), int *p) { for (int i = 0; i < (*f)(1); i++) __syncthreads(); }", "condition"},
    {"__device__ int max(int a, int b) { return a * threadIdx.x; } __global__ void k(int n) { for (int i = 0; i < "
     "max(n, 4); i++) __syncthreads(); }",
     "condition"},
    {"const int N = 4; __global__ void k(int *p) { for (int i = 0; i < N; i++) __syncthreads(); }", NULL},
    {"enum { N = 4, M }; __global__ void k(int *p) { for (int i = N; i < M; i++) __syncthreads(); }", NULL},
    {"enum E { N = 4, M = 1 << N }; namespace a { typedef enum { L } F; } __global__ void k(int *p) { if (L < M) "
     "__syncthreads(); }",
     NULL},
    {"__global__ void k(int *p) { enum { N = 4, M }; enum E { L = N }; for (int i = N; i < M; i++) __syncthreads(); if "
     "(L) __syncthreads(); }",
     NULL},
    {"enum class E { N = 4 }; __global__ void k(int *p) { if (N) __syncthreads(); }", "condition"},
    {"struct S { enum { N = 4 }; }; __global__ void k(int *p) { if (N) __syncthreads(); }", "condition"},
    {"namespace a { const int N = 4; } __device__ int N; __global__ void k(int *p) { int i = N; __syncthreads(); N++; "
     "__syncthreads(); p[0] = i; }",
     NULL},
    {"__global__ void k(S s, int *p) { p[0] = s.get(); __syncthreads(); }", "\"get\""},
    {"__global__ void k(int *p) { auto f = [&] { return 1; }; p[0] = 2; __syncthreads(); }",
     "loop over threads cannot contain"},
    {"__global__ void k(int *p) { p[0] = threadIdx.x ? 1 : __syncthreads_count(1); __syncthreads(); }",
     "__syncthreads_count"},
    {"__global__ void k(int *p) { if (threadIdx.x < 32) { __syncwarp(); p[0] = 1; } __syncthreads(); }", NULL},
    {"__global__ void k(int *p) { if (threadIdx.x < 33) { __syncwarp(); p[0] = 1; } __syncthreads(); }", "condition"},
    {"__global__ void k(int *p) { int v = p[threadIdx.x]; v += __shfl_xor_sync(-1, v, 1); p[0] = v; }", NULL},
    {"__global__ void k(int *p) { int w = threadIdx.x / 32, v = 1; if (w == 1) v = __shfl_sync(-1, v, p[w]); p[0] = v; "
     "}",
     NULL},
    {"__global__ void k(int *p) { int w = threadIdx.x / 16, v = 1; if (w == 1) v = __shfl_sync(-1, v, 3); p[0] = v; }",
     "condition"},
    {"__global__ void k(int *p) { p[0] = p[1] ? __shfl_sync(-1, p[2], 0) : 0; }", "may evaluate"},
    {"__global__ void k(int *p) { while (__any_sync(-1, p[0])) p[0]--; }", "condition of a loop"},
    {"__global__ void k(int *p) { int a; p[0] = __match_all_sync(-1, p[1], &a); __syncwarp(); }", "__match_all_sync"},
    {"__device__ int f(int v) { return __shfl_sync(-1, v, 0); } __global__ void k(int *p) { p[0] = f(p[1]); }", NULL},
    {"__device__ int f(int v) { if (v) return 1; return __shfl_sync(-1, v, 0); } __global__ void k(int *p) { p[0] = "
     "f(p[1]); }",
     NULL},
    {"__device__ int f(int v) { if (v) return 1; return __shfl_sync(-1, v, 0); } __global__ void k(int *p) { p[0] = "
     "f(p[threadIdx.x]); }",
     "condition"},
    {"__device__ int f(int v, int n) { for (int i = 0; i < n; i++) { __syncthreads(); if (i * i == n) return i; v++; "
     "__syncthreads(); } return v; } __global__ void k(int *p) { p[threadIdx.x] = f(p[threadIdx.x], p[0]); }",
     NULL},
    {"__device__ int f(int v, int n) { for (int i = 0; i < n; i++) { __syncthreads(); if (i * i == v) return i; } "
     "return v; "
     "} __global__ void k(int *p) { p[threadIdx.x] = f(p[threadIdx.x], p[0]); }",
     "break"},
    {"__device__ int f(int v) { __syncthreads(); for (int i = 0; i < v; i++) if (v % i == 3) return i; if (v) return "
     "2; return "
     "v; } __global__ void k(int *p) { p[threadIdx.x] = f(p[threadIdx.x]); }",
     NULL},
    {"__device__ int f(int v) { for (int i = 0; i < v; i++) if (v % i == 3) return i; __syncthreads(); return v; } "
     "__global__ void k(int *p) { p[threadIdx.x] = f(p[threadIdx.x]); }",
     "condition"},
    {"__device__ int f(int v) { __syncthreads(); switch (v) { case 1: return 2; } return v; } __global__ void k(int "
     "*p) { "
     "p[threadIdx.x] = f(p[threadIdx.x]); }",
     "a return in a statement"},
    {"__device__ int f(int v) { return v ? f(__shfl_sync(-1, v, 0)) : 0; } __global__ void k(int *p) { p[0] = f(p[1]); "
     "}",
     "may evaluate"},
    {"template <class T> __device__ T f(T v) { return __shfl_sync(-1, v, 0); } __global__ void k(float *p) { float v = "
     "p[0]; p[1] = f(v) + f<float>(p[2]); }",
     NULL},
    {"template <class T> __device__ T f(T v) { return __shfl_sync(-1, v, 0); } __global__ void k(float *p) { p[1] = "
     "f(p[2]); }",
     "template arguments"},
    {"__device__ int n; __device__ int f() { __syncwarp(); return n; } __global__ void k(int *p) { int n = f(); p[0] = "
     "n; "
     "}",
     "something else"},
    {"__device__ int f(int a) { __syncwarp(); return a; } __device__ int f(float a) { return 1; } __global__ void "
     "k(int "
     "*p) { p[0] = f(1); }",
     "not the only one"},
    {"namespace a { __device__ int f() { __syncwarp(); return 1; } } __global__ void k(int *p) { p[0] = a::f(); }",
     "namespace"},
    {"__global__ void k(int *p) { static int n; n++; __syncwarp(); p[0] = n; }", "static"},
    {"__global__ void k(int *p) { int i = threadIdx.x, v = p[i]; if (i > 3) return; v += __shfl_sync(-1, v, 2); p[i] = "
     "v; "
     "}",
     NULL},
    {"__global__ void k(int *p) { int t = threadIdx.x; while (t) { t--; __syncthreads(); } }", "condition"},
    {"__global__ void k(int *p, int n) { bool a = n < 9, b = n > 3; if (b) __syncthreads(); p[0] = a; }", NULL},
    {"__global__ void k(int *p, int n) { int c = n << 3, d = n >> 2; while (d) { d--; __syncthreads(); } p[0] = c; }",
     NULL},
    {"__global__ void k(int *p, int n) { int m = p[0]; if (n < m && m > (n)) __syncthreads(); p[0] = n; }", NULL},
    {"__global__ void k(int *p, int a, int b) { p[0] = __shfl_down_sync(-1, p[1], a < b, b > (a)); }", NULL},
    {"__global__ void k(int *p) { int n = 3, *q = &n; while (n) { __syncthreads(); *q = threadIdx.x; } }", "condition"},
    {"__global__ void k(int *p, int n) { p += threadIdx.x; __syncthreads(); *p = n; }", NULL},
    {"__global__ void k(int *p) { int v = p[threadIdx.x], &r = v; __syncthreads(); r++; __syncthreads(); p[0] = v; }",
     "address"},
    {"__global__ void k(int *p) { int a[2]; int *q = a; *q = 1; __syncthreads(); p[0] = *q; }", "address"},
    {"__global__ void k(int *p) { switch (p[0]) { case 1: __syncthreads(); } }", "shape"},
    {"__global__ void k(int *p) { again: p[0]++; __syncthreads(); }", "label"},
    {"__global__ void k(int *p) { asm volatile(\"bar.sync 0;\"); __syncthreads(); }", "asm"},
    {"__global__ void k(int *p) { while (atomicCAS(p, 0, 1)) { } __syncthreads(); }", "wait"},
    {"__global__ void k(int *p) { for (int i = 0; p[0] == 0; i++) __threadfence(); __syncthreads(); }", "wait"},
    {"__device__ void f(int *p) { while (atomicAdd(p, 0)) { } } __global__ void k(int *p) { f(p); __syncthreads(); }",
     "\"f\""},
    {"__global__ void k(int *p) { for (int i = 0; i < 4; i++) { if (p[threadIdx.x]) break; __syncthreads(); } }",
     "break"},
    {"__global__ void k(int *p) { for (int i = threadIdx.x; i < 4; i++) __syncthreads(); }", "counter"},
};

static void proves_what_becomes_loops(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, barriers)
    {
        struct text out = {0};
        char *said;
        size_t bytes;
        FILE *report = open_memstream(&said, &bytes);
        struct translate_options options = {.report = report};

        assert_non_null(report);
        expect_case(c->text, translate(c->text, strlen(c->text), &options, &out, stderr));
        assert_int_equal(fclose(report), 0);
        if ((options.loops == 1) != !c->why || !strstr(said, c->why ? c->why : "loops over threads"))
            fail_msg("%s\n  is said to be %s", c->text, said);
        expect_case(c->text, !strstr(out.at, "__koloWholeBlock") == !!c->why);
        free(said);
        text_drop(&out);
        options = (struct translate_options){.fibres = true};
        expect_case(c->text, translate(c->text, strlen(c->text), &options, &out, stderr));
        expect_case(c->text, !options.loops && !strstr(out.at, "__koloWholeBlock"));
        text_drop(&out);
    }
}

/* As many as make their table grow: each stands for its own copy, but where a local of that name hides it. */
static void many_variables_are_told_apart(void **state)
{
    enum { VARIABLES = 1000 };
    struct translate_options options = {0};
    struct text in = {0}, out = {0};

    (void)state;
    for (int i = 0; i < VARIABLES; i++) text_print(&in, "__device__ int v%d;\n", i);
    text_put(&in, "__device__ int f(int v7) { int v8 = 1; { int v9; v9 = v7; } return");
    for (int i = 0; i < VARIABLES; i++) text_print(&in, " + v%d", i);
    text_put(&in, "; } extern __device__ int v5; __device__ int g() { return v7 + w1; }");
    assert_true(translate(in.at, in.bytes, &options, &out, stderr));
    for (int i = 0; i < VARIABLES; i++) {
        char want[32];

        snprintf(want, sizeof want, i == 7 || i == 8 ? "+ v%d " : "+ v%d__kolo()", i);
        expect_case(want, strstr(out.at, want));
    }
    expect_case("a local one is gone behind its scope", strstr(out.at, "return v7__kolo() + w1;"));
    const char *first = strstr(out.at, "&v5__kolo()");
    expect_case("one function for each", first && !strstr(first + 1, "&v5__kolo()"));
    text_drop(&in);
    text_drop(&out);
}

/* ---- errors ---- */

static const struct {
    const char *text, *error;
} errors[] = {
    {"void f() {\n  3 <<<1, 1>>>(x);\n}", "input:2: error: the operand before <<<...>>> must be"},
    {"# 40 \"a b.cu\"\nvoid f() {\n  k<<<1, 1>>(x);\n}", "a b.cu:41: error: no >>> followed by ("},
    {"# 1 \"x.cu\"\n# 7 \"y.cuh\" 1\nvoid f() { k<<<1, 1>>>(x; }", "y.cuh:7: error: the arguments of this launch"},
    {"void f() {\n k<<<1, 2>>>(x)<<<3, 4>>>(y); }", "input:2: error: a launch has no result"},
    {"void f() { k<<<>>>(x); }", "input:1: error: a launch needs at least"},
    {"__device__ void f() { asm(x); }", "input:1: error: this asm statement"},
    {"void f() { extern __shared__ int a[], b[]; }", "input:1: error: extern __shared__ is for one array"},
    {"__global__ void k(int[4]) {}", "input:1: error: give this parameter"},
    {"__global__ void f(float *p) {\n *p = tex2Dgather<float4>(t, 1, 2).x; }",
     "input:2: error: cube maps, gathers and gradients of textures need a GPU"},
    {"\ntexture<float> t;", "input:2: error: texture references are gone"},
    {"struct S {\n static __device__ int n; };", "input:2: error: a member of a class is in no memory of its own"},
    {"__shared__ int a", "input:1: error: this declaration has no end"},
};

static void tells_errors_with_their_place(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, errors)
    {
        struct text out = {0};
        bool good;
        char *said = errors_of(c->text, &good, &out);

        expect_case(c->text, !good);
        if (!strstr(said, c->error)) fail_msg("%s\n  said %s\n  not %s", c->text, said, c->error);
        free(said);
        text_drop(&out);
    }
}

/* Any cut of a text ends: with a result or an error, never otherwise. */
static void survives_any_end(void **state)
{
    static const char text[] =
        "template <class T, int N = (1 < 2)> __global__ void __launch_bounds__(N) k(T a, int (*p)[N], ...) { extern "
        "__shared__ T s[]; __shared__ alignas(16) int t[N]; asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(a)); }\n# 3 \"f\"\n"
        "__device__ int n[3] = {1}; void f() { a::k<b<c>, 4><<<dim3{1, 2}, n>>1>>>([=] __device__ (int i) { n[i]++; "
        "}); }";

    (void)state;
    for (size_t n = 0; n < sizeof text; n++) {
        char *copy = must_copy(text, n);
        struct text out = {0};
        bool good;

        free(errors_of(copy, &good, &out));
        free(copy);
        text_drop(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(translates), cmocka_unit_test(proves_what_becomes_loops),
                                       cmocka_unit_test(many_variables_are_told_apart),
                                       cmocka_unit_test(tells_errors_with_their_place),
                                       cmocka_unit_test(survives_any_end)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
