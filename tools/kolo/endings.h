/* SPDX-License-Identifier: Apache-2.0 */
/**
 * endings.h - how the ranks of a job end, and when the others are terminated.
 *
 * Pure bookkeeping: the launcher reports events and asks which signal is due; time is a parameter.
 *
 *      running --(a rank dies, or the user asked to stop)--> grace --(grace passed)--> SIGTERM --(2 s)--> SIGKILL
 *      running --(time is up)--------------------------------------------------------> SIGTERM --(2 s)--> SIGKILL
 *
 * A rank dies when it ends by a signal, or with an exit code other than 0 and the job's `verdict` code.
 * Times are nanoseconds of base/clock.h.
 */
#ifndef KOLO_TOOL_ENDINGS_H
#define KOLO_TOOL_ENDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KL_ENDINGS_KILL_MS = 2000 }; /* from SIGTERM to SIGKILL */

struct kl_rank_end {
    bool ended;
    int code;   /* exit code; meaningless when a signal ended it */
    int signal; /* that ended it, 0: none */
    int told;   /* the last signal it got from the launcher before it ended; 0: it ended by itself */
};

enum kl_job_phase { KL_JOB_RUNS, KL_JOB_GRACE, KL_JOB_TERMINATED, KL_JOB_KILLED };

struct kl_endings {
    int nranks, nrunning;
    uint64_t grace_ms;
    int verdict; /* an exit code that reports a result and is not a death; 0: none */
    enum kl_job_phase phase;
    uint64_t due_ns; /* when the next phase begins; KL_NO_DEADLINE while all is well */
    bool out_of_time;
    int first_failed; /* the rank that was the first to end with anything but 0; -1: none has */
    struct kl_rank_end *rank;
};

/** All `nranks` run. -1: out of memory. */
int kl_endings_init(struct kl_endings *e, int nranks, uint64_t grace_ms);
void kl_endings_fini(struct kl_endings *e);

/** A rank ended. True: it is the first one to die, and from now on the others' grace runs. */
bool kl_endings_ended(struct kl_endings *e, int rank, int code, int signal, uint64_t now_ns);

/** The launcher passed on a signal that asks the ranks to end; their grace runs. */
void kl_endings_asked(struct kl_endings *e, int signal, uint64_t now_ns);

/** The job is out of time, or stuck: SIGTERM is due at once, and the job counts as failed however the ranks end. */
void kl_endings_time_is_up(struct kl_endings *e, uint64_t now_ns);

/** The signal that all running ranks have to get now, 0 for none; each is returned once. */
int kl_endings_due(struct kl_endings *e, uint64_t now_ns);

/**
 * The job's exit code, once all have ended, as a shell would give it: of the rank that failed first its own, or 128 and the number of the
 * signal that ended it; 1 if the job ran out of time; else 0.
 */
int kl_endings_code(const struct kl_endings *e);

/** Has any rank ended with more than a verdict, so that a report is useful? */
bool kl_endings_worth_telling(const struct kl_endings *e);

/** "rank 2: signal 9 (Killed), by itself": how a rank ended, or that it still runs. `who`: the launcher's name. */
void kl_endings_describe(const struct kl_endings *e, int rank, const char *who, char *text, size_t size);

#endif
