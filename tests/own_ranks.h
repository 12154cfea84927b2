/* SPDX-License-Identifier: Apache-2.0 */
/**
 * own_ranks.h - ranks of a job that are processes: the test's own program, run again as PROGRAM ROLE RANK SIZE ID.
 *
 * The program's `main` finds arguments in a rank only. An empty ID: the rank makes one itself.
 */
#ifndef KOLO_TESTS_OWN_RANKS_H
#define KOLO_TESTS_OWN_RANKS_H

#include "bootstrap/bootstrap.h"
#include "include/kolo.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_AS_EXPECTED = 42 };

/* ---- in a rank ---- */

/** Join the job of these arguments. */
static inline ncclResult_t join_job(char **argv, int *rank, ncclComm_t *comm)
{
    ncclUniqueId id;

    alarm(kolo_test_hang_s());
    *rank = (int)strtol(argv[2], NULL, 10);
    ncclResult_t rc = *argv[4] ? kl_bootstrap_id_parse(argv[4], &id) : ncclGetUniqueId(&id);
    return rc ? rc : ncclCommInitRank(comm, (int)strtol(argv[3], NULL, 10), id, *rank);
}

static inline bool says(const char *text, const char *words)
{
    if (strstr(text, words)) return true;
    fprintf(stderr, "\"%s\" does not say \"%s\"\n", text, words);
    return false;
}

/** The exit status of a rank that cannot join, for this reason. */
static inline int expect_no_join(ncclResult_t rc, ncclComm_t comm, ncclResult_t want, const char *words)
{
    bool fine = rc == want && !comm && says(ncclGetLastError(NULL), words);

    if (!fine) fprintf(stderr, "got %d: %s\n", rc, ncclGetLastError(NULL));
    return fine ? EXIT_AS_EXPECTED : 1;
}

/* ---- in the parent ---- */

struct child {
    pid_t pid;
    int out; /* its standard output */
};

static inline void start_child(struct child *c, const char *role, int rank, int size, const char *id)
{
    char rank_text[12], size_text[12];
    char *argv[] = {(char *)"rank", (char *)(uintptr_t)role, rank_text, size_text, (char *)(uintptr_t)id, NULL};
    posix_spawn_file_actions_t actions;
    int ends[2];

    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(size_text, sizeof size_text, "%d", size);
    assert_int_equal(pipe(ends), 0);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    assert_int_equal(posix_spawn(&c->pid, "/proc/self/exe", &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    c->out = ends[0];
}

static inline int wait_for_exit(struct child *c)
{
    int status;

    waitpid(c->pid, &status, 0);
    close(c->out);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static inline void make_id(char text[2 * NCCL_UNIQUE_ID_BYTES + 1])
{
    ncclUniqueId id;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    kl_bootstrap_id_format(&id, text);
}

#endif
