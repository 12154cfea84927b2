/* SPDX-License-Identifier: Apache-2.0 */
/*
 * main.cu - a benchmark of one collective: processes, threads and devices, sizes, types and operations, in place and out of place.
 *
 * Every device is a rank; where there are fewer devices, ranks share them. By NCCL they
 * add up all numbers on which they have to agree: times, numbers of wrong elements, that all are ready.
 */
#include "job.h"
#include "table.h"
#include "verify.h"

#include <atomic>
#include <chrono>
#include <string.h>
#include <thread>
#include <unistd.h>

enum { LINE = 128 }; /* characters for a device in the list */

struct rank {
    int number, device;
    ncclComm_t comm;
    cudaStream_t stream;
    char *send, *recv, *expected;
    unsigned long long *wrong; /* device memory */
    double *shared;            /* device memory, for what ranks agree on */
};

/* A thread with its ranks. */
struct worker {
    const options &o;
    const job &j;
    int index, ranks, workers; /* its number in the job; of all workers */
    std::vector<rank> mine;
    double wrong = 0, bandwidth = 0;
    int rows = 0;
};

/* One line of the table. */
struct problem {
    size_t count; /* of a chunk */
    named_type type;
    named_op op;
    bool in_place;
};

/* ---- memory and communicators ---- */

static size_t chunks(bool many, int ranks)
{
    return many ? (size_t)ranks : 1;
}

static void open_ranks(worker &w)
{
    size_t bytes = w.o.last + 16;
    int present;

    CUDACHECK(cudaGetDeviceCount(&present));
    NCCLCHECK(ncclGroupStart());
    for (int g = 0; g < w.o.gpus; g++) {
        rank r = {};

        r.number = w.index * w.o.gpus + g;
        r.device = ((w.j.in_host * w.o.threads + w.index % w.o.threads) * w.o.gpus + g) % present;
        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
        CUDACHECK(cudaMalloc((void **)&r.send, bytes));
        CUDACHECK(cudaMalloc((void **)&r.recv, bytes));
        CUDACHECK(cudaMalloc((void **)&r.expected, bytes));
        CUDACHECK(cudaMalloc((void **)&r.wrong, sizeof *r.wrong));
        CUDACHECK(cudaMalloc((void **)&r.shared, sizeof *r.shared));
        w.mine.push_back(r);
    }
    for (rank &r : w.mine) {
        CUDACHECK(cudaSetDevice(r.device));
        NCCLCHECK(ncclCommInitRank(&r.comm, w.ranks, w.j.id, r.number));
    }
    NCCLCHECK(ncclGroupEnd());
}

static void close_ranks(worker &w)
{
    for (rank &r : w.mine) {
        CUDACHECK(cudaSetDevice(r.device));
        NCCLCHECK(ncclCommDestroy(r.comm));
        for (void *p : {(void *)r.send, (void *)r.recv, (void *)r.expected, (void *)r.wrong, (void *)r.shared})
            CUDACHECK(cudaFree(p));
        CUDACHECK(cudaStreamDestroy(r.stream));
    }
}

/* ---- what ranks agree on ---- */

/* The sum of what all workers say. Nobody returns before all have called. */
static double sum_over_workers(worker &w, double value)
{
    for (rank &r : w.mine) {
        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaMemcpyAsync(r.shared, &value, sizeof value, cudaMemcpyHostToDevice, r.stream));
        value = 0; /* once for a worker */
    }
    NCCLCHECK(ncclGroupStart());
    for (rank &r : w.mine) NCCLCHECK(ncclAllReduce(r.shared, r.shared, 1, ncclDouble, ncclSum, r.comm, r.stream));
    NCCLCHECK(ncclGroupEnd());
    for (rank &r : w.mine) {
        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaStreamSynchronize(r.stream));
        CUDACHECK(cudaMemcpy(&value, r.shared, sizeof value, cudaMemcpyDeviceToHost));
    }
    return value;
}

