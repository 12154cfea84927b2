/* SPDX-License-Identifier: Apache-2.0 */
/* half, bfloat16 and fp8: every code in both directions, and arithmetic on many pairs, against a table of the codes' values. */
#include "check.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

/* All finite magnitudes of a format in order: code i means values[i]. */
struct format {
    std::vector<double> values;

    format(int exponent_bits, int mantissa_bits, int codes)
    {
        int bias = (1 << (exponent_bits - 1)) - 1;

        for (int c = 0; c < codes; c++) {
            int e = c >> mantissa_bits, m = c & ((1 << mantissa_bits) - 1);

            values.push_back(e ? std::ldexp(1.0 + std::ldexp(m, -mantissa_bits), e - bias) : std::ldexp(m, 1 - bias - mantissa_bits));
        }
    }

    /* The code nearest to x >= 0, ties to even; values.size() for too large numbers. */
    unsigned nearest(double x) const
    {
        size_t above = std::lower_bound(values.begin(), values.end(), x) - values.begin(), n = values.size();
        double largest = values[n - 1], step = largest - values[n - 2];

        if (above == n) return x - largest < step / 2 || (x - largest == step / 2 && (n - 1) % 2 == 0) ? n - 1 : n;
        if (!above || values[above] == x) return above;
        double to_above = values[above] - x, to_below = x - values[above - 1];
        if (to_above == to_below) return above % 2 ? above - 1 : above;
        return to_above < to_below ? above : above - 1;
    }
};

static const format half_values(5, 10, 0x7c00), bfloat_values(8, 7, 0x7f80), e4m3_values(4, 3, 0x7f), e5m2_values(5, 2, 0x7c);

static unsigned expected(const format &f, double x, unsigned sign_bit)
{
    return (std::signbit(x) ? sign_bit : 0) | f.nearest(std::fabs(x));
}

/* ---- results of devices ---- */

struct results {
    float decoded[65536];
    unsigned short encoded[65536], sums[65536], differences[65536], products[65536], quotients[65536], fused[65536], roots[65536];
    bool less[65536];
};

template <typename T> __device__ T of_bits(unsigned short bits);
template <> __device__ __half of_bits<__half>(unsigned short bits)
{
    return __ushort_as_half(bits);
}
template <> __device__ __nv_bfloat16 of_bits<__nv_bfloat16>(unsigned short bits)
{
    return __ushort_as_bfloat16(bits);
}
__device__ unsigned short bits_of(__half h)
{
    return __half_as_ushort(h);
}
__device__ unsigned short bits_of(__nv_bfloat16 h)
{
    return __bfloat16_as_ushort(h);
}
__device__ float widen(__half h)
{
    return __half2float(h);
}
__device__ float widen(__nv_bfloat16 h)
{
    return __bfloat162float(h);
}

__host__ __device__ unsigned short other(unsigned i, unsigned round)
{
    return (unsigned short)((i * 40503u + round * 977u) ^ (i >> 3));
}

template <typename T> __global__ void compute(results *r, const float *inputs, unsigned round)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    T a = of_bits<T>((unsigned short)i), b = of_bits<T>(other(i, round)), c = of_bits<T>(other(i + 7, round + 1));

    r->decoded[i] = widen(a);
    r->encoded[i] = bits_of(T(inputs[i]));
    r->sums[i] = bits_of(__hadd(a, b));
    r->differences[i] = bits_of(a - b);
    r->products[i] = bits_of(__hmul(a, b));
    r->quotients[i] = bits_of(a / b);
    r->fused[i] = bits_of(__hfma(a, b, c));
    r->roots[i] = bits_of(hsqrt(a));
    r->less[i] = __hlt(a, b);
}

/* ---- expected results ---- */

/* -1: not a number; else the code of x, or infinity's. */
static int code_of(const format &f, double x, unsigned infinity)
{
    if (x != x) return -1;
    unsigned magnitude = std::isinf(x) ? infinity : f.nearest(std::fabs(x));
    return (int)((std::signbit(x) ? 0x8000u : 0) | std::min(magnitude, infinity));
}

