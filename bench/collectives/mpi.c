/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi AREA [OPTION ...] ROW ...: MPI, as mpirun starts it, measured by measure.h. AREA is a file that area_open takes.
 */
#include "bench/collectives/measure.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void issue(void *state, const struct row *row, float *send, float *recv, bool counts)
{
    int count = (int)row->count, *rank = state, next = (*rank + 1) % row->nranks,
        previous = (*rank + row->nranks - 1) % row->nranks;

    (void)counts;
    switch (row->op) {
    case ROW_ALL_REDUCE:
        MPI_Allreduce(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ROW_ALL_GATHER:
        MPI_Allgather(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    case ROW_REDUCE_SCATTER:
        MPI_Reduce_scatter_block(send, recv, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ROW_BROADCAST:
        MPI_Bcast(recv, count, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
    case ROW_REDUCE:
        MPI_Reduce(send, recv, count, MPI_FLOAT, MPI_SUM, 0, MPI_COMM_WORLD);
        break;
    case ROW_ALLTOALL:
        MPI_Alltoall(send, count, MPI_FLOAT, recv, count, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    default:
        MPI_Sendrecv(send, count, MPI_FLOAT, next, 0, recv, count, MPI_FLOAT, previous, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }
}

int main(int argc, char **argv)
{
    struct area_end end = {.area = argc > 1 ? area_open(argv[1]) : NULL};

    if (!end.area) return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &end.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &end.nranks);
    struct measure_options options = measure_parse(argc - 1, argv + 1);
    struct peer peer = {.state = &end.rank, .issue = issue};

    if (end.nranks > AREA_RANKS) MPI_Abort(MPI_COMM_WORLD, 2);
    measure_pin(&options, end.rank);
    measure(&options, &end, &peer);
    MPI_Finalize();
    return 0;
}
