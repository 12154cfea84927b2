/* SPDX-License-Identifier: Apache-2.0 */
/**
 * spawn.h - start the processes of a job so that none of them outlives the launcher.
 *
 * A rank is started by posix_spawn of this very program with the hidden command `rank-exec`, which asks the kernel to be
 * killed with its parent, enters the rank's network namespace, and then becomes the rank's program by exec. Each rank
 * leads a process group. This does not cover processes that a rank starts itself; for them there is the
 * janitor, a process of its own session that kills the groups of all ranks when the launcher disappears.
 *
 * A program that uses these functions passes its hidden commands to kl_spawn_hidden at the start of main.
 *
 * Errors:  an errno value, 0 for success.
 * Threads: call from the main thread only: PR_SET_PDEATHSIG means the death of the thread that spawned.
 * Source:  posix_spawn(3), PR_SET_PDEATHSIG(2const), setpgid(2).
 */
#ifndef KOLO_TOOL_SPAWN_H
#define KOLO_TOOL_SPAWN_H

#include <signal.h>
#include <sys/types.h>

/** This program; where there is no /proc none can be started. */
#define KL_SPAWN_SELF "/proc/self/exe"

/** Exit codes if a rank's program cannot be started, as of a shell: it cannot be run; it, or its interpreter, is missing. */
enum { KL_SPAWN_NOT_RUN = 126, KL_SPAWN_NOT_FOUND = 127 };

struct kl_spawn {
    const char *path;  /* of the program, as exec wants it */
    char *const *argv; /* with the program's own argv[0] */
    char *const *env;
    int ns;           /* descriptor of a network namespace, -1: stay in this one */
    int kept;         /* a descriptor that stays open under its number; 0: none */
    int in, out, err; /* become 0, 1 and 2 */
    sigset_t mask;    /* signals blocked in the rank */
};

/** Start a rank as the leader of a new process group. SIGPIPE has its default action in it. */
int kl_spawn_rank(const struct kl_spawn *what, pid_t *pid);

struct kl_janitor {
    pid_t pid;
    int fd; /* closing it without kl_janitor_dismiss, or dying, makes the janitor kill all groups it knows */
};

int kl_janitor_start(struct kl_janitor *janitor);
void kl_janitor_watch(const struct kl_janitor *janitor, pid_t group);

/** All is well: end the janitor and wait for it. Also for one that did not start (pid 0). */
void kl_janitor_dismiss(struct kl_janitor *janitor);

/**
 * The file that exec would find for `name`, to be freed. ENOENT: there is none; EACCES: it is there and cannot be executed; EISDIR: a
 * folder.
 */
int kl_find_program(const char *name, char **file);

/** Run argv[1] if it is a hidden command: does not return then. */
void kl_spawn_hidden(int argc, char **argv);

#endif
