/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings_make.h"
#include "logs/machine.h"
#include "topo/fault.h"
#include "topo/release.h"

#include <stdlib.h>
#include <string.h>

/* ---- parts that differ from their like ---- */

static int release_of(const struct kl_log *log)
{
    const struct kl_log_version *v = kl_log_version_of(log, kl_log_main(log));

    return kl_nccl_nearest(v ? v->text : NULL);
}

static void find_faults(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int system = kl_log_system_of(log, NULL);
    struct kl_faults faults = {.n = 0};
    struct kl_log_assumed assumed;
    struct kl_xml *xml;

    if (system < 0 || kl_log_machine(log, system, release_of(log), &xml, &assumed)) return;
    ncclResult_t rc = kl_faults_find(xml, release_of(log), &faults);

    for (int i = 0; !rc && i < faults.n; i++)
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_MACHINE,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = log->system[system].at,
                                                     .fault = faults.fault[i].code,
                                                     .text = kl_finding_keep(list, faults.fault[i].text)});
    kl_faults_fini(&faults);
    kl_xml_free(xml);
}

/* ---- switches that a virtual machine makes up ---- */

static bool has_gpu_below(const struct kl_log *log, int node)
{
    for (int i = node + 1; i < log->nnode; i++) {
        const struct kl_log_node *n = &log->node[i];

        if (n->system != log->node[node].system) continue;
        if (n->depth <= log->node[node].depth) return false;
        if (!strcmp(n->type, "GPU") && n->link == KL_PATH_PCI) return true;
    }
    return false;
}

static void find_virtual_pci(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int system = log->nsystem ? 0 : -1, n = 0;
    double bw = 0;

    for (int i = 0; i < log->nnode; i++) {
        const struct kl_log_node *node = &log->node[i];

        if (node->system != system || node->link != KL_PATH_PCI || node->bw > 1 || strcmp(node->type, "NIC") == 0)
            continue;
        if (strcmp(node->type, "GPU") && !has_gpu_below(log, i)) continue;
        n++;
        bw = node->bw;
    }
    if (!n) return;
    kl_finding_add(
        list, (struct kl_log_finding){
                  .code = KL_FOUND_VIRTUAL_PCI, .weight = KL_LOG_COSTS, .at = log->system[system].at, .n = n, .x = bw});
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

    for (int i = 0; i < log->nnode; i++)
        gpus += !log->node[i].system && !strcmp(log->node[i].type, "GPU") && log->node[i].link != KL_PATH_NVL;
    return c && (c->nnodes > 1 || c->nranks > gpus);
}

static void find_slow_nics(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nnode && needs_network(log); i++) {
        const struct kl_log_node *n = &log->node[i];

        if (strcmp(n->type, "NET") || n->link != KL_PATH_NET || n->bw <= 0 || n->bw >= 1 || !strcmp(n->more, ""))
            continue;
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SLOW_NIC,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = log->system[n->system].at,
                                                     .x = n->bw,
                                                     .text = n->id});
        return;
    }
}

/* ---- NVLS ---- */

static bool has_switch(const struct kl_log *log, int member)
{
    for (int i = 0; i < log->nnode; i++)
        if (!strcmp(log->node[i].type, "NVS") && log->system[log->node[i].system].member == member) return true;
    return false;
}

static void find_nvls(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->nvls_support || m->nranks < 2 || kl_finding_has(list, KL_FOUND_NVLS_OFF, 0)) continue;
        if (has_switch(log, i))
            kl_finding_add(list,
                           (struct kl_log_finding){.code = KL_FOUND_NVLS_OFF, .weight = KL_LOG_COSTS, .at = m->at});
    }
}

/* ---- affinity: CPUs as a set, "0-31,64-95"; masks are not compared ---- */

enum { CPUS = 4096 };

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

static void find_affinity(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember && i < 512; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (!m->cpus) continue;
        if (!*m->cpus && !kl_finding_has(list, KL_FOUND_NO_AFFINITY, 0))
            kl_finding_add(list,
                           (struct kl_log_finding){
                               .code = KL_FOUND_NO_AFFINITY, .weight = KL_LOG_REMARK, .at = m->cpus_at, .a = m->rank});
        for (int j = 0; j < log->nmember && j < 512; j++) {
            const struct kl_log_member *o = &log->member[j];

            if (!o->cpus || o->comm != m->comm || strcmp(kl_member_host(log, o), kl_member_host(log, m))) continue;
            if (!is_part(m->cpus, o->cpus)) continue;
            kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_AFFINITY,
                                                         .weight = KL_LOG_REMARK,
                                                         .at = m->cpus_at,
                                                         .a = m->rank,
                                                         .n = o->rank,
                                                         .text = m->cpus,
                                                         .other = o->cpus});
            break;
        }
    }
}

void kl_found_machine(struct kl_finding_list *list)
{
    find_faults(list);
    find_virtual_pci(list);
    find_fallback(list);
    find_slow_nics(list);
    find_nvls(list);
    find_affinity(list);
}
