/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/explain/pair.h"

#include "base/error.h"
#include "base/text.h"
#include "plan/net_name.h"
#include "plan/topo_name.h"
#include "tools/kolo/output.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- which ends ---- */

/* "3" and "GPU/3": the rank, else -1. */
static long rank_named(const char *word)
{
    const char *digits = strncmp(word, "GPU/", 4) ? word : word + 4;
    char *end;
    long rank = isdigit((unsigned char)*digits) ? strtol(digits, &end, 10) : -1;

    return rank < 0 || *end ? -1 : rank;
}

static ncclResult_t set_gpu(const struct kl_talk_request *q, long rank, struct kl_talk_end *end)
{
    const struct kl_cluster *c = q->cluster;
    int nranks = c->hosts * c->gpus, together = c->machine.hosts > 1 ? nranks : c->gpus;

    if (rank >= nranks)
        return KL_FAIL(ncclInvalidUsage, "GPU/%ld: %s %d GPU%s%s", rank,
                       c->hosts > 1 ? "these hosts have" : "this host has", nranks, kl_plural(nranks),
                       "; --hosts N adds hosts, whose GPUs are numbered on");
    end->type = KL_NODE_GPU;
    end->rank = (int)rank;
    end->host = (int)rank / c->gpus;
    end->local = (int)rank % together;
    end->shift = (int)rank - end->local;
    end->dev = q->whole->node[kl_topo_at(q->whole, KL_NODE_GPU, kl_topo_gpu_of_rank(q->whole, end->local))].gpu.dev;
    snprintf(end->name, sizeof end->name, "GPU/%d", end->rank);
    return ncclSuccess;
}

static int net_with_dev(const struct kl_topo *t, int dev)
{
    for (int i = 0; i < t->count[KL_NODE_NET]; i++)
        if (t->node[kl_topo_at(t, KL_NODE_NET, i)].net.dev == dev) return kl_topo_at(t, KL_NODE_NET, i);
    return -1;
}

static ncclResult_t set_node(const struct kl_talk_request *q, const char *word, int node, struct kl_talk_end *end)
{
    const struct kl_topo *t = q->whole;
    enum kl_node_type type = node < 0 ? KL_NODE_PCI : t->node[node].type;

    char nic[KL_NODE_TEXT] = "NET/3";

    if (t->count[KL_NODE_NET]) kl_topo_name(t, kl_topo_at(t, KL_NODE_NET, 0), nic);
    if (type == KL_NODE_PCI || type == KL_NODE_NIC)
        return KL_FAIL(ncclInvalidUsage,
                       "%s: %s; ends are GPUs by rank (3, GPU/3), NICs (%s, or by name), CPU and NVS nodes", word,
                       node < 0 ? "no such end" : "no path is kept for switches and cards", nic);
    end->type = type;
    end->rank = end->dev = -1;
    end->local = kl_topo_index(t, node);
    kl_topo_name(t, node, end->name);
    if (type == KL_NODE_NET)
        snprintf(end->label, sizeof end->label, "%s", kl_net_name(q->document, t->node[node].net.dev));
    return ncclSuccess;
}

static ncclResult_t find_end(const struct kl_talk_request *q, const char *word, struct kl_talk_end *end)
{
    long rank = rank_named(word);
    int node = -1;

    if (rank >= 0) return set_gpu(q, rank, end);
    node = kl_topo_named(q->whole, word);
    if (node >= 0 && q->whole->node[node].type == KL_NODE_GPU) return set_gpu(q, q->whole->node[node].gpu.rank, end);
    if (node < 0 && kl_net_named(q->document, word) >= 0)
        node = net_with_dev(q->whole, kl_net_named(q->document, word));
    return set_node(q, word, node, end);
}

/* ---- the answer ---- */

static ncclResult_t find_gpus(struct kl_talk_request *q, struct kl_talk *talk)
{
    struct kl_planned planned;
    ncclResult_t rc;

    if (talk->a.rank == talk->b.rank)
        return KL_FAIL(ncclInvalidUsage, "%s twice: a GPU does not talk to itself", talk->a.name);
    rc = kl_planned_init(q->cluster, &planned);
    q->plan = planned.plan;
    if (!rc) rc = kl_talk_find(q, talk);
    kl_planned_fini(&planned);
    return rc;
}

static ncclResult_t find_nic(struct kl_talk_request *q, struct kl_talk *talk)
{
    struct kl_planned planned;
    ncclResult_t rc = kl_planned_init(q->cluster, &planned);

    q->plan = planned.plan;
    if (!rc) rc = kl_talk_find_nic(q, talk);
    kl_planned_fini(&planned);
    return rc;
}

static int node_of(const struct kl_topo *t, const struct kl_talk_end *end)
{
    return kl_topo_at(t, end->type, end->type == KL_NODE_GPU ? kl_topo_gpu_of_rank(t, end->local) : end->local);
}

static ncclResult_t find(struct kl_talk_request *q, struct kl_talk *talk)
{
    bool gpu_a = talk->a.type == KL_NODE_GPU, gpu_b = talk->b.type == KL_NODE_GPU;
    bool net_a = talk->a.type == KL_NODE_NET, net_b = talk->b.type == KL_NODE_NET;

    if (gpu_a && gpu_b) return find_gpus(q, talk);
    if ((gpu_a && net_b) || (net_a && gpu_b)) return find_nic(q, talk);
    talk->answer = KL_TALK_PATH;
    KL_TRY(kl_talk_add_leg(talk, q->whole, node_of(q->whole, &talk->a), node_of(q->whole, &talk->b),
                           talk->a.shift + talk->b.shift));
    talk->bw = talk->leg[0].narrowest;
    return ncclSuccess;
}

static ncclResult_t print(const struct kl_explain_request *q, const struct kl_cluster *cluster,
                          const struct kl_talk *talk, FILE *to)
{
    if (q->json) return kl_output_json(kl_talk_json(talk), to);
    kl_talk_text(talk, cluster, to);
    return ncclSuccess;
}

ncclResult_t kl_explain_pair(const struct kl_explain_request *q, FILE *to)
{
    struct kl_cluster cluster;
    struct kl_topo *whole = NULL;
    struct kl_xml *document = NULL;
    struct kl_talk talk = {.via = -1, .relay = -1};
    struct kl_talk_request request = {.cluster = &cluster};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_open(&q->cluster, &cluster));
    KL_TRY_OR(rc, out, kl_cluster_whole(&cluster, &whole, &document));
    request.whole = whole;
    request.document = document;
    talk.topology = cluster.name;
    talk.hosts = cluster.hosts;
    talk.gpus = !cluster.cpus;
    KL_TRY_OR(rc, out, find_end(&request, q->word[0], &talk.a));
    KL_TRY_OR(rc, out, find_end(&request, q->word[1], &talk.b));
    KL_TRY_OR(rc, out, find(&request, &talk));
    rc = print(q, &cluster, &talk, to);
out:
    kl_talk_free(&talk);
    kl_topo_free(whole);
    kl_xml_free(document);
    kl_cluster_close(&cluster);
    return rc;
}