static void same(const char *what, unsigned i, unsigned short got, int want, unsigned infinity)
{
    bool nan = (got & 0x7fffu) > infinity;

    if (want < 0 ? nan : got == want) return;
    std::fprintf(stderr, "%s of %04x: %04x instead of %04x\n", what, i, got, want);
    std::exit(1);
}

static double decode(const format &f, unsigned code, unsigned infinity)
{
    unsigned m = code & 0x7fffu;
    double x = m < infinity ? f.values[m] : m == infinity ? HUGE_VAL : NAN;

    return code & 0x8000u ? -x : x;
}

/* a * b + c without any rounding, as a multiple of 2^-52, where that is possible; scaled values of the format are compared with it. */
static bool fused_exact(const format &f, double a, double b, double c, int *want)
{
    const double scale = std::ldexp(1.0, 52);
    __int128 sum, magnitude;
    unsigned low = 0, high = (unsigned)f.values.size() - 1;

    for (double x : {a, b, c})
        if (!(std::fabs(x) < 1000.0) || (x != 0 && std::fabs(x) < std::ldexp(1.0, -15))) return false;
    if (a * b + c == 0) return false;
    sum = (__int128)(a * b * scale) + (__int128)(c * scale);
    magnitude = sum < 0 ? -sum : sum;
    if (std::fabs(a * b + c) < std::ldexp(1.0, -14) || std::fabs(a * b + c) > 60000) return false;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;

        if (f.values[middle] < std::ldexp(1.0, 40) && (__int128)(f.values[middle] * scale) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    __int128 below = magnitude - (__int128)(f.values[low] * scale), above = (__int128)(f.values[high] * scale) - magnitude;
    unsigned nearest = below == above ? (low % 2 ? high : low) : below < above ? low : high;
    *want = (int)(nearest | (sum < 0 ? 0x8000u : 0));
    return true;
}

template <typename T> static void check(const format &f, unsigned infinity, unsigned fused_least)
{
    results *r = managed<results>(1);
    float *inputs = managed<float>(65536);
    unsigned fused = 0;

    for (unsigned round = 0; round < 6; round++) {
        for (unsigned i = 0; i < 65536; i++) {
            double between = i & 0x7fffu ? (decode(f, i, infinity) + decode(f, i - 1, infinity)) / 2 : 0;

            inputs[i] = (float)(round % 3 ? std::nextafter((float)between, round % 3 == 1 ? -HUGE_VALF : HUGE_VALF) : between);
        }
        compute<T><<<256, 256>>>(r, inputs, round);
        DONE();
        for (unsigned i = 0; i < 65536; i++) {
            unsigned bi = other(i, round), ci = other(i + 7, round + 1);
            double a = decode(f, i, infinity), b = decode(f, bi, infinity), c = decode(f, ci, infinity);
            int want;

            EXPECT(a != a ? r->decoded[i] != r->decoded[i] : (double)r->decoded[i] == a);
            same("code", i, r->encoded[i], code_of(f, inputs[i], infinity), infinity);
            same("sum", i, r->sums[i], code_of(f, a + b, infinity), infinity);
            same("difference", i, r->differences[i], code_of(f, a - b, infinity), infinity);
            same("product", i, r->products[i], code_of(f, a * b, infinity), infinity);
            same("quotient", i, r->quotients[i], code_of(f, a / b, infinity), infinity);
            same("root", i, r->roots[i], code_of(f, std::sqrt(a), infinity), infinity);
            EXPECT(r->less[i] == (a < b));
            if (!fused_exact(f, a, b, c, &want)) continue;
            same("fused", i, r->fused[i], want, infinity);
            fused++;
        }
    }
    EXPECT(fused > fused_least);
    CUDA(cudaFree(r));
    CUDA(cudaFree(inputs));
}

/* ---- 8 bits ---- */

__global__ void compute8(const float *inputs, unsigned char *e4m3, unsigned char *e5m2, float *decoded)
{
    unsigned i = threadIdx.x + blockIdx.x * blockDim.x;
    __nv_fp8_e4m3 a(inputs[i]);
    __nv_fp8_e5m2 b(inputs[i]);

    e4m3[i] = a.__x;
    e5m2[i] = b.__x;
    if (i >= 256) return;
    a.__x = b.__x = (unsigned char)i;
    decoded[i] = float(a);
    decoded[256 + i] = float(b);
}

static void check8()
{
    const int n = 4096;
    float *inputs = managed<float>(n), *decoded = managed<float>(512);
    unsigned char *a = managed<unsigned char>(n), *b = managed<unsigned char>(n);

    for (int i = 0; i < n; i++) {
        const format &f = i % 2 ? e4m3_values : e5m2_values;
        size_t at = 1 + (size_t)(i / 2) % (f.values.size() - 1);
        float middle = (float)((f.values[at] + f.values[at - 1]) / 2);

        inputs[i] = i % 3 ? std::nextafter(middle, i % 3 == 1 ? 0.0f : 1e9f) : middle;
        if (i % 5 == 0) inputs[i] = -inputs[i];
        if (i > n - 8) inputs[i] = std::ldexp(1.0f, i - n + 24);
    }
    compute8<<<n / 256, 256>>>(inputs, a, b, decoded);
    DONE();
    for (int i = 0; i < n; i++) {
        EXPECT(a[i] == std::min(expected(e4m3_values, std::fabs(inputs[i]), 0), 0x7eu) + (std::signbit(inputs[i]) ? 0x80 : 0));
        EXPECT(b[i] == std::min(expected(e5m2_values, std::fabs(inputs[i]), 0), 0x7bu) + (std::signbit(inputs[i]) ? 0x80 : 0));
    }
    for (int i = 0; i < 256; i++) {
        double s = i & 0x80 ? -1 : 1;

        if ((i & 0x7f) < 0x7f) EXPECT(decoded[i] == s * e4m3_values.values[i & 0x7f]);
        if ((i & 0x7f) == 0x7f) EXPECT(decoded[i] != decoded[i]);
        if ((i & 0x7f) < 0x7c) EXPECT(decoded[256 + i] == s * e5m2_values.values[i & 0x7f]);
        if ((i & 0x7f) == 0x7c) EXPECT(decoded[256 + i] == s * HUGE_VALF);
        if ((i & 0x7f) > 0x7c) EXPECT(decoded[256 + i] != decoded[256 + i]);
    }
    EXPECT(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E5M2) == 0x7c && __nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E4M3) == 0x7f);
    CUDA(cudaFree(inputs));
    CUDA(cudaFree(decoded));
    CUDA(cudaFree(a));
    CUDA(cudaFree(b));
}

