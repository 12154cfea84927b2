/* SPDX-License-Identifier: Apache-2.0 */
/* PTX that computes: each instruction against the value that the PTX ISA gives it. */
#include "check.h"

typedef unsigned long long u64;

#define WRONG(condition)                                                                                               \
    if (condition) atomicCAS(bad, 0, __LINE__)
#define ONE(text, a, want)                                                                                             \
    {                                                                                                                  \
        unsigned r;                                                                                                    \
        asm(text : "=r"(r) : "r"(a));                                                                                  \
        WRONG(r != (unsigned)(want));                                                                                  \
    }
#define TWO(text, a, b, want)                                                                                          \
    {                                                                                                                  \
        unsigned r;                                                                                                    \
        asm(text : "=r"(r) : "r"(a), "r"(b));                                                                          \
        WRONG(r != (unsigned)(want));                                                                                  \
    }
#define THREE(text, a, b, c, want)                                                                                     \
    {                                                                                                                  \
        unsigned r;                                                                                                    \
        asm(text : "=r"(r) : "r"(a), "r"(b), "r"(c));                                                                  \
        WRONG(r != (unsigned)(want));                                                                                  \
    }
#define FOUR(text, a, b, c, d, want)                                                                                   \
    {                                                                                                                  \
        unsigned r;                                                                                                    \
        asm(text : "=r"(r) : "r"(a), "r"(b), "r"(c), "r"(d));                                                          \
        WRONG(r != (unsigned)(want));                                                                                  \
    }
#define REAL(text, a, b, want)                                                                                         \
    {                                                                                                                  \
        float r;                                                                                                       \
        asm(text : "=f"(r) : "f"(a), "f"(b));                                                                          \
        WRONG(!(r == (want)));                                                                                         \
    }
#define LONG(text, a, b, want)                                                                                         \
    {                                                                                                                  \
        u64 r;                                                                                                         \
        asm(text : "=l"(r) : "l"((u64)(a)), "l"((u64)(b)));                                                            \
        WRONG(r != (u64)(want));                                                                                       \
    }

__device__ void integers(int *bad)
{
    TWO("add.u32 %0, %1, %2;", 0xffffffffu, 3, 2);
    TWO("add.sat.s32 %0, %1, %2;", 0x7fffffff, 3, 0x7fffffff);
    TWO("sub.s32 %0, %1, %2;", 3, 5, -2);
    TWO("mul.lo.u32 %0, %1, %2;", 0x10001, 0x10001, 0x20001);
    TWO("mul.hi.u32 %0, %1, %2;", 0x80000000u, 6, 3);
    TWO("mul.hi.s32 %0, %1, %2;", -1, 6, -1);
    THREE("mad.lo.s32 %0, %1, %2, %3;", -3, 7, 2, -19);
    THREE("mad.hi.u32 %0, %1, %2, %3;", 0x80000000u, 6, 1, 4);
    TWO("mul24.lo.u32 %0, %1, %2;", 0xff000003u, 5, 15);
    TWO("div.s32 %0, %1, %2;", -7, 2, -3);
    TWO("rem.s32 %0, %1, %2;", -7, 2, -1);
    TWO("rem.u32 %0, %1, %2;", 7, 4, 3);
    ONE("abs.s32 %0, %1;", -9, 9);
    ONE("neg.s32 %0, %1;", 9, -9);
    TWO("min.s32 %0, %1, %2;", -1, 1, -1);
    TWO("min.u32 %0, %1, %2;", -1, 1, 1);
    TWO("max.s32 %0, %1, %2;", -1, 1, 1);
    THREE("sad.u32 %0, %1, %2, %3;", 3, 10, 100, 107);
    LONG("mul.lo.u64 %0, %1, %2;", 1ull << 40, 3, 3ull << 40);
    LONG("mul.hi.u64 %0, %1, %2;", 1ull << 63, 6, 3);
    LONG("sub.u64 %0, %1, %2;", 1, 2, -1ll);
    {
        u64 r;

        asm("mul.wide.u32 %0, %1, %2;" : "=l"(r) : "r"(0x80000000u), "r"(4));
        WRONG(r != 1ull << 33);
        asm("mul.wide.s32 %0, %1, %2;" : "=l"(r) : "r"(-2), "r"(4));
        WRONG(r != (u64)-8);
        asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(r) : "r"(0x80000000u), "r"(2), "l"(5ull));
        WRONG(r != (1ull << 32) + 5);
    }
}

