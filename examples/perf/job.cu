/* SPDX-License-Identifier: Apache-2.0 */
#include "job.h"

#ifdef MPI_SUPPORT
#include <mpi.h>

job start_job(int *argc, char ***argv)
{
    MPI_Comm host;
    job j;

    MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.process);
    MPI_Comm_size(MPI_COMM_WORLD, &j.processes);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
    MPI_Comm_rank(host, &j.in_host);
    MPI_Comm_free(&host);
    if (j.process == 0) NCCLCHECK(ncclGetUniqueId(&j.id));
    MPI_Bcast(&j.id, sizeof j.id, MPI_BYTE, 0, MPI_COMM_WORLD);
    return j;
}

void end_job(void)
{
    MPI_Finalize();
}

#else
#include <string>

static int environment(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value ? atoi(value) : otherwise;
}

/* As from torchrun and its like. With NCCL_COMM_ID set, all processes get the id of that address, which rank 0 opens. */
job start_job(int *, char ***)
{
    job j = {environment("RANK", 0), environment("WORLD_SIZE", 1), environment("LOCAL_RANK", 0), {}};
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");

    if (j.processes > 1 && host && port) setenv("NCCL_COMM_ID", (std::string(host) + ":" + port).c_str(), 0);
    if (j.processes > 1 && !getenv("NCCL_COMM_ID")) {
        fprintf(stderr, "WORLD_SIZE is %d: set NCCL_COMM_ID, or MASTER_ADDR and MASTER_PORT\n", j.processes);
        exit(1);
    }
    NCCLCHECK(ncclGetUniqueId(&j.id));
    return j;
}

void end_job(void)
{
}
#endif
