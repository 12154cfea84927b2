/* SPDX-License-Identifier: Apache-2.0 */
/* A rank is killed in a one-sided operation to another host, over the net and at each place of a plugin: the others return with one sentence
 * that names it, and end their communicators; leftovers.c sees that nothing is left in their processes. */
#include "bootstrap/bootstrap.h"
#include "tests/api_check.h"
#include "tests/hang.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { RANKS = 3, VICTIM = 2, PART = 8 << 20, WINDOW = RANKS * PART, AS_EXPECTED = 0, FAILED = 9 };

/* ---- a rank ---- */

struct rank {
    int rank;
    bool from_window; /* data lie in a registered buffer */
    ncclComm_t comm;
    koloStream_t stream;
    unsigned char *own, *from;
    ncclWindow_t window;
};

/* Of the communicator's calls, until the first one fails. */
static ncclResult_t open_rank(struct rank *r, const ncclUniqueId *id)
{
    ok(ncclCommInitRank(&r->comm, RANKS, *id, r->rank));
    ok(koloStreamCreate(&r->stream, 0));
    ok(ncclMemAlloc((void **)&r->own, WINDOW));
    r->from = r->from_window ? r->own + (size_t)r->rank * PART : calloc(1, PART);
    return ncclCommWindowRegister(r->comm, r->own, WINDOW, &r->window, NCCL_WIN_COLL_SYMMETRIC);
}

static ncclResult_t put_round(struct rank *r)
{
    ncclWaitSignalDesc_t wanted[RANKS];
    ncclResult_t rc = ncclSuccess;
    int n = 0;

    for (int to = 0; to < RANKS && !rc; to++) {
        if (to == r->rank) continue;
        rc =
            ncclPutSignal(r->from, PART, ncclUint8, to, r->window, (size_t)r->rank * PART, 0, 0, 0, r->comm, r->stream);
        wanted[n++] = (ncclWaitSignalDesc_t){1, to, 0, 0};
    }
    if (!rc) rc = ncclWaitSignal(n, wanted, r->comm, r->stream);
    return rc ? rc : koloStreamSynchronize(r->stream);
}

static void close_rank(struct rank *r)
{
    (void)koloStreamDestroy(r->stream); /* returns a failure of its work that nobody has waited for */
    if (!r->from_window) free(r->from);
    ok(ncclMemFree(r->own));
}

/* A communicator that works and ends well. */
static void live(struct rank *r, const ncclUniqueId *id)
{
    ok(open_rank(r, id));
    ok(put_round(r));
    ok(koloBarrier(r->comm, r->stream));
    ok(koloStreamSynchronize(r->stream));
    ok(ncclCommWindowDeregister(r->comm, r->window));
    ok(ncclCommDestroy(r->comm));
    close_rank(r);
}

static int be_rank(char **argv)
{
    const char *place = argv[4];
    struct rank r = {.rank = (int)strtol(argv[3], NULL, 10), .from_window = *argv[5] == '1'};
    const bool victim = r.rank == VICTIM, early = !strcmp(place, "connect") || !strcmp(place, "register");
    ncclUniqueId id[2];
    char text[1200];

    alarm(kolo_test_hang_s());
    for (int i = 0; i < 2; i++)
        if (kl_bootstrap_id_parse(argv[1 + i], &id[i])) return FAILED;
    live(&r, &id[0]);
    if (!strcmp(place, "connect"))
        setenv("EXAMPLE_RMA_PATIENCE_MS", "2000", 1); /* then its call returns, and all is freed */
    if (victim && early) setenv("FAULTY_RMA_DIES", place, 1);
    ncclResult_t rc = open_rank(&r, &id[1]);
    if (victim) setenv("FAULTY_RMA_DIES", place, 1);
    if (victim && !strcmp(place, "net")) { /* while the others send to it, and it has not taken all */
        ok(put_round(&r));
        kill(getpid(), SIGKILL);
    }
    while (!rc) rc = put_round(&r);
    snprintf(text, sizeof text, "%s", ncclGetLastError(NULL));
    fprintf(stderr, "%s, rank %d: %s\n", place, r.rank, text);
    ok(ncclCommAbort(r.comm));
    close_rank(&r);
    return strstr(text, "rank 2 (host ") && !strchr(text, '\n') ? AS_EXPECTED : FAILED;
}

/* ---- the job ---- */

static void kill_at(const char *place, const char *from_window)
{
    char text[2][2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pid[RANKS];
    ncclUniqueId id;

    for (int i = 0; i < 2; i++) {
        ok(ncclGetUniqueId(&id));
        kl_bootstrap_id_format(&id, text[i]);
    }
    for (int r = 0; r < RANKS; r++) {
        char rank[12], host[12];
        char *argv[] = {
            (char *)"one_sided_killed_test", text[0], text[1], rank, (char *)place, (char *)from_window, NULL};
        snprintf(rank, sizeof rank, "%d", r);
        snprintf(host, sizeof host, "h%d", r);
        setenv("NCCL_HOSTID", host, 1);
        assert_int_equal(posix_spawn(&pid[r], "/proc/self/exe", NULL, NULL, argv, environ), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        int status;
        waitpid(pid[r], &status, 0);
        const bool right = r == VICTIM ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL : status == AS_EXPECTED;
        if (!right) fail_msg("killed at %s: rank %d: status %#x", place, r, (unsigned)status);
    }
}

static void over_the_net(void **state)
{
    (void)state;
    setenv("NCCL_RMA_PLUGIN", "none", 1);
    kill_at("net", "0");
}

static void over_a_plugin(void **state)
{
    static const char *const places[] = {"connect", "register", "put", "test", "receive"};

    (void)state;
    setenv("NCCL_RMA_PLUGIN", KOLO_FAULTY_RMA, 1);
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        for (int from_window = 0; from_window < 2; from_window++) kill_at(places[i], from_window ? "1" : "0");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(over_the_net), cmocka_unit_test(over_a_plugin)};

    if (argc == 6) return be_rank(argv);
    setenv("KOLO_TIMEOUT", "3600", 1); /* no rank waits that long: a death is noticed */
    setenv("KOLO_BOOTSTRAP_TIMEOUT", "3600", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
