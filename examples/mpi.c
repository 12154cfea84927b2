/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - an NCCL program as it is started on clusters: one process per rank, the unique id handed on by MPI.
 *
 *     mpicc -I include examples/mpi.c -o hello -L build/release -lkolo -Wl,-rpath,"$PWD/build/release"
 *     mpirun -np 4 ./hello
 */
#include <kolo.h> /* includes nccl.h */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static void must(ncclResult_t rc)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s\n", ncclGetLastError(NULL));
    MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char **argv)
{
    enum { COUNT = 1 << 20 };
    ncclUniqueId id;
    ncclComm_t comm;
    int rank, size, wrong = 0;
    float *data = malloc(COUNT * sizeof *data);

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (!rank) must(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    must(ncclCommInitRank(&comm, size, id, rank));

    for (int i = 0; i < COUNT; i++) data[i] = (float)(rank + i % 7);
    must(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, NULL));
    must(koloStreamSynchronize(NULL));
    for (int i = 0; i < COUNT; i++) wrong += data[i] != (float)(size * (size - 1) / 2 + size * (i % 7));

    must(ncclCommDestroy(comm));
    MPI_Finalize();
    free(data);
    if (!wrong) printf("rank %d of %d: fine\n", rank, size);
    return wrong > 0;
}
