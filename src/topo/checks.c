/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "base/log.h"
#include "topo/paths.h"

#include <stdlib.h>

static const struct kl_node *gpu_at(const struct kl_topo *t, int i)
{
    return &t->node[kl_topo_at(t, KL_NODE_GPU, i)];
}

/* Node that the k-th link of a path leads to. */
static const struct kl_node *reached(const struct kl_topo *t, const struct kl_path *p, int k)
{
    return &t->node[t->link[kl_path_hops(t, p)[k]].to];
}

/* To a CPU: the highest bandwidth, then the lowest type. NULL without CPUs. */
static const struct kl_path *best_path(const struct kl_topo *t, int gpu)
{
    const struct kl_path *best = NULL;

    for (int c = 0; c < t->count[KL_NODE_CPU]; c++) {
        const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, c);

        if (!best || p->bw > best->bw || (p->bw == best->bw && p->type < best->type)) best = p;
    }
    return best;
}

ncclResult_t kl_path_cpu_of_gpu(const struct kl_topo *t, int gpu, int *cpu)
{
    bool nearest = kl_nccl_has(t->options.nccl, KL_CHANGE_CPU_BY_BANDWIDTH);
    const struct kl_path *nearer = nearest ? best_path(t, gpu) : NULL;
    int best = -1, hops = 0;
    char text[KL_NODE_TEXT];

    for (int c = 0; c < t->count[KL_NODE_CPU]; c++) {
        const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, c);
        if (nearer && (p->bw != nearer->bw || p->type != nearer->type)) continue;
        if (!p->hops || (best >= 0 && p->hops >= hops)) continue;
        best = c;
        hops = p->hops;
    }
    if (best < 0) return KL_FAIL(ncclInternalError, "%s reaches no CPU", kl_node_text(gpu_at(t, gpu), text));
    *cpu = best;
    return ncclSuccess;
}

/* The largest distance of a NIC's relay from the NIC. */
int kl_path_relay_limit(const struct kl_topo *t)
{
    int set = t->options.pxn_c2c;
    bool on = set < 0 ? kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_C2C_DEFAULT) : set != 0;

    return on && kl_nccl_has(t->options.nccl, KL_CHANGE_PXN_C2C) ? KL_PATH_P2C : KL_PATH_PXB;
}

/* ---- P2P ---- */

static void find_limit(const struct kl_topo *t, struct kl_p2p *p2p)
{
    const struct kl_node *cpu = kl_topo_first_cpu(t);
    bool amd = cpu && cpu->cpu.arch == KL_ARCH_X86 && cpu->cpu.vendor == KL_VENDOR_AMD;

    if (t->options.p2p_level >= 0) {
        p2p->level = t->options.p2p_level;
        p2p->limit = KL_P2P_LIMIT_SET;
    } else if (amd && t->count[KL_NODE_GPU] <= 2) {
        p2p->level = KL_PATH_SYS;
        p2p->limit = KL_P2P_LIMIT_AMD_PAIR;
    } else {
        p2p->level = KL_PATH_PXB;
        p2p->limit = KL_P2P_LIMIT_DEFAULT;
    }
}

/* Could two processes of one host map each other's memory at all, wherever their GPUs are? */
static bool same_memory(const struct kl_node *a, const struct kl_node *b)
{
    return a->gpu.shm_id == b->gpu.shm_id;
}

static enum kl_p2p_why in_reach(const struct kl_topo *t, const struct kl_node *a, const struct kl_node *b)
{
    if (!t->options.communicator) return KL_P2P_ALLOWED;
    if (kl_id_host(a->id) != kl_id_host(b->id) && !t->options.mnnvl) return KL_P2P_OTHER_HOST;
    return same_memory(a, b) ? KL_P2P_ALLOWED : KL_P2P_OTHER_MEMORY;
}

