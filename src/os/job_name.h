/* SPDX-License-Identifier: Apache-2.0 */
/**
 * job_name.h - a name for files that all processes of a job on a host derive independently, and that differs from other
 * jobs'.
 *
 * It is made of the user, of settings that the launcher gives to all ranks, or else of the process that started them,
 * and of a number.
 * Threads: any.
 */
#ifndef KL_OS_JOB_NAME_H
#define KL_OS_JOB_NAME_H

enum { KL_JOB_NAME = 64 };

/**
 * `shared`: the variables whose values together name the job. If one of them is not set, or the list is empty, the
 * launcher's process does: the nearest ancestor that was started with other values of `own`, variables that differ
 * between ranks. So scripts between the launcher and the rank make no difference. Both lists end with NULL. `turn`:
 * counts the rendezvous of a job.
 */
void kl_job_name(const char *const *shared, const char *const *own, unsigned turn, char name[KL_JOB_NAME]);

/** The prefix that the names of all jobs of this user have. */
void kl_job_name_prefix(char prefix[KL_JOB_NAME]);

#endif
