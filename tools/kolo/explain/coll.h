/* SPDX-License-Identifier: Apache-2.0 */
/**
 * coll.h - what `kolo explain allreduce 64M` finds out, before it is printed.
 *
 *     coll.c         understand the question, ask the model
 *     coll_p2p.c     the same for what consists of sends and receives
 *     coll_text.c    for people, with coll_ranges.c for sizes and coll_p2p_text.c
 *     coll_json.c    for programs
 *
 * Units: microseconds, GB/s (1e9 bytes), bytes. Sizes are those of the whole: nccl-tests' size column.
 */
#ifndef KOLO_TOOL_EXPLAIN_COLL_H
#define KOLO_TOOL_EXPLAIN_COLL_H

#include "graph/tuning_ranges.h"
#include "plan/planned.h"
#include "tools/kolo/explain/explain.h"
#include "tools/kolo/perf_coll.h"

/** The question, understood. */
struct kl_coll_asked {
    const struct kl_coll *coll;
    const char *title;   /* "AllReduce" */
    int func;            /* enum kl_func; -1: sends and receives */
    int64_t first, last; /* bytes; the same for one size */
    ncclDataType_t type;
    ncclRedOp_t op;
};

/** Where it is asked for. */
struct kl_coll_place {
    const char *topology;
    int ranks, hosts, nodes;
    bool here; /* this machine's host devices, not GPUs of a file */
    const struct kl_tuning_constants *constants;
};

enum { KL_COLL_CANDIDATES = KL_ALGOS * KL_PROTOS, KL_COLL_WHY = 160 };

struct kl_coll_candidate {
    enum kl_tuning_refusal refusal;
    char why[KL_COLL_WHY];          /* the refusal, in words */
    struct kl_tuning_choice choice; /* also of what is refused: algorithm and protocol */
    struct kl_tuning_terms terms;   /* at the size that was asked for, or the first of a range */
};

/** A collective with algorithms to choose from. */
struct kl_coll_finding {
    struct kl_coll_asked asked;
    struct kl_coll_place place;
    struct kl_coll_candidate candidate[KL_COLL_CANDIDATES]; /* what is possible first, fastest first */
    int npossible;
    struct kl_tuning_range *range; /* for one size: of all sizes up to 16 GiB or more, else of those asked for */
    int nranges;
};

/** A round of the schedule of sends and receives: ranks, -1 where the collective has none in this round. */
struct kl_coll_round {
    int round, send, recv;
    int base; /* of its channels: kl_p2p_channel */
};

/** A collective made of sends and receives. */
struct kl_coll_messages {
    struct kl_coll_asked asked;
    struct kl_coll_place place;
    int64_t first_piece, last_piece; /* bytes of one message, for the first and the last size; alltoallv: the mean */
    struct kl_p2p_channels channels;
    struct kl_coll_round *round; /* of rank 0, in which it has something to do */
    int nrounds;
    bool by_node; /* rounds go over nodes, and in each over its ranks */
    int steps;    /* one after the other, each a group of its own */
};

/* ---- finding out ---- */

ncclResult_t kl_coll_find_out(const struct kl_coll_asked *asked, const struct kl_coll_place *place,
                              const struct kl_tuning *t, struct kl_coll_finding *finding);
ncclResult_t kl_coll_find_messages(const struct kl_coll_asked *asked, const struct kl_coll_place *place,
                                   const struct kl_plan *plan, struct kl_coll_messages *messages);

/** GB/s of the busiest link, as nccl-tests counts; 0 for a barrier. */
double kl_coll_bus(const struct kl_coll_asked *asked, const struct kl_coll_place *place, int64_t bytes, float time);

/** How much slower, in percent. */
double kl_coll_slower(float time, float best);

/* ---- printing ---- */

void kl_coll_text(const struct kl_coll_finding *finding, FILE *to);
void kl_coll_text_ranges(const struct kl_coll_finding *finding, FILE *to);
void kl_coll_text_messages(const struct kl_coll_messages *messages, FILE *to);
ncclResult_t kl_coll_json(const struct kl_coll_finding *finding, FILE *to);
ncclResult_t kl_coll_json_messages(const struct kl_coll_messages *messages, FILE *to);

/** "AllReduce of 64 MiB over 16 ranks on 2 hosts". */
void kl_coll_headline(const struct kl_coll_asked *asked, const struct kl_coll_place *place, FILE *to);

enum { KL_SIZE_TEXT = 32 };

/** "64 MiB", "1,000,000 B"; returns `text`. */
char *kl_size_text(int64_t bytes, char text[KL_SIZE_TEXT]);

/** "67,108,864"; returns `text`. */
char *kl_grouped(int64_t number, char text[KL_SIZE_TEXT]);

/** What the numbers of candidates with timeless hops are worth. */
extern const char kl_coll_timeless[];

#endif
