/* SPDX-License-Identifier: Apache-2.0 */
/** log_make.h - how a log is filled; for the log_*.c files only. */
#ifndef KL_LOGS_LOG_MAKE_H
#define KL_LOGS_LOG_MAKE_H

#include "logs/log.h"

/** Take the prefix off a line, which is changed: it is cut where another's line begins (`more`). */
void kl_log_line_read(char *text, struct kl_log_line *line);

/**
 * Readers of a kind of fact. True: the line was understood, and other readers skip it. `origin` is its origin. Out of memory, the
 * fact is dropped and the log marked as full.
 */
bool kl_log_read_init(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_machine(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_plan(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_net(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_trouble(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_ops(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_run(struct kl_log *log, int origin, const struct kl_log_line *line);
bool kl_log_read_plugin(struct kl_log *log, int origin, const struct kl_log_line *line);

/** All is read: the cause of each warning, by the release and by the lines around it. */
void kl_log_find_causes(struct kl_log *log);

/** A member has come as far as this step. */
void kl_log_reach(struct kl_log *log, int member, enum kl_log_step step, struct kl_log_at at);

/** The current member of an origin, made if there is none. -1: no memory. */
int kl_log_member_of(struct kl_log *log, int origin, struct kl_log_at at);

/** The same for a line of a plan: a complete member has a plan already, so that a new one is made. */
int kl_log_planning(struct kl_log *log, int origin, struct kl_log_at at);

/** A new member without any facts. */
int kl_log_new_member(struct kl_log *log, int origin, struct kl_log_at at);

/** Room for one more: a zeroed element at the end of a list; NULL without. */
void *kl_log_grow(struct kl_log *log, void **list, int *n, int *max, size_t size);

#define KL_LOG_NEW(log, list)                                                                                          \
    kl_log_grow((log), (void **)&(log)->list, &(log)->n##list, &(log)->max##list, sizeof *(log)->list)

/** Keep a text of `bytes` bytes; the same for the same text is not promised. "" without memory. */
const char *kl_log_keep(struct kl_log *log, const char *text, size_t bytes);

/** A whole file, or "-"; free(*text). */
ncclResult_t kl_log_load(const char *path, char **text, size_t *bytes);

/** Take colours, control characters and Docker's JSON off a line of `bytes` bytes, behind which there is room for a zero; its length. */
size_t kl_log_clean(char *text, size_t bytes);

/** Skip the prefixes of launchers and schedulers: "[1,3]<stdout>:", "3:", times, pods. */
const char *kl_log_skip_prefix(const char *text);

/* ---- scanning ---- */

/** The text behind the first `word` in `text`; NULL without. */
const char *kl_log_after(const char *text, const char *word);

/** A number behind `word`; `absent` without. */
long kl_log_number(const char *text, const char *word, long absent);

/** Decimal digits at *at, which moves on; false if there are none or too many. A sign is allowed. */
bool kl_log_int(const char **at, int *value);

/** enum kl_path_type of "NVL" as far as letters go; -1. */
int kl_log_path_type(const char *word);

#endif
