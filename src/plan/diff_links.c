/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/diff_make.h"

#include "base/error.h"

#include <stdlib.h>
#include <string.h>

/* The same GPU in both documents. */
struct two_gpus {
    const struct kl_xml *a, *b;
    int ga, gb;
};

enum { MAX_ENDS = 64 }; /* of one GPU; further ones are not compared */

struct link_end {
    enum kl_node_type type;
    uint64_t busid; /* of a GPU */
    int links[2];
};

static ncclResult_t collect_ends(const struct kl_xml *xml, int gpu, int side, struct link_end *end, int *n)
{
    for (int e = kl_xml_child(xml, gpu, "nvlink"); e != KL_XML_NONE; e = kl_xml_next_same(xml, e)) {
        const char *target = kl_xml_attr(xml, e, "target");
        struct link_end found = {.busid = 0};
        int i = 0, count = kl_xml_int(xml, e, "count", 0);

        KL_TRY(kl_nvlink_end(xml, e, &found.type));
        if (found.type == KL_NODE_GPU && target) found.busid = kl_busid_parse(target);
        while (i < *n && (end[i].type != found.type || end[i].busid != found.busid)) i++;
        if (i == MAX_ENDS) break;
        if (i == *n) end[(*n)++] = found;
        if (count > 0) end[i].links[side] += count;
    }
    return ncclSuccess;
}

/* The rank of the GPU with a bus id in a document; -1 if there is none. */
static int rank_at(const struct kl_xml *xml, uint64_t busid, int like)
{
    uint64_t host = kl_xml_host_hash(xml, like);

    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        const char *text = !strcmp(kl_xml_tag(xml, e), "gpu") ? kl_xml_attr(xml, kl_xml_parent(xml, e), "busid") : NULL;
        if (text && kl_busid_parse(text) == busid && kl_xml_host_hash(xml, e) == host)
            return kl_xml_int(xml, e, "rank", -1);
    }
    return -1;
}

static bool same_ends(const struct kl_fact *f, int x, int y)
{
    return f->kind == KL_FACT_LINK && ((f->ends[0] == x && f->ends[1] == y) || (f->ends[0] == y && f->ends[1] == x));
}

/* The fact about the links between two ends, in the direction that was seen first. */
static ncclResult_t link_fact(struct kl_facts *facts, int rank, int far, const struct link_end *end, int *index)
{
    for (*index = 0; *index < facts->nfacts; ++*index) {
        struct kl_fact *f = &facts->fact[*index];

        if (!same_ends(f, rank, far)) continue;
        if (f->links[0] == end->links[0] && f->links[1] == end->links[1]) f->ways = 2;
        return ncclSuccess;
    }
    struct kl_fact *f = kl_facts_add(facts, KL_FACT_LINK, KL_CHANGE_LINKS);
    if (!f) return KL_NOMEM("differences");
    f->ends[0] = rank;
    f->ends[1] = far;
    f->ways = end->type == KL_NODE_GPU ? 1 : 2;
    for (int i = 0; i < 2; i++) f->links[i] = end->links[i];
    return ncclSuccess;
}

static ncclResult_t add_link_ops(const struct two_gpus *d, struct kl_facts *facts, int fact, const struct link_end *end)
{
    struct link_end one;

    for (int side = 0; side < 2; side++) {
        const struct kl_xml *xml = side ? d->b : d->a;

        for (int e = kl_xml_child(xml, side ? d->gb : d->ga, "nvlink"); e != KL_XML_NONE;
             e = kl_xml_next_same(xml, e)) {
            const char *target = kl_xml_attr(xml, e, "target");

            KL_TRY(kl_nvlink_end(xml, e, &one.type));
            one.busid = one.type == KL_NODE_GPU && target ? kl_busid_parse(target) : 0;
            if (one.type != end->type || one.busid != end->busid) continue;
            KL_TRY(kl_facts_add_op(facts, fact, side ? d->ga : e, side ? e : -1, ""));
        }
    }
    return ncclSuccess;
}

ncclResult_t kl_diff_compare_links(const struct kl_xml *a, const struct kl_xml *b, int ga, int gb, int nccl,
                                   struct kl_facts *facts)
{
    const struct two_gpus d = {a, b, ga, gb};
    struct link_end end[MAX_ENDS];
    int n = 0, rank = kl_xml_int(a, ga, "rank", -1), fact = 0;

    KL_TRY(collect_ends(a, ga, 0, end, &n));
    KL_TRY(collect_ends(b, gb, 1, end, &n));
    for (int i = 0; i < n; i++) {
        int far = end[i].type == KL_NODE_NVS ? KL_LINK_END_NVS : KL_LINK_END_CPU;

        if (end[i].links[0] == end[i].links[1]) continue;
        if (end[i].type == KL_NODE_GPU) far = rank_at(a, end[i].busid, ga);
        if (far == -1) continue; /* to a GPU that is not used: its absence is a fact of its own */
        KL_TRY(link_fact(facts, rank, far, &end[i], &fact));
        facts->fact[fact].gbps = kl_nvlink_bw(kl_xml_int(a, ga, "sm", 80), nccl);
        KL_TRY(add_link_ops(&d, facts, fact, &end[i]));
    }
    return ncclSuccess;
}