/* As the running process asks it, or as the document says that NVML did. */
static bool step_refused(const struct kl_topo *t, int a, int b)
{
    const struct kl_node *x = gpu_at(t, kl_topo_gpu_of_rank(t, a)), *y = gpu_at(t, kl_topo_gpu_of_rank(t, b));
    bool here = kl_id_host(x->id) == kl_id_host(y->id) && y->gpu.dev >= 0 && y->gpu.dev < 64;

    if (here && (x->gpu.no_p2p >> y->gpu.dev & 1)) return true;
    return t->options.p2p_works && !t->options.p2p_works(t->options.peer_ctx, a, b);
}

/* Does the driver's library refuse a step from rank a, over `via` if there is one, to b? */
static bool driver_refuses(const struct kl_topo *t, int a, int via, int b)
{
    const struct kl_topo_options *o = &t->options;

    if (o->ignore_disabled_p2p == 2 || a == b) return false;
    return via < 0 ? step_refused(t, a, b) : step_refused(t, a, via) || step_refused(t, via, b);
}

/* A veto on NVLink means broken hardware. */
static ncclResult_t check_driver(const struct kl_topo *t, const struct kl_path *p, int a, int b, struct kl_p2p *p2p)
{
    const struct kl_topo_options *o = &t->options;

    if (!driver_refuses(t, a, p2p->via, b)) return ncclSuccess;
    if (!o->ignore_disabled_p2p && p->type <= KL_PATH_NVB)
        return KL_FAIL(ncclUnhandledCudaError,
                       "P2P is disabled between the NVLink GPUs of ranks %d and %d; check the machine, or set "
                       "NCCL_IGNORE_DISABLED_P2P=1 to go on without",
                       a, b);
    if (!o->ignore_disabled_p2p && p->type < KL_PATH_SYS)
        KL_INFO(KL_GRAPH, "P2P is disabled between the GPUs of ranks %d and %d (NCCL_IGNORE_DISABLED_P2P=1 hides this)",
                a, b);
    p2p->why = KL_P2P_BROKEN;
    return ncclSuccess;
}

/* The further conditions of the transport, for a pair that may use P2P. */
static enum kl_p2p_why judge_transport(const struct kl_topo *t, int rank_a, int rank_b, int via)
{
    const struct kl_node *a = gpu_at(t, kl_topo_gpu_of_rank(t, rank_a)), *b = gpu_at(t, kl_topo_gpu_of_rank(t, rank_b));

    if (via >= 0) return t->options.p2p_cuda_memcpy ? KL_P2P_BY_COPY : KL_P2P_ALLOWED;
    if (kl_topo_net_faster(t, rank_a, rank_b)) return KL_P2P_NET_FASTER;
    if (kl_id_host(a->id) != kl_id_host(b->id) || !t->options.peer_access) return KL_P2P_ALLOWED;
    return t->options.peer_access(t->options.peer_ctx, rank_a, rank_b) ? KL_P2P_ALLOWED : KL_P2P_NO_ACCESS;
}

/*
 * Does the path allow it? LOC is the GPU itself. A path that was within the limit and no longer is has been rerouted,
 * by a condition of the transport or by the driver's veto.
 */
static enum kl_p2p_why judge_path(const struct kl_topo *t, const struct kl_path *p, int rank_a, int rank_b,
                                  const struct kl_p2p *p2p)
{
    if (t->options.p2p_disable && p->type > KL_PATH_LOC) return KL_P2P_DISABLED;
    if (p->type <= p2p->level) return KL_P2P_ALLOWED;
    if (p->was > p2p->level) return KL_P2P_TOO_FAR;
    if (p->type != KL_PATH_NET || driver_refuses(t, rank_a, p2p->via, rank_b)) return KL_P2P_BROKEN;
    enum kl_p2p_why why = judge_transport(t, rank_a, rank_b, p2p->via);
    return why == KL_P2P_ALLOWED ? KL_P2P_NET_FASTER : why;
}

