/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_allreduce.c - MPI_Allreduce measured as kolo perf measures: warm-up, then the mean of a run of calls, largest over
 * the ranks. One line per size: bytes, microseconds. Usage: mpi_allreduce BYTES:ITERATIONS ...
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static double run(const float *send, float *recv, int count, int iterations)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), mine, slowest;
    for (int i = 0; i < iterations; i++) MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    mine = (MPI_Wtime() - begin) / iterations;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest * 1e6;
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 1; i < argc; i++) {
        long bytes = 0;
        int iterations = 0;
        if (sscanf(argv[i], "%ld:%d", &bytes, &iterations) != 2) continue;
        float *send = calloc((size_t)bytes, 1), *recv = calloc((size_t)bytes, 1);
        int count = (int)(bytes / (long)sizeof(float));
        for (int k = 0; k < count; k++) send[k] = recv[k] = (float)(k % 7);
        run(send, recv, count, iterations / 10 + 1);
        double us = run(send, recv, count, iterations);
        if (!rank) printf("%ld %.3f\n", bytes, us);
        free(send);
        free(recv);
    }
    MPI_Finalize();
    return 0;
}
