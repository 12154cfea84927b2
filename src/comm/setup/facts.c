/* SPDX-License-Identifier: Apache-2.0 */
/**
 * facts.c - the facts by which ranks that share memory derive how their operations are done (coll/select/model.h): the profile of their leader, and the settings of all.
 */
#include "comm/setup/facts.h"

#include "comm/comm.h"

#include "base/log.h"
#include "coll/select/measure.h"
#include "os/hugepages.h"

/* The lowest rank that shares memory with `rank`. One profile serves all hosts of an NVLink domain: with one per host, whose measurements differ, their ranks would do the same
 * collective in different ways, and wait for each other without end. */
static int leader_of(ncclComm_t comm, int rank)
{
    int r = 0;

    while (!kl_peers_share_memory(&comm->peers[r], &comm->peers[rank])) r++;
    return r;
}

/* Measured; a table of processors has the rest; the user's words count most. */
static struct kl_profile own_profile(const struct kl_comm_config *config, int cpu_vendor)
{
    const struct kl_hugepages_system huge = kl_hugepages_system_of("/sys/kernel/mm/transparent_hugepage");
    const struct kl_profile known = kl_profile_known(cpu_vendor);
    struct kl_profile p = kl_profile_measured();
    const bool copies = p.cma_ns;

    kl_profile_complete(&p, &known);
    if (!copies) p.cma_ns = 0;
    p.huge_pages = config->huge_pages && huge.block_bytes;
    if (kl_profile_parse(&p, config->profile)) KL_WARN("%s", kl_error_text());
    return p;
}

void kl_comm_describe_facts(ncclComm_t comm, struct kl_rank_record *me)
{
    me->no_direct = !comm->config.peer_direct;
    me->kernel_copies = (uint32_t)comm->config.kernel_copies;
    if (leader_of(comm, comm->rank) == comm->rank && comm->nranks > 1)
        me->profile = own_profile(&comm->config, me->cpu_vendor);
}

static bool all_may_copy(const struct kl_rank_record *record, int nranks)
{
    for (int r = 0; r < nranks; r++)
        if (record[r].kernel_copies == KL_KERNEL_COPIES_NEVER) return false;
    return true;
}

static bool all_map(const struct kl_rank_record *record, int nranks)
{
    for (int r = 0; r < nranks; r++)
        if (record[r].no_direct) return false;
    return true;
}

void kl_comm_derive_facts(ncclComm_t comm)
{
    const struct kl_rank_record *record = comm->shared->record;
    const int leader = leader_of(comm, comm->rank), n = comm->nranks;
    const uint32_t fixed = comm->config.deterministic ? 1u << KL_SELECT_FIXED : 0;

    comm->facts = (struct kl_select_facts){
        .profile = record[leader].profile,
        .nranks = n,
        .ranks_per_core = (int)comm->shared->most_ranks_per_cpu,
        .processes = comm->shared->rank_map.nprocesses > 1,
        .cores = comm->connect->core,
        .kernel = record[leader].profile.cma_ns && all_may_copy(record, n),
        .kernel_always = record[0].kernel_copies == KL_KERNEL_COPIES_ALWAYS,
        .direct = all_map(record, n),
        .words = comm->config.select | fixed,
    };
}

struct kl_select_facts kl_comm_facts_here(int nranks)
{
    struct kl_comm_config config;

    kl_comm_config_load(&config);
    const struct kl_profile profile = own_profile(&config, 0);
    const int cpus = profile.cpus ? (int)profile.cpus : 1, per_core = (nranks + cpus - 1) / cpus;
    return (struct kl_select_facts){
        .profile = profile,
        .nranks = nranks,
        .ranks_per_core = per_core,
        .processes = true,
        .cores = per_core > 1 && nranks % cpus == 0,
        .kernel = profile.cma_ns && config.kernel_copies != KL_KERNEL_COPIES_NEVER,
        .kernel_always = config.kernel_copies == KL_KERNEL_COPIES_ALWAYS,
        .direct = config.peer_direct,
        .words = config.select,
    };
}

void kl_comm_log_facts(ncclComm_t comm)
{
    struct kl_select_facts *f = &comm->facts;
    char text[256];
    struct kl_text t = kl_text_in(text, sizeof text);

    if (comm->rank != leader_of(comm, comm->rank) || f->nranks == 1 || !kl_log_on(KL_LOG_INFO, KL_INIT | KL_TUNING))
        return;
    kl_profile_text(&f->profile, &t);
    KL_INFO(KL_INIT | KL_TUNING, "machine profile: %s; %d rank%s per core%s%s", text, f->ranks_per_core,
            f->ranks_per_core == 1 ? "" : "s", f->kernel ? "" : ", no kernel copies", f->direct ? "" : ", none mapped");
}