ncclResult_t kl_topo_p2p(const struct kl_topo *t, int rank_a, int rank_b, struct kl_p2p *answer)
{
    int a = kl_topo_gpu_of_rank(t, rank_a), b = kl_topo_gpu_of_rank(t, rank_b);
    struct kl_p2p p2p = {.via = -1, .why = KL_P2P_ABSENT, .type = KL_PATH_DIS};

    if (a < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank_a);
    find_limit(t, &p2p);
    if (b >= 0) p2p.why = in_reach(t, gpu_at(t, a), gpu_at(t, b));
    *answer = p2p;
    if (p2p.why != KL_P2P_ALLOWED) return ncclSuccess;

    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, a, KL_NODE_GPU, b);
    if (p->hops == 2 && reached(t, p, 0)->type == KL_NODE_GPU) p2p.via = reached(t, p, 0)->gpu.rank;
    p2p.type = p->was;
    p2p.why = judge_path(t, p, rank_a, rank_b, &p2p);
    if (p2p.why == KL_P2P_ALLOWED) KL_TRY(check_driver(t, p, rank_a, rank_b, &p2p));
    p2p.p2p = p2p.why == KL_P2P_ALLOWED;
    p2p.read = p->type == KL_PATH_NVL && gpu_at(t, a)->gpu.sm == 80 && gpu_at(t, b)->gpu.sm == 80;
    *answer = p2p;
    return ncclSuccess;
}

bool kl_topo_net_faster(const struct kl_topo *t, int rank_a, int rank_b)
{
    int a = kl_topo_gpu_of_rank(t, rank_a), b = kl_topo_gpu_of_rank(t, rank_b);

    if (t->options.net_disable_intra) return false;
    if (a < 0 || b < 0) return !kl_nccl_has(t->options.nccl, KL_CHANGE_ABSENT_NOT_NET);
    float inside = kl_path_between(t, KL_NODE_GPU, a, KL_NODE_GPU, b)->bw;
    return t->near_net[a] > inside && t->near_net[b] > inside;
}

enum kl_shm_why kl_topo_shm(const struct kl_topo *t, int rank_a, int rank_b)
{
    int a = kl_topo_gpu_of_rank(t, rank_a), b = kl_topo_gpu_of_rank(t, rank_b);

    if (t->options.shm_disable) return KL_SHM_DISABLED;
    if (a < 0 || b < 0) return KL_SHM_ABSENT;
    if (kl_id_host(gpu_at(t, a)->id) != kl_id_host(gpu_at(t, b)->id)) return KL_SHM_OTHER_HOST;
    if (!same_memory(gpu_at(t, a), gpu_at(t, b))) return KL_SHM_OTHER_MEMORY;
    return kl_topo_net_faster(t, rank_a, rank_b) ? KL_SHM_NET_FASTER : KL_SHM_ALLOWED;
}

ncclResult_t kl_topo_p2p_transport(const struct kl_topo *t, int rank_a, int rank_b, struct kl_p2p *answer)
{
    KL_TRY(kl_topo_p2p(t, rank_a, rank_b, answer));
    if (answer->p2p) answer->why = judge_transport(t, rank_a, rank_b, answer->via);
    answer->p2p = answer->why == KL_P2P_ALLOWED;
    return ncclSuccess;
}

/* ---- GPUDirect RDMA ---- */

static bool has_nvlink_peer(const struct kl_topo *t, int gpu)
{
    if (t->count[KL_NODE_GPU] == 1) return true;
    for (int p = 0; p < t->count[KL_NODE_GPU]; p++)
        if (p != gpu && kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_GPU, p)->type == KL_PATH_NVL) return true;
    return false;
}

static enum kl_gdr_why judge_read(const struct kl_topo *t, int gpu)
{
    if (t->options.gdr_read == 0) return KL_GDR_READ_DISABLED;
    bool able = t->options.gdr_read > 0 || gpu_at(t, gpu)->gpu.sm >= 80 || has_nvlink_peer(t, gpu);
    return able ? KL_GDR_ALLOWED : KL_GDR_READ_OLD_GPU;
}