/* The list of devices, which the first worker prints. */
static void list_devices(worker &w)
{
    char line[LINE], host[32] = "";
    std::vector<char> lines((size_t)w.ranks * LINE);
    std::vector<char *> all;

    gethostname(host, sizeof host - 1);
    for (rank &r : w.mine) {
        cudaDeviceProp properties;
        char *list;

        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaGetDeviceProperties(&properties, r.device));
        snprintf(line, LINE, "#  Rank %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %.40s", r.number, getpid(), host,
                 r.device, properties.pciDomainID, properties.pciBusID, properties.pciDeviceID, properties.name);
        CUDACHECK(cudaMalloc((void **)&list, lines.size()));
        CUDACHECK(cudaMemcpyAsync(list + (size_t)r.number * LINE, line, LINE, cudaMemcpyHostToDevice, r.stream));
        all.push_back(list);
    }
    NCCLCHECK(ncclGroupStart());
    for (size_t i = 0; i < all.size(); i++)
        NCCLCHECK(ncclAllGather(all[i] + (size_t)w.mine[i].number * LINE, all[i], LINE, ncclChar, w.mine[i].comm,
                                w.mine[i].stream));
    NCCLCHECK(ncclGroupEnd());
    for (size_t i = 0; i < all.size(); i++) {
        CUDACHECK(cudaSetDevice(w.mine[i].device));
        CUDACHECK(cudaStreamSynchronize(w.mine[i].stream));
        CUDACHECK(cudaMemcpy(lines.data(), all[i], lines.size(), cudaMemcpyDeviceToHost));
        CUDACHECK(cudaFree(all[i]));
    }
    if (w.index == 0) print_devices(lines.data(), w.ranks, LINE);
}

/* ---- one problem ---- */

static call call_of(const worker &w, const rank &r, const problem &p)
{
    size_t element = size_of(p.type.type), own = (size_t)r.number * p.count * element;
    call c = {r.send, r.recv, p.count, p.type.type, p.op.op, w.o.root, r.number, w.ranks, r.comm, r.stream, element};

    if (p.in_place && benchmark.many_in) c.recv = r.send + own;
    if (p.in_place && !benchmark.many_in) c.send = r.recv + (benchmark.many_out ? own : 0);
    return c;
}

static void run_once(const worker &w, const problem &p)
{
    NCCLCHECK(ncclGroupStart());
    for (const rank &r : w.mine) NCCLCHECK(benchmark.run(call_of(w, r, p)));
    NCCLCHECK(ncclGroupEnd());
}

static void finish(const worker &w)
{
    for (const rank &r : w.mine) {
        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaStreamSynchronize(r.stream));
    }
}

/* Inputs as they have to be, outputs as they must not stay. */
static void put_inputs(const worker &w, const problem &p)
{
    for (const rank &r : w.mine) {
        call c = call_of(w, r, p);
        numbers n = {p.count * chunks(benchmark.many_in, w.ranks), 0, p.type.type, p.op.op, r.number, w.ranks};

        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaMemsetAsync(c.recv, 0x55, p.count * chunks(benchmark.many_out, w.ranks) * c.element, r.stream));
        put_numbers((void *)c.send, n, r.stream);
    }
}

static void put_expected(const worker &w, const rank &r, const problem &p, size_t element)
{
    for (size_t chunk = 0; chunk < chunks(benchmark.many_out, w.ranks); chunk++) {
        size_t from = (size_t)benchmark.source_chunk((int)chunk, r.number) * p.count;
        int source = benchmark.source_rank((int)chunk, r.number, w.o.root, w.ranks);
        numbers n = {p.count, from, p.type.type, p.op.op, source, w.ranks};

        put_numbers(r.expected + chunk * p.count * element, n, r.stream);
    }
}

