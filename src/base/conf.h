/* SPDX-License-Identifier: Apache-2.0 */
/**
 * conf.h - NCCL's configuration files, as /etc/nccl.conf.
 *
 * A line is NAME=VALUE, taken literally: no quotes, no blanks removed, everything after the first '=' is the value. Lines
 * that are empty or begin with '#' are skipped. When a name comes twice the first line counts.
 *
 * Bad lines (no '=', no name, a zero byte, more than KL_CONF_LINE bytes) are left out and remembered as problems, for the
 * caller to report; the rest of the file counts.
 *
 * Sizes:    at most KL_CONF_BYTES of a file are used, and KL_CONF_PROBLEMS problems kept.
 * Errors:   none: a file that cannot be read is an empty one with a problem.
 * Source:   the runtime specification, 8.3; NCCL's documentation of its configuration files.
 */
#ifndef KL_BASE_CONF_H
#define KL_BASE_CONF_H

#include <stdbool.h>
#include <stddef.h>

enum { KL_CONF_LINE = 1023, KL_CONF_BYTES = 1 << 20, KL_CONF_PROBLEMS = 8 };

struct kl_conf_entry {
    const char *name, *value;
    int line;
};

struct kl_conf_problem {
    int line;         /* 0: the file as a whole */
    const char *what; /* constant text: the rest of a sentence that starts with the line number */
};

struct kl_conf {
    const char *file; /* the file's name */
    size_t nentries, nproblems;
    struct kl_conf_entry *entries;
    struct kl_conf_problem problems[KL_CONF_PROBLEMS];
    char *bytes; /* memory that the entries and the name point into */
};

#define KL_CONF_NONE ((struct kl_conf){.file = ""})

/** Parse a copy of `bytes`; `file` is the name for reports. */
void kl_conf_parse(struct kl_conf *conf, const char *file, const char *bytes, size_t nbytes);

/** Read and parse a file. That it does not exist is a problem only if it `must_exist`. */
void kl_conf_read(struct kl_conf *conf, const char *file, bool must_exist);

/** The first entry called `name`, or NULL. */
const struct kl_conf_entry *kl_conf_find(const struct kl_conf *conf, const char *name);

/** Free; works on KL_CONF_NONE. */
void kl_conf_free(struct kl_conf *conf);

#endif
