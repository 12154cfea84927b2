/* SPDX-License-Identifier: Apache-2.0 */
/** threadlocal.h - variables of a thread that every call looks at. */
#ifndef KL_BASE_THREADLOCAL_H
#define KL_BASE_THREADLOCAL_H

/**
 * _Thread_local that is read like any other variable instead of through a call of the dynamic linker (some 15
 * instructions). The room for such variables is small in a process that loads this library late: for a few bytes each.
 */
#define KL_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) _Thread_local

#endif
