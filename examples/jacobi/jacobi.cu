/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jacobi.cu - heat in a plate, by several devices of several processes.
 *
 *     jacobi [PROCESSES [DEVICES [SIZE [ITERATIONS]]]]
 *
 * The plate of SIZE x SIZE points is cut into bands of rows, one for each device. An iteration makes each point the mean of its four
 * neighbours, for which bands exchange their outer rows first. Two iterations, with the largest change of the second, are one captured graph,
 * which is launched again and again. The result has to be that of the host, to the last bit.
 */
#include "../processes.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

constexpr int WIDTH = 32, HEIGHT = 8; /* of a block: a row of it is a warp */
constexpr double MOVED = 1e-3;        /* a point that changed by more counts as moved */

struct change { /* in an iteration; both are sums or maxima of whole numbers, so no order of adding them matters */
    unsigned long long largest; /* the bits of a double >= 0, which compare like it */
    unsigned long long moved;   /* how many points */
};

/* `in` and `out` have a row more at either end, which is the neighbour's, and a column at either end that stays. */
__global__ void relax(const double *in, double *out, int columns, int rows, change *c)
{
    __shared__ double tile[HEIGHT + 2][WIDTH + 2];
    __shared__ double largest_of_row[HEIGHT];
    int tx = threadIdx.x, ty = threadIdx.y;
    int column = blockIdx.x * WIDTH + tx + 1, row = blockIdx.y * HEIGHT + ty + 1;
    bool inside = column < columns - 1 && row <= rows;
    size_t at = (size_t)row * columns + column;
    double change_here = 0;

    if (inside) {
        bool last_column = tx == WIDTH - 1 || column == columns - 2, last_row = ty == HEIGHT - 1 || row == rows;

        tile[ty + 1][tx + 1] = in[at];
        if (tx == 0) tile[ty + 1][0] = in[at - 1];
        if (last_column) tile[ty + 1][tx + 2] = in[at + 1];
        if (ty == 0) tile[0][tx + 1] = in[at - columns];
        if (last_row) tile[ty + 2][tx + 1] = in[at + columns];
    }
    __syncthreads();
    if (inside) {
        double mean = 0.25 * ((tile[ty][tx + 1] + tile[ty + 2][tx + 1]) + (tile[ty + 1][tx] + tile[ty + 1][tx + 2]));

        change_here = fabs(mean - tile[ty + 1][tx + 1]);
        out[at] = mean;
    }

    int moved = __syncthreads_count(change_here > MOVED);
    for (int other = WIDTH / 2; other; other /= 2)
        change_here = fmax(change_here, __shfl_xor_sync(0xffffffffu, change_here, other));
    if (tx == 0) largest_of_row[ty] = change_here;
    __syncthreads();
    if (tx == 0 && ty == 0) {
        for (int y = 1; y < HEIGHT; y++) change_here = fmax(change_here, largest_of_row[y]);
        atomicMax(&c->largest, (unsigned long long)__double_as_longlong(change_here));
        atomicAdd(&c->moved, (unsigned long long)moved);
    }
}

/* ---- the plate ---- */

/* Warm on the left, and above more and more to the right; cold elsewhere. */
static double start(int row, int column, int size)
{
    if (column == 0) return 1;
    return row == 0 ? 1 - (double)column / size : 0;
}

static std::vector<double> host_plate(int size, int iterations, change *c)
{
    std::vector<double> plate((size_t)size * size), next;

    for (int row = 0; row < size; row++)
        for (int column = 0; column < size; column++) plate[(size_t)row * size + column] = start(row, column, size);
    next = plate;
    for (int i = 0; i < iterations; i++) {
        double largest = 0;

        c->moved = 0;
        for (int row = 1; row < size - 1; row++)
            for (int column = 1; column < size - 1; column++) {
                const double *p = &plate[(size_t)row * size + column];
                double mean = 0.25 * ((p[-size] + p[size]) + (p[-1] + p[1]));

                largest = std::max(largest, std::fabs(mean - *p));
                c->moved += std::fabs(mean - *p) > MOVED;
                next[p - plate.data()] = mean;
            }
        std::memcpy(&c->largest, &largest, sizeof largest);
        plate.swap(next);
    }
    return plate;
}

/* ---- a band of it, on a device ---- */

struct band {
    int rank, ranks, size, iterations;
    int first, rows; /* of the plate, without its first and its last row */
    ncclComm_t comm;
    cudaStream_t stream;
    double *plate[2];
    change *here, *all; /* on the device: mine, everybody's */
};

