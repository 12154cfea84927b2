/* SPDX-License-Identifier: Apache-2.0 */
/* The one file that knows the parameters of every module. */
#include "comm/setup/settings.h"

#include "base/hash.h"
#include "base/log_config.h"
#include "base/text.h"
#include "bootstrap/config.h"
#include "comm/setup/subgroup.h"
#include "comm/comm.h"
#include "device/config.h"
#include "graph/config.h"
#include "graph/tuner.h"
#include "net/rma.h"
#include "os/fault_inject.h"
#include "os/profiler.h"
#include "topo/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct kl_param_set *const kl_comm_param_sets[] = {&kl_log_param_set,        &kl_bootstrap_param_set,
                                                         &kl_comm_param_set,       &kl_device_param_set,
                                                         &kl_net_param_set,        &kl_verbs_param_set,
                                                         &kl_tuner_param_set,      &kl_profiler_param_set,
                                                         &kl_net_plugin_param_set, &kl_net_rma_param_set,
                                                         &kl_topo_param_set,       &kl_graph_param_set,
                                                         &kl_inject_param_set,     NULL};

/* ---- the settings of this rank ---- */

/* "" for a default outside of the allowed values, such as -2 where Kolo decides. */
static const char *value_of(const struct kl_param *p, const struct kl_settings *from, char text[KL_PARAM_TEXT])
{
    const char *value = kl_param_value(p, from, text);
    const bool number = p->type == KL_PARAM_TYPE_INT || p->type == KL_PARAM_TYPE_SIZE;

    return number && !strcmp(value, p->dfl) && strtoll(value, NULL, 10) < p->min ? "" : value;
}

static void each(const struct kl_nccl_config *nccl_config, enum kl_param_scope scope, kl_nccl_config_visitor *visit,
                 void *ctx)
{
    const struct kl_settings *from = kl_settings_process();
    char value[KL_PARAM_TEXT];

    for (const struct kl_param_set *const *set = kl_comm_param_sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++) {
            const struct kl_param *p = &(*set)->params[i];
            if (p->scope == scope) visit(ctx, p->name, value_of(p, from, value));
        }
    if (scope == KL_ALIKE) kl_nccl_config_visit_alike(nccl_config, visit, ctx);
}

static void hash_one(void *ctx, const char *name, const char *value)
{
    uint64_t *hash = ctx;

    *hash = kl_hash_add(*hash, name, strlen(name) + 1);
    *hash = kl_hash_add(*hash, value, strlen(value) + 1);
}

uint64_t kl_comm_settings_hash(const struct kl_nccl_config *nccl_config, enum kl_param_scope scope)
{
    uint64_t hash = KL_HASH_START;

    each(nccl_config, scope, hash_one, &hash);
    return hash;
}

/* ---- ranks that differ ---- */

enum { MOST_SIDES = 4 }; /* that one sentence distinguishes */

/* Ranks that have to be alike and are not: ranks with the same hash are a side. */
struct dispute {
    const struct kl_peer *peers;
    int nranks;
    enum kl_param_scope scope;
    int within; /* KL_HOST_ALIKE: a rank of the host in question */
    int nsides;
    int32_t first[MOST_SIDES]; /* the lowest rank of each side, ascending */
};

static bool share_host(const struct kl_peer *a, const struct kl_peer *b)
{
    return a->host == b->host || a->fabric == b->fabric;
}

static bool is_concerned(const struct dispute *d, int rank)
{
    return d->scope == KL_ALIKE || share_host(&d->peers[rank], &d->peers[d->within]);
}

static uint64_t hash_of(const struct dispute *d, int rank)
{
    return d->scope == KL_ALIKE ? d->peers[rank].settings : d->peers[rank].host_settings;
}

/* The side of a rank; -1: none of the distinguished ones. */
static int side_of(const struct dispute *d, int rank)
{
    if (!is_concerned(d, rank)) return -1;
    for (int i = 0; i < d->nsides; i++)
        if (hash_of(d, d->first[i]) == hash_of(d, rank)) return i;
    return -1;
}

static bool find_sides(struct dispute *d)
{
    d->nsides = 0;
    for (int r = 0; r < d->nranks && d->nsides < MOST_SIDES; r++)
        if (is_concerned(d, r) && side_of(d, r) < 0) d->first[d->nsides++] = r;
    return d->nsides > 1;
}

/* Does a rank differ from rank 0? If none does, which is usual, hosts need not be checked. */
static bool hosts_differ(const struct dispute *d)
{
    for (int r = 1; r < d->nranks; r++)
        if (d->peers[r].host_settings != d->peers[0].host_settings) return true;
    return false;
}

static bool find_host(struct dispute *d)
{
    d->scope = KL_HOST_ALIKE;
    if (!hosts_differ(d)) return false;
    for (d->within = 0; d->within < d->nranks; d->within++) {
        const bool same = d->within && share_host(&d->peers[d->within], &d->peers[d->within - 1]);

        if (!same && find_sides(d)) return true;
    }
    return false;
}

/* All ranks have the same records, and compute the same. */
static bool find_difference_sides(struct dispute *d)
{
    d->scope = KL_ALIKE;
    return find_sides(d) || find_host(d);
}

/* ---- their settings ---- */

/* The settings of one scope: name, zero, value, zero, and so on. */
struct document {
    char *text;
    size_t bytes;
};

static void write_one(void *ctx, const char *name, const char *value)
{
    FILE *to = ctx;

    fwrite(name, 1, strlen(name) + 1, to);
    fwrite(value, 1, strlen(value) + 1, to);
}

