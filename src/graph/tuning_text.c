/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of refusals. %s stands for the result of `fact`, %d for the result of `number`. */
#include "graph/tuning_rules.h"

/* clang-format off */
static const struct {
    const char *name, *text;
} refusals[KL_REFUSALS] = {
    [KL_TUNING_ALLOWED]         = {"allowed", "nothing speaks against it"},
    [KL_REFUSED_ONE_RANK]       = {"one_rank", "one rank has no peer"},
    [KL_REFUSED_FUNC]           = {"function", "not made for %s"},
    [KL_REFUSED_PROTO]          = {"protocol", "made for Simple only"},
    [KL_REFUSED_PAT_OFF]        = {"pat_off", "NCCL_PAT_ENABLE is 0"},
    [KL_REFUSED_PAT_SM]         = {"pat_sm", "a GPU is older than sm 60 (sm %d)"},
    [KL_REFUSED_PAT_RANKS]      = {"pat_ranks", "off by default with several ranks per node, here %d; NCCL_PAT_ENABLE=1 switches it on"},
    [KL_REFUSED_PAT_NET]        = {"pat_net", "off by default with this network device; NCCL_PAT_ENABLE=1 switches it on"},
    [KL_REFUSED_NO_GRID]        = {"no_grid", "%d ranks make no grid: their prime factors are too large"},
    [KL_REFUSED_NO_SHM_EXCHANGE] = {"no_shm_exchange", "made for up to 64 ranks of one node, here %d of several or more"},
    [KL_REFUSED_NO_COLLNET]     = {"no_collnet", "no reductions in the network: %s"},
    [KL_REFUSED_CHAIN_HEADS]    = {"chain_heads", "its chains begin at other GPUs than those that lead to the network"},
    [KL_REFUSED_NO_NVLS]        = {"no_nvls", "no reductions in the NVSwitch: %s"},
    [KL_REFUSED_NO_NVSWITCH]    = {"no_nvswitch", "needs an NVSwitch, and there is none"},
    [KL_REFUSED_NVLS_NODES]     = {"nvls_nodes", "needs reductions in the network (CollNet) to leave a node: %s"},
    [KL_REFUSED_ONE_NODE]       = {"one_node", "needs more than one node"},
    [KL_REFUSED_BY_ALGO]        = {"nccl_algo", "NCCL_ALGO excludes it"},
    [KL_REFUSED_BY_PROTO]       = {"nccl_proto", "NCCL_PROTO excludes it"},
    [KL_REFUSED_LL128_INTER]    = {"ll128_inter", "stores of 128 bytes may be torn on the way to a NIC: %s"},
    [KL_REFUSED_LL128_INTRA]    = {"ll128_intra", "stores of 128 bytes may be torn between GPUs: a path of type %s, and NVLink (NVL, NVB) is needed"},
    [KL_REFUSED_LL128_MIXED]    = {"ll128_mixed", "GPUs of different generations, down to sm %d"},
    [KL_REFUSED_LL128_SM]       = {"ll128_sm", "sm %d is none of 70, 80, 90, 100, 120, which keep stores of 128 bytes whole"},
    [KL_REFUSED_LL128_CUDA11]   = {"ll128_cuda11", "unsafe for two ranks of sm 90 when built for CUDA 11"},
    [KL_REFUSED_COLLNET_GATHER] = {"collnet_gather", "no network plug-in is known to offer %s"},
    [KL_REFUSED_COLLNET_HEADS]  = {"collnet_heads", "a node has more ranks than GPUs that lead to the network (%d heads)"},
    [KL_REFUSED_NO_GRAPH]       = {"no_graph", "the search found no channels for it"},
    [KL_REFUSED_COLLNET_OP]     = {"collnet_op", "the network cannot reduce this type with this operation"},
    [KL_REFUSED_COLLNET_LOCAL]  = {"collnet_local", "for up to 8 ranks of a node, here %d"},
    [KL_REFUSED_NVLS_OP]        = {"nvls_op", "the NVSwitch cannot reduce this type with this operation"},
    [KL_REFUSED_NVLS_GATHER]    = {"nvls_gather", "does %s within one node of up to 32 ranks only"},
    [KL_REFUSED_PAT_OP]         = {"pat_op", "this operation scales values, which PAT cannot do on the way"},
};
/* clang-format on */

