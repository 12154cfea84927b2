/* SPDX-License-Identifier: Apache-2.0 */
/**
 * threadtext.h - texts that belong to a thread, allocated when it first needs one and freed with it.
 *
 * They are not thread-local variables: because some of those use the initial-exec model (threadlocal.h), all would have
 * to fit into the small space that a process reserves for libraries loaded late, as by Python's ctypes, and loading
 * would fail.
 */
#ifndef KL_BASE_THREADTEXT_H
#define KL_BASE_THREADTEXT_H

enum kl_thread_text {
    KL_TEXT_ERROR, /* of the thread's last failure */
    KL_TEXT_GROUP, /* of the first failure of the open group */
    KL_TEXT_PARAM, /* the last parameter value that was returned */
    KL_THREAD_TEXTS
};

enum { KL_THREAD_TEXT = 1024 }; /* bytes */

/** The calling thread's text, "" at first. NULL: out of memory. */
char *kl_thread_text(enum kl_thread_text which);

#endif
