/* SPDX-License-Identifier: Apache-2.0 */
/**
 * error.h - how failures are reported and passed on.
 *
 * The function that decides that something is an error reports it, once, with KL_FAIL; its callers only pass the code
 * on with KL_TRY or KL_TRY_OR. The sentence is kept for the calling thread (ncclGetLastError) with the place of the
 * KL_FAIL, and logged at NCCL_DEBUG=WARN. A sentence names the thing, the place and the remedy, without a final period.
 * These are the only macros in Kolo that change control flow.
 *
 * Threads: the text belongs to the calling thread; code that carries a failure to another thread copies it. The most
 *          recent sentence of all of the program's threads is kept as well.
 */
#ifndef KL_BASE_ERROR_H
#define KL_BASE_ERROR_H

#include "include/nccl.h"

#include <stdbool.h>

/** Bytes of the longest text kept, its final zero included. */
#define KL_ERROR_TEXT 1024

/** Record and log a sentence, and yield `code`:  return KL_FAIL(ncclInvalidArgument, "rank %d of %d", rank, n); */
#define KL_FAIL(code, ...) (kl_fail(__FILE__, __LINE__, __VA_ARGS__), kl_failed(code))

/** Like KL_FAIL with ncclSystemError, and appends the text of errno. Use right after the failing system call. */
#define KL_FAIL_ERRNO(...) (kl_fail_errno(__FILE__, __LINE__, __VA_ARGS__), kl_failed(ncclSystemError))

/** Return the code of `expr` if it failed. For functions that own nothing yet. */
#define KL_TRY(expr)                                                                                                   \
    do {                                                                                                               \
        ncclResult_t kl_try_rc = (expr);                                                                               \
        if (kl_try_rc) return kl_try_rc;                                                                               \
    } while (0)

/** Store the code of `expr` in `rc` and go to `label` if it failed. For functions with something to undo. */
#define KL_TRY_OR(rc, label, expr)                                                                                     \
    do {                                                                                                               \
        (rc) = (expr);                                                                                                 \
        if (rc) goto label;                                                                                            \
    } while (0)

/** The usual reaction when malloc or calloc returns NULL. */
#define KL_NOMEM(what) KL_FAIL(ncclSystemError, "out of memory for %s", (what))

void kl_fail(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));
void kl_fail_errno(const char *file, int line, const char *fmt, ...) __attribute__((format(printf, 3, 4), cold));

/** The remedy for an errno, as the end of a sentence ("; raise `ulimit -n`"), or "". */
const char *kl_errno_remedy(int err);

/** Inline, so that compilers and analysers see at every KL_FAIL that its value is not success. */
static inline ncclResult_t kl_failed(ncclResult_t code)
{
    return code;
}

/** The calling thread's last sentence, "" if none; valid until its next failure. */
const char *kl_error_text(void);

/** Make `text` the calling thread's last sentence, without logging: for a failure that another thread reported. */
void kl_error_adopt(const char *text);

/** The last sentence of any thread of the process, from now on the calling thread's; "" if none. */
const char *kl_error_of_process(void);

/**
 * With `apart`, failures of this thread do not become the process's last failure: for threads of the library, which
 * hand their failures to a thread of the program.
 */
void kl_error_apart(bool apart);

/** Log the thread's failures at INFO instead of WARN while `quiet`; returns the earlier state. For expected failures. */
int kl_error_quiet(int quiet);

/** Constant text for a code, as ncclGetErrorString promises. */
const char *kl_result_text(ncclResult_t code);

#endif