static double wrong_elements(worker &w, const problem &p)
{
    unsigned long long wrong, sum = 0;

    put_inputs(w, p);
    run_once(w, p);
    for (rank &r : w.mine) {
        call c = call_of(w, r, p);
        numbers n = {p.count * chunks(benchmark.many_out, w.ranks), 0,      p.type.type, p.op.op,
                     benchmark.reduces ? FROM_ALL : r.number,       w.ranks};

        CUDACHECK(cudaSetDevice(r.device));
        CUDACHECK(cudaMemsetAsync(r.wrong, 0, sizeof *r.wrong, r.stream));
        if (benchmark.to_root && r.number != w.o.root) continue;
        put_expected(w, r, p, c.element);
        count_wrong(c.recv, r.expected, n, r.wrong, r.stream);
    }
    finish(w);
    for (rank &r : w.mine) {
        CUDACHECK(cudaMemcpy(&wrong, r.wrong, sizeof wrong, cudaMemcpyDeviceToHost));
        sum += wrong;
    }
    return sum_over_workers(w, (double)sum);
}

static measured measure(worker &w, const problem &p)
{
    measured m = {true, 0, 0, 0, -1};
    double bytes = (double)p.count * chunks(benchmark.divided, w.ranks) * size_of(p.type.type);

    if (p.in_place && !benchmark.in_place) return {false, 0, 0, 0, 0};
    put_inputs(w, p);
    for (int i = 0; i < w.o.warmup; i++) run_once(w, p);
    finish(w);
    sum_over_workers(w, 0);

    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < w.o.iterations; i++) run_once(w, p);
    finish(w);
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;

    m.us = sum_over_workers(w, took.count() * 1e6 / w.o.iterations) / w.workers;
    m.algbw = bytes / m.us / 1e3;
    m.busbw = m.algbw * benchmark.bus(w.ranks);
    if (w.o.check) m.wrong = wrong_elements(w, p);
    return m;
}

/* ---- all of them ---- */

static void one_row(worker &w, size_t size, const named_type &type, const named_op &op)
{
    size_t element = size_of(type.type), share = chunks(benchmark.divided, w.ranks), count = size / element / share;
    problem p = {count, type, op, false};
    measured m[2];

    for (int place = 0; place < 2; place++) {
        p.in_place = place == 1;
        m[place] = measure(w, p);
        if (!m[place].possible) continue;
        if (m[place].wrong > 0) w.wrong += m[place].wrong;
        w.bandwidth += m[place].busbw;
        w.rows++;
    }
    if (w.index == 0)
        print_row(count * share * element, count * share, type.name, benchmark.reduces ? op.name : "none",
                  benchmark.has_root ? w.o.root : -1, m);
}

static void all_rows(worker &w)
{
    std::vector<named_op> ops = w.o.ops;

    if (!benchmark.reduces) ops.resize(1);
    for (const named_type &type : w.o.types)
        for (const named_op &op : ops)
            for (size_t size = w.o.first; size <= w.o.last; size = w.o.factor > 1 ? size * w.o.factor : size + w.o.step)
                one_row(w, size, type, op);
}

static void work(worker &w)
{
    open_ranks(w);
    list_devices(w);
    if (w.index == 0) print_columns();
    all_rows(w);
    close_ranks(w);
}

int main(int argc, char **argv)
{
    job j = start_job(&argc, &argv);
    options o = read_options(argc, argv, benchmark.name);
    std::vector<worker> workers;
    std::vector<std::thread> threads;
    int first = j.process * o.threads, all = j.processes * o.threads;

    if (j.process == 0) print_head(o);
    for (int t = 0; t < o.threads; t++) workers.push_back({o, j, first + t, all * o.gpus, all, {}});
    for (worker &w : workers) threads.emplace_back([&w] { work(w); });
    for (std::thread &t : threads) t.join();

    double wrong = workers[0].wrong;
    if (j.process == 0) print_foot(wrong, workers[0].rows ? workers[0].bandwidth / workers[0].rows : 0);
    end_job();
    return wrong > 0;
}
