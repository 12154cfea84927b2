/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.c - a process for each device, started by mpirun, on any number of hosts.
 *
 * MPI hands on the unique id, and says which rank of its host a process is: that is its device.
 */
#include "data.h"

#include <mpi.h>

static int rank_in_host(void)
{
    MPI_Comm host;
    int rank;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &rank);
    MPI_Comm_free(&host);
    return rank;
}

int main(int argc, char **argv)
{
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *data;
    int rank, ranks, wrong, all_wrong, rc = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CUDACHECK(cudaSetDevice(rank_in_host()));

    if (rank == 0) NCCLCHECK(ncclGetUniqueId(&id));
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    NCCLCHECK(ncclCommInitRank(&comm, ranks, id, rank));
    CUDACHECK(cudaStreamCreate(&stream));
    data = device_data(rank + 1);

    NCCLCHECK(ncclAllReduce(data, data, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDACHECK(cudaStreamSynchronize(stream));
    wrong = wrong_data(data, sum_to(ranks));

    CUDACHECK(cudaFree(data));
    CUDACHECK(cudaStreamDestroy(stream));
    NCCLCHECK(ncclCommDestroy(comm));
    MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) rc = report("processes of MPI", ranks, all_wrong);
    MPI_Finalize();
    return rc;
}
