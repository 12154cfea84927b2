/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about a log that is being read, or was read. */
#include "logs/log.h"

#include "topo/config.h"
#include "topo/release.h"

#include <string.h>

const struct kl_log_comm *kl_log_main(const struct kl_log *log)
{
    const struct kl_log_comm *best = NULL;

    for (int i = 0; i < log->ncomm; i++)
        if (!best || log->comm[i].nranks > best->nranks) best = &log->comm[i];
    return best;
}

/* An origin has few members: one for each of its communicators. */
static bool is_in(const struct kl_log *log, const struct kl_log_comm *comm, int origin)
{
    for (int m = log->origin[origin].last; m >= 0; m = log->member[m].earlier)
        if (log->member[m].comm == comm - log->comm) return true;
    return false;
}

const struct kl_log_version *kl_log_version_of(const struct kl_log *log, const struct kl_log_comm *comm)
{
    for (int i = 0; comm && i < log->nversion; i++)
        if (is_in(log, comm, log->version[i].origin)) return &log->version[i];
    return log->nversion ? &log->version[0] : NULL;
}

int kl_log_release(const struct kl_log *log, const struct kl_log_comm *comm)
{
    const struct kl_log_version *v = kl_log_version_of(log, comm);

    return kl_nccl_nearest(v ? v->text : NULL, kl_topo_config_release());
}

const struct kl_log_setting *kl_log_find_setting(const struct kl_log *log, const char *name)
{
    for (int i = 0; i < log->nsetting; i++)
        if (!strcmp(log->setting[i].name, name)) return &log->setting[i];
    return NULL;
}
