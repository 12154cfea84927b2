/* SPDX-License-Identifier: Apache-2.0 */
/**
 * coll_print.h - what is chosen for a collective (plan/op_choice.h, plan/op_rounds.h), for people and for programs.
 *
 *     coll_words.c         numbers and parts of sentences
 *     coll_ranges_text.c   where the choice changes
 *     coll_text.c          algorithms to choose from
 *     coll_rounds_text.c   what consists of sends and receives
 *     coll_json.c          both for programs
 *
 * Units: microseconds, GB/s (1e9 bytes), bytes. Sizes are those of the whole: nccl-tests' size column.
 */
#ifndef KOLO_TOOL_EXPLAIN_COLL_PRINT_H
#define KOLO_TOOL_EXPLAIN_COLL_PRINT_H

#include "plan/cluster.h"
#include "plan/op_choice.h"
#include "plan/op_rounds.h"
#include "tools/kolo/perf_coll.h"

/** The question, understood. */
struct kl_coll_asked {
    const struct kl_coll *coll;
    const char *title; /* "AllReduce" */
    int func;          /* enum kl_func; -1: sends and receives */
    enum kl_op_peers peers;
    int64_t first, last; /* bytes; the same for one size */
    ncclDataType_t type;
    ncclRedOp_t op;

    /* where */
    const struct kl_cluster *cluster;
    int ranks, nodes;
};

struct kl_explain_request;

/** The collective, sizes, type and operation of a request. */
ncclResult_t kl_coll_read(const struct kl_explain_request *request, struct kl_coll_asked *asked);

/* ---- words ---- */

enum { KL_SIZE_TEXT = 32 };

/** "64 MiB", "1,000,000 B"; returns `text`. */
char *kl_size_text(int64_t bytes, char text[KL_SIZE_TEXT]);

/** "67,108,864"; returns `text`. */
char *kl_grouped(int64_t number, char text[KL_SIZE_TEXT]);

/** "AllReduce of 64 MiB over 16 ranks on 2 hosts". */
void kl_coll_headline(const struct kl_coll_asked *asked, FILE *to);

/** GB/s of the busiest link, as nccl-tests counts; 0 for a barrier. */
double kl_coll_bus(const struct kl_coll_asked *asked, int64_t bytes, float time);

/** How much slower, in percent. */
double kl_coll_slower(float time, float best);

/** Are the tuning model's constants those of host devices? */
bool kl_coll_for_host(const struct kl_coll_asked *asked);

/** What the numbers of candidates with timeless hops are worth. */
extern const char kl_coll_timeless[];

/* ---- answers ---- */

void kl_coll_text(const struct kl_coll_asked *asked, const struct kl_op_choice *choice, FILE *to);
void kl_coll_ranges_text(const struct kl_coll_asked *asked, const struct kl_op_choice *choice, FILE *to);
void kl_coll_rounds_text(const struct kl_coll_asked *asked, const struct kl_op_rounds *rounds, FILE *to);
ncclResult_t kl_coll_json(const struct kl_coll_asked *asked, const struct kl_op_choice *choice, FILE *to);
ncclResult_t kl_coll_rounds_json(const struct kl_coll_asked *asked, const struct kl_op_rounds *rounds, FILE *to);

/** Bytes of one message of a collective made of sends and receives; alltoallv: the mean. */
int64_t kl_coll_piece_bytes(const struct kl_coll_asked *asked, int64_t bytes);

/** A time with four digits, in the unit that suits it: "339.4 us", "2.333 ms". */
enum { KL_COLL_TIME_TEXT = 24 };
const char *kl_coll_time_text(double us, char text[KL_COLL_TIME_TEXT]);

#endif
