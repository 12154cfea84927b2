/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions on multicast objects, of every type and operation, beside plain loops over the memory of the devices. */
#include "multicast.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t s32;
typedef int64_t s64;

LOAD1(add_u32, ".add.u32", u32, "r")
LOAD1(add_s32, ".relaxed.sys.global.add.s32", s32, "r")
LOAD1(add_u64, ".acquire.gpu.add.u64", u64, "l")
LOAD1(min_u32, ".weak.min.u32", u32, "r")
LOAD1(min_s32, ".relaxed.cta.min.s32", s32, "r")
LOAD1(min_u64, ".global.min.u64", u64, "l")
LOAD1(min_s64, ".min.s64", s64, "l")
LOAD1(max_u32, ".max.u32", u32, "r")
LOAD1(max_s32, ".max.s32", s32, "r")
LOAD1(max_u64, ".max.u64", u64, "l")
LOAD1(max_s64, ".max.s64", s64, "l")
LOAD1(and_b32, ".and.b32", u32, "r")
LOAD1(or_b32, ".or.b32", u32, "r")
LOAD1(xor_b32, ".xor.b32", u32, "r")
LOAD1(and_b64, ".and.b64", u64, "l")
LOAD1(or_b64, ".or.b64", u64, "l")
LOAD1(xor_b64, ".relaxed.gpu.global.xor.b64", u64, "l")
LOAD1(add_f32, ".relaxed.sys.global.add.f32", float, "f")
LOAD2(add_f32_2, ".add.v2.f32", float, "f")
LOAD4(add_f32_4, ".relaxed.sys.global.add.v4.f32", float, "f")
LOAD1(add_f64, ".add.f64", double, "d")
LOAD2(add_f16_2, ".add.v2.f16", u16, "h")
LOAD8(add_f16_8, ".add.v8.f16", u16, "h")
LOAD1(add_f16x2, ".add.f16x2", u32, "r")
LOAD4(add_f16x2_4, ".relaxed.sys.global.add.v4.f16x2", u32, "r")
LOAD4(wide_f16x2_4, ".relaxed.sys.global.add.acc::f32.v4.f16x2", u32, "r")
LOAD2(wide_f16_2, ".add.acc::f32.v2.f16", u16, "h")
LOAD1(min_f16x2, ".min.f16x2", u32, "r")
LOAD4(max_f16_4, ".max.v4.f16", u16, "h")
LOAD2(add_bf16_2, ".add.v2.bf16", u16, "h")
LOAD8(wide_bf16_8, ".add.acc::f32.v8.bf16", u16, "h")
LOAD2(add_bf16x2_2, ".add.v2.bf16x2", u32, "r")
LOAD4(wide_bf16x2_4, ".relaxed.sys.global.add.acc::f32.v4.bf16x2", u32, "r")
LOAD4(min_bf16x2_4, ".min.v4.bf16x2", u32, "r")
LOAD1(max_bf16x2, ".max.bf16x2", u32, "r")

CHANGE1(st_u32, "st.relaxed.sys.global.u32", u32, "r")
CHANGE1(st_b64, "st.b64", u64, "l")
CHANGE1(st_f64, "st.weak.global.f64", double, "d")
CHANGE2(st_f16_2, "st.v2.f16", u16, "h")
CHANGE4(st_f32_4, "st.release.sys.global.v4.f32", float, "f")
CHANGE2(st_f32_2, "st.v2.f32", float, "f")
CHANGE8(st_bf16_8, "st.v8.bf16", u16, "h")
CHANGE4(st_f16x2_4, "st.v4.f16x2", u32, "r")

