/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/collectives/measure.h"

#include "bench/collectives/cores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { LEAST_BLOCKS = 3, MOST_OPERATIONS = 1 << 24, WARM_OPERATIONS = 4096, REPETITIONS = 2, STRETCH = 8 };

/* One rank at one row. */
struct run {
    const struct measure_options *options;
    struct area_end *end;
    const struct peer *peer;
    struct row row;
    float *send, *recv, *input;
    unsigned version; /* of the input */
    double wrong;
    double exchange_ns;
    bool mixed; /* the cores were moved while the row was timed */
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void issue(struct run *r, bool counts)
{
    r->peer->issue(r->peer->state, &r->row, r->send, r->recv, counts);
}

static void finish(struct run *r)
{
    if (r->peer->finish) r->peer->finish(r->peer->state);
}

static void check(struct run *r)
{
    row_fill(&r->row, r->end->rank, ++r->version, r->input);
    row_spoil(&r->row, r->end->rank, r->recv);
    area_barrier(r->end);
    issue(r, true);
    finish(r);
    r->wrong += (double)row_wrong(&r->row, r->end->rank, r->version, r->recv);
}

/* Seconds of `operations` in a row. */
static double time_stream(struct run *r, int operations)
{
    area_barrier(r->end);
    double begin = now();

    for (int i = 0; i < operations; i++) issue(r, false);
    finish(r);
    return now() - begin;
}

/* The same, with an input that was just written. */
static double time_fresh(struct run *r, int operations)
{
    double sum = 0;

    for (int i = 0; i < operations; i++) {
        row_fill(&r->row, r->end->rank, ++r->version, r->input);
        area_barrier(r->end);
        double begin = now();
        issue(r, false);
        finish(r);
        sum += now() - begin;
    }
    return sum;
}

static double time_block(struct run *r, int operations)
{
    return r->options->fresh ? time_fresh(r, operations) : time_stream(r, operations);
}

/* Warms up, and returns the time of an operation, the same on all ranks: the least of some tries, as other programs may interrupt each of them. */
static double estimate(struct run *r)
{
    double least = r->options->budget_s;

    for (int operations = 1;; operations *= 4) {
        double took = now();
        time_block(r, operations);
        took = now() - took; /* with the writing of fresh inputs: it counts for the budget */
        area_largest(r->end, &took, 1);
        if (took / operations < least) least = took / operations;
        if (took > r->options->budget_s / 4 || operations >= WARM_OPERATIONS) return least;
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void print(const struct run *r, const double *blocks, int nblocks, int operations)
{
    double middle = (blocks[(nblocks - 1) / 2] + blocks[nblocks / 2]) / 2, sum = 0;
    double p99 = blocks[(99 * nblocks + 99) / 100 - 1]; /* nearest rank */

    for (int b = 0; b < nblocks; b++) sum += blocks[b];

    printf("{\"config\": \"%s\", \"op\": \"%s\", \"np\": %d, \"size\": %zu, \"bytes\": %zu, \"fresh\": %s, \"us\": "
           "%.4f, \"least\": %.4f, "
           "\"most\": %.4f, \"mean\": %.4f, \"p99\": %.4f, \"operations\": %d, \"wrong\": %.0f, \"exchange_ns\": %.1f, "
           "\"mixed\": %s}\n",
           r->options->name, row_name(r->row.op), r->row.nranks, r->row.asked, r->row.bytes,
           r->options->fresh ? "true" : "false", middle * 1e6, blocks[0] * 1e6, blocks[nblocks - 1] * 1e6,
           sum / nblocks * 1e6, p99 * 1e6, nblocks * operations, r->wrong, r->exchange_ns, r->mixed ? "true" : "false");
    fflush(stdout);
}

/* By so much that the time of an exchange is no longer the same but for noise. */
static bool moved(double before_ns, double after_ns)
{
    return before_ns > 1.6 * after_ns || after_ns > 1.6 * before_ns;
}

/* Fills up to `nblocks` blocks; fewer, but LEAST_BLOCKS, where other programs make them take many times the budget. Returns how many. */
static int time_blocks(struct run *r, double *blocks, int nblocks, int operations)
{
    const double began = now();
    double took = 0;
    int n = 0;

    while (n < nblocks && (n < LEAST_BLOCKS || took < STRETCH * r->options->budget_s)) {
        blocks[n++] = time_block(r, operations) / operations;
        took = now() - began;
        area_largest(r->end, &took, 1);
    }
    return n;
}

static int time_row(struct run *r, double *blocks, int nblocks, int operations)
{
    int n = 0;

    for (int repetition = 0; repetition <= REPETITIONS; repetition++) {
        double before = cores_apart_ns(r->end);
        n = time_blocks(r, blocks, nblocks, operations);
        double after = cores_apart_ns(r->end);
        r->exchange_ns = (before + after) / 2;
        r->mixed = moved(before, after);
        if (!r->mixed) break;
    }
    area_largest(r->end, blocks, n);
    return n;
}

static void measure_row(struct run *r)
{
    double *blocks = calloc((size_t)r->options->blocks, sizeof *blocks);

    if (!blocks) exit(1);
    check(r);
    double total = r->options->budget_s / estimate(r);
    if (r->options->operations) total = (double)r->options->operations * r->options->blocks;
    if (total < LEAST_BLOCKS) total = LEAST_BLOCKS;
    if (total > MOST_OPERATIONS) total = MOST_OPERATIONS;
    int nblocks = total < r->options->blocks ? (int)total : r->options->blocks, operations = (int)(total / nblocks);
    nblocks = time_row(r, blocks, nblocks, operations);
    check(r);
    area_sum(r->end, &r->wrong, 1);
    qsort(blocks, (size_t)nblocks, sizeof *blocks, compare);
    if (!r->end->rank) print(r, blocks, nblocks, operations);
    free(blocks);
}

static float *allocate(const struct peer *peer, size_t elements)
{
    size_t bytes = elements * sizeof(float);
    void *p = peer->allocate ? peer->allocate(peer->state, bytes)
                             : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p && p != MAP_FAILED) return p;
    fprintf(stderr, "bench: no memory for a buffer of %zu bytes\n", bytes);
    exit(1);
}

static struct row parse(const char *text, int nranks)
{
    struct row row;

    if (row_parse(&row, text, nranks)) return row;
    fprintf(stderr, "bench: \"%s\" is no row; OPERATION:BYTES is\n", text);
    exit(2);
}

void measure(const struct measure_options *options, struct area_end *end, const struct peer *peer)
{
    size_t in = 1, out = 1;

    for (int i = 0; i < options->nrows; i++) {
        struct row row = parse(options->rows[i], end->nranks);
        if (row.in > in) in = row.in;
        if (row.out > out) out = row.out;
    }
    float *send = allocate(peer, in), *recv = allocate(peer, out);
    for (int i = 0; i < options->nrows; i++) {
        struct run r = {.options = options,
                        .end = end,
                        .peer = peer,
                        .row = parse(options->rows[i], end->nranks),
                        .send = send,
                        .recv = recv};
        r.input = row_input(&r.row, end->rank, send, recv);
        measure_row(&r);
    }
}

void measure_pin(const struct measure_options *options, int rank)
{
    if (options->pin) cores_bind(rank);
}

static bool is_number(const char *text, long least, long most)
{
    char *end;

    if (!text) return false;
    const long value = strtol(text, &end, 10);
    return end != text && !*end && value >= least && value <= most;
}

struct measure_options measure_parse(int argc, char **argv)
{
    struct measure_options o = {.name = "", .budget_s = 0.04, .blocks = 20};
    int i = 1;

    for (; i < argc && !strncmp(argv[i], "--", 2); i++) {
        if (!strcmp(argv[i], "--fresh"))
            o.fresh = true;
        else if (!strcmp(argv[i], "--pin"))
            o.pin = true;
        else if (!strcmp(argv[i], "--name") && i + 1 < argc)
            o.name = argv[++i];
        else if (!strcmp(argv[i], "--ms") && i + 1 < argc)
            o.budget_s = strtod(argv[++i], NULL) * 1e-3;
        else if (!strcmp(argv[i], "--blocks") && is_number(argv[i + 1], LEAST_BLOCKS, AREA_NUMBERS))
            o.blocks = (int)strtol(argv[++i], NULL, 10);
        else if (!strcmp(argv[i], "--operations") && is_number(argv[i + 1], 1, MOST_OPERATIONS))
            o.operations = (int)strtol(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "bench: %s is no option, or wants a value\n", argv[i]);
            exit(2);
        }
    }
    o.rows = argv + i;
    o.nrows = argc - i;
    return o;
}