const char *kl_tuning_refusal_name(enum kl_tuning_refusal why)
{
    return refusals[why].name;
}

static int number(const struct kl_tuning_input *in, enum kl_tuning_refusal why)
{
    switch (why) {
    case KL_REFUSED_PAT_RANKS:
    case KL_REFUSED_COLLNET_LOCAL:
        return in->max_local_ranks;
    case KL_REFUSED_NO_GRID:
    case KL_REFUSED_NO_SHM_EXCHANGE:
        return in->nranks;
    case KL_REFUSED_COLLNET_HEADS:
        return in->collnet_heads;
    default:
        return in->min_sm;
    }
}

/* The type of the path to the NIC, and the required type. */
static const char *inter_fact(const struct kl_tuning_input *in, int type)
{
    if (type == KL_PATH_PXN) return "a path of type PXN, and GPUs before sm 90 need PXB or better";
    if (type == KL_PATH_PHB)
        return in->min_sm < 90 ? "a path of type PHB, and PXB or better is needed"
                               : "a path of type PHB, and PXN or better is needed";
    return in->min_sm < 90 ? "a path of type SYS or worse, and PXB or better is needed"
                           : "a path of type SYS or worse, and PXN or better is needed";
}

static const char *fact(const struct kl_tuning *t, int func, int algo, enum kl_tuning_refusal why)
{
    const struct kl_graph_facts *g = &t->in.graph[kl_algo_graph(algo)];

    switch (why) {
    case KL_REFUSED_NO_NVLS:
        return kl_offload_text(t->in.no_nvls);
    case KL_REFUSED_NO_COLLNET:
    case KL_REFUSED_NVLS_NODES:
        return kl_offload_text(t->in.no_collnet);
    case KL_REFUSED_LL128_INTER:
        return inter_fact(&t->in, g->type_inter);
    case KL_REFUSED_LL128_INTRA:
        return kl_path_type_name[g->type_intra];
    default:
        return kl_func_name[func];
    }
}

/* The sentences are the table's, which no compiler can check: each takes one fact or none. */
static void add(struct kl_text *text, enum kl_tuning_refusal why, const char *fact, int number)
{
    const char *sentence = refusals[why].text, *hole = sentence;

    while (*hole && *hole != '%') hole++;
    kl_text_add(text, "%.*s", (int)(hole - sentence), sentence);
    if (!*hole) return;
    if (hole[1] == 'd')
        kl_text_add(text, "%d", number);
    else
        kl_text_add(text, "%s", fact);
    kl_text_add(text, "%s", hole + 2);
}

void kl_tuning_refusal_text(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto,
                            struct kl_text *text)
{
    enum kl_tuning_refusal why = kl_tuning_refused(t, op, algo, proto);

    add(text, why, fact(t, op->func, algo, why), number(&t->in, why));
}

/* Would it do the operation, if it were only for NCCL_ALGO and NCCL_PROTO? */
static bool is_there(const struct kl_tuning *t, const struct kl_tuning_op *op, int algo, int proto)
{
    enum kl_tuning_refusal why = t->refusal[op->func][algo][proto];
    bool free = why == KL_TUNING_ALLOWED || why == KL_REFUSED_BY_ALGO || why == KL_REFUSED_BY_PROTO;

    return free && !kl_tuning_unfit(t, op, algo) && t->in.graph[kl_algo_graph(algo)].nchannels > 0;
}

void kl_tuning_candidates_text(const struct kl_tuning *t, const struct kl_tuning_op *op, struct kl_text *text)
{
    int algos = 0;

    for (int a = 0; a < t->constants->algos; a++) {
        int protos = 0;

        for (int p = 0; p < KL_PROTOS; p++) {
            if (!is_there(t, op, a, p)) continue;
            if (!protos++) kl_text_add(text, "%s%s (", algos++ ? ", " : "", kl_algo_name[a]);
            kl_text_add(text, "%s%s", protos > 1 ? ", " : "", kl_proto_name[p]);
        }
        if (protos) kl_text_add(text, ")");
    }
    if (!algos) kl_text_add(text, "nothing");
}