/* Always in newer releases: their drivers support it. */
static bool partitions_have_gdr(const struct kl_topo *t)
{
    return t->options.gdr_mlopart || kl_nccl_has(t->options.nccl, KL_CHANGE_MLOPART_GDR);
}

/* Conditions on the devices, without the path between them. */
static enum kl_gdr_why judge_devices(const struct kl_topo *t, int gpu, int net, bool read)
{
    if (!t->node[kl_topo_at(t, KL_NODE_NET, net)].net.gdr) return KL_GDR_NIC_CANNOT;
    if (!gpu_at(t, gpu)->gpu.gdr) return KL_GDR_GPU_CANNOT;
    if (gpu_at(t, gpu)->gpu.partition >= 0 && !partitions_have_gdr(t)) return KL_GDR_PARTITION;
    return read ? judge_read(t, gpu) : KL_GDR_ALLOWED;
}

static bool gdr_over_c2c(const struct kl_topo *t)
{
    int set = t->options.gdr_c2c;

    return set < 0 ? kl_nccl_has(t->options.nccl, KL_CHANGE_GDR_C2C_DEFAULT) : set != 0;
}

/* The largest distance of the NIC without NCCL_NET_GDR_LEVEL. */
static int default_gdr_level(const struct kl_topo *t, int gpu)
{
    bool partition = gpu_at(t, gpu)->gpu.partition >= 0;

    if (partition && kl_nccl_has(t->options.nccl, KL_CHANGE_MLOPART_GDR)) return KL_PATH_P2C;
    return gdr_over_c2c(t) && kl_nccl_has(t->options.nccl, KL_CHANGE_GDR_LEVEL_P2C) ? KL_PATH_P2C : KL_PATH_PXB;
}

/* The distance from the GPU that the NIC reaches. */
static ncclResult_t judge_distance(const struct kl_topo *t, int gpu, int net, struct kl_gdr *gdr)
{
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);
    int distance = p->type, cpu = 0;

    KL_TRY(kl_path_cpu_of_gpu(t, gpu, &cpu));
    bool c2c = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, cpu)->type == KL_PATH_C2C;
    bool marked = kl_nccl_has(t->options.nccl, KL_CHANGE_P2C);
    bool by_level = kl_nccl_has(t->options.nccl, KL_CHANGE_GDR_LEVEL_P2C);
    bool over_c2c = marked ? distance == KL_PATH_P2C : distance == KL_PATH_PHB && c2c;
    if (gdr_over_c2c(t) && over_c2c && !by_level) distance = KL_PATH_C2C;
    if (distance <= gdr->level)
        gdr->mode = c2c && distance != (by_level ? KL_PATH_P2C : KL_PATH_C2C) ? KL_GDR_PCI : KL_GDR_DEFAULT;
    else
        gdr->why = KL_GDR_TOO_FAR;
    gdr->type = distance > gdr->level && p->was > gdr->level ? p->was : distance;
    gdr->c2c = over_c2c && !gdr_over_c2c(t) && (by_level ? !gdr->level_set : gdr->level >= KL_PATH_C2C);
    return ncclSuccess;
}

ncclResult_t kl_topo_gdr(const struct kl_topo *t, int rank, int net, bool read, struct kl_gdr *answer)
{
    int gpu = kl_topo_gpu_of_rank(t, rank);
    struct kl_gdr gdr = {.rank = rank, .level_set = t->options.gdr_level >= 0};

    if (gpu < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank);
    gdr.level = gdr.level_set ? t->options.gdr_level : default_gdr_level(t, gpu);
    gdr.type = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->was;
    gdr.why = judge_devices(t, gpu, net, read);
    if (gdr.why == KL_GDR_ALLOWED) {
        KL_TRY(kl_topo_pxn_rank(t, rank, net, &gdr.rank));
        KL_TRY(judge_distance(t, kl_topo_gpu_of_rank(t, gdr.rank), net, &gdr));
    }
    *answer = gdr;
    return ncclSuccess;
}

