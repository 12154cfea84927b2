/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of small elements come by words of 8 bytes: a kernel that reads the words of another one never sees one half of a word new, and the
 * other one old. Programs that send 4 bytes of data with 4 bytes of a number rely on that. */
#include "check.h"

enum { ROUNDS = 2000 };

static __device__ unsigned data_of(unsigned round)
{
    return round * 2654435761u;
}

static __device__ unsigned long long look(const unsigned long long *p)
{
    unsigned long long value;

    asm volatile("ld.volatile.global.u64 %0, [%1];" : "=l"(value) : "l"(p) : "memory");
    return value;
}

/* Either side waits for the other after each round. */
__global__ void writer(unsigned *line, const unsigned long long *seen, int width)
{
    for (unsigned i = 1; i <= ROUNDS; i++) {
        unsigned d = data_of(i);

        if (width == 4)
            asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(line), "r"(d), "r"(i), "r"(~d), "r"(i) : "memory");
        else
            asm volatile("st.relaxed.sys.global.v2.b32 [%0], {%1,%2};" ::"l"(line), "r"(d), "r"(i) : "memory");
        while (look(seen) < i) {
        }
    }
}

__global__ void reader(const unsigned *line, unsigned long long *seen, int width, int *torn)
{
    for (unsigned i = 1; i <= ROUNDS; i++) {
        unsigned d, e, f, g;

        do {
            unsigned long long other = look(seen); /* where the thread may give way, so that it does so in many places */

            if (other >= i) ++*torn;
            if (width == 4) {
                asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(d), "=r"(f), "=r"(e), "=r"(g) : "l"(line) : "memory");
            } else {
                asm volatile("ld.relaxed.sys.global.v2.b32 {%0,%1}, [%2];" : "=r"(d), "=r"(f) : "l"(line) : "memory");
                e = ~d;
                g = f;
            }
        } while (f != i || g != i);
        if (d != data_of(i) || e != ~data_of(i)) ++*torn;
        asm volatile("st.volatile.global.u64 [%0], %1;" ::"l"(seen), "l"((unsigned long long)i) : "memory");
    }
}

/* Elements of each size come back as they were. */
__global__ void vectors(unsigned char *from, unsigned char *to)
{
    unsigned short a, b, c, d;
    float x, y;
    unsigned p, q;

    asm volatile("ld.global.v4.u16 {%0,%1,%2,%3}, [%4];" : "=h"(a), "=h"(b), "=h"(c), "=h"(d) : "l"(from) : "memory");
    asm volatile("st.global.v4.u16 [%0], {%1,%2,%3,%4};" ::"l"(to), "h"(a), "h"(b), "h"(c), "h"(d) : "memory");
    asm volatile("ld.global.v2.u16 {%0,%1}, [%2+8];" : "=h"(a), "=h"(b) : "l"(from) : "memory");
    asm volatile("st.global.v2.u16 [%0+8], {%1,%2};" ::"l"(to), "h"(a), "h"(b) : "memory");
    asm volatile("ld.global.v2.u8 {%0,%1}, [%2+12];" : "=r"(p), "=r"(q) : "l"(from) : "memory");
    asm volatile("st.global.v2.u8 [%0+12], {%1,%2};" ::"l"(to), "r"(p), "r"(q) : "memory");
    asm volatile("ld.global.v2.f32 {%0,%1}, [%2+16];" : "=f"(x), "=f"(y) : "l"(from) : "memory");
    asm volatile("st.global.v2.f32 [%0+16], {%1,%2};" ::"l"(to), "f"(x), "f"(y) : "memory");
}

int main()
{
    unsigned char *bytes = managed<unsigned char>(64);
    int *torn = managed<int>(1);
    cudaStream_t stream[2];

    for (cudaStream_t &s : stream) CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int width = 2; width <= 4; width += 2) {
        unsigned long long *words;

        CUDA(cudaMalloc((void **)&words, 512));
        CUDA(cudaMemset(words, 0, 512));
        DONE();
        reader<<<1, 1, 0, stream[0]>>>((unsigned *)words, words + 32, width, torn);
        writer<<<1, 1, 0, stream[1]>>>((unsigned *)words, words + 32, width);
        DONE();
        EXPECT(!*torn);
        CUDA(cudaFree(words));
    }
    for (int i = 0; i < 32; i++) bytes[i] = (unsigned char)(7 * i + 1);
    vectors<<<1, 1>>>(bytes, bytes + 32);
    DONE();
    for (int i = 0; i < 24; i++) EXPECT(bytes[32 + i] == (i == 14 || i == 15 ? 0 : bytes[i]));
    CUDA(cudaFree(bytes));
    CUDA(cudaFree(torn));
    return 0;
}
