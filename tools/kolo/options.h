/* SPDX-License-Identifier: Apache-2.0 */
/**
 * options.h - command-line options as a table: one row gives parsing, range check and help.
 *
 * Forms:    -n 4, -n4, --iters 4, --iters=4; -np 4 is --np 4. An option given twice: the last one counts, but for KL_OPT_LIST.
 * Order:    kl_opts_parse stops at the first word that is not an option, or behind `--`; a command whose options may
 *           follow its operands calls it again.
 * Values:   numbers as base/parse.h reads them, so also in hex. An empty value is refused.
 * Errors:   silent; the reason comes back as one sentence, which the command prints before it returns EXIT_USAGE.
 */
#ifndef KOLO_TOOL_OPTIONS_H
#define KOLO_TOOL_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum kl_opt_kind {
    KL_OPT_FLAG,   /* int, 1 when given; takes no value */
    KL_OPT_SWITCH, /* int; a following 0 or 1 is its value, else 1 */
    KL_OPT_INT,    /* int */
    KL_OPT_SIZE,   /* uint64_t bytes, as in 64K, 1.5M, 1GB */
    KL_OPT_TIME,   /* uint64_t milliseconds, written in seconds, fractions allowed */
    KL_OPT_RATE,   /* uint64_t bits per second, with M or G for 10^6 or 10^9, fractions allowed */
    KL_OPT_TEXT,   /* const char *, points into argv */
    KL_OPT_LIST,   /* struct kl_opt_list: each time it is given adds a text */
    KL_OPT_REFUSED /* an option of nccl-tests without a meaning here: naming it is an error; doc says why */
};

enum { KL_OPT_LIST_MAX = 64 };

/** The values of a KL_OPT_LIST, in order; points into argv. */
struct kl_opt_list {
    const char *text[KL_OPT_LIST_MAX];
    int n;
};

struct kl_opt {
    char letter;      /* 0: long form only */
    const char *name; /* without the dashes; NULL: short form only */
    enum kl_opt_kind kind;
    size_t field;     /* offset of the field that receives the value */
    int64_t min, max; /* KL_OPT_INT only */
    const char *arg;  /* the value's name in the help, e.g. "N" */
    const char *doc;
};

/** The row that all commands have: `field` is in the struct T that the table fills. */
#define KL_OPT_HELP(T, field)                                                                                          \
    {                                                                                                                  \
        'h', "help", KL_OPT_FLAG, offsetof(T, field), 0, 0, NULL, "print this help"                                    \
    }

/** Ends with a row that has neither letter nor name. */
#define KL_OPT_END                                                                                                     \
    {                                                                                                                  \
        0                                                                                                              \
    }

/**
 * Read options from argv[first] on into `values`. Returns the index of the first word not consumed (behind a `--`), or
 * -1 with the reason in `why`.
 */
int kl_opts_parse(const struct kl_opt *table, int argc, char **argv, int first, void *values, char *why,
                  size_t why_size);

/** Why a word that is no option is refused: one that looks like a topology file belongs to --topo, if the table has that. */
void kl_opts_refuse_word(const struct kl_opt *table, const char *word, char *why, size_t why_size);

/** Is it a file, or named like one? */
bool kl_opts_is_file(const char *word);

/** Print the table as the option part of a help text. */
void kl_opts_help(const struct kl_opt *table, FILE *to);

#endif
