/* SPDX-License-Identifier: Apache-2.0 */
/**
 * diff.h - two plans side by side (plan/diff.h).
 *
 *     diff.c            the comparison, with findings and uncertain rules of both sides
 *     diff_words.c      names of facts, rows and values
 *     diff_sentence.c   cause and effect: the first line
 *     diff_json.c       all of it as JSON
 */
#ifndef KL_ANSWER_DIFF_H
#define KL_ANSWER_DIFF_H

#include "base/text.h"
#include "plan/diff.h"

#include <stdio.h>

/* ---- facts ---- */

enum { KL_FACT_TEXT = 192, KL_FACT_VALUE = 64 };

struct kl_fact_words {
    char subject[KL_FACT_VALUE]; /* "GPU/0-GPU/3", "NCCL_P2P_LEVEL" */
    char what[KL_FACT_VALUE];    /* "NVLinks", "speed" */
    char a[KL_FACT_VALUE], b[KL_FACT_VALUE];
    char predicate[KL_FACT_TEXT]; /* a clause without its subject */
    char text[KL_FACT_TEXT];      /* a clause: "GPU/0-GPU/3 lost 1 of 2 NVLinks (40 to 20 GB/s)" */
};
void kl_fact_describe(const struct kl_diff *diff, const struct kl_fact *fact, struct kl_fact_words *words);

/* ---- rows ---- */

/** A kind of rows, and the meaning of its values. */
struct kl_row_kind {
    const char *name;                  /* in JSON */
    const char *text_key, *number_key; /* of values in JSON; NULL: the value itself */
    const char *unit;                  /* of numbers */
    bool grouped;                      /* in text: rows with the same values are one */
    const char *title, *entries;       /* in text: above the rows, and in the totals */
};
extern const struct kl_row_kind kl_row_kinds[KL_ROW_WHATS];

/** A value: a word, a number, or both. */
struct kl_value_words {
    char text[96]; /* "" for none */
    bool has_number;
    float number;
    bool timeless; /* the number is a time that leaves hops out */
};
void kl_value_describe(const struct kl_diff_row *row, const union kl_diff_value *value, struct kl_value_words *words);

enum { KL_SUBJECT_TEXT = 48 };

/** "GPU/0 to NET/1", "ring: channels", "AllReduce 64 MiB"; returns `text`. */
const char *kl_row_subject(const struct kl_diff_row *row, char text[KL_SUBJECT_TEXT]);

/** Four digits, and never an exponent where a person would write none; returns `text`. */
const char *kl_diff_number(float number, char text[24]);

/* ---- the first line ---- */

/** The cause; its consequence; and the reason why there is none. */
enum { KL_CAUSE_TEXT = 512, KL_WHY_NOT_TEXT = 256 };
void kl_diff_cause_text(const struct kl_diff *diff, char text[KL_CAUSE_TEXT]);
void kl_diff_effect_text(const struct kl_diff *diff, char text[KL_CAUSE_TEXT]);
void kl_diff_why_text(const struct kl_diff *diff, char text[KL_WHY_NOT_TEXT]);

/**
 * Compare the clusters of two requests, which must outlive the diff, and have `as_document` set. Free with kl_diff_fini, also
 * after a failure.
 */
ncclResult_t kl_diff_answer_make(const struct kl_cluster_request *a, const struct kl_cluster_request *b,
                                 struct kl_diff *diff);

ncclResult_t kl_diff_json(const struct kl_diff *diff, FILE *to);

#endif
