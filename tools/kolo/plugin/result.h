/* SPDX-License-Identifier: Apache-2.0 */
/** result.h - the result of a check of a plugin: verdict and figure. */
#ifndef KOLO_TOOL_PLUGIN_RESULT_H
#define KOLO_TOOL_PLUGIN_RESULT_H

#include <stdbool.h>

enum kl_check_verdict { KL_CHECK_OK, KL_CHECK_FAILS, KL_CHECK_NOT_APPLICABLE };
enum { KL_CHECK_FIGURE = 400, KL_CHECK_CALL = 64 };

/** In memory that the checking process shares with its parent. */
struct kl_check_result {
    enum kl_check_verdict verdict;
    char figure[KL_CHECK_FIGURE];
    char call[KL_CHECK_CALL];    /* of the plugin, under way; "": none */
    int thread;                  /* that makes it; 0: the first one */
    char stack[KL_CHECK_FIGURE]; /* of a call that has not returned in time, innermost first */
    _Atomic int has_told;        /* the stack is complete */
};

/** The check fails, with the figure; the first failure counts. Returns false. */
bool kl_check_fails(struct kl_check_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** It does not apply; and the figure of a check that is ok. */
void kl_check_skips(struct kl_check_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));
void kl_check_notes(struct kl_check_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
