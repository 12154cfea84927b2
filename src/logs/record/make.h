/* SPDX-License-Identifier: Apache-2.0 */
/**
 * make.h - how a record is filled and judged; for the files of this folder only.
 *
 * Indices stay valid; pointers into lists are valid until the next call that adds to the same list.
 */
#ifndef KL_LOGS_RECORD_MAKE_H
#define KL_LOGS_RECORD_MAKE_H

#include "logs/record/record.h"

#include <jansson.h>

/** One copy of each text, so that equal texts have equal pointers; "" for NULL, and when memory is short. */
const char *kl_record_name(struct kl_record *record, const char *text);
const char *kl_record_name_n(struct kl_record *record, const char *text, size_t bytes);

/** Add a zeroed element, with unknown numbers as -1 and texts as ""; *index is its place. */
ncclResult_t kl_record_new_file(struct kl_record *record, const char *name, enum kl_input_kind kind, int *index);
ncclResult_t kl_record_new_member(struct kl_record *record, int group, int rank, int file, int *index);
ncclResult_t kl_record_new_call(struct kl_record *record, int member, int *index);
ncclResult_t kl_record_new_count(struct kl_record *record, int member, const char *function, int64_t n);
ncclResult_t kl_record_add_rank(struct kl_record *record, int rank);

/** The group with this id and list of ranks ("" none), the participant with this key; made at first use. */
ncclResult_t kl_record_group_of(struct kl_record *record, const char *id, const char *listed, int *index);
ncclResult_t kl_record_proc_of(struct kl_record *record, const char *key, int *index);

/** The member of a file's rank in a group, the last of several, -1: none so far. */
int kl_record_member_of(const struct kl_record *record, int group, int rank, int file);

/** Elements by their keys. Groups: id, list of ranks; participants: key; members: group and file, rank; and of a file by the group's id. */
enum kl_record_key { KL_KEY_GROUP, KL_KEY_PROC, KL_KEY_MEMBER, KL_KEY_ID };

/** The value that was put last for a key (texts by their pointers: names are kept once); -1: none. */
int kl_record_map_get(const struct kl_record *record, enum kl_record_key kind, uint64_t a, uint64_t b);
ncclResult_t kl_record_map_put(struct kl_record *record, enum kl_record_key kind, uint64_t a, uint64_t b, int value);
void kl_record_map_free(struct kl_record_map *map);

/** The last member of a file in a group with this id, -1: none. */
int kl_record_member_of_id(struct kl_record *record, int file, const char *id);

/** Make room for one more element at *list; the new one is zeroed. */
ncclResult_t kl_record_grow(void **list, int *n, int *max, size_t size);

/** Kolo counts one rank's part: make input and output whole for functions that gather or scatter over nranks. */
void kl_record_whole_counts(struct kl_record_call *call, int64_t nranks);

/** The number of a member's next collective, where the record has no numbers. */
static inline int64_t kl_record_next_number(const struct kl_record *r, int member)
{
    const int64_t called = r->member[member].called;

    return called < INT64_MAX ? called + 1 : called;
}

/* ---- lines ---- */

/** At *at: blanks and a number, exactly `word`, blanks and a word; *at moves behind it. False, and nothing moves: it is not there. */
bool kl_scan_int(const char **at, int64_t *value);
bool kl_scan_word(const char **at, const char *word);
bool kl_scan_token(const char **at, char *token, size_t size);

/* ---- JSON ---- */

int64_t kl_json_get_int(const json_t *object, const char *key, int64_t absent);
double kl_json_get_real(const json_t *object, const char *key, double absent);
const char *kl_json_get_text(const json_t *object, const char *key);
bool kl_json_get_true(const json_t *object, const char *key);

/** Parse a document, or a value within a text of several. Errors name the line. */
ncclResult_t kl_record_parse(const char *name, const char *text, size_t bytes, json_t **document);

/* ---- formats: one file each ---- */

ncclResult_t kl_record_add_torch(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_kolo(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_ras(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_ras_text(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_inspector(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_otlp(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_chakra(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_execution(struct kl_record *record, int file, const char *text, size_t bytes);
ncclResult_t kl_record_add_kineto(struct kl_record *record, int file, const char *text, size_t bytes);

/* ---- rules ---- */

/** A finding whose ranks are those that follow (kl_record_add_rank), up to kl_record_end_ranks; then the others. */
ncclResult_t kl_record_new_finding(struct kl_record *record, enum kl_record_code code, enum kl_log_weight weight,
                                   int *index);
void kl_record_end_ranks(struct kl_record *record, int finding);
void kl_record_end_others(struct kl_record *record, int finding);

/** The member of a group with this rank, by group[].first; -1: none. */
int kl_record_find(const struct kl_record *record, int group, int rank);

/** The field in which two calls of one collective differ first. */
enum kl_call_field kl_record_call_differs(const struct kl_record_call *a, const struct kl_record_call *b);

/** Sort findings, worst first. */
void kl_record_sort(struct kl_record *record);

/** Are two collectives one, by group and number? */
bool kl_record_same_number(const struct kl_record *record, int call, int other);

/** Rules. `sorted`: collectives by group, number, part and rank. A group with a mismatch is marked in `mismatch`. */
ncclResult_t kl_record_find_groups(struct kl_record *record);
ncclResult_t kl_record_find_mismatches(struct kl_record *record, const int *sorted, int n, bool *mismatch);
ncclResult_t kl_record_find_states(struct kl_record *record);
ncclResult_t kl_record_find_counts(struct kl_record *record);
ncclResult_t kl_record_find_waits(struct kl_record *record, const bool *mismatch);
ncclResult_t kl_record_find_times(struct kl_record *record, const int *sorted, int n);

#endif
