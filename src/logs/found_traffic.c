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

/* A rank of a communicator that sits on the same host as the first, though each is a node of its own. */
static bool has_neighbour(const struct kl_log *log, const struct kl_log_comm *c)
{
    enum { LOOKED_AT = 256 }; /* two of them have one host, or hosts have one rank each */
    int n = 0;

    for (int i = c->first; i >= 0 && n < LOOKED_AT; i = log->member[i].next, n++)
        for (int j = c->first; j != i; j = log->member[j].next) {
            const struct kl_log_member *a = &log->member[i], *b = &log->member[j];
            const char *host = kl_member_host(log, a);

            if (a->rank != b->rank && *host && !strcmp(host, kl_member_host(log, b))) return true;
        }
    return false;
}

static const struct kl_log_member *one_per_node(const struct kl_log *log, const struct kl_log_comm *c)
{
    for (int i = c->first; i >= 0; i = log->member[i].next)
        if (log->member[i].nnodes > 1 && log->member[i].local_ranks == 1) return &log->member[i];
    return NULL;
}

/* Ranks of one host that count as nodes; or both ways within a host are switched off. */
static void find_split_host(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    bool off = is_set(log, "NCCL_P2P_DISABLE", "1") && is_set(log, "NCCL_SHM_DISABLE", "1");

    for (int c = 0; c < log->ncomm; c++) {
        const struct kl_log_member *m = one_per_node(log, &log->comm[c]);

        if (!m || (!off && !has_neighbour(log, &log->comm[c]))) continue;
        kl_finding_add(list,
                       (struct kl_log_finding){
                           .code = KL_FOUND_SPLIT_HOST, .weight = KL_LOG_COSTS, .at = m->at, .n = m->nnodes, .a = off});
        return;
    }
}

/* A host whose ranks count as several nodes of several ranks: its host ids differ. */
static void find_divided_host(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];
        const char *host = kl_member_host(log, m);
        int n = 0;

        if (m->comm < 0 || m->local_ranks < 2 || m->nnodes < 2 || !*host || log->comm[m->comm].first != i) continue;
        for (int k = i; k >= 0; k = log->member[k].next) n += !strcmp(kl_member_host(log, &log->member[k]), host);
        if (n <= m->local_ranks) continue;
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_DIVIDED_HOST,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = m->at,
                                                     .text = host,
                                                     .n = n,
                                                     .m = m->local_ranks,
                                                     .a = m->nnodes,
                                                     .x = m->nranks});
        return;
    }
}

/* ---- containers of one host ---- */

/* Connections of a communicator that go over sockets, of those that go through the network. */
static bool all_sockets(const struct kl_log *log, int comm, struct kl_log_at *at)
{
    int sockets = 0;

    for (int i = 0; i < log->nlink; i++) {
        const struct kl_log_link *l = &log->link[i];

        if (log->member[l->member].comm != comm || l->way != KL_LOG_NET) continue;
        if (!strstr(l->how, "/Socket")) return false;
        if (!sockets++) *at = l->at;
    }
    return sockets > 0;
}

/* Ranks with the GPU of a member: by NVML's number, or where all have the same, by its bus id. */
static int count_gpu(const struct kl_log *log, const struct kl_log_comm *c, const struct kl_log_member *m, bool by_nvml)
{
    int n = 0;

    for (int i = c->first; i >= 0; i = log->member[i].next) {
        const struct kl_log_member *o = &log->member[i];

        n += by_nvml ? o->nvml == m->nvml : !strcmp(o->busid, m->busid);
    }
    return n;
}

static bool has_many_nvml(const struct kl_log *log, const struct kl_log_comm *c)
{
    for (int i = c->first; i >= 0; i = log->member[i].next)
        if (log->member[i].nvml != log->member[c->first].nvml) return true;
    return false;
}

/* How many hosts the ranks of a communicator look like, where each is a node of its own with one GPU that others do not have:
 * containers see one GPU each, while several hosts would show the same GPU. 0: they do not. */
static int containers_of(const struct kl_log *log, const struct kl_log_comm *c)
{
    enum { RANKS = 512 }; /* each is compared with each */
    int hosts = 0;
    const bool by_nvml = has_many_nvml(log, c);

    if (c->nranks < 2 || c->nranks > RANKS || c->nnodes != c->nranks || c->seen < c->nranks) return 0;
    for (int i = c->first; i >= 0; i = log->member[i].next)
        if (log->member[i].nvml < 0 || log->member[i].cuda != 0 || !log->member[i].busid) return 0;
    for (int i = c->first; i >= 0; i = log->member[i].next) {
        int n = count_gpu(log, c, &log->member[i], by_nvml);

        if (hosts && n != hosts) return 0;
        hosts = n;
    }
    return hosts < c->nranks ? hosts : 0;
}

