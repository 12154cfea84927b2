/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_speed.c [BYTES [SECONDS]] - collectives of several ranks on GPU 0: their time, and how much of the memory's rate they reach.
 *
 * Prints the GPU's facts, the measured rate of a copy, and a table; with GPU_SPEED_JSON=FILE, the same there, an object a
 * line. Sizes go up to BYTES (256M) of a rank; after SECONDS (60) the rest is left out, and the last line says so. Exit: 0,
 * 77 without a GPU, 1 after a failure. Changes no setting of the GPU.
 *
 * Limit: on one GPU each byte is read once and written once, at the rate of the copy. Below the size of the L2 cache more
 * than 100 % is possible.
 */
#include "base/clock.h"
#include "device/cuda/context.h"
#include "device/device.h"
#include "include/nccl.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 8, COPIES = 10, MOST_ROUNDS = 20, WARM_UP = 2 };

static const struct kl_cuda_driver *cu;
static const struct kl_cuda_context *context;
static FILE *json;
static double copy_rate; /* bytes read and written, in a second */
static uint64_t deadline;

static struct {
    ncclComm_t comm;
    uint64_t send, recv;
} rank[RANKS];

static void check(int rc, const char *step)
{
    if (!rc) return;
    fprintf(stderr, "gpu_speed: %s: %s (%d)\n", step, kl_cuda_error_name(cu, rc), rc);
    exit(1);
}

static void check_nccl(ncclResult_t rc, const char *step)
{
    if (!rc) return;
    fprintf(stderr, "gpu_speed: %s: %s\n", step, ncclGetLastError(NULL));
    exit(1);
}

/* ---- facts ---- */

static int attribute(int number)
{
    int value = -1;

    return cu->cuDeviceGetAttribute(&value, number, 0) ? -1 : value;
}

static void print_facts(void)
{
    static const struct {
        const char *name;
        int number;
    } facts[] = {{"processors", 16},     {"l2_bytes", 38},    {"compute_major", 75}, {"compute_minor", 76},
                 {"cooperative", 95},    {"flush", 98},       {"descriptors", 103},  {"gpudirect_rdma", 116},
                 {"memory_ops_64", 122}, {"ipc_events", 125}, {"multicast", 132},    {"mps", 133}};
    int (*get_name)(char *, int, int);
    char name[128] = "unknown";

    *(void **)&get_name = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuDeviceGetName");
    if (get_name) (void)get_name(name, sizeof name, 0);
    printf("GPU 0 of %d: %s%s, CUDA %d.%d\n", cu->devices, name, cu->stand_in ? " (the stand-in: CPUs)" : "",
           cu->version / 1000, cu->version % 1000 / 10);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        printf("%s%s %d", i ? ", " : "  ", facts[i].name, attribute(facts[i].number));
    printf("\n");
    if (!json) return;
    fprintf(json, "{\"gpu\": \"%s\", \"stand_in\": %s, \"cuda\": %d", name, cu->stand_in ? "true" : "false",
            cu->version);
    for (size_t i = 0; i < sizeof facts / sizeof facts[0]; i++)
        fprintf(json, ", \"%s\": %d", facts[i].name, attribute(facts[i].number));
    fprintf(json, "}\n");
}

/* ---- time ---- */

static void synchronize(void)
{
    check(cu->cuStreamSynchronize(NULL), "cuStreamSynchronize");
}

static double seconds_since(uint64_t began)
{
    return (double)(kl_now_ns() - began) / 1e9;
}

static void measure_copy(size_t bytes)
{
    for (int i = -WARM_UP; i < COPIES; i++) {
        if (!i) synchronize();
        const uint64_t began = kl_now_ns();
        check(cu->cuMemcpyAsync(rank[0].recv, rank[0].send, bytes, NULL), "a copy");
        synchronize();
        const double rate = 2 * (double)bytes / seconds_since(began);
        if (i >= 0 && rate > copy_rate) copy_rate = rate;
    }
    printf("copy of %zu bytes: %.1f GB/s, read and written\n", bytes, copy_rate / 1e9);
    if (json) fprintf(json, "{\"copy_bytes\": %zu, \"gb_s\": %.2f}\n", bytes, copy_rate / 1e9);
}

/* ---- operations ---- */

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static ncclResult_t all_reduce(int r, int n, size_t bytes)
{
    (void)n;
    return ncclAllReduce(at(rank[r].send), at(rank[r].recv), bytes / 4, ncclFloat, ncclSum, rank[r].comm, NULL);
}

static ncclResult_t all_gather(int r, int n, size_t bytes)
{
    return ncclAllGather(at(rank[r].send), at(rank[r].recv), bytes / (size_t)n, ncclInt8, rank[r].comm, NULL);
}

static ncclResult_t reduce_scatter(int r, int n, size_t bytes)
{
    return ncclReduceScatter(at(rank[r].send), at(rank[r].recv), bytes / 4 / (size_t)n, ncclFloat, ncclSum,
                             rank[r].comm, NULL);
}

static ncclResult_t broadcast(int r, int n, size_t bytes)
{
    (void)n;
    return ncclBroadcast(at(rank[r].send), at(rank[r].recv), bytes, ncclInt8, 0, rank[r].comm, NULL);
}

