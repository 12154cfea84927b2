/* SPDX-License-Identifier: Apache-2.0 */
/* Functions on integers, and on words of two halves or four bytes: each against numbers worked out by hand. */
#include "check.h"

__global__ void scalars(unsigned long long *wrong)
{
    const auto is = [&](long long value, long long expected) { if (value != expected) atomicAdd(wrong, 1ull); };

    is(umin(1u, 0xfffffff0u), 1), is(umax(1u, 0xfffffff0u), 0xfffffff0ll);
    is(llmin(-5ll, 1ll << 40), -5), is(llmax(-5ll, 1ll << 40), 1ll << 40);
    is((long long)ullmin(~0ull, 7ull), 7), is((long long)ullmax(~0ull, 7ull), -1);
    is(__mulhi(-2, 0x40000000), -1), is(__umulhi(0x80000000u, 6u), 3);
    is(__mul64hi(-1ll, 5ll), -1), is((long long)__umul64hi(~0ull, 2ull), 1);
    is(__byte_perm(0x33221100u, 0x77665544u, 0x6420u), 0x66442200);
    is(__byte_perm(0x80u, 0, 0x4448u), 0xff);
    is(__funnelshift_l(0x80000001u, 0x12345678u, 4), 0x23456788), is(__funnelshift_r(0x80000001u, 0x12345678u, 4), 0x88000000ll);
    is(__funnelshift_lc(1u, 2u, 40), 1), is(__funnelshift_rc(1u, 2u, 40), 2);
    is(__brev(1u), 0x80000000ll), is(__sad(-3, 4, 10), 17), is(__uhadd(~0u, 1u), 0x80000000ll);
    is(__fns(0xb0u, 4, 2), 5), is(__fns(0xb0u, 31, -1), 7), is(__fns(0xb0u, 8, 1), 0xffffffffll), is(__fns(1u, 0, 0), 0);
    is(__dp4a(0x01ff0203, 0x02020202, 5), 15), is(__dp4a(0x01ff0203u, 0x02020202u, 5u), 527);
    is(__dp2a_lo((int)0xffff0003, 0x05060708, 1), 1 + 24 - 7), is(__dp2a_hi((int)0xffff0003, 0x05060708, 1), 1 + 18 - 5);
    is(__dp2a_hi(0xffff0003u, 0x05060708u, 1u), 1 + 18 + 5 * 0xffff);
    is(__dp4a(make_char4(1, -1, 2, 3), make_char4(2, 2, 2, 2), 5), 15), is(__dp2a_lo(make_short2(3, -1), make_char4(8, 7, 6, 5), 1), 18);
}

__global__ void halves_and_bytes(unsigned long long *wrong)
{
    const auto is = [&](unsigned value, unsigned expected) { if (value != expected) atomicAdd(wrong, 1ull); };
    const unsigned a = 0x7fff8001u, b = 0x0001ffffu, c = 0x80ff7f01u, d = 0x01010101u;

    is(__vadd2(a, b), 0x80008000u), is(__vadd4(c, d), 0x81008002u), is(__vsub2(a, b), 0x7ffe8002u), is(__vsub4(c, d), 0x7ffe7e00u);
    is(__vaddss2(a, b), 0x7fff8000u), is(__vaddus2(a, b), 0x8000ffffu), is(__vaddss4(c, d), 0x81007f02u), is(__vaddus4(c, d), 0x81ff8002u);
    is(__vsubss2(a, b), 0x7ffe8002u), is(__vsubus2(a, b), 0x7ffe0000u), is(__vsubss4(c, d), 0x80fe7e00u), is(__vsubus4(0u, d), 0u);
    is(__vabs2(a), 0x7fff7fffu), is(__vabs4(c), 0x80017f01u), is(__vabsss4(c), 0x7f017f01u), is(__vneg4(c), 0x800181ffu), is(__vnegss4(c), 0x7f0181ffu);
    is(__vabsdiffu2(a, b), 0x7ffe7ffeu), is(__vabsdiffs2(a, b), 0x7ffe7ffeu), is(__vabsdiffs4(c, d), 0x81027e00u), is(__vabsdiffu4(c, d), 0x7ffe7e00u);
    is(__vsadu4(c, d), 0x7f + 0xfe + 0x7e), is(__vsads4(c, d), 0x81 + 2 + 0x7e), is(__vsadu2(a, b), 2 * 0x7ffe);
    is(__vavgu4(c, d), 0x41804001u), is(__vavgs4(0xff030200u, 0xfe000100u), 0xfe020200u), is(__vhaddu4(c, d), 0x40804001u);
    is(__vcmpeq4(c, d), 0x000000ffu), is(__vcmpne2(a, a), 0u), is(__vcmpgts4(c, d), 0x0000ff00u), is(__vcmpgtu4(c, d), 0xffffff00u);
    is(__vcmpges2(a, b), 0xffff0000u), is(__vcmpleu2(a, b), 0x0000ffffu), is(__vsetlts4(c, d), 0x01010000u), is(__vseteq4(c, d), 1u);
    is(__vmaxs4(c, d), 0x01017f01u), is(__vmaxu4(c, d), 0x80ff7f01u), is(__vmins2(a, b), 0x00018001u), is(__vminu2(a, b), 0x00018001u);
    is((unsigned)__vimax3_s32(-1, 5, 3), 5u), is(__vimin3_u16x2(a, b, 0x00020002u), 0x00010002u), is((unsigned)__vimax3_s32_relu(-1, -5, -3), 0u);
    is((unsigned)__viaddmax_s32(1, 2, 0), 3u), is(__viaddmax_s16x2_relu(0xffff0001u, 0xffff0001u, 0x80008000u), 2u), is(__viaddmin_u32(~0u, 1u, 5u), 0u);
    is((unsigned)__vimin_s32_relu(-4, 3), 0u), is(__vimax_s16x2_relu(0xffff0003u, 0xfffe0001u), 3u);

    bool hi, lo;
    is(__vibmax_s16x2(a, b, &hi, &lo), 0x7fffffffu), is(hi, 1), is(lo, 0);
    is((unsigned)__vibmin_s32(-1, -1, &lo), ~0u), is(lo, 1);
}

static void test(int)
{
    unsigned long long *wrong = managed<unsigned long long>(1);

    scalars<<<2, 33>>>(wrong);
    DONE();
    EXPECT(*wrong == 0);
    halves_and_bytes<<<2, 33>>>(wrong);
    DONE();
    EXPECT(*wrong == 0);
    CUDA(cudaFree(wrong));
}

int main()
{
    return on_all_devices(test);
}