__device__ void carries(int *bad)
{
    unsigned lo, hi, top;

    asm("add.cc.u32 %0, %3, %4;\n\taddc.cc.u32 %1, %5, %6;\n\taddc.u32 %2, 0, 0;"
        : "=r"(lo), "=r"(hi), "=r"(top)
        : "r"(0xffffffffu), "r"(1), "r"(0xffffffffu), "r"(0));
    WRONG(lo != 0 || hi != 0 || top != 1);
    asm("sub.cc.u32 %0, %2, %3; subc.u32 %1, %4, %5;" : "=r"(lo), "=r"(hi) : "r"(1), "r"(2), "r"(7), "r"(3));
    WRONG(lo != 0xffffffffu || hi != 3);
    asm("mad.lo.cc.u32 %0, %2, %3, %4; madc.hi.u32 %1, %2, %3, 0;"
        : "=r"(lo), "=r"(hi)
        : "r"(0x80000000u), "r"(3), "r"(0x80000000u));
    WRONG(lo != 0 || hi != 2);
}

__device__ void bits(int *bad)
{
    TWO("and.b32 %0, %1, %2;", 0xff, 0x1f0, 0xf0);
    TWO("or.b32 %0, %1, %2;", 0xf, 0xf0, 0xff);
    TWO("xor.b32 %0, %1, %2;", 0xff, 0xf0, 0xf);
    ONE("not.b32 %0, %1;", 0, -1);
    ONE("cnot.b32 %0, %1;", 5, 0);
    TWO("shl.b32 %0, %1, %2;", 1, 31, 0x80000000u);
    TWO("shl.b32 %0, %1, %2;", 1, 32, 0);
    TWO("shr.u32 %0, %1, %2;", 0x80000000u, 31, 1);
    TWO("shr.s32 %0, %1, %2;", -8, 1, -4);
    TWO("shr.s32 %0, %1, %2;", -8, 99, -1);
    ONE("popc.b32 %0, %1;", 0xf0f, 8);
    ONE("clz.b32 %0, %1;", 1, 31);
    ONE("clz.b32 %0, %1;", 0, 32);
    ONE("bfind.u32 %0, %1;", 0x100, 8);
    ONE("bfind.s32 %0, %1;", -1, -1);
    ONE("bfind.shiftamt.u32 %0, %1;", 0x100, 23);
    ONE("brev.b32 %0, %1;", 1, 0x80000000u);
    THREE("bfe.u32 %0, %1, %2, %3;", 0xabcd, 4, 8, 0xbc);
    THREE("bfe.s32 %0, %1, %2, %3;", 0x80, 4, 4, -8);
    THREE("bfe.u32 %0, %1, %2, %3;", 0xf0000000u, 28, 10, 0xf);
    THREE("bfe.u32 %0, %1, %2, %3;", 0xf, 0, 0, 0);
    FOUR("bfi.b32 %0, %1, %2, %3, %4;", 0xff, 0x1000, 4, 4, 0x10f0);
    FOUR("bfi.b32 %0, %1, %2, %3, %4;", 0xff, 0x1000, 40, 4, 0x1000);
    TWO("bmsk.clamp.b32 %0, %1, %2;", 4, 8, 0xff0);
    TWO("szext.clamp.s32 %0, %1, %2;", 0x8, 4, -8);
    THREE("shf.l.wrap.b32 %0, %1, %2, %3;", 0x80000000u, 1, 1, 3);
    THREE("shf.r.wrap.b32 %0, %1, %2, %3;", 2, 1, 1, 0x80000001u);
    THREE("lop3.b32 %0, %1, %2, %3, 0x96;", 5, 3, 1, 5 ^ 3 ^ 1);
    THREE("prmt.b32 %0, %1, %2, %3;", 0x33221100u, 0x77665544u, 0x7410, 0x77441100u);
}

