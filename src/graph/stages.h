/* SPDX-License-Identifier: Apache-2.0 */
/**
 * stages.h - the stages of a channel and the demand of each on the machine: for the search, which places channels, and for
 * the analysis of finished ones.
 *
 *     ring without NETs     GPU, GPU, GPU, FIRST         ring with NETs      (entry) GPU, GPU, GPU, NET, DONE
 *     tree                  (entry) NET, GPU, GPU, DONE  heads               (entry) NET, HEADS
 *
 * The list begins at the first GPU. The path to it from the entry NET is no stage: there may be none.
 *
 * Source: the graph specification, 5.
 */
#ifndef KL_GRAPH_STAGES_H
#define KL_GRAPH_STAGES_H

#include "graph/bound.h"
#include "graph/graph.h"
#include "graph/routes.h"

enum kl_stage_kind {
    KL_STAGE_GPU,   /* to the next GPU */
    KL_STAGE_NET,   /* back to the network; the GPU stays */
    KL_STAGE_FIRST, /* back to the first GPU, which completes the channel */
    KL_STAGE_HEADS, /* every GPU to the head and back, which completes the channel */
    KL_STAGE_DONE   /* the channel is complete */
};

struct kl_stage {
    uint8_t kind;
    bool last_exit;  /* GPU: the chosen GPU returns to the network at once */
    bool nets_count; /* GPU: the way from the entry NET counts among candidates */
    bool same_exit;  /* NET: must be the one that the GPU before returned to */
};

/** Fill in the stages of a pattern's channels; `stage` has room for the machine's GPUs and 3 more. */
void kl_stages_write(const struct kl_routes *routes, int pattern, struct kl_stage *stage);

/** Set the charges of channels of these bandwidths. */
void kl_stages_charge(struct kl_routes *routes, int pattern, float bw_intra, float bw_inter);

/** The charge for the return to the network. */
static inline enum kl_charge kl_exit_charge(int pattern)
{
    return pattern == KL_PATTERN_BALANCED_TREE ? KL_CHARGE_HALF : KL_CHARGE_INTER;
}

/** The demand of a channel on the port of its entry NET: whole GB/s. */
static inline int kl_entry_bw(float bw_inter)
{
    return kl_whole(bw_inter);
}

/** KL_CHARGE_HEADS as a part of the bandwidth inside the machine. */
static inline float kl_head_share(const struct kl_routes *r, int pattern)
{
    return pattern == KL_PATTERN_NVLS ? 2 : 1 / (float)(r->ngpus - 1);
}

/** One of the 2 * ngpus routes of a head's test: the first half leads from the head, or the switch, to every GPU. */
struct kl_spoke {
    const struct kl_route *route;
    enum kl_charge charge;
    float m; /* factor of the bandwidth */
};

static inline struct kl_spoke kl_spoke_of(const struct kl_routes *r, int pattern, float head_share, int head, int i)
{
    int ng = r->ngpus, d = i % ng;

    if (pattern == KL_PATTERN_NVLS)
        return (struct kl_spoke){i < ng ? &r->nvs_gpu[d] : &r->gpu_nvs[d],
                                 d == head ? KL_CHARGE_HEADS : KL_CHARGE_INTRA, d == head ? head_share : 1};
    return (struct kl_spoke){i < ng ? kl_gpu_gpu(r, head, d) : kl_gpu_gpu(r, d, head), KL_CHARGE_HEADS, head_share};
}

#endif
