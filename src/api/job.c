/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job.c - join the job that the environment describes.
 *
 * Where the ranks meet is told by a setting. Without one, ranks that are all on one host find each other by what their launcher
 * gave them (os/siblings.h): rank 0 leaves an id there.
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
#include "os/siblings.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Where one kind of launcher says who a process is. */
struct launcher {
    const char *name, *rank, *size;
    const char
        *here; /* how many of the ranks are on this host, or (Slurm) on how many hosts they are; NULL: it is not told */
    bool counts_hosts;
    const char *job[3]; /* what names the job */
};

/* Most specific first: what runs inside another launcher's job sets its own. */
static const struct launcher launchers[] = {
    {"kolo run", "KOLO_RANK", "KOLO_SIZE", NULL, false, {NULL}},
    {"torchrun", "RANK", "WORLD_SIZE", NULL, false, {NULL}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     false,
     {"PMIX_NAMESPACE", "PMIX_SERVER_TMPDIR"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", false, {NULL}},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_NODES", true, {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};
enum { NLAUNCHERS = sizeof launchers / sizeof launchers[0] };

struct job {
    int rank, size;
    ncclUniqueId id;
    char note[KL_SIBLINGS_PATH]; /* where rank 0 has left the id; "": nowhere */
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

static ncclResult_t leave_id(struct job *job, const char *path)
{
    KL_TRY(kl_bootstrap_id_create(&job->id));
    KL_TRY(kl_siblings_leave(path, &job->id, sizeof job->id));
    memcpy(job->note, path, sizeof job->note);
    return ncclSuccess;
}

static ncclResult_t meet_siblings(const struct launcher *l, struct job *job)
{
    static _Atomic uint32_t turns;
    struct kl_comm_config config;
    char path[KL_SIBLINGS_PATH];

    kl_siblings_path(l->job, kl_fetch_add_relaxed(&turns, 1), path);
    if (!job->rank) return leave_id(job, path);
    kl_comm_config_load(&config);
    uint64_t patience_ms = (uint64_t)config.bootstrap_timeout_s * 1000;
    if (!kl_siblings_read(path, &job->id, sizeof job->id, kl_deadline_in_ms(patience_ms))) return ncclSuccess;
    return KL_FAIL(ncclRemoteError,
                   "koloInitFromEnv: rank %d did not hear from rank 0 on this host within %lld s; see whether that "
                   "started, or set KOLO_COMM_ID=host:port to a free port of its host",
                   job->rank, (long long)config.bootstrap_timeout_s);
}

/* ---- where they meet ---- */

/* torchrun's agent may hold the master's port itself, for its store, and says so: then the next one is rank 0's. */
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

/* KOLO_COMM_ID, NCCL_COMM_ID or torchrun's master: rank 0 opens the address, the others come to it. */
static ncclResult_t find_rendezvous(const struct launcher *l, struct job *job)
{
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
    struct kl_bootstrap_params params;

    kl_param_load(&kl_bootstrap_param_set, &params);
    if (*params.kolo_comm_id) return kl_bootstrap_id_parse(params.kolo_comm_id, &job->id);
    if (*params.nccl_comm_id) return kl_bootstrap_id_parse(params.nccl_comm_id, &job->id);
    /* Inside a group a communicator is complete only later, and what rank 0 left could not be taken away. */
    if ((!host || !port) && all_are_here(l, job) && !kl_group_open()) return meet_siblings(l, job);
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
    if (*job.note) unlink(job.note);
    return rc;
}
