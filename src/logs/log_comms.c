/* SPDX-License-Identifier: Apache-2.0 */
/** log_comms.c - which members are one communicator, once all is read. */
#include "base/error.h"
#include "logs/log_make.h"
#include "topo/config.h"

#include <stdlib.h>
#include <string.h>

/* Members of one communicator: of one name and size, or, where names are not printed, the same in the order of each origin. */
struct key {
    const char *id;
    int nranks, origin, nth, member;
};

static int by_origin(const void *x, const void *y)
{
    const struct key *a = x, *b = y;
    int d = strcmp(a->id, b->id);

    if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
    if (a->nranks != b->nranks) return a->nranks < b->nranks ? -1 : 1;
    return d ? d : a->member - b->member;
}

static bool same_comm(const struct key *a, const struct key *b)
{
    return a->nranks == b->nranks && a->nth == b->nth && !strcmp(a->id, b->id);
}

static int by_comm(const void *x, const void *y)
{
    const struct key *a = x, *b = y;
    int d = strcmp(a->id, b->id);

    if (a->nranks != b->nranks) return a->nranks < b->nranks ? -1 : 1;
    if (a->nth != b->nth) return a->nth < b->nth ? -1 : 1;
    return d ? d : a->member - b->member;
}

static int gather_keys(const struct kl_log *log, struct key *key)
{
    int n = 0;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->nranks > 0) key[n++] = (struct key){m->id ? m->id : "", m->nranks, m->origin, 0, i};
    }
    qsort(key, (size_t)n, sizeof *key, by_origin);
    for (int i = 1; i < n; i++) {
        const struct key *a = &key[i - 1];
        bool again = a->origin == key[i].origin && a->nranks == key[i].nranks && !strcmp(a->id, key[i].id);

        if (again) key[i].nth = a->nth + 1;
    }
    qsort(key, (size_t)n, sizeof *key, by_comm);
    return n;
}

static int by_text(const void *x, const void *y)
{
    return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static int count_hosts(const struct kl_log *log, const struct key *key, int n, const char **host)
{
    int hosts = 0;

    for (int i = 0; i < n; i++) host[i] = log->origin[key[i].origin].host;
    qsort(host, (size_t)n, sizeof *host, by_text);
    for (int i = 0; i < n; i++) hosts += *host[i] && (!i || strcmp(host[i - 1], host[i]) != 0);
    return hosts;
}

/* The n keys of one communicator, in the order of its members. */
static struct kl_log_comm make_comm(struct kl_log *log, const struct key *key, int n, const char **host)
{
    const struct kl_log_member *first = &log->member[key->member];
    struct kl_log_comm c = {first->id, first->nranks, -1, n, key->member};

    for (int i = 0; i < n; i++) {
        struct kl_log_member *m = &log->member[key[i].member];

        if (m->nnodes > c.nnodes) c.nnodes = m->nnodes;
        m->next = i + 1 < n ? key[i + 1].member : -1;
    }
    /* Where nodes are not printed and all ranks have lines, count their hosts. */
    if (c.nnodes <= 0 && n >= c.nranks && first->completed) {
        int hosts = count_hosts(log, key, n, host);

        if (hosts) c.nnodes = hosts;
    }
    return c;
}

static int by_first(const void *x, const void *y)
{
    return ((const struct kl_log_comm *)x)->first - ((const struct kl_log_comm *)y)->first;
}

static ncclResult_t make_comms(struct kl_log *log, struct key *key, const char **host)
{
    int n = gather_keys(log, key);

    for (int i = 0, next; i < n; i = next) {
        struct kl_log_comm *c = KL_LOG_NEW(log, comm);

        if (!c) return KL_NOMEM("communicators of a log");
        for (next = i + 1; next < n && same_comm(&key[i], &key[next]);) next++;
        *c = make_comm(log, &key[i], next - i, host);
    }
    if (log->ncomm) qsort(log->comm, (size_t)log->ncomm, sizeof *log->comm, by_first);
    for (int c = 0; c < log->ncomm; c++)
        for (int m = log->comm[c].first; m >= 0; m = log->member[m].next) log->member[m].comm = c;
    return ncclSuccess;
}

ncclResult_t kl_log_finish(struct kl_log *log)
{
    struct key *key = malloc(((size_t)log->nmember + 1) * sizeof *key);
    const char **host = malloc(((size_t)log->nmember + 1) * sizeof *host);
    ncclResult_t rc = key && host ? make_comms(log, key, host) : KL_NOMEM("communicators of a log");

    free(host);
    free(key);
    if (!rc) kl_log_find_causes(log);
    return rc;
}