static ncclResult_t write_document(const struct kl_nccl_config *nccl_config, enum kl_param_scope scope,
                                   struct document *document)
{
    FILE *to = open_memstream(&document->text, &document->bytes);

    if (!to) return KL_NOMEM("the settings of a rank");
    each(nccl_config, scope, write_one, to);
    return fclose(to) ? KL_NOMEM("the settings of a rank") : ncclSuccess;
}

/* One side sends all ranks its settings. */
static ncclResult_t tell(ncclComm_t comm, const struct dispute *d, const struct kl_subgroup *all, int side,
                         struct document *document)
{
    void *data;

    if (comm->rank == d->first[side]) KL_TRY(write_document(&comm->nccl_config, d->scope, document));
    data = document->text;
    KL_TRY(kl_subgroup_broadcast(all, d->first[side], &data, &document->bytes));
    document->text = data;
    return ncclSuccess;
}

static ncclResult_t tell_all(ncclComm_t comm, const struct dispute *d, struct document *document)
{
    int32_t *list = malloc((size_t)comm->nranks * sizeof *list);
    const struct kl_subgroup all = {.bootstrap = comm->bootstrap, .rank = list, .n = comm->nranks, .own = comm->rank};
    ncclResult_t rc = list ? ncclSuccess : KL_NOMEM("the ranks of a communicator");

    for (int r = 0; !rc && r < comm->nranks; r++) list[r] = r;
    for (int i = 0; !rc && i < d->nsides; i++) rc = tell(comm, d, &all, i, &document[i]);
    free(list);
    return rc;
}

/* ---- the sentence ---- */

enum { MOST_NAMED = 3, MOST_LISTED = 8 }; /* settings, ranks */

/* The next text of a document; empty behind its end. */
static const char *next_text(const struct document *document, size_t *at)
{
    const char *text = *at < document->bytes ? document->text + *at : "";

    *at += strlen(text) + 1; /* a document ends with a zero, whatever its contents */
    return text;
}

/* "rank 2 (host h, pid p)" or "ranks 0, 1, 3": the ranks of the sides in `sides`. */
static void add_ranks(struct kl_text *t, const struct dispute *d, unsigned sides)
{
    int n = 0, last = 0, listed = 0;

    for (int r = 0; r < d->nranks; r++) {
        const int side = side_of(d, r);
        if (side < 0 || !(sides >> side & 1)) continue;
        last = r;
        n++;
    }
    kl_text_add(t, "rank%s", kl_plural(n));
    for (int r = 0; r < d->nranks && listed < MOST_LISTED; r++) {
        const int side = side_of(d, r);
        if (side >= 0 && sides >> side & 1) kl_text_add(t, "%s %d", listed++ ? "," : "", r);
    }
    if (n > listed) kl_text_add(t, " and %d more", n - listed);
    if (n == 1) kl_text_add(t, " (host %.*s, pid %d)", KL_PEER_HOST_TEXT, d->peers[last].host_name, d->peers[last].pid);
}

/* The sides with the value of `side`. */
static unsigned alike(const struct dispute *d, const char *const *value, int side)
{
    unsigned sides = 0;

    for (int i = 0; i < d->nsides; i++)
        if (!strcmp(value[i], value[side])) sides |= 1u << i;
    return sides;
}

static void add_values(struct kl_text *t, const struct dispute *d, const char *name, const char *const *value)
{
    unsigned said = 0;

    kl_text_add(t, "%s is ", name);
    for (int i = 0; i < d->nsides; i++) {
        if (said >> i & 1) continue;
        kl_text_add(t, "%s%.100s on ", said ? " and " : "", *value[i] ? value[i] : "unset");
        add_ranks(t, d, alike(d, value, i));
        said |= alike(d, value, i);
    }
}

static void add_differences(struct kl_text *t, const struct dispute *d, const struct document *document)
{
    size_t at[MOST_SIDES] = {0};
    const char *value[MOST_SIDES];
    int named = 0, more = 0;

    while (at[0] < document[0].bytes) {
        const char *name = next_text(&document[0], &at[0]);

        value[0] = next_text(&document[0], &at[0]);
        for (int i = 1; i < d->nsides; i++) {
            next_text(&document[i], &at[i]);
            value[i] = next_text(&document[i], &at[i]);
        }
        if (alike(d, value, 0) == (1u << d->nsides) - 1) continue;
        if (named == MOST_NAMED) {
            more++;
            continue;
        }
        kl_text_add(t, "%s", named++ ? "; " : "");
        add_values(t, d, name, value);
    }
    if (more) kl_text_add(t, "; %d more differ%s", more, more == 1 ? "s" : "");
}

static ncclResult_t refuse(const struct dispute *d, const struct document *document)
{
    char text[KL_ERROR_TEXT - 64];
    struct kl_text t = kl_text_in(text, sizeof text);

    add_differences(&t, d, document);
    return KL_FAIL(ncclInvalidUsage, "%s: %s need the same", text,
                   d->scope == KL_ALIKE ? "all ranks" : "the ranks of a host");
}

ncclResult_t kl_comm_check_settings(ncclComm_t comm, const struct kl_peer *peers)
{
    struct dispute d = {.peers = peers, .nranks = comm->nranks};
    struct document document[MOST_SIDES] = {{0}};

    if (!find_difference_sides(&d)) return ncclSuccess;
    ncclResult_t rc = tell_all(comm, &d, document);
    if (!rc) {
        (void)kl_bootstrap_barrier(
            comm->bootstrap); /* a failing rank ends the exchanges of others: first let all know why */
        rc = refuse(&d, document);
    }
    for (int i = 0; i < d.nsides; i++) free(document[i].text);
    return rc;
}