ncclResult_t kl_topo_need_flush(const struct kl_topo *t, int rank, int net, enum kl_flush *flush)
{
    int gpu = kl_topo_gpu_of_rank(t, rank), cpu = 0;

    if (gpu < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank);
    *flush = KL_FLUSH_NEEDED;
    if (t->options.net_force_flush || gpu_at(t, gpu)->gpu.sm < 90) return ncclSuccess;
    KL_TRY(kl_path_cpu_of_gpu(t, gpu, &cpu));
    *flush = KL_FLUSH_NONE;
    if (kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net)->type <= KL_PATH_PXB &&
        kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_CPU, cpu)->type == KL_PATH_C2C)
        *flush = kl_nccl_has(t->options.nccl, KL_CHANGE_FLUSH_C2C) ? KL_FLUSH_C2C : KL_FLUSH_NEEDED;
    return ncclSuccess;
}

ncclResult_t kl_topo_pxn_rank(const struct kl_topo *t, int rank, int net, int *relay)
{
    int gpu = kl_topo_gpu_of_rank(t, rank), k = 0;

    if (gpu < 0) return KL_FAIL(ncclInternalError, "rank %d has no GPU in its topology", rank);
    const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, gpu, KL_NODE_NET, net);
    if (p->type != KL_PATH_PXN) {
        *relay = rank;
        return ncclSuccess;
    }
    while (k < p->hops && reached(t, p, k)->type == KL_NODE_NVS) k++;
    if (k == p->hops || reached(t, p, k)->type != KL_NODE_GPU)
        return KL_FAIL(ncclInternalError, "the PXN path of rank %d to NET %d has no GPU to relay", rank, net);
    *relay = reached(t, p, k)->gpu.rank;
    return ncclSuccess;
}

/* ---- the machine as a whole ---- */

int kl_path_min_type(const struct kl_topo *t, enum kl_node_type to)
{
    int type = KL_PATH_SYS;

    for (int g = 0; g < t->count[KL_NODE_GPU]; g++)
        for (int i = 0; kl_path_has_table(t, kl_topo_at(t, KL_NODE_GPU, g), to) && i < t->count[to]; i++) {
            const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, g, to, i);
            if ((to != KL_NODE_GPU || i != g) && p->type < type) type = p->type;
        }
    return type;
}

int kl_path_max_type(const struct kl_topo *t, enum kl_node_type to)
{
    int type = KL_PATH_LOC;

    for (int g = 0; g < t->count[KL_NODE_GPU]; g++)
        for (int i = 0; kl_path_has_table(t, kl_topo_at(t, KL_NODE_GPU, g), to) && i < t->count[to]; i++) {
            const struct kl_path *p = kl_path_between(t, KL_NODE_GPU, g, to, i);
            if ((to != KL_NODE_GPU || i != g) && p->type > type) type = p->type;
        }
    return type;
}

bool kl_topo_all_nvlink(const struct kl_topo *t)
{
    return kl_path_max_type(t, KL_NODE_GPU) < KL_PATH_PIX;
}

/* Labels spread from each GPU to the later ones it has NVLink to; two labels with company mean two islands. */
static int islands(const struct kl_topo *t, int *label, int *members)
{
    int n = t->count[KL_NODE_GPU], shared = 0;

    for (int g = 0; g < n; g++) label[g] = g;
    for (int g = 0; g < n; g++)
        for (int p = g + 1; p < n; p++)
            if (kl_path_between(t, KL_NODE_GPU, g, KL_NODE_GPU, p)->type == KL_PATH_NVL) label[p] = label[g];
    for (int g = 0; g < n; g++) members[g] = 0;
    for (int g = 0; g < n; g++) shared += ++members[label[g]] == 2;
    return shared;
}

bool kl_topo_split_nvlink(const struct kl_topo *t)
{
    size_t n = (size_t)t->count[KL_NODE_GPU] + 1;
    int *label = malloc(2 * n * sizeof *label);
    bool split = label && islands(t, label, label + n) == 2;

    free(label);
    return split;
}
