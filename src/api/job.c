/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.c - join the job that the environment describes.
 */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/config.h"
#include "comm/group.h"
#include "include/kolo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Where one kind of launcher says who a process is. */
struct launcher {
    const char *name, *rank, *size;
};

/* Most specific first: what runs inside another launcher's job sets its own. */
static const struct launcher launchers[] = {
    {"kolo run", "KOLO_RANK", "KOLO_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"MPICH", "PMI_RANK", "PMI_SIZE"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS"},
};
enum { NLAUNCHERS = sizeof launchers / sizeof launchers[0] };

struct job {
    int rank, size;
    ncclUniqueId id;
};

static ncclResult_t read_number(const char *name, int *value)
{
    const char *text = getenv(name);
    char *end;

    if (!text) return KL_FAIL(ncclInvalidUsage, "koloInitFromEnv: %s is not set, but its partner is: set both", name);
    long number = strtol(text, &end, 10);
    if (end == text || *end || number < 0 || number > 1 << 24)
        return KL_FAIL(ncclInvalidUsage, "koloInitFromEnv: %s=%s is not a number from 0 to %d", name, text, 1 << 24);
    *value = (int)number;
    return ncclSuccess;
}

static const struct launcher *find_launcher(void)
{
    for (int i = 0; i < NLAUNCHERS; i++)
        if (getenv(launchers[i].rank) || getenv(launchers[i].size)) return &launchers[i];
    return NULL;
}

/* KOLO_COMM_ID, NCCL_COMM_ID or torchrun's master: rank 0 opens the address, the others come to it. */
static ncclResult_t find_rendezvous(const struct launcher *l, ncclUniqueId *id)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    struct kl_bootstrap_params params;
    char address[300];

    kl_param_load(&kl_bootstrap_param_set, &params);
    if (*params.kolo_comm_id) return kl_bootstrap_id_parse(params.kolo_comm_id, id);
    if (*params.nccl_comm_id) return kl_bootstrap_id_parse(params.nccl_comm_id, id);
    if (!host || !port)
        return KL_FAIL(ncclInvalidUsage,
                       "koloInitFromEnv: %s says that this is one of several ranks, but not where they meet: set "
                       "KOLO_COMM_ID=host:port to a free port of rank 0's host",
                       l->name);
    snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
    return kl_bootstrap_id_parse(address, id);
}

static ncclResult_t describe_job(struct job *job)
{
    const struct launcher *l = find_launcher();

    job->rank = 0;
    job->size = 1;
    if (l) {
        KL_TRY(read_number(l->rank, &job->rank));
        KL_TRY(read_number(l->size, &job->size));
    }
    if (job->size < 1 || job->rank >= job->size)
        return KL_FAIL(ncclInvalidUsage, "koloInitFromEnv: %s=%d and %s=%d do not fit together", l->rank, job->rank,
                       l->size, job->size);
    return job->size == 1 ? kl_bootstrap_id_create(&job->id) : find_rendezvous(l, &job->id);
}

ncclResult_t koloInitFromEnv(ncclComm_t *comm)
{
    struct job job;

    if (!comm) return kl_group_note(KL_FAIL(ncclInvalidArgument, "koloInitFromEnv: the result pointer is NULL"));
    *comm = NULL;
    ncclResult_t rc = kl_group_note(describe_job(&job));
    return rc ? rc : pncclCommInitRank(comm, job.size, job.id, job.rank);
}