static void find_containers(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;

    if (kl_finding_has(list, KL_FOUND_SPLIT_HOST, 0)) return;
    for (int c = 0; c < log->ncomm; c++) {
        struct kl_log_finding f = {.code = KL_FOUND_CONTAINERS, .weight = KL_LOG_COSTS, .n = log->comm[c].nranks};

        f.m = containers_of(log, &log->comm[c]);
        if (!f.m) continue;
        f.at = log->member[log->comm[c].first].at;
        f.a = all_sockets(log, c, &f.at);
        if (!f.a) f.weight = KL_LOG_REMARK; /* a fast network between hosts shows the same */
        kl_finding_add(list, f);
        return;
    }
}

/* ---- sockets ---- */

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
    for (int c = 0; c < log->ncomm && !n; c++) n = log->comm[c].nnodes > 1 && all_sockets(log, c, &at);
    if (n && !kl_finding_has(list, KL_FOUND_CONTAINERS, 0))
        kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_SOCKET,
                                                     .weight = KL_LOG_COSTS,
                                                     .at = at,
                                                     .a = kl_finding_has(list, KL_FOUND_CAUSE, KL_CAUSE_NO_IB),
                                                     .norigins = n});
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

    if (kl_finding_has(list, KL_FOUND_SOCKET, 0) || kl_finding_has(list, KL_FOUND_CONTAINERS, 0)) return;
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

static bool has_nvlinks(const struct kl_log *log)
{
    for (int i = 0; i < log->nnode; i++)
        if (log->node[i].link == KL_PATH_NVL) return true;
    return false;
}

/* Between PCIe cards of different sockets, NCCL takes shared memory by itself: it costs where GPUs have NVLinks, or where the
 * library says whether they reach each other. */
static void find_inside(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct kl_log_finding shm = {.code = KL_FOUND_SHM, .weight = KL_LOG_REMARK, .a = -1},
                          net = {.code = KL_FOUND_NET_INSIDE, .weight = KL_LOG_COSTS};

    for (int i = 0; i < log->nlink; i++) {
        const struct kl_log_link *l = &log->link[i];
        const struct kl_log_member *m = &log->member[l->member];
        bool one_node = m->comm >= 0 && log->comm[m->comm].nnodes == 1;

        if (l->way == KL_LOG_SHM && !shm.n++) shm.at = l->at;
        if (l->way == KL_LOG_SHM && m->all_p2p >= 0) shm.a = m->all_p2p;
        if (l->way == KL_LOG_NET && one_node && !net.n++) net.at = l->at;
    }
    if (shm.a >= 0 || has_nvlinks(log)) shm.weight = KL_LOG_COSTS;
    shm.times = shm.n;
    net.times = net.n;
    if (shm.n) kl_finding_add(list, shm);
    if (net.n) kl_finding_add(list, net);
}

/* ---- messages ---- */

/* Channels of a communicator, as the first of its ranks prints them. */
static const struct kl_log_member *counted(const struct kl_log *log, const struct kl_log_comm *c)
{
    for (int i = c->first; i >= 0; i = log->member[i].next)
        if (log->member[i].p2p >= 0) return &log->member[i];
    return NULL;
}

static void find_peer_channels(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    int last = -1;

    for (int i = 0; i < log->nlink; i++) {
        const struct kl_log_link *l = &log->link[i];
        int comm = log->member[l->member].comm;

        if (l->way != KL_LOG_NET || l->connection != 1 || comm < 0 || comm == last || strstr(l->how, "/Socket"))
            continue;
        const struct kl_log_member *m = counted(log, &log->comm[last = comm]);

        if (!m || m->per_peer < 1 || m->per_peer >= m->p2p) continue;
        kl_finding_add(
            list,
            (struct kl_log_finding){
                .code = KL_FOUND_PEER_CHANNELS, .weight = KL_LOG_REMARK, .at = l->at, .n = m->per_peer, .m = m->p2p});
        return;
    }
}

void kl_found_traffic(struct kl_finding_list *list)
{
    find_split_host(list);
    find_divided_host(list);
    find_containers(list);
    find_socket(list);
    find_gdr(list);
    find_inside(list);
    find_peer_channels(list);
}