__device__ void choices(int *bad)
{
    THREE("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b32 %0, %1, %2, p; }", 7, 8, 1, 7);
    THREE("{ .reg .pred p; setp.ne.u32 p, %3, 0; selp.b32 %0, %1, %2, p; }", 7, 8, 0, 8);
    THREE("slct.b32.s32 %0, %1, %2, %3;", 7, 8, -1, 8);
    TWO("{ .reg .pred p, q; setp.lt.s32 p|q, %1, %2; selp.u32 %0, 1, 2, q; }", -1, 1, 2);
    TWO("{\n  .reg .pred %%p<3>;\n  setp.lt.u32 %%p0, %1, %2; // not for unsigned\n  setp.eq.or.u32 %%p1, %1, %2, "
        "!%%p0;\n"
        "  mov.u32 %0, 5;\n  @%%p1 add.u32 %0, %0, 1;\n  @!%%p1 sub.u32 %0, %0, 1;\n}",
        -1, 1, 6);
    TWO("{ .reg .pred p, q; setp.gt.u32 p, %1, 0; setp.gt.u32 q, %2, 9; and.pred p, p, q; not.pred p, p; selp.u32 %0, "
        "1, 0, p; }",
        1, 9, 1);
    TWO("set.lt.u32.s32 %0, %1, %2;", -1, 1, -1);
    TWO("{ .reg .u32 n; mov.u32 n, 0; mov.u32 %0, 0; again: add.u32 %0, %0, %1; add.u32 n, n, 1; { .reg .pred n1; "
        "setp.lt.u32 n1, n, %2; @n1 bra again; } }",
        3, 5, 15);
    TWO("{ .reg .u32 a; { .reg .u32 a; mov.u32 a, %1; } mov.u32 a, %2; mov.u32 %0, a; }", 1, 2, 2);
}

__device__ void moves(int *bad)
{
    TWO("{ .reg .b64 w; mov.b64 w, {%1, %2}; shr.u64 w, w, 16; mov.b64 {%0, _}, w; }", 0xaaaa0000u, 0xbbbb,
        0xbbbbaaaau);
    ONE("{ .reg .b16 a, b; mov.b32 {a, b}, %1; mov.b32 %0, {b, a}; }", 0x12345678, 0x56781234);
    ONE("cvt.u32.u8 %0, %1;", 0x1ff, 0xff);
    ONE("cvt.s32.s8 %0, %1;", 0x80, -128);
    ONE("cvt.sat.u8.s32 %0, %1;", 300, 255);
    {
        unsigned r;
        float f;
        double d;

        asm("cvt.rzi.s32.f32 %0, %1;" : "=r"(r) : "f"(-2.7f));
        WRONG(r != (unsigned)-2);
        asm("cvt.rni.s32.f32 %0, %1;" : "=r"(r) : "f"(2.5f));
        WRONG(r != 2);
        asm("cvt.rpi.u32.f32 %0, %1;" : "=r"(r) : "f"(-5.0f));
        WRONG(r != 0);
        asm("cvt.rn.f32.u32 %0, %1;" : "=f"(f) : "r"(7));
        WRONG(f != 7.0f);
        asm("cvt.rn.f32.f64 %0, %1;" : "=f"(f) : "d"(0.1));
        WRONG(f != 0.1f);
        asm("cvt.f64.f32 %0, %1;" : "=d"(d) : "f"(0.5f));
        WRONG(d != 0.5);
        asm("mov.b32 %0, 0f40490fdb;" : "=f"(f));
        WRONG(f != 3.14159274f);
        asm("mov.f64 %0, 0d3ff8000000000000;" : "=d"(d));
        WRONG(d != 1.5);
    }
}

__device__ void reals(int *bad)
{
    REAL("add.f32 %0, %1, %2;", 1.5f, 2.0f, 3.5f);
    REAL("add.sat.f32 %0, %1, %2;", 1.5f, 2.0f, 1.0f);
    REAL("mul.rn.f32 %0, %1, %2;", 1.5f, 2.0f, 3.0f);
    REAL("div.rn.f32 %0, %1, %2;", 3.0f, 2.0f, 1.5f);
    REAL("fma.rn.f32 %0, %1, %2, %2;", 3.0f, 2.0f, 8.0f);
    REAL("min.f32 %0, %1, %2;", 3.0f, 2.0f, 2.0f);
    REAL("max.ftz.f32 %0, %1, %2;", 3.0f, 2.0f, 3.0f);
    REAL("copysign.f32 %0, %1, %2;", -3.0f, 2.0f, -2.0f);
    REAL("{ .reg .f32 t; abs.f32 t, %1; neg.f32 %0, t; }", -3.0f, 2.0f, -3.0f);
    REAL("add.ftz.f32 %0, %1, %2;", 1e-40f, 0.0f, 0.0f);
    REAL("ex2.approx.ftz.f32 %0, %1;", 3.0f, 0.0f, 8.0f);
    REAL("lg2.approx.f32 %0, %1;", 8.0f, 0.0f, 3.0f);
    REAL("rcp.rn.f32 %0, %1;", 4.0f, 0.0f, 0.25f);
    REAL("sqrt.rn.f32 %0, %1;", 9.0f, 0.0f, 3.0f);
    REAL("rsqrt.approx.f32 %0, %1;", 4.0f, 0.0f, 0.5f);
    TWO("{ .reg .pred p; .reg .f32 a, b; mov.b32 a, %1; mov.b32 b, %2; setp.ltu.f32 p, a, b; selp.u32 %0, 1, 0, p; }",
        0x7fc00000, 0, 1);
    TWO("{ .reg .pred p; .reg .f32 a, b; mov.b32 a, %1; mov.b32 b, %2; setp.lt.f32 p, a, b; selp.u32 %0, 1, 0, p; }",
        0x7fc00000, 0, 0);
}

