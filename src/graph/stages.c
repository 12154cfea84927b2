/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/stages.h"

static struct kl_stage net_stage(bool same_exit)
{
    return (struct kl_stage){.kind = KL_STAGE_NET, .same_exit = same_exit};
}

/* At which step a channel returns to the network; -1 for never. */
static int exit_step(const struct kl_routes *r, int pattern)
{
    if (!r->nnets) return -1;
    if (pattern == KL_PATTERN_RING) return r->ngpus - 1;
    return pattern == KL_PATTERN_SPLIT_TREE ? 1 : 0;
}

/* While a return to the network is ahead, it counts in the choice of GPUs. */
void kl_stages_write(const struct kl_routes *r, int pattern, struct kl_stage *s)
{
    int ng = r->ngpus, exit = exit_step(r, pattern);

    for (int step = 0; step < ng; step++) {
        if (step == exit) {
            *s++ = net_stage(pattern == KL_PATTERN_BALANCED_TREE && step > 0);
            exit = pattern == KL_PATTERN_BALANCED_TREE && step == 0 ? 1 : -1;
        }
        if (kl_has_heads(pattern)) {
            *s = (struct kl_stage){.kind = KL_STAGE_HEADS};
            return;
        }
        if (step < ng - 1)
            *s++ = (struct kl_stage){.kind = KL_STAGE_GPU, .last_exit = exit == step + 1, .nets_count = exit >= 0};
    }
    s->kind = pattern == KL_PATTERN_RING && !r->nnets ? KL_STAGE_FIRST : KL_STAGE_DONE;
}

void kl_stages_charge(struct kl_routes *r, int pattern, float bw_intra, float bw_inter)
{
    kl_levels_begin(&r->levels);
    kl_routes_charge(r, KL_CHARGE_INTRA, bw_intra);
    kl_routes_charge(r, KL_CHARGE_INTER, bw_inter);
    if (kl_has_heads(pattern))
        kl_routes_charge(r, KL_CHARGE_HEADS, bw_intra * kl_head_share(r, pattern));
    else
        kl_routes_charge(r, KL_CHARGE_HALF, bw_inter / 2);
}
