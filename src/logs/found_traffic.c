/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/findings_make.h"

#include <string.h>
#include <strings.h>

static bool is_set(const struct kl_log *log, const char *name, const char *value)
{
    const struct kl_log_setting *s = kl_log_find_setting(log, name);

    return s && !strcmp(s->value, value);
}

/* ---- nodes ---- */

static bool has_several_nodes(const struct kl_log *log)
{
    for (int i = 0; i < log->ncomm; i++)
        if (log->comm[i].nnodes > 1) return true;
    return false;
}

/* Fewer hosts speak than there are nodes, though all ranks do; or both ways within a host are switched off. */
static void find_split_host(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (m->nnodes < 2 || m->local_ranks != 1 || m->comm < 0 || kl_finding_has(list, KL_FOUND_SPLIT_HOST, 0))
            continue;
        bool off = is_set(log, "NCCL_P2P_DISABLE", "1") && is_set(log, "NCCL_SHM_DISABLE", "1"), same = false;

        for (int j = 0; j < i && !same; j++)
            same = log->member[j].comm == m->comm && *kl_member_host(log, m) && log->member[j].rank != m->rank &&
                   !strcmp(kl_member_host(log, &log->member[j]), kl_member_host(log, m));
        if (off || same)
            kl_finding_add(
                list, (struct kl_log_finding){
                          .code = KL_FOUND_SPLIT_HOST, .weight = KL_LOG_COSTS, .at = m->at, .n = m->nnodes, .a = off});
    }
}

static void find_socket(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int n = 0;
    struct kl_log_at at = {0};

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];

        if (!m->network || strcasecmp(m->network, "Socket") || m->comm < 0 || log->comm[m->comm].nnodes < 2) continue;
        if (!n++) at = m->at;
    }
    if (n)
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SOCKET,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = at,
                                                     .a = kl_finding_has(list, KL_FOUND_CAUSE, KL_CAUSE_NO_IB),
                                                     .speakers = n});
}

/* ---- GPUDirect ---- */

static const struct kl_log_gdr *refusal(const struct kl_log *log, bool by_gpu, int *n)
{
    const struct kl_log_gdr *first = NULL;

    *n = 0;
    for (int i = 0; i < log->ngdr; i++) {
        if (log->gdr[i].enabled || log->gdr[i].by_gpu != by_gpu) continue;
        if (!first) first = &log->gdr[i];
        ++*n;
    }
    return first;
}

static void find_gdr(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int far, drivers, without = 0, with = 0;
    const struct kl_log_gdr *f = refusal(log, true, &far), *d = refusal(log, false, &drivers);
    struct kl_log_at at = {0};
    bool sockets = false;

    if (kl_finding_has(list, KL_FOUND_SOCKET, 0)) return;
    for (int i = 0; i < log->nlink; i++) {
        if (log->link[i].way != KL_LOG_NET) continue;
        sockets |= strstr(log->link[i].how, "/Socket") != NULL;
        with += log->link[i].gdr;
        if (!log->link[i].gdr && !without++) at = log->link[i].at;
    }
    if (sockets || !(has_several_nodes(log) || without || with) || (with && !without)) return;
    if (f)
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_GDR_FAR,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = f->at,
                                                     .text = f->gpu,
                                                     .a = f->distance,
                                                     .n = f->level,
                                                     .times = far});
    else if (d)
        kl_finding_add(
            list,
            (struct kl_log_finding){
                .code = KL_FOUND_GDR_DRIVER, .weight = KL_LOG_COSTS, .at = d->at, .text = d->name, .times = drivers});
    else if (without && !kl_finding_has(list, KL_FOUND_CAUSE, KL_CAUSE_PLUGIN_NO_GDR))
        kl_finding_add(
            list, (struct kl_log_finding){.code = KL_FOUND_GDR_OFF, .weight = KL_LOG_COSTS, .at = at, .n = without});
}

/* ---- connections within a host ---- */

static void find_inside(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct kl_log_finding shm = {.code = KL_FOUND_SHM, .weight = KL_LOG_COSTS, .a = -1},
                          net = {.code = KL_FOUND_NET_INSIDE, .weight = KL_LOG_COSTS};

    for (int i = 0; i < log->nlink; i++) {
        const struct kl_log_link *l = &log->link[i];
        const struct kl_log_member *m = &log->member[l->member];
        bool one_node = m->comm >= 0 && log->comm[m->comm].nnodes == 1;

        if (l->way == KL_LOG_SHM && !shm.n++) shm.at = l->at;
        if (l->way == KL_LOG_SHM && m->all_p2p >= 0) shm.a = m->all_p2p;
        if (l->way == KL_LOG_NET && one_node && !net.n++) net.at = l->at;
    }
    shm.times = shm.n;
    net.times = net.n;
    if (shm.n) kl_finding_add(list, shm);
    if (net.n) kl_finding_add(list, net);
}

/* ---- messages ---- */

static void find_peer_channels(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nlink; i++) {
        const struct kl_log_link *l = &log->link[i];
        const struct kl_log_member *m = &log->member[l->member];
        int all = -1, each = -1;

        if (l->way != KL_LOG_NET || l->connection != 1 || m->comm < 0 || strstr(l->how, "/Socket")) continue;
        for (int j = 0; j < log->nmember && all < 0; j++)
            if (log->member[j].comm == m->comm) {
                all = log->member[j].p2p;
                each = log->member[j].per_peer;
            }
        if (each < 1 || each >= all) continue;
        kl_finding_add(list,
                       (struct kl_log_finding){
                           .code = KL_FOUND_PEER_CHANNELS, .weight = KL_LOG_REMARK, .at = l->at, .n = each, .m = all});
        return;
    }
}

void kl_found_traffic(struct kl_finding_list *list)
{
    find_split_host(list);
    find_socket(list);
    find_gdr(list);
    find_inside(list);
    find_peer_channels(list);
}