/* ---- the rest ---- */

__global__ void pairs(__half2 *p, __half *sum, __nv_bfloat16 *least)
{
    __half2 v = __floats2half2_rn(threadIdx.x, 1.5f), w = __half2half2(__float2half(2.0f));

    v = __hfma2(v, w, __float2half2_rn(0.5f));
    for (int d = 16; d; d /= 2) v = __hmax2(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (threadIdx.x == 0) {
        p[0] = v;
        p[1] = __hadd2(v, w) * w;
        *least = __hmin(__ushort_as_bfloat16(0x7fff), __hmin(__float2bfloat16(3), __float2bfloat16(-3)));
    }
    atomicAdd(sum, __half(0.5f));
    atomicAdd(&p[2], w);
}

static void test(int device)
{
    __half2 *p = managed<__half2>(4);
    __half *sum = managed<__half>(2);
    __nv_bfloat16 *least = managed<__nv_bfloat16>(1);

    check8();
    pairs<<<1, 32>>>(p, sum, least);
    DONE();
    EXPECT(__low2float(p[0]) == 62.5f && __high2float(p[0]) == 3.5f && __low2float(p[1]) == 129.0f);
    EXPECT(float(sum[0]) == 16.0f && float(sum[1]) == 0.0f && float(*least) == -3.0f && __high2float(p[2]) == 64.0f);
    CUDA(cudaFree(p));
    CUDA(cudaFree(sum));
    CUDA(cudaFree(least));
    if (device) return; /* the same code runs on all */
    check<__half>(half_values, 0x7c00, 1000);
    check<__nv_bfloat16>(bfloat_values, 0x7f80, 50);
}

int main()
{
    return on_all_devices(test);
}