static ncclResult_t all_to_all(int r, int n, size_t bytes)
{
    return ncclAlltoAll(at(rank[r].send), at(rank[r].recv), bytes / (size_t)n, ncclInt8, rank[r].comm, NULL);
}

/* Traffic of the memory, and of the bus, for S bytes of each of n ranks: in units of S. */
static double both_ways(int n)
{
    return 2.0 * n;
}

static double one_more(int n)
{
    return n + 1.0;
}

static double bus_all_reduce(int n)
{
    return 2.0 * (n - 1) / n;
}

static double bus_part(int n)
{
    return (double)(n - 1) / n;
}

static double bus_whole(int n)
{
    (void)n;
    return 1;
}

static const struct operation {
    const char *name;
    ncclResult_t (*run)(int r, int n, size_t bytes);
    double (*moved)(int n), (*bus)(int n);
} operations[] = {
    {"all_reduce", all_reduce, both_ways, bus_all_reduce},  {"all_gather", all_gather, one_more, bus_part},
    {"reduce_scatter", reduce_scatter, one_more, bus_part}, {"broadcast", broadcast, one_more, bus_whole},
    {"all_to_all", all_to_all, both_ways, bus_part},
};

static void run_all(const struct operation *o, int n, size_t bytes)
{
    ncclGroupStart();
    for (int r = 0; r < n; r++) check_nccl(o->run(r, n, bytes), o->name);
    check_nccl(ncclGroupEnd(), o->name);
}

static void measure(const struct operation *o, int n, size_t bytes)
{
    int rounds = 0;

    for (int i = 0; i < WARM_UP; i++) run_all(o, n, bytes);
    synchronize();
    const uint64_t began = kl_now_ns();
    while (rounds < MOST_ROUNDS && (!rounds || kl_now_ns() < deadline)) {
        run_all(o, n, bytes);
        rounds++;
    }
    synchronize();
    const double s = seconds_since(began) / rounds, rate = (double)bytes / s;
    const double of_limit = 100 * o->moved(n) * rate / copy_rate;
    printf("%-15s %5d %11zu %11.1f %9.2f %9.2f %8.1f\n", o->name, n, bytes, s * 1e6, rate / 1e9, rate * o->bus(n) / 1e9,
           of_limit);
    if (!json) return;
    fprintf(json,
            "{\"operation\": \"%s\", \"ranks\": %d, \"bytes\": %zu, \"us\": %.1f, \"algbw\": %.3f, \"busbw\": %.3f, "
            "\"percent_of_limit\": %.1f}\n",
            o->name, n, bytes, s * 1e6, rate / 1e9, rate * o->bus(n) / 1e9, of_limit);
}

/* ---- ranks ---- */

static void join(int n)
{
    ncclUniqueId id;

    check_nccl(ncclGetUniqueId(&id), "ncclGetUniqueId");
    ncclGroupStart();
    for (int r = 0; r < n; r++) check_nccl(ncclCommInitRank(&rank[r].comm, n, id, r), "ncclCommInitRank");
    check_nccl(ncclGroupEnd(), "init");
}

static void leave(int n)
{
    ncclGroupStart();
    for (int r = 0; r < n; r++) check_nccl(ncclCommDestroy(rank[r].comm), "ncclCommDestroy");
    check_nccl(ncclGroupEnd(), "destroy");
}

/* False: the time is up. */
static bool measure_ranks(int n, size_t most)
{
    join(n);
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++)
        for (size_t bytes = 256; bytes <= most; bytes *= 16) {
            if (kl_now_ns() >= deadline) return false;
            measure(&operations[i], n, bytes);
        }
    leave(n);
    return true;
}

static size_t bytes_of(const char *text)
{
    char *end;
    const size_t n = strtoull(text, &end, 10);

    return n << (*end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0);
}

static void start(size_t most)
{
    check_nccl(kl_cuda_context_of(0, NULL, 0, &context), "GPU 0");
    check_nccl(kl_cuda_enter(context), "GPU 0");
    print_facts();
    for (int r = 0; r < RANKS; r++) {
        check(cu->cuMemAlloc(&rank[r].send, most), "memory of a rank");
        check(cu->cuMemAlloc(&rank[r].recv, most), "memory of a rank");
    }
    measure_copy(most);
}

int main(int argc, char **argv)
{
    const size_t most = argc > 1 ? bytes_of(argv[1]) : (size_t)256 << 20;
    const char *file = getenv("GPU_SPEED_JSON");
    bool complete = true;

    setenv("KOLO_DEVICES", "cuda", 1);
    if (kl_cuda_driver(&cu)) {
        printf("skipped: %s\n", kl_error_text());
        return 77;
    }
    deadline = kl_deadline_in_ms((argc > 2 ? strtoull(argv[2], NULL, 10) : 60) * 1000);
    if (file && !(json = fopen(file, "w"))) fprintf(stderr, "gpu_speed: %s cannot be written\n", file);
    start(most);
    printf("%-15s %5s %11s %11s %9s %9s %8s\n", "operation", "ranks", "bytes", "us", "algbw", "busbw", "% limit");
    for (int n = 2; n <= RANKS && complete; n *= 2) complete = measure_ranks(n, most);
    printf("%s\n", complete ? "measured: all sizes" : "measured: the time was up, the rest is left out");
    if (json) fclose(json);
    return 0;
}
