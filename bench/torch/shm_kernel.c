/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shm_kernel.c - an all-reduce as inference stacks for CPUs carry it, written anew after the method: no code of theirs.
 *
 * Each rank copies its data into a buffer that all processes of the host map, says so in a flag, and adds up the buffers of all ranks. Two buffers
 * alternate: a rank that fills one of them again knows that all have read it, since all have said that the next one is full. Sums of float and bfloat16,
 * up to SHM_MOST bytes, all ranks on one host. A wait spins and never yields. The threads of OpenMP share the copy and the sum.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SHM_MOST = 1 << 20, SHM_RANKS = 8, ALONE = 1 << 14 }; /* ALONE: fewer elements are one thread's work */

struct segment {
    struct {
        _Alignas(128) _Atomic uint64_t full; /* all-reduces whose data are in their buffer */
    } flags[SHM_RANKS];
    _Alignas(4096) unsigned char buffers[SHM_RANKS][2][SHM_MOST];
};

struct group {
    struct segment *segment;
    int rank, nranks;
    uint64_t number;
};

static struct group own;

/** Join the group whose segment is the file `path`, which the first to come makes. 0, or -1 where the system refuses. */
int shm_join(const char *path, int rank, int nranks)
{
    int fd = open(path, O_RDWR | O_CREAT, 0600);

    if (fd < 0 || nranks > SHM_RANKS || ftruncate(fd, sizeof(struct segment))) return -1;
    void *p = mmap(NULL, sizeof(struct segment), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    own = (struct group){p, rank, nranks, 0};
    return p == MAP_FAILED ? -1 : 0;
}

static float widened(uint16_t x)
{
    uint32_t bits = (uint32_t)x << 16;
    float f;

    memcpy(&f, &bits, sizeof f);
    return f;
}

static uint16_t rounded(float f) /* to the nearest, ties to even; NaN is not looked for */
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof bits);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The buffers of all ranks for this operation, after the caller's data are in its own and all have said the same. */
static void exchange(const void *data, size_t count, size_t width, const void *of[SHM_RANKS])
{
    const unsigned turn = own.number++ & 1;
    unsigned char *mine = own.segment->buffers[own.rank][turn];

#pragma omp parallel for schedule(static) if (count > ALONE)
    for (size_t at = 0; at < count; at += ALONE) {
        size_t n = count - at < ALONE ? count - at : ALONE;
        memcpy(mine + at * width, (const unsigned char *)data + at * width, n * width);
    }
    atomic_store_explicit(&own.segment->flags[own.rank].full, own.number, memory_order_release);
    for (int r = 0; r < own.nranks; r++) {
        while (atomic_load_explicit(&own.segment->flags[r].full, memory_order_acquire) < own.number) continue;
        of[r] = own.segment->buffers[r][turn];
    }
}

int shm_sum_float(float *data, size_t count)
{
    const void *of[SHM_RANKS];

    if (count * sizeof *data > SHM_MOST) return -1;
    exchange(data, count, sizeof *data, of);
#pragma omp parallel for schedule(static) if (count > ALONE)
    for (size_t at = 0; at < count; at += ALONE) {
        size_t end = at + ALONE < count ? at + ALONE : count;
        const float *first = of[0];
        for (size_t i = at; i < end; i++) data[i] = first[i];
        for (int r = 1; r < own.nranks; r++) {
            const float *next = of[r];
            for (size_t i = at; i < end; i++) data[i] += next[i];
        }
    }
    return 0;
}

int shm_sum_bfloat16(uint16_t *data, size_t count)
{
    const void *of[SHM_RANKS];

    if (count * sizeof *data > SHM_MOST) return -1;
    exchange(data, count, sizeof *data, of);
#pragma omp parallel for schedule(static) if (count > ALONE)
    for (size_t at = 0; at < count; at += 256) { /* partial sums in a register file's worth of floats */
        size_t n = count - at < 256 ? count - at : 256;
        float sums[256] = {0};
        for (int r = 0; r < own.nranks; r++) {
            const uint16_t *from = (const uint16_t *)of[r] + at;
            for (size_t i = 0; i < n; i++) sums[i] += widened(from[i]);
        }
        for (size_t i = 0; i < n; i++) data[at + i] = rounded(sums[i]);
    }
    return 0;
}