CHANGE1(red_add_u32, "red.release.sys.global.add.u32", u32, "r")
CHANGE1(red_add_s32, "red.add.s32", s32, "r")
CHANGE1(red_add_u64, "red.relaxed.gpu.add.u64", u64, "l")
CHANGE1(red_min_s32, "red.min.s32", s32, "r")
CHANGE1(red_max_u64, "red.max.u64", u64, "l")
CHANGE1(red_min_s64, "red.min.s64", s64, "l")
CHANGE1(red_and_b32, "red.and.b32", u32, "r")
CHANGE1(red_or_b64, "red.or.b64", u64, "l")
CHANGE1(red_xor_b32, "red.xor.b32", u32, "r")
CHANGE1(red_add_f32, "red.add.f32", float, "f")
CHANGE4(red_add_f32_4, "red.add.v4.f32", float, "f")
CHANGE1(red_add_f64, "red.add.f64", double, "d")
CHANGE4(red_add_f16x2_4, "red.add.v4.f16x2", u32, "r")
CHANGE2(red_max_f16x2_2, "red.max.v2.f16x2", u32, "r")
CHANGE8(red_add_bf16_8, "red.add.v8.bf16", u16, "h")

/* An offset in the instruction, and all threads at the same place. */
__global__ void count(char *all)
{
    asm volatile("multimem.red.relaxed.sys.global.add.u32 [%0+64], %1;" ::"l"(all), "r"(1) : "memory");
}

/* ---- plain ---- */

static const auto add = [](auto a, auto b) { return a + b; };
static const auto least = [](auto a, auto b) { return b < a ? b : a; };
static const auto greatest = [](auto a, auto b) { return b > a ? b : a; };
static const auto both = [](auto a, auto b) { return a & b; };
static const auto either = [](auto a, auto b) { return a | b; };
static const auto unequal = [](auto a, auto b) { return a ^ b; };
static const auto second = [](auto, auto b) { return b; };
static const auto add_signed = [](s32 a, s32 b) { return (s32)((u32)a + (u32)b); };

static __half half_of(u16 bits)
{
    __half_raw raw;

    raw.x = bits;
    return raw;
}

static u16 bits_of(__half value)
{
    return __half_raw(value).x;
}

static __nv_bfloat16 brain_of(u16 bits)
{
    __nv_bfloat16_raw raw;

    raw.x = bits;
    return raw;
}

static u16 bits_of(__nv_bfloat16 value)
{
    return __nv_bfloat16_raw(value).x;
}

static const auto half_add = [](u16 a, u16 b) { return bits_of(__float2half((float)half_of(a) + (float)half_of(b))); };
static const auto brain_add = [](u16 a, u16 b) { return bits_of(__float2bfloat16((float)brain_of(a) + (float)brain_of(b))); };

/* Random halves are not equal numbers with different bits but for zeros, which are few: of those the first bits decide. */
static bool below(float a, float b)
{
    return a < b || (a == b && std::signbit(a) && !std::signbit(b));
}

template <class Of> static auto chosen(Of of, bool less)
{
    return [of, less](u16 a, u16 b) -> u16 {
        const float x = (float)of(a), y = (float)of(b);

        if (x != x && y != y) return 0x7fff;
        if (x != x || y != y) return x != x ? b : a;
        return below(y, x) == less ? b : a;
    };
}

template <class Of, class To> static auto wide(Of of, To to)
{
    return [of, to](const std::vector<u16> &copies) {
        float sum = (float)of(copies[0]);

        for (size_t d = 1; d < copies.size(); d++) sum += (float)of(copies[d]);
        return bits_of(to(sum));
    };
}

static const auto wide_half = wide(half_of, [](float x) { return __float2half(x); });
static const auto wide_brain = wide(brain_of, [](float x) { return __float2bfloat16(x); });

/* ---- cases ---- */

#define LOADS(n, kernel, ...)   check_load<n>(t, #kernel, kernel, __VA_ARGS__)
#define CHANGES(n, kernel, ...) check_change<n>(t, #kernel, kernel, __VA_ARGS__)

