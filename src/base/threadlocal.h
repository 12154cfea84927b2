/* SPDX-License-Identifier: Apache-2.0 */
/** threadlocal.h - thread-local variables that are read on every call. */
#ifndef KL_BASE_THREADLOCAL_H
#define KL_BASE_THREADLOCAL_H

/**
 * _Thread_local with the initial-exec model: read like any other variable instead of through a call of the dynamic
 * linker (some 15 instructions). The space for such variables is small in a process that loads this library late, so
 * use it for a few bytes only.
 */
#define KL_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local

#endif