static void open_band(band &b, ncclUniqueId id, int device)
{
    int inner = b.size - 2, share = inner / b.ranks, more = inner % b.ranks;
    std::vector<double> plate;

    b.first = 1 + b.rank * share + std::min(b.rank, more);
    b.rows = share + (b.rank < more);
    for (int row = b.first - 1; row <= b.first + b.rows; row++)
        for (int column = 0; column < b.size; column++) plate.push_back(start(row, column, b.size));

    CUDACHECK(cudaSetDevice(device));
    CUDACHECK(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    for (double *&p : b.plate) {
        CUDACHECK(cudaMalloc((void **)&p, plate.size() * sizeof *p));
        CUDACHECK(cudaMemcpyAsync(p, plate.data(), plate.size() * sizeof *p, cudaMemcpyHostToDevice, b.stream));
    }
    CUDACHECK(cudaMalloc((void **)&b.here, sizeof *b.here));
    CUDACHECK(cudaMalloc((void **)&b.all, sizeof *b.all));
    NCCLCHECK(ncclCommInitRank(&b.comm, b.ranks, id, b.rank));
}

static void close_band(band &b)
{
    NCCLCHECK(ncclCommDestroy(b.comm));
    for (double *p : b.plate) CUDACHECK(cudaFree(p));
    CUDACHECK(cudaFree(b.here));
    CUDACHECK(cudaFree(b.all));
    CUDACHECK(cudaStreamDestroy(b.stream));
}

static void exchange_rows(const band &b, double *plate)
{
    double *last = plate + (size_t)b.rows * b.size;

    NCCLCHECK(ncclGroupStart());
    if (b.rank > 0) {
        NCCLCHECK(ncclSend(plate + b.size, b.size, ncclDouble, b.rank - 1, b.comm, b.stream));
        NCCLCHECK(ncclRecv(plate, b.size, ncclDouble, b.rank - 1, b.comm, b.stream));
    }
    if (b.rank < b.ranks - 1) {
        NCCLCHECK(ncclSend(last, b.size, ncclDouble, b.rank + 1, b.comm, b.stream));
        NCCLCHECK(ncclRecv(last + b.size, b.size, ncclDouble, b.rank + 1, b.comm, b.stream));
    }
    NCCLCHECK(ncclGroupEnd());
}

static void iterate(const band &b, int from)
{
    dim3 block(WIDTH, HEIGHT), grid((b.size - 2 + WIDTH - 1) / WIDTH, (b.rows + HEIGHT - 1) / HEIGHT);

    exchange_rows(b, b.plate[from]);
    CUDACHECK(cudaMemsetAsync(b.here, 0, sizeof *b.here, b.stream));
    relax<<<grid, block, 0, b.stream>>>(b.plate[from], b.plate[!from], b.size, b.rows, b.here);
    CUDACHECK(cudaGetLastError());
}

static cudaGraphExec_t two_iterations(const band &b)
{
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    CUDACHECK(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal));
    iterate(b, 0);
    iterate(b, 1);
    NCCLCHECK(ncclGroupStart());
    NCCLCHECK(ncclAllReduce(&b.here->largest, &b.all->largest, 1, ncclUint64, ncclMax, b.comm, b.stream));
    NCCLCHECK(ncclAllReduce(&b.here->moved, &b.all->moved, 1, ncclUint64, ncclSum, b.comm, b.stream));
    NCCLCHECK(ncclGroupEnd());
    CUDACHECK(cudaStreamEndCapture(b.stream, &graph));
    CUDACHECK(cudaGraphInstantiate(&exec, graph, 0));
    CUDACHECK(cudaGraphDestroy(graph));
    return exec;
}

/* How much of this band is not as the host has it. */
static size_t wrong_points(const band &b, const std::vector<double> &expected, const change &expected_change)
{
    std::vector<double> rows((size_t)b.rows * b.size);
    size_t wrong = 0;
    change c;

    CUDACHECK(cudaMemcpy(rows.data(), b.plate[0] + b.size, rows.size() * sizeof(double), cudaMemcpyDeviceToHost));
    CUDACHECK(cudaMemcpy(&c, b.all, sizeof c, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < rows.size(); i++) wrong += rows[i] != expected[(size_t)b.first * b.size + i];
    return wrong + (c.largest != expected_change.largest) + (c.moved != expected_change.moved);
}

static size_t solve(band b, ncclUniqueId id, int device)
{
    cudaGraphExec_t exec;
    std::vector<double> expected;
    size_t wrong;
    change c;

    open_band(b, id, device);
    exec = two_iterations(b);
    for (int i = 0; i < b.iterations; i += 2) CUDACHECK(cudaGraphLaunch(exec, b.stream));
    expected = host_plate(b.size, b.iterations, &c); /* while the devices work */
    CUDACHECK(cudaStreamSynchronize(b.stream));
    wrong = wrong_points(b, expected, c);
    CUDACHECK(cudaGraphExecDestroy(exec));
    close_band(b);
    return wrong;
}

int main(int argc, char **argv)
{
    int processes = argc > 1 ? atoi(argv[1]) : 1, devices = argc > 2 ? atoi(argv[2]) : 0;
    int size = argc > 3 ? atoi(argv[3]) : 202, iterations = argc > 4 ? atoi(argv[4]) : 100;
    std::vector<std::thread> threads;
    std::atomic<size_t> wrong{0};
    ncclUniqueId id;
    int process = become_processes(processes, &id), present;

    CUDACHECK(cudaGetDeviceCount(&present));
    if (!devices) devices = std::max(present / processes, 1);
    for (int d = 0; d < devices; d++) {
        band b = {};

        b.rank = process * devices + d;
        b.ranks = processes * devices;
        b.size = size;
        b.iterations = (iterations + 1) / 2 * 2;
        threads.emplace_back([=, &wrong] { wrong += solve(b, id, b.rank % present); });
    }
    for (std::thread &t : threads) t.join();

    if (process) return wrong != 0;
    int failed = failed_processes();
    printf("jacobi: %d processes with %d devices, %d x %d points, %d iterations: %zu wrong, %d processes failed\n",
           processes, devices, size, size, (iterations + 1) / 2 * 2, wrong.load(), failed);
    return wrong || failed;
}
