/* SPDX-License-Identifier: Apache-2.0 */
/**
 * laying.h - the state of a channel during its placement, for the files that place channels.
 *
 *     backtrack.c    starts of channels, the steps of each stage, solutions
 *     candidates.c   the GPUs that may come next
 *     heads.c        channels that have only a head
 */
#ifndef KL_GRAPH_LAYING_H
#define KL_GRAPH_LAYING_H

#include "graph/backtrack.h"
#include "graph/stages.h"

/** The state of a channel at one stage. */
struct kl_frame {
    int gpu;  /* the GPU at the beginning of the stage */
    int next; /* next candidate to try */
    int n;
    const int32_t *list;          /* candidates: GPUs or NETs */
    const struct kl_route *taken; /* route of the current candidate */
    int32_t own[2];               /* room for a short list */
};

/** The state of one channel during its placement. */
struct kl_laying {
    int32_t *order; /* in work */
    int64_t *nets;
    int step; /* GPUs in `order` so far, less one */
    struct kl_frame *frame;
    uint64_t *used; /* bits of the GPUs in it */
    int32_t *pool;  /* room for lists of candidates: one per GPU in `order` */
};

static inline bool kl_laying_uses(const struct kl_laying *l, int gpu)
{
    return l->used[gpu / 64] >> (gpu % 64) & 1;
}

/** Add a GPU to the channel, or remove it. */
static inline void kl_laying_toggle(struct kl_laying *l, int gpu)
{
    l->used[gpu / 64] ^= (uint64_t)1 << (gpu % 64);
}

/** Is a route, and for trees also its reverse, good enough? */
static inline bool kl_route_fits(const struct kl_backtrack *bt, const struct kl_route *p, int limit)
{
    return (bt->tree ? p->both : p->type) <= limit;
}

static inline void kl_backtrack_out_of_memory(struct kl_backtrack *bt)
{
    bt->nomem = true;
    bt->budget = 0; /* everything unwinds */
}

/* ---- candidates.c ---- */

/** Fill `frame` with the candidates of a stage: all remaining GPUs, the most promising first. */
void kl_candidate_gpus(struct kl_backtrack *bt, struct kl_laying *l, const struct kl_stage *s, struct kl_frame *f);

/** NETs in the order to try them, from a GPU or (-1) for all. A GPU without any NET leaves nothing to try for all. */
int kl_candidate_nets(struct kl_backtrack *bt, int gpu, const int **net);

ncclResult_t kl_candidates_init(struct kl_backtrack *bt);
void kl_candidates_fini(struct kl_backtrack *bt);

/* ---- heads.c: no chain of GPUs, but a test that every GPU reaches the head and back ---- */

/** Reserve the routes of the head test: as many of its 2 * ngpus routes as bandwidth allows. Returns their number. */
int kl_head_take(struct kl_backtrack *bt, int head);
void kl_head_give(struct kl_backtrack *bt, int head, int taken);

/** The GPU for the head of a channel that enters through a NET; -1 for none, or if it is a head already. */
int kl_head_of_net(const struct kl_backtrack *bt, int net);

#endif
