/* SPDX-License-Identifier: Apache-2.0 */
/**
 * explain.h - `kolo explain`: one question a file.
 *
 *     coll.c     which algorithm, protocol and channels an operation gets, and why
 *     search.c   how the search came to its channels, and what stopped it
 *     pair.c     how two GPUs talk, and why not better
 *     nics.c     which NIC serves which GPU, and which serves none
 *     diff.c     what a change would change
 *     order.c    in which order an operation adds, and where that order changes
 *     traffic.c  bytes of an operation over each link and NIC
 *     log.c      problems that a log of NCCL shows, beside the plan
 *     bench.c    problems that a table of nccl-tests shows, beside the model
 *     record.c   ranks that others wait for, in flight records, status of RAS, traces
 *     files.c       files by themselves: the question follows from their content
 *
 * A question asks src/answer/, which collects its findings in plain structs and makes JSON of them, and prints them for people.
 * Nothing is decided here: rules that refuse return their reason (an enum with a text beside the rule).
 *
 * Errors:  reported with KL_FAIL; the command prints kl_error_text(). ncclInvalidArgument stands for a wrong command
 *          line (exit 2), everything else for a problem with what it names (exit 1).
 */
#ifndef KOLO_TOOL_EXPLAIN_H
#define KOLO_TOOL_EXPLAIN_H

#include "answer/texts.h"
#include "include/nccl.h"
#include "plan/cluster.h"
#include "tools/kolo/cluster_options.h"

#include <stdbool.h>
#include <stdio.h>

/** What the command line asked. */
struct kl_explain_request {
    struct kl_cluster_options options;
    struct kl_cluster_request cluster; /* what they ask for */
    const char *type, *op;             /* of the data, NULL where not given */
    const char *tuner;                 /* --tuner */
    struct kl_opt_list topos;          /* every --topo: diff takes two; elsewhere the last counts */
    struct kl_opt_list machines;       /* and so every --machine */
    struct kl_opt_list releases;       /* every --nccl: diff takes two; elsewhere the last counts */
    struct kl_opt_list logs, benches;  /* --log, --bench: questions by themselves; more files may follow as words */
    int json, help;
    int all;                        /* search: every attempt, not merged */
    int lint, registered, captured; /* order */
    const char *element, *group, *root,
        *vs;                 /* order: lists of numbers, and a size, setting or release to compare with */
    const char *format;      /* order: text, json, svg, html; NULL: text */
    const char *pod;         /* traffic: hosts of a pod, or the pod of each host */
    const char *question;    /* its name, as it was asked */
    const char *const *word; /* behind the question: "64M", or "GPU/0" "NET/3" */
    int nwords;
};

struct kl_explain_question {
    const char *name;
    int min_words, max_words;
    const char *words;   /* what they are called in the help */
    const char *summary; /* one line of the help */
    ncclResult_t (*answer)(const struct kl_explain_request *q, FILE *to);
};

/** The second line of an answer: the place it is about. `note` is added to it. */
void kl_explain_place(const struct kl_cluster *cluster, const char *note, FILE *to);

/** The files of a question about files: those of its option, then the words. free() it; NULL when memory is short. */
struct kl_named_text *kl_explain_texts(const struct kl_opt_list *given, const struct kl_explain_request *q);

ncclResult_t kl_explain_coll(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_search(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_pair(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_nics(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_diff(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_order(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_traffic(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_log(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_bench(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_record(const struct kl_explain_request *q, FILE *to);
ncclResult_t kl_explain_switches(const struct kl_explain_request *q, FILE *to);

/** Does a file name switches between hosts? False for standard input, and for one that cannot be read. */
bool kl_explain_is_switches(const char *file);

/** Tell the kind of each file, say it, and answer the question that suits: `word` are files. */
ncclResult_t kl_explain_files(const struct kl_explain_request *q, FILE *to);

#endif
