/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "logs/findings_make.h"
#include "logs/machine.h"
#include "topo/anomaly.h"
#include "topo/release.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts that differ from their like ---- */

static void find_faults(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int system = kl_log_system_of(log, NULL), nccl = kl_log_release(log, kl_log_main(log));
    struct kl_anomalies faults = {.n = 0};
    struct kl_log_assumed assumed;
    struct kl_xml *xml;

    if (system < 0 || kl_log_machine(log, system, nccl, &xml, &assumed)) return;
    ncclResult_t rc = kl_anomalies_find(xml, nccl, &faults);

    for (int i = 0; !rc && i < faults.n; i++)
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_MACHINE,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = log->system[system].at,
                                                     .fault = faults.fault[i].code,
                                                     .text = kl_finding_keep(list, faults.fault[i].text)});
    kl_anomalies_fini(&faults);
    kl_xml_free(xml);
}

/* ---- switches that a virtual machine makes up ---- */

static bool has_gpu_below(const struct kl_log *log, int node)
{
    for (int i = log->node[node].next; i >= 0 && log->node[i].depth > log->node[node].depth; i = log->node[i].next)
        if (!strcmp(log->node[i].type, "GPU") && log->node[i].link == KL_PATH_PCI) return true;
    return false;
}

static void find_virtual_pci(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int n = 0;
    double bw = 0;

    for (int i = log->nsystem ? log->system[0].first : -1; i >= 0; i = log->node[i].next) {
        const struct kl_log_node *node = &log->node[i];

        if (node->link != KL_PATH_PCI || node->bw > 1 || !strcmp(node->type, "NIC")) continue;
        if (strcmp(node->type, "GPU") && !has_gpu_below(log, i)) continue;
        n++;
        bw = node->bw;
    }
    if (!n) return;
    kl_finding_add(list,
                   (struct kl_log_finding){
                       .code = KL_FOUND_VIRTUAL_PCI, .weight = KL_LOG_COSTS, .at = log->system[0].at, .n = n, .x = bw});
}

/* ---- graphs that were given up ---- */

static void find_fallback(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->ngraph; i++) {
        const struct kl_log_graph *g = &log->graph[i];

        if (!g->nchannels || g->bw_intra > 0.11 || g->bw_intra <= 0) continue;
        if (kl_finding_has(list, KL_FOUND_CAUSE, KL_CAUSE_FALLBACK)) return;
        kl_finding_add(list, (struct kl_log_finding){
                                 .code = KL_FOUND_FALLBACK, .weight = KL_LOG_COSTS, .at = g->at, .a = g->pattern});
        return;
    }
}

/* ---- NICs that are slow by themselves ---- */

/* Is there a network to go through: are there more ranks than GPUs here? */
static bool needs_network(const struct kl_log *log)
{
    const struct kl_log_comm *c = kl_log_main(log);
    int gpus = 0;

    for (int i = log->nsystem ? log->system[0].first : -1; i >= 0; i = log->node[i].next)
        gpus += !strcmp(log->node[i].type, "GPU") && log->node[i].link != KL_PATH_NVL;
    return c && (c->nnodes > 1 || c->nranks > gpus);
}

static void find_slow_nics(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0, n = needs_network(log) ? log->nnode : 0; i < n; i++) {
        const struct kl_log_node *node = &log->node[i];

        if (strcmp(node->type, "NET") || node->link != KL_PATH_NET || node->bw <= 0 || node->bw >= 1 || !*node->more)
            continue;
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SLOW_NIC,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = log->system[node->system].at,
                                                     .x = node->bw,
                                                     .text = node->id});
        return;
    }
}

/* ---- NVLS: a rank that says the NVSwitches of its machine do no multicast ---- */

static bool has_switch(const struct kl_log *log, int system)
{
    for (int i = log->system[system].first; i >= 0; i = log->node[i].next)
        if (!strcmp(log->node[i].type, "NVS")) return true;
    return false;
}

static void find_nvls(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nsystem; i++) {
        const struct kl_log_member *m = &log->member[log->system[i].member];

        if (m->nvls_support || m->nranks < 2 || !has_switch(log, i)) continue;
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_NVLS_OFF, .weight = KL_LOG_COSTS, .at = m->at});
        return;
    }
}

/* ---- affinity: CPUs as a set, "0-31,64-95"; masks are not compared ---- */

enum { CPUS = 4096, AFFINITY_DEFECT = 22902 }; /* the release that reads masks wrongly where threads share a process */

static bool read_cpus(const char *text, unsigned char set[CPUS])
{
    memset(set, 0, CPUS);
    if (!strchr(text, '-')) return false;
    for (const char *at = text; *at;) {
        char *end;
        long first = strtol(at, &end, 10), last = first;

        if (end == at) return false;
        if (*end == '-') last = strtol(at = end + 1, &end, 10);
        if (end == at || first < 0 || last >= CPUS || (*end && *end != ',')) return false;
        for (long c = first; c <= last; c++) set[c] = 1;
        at = end + (*end == ',');
    }
    return true;
}

