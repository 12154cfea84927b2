/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.c - join the job that the environment describes.
 *
 * A setting names the place where the ranks meet. Without one, ranks that are all on one host find each other by
 * variables of their launcher (os/job_name.h): rank 0 leaves an id in a file of that name.
 */
#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parse.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/config.h"
#include "comm/config.h"
#include "comm/group.h"
#include "include/kolo.h"
#include "os/job_name.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** The variables of one kind of launcher that identify a process. */
struct launcher {
    const char *name, *rank, *size;
    const char *here; /* number of ranks on this host, or (Slurm) of hosts; NULL: the launcher sets none */
    bool counts_hosts;
    const char *job[3]; /* they name the job */
    const char *own[3]; /* they distinguish ranks of it; if no variable names the job, this one locates the launcher */
};

/* Most specific first: a launcher inside another launcher's job sets its own variables. */
static const struct launcher launchers[] = {
    {"kolo run", "KOLO_RANK", "KOLO_SIZE", NULL, false, {NULL}, {NULL}},
    {"torchrun", "RANK", "WORLD_SIZE", NULL, false, {NULL}, {NULL}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     false,
     {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"},
     {"PMIX_RANK"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", false, {NULL}, {"PMI_RANK", "PMI_FD"}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_STEP_NUM_NODES",
     true,
     {"SLURM_JOB_ID", "SLURM_STEP_ID"},
     {"SLURM_PROCID"}},
};
enum { NLAUNCHERS = sizeof launchers / sizeof launchers[0] };

struct job {
    int rank, size;
    ncclUniqueId id;
    bool left; /* this is rank 0, which has written the id for the others */
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

/* ---- ranks of one host ---- */

static bool all_are_here(const struct launcher *l, const struct job *job)
{
    const char *text = l->here ? getenv(l->here) : NULL;
    int64_t n;

    return text && kl_parse_int(text, &n) && n == (l->counts_hosts ? 1 : job->size);
}

static ncclResult_t leave_id(struct job *job, const char *name, uint64_t deadline)
{
    KL_TRY(kl_bootstrap_id_create(&job->id));
    job->left = true;
    ncclResult_t rc = kl_bootstrap_id_leave(&job->id, name, deadline);
    if (rc) kl_bootstrap_decline(&job->id, 1, job->rank, job->size); /* no rank will come: end the rendezvous */
    return rc;
}

static ncclResult_t meet_here(const struct launcher *l, struct job *job)
{
    static _Atomic uint32_t turns;
    struct kl_comm_config config;
    char name[KL_JOB_NAME], why[KL_ERROR_TEXT];

    kl_comm_config_load(&config);
    uint64_t deadline = kl_deadline_in_ms((uint64_t)config.bootstrap_timeout_s * 1000);
    kl_job_name(l->job, l->own, kl_fetch_add_relaxed(&turns, 1), name);
    if (!job->rank) return leave_id(job, name, deadline);
    if (!kl_bootstrap_id_find(name, &job->id, deadline)) return ncclSuccess;
    snprintf(why, sizeof why, "%s", kl_error_text());
    return KL_FAIL(ncclRemoteError,
                   "koloInitFromEnv: rank %d did not hear from rank 0 on this host within %lld s (%.400s); see whether "
                   "that started, or set KOLO_COMM_ID=host:port to a free port of its host",
                   job->rank, (long long)config.bootstrap_timeout_s, why);
}

/* ---- where they meet ---- */

/* torchrun's agent may hold the master's port itself, for its store, and sets a variable then: rank 0 uses the next
 * port. */
static ncclResult_t find_master(const char *host, struct job *job)
{
    const char *held = getenv("TORCHELASTIC_USE_AGENT_STORE");
    char address[300];
    int number;

    KL_TRY(read_number("MASTER_PORT", &number));
    if (held && !strcmp(held, "True")) number++;
    snprintf(address, sizeof address, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, number);
    return kl_bootstrap_id_parse(address, &job->id);
}

/* KOLO_COMM_ID, NCCL_COMM_ID or torchrun's master: rank 0 opens the address, the others connect to it. */
static ncclResult_t find_rendezvous(const struct launcher *l, struct job *job)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    struct kl_bootstrap_params params;

    kl_param_load(&kl_bootstrap_param_set, &params);
    if (*params.kolo_comm_id) return kl_bootstrap_id_parse(params.kolo_comm_id, &job->id);
    if (*params.nccl_comm_id) return kl_bootstrap_id_parse(params.nccl_comm_id, &job->id);
    if ((!host || !port) && all_are_here(l, job)) return meet_here(l, job);
    if (!host || !port)
        return KL_FAIL(ncclInvalidUsage,
                       "koloInitFromEnv: %s says that this is one of several ranks, but not where they meet: set "
                       "KOLO_COMM_ID=host:port to a free port of rank 0's host",
                       l->name);
    return find_master(host, job);
}

static ncclResult_t describe_job(struct job *job)
{
    const struct launcher *l = find_launcher();

    *job = (struct job){.size = 1};
    if (l) {
        KL_TRY(read_number(l->rank, &job->rank));
        KL_TRY(read_number(l->size, &job->size));
    }
    if (job->size < 1 || job->rank >= job->size)
        return KL_FAIL(ncclInvalidUsage, "koloInitFromEnv: %s=%d and %s=%d do not fit together", l->rank, job->rank,
                       l->size, job->size);
    return job->size == 1 ? kl_bootstrap_id_create(&job->id) : find_rendezvous(l, job);
}

ncclResult_t koloInitFromEnv(ncclComm_t *comm)
{
    struct job job;

    if (!comm) return kl_group_note(KL_FAIL(ncclInvalidArgument, "koloInitFromEnv: the result pointer is NULL"));
    *comm = NULL;
    ncclResult_t rc = kl_group_note(describe_job(&job));
    if (!rc) rc = pncclCommInitRank(comm, job.size, job.id, job.rank);
    if (rc && rc != ncclInProgress && job.left) kl_bootstrap_id_withdraw(&job.id);
    return rc;
}
