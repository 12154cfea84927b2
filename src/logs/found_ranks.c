/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings_make.h"
#include "logs/machine.h"

#include <stdio.h>
#include <string.h>

static struct kl_log_finding differ(enum kl_log_code code, struct kl_log_at at, const char *a, const char *b)
{
    return (struct kl_log_finding){.code = code, .weight = KL_LOG_COSTS, .at = at, .text = a, .other = b};
}

static void find_versions(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 1; i < log->nversion; i++) {
        struct kl_log_finding f =
            differ(KL_FOUND_VERSIONS_DIFFER, log->version[i].at, log->version[0].text, log->version[i].text);

        if (log->version[i].number == log->version[0].number || log->version[i].speaker == log->version[0].speaker)
            continue;
        f.weight = KL_LOG_STOPS;
        kl_finding_add(list, f);
        return;
    }
}

/* ---- settings that ranks have otherwise ---- */

/* Each host and process has its own; where they name the local device or address, they must differ. */
static bool is_local(const char *name)
{
    static const char *const local[] = {
        "NCCL_COMM_ID",         "NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE",
        "NCCL_GRAPH_DUMP_FILE", "NCCL_IB_GID_INDEX",  "NCCL_HOSTID", "NCCL_RAS_ADDR",   "NCCL_LOCAL_RANK"};

    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (!strcmp(name, local[i])) return true;
    return false;
}

static const char *host_of(const struct kl_log *log, int speaker)
{
    return *log->speaker[speaker].host ? log->speaker[speaker].host : "another rank";
}

static void add_setting_pair(struct kl_finding_list *list, const struct kl_log_setting *a,
                             const struct kl_log_setting *b)
{
    char text[256], x[KL_LOG_WHO] = "", y[KL_LOG_WHO] = "";

    for (int i = 0; i < list->out->n; i++)
        if (list->out->finding[i].code == KL_FOUND_SETTINGS_DIFFER && !strcmp(list->out->finding[i].text, a->name)) {
            list->out->finding[i].times++;
            return;
        }
    snprintf(text, sizeof text, "%.60s on %s, %.60s on %s", a->value, kl_log_who(list->log, a->speaker, x), b->value,
             kl_log_who(list->log, b->speaker, y));
    kl_finding_add(list, differ(KL_FOUND_SETTINGS_DIFFER, b->at, a->name, kl_finding_keep(list, text)));
}

static void find_settings(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nsetting; i++)
        for (int j = 0; j < i && j < 512; j++) {
            const struct kl_log_setting *a = &log->setting[j], *b = &log->setting[i];

            if (a->speaker == b->speaker || strcmp(a->name, b->name)) continue;
            if (strcmp(a->value, b->value) && !is_local(a->name)) add_setting_pair(list, a, b);
            break;
        }
}

/* ---- what ranks of a communicator should have alike ---- */

static void compare_members(struct kl_finding_list *list, const struct kl_log_member *a, const struct kl_log_member *b)
{
    const struct kl_log *log = list->log;
    const char *x = host_of(log, a->speaker), *y = host_of(log, b->speaker);
    struct kl_log_finding f = differ(KL_FOUND_CHANNELS_DIFFER, b->channels_at, x, y);

    if (a->coll >= 0 && b->coll >= 0 && a->coll != b->coll && !kl_finding_has(list, f.code, 0)) {
        f.n = a->coll;
        f.m = b->coll;
        kl_finding_add(list, f);
    }
    if (a->network && b->network && strcmp(a->network, b->network) &&
        !kl_finding_has(list, KL_FOUND_NETWORKS_DIFFER, 0)) {
        f = differ(KL_FOUND_NETWORKS_DIFFER, b->at, a->network, b->network);
        f.weight = KL_LOG_STOPS;
        kl_finding_add(list, f);
    }
}

static void find_members(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->comm < 0 || m->nranks < 2) continue;
        compare_members(list, &log->member[log->comm[m->comm].first], m);
    }
}

/* ---- hosts that found other graphs ---- */

static const struct kl_log_graph *graph_like(const struct kl_log *log, int before, const struct kl_log_graph *g)
{
    const struct kl_log_member *m = &log->member[g->member];

    for (int i = 0; i < before; i++) {
        const struct kl_log_graph *o = &log->graph[i];
        const struct kl_log_member *n = &log->member[o->member];

        if (o->pattern == g->pattern && n->comm == m->comm && strcmp(kl_member_host(log, n), kl_member_host(log, m)))
            return o;
    }
    return NULL;
}

static void find_graphs(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->ngraph && i < 4096; i++) {
        const struct kl_log_graph *g = &log->graph[i], *o = graph_like(log, i, g);
        double x, y;

        if (!o || !g->nchannels || !o->nchannels) continue;
        x = o->bw_inter * o->nchannels;
        y = g->bw_inter * g->nchannels;
        if (x == y || kl_finding_has(list, KL_FOUND_GRAPHS_DIFFER, 0)) continue;
        struct kl_log_finding f = differ(KL_FOUND_GRAPHS_DIFFER, g->at, host_of(log, log->member[o->member].speaker),
                                         host_of(log, log->member[g->member].speaker));
        f.x = o->bw_inter;
        f.y = g->bw_inter;
        f.n = o->nchannels;
        f.m = g->nchannels;
        f.a = g->pattern;
        kl_finding_add(list, f);
    }
}

static void find_machines(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 1; i < log->nsystem; i++) {
        const struct kl_log_system *s = &log->system[i], *first = &log->system[0];
        const char *x = host_of(log, first->speaker), *y = host_of(log, s->speaker);

        if (!s->complete || !first->complete || !strcmp(x, y) || kl_log_same_machine(log, 0, i)) continue;
        struct kl_log_finding f = differ(KL_FOUND_MACHINES_DIFFER, s->at, x, y);

        kl_finding_add(list, f);
        return;
    }
}

/* ---- NICs ---- */

static int nics_of(const struct kl_log *log, int speaker)
{
    int n = 0;

    for (int i = 0; i < log->nnic; i++) n += log->nic[i].speaker == speaker && log->nic[i].fabric != KL_LOG_ETHERNET;
    return n;
}

static void find_nics(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_nic *ib = NULL, *roce = NULL, *first = NULL;

    for (int i = 0; i < log->nnic; i++) {
        const struct kl_log_nic *nic = &log->nic[i];

        if (nic->fabric == KL_LOG_ETHERNET) continue;
        if (!first) first = nic;
        if (nic->fabric == KL_LOG_IB) ib = nic;
        if (nic->fabric == KL_LOG_ROCE) roce = nic;
        if (nic->speaker == first->speaker || kl_finding_has(list, KL_FOUND_NICS_DIFFER, 0)) continue;
        int n = nics_of(log, first->speaker), m = nics_of(log, nic->speaker);

        if (n == m) continue;
        struct kl_log_finding f =
            differ(KL_FOUND_NICS_DIFFER, nic->at, host_of(log, first->speaker), host_of(log, nic->speaker));
        f.n = n;
        f.m = m;
        kl_finding_add(list, f);
    }
    if (ib && roce)
        kl_finding_add(
            list, differ(KL_FOUND_MIXED_FABRIC, ib->at.line > roce->at.line ? ib->at : roce->at, ib->name, roce->name));
}

void kl_found_ranks(struct kl_finding_list *list)
{
    find_versions(list);
    find_settings(list);
    find_members(list);
    find_graphs(list);
    find_machines(list);
    find_nics(list);
}
