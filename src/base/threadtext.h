/* SPDX-License-Identifier: Apache-2.0 */
/**
 * threadtext.h - texts that belong to a thread, made when it first needs one and freed with it.
 *
 * Not thread-local variables: some of those are read without a call (threadlocal.h), so all of them lie in the small room that a
 * process has for libraries which it loads late, as Python's ctypes does; with a few texts there this library could not be loaded.
 */
#ifndef KL_BASE_THREADTEXT_H
#define KL_BASE_THREADTEXT_H

enum kl_thread_text {
    KL_TEXT_ERROR, /* of the last failure */
    KL_TEXT_GROUP, /* of the first failure of the open group */
    KL_TEXT_PARAM, /* the last value of a parameter that was asked for */
    KL_THREAD_TEXTS
};

enum { KL_THREAD_TEXT = 1024 }; /* bytes */

/** The calling thread's, "" at first. NULL: there is no memory. */
char *kl_thread_text(enum kl_thread_text which);

#endif
