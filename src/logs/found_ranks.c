/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/findings_make.h"
#include "logs/machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kl_log_finding differ(enum kl_log_code code, struct kl_log_at at, const char *a, const char *b)
{
    return (struct kl_log_finding){.code = code, .weight = KL_LOG_COSTS, .at = at, .text = a, .other = b};
}

/* Are both in one communicator? Unknown ones may be, except lines that name no process. */
static bool may_be_together(const struct kl_log *log, int a, int b)
{
    bool known = log->origin[a].pid < 0 || log->origin[b].pid < 0;

    for (int i = log->origin[a].last; i >= 0; i = log->member[i].earlier)
        for (int j = log->origin[b].last; j >= 0 && log->member[i].comm >= 0; j = log->member[j].earlier) {
            if (log->member[i].comm == log->member[j].comm) return true;
            known |= log->member[j].comm >= 0;
        }
    return !known;
}

/* Ranks of one communicator must have one release; a file may hold several jobs. */
static void find_versions(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_version *first = log->version, *other = NULL;

    for (int i = 1; i < log->nversion; i++) {
        const struct kl_log_version *v = &log->version[i];

        if (v->number == first->number) continue;
        struct kl_log_finding f = differ(KL_FOUND_VERSIONS_DIFFER, v->at, first->text, v->text);

        f.weight = KL_LOG_STOPS;
        if (v->origin != first->origin && may_be_together(log, v->origin, first->origin)) {
            kl_finding_add(list, f);
            return;
        }
        if (!other) other = v;
    }
    if (!other) return;
    struct kl_log_finding f = differ(KL_FOUND_VERSIONS_DIFFER, other->at, first->text, other->text);

    f.weight = KL_LOG_REMARK;
    f.a = 1;
    kl_finding_add(list, f);
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

static const char *host_of(const struct kl_log *log, int origin)
{
    return *log->origin[origin].host ? log->origin[origin].host : "another rank";
}

static void add_setting_pair(struct kl_finding_list *list, const struct kl_log_setting *a,
                             const struct kl_log_setting *b)
{
    char text[256], x[KL_LOG_ORIGIN_TEXT] = "", y[KL_LOG_ORIGIN_TEXT] = "";

    for (int i = 0; i < list->out->n; i++)
        if (list->out->finding[i].code == KL_FOUND_SETTINGS_DIFFER && !strcmp(list->out->finding[i].text, a->name)) {
            list->out->finding[i].times++;
            return;
        }
    snprintf(text, sizeof text, "%.60s on %s, %.60s on %s", a->value, kl_log_origin_text(list->log, a->origin, x),
             b->value, kl_log_origin_text(list->log, b->origin, y));
    kl_finding_add(list, differ(KL_FOUND_SETTINGS_DIFFER, b->at, a->name, kl_finding_keep(list, text)));
}

static int by_name(const void *x, const void *y)
{
    const struct kl_log_setting *a = *(const struct kl_log_setting *const *)x,
                                *b = *(const struct kl_log_setting *const *)y;
    int d = strcmp(a->name, b->name);

    return d ? d : (a > b) - (a < b);
}

/* Each is compared with the first of its name. */
static void find_settings(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_setting **s = malloc(((size_t)log->nsetting + 1) * sizeof(void *)), *first = NULL;

    if (!s) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->nsetting; i++) s[i] = &log->setting[i];
    qsort(s, (size_t)log->nsetting, sizeof(void *), by_name);
    for (int i = 0; i < log->nsetting; i++) {
        if (!first || strcmp(first->name, s[i]->name) != 0) first = s[i];
        if (first->origin != s[i]->origin && strcmp(first->value, s[i]->value) != 0 && !is_local(first->name))
            add_setting_pair(list, first, s[i]);
    }
    free(s);
}

/* ---- facts that ranks of a communicator should share ---- */

static void compare_members(struct kl_finding_list *list, const struct kl_log_member *a, const struct kl_log_member *b)
{
    const struct kl_log *log = list->log;
    const char *x = host_of(log, a->origin), *y = host_of(log, b->origin);
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

static void add_graphs(struct kl_finding_list *list, const struct kl_log_graph *a, const struct kl_log_graph *b)
{
    const struct kl_log *log = list->log;
    struct kl_log_finding f = differ(KL_FOUND_GRAPHS_DIFFER, b->at, host_of(log, log->member[a->member].origin),
                                     host_of(log, log->member[b->member].origin));

    f.x = a->bw_inter;
    f.y = b->bw_inter;
    f.n = a->nchannels;
    f.m = b->nchannels;
    f.a = a->pattern;
    kl_finding_add(list, f);
}

/* Each is compared with the first of its communicator and pattern. */
static void find_graphs(struct kl_finding_list *list)
{
    enum { PATTERNS = 8 };
    const struct kl_log *log = list->log;
    int *first = calloc(((size_t)log->ncomm + 1) * PATTERNS, sizeof *first);

    for (int i = 0; first && i < log->ngraph; i++) {
        const struct kl_log_graph *g = &log->graph[i], *o;
        const struct kl_log_member *m = &log->member[g->member];

        if (g->pattern < 0 || g->pattern >= PATTERNS || !g->nchannels) continue;
        int *at = &first[(m->comm + 1) * PATTERNS + g->pattern];

        if (!*at) *at = i + 1;
        o = &log->graph[*at - 1];
        if (o->bw_inter * o->nchannels == g->bw_inter * g->nchannels) continue;
        if (!strcmp(kl_member_host(log, &log->member[o->member]), kl_member_host(log, m))) continue;
        add_graphs(list, o, g);
        break;
    }
    if (!first) list->rc = KL_NOMEM("findings of a log");
    free(first);
}

static void find_machines(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 1; i < log->nsystem; i++) {
        const struct kl_log_system *s = &log->system[i], *first = &log->system[0];
        const char *x = host_of(log, first->origin), *y = host_of(log, s->origin);

        if (!s->complete || !first->complete || !strcmp(x, y) || kl_log_same_machine(log, 0, i)) continue;
        struct kl_log_finding f = differ(KL_FOUND_MACHINES_DIFFER, s->at, x, y);

        kl_finding_add(list, f);
        return;
    }
}

/* ---- NICs ---- */

/* NICs of each origin; the first that has any is compared with the others. */
static void compare_nics(struct kl_finding_list *list, const int *nics)
{
    const struct kl_log *log = list->log;
    const struct kl_log_nic *first = NULL;

    for (int i = 0; i < log->nnic; i++) {
        const struct kl_log_nic *nic = &log->nic[i];

        if (nic->fabric == KL_LOG_ETHERNET) continue;
        if (!first) first = nic;
        if (nics[nic->origin] == nics[first->origin]) continue;
        struct kl_log_finding f =
            differ(KL_FOUND_NICS_DIFFER, nic->at, host_of(log, first->origin), host_of(log, nic->origin));

        f.n = nics[first->origin];
        f.m = nics[nic->origin];
        kl_finding_add(list, f);
        return;
    }
}

static void find_nics(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_nic *ib = NULL, *roce = NULL;
    int *nics = calloc((size_t)log->norigin + 1, sizeof *nics);

    if (!nics) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->nnic; i++) {
        const struct kl_log_nic *nic = &log->nic[i];

        if (nic->fabric == KL_LOG_IB) ib = nic;
        if (nic->fabric == KL_LOG_ROCE) roce = nic;
        nics[nic->origin] += nic->fabric != KL_LOG_ETHERNET;
    }
    compare_nics(list, nics);
    free(nics);
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
