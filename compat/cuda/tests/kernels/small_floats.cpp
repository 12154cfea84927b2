/* SPDX-License-Identifier: Apache-2.0 */
/* Results of cuda_fp16.h, cuda_bf16.h and cuda_fp8.h in host programs, as a sum of all results of each function: the lines are the
 * same with NVIDIA's headers as with ours. All codes of 16 bits are covered; of floats, each exponent with each rounding. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

static std::vector<float> floats;
static uint64_t sum;

template <class To, class From> static To bits(From from)
{
    To to = 0;

    memcpy(&to, &from, sizeof from);
    return to;
}

template <class To> static To code(unsigned value)
{
    unsigned short low = (unsigned short)value;
    To to;

    memcpy(&to, &low, sizeof to);
    return to;
}

static void add(uint64_t value)
{
    sum = (sum ^ value) * 1099511628211u;
    sum ^= sum >> 29;
}

static void add(float x)
{
    add(x == x ? (uint64_t)bits<uint32_t>(x) : 1);
}

static void say(const char *name)
{
    printf("%s %016llx\n", name, (unsigned long long)sum);
    sum = 0;
}

static void fill()
{
    for (uint32_t high = 0; high < 512; high++) {
        for (uint32_t m = 0; m < 256; m++) {
            for (uint32_t low : {0u, 1u, 0x0fffu, 0x1000u, 0x1001u, 0x7fffu})
                if (m % 8 == 0 || low == 0) {
                    uint32_t word = high << 23 | (m << 15 ^ low);
                    float x;

                    memcpy(&x, &word, sizeof x);
                    floats.push_back(x);
                }
        }
    }
}

/* Of all 65536 codes, or of all floats. */
#define OF_CODES(type, call)                                                                                           \
    for (unsigned i = 0; i < 65536; i++) {                                                                             \
        type x = code<type>(i);                                                                                        \
        add(call);                                                                                                     \
    }                                                                                                                  \
    say(#type " " #call)
#define OF_FLOATS(call)                                                                                                \
    for (float x : floats) add(bits<uint64_t>(call));                                                                  \
    say(#call)
/* For pairs of codes from a linear generator; NaN has one code. */
#define OF_PAIRS(type, call)                                                                                           \
    for (unsigned i = 0, r = 1; i < 300000; i++, r = r * 1664525 + 1013904223) {                                       \
        type x = code<type>(r >> 16), y = code<type>((r >> 5) ^ i), z = call;                                          \
        add(__hisnan(z) ? 1 : bits<uint64_t>(z));                                                                      \
    }                                                                                                                  \
    say(#type " " #call)

static void halves()
{
    OF_CODES(__half, __half2float(x));
    OF_FLOATS(__float2half_rn(x));
    OF_FLOATS(__float2half_rz(x));
    OF_FLOATS(__float2half_ru(x));
    OF_FLOATS(__float2half_rd(x));
    OF_FLOATS(__double2half(x * 1.0000000001));
    OF_CODES(__half, (uint64_t)__half2int_rz(x));
    OF_CODES(__half, (uint64_t)__half2uint_rz(x));
    OF_CODES(__half, (uint64_t)__half2short_rz(x));
    OF_CODES(__half, (uint64_t)__half2ll_rz(x));
    OF_CODES(__half, (uint64_t)__half2ull_rz(x));
    OF_PAIRS(__half, __hadd(x, y));
    OF_PAIRS(__half, __hsub(x, y));
    OF_PAIRS(__half, __hmul(x, y));
    OF_PAIRS(__half, __hdiv(x, y));
    OF_PAIRS(__half, __hmin(x, y));
    OF_PAIRS(__half, __hmax_nan(x, y));
}

static void bfloats()
{
    OF_CODES(__nv_bfloat16, __bfloat162float(x));
    OF_FLOATS(__float2bfloat16_rn(x));
    OF_FLOATS(__float2bfloat16_rz(x));
    OF_FLOATS(__float2bfloat16_ru(x));
    OF_FLOATS(__float2bfloat16_rd(x));
    OF_FLOATS(__double2bfloat16(x * 1.0000000001));
    OF_CODES(__nv_bfloat16, (uint64_t)__bfloat162int_rz(x));
    OF_CODES(__nv_bfloat16, (uint64_t)__bfloat162ll_rz(x));
    OF_PAIRS(__nv_bfloat16, __hadd(x, y));
    OF_PAIRS(__nv_bfloat16, __hmul(x, y));
    OF_PAIRS(__nv_bfloat16, __hdiv(x, y));
    OF_PAIRS(__nv_bfloat16, __hmin(x, y));
}

static void eights()
{
    for (auto kind : {__NV_E4M3, __NV_E5M2}) {
        for (auto saturate : {__NV_SATFINITE, __NV_NOSAT}) {
            OF_FLOATS(__nv_cvt_float_to_fp8(x, saturate, kind));
            OF_FLOATS(__nv_cvt_double_to_fp8(x * 1.0000000001, saturate, kind));
            OF_CODES(__half_raw, (uint64_t)__nv_cvt_halfraw_to_fp8(x, saturate, kind));
            OF_CODES(__nv_bfloat16_raw, (uint64_t)__nv_cvt_bfloat16raw_to_fp8(x, saturate, kind));
        }
        OF_CODES(__half_raw, (uint64_t)__nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)x.x, kind).x);
    }
    OF_CODES(__half_raw, (float)code<__nv_fp8_e4m3>(x.x));
    OF_CODES(__half_raw, (float)code<__nv_fp8_e5m2>(x.x));
    OF_CODES(__half_raw, (uint64_t)(int)code<__nv_fp8_e4m3>(x.x));
    OF_CODES(__half_raw, (uint64_t)(unsigned char)code<__nv_fp8_e5m2>(x.x));
    OF_CODES(__half_raw, (uint64_t)(long long)code<__nv_fp8_e5m2>(x.x));
}

#ifdef SCALES
static void scales()
{
    for (auto rounding : {cudaRoundZero, cudaRoundPosInf})
        for (auto saturate : {__NV_SATFINITE, __NV_NOSAT}) {
            OF_FLOATS(__nv_cvt_float_to_e8m0(x, saturate, rounding));
            OF_FLOATS(__nv_cvt_double_to_e8m0(x * 1.0000000001, saturate, rounding));
            OF_CODES(__nv_bfloat16_raw, (uint64_t)__nv_cvt_bfloat16raw_to_e8m0(x, saturate, rounding));
        }
    OF_CODES(__half_raw, (uint64_t)__nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)x.x).x);
    OF_CODES(__half_raw, (float)code<__nv_fp8_e8m0>(x.x));
    OF_FLOATS(__nv_fp8_e8m0(x).__x);
}
#endif

int main()
{
    fill();
#ifdef SCALES
    scales();
#endif
    halves();
    bfloats();
    eights();
    return 0;
}