/* Is every CPU of a in b, and b larger? */
static bool is_part(const char *a, const char *b)
{
    unsigned char x[CPUS], y[CPUS];
    bool more = false;

    if (!strcmp(a, b) || !read_cpus(a, x) || !read_cpus(b, y)) return false;
    for (int c = 0; c < CPUS; c++) {
        if (x[c] && !y[c]) return false;
        more |= y[c] && !x[c];
    }
    return more && *a;
}

static void find_no_affinity(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (!m->cpus || *m->cpus) continue;
        kl_finding_add(list,
                       (struct kl_log_finding){
                           .code = KL_FOUND_NO_AFFINITY, .weight = KL_LOG_REMARK, .at = m->cpus_at, .a = m->rank});
        return;
    }
}

/* A rank with CPUs, for sorting: ranks of one communicator and host stand together. */
struct placed {
    const char *host;
    const struct kl_log_member *m;
};

static int by_host(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;
    int d = strcmp(a->host, b->host);

    if (a->m->comm != b->m->comm) return a->m->comm < b->m->comm ? -1 : 1;
    return d ? d : (a->m > b->m) - (a->m < b->m);
}

static bool same_host(const struct placed *a, const struct placed *b)
{
    return a->m->comm == b->m->comm && !strcmp(a->host, b->host);
}

/* A neighbour of `at` that has the same CPUs and more. */
static const struct kl_log_member *wider(const struct placed *p, int n, int at)
{
    enum { NEIGHBOURS = 64 }; /* a host has fewer GPUs */
    int from = at;

    while (from > 0 && at - from < NEIGHBOURS && same_host(&p[from - 1], &p[at])) from--;
    for (int i = from; i < n && i - from < NEIGHBOURS && same_host(&p[i], &p[at]); i++)
        if (is_part(p[at].m->cpus, p[i].m->cpus)) return p[i].m;
    return NULL;
}

static void find_parts(struct kl_finding_list *list, const struct placed *p, int n)
{
    const struct kl_log_version *v = kl_log_version_of(list->log, kl_log_main(list->log));
    struct kl_log_finding f = {.code = KL_FOUND_AFFINITY, .weight = KL_LOG_REMARK, .at = {0, 0}};

    f.m = v && v->number == AFFINITY_DEFECT;
    for (int i = 0; i < n; i++) {
        const struct kl_log_member *o = wider(p, n, i);

        if (!o || f.times++) continue;
        f.at = p[i].m->cpus_at;
        f.a = p[i].m->rank;
        f.text = p[i].m->cpus;
        f.n = o->rank;
        f.other = o->cpus;
    }
    if (f.times) kl_finding_add(list, f);
}

static void find_affinity(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct placed *p = malloc(((size_t)log->nmember + 1) * sizeof *p);
    int n = 0;

    if (!p) {
        list->rc = KL_NOMEM("findings of a log");
        return;
    }
    for (int i = 0; i < log->nmember; i++)
        if (log->member[i].cpus) p[n++] = (struct placed){kl_member_host(log, &log->member[i]), &log->member[i]};
    qsort(p, (size_t)n, sizeof *p, by_host);
    find_parts(list, p, n);
    free(p);
}

/* ---- P2P between GPUs: the first path of those with one outcome stands for all ---- */

enum { PATHS_LOOKED_AT = 4096 }; /* of the largest node */

static bool is_first_path(const struct kl_log *log, int path)
{
    for (int i = 0; i < path; i++)
        if (!strcmp(log->gpu_path[i].why, log->gpu_path[path].why)) return false;
    return true;
}

static int paths_like(const struct kl_log *log, int path, int end)
{
    int n = 0;

    for (int i = path; i < end; i++) n += !strcmp(log->gpu_path[i].why, log->gpu_path[path].why);
    return n;
}

static void find_gpu_paths(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const int end = log->ngpu_path < PATHS_LOOKED_AT ? log->ngpu_path : PATHS_LOOKED_AT;

    for (int i = 0; i < end; i++) {
        const struct kl_log_gpu_path *p = &log->gpu_path[i];

        if (!is_first_path(log, i)) continue;
        kl_finding_add(list, (struct kl_log_finding){.code = p->tested ? KL_FOUND_GPU_PATH : KL_FOUND_GPU_P2P_OFF,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = p->at,
                                                     .n = p->from,
                                                     .m = p->to,
                                                     .text = p->why,
                                                     .times = paths_like(log, i, end)});
    }
}

void kl_found_machine(struct kl_finding_list *list)
{
    find_faults(list);
    find_virtual_pci(list);
    find_fallback(list);
    find_slow_nics(list);
    find_nvls(list);
    find_no_affinity(list);
    find_affinity(list);
    find_gpu_paths(list);
}
