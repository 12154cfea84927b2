/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coll_floor BYTES ...: the least cost of an all-reduce of two ranks that can both reach all inputs and outputs: two threads each
 * add half of both inputs and write it to both outputs, past the caches if these are smaller than the buffers. The threads only
 * wait for each other at the end. One line of JSON for each size.
 */
#include "bench/collectives/area.h"
#include "bench/collectives/start.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { BLOCKS = 15, STREAM_FROM = 2 << 20 };

struct floor {
    size_t nsizes, *sizes;
    float *a, *b, *c, *d; /* inputs and outputs */
};

static void add_through_caches(const struct floor *f, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) f->c[i] = f->d[i] = f->a[i] + f->b[i];
}

#ifdef __SSE2__
static void add_past_caches(const struct floor *f, size_t from, size_t to)
{
    for (size_t i = from; i + 4 <= to; i += 4) {
        __m128 sum = _mm_add_ps(_mm_load_ps(f->a + i), _mm_load_ps(f->b + i));
        _mm_stream_ps(f->c + i, sum);
        _mm_stream_ps(f->d + i, sum);
    }
    _mm_sfence();
}
#else
static void add_past_caches(const struct floor *f, size_t from, size_t to)
{
    add_through_caches(f, from, to);
}
#endif

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double measure_size(const struct floor *f, struct area_end *end, size_t bytes)
{
    size_t half = bytes / sizeof(float) / 8 * 4, from = (size_t)end->rank * half;
    int times = bytes < 1 << 20 ? 200 : 1;
    double blocks[BLOCKS];

    for (int i = 0; i < BLOCKS; i++) {
        area_barrier(end);
        double begin = seconds();
        for (int k = 0; k < times; k++)
            (bytes < STREAM_FROM ? add_through_caches : add_past_caches)(f, from, from + half);
        blocks[i] = (seconds() - begin) / times;
    }
    area_largest(end, blocks, BLOCKS);
    qsort(blocks, BLOCKS, sizeof *blocks, compare);
    return blocks[BLOCKS / 2];
}

static void run_rank(struct area_end *end, void *context)
{
    const struct floor *f = context;

    for (size_t i = 0; i < f->nsizes; i++) {
        double s = measure_size(f, end, f->sizes[i]);
        if (!end->rank) printf("{\"floor\": %zu, \"us\": %.3f}\n", f->sizes[i], s * 1e6);
    }
}

static float *pages(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED) exit(1);
    return memset(p, 0x3f, bytes);
}

int main(int argc, char **argv)
{
    size_t sizes[64], most = 0;
    struct floor f = {.sizes = sizes};

    for (int i = 1; i < argc && f.nsizes < 64; i++) {
        sizes[f.nsizes] = strtoull(argv[i], NULL, 10);
        if (sizes[f.nsizes] > most) most = sizes[f.nsizes];
        f.nsizes++;
    }
    f.a = pages(most + 64);
    f.b = pages(most + 64);
    f.c = pages(most + 64);
    f.d = pages(most + 64);
    return start_threads(2, run_rank, &f);
}