static void numbers(team &t)
{
    LOADS(1, add_u32, fold<u32>(add));
    LOADS(1, add_s32, fold<s32>(add_signed));
    LOADS(1, add_u64, fold<u64>(add));
    LOADS(1, min_u32, fold<u32>(least));
    LOADS(1, min_s32, fold<s32>(least));
    LOADS(1, min_u64, fold<u64>(least));
    LOADS(1, min_s64, fold<s64>(least));
    LOADS(1, max_u32, fold<u32>(greatest));
    LOADS(1, max_s32, fold<s32>(greatest));
    LOADS(1, max_u64, fold<u64>(greatest));
    LOADS(1, max_s64, fold<s64>(greatest));
    LOADS(1, and_b32, fold<u32>(both));
    LOADS(1, or_b32, fold<u32>(either));
    LOADS(1, xor_b32, fold<u32>(unequal));
    LOADS(1, and_b64, fold<u64>(both));
    LOADS(1, or_b64, fold<u64>(either));
    LOADS(1, xor_b64, fold<u64>(unequal));
    LOADS(1, add_f32, fold<float>(add));
    LOADS(2, add_f32_2, fold<float>(add));
    LOADS(4, add_f32_4, fold<float>(add));
    LOADS(1, add_f64, fold<double>(add));
}

static void small_numbers(team &t)
{
    const auto half_pair = lanes<u16, u32>(half_add);
    const auto brain_pair = lanes<u16, u32>(brain_add);

    LOADS(2, add_f16_2, fold<u16>(half_add));
    LOADS(8, add_f16_8, fold<u16>(half_add));
    LOADS(1, add_f16x2, fold<u32>(half_pair));
    LOADS(4, add_f16x2_4, fold<u32>(half_pair));
    LOADS(4, wide_f16x2_4, lanes_of_all<u16, u32>(wide_half));
    LOADS(2, wide_f16_2, wide_half);
    LOADS(1, min_f16x2, fold<u32>(lanes<u16, u32>(chosen(half_of, true))));
    LOADS(4, max_f16_4, fold<u16>(chosen(half_of, false)));
    LOADS(2, add_bf16_2, fold<u16>(brain_add));
    LOADS(8, wide_bf16_8, wide_brain);
    LOADS(2, add_bf16x2_2, fold<u32>(brain_pair));
    LOADS(4, wide_bf16x2_4, lanes_of_all<u16, u32>(wide_brain));
    LOADS(4, min_bf16x2_4, fold<u32>(lanes<u16, u32>(chosen(brain_of, true))));
    LOADS(1, max_bf16x2, fold<u32>(lanes<u16, u32>(chosen(brain_of, false))));
}

static void stores(team &t)
{
    CHANGES(1, st_u32, second);
    CHANGES(1, st_b64, second);
    CHANGES(1, st_f64, second);
    CHANGES(2, st_f16_2, second);
    CHANGES(4, st_f32_4, second);
    CHANGES(2, st_f32_2, second);
    CHANGES(8, st_bf16_8, second);
    CHANGES(4, st_f16x2_4, second);
}

static void reductions(team &t)
{
    CHANGES(1, red_add_u32, add);
    CHANGES(1, red_add_s32, add_signed);
    CHANGES(1, red_add_u64, add);
    CHANGES(1, red_min_s32, least);
    CHANGES(1, red_max_u64, greatest);
    CHANGES(1, red_min_s64, least);
    CHANGES(1, red_and_b32, both);
    CHANGES(1, red_or_b64, either);
    CHANGES(1, red_xor_b32, unequal);
    CHANGES(1, red_add_f32, add);
    CHANGES(4, red_add_f32_4, add);
    CHANGES(1, red_add_f64, add);
    CHANGES(4, red_add_f16x2_4, (lanes<u16, u32>(half_add)));
    CHANGES(2, red_max_f16x2_2, (lanes<u16, u32>(chosen(half_of, false))));
    CHANGES(8, red_add_bf16_8, brain_add);
    for (char *own : t.own) CUDA(cudaMemset(own, 0, 128));
    count<<<8, 128>>>(t.all);
    DONE();
    for (char *own : t.own) EXPECT(fetch<u32>(own + 64, 1)[0] == 8 * 128 && fetch<u32>(own, 1)[0] == 0);
}

int main()
{
    setenv("KOLO_HOST_DEVICES", "4", 0);
    setenv("KOLO_CUDA_MULTICAST", "1", 1);
    CU(cuInit(0));
    with_teams([](team &t) {
        numbers(t);
        small_numbers(t);
        stores(t);
        reductions(t);
    });
    std::printf("done\n");
    return 0;
}
