/* SPDX-License-Identifier: Apache-2.0 */
/**
 * format.cuh - formats of elements: `code` is an element in memory, `value` the type in which it is added and multiplied.
 * Results have the same bits as on host devices (device/host/redop.h): one rounding after every step, the positive quiet NaN of
 * the format, fp8 saturates.
 */
#ifndef KL_COLL_GPU_FORMAT_CUH
#define KL_COLL_GPU_FORMAT_CUH

#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <stdint.h>

#define ON_GPU static __device__ __forceinline__

ON_GPU float float_of(uint32_t bits)
{
    return __int_as_float((int)bits);
}

ON_GPU uint32_t bits_of(float value)
{
    return (uint32_t)__float_as_int(value);
}

/* ---- integers ---- */

template <class T> struct integer {
    typedef T code;
    typedef T value;
    ON_GPU T read(T x)
    {
        return x;
    }
    ON_GPU T write(T x)
    {
        return x;
    }
    ON_GPU T add(T a, T b)
    {
        return (T)(a + b);
    }
    ON_GPU T mul(T a, T b)
    {
        return (T)(a * b);
    }
    ON_GPU T factor(uint64_t bits)
    {
        return (T)bits;
    }
    ON_GPU T larger(T a, T b)
    {
        return a > b ? a : b;
    }
    ON_GPU T smaller(T a, T b)
    {
        return a < b ? a : b;
    }
};

typedef integer<uint8_t> u8;
typedef integer<uint32_t> u32;
typedef integer<uint64_t> u64;
typedef integer<int8_t> i8;
typedef integer<int32_t> i32;
typedef integer<int64_t> i64;

/* ---- floats ---- */

/* Codes are ordered like integers once the magnitude of negative ones is inverted: -0 is less than +0. */
template <class Code, class Signed, Code MAGNITUDE, Code INFINITE, Code QUIET> struct ordered {
    typedef Code code;
    ON_GPU Signed rank_of(Code x)
    {
        return (Signed)(x ^ ((Signed)x < 0 ? MAGNITUDE : (Code)0));
    }
    ON_GPU bool is_nan(Code x)
    {
        return (x & MAGNITUDE) > INFINITE;
    }
    ON_GPU Code larger(Code a, Code b)
    {
        return is_nan(a) || is_nan(b) ? QUIET : rank_of(a) > rank_of(b) ? a : b;
    }
    ON_GPU Code smaller(Code a, Code b)
    {
        return is_nan(a) || is_nan(b) ? QUIET : rank_of(a) < rank_of(b) ? a : b;
    }
};

/* Intrinsics are never contracted to fused operations. */
struct in_float {
    typedef float value;
    ON_GPU float add(float a, float b)
    {
        return __fadd_rn(a, b);
    }
    ON_GPU float mul(float a, float b)
    {
        return __fmul_rn(a, b);
    }
    ON_GPU float factor(uint64_t bits)
    {
        return float_of((uint32_t)bits);
    }
};

struct f32 : in_float, ordered<uint32_t, int32_t, 0x7fffffff, 0x7f800000, 0x7fc00000> {
    ON_GPU float read(uint32_t x)
    {
        return float_of(x);
    }
    ON_GPU uint32_t write(float x)
    {
        return x != x ? 0x7fc00000 : bits_of(x);
    }
};

struct f64 : ordered<uint64_t, int64_t, 0x7fffffffffffffff, 0x7ff0000000000000, 0x7ff8000000000000> {
    typedef double value;
    ON_GPU double read(uint64_t x)
    {
        return __longlong_as_double((long long)x);
    }
    ON_GPU uint64_t write(double x)
    {
        return x != x ? 0x7ff8000000000000 : (uint64_t)__double_as_longlong(x);
    }
    ON_GPU double add(double a, double b)
    {
        return __dadd_rn(a, b);
    }
    ON_GPU double mul(double a, double b)
    {
        return __dmul_rn(a, b);
    }
    ON_GPU double factor(uint64_t bits)
    {
        return read(bits);
    }
};

struct f16 : in_float, ordered<uint16_t, int16_t, 0x7fff, 0x7c00, 0x7e00> {
    ON_GPU float read(uint16_t x)
    {
        return __half2float(__ushort_as_half(x));
    }
    ON_GPU uint16_t write(float x)
    {
        return x != x ? 0x7e00 : __half_as_ushort(__float2half_rn(x));
    }
};

struct bf16 : in_float, ordered<uint16_t, int16_t, 0x7fff, 0x7f80, 0x7fc0> {
    ON_GPU float read(uint16_t x)
    {
        return float_of((uint32_t)x << 16);
    }
    ON_GPU uint16_t write(float x)
    {
        const uint32_t bits = bits_of(x);
        return x != x ? 0x7fc0 : (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
};

template <__nv_fp8_interpretation_t KIND, uint8_t QUIET> struct fp8 : in_float {
    ON_GPU float read(uint8_t x)
    {
        const __half_raw h = __nv_cvt_fp8_to_halfraw(x, KIND);
        return __half2float(__half(h));
    }
    ON_GPU uint8_t write(float x)
    {
        return x != x ? QUIET : (uint8_t)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, KIND);
    }
};

struct e4m3 : fp8<__NV_E4M3, 0x7f>, ordered<uint8_t, int8_t, 0x7f, 0x7e, 0x7f> {
};

struct e5m2 : fp8<__NV_E5M2, 0x7e>, ordered<uint8_t, int8_t, 0x7f, 0x7c, 0x7e> {
};

#endif