__device__ void lanes(int *bad)
{
    unsigned lane = threadIdx.x % 32, r, p;
    int sum = (int)lane;

    asm volatile("shfl.sync.up.b32 %0, %1, 3, 0, 0xffffffff;" : "=r"(r) : "r"(lane));
    WRONG(r != (lane < 3 ? lane : lane - 3));
    asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %2, 1, 0x1c1f, 0xffffffff; selp.u32 %1, 1, 0, p; }"
                 : "=r"(r), "=r"(p)
                 : "r"(lane));
    WRONG(r != (lane % 4 == 3 ? lane : lane + 1) || p != (lane % 4 != 3));
    asm volatile("shfl.sync.bfly.b32 %0, %1, 5, 0x1f, -1;" : "=r"(r) : "r"(lane));
    WRONG(r != (lane ^ 5));
    asm volatile("shfl.sync.idx.b32 %0, %1, 2, 0x181f, -1;" : "=r"(r) : "r"(lane));
    WRONG(r != (lane & 24) + 2);
    asm volatile("{ .reg .s32 r0; .reg .pred p; shfl.sync.up.b32 r0|p, %0, 1, 0, -1; @p add.s32 %0, r0, %0; }"
                 : "+r"(sum));
    WRONG(sum != (int)(lane ? 2 * lane - 1 : 0));
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.ballot.b32 %0, p, -1; }" : "=r"(r) : "r"(lane));
    WRONG(r != 31);
    asm volatile("{ .reg .pred p; setp.lt.u32 p, %1, 5; vote.sync.all.pred p, p, -1; selp.u32 %0, 1, 0, p; }"
                 : "=r"(r)
                 : "r"(lane));
    WRONG(r != 0);
    asm volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(r) : "r"(lane / 8));
    WRONG(r != 0xffu << lane / 8 * 8);
    asm volatile("redux.sync.max.u32 %0, %1, -1;" : "=r"(r) : "r"(lane));
    WRONG(r != 31);
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %1, 9; barrier.cta.red.popc.aligned.u32 %0, 2, p; }"
                 : "=r"(r)
                 : "r"(lane));
    WRONG(r != blockDim.x / 32);
}

__device__ void memory(int *bad, unsigned char *bytes)
{
    __shared__ __align__(16) unsigned tile[4];
    unsigned short h;
    unsigned at = (unsigned)__cvta_generic_to_shared(tile);

    asm volatile("{ .reg .u8 t; ld.global.u8 t, [%1+1]; cvt.u16.u8 %0, t; }" : "=h"(h) : "l"(bytes));
    WRONG(h != 200);
    asm volatile("ld.s8 %0, [%1+1];" : "=h"(h) : "l"(bytes));
    WRONG(h != (unsigned short)-56);
    asm volatile(
        "cp.async.ca.shared.global [%0], [%1], 16, 8;\n cp.async.commit_group;\n cp.async.wait_group 0;" ::"r"(at),
        "l"(bytes)
        : "memory");
    WRONG(tile[1] != 0x08070605u || tile[2] != 0);
}

__global__ void all(int *bad, unsigned char *bytes)
{
    integers(bad);
    carries(bad);
    bits(bad);
    choices(bad);
    moves(bad);
    reals(bad);
    lanes(bad);
    if (threadIdx.x == 0) memory(bad, bytes);
}

int main()
{
    return on_all_devices([](int) {
        static const unsigned char values[16] = {4, 200, 0, 0, 5, 6, 7, 8, 9};
        int *bad = managed<int>(1);
        unsigned char *bytes = managed<unsigned char>(16);

        for (int i = 0; i < 16; i++) bytes[i] = values[i];
        all<<<1, 64>>>(bad, bytes);
        DONE();
        if (*bad) std::fprintf(stderr, "instructions.cu:%d: another value\n", *bad);
        EXPECT(*bad == 0);
        CUDA(cudaFree(bad));
        CUDA(cudaFree(bytes));
    });
}
