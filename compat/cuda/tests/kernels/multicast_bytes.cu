/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions on multicast objects of numbers of 8 bits, which sm_100a has, beside plain loops. */
#include "multicast.cuh"

#include <cuda_fp16.h>
#include <cuda_fp8.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;

LOAD1(add_e4m3x4, ".add.e4m3x4", u32, "r")
LOAD4(half_e4m3x4_4, ".relaxed.sys.global.add.acc::f16.v4.e4m3x4", u32, "r")
LOAD2(add_e4m3x2_2, ".add.v2.e4m3x2", u16, "h")
LOAD8(max_e4m3x2_8, ".max.v8.e4m3x2", u16, "h")
LOAD4(add_e5m2x4_4, ".relaxed.sys.global.add.v4.e5m2x4", u32, "r")
LOAD2(half_e5m2x4_2, ".add.acc::f16.v2.e5m2x4", u32, "r")
LOAD1(min_e5m2x4, ".min.e5m2x4", u32, "r")
CHANGE4(st_e4m3x4_4, "st.relaxed.sys.global.v4.e4m3x4", u32, "r")
CHANGE2(st_e5m2x2_2, "st.v2.e5m2x2", u16, "h")

template <__nv_fp8_interpretation_t Kind> struct number {
    static float of(u8 code)
    {
        return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, Kind)));
    }

    static u8 code_of(float x)
    {
        return x != x ? (u8)0x7f : (u8)__nv_cvt_float_to_fp8(x, __NV_SATFINITE, Kind);
    }
};

/* Sums whose steps are rounded, to half or not. */
template <class N> static auto sum(bool to_half)
{
    return [to_half](const std::vector<u8> &copies) {
        float all = N::of(copies[0]);

        for (size_t d = 1; d < copies.size(); d++) {
            all += N::of(copies[d]);
            if (to_half) all = __half2float(__float2half(all));
        }
        return N::code_of(all);
    };
}

template <class N> static auto chosen(bool less)
{
    return [less](u8 a, u8 b) -> u8 {
        const float x = N::of(a), y = N::of(b);

        if (x != x && y != y) return 0x7f;
        if (x != x || y != y) return x != x ? b : a;
        if (x == y) return (a >> 7 == 1) == less ? a : b;
        return (x < y) == less ? a : b;
    };
}

int main()
{
    typedef number<__NV_E4M3> e4m3;
    typedef number<__NV_E5M2> e5m2;

    setenv("KOLO_HOST_DEVICES", "4", 0);
    setenv("KOLO_CUDA_MULTICAST", "1", 1);
    CU(cuInit(0));
    with_teams([](team &t) {
        const auto second = [](auto, auto b) { return b; };

        check_load<1>(t, "add_e4m3x4", add_e4m3x4, lanes_of_all<u8, u32>(sum<e4m3>(false)));
        check_load<4>(t, "half_e4m3x4_4", half_e4m3x4_4, lanes_of_all<u8, u32>(sum<e4m3>(true)));
        check_load<2>(t, "add_e4m3x2_2", add_e4m3x2_2, lanes_of_all<u8, u16>(sum<e4m3>(false)));
        check_load<8>(t, "max_e4m3x2_8", max_e4m3x2_8, fold<u16>(lanes<u8, u16>(chosen<e4m3>(false))));
        check_load<4>(t, "add_e5m2x4_4", add_e5m2x4_4, lanes_of_all<u8, u32>(sum<e5m2>(false)));
        check_load<2>(t, "half_e5m2x4_2", half_e5m2x4_2, lanes_of_all<u8, u32>(sum<e5m2>(true)));
        check_load<1>(t, "min_e5m2x4", min_e5m2x4, fold<u32>(lanes<u8, u32>(chosen<e5m2>(true))));
        check_change<4>(t, "st_e4m3x4_4", st_e4m3x4_4, second);
        check_change<2>(t, "st_e5m2x2_2", st_e5m2x2_2, second);
    });
    std::printf("done\n");
    return 0;
}
