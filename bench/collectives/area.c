/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collectives/area.h"

#include "base/atomic.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SPINS = 200, TIMEOUT_S = 120 };

struct area {
    _Alignas(64) _Atomic unsigned arrived; /* of all rounds together */
    _Alignas(64) _Atomic unsigned passed;  /* rounds that all have reached */
    _Alignas(64) _Atomic unsigned turn;    /* even: rank 0 passes the line on, odd: rank 1 */
    _Alignas(64) double numbers[AREA_RANKS][AREA_NUMBERS];
    char note[AREA_NOTE_BYTES];
};

size_t area_bytes(void)
{
    return sizeof(struct area);
}

static struct area *map(int flags, int fd)
{
    void *p = mmap(NULL, sizeof(struct area), PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);

    if (p != MAP_FAILED) return p;
    perror("bench: mapping the ranks' common memory");
    return NULL;
}

struct area *area_create(void)
{
    return map(MAP_ANONYMOUS, -1);
}

struct area *area_open(const char *path)
{
    struct stat st;
    struct area *area = NULL;
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd < 0 || fstat(fd, &st))
        perror(path);
    else if ((size_t)st.st_size < sizeof *area)
        fprintf(stderr, "%s: %zu bytes are wanted\n", path, sizeof *area);
    else
        area = map(0, fd);
    if (fd >= 0) close(fd);
    return area;
}

static void give_up_at(time_t deadline, const struct area_end *end)
{
    if (time(NULL) < deadline) return;
    fprintf(stderr, "bench: rank %d waited %d s for the others\n", end->rank, TIMEOUT_S);
    _exit(1);
}

/* Until the counter has come that far. */
static void await(const struct area_end *end, const _Atomic unsigned *counter, unsigned value)
{
    time_t deadline = 0;

    for (int spins = 0; (int)(kl_load_acquire(counter) - value) < 0; spins++) {
        if (spins < SPINS) {
            kl_cpu_pause();
            continue;
        }
        if (!deadline) deadline = time(NULL) + TIMEOUT_S;
        sched_yield();
        if (!(spins % 4096)) give_up_at(deadline, end);
    }
}

void area_barrier(struct area_end *end)
{
    struct area *a = end->area;
    unsigned round = ++end->round, all = round * (unsigned)end->nranks;

    if (kl_fetch_add_acq_rel(&a->arrived, 1u) + 1 == all)
        kl_store_release(&a->passed, round);
    else
        await(end, &a->passed, round);
}

void area_largest(struct area_end *end, double *numbers, int count)
{
    memcpy(end->area->numbers[end->rank], numbers, (size_t)count * sizeof *numbers);
    area_barrier(end);
    for (int r = 0; r < end->nranks; r++)
        for (int i = 0; i < count; i++)
            if (end->area->numbers[r][i] > numbers[i]) numbers[i] = end->area->numbers[r][i];
    area_barrier(end);
}

void area_sum(struct area_end *end, double *numbers, int count)
{
    memcpy(end->area->numbers[end->rank], numbers, (size_t)count * sizeof *numbers);
    memset(numbers, 0, (size_t)count * sizeof *numbers);
    area_barrier(end);
    for (int r = 0; r < end->nranks; r++)
        for (int i = 0; i < count; i++) numbers[i] += end->area->numbers[r][i];
    area_barrier(end);
}

void area_tell(struct area_end *end, void *note, size_t bytes)
{
    if (!end->rank) memcpy(end->area->note, note, bytes);
    area_barrier(end);
    memcpy(note, end->area->note, bytes);
    area_barrier(end);
}

void area_pass(struct area_end *end, unsigned turns)
{
    struct area *a = end->area;
    unsigned last = end->turn + turns;

    /* Not end->turn: of ranks that are threads, both may lie in one cache line, which would be passed as well. */
    for (unsigned turn = end->turn + (unsigned)end->rank; (int)(turn - last) < 0; turn += 2) {
        await(end, &a->turn, turn);
        kl_store_release(&a->turn, turn + 1);
    }
    await(end, &a->turn, last);
    end->turn = last;
}
