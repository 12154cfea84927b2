/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose ranks are processes, some of which die. This program starts itself again for each rank. */
#include "bootstrap/bootstrap.h"

#include "bootstrap/test_jobs.h"

#include "tests/hang.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VICTIM = 2 };

/* ---- bodies of ranks; the exit code is 0 on success ---- */

static void gather(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, all[MAX_RANKS];

    for (int round = 0; round < 5; round++) {
        all[me->config.rank] = round + 10 * me->config.rank;
        must(!kl_bootstrap_allgather(b, all, sizeof all[0]));
        for (int r = 0; r < n; r++) must(all[r] == round + 10 * r);
    }
    must(!kl_bootstrap_barrier(b));
    must(!kl_load_acquire(&me->failures));
}

static void expect_the_victim(struct rank *me)
{
    await_failure(me);
    must(me->culprit == VICTIM);
    must(me->code == ncclRemoteError);
    must(strstr(me->failure, "rank 2 (host "));
    must(strstr(me->failure, " is gone: "));
}

/* Every rank is told without calling anything. */
static void die_while_all_are_idle(struct rank *me, struct kl_bootstrap *b)
{
    kl_bootstrap_phase(b, "idle");
    (void)kl_bootstrap_barrier(b); /* the last step may already report the death */
    if (me->config.rank == VICTIM) raise(SIGKILL);
    expect_the_victim(me);
}

/* Each rank waits for another; none only for the victim. */
static void die_while_all_wait(struct rank *me, struct kl_bootstrap *b)
{
    int n = me->config.nranks, got;

    if (me->config.rank == VICTIM) raise(SIGKILL);
    must(kl_bootstrap_recv(b, (me->config.rank + 1) % n, 1, &got, sizeof got) == ncclRemoteError);
    must(strstr(kl_error_text(), "rank 2 (host "));
    expect_the_victim(me);
}

/* No rank waits inside the bootstrap; most poll for a message of a rank other than the victim. */
static void die_while_all_poll(struct rank *me, struct kl_bootstrap *b)
{
    int got, peer = (me->config.rank + 1) % me->config.nranks;
    ncclResult_t rc;
    bool here;

    if (me->config.rank == VICTIM) raise(SIGKILL);
    (void)kl_bootstrap_post(b, VICTIM, 1, &got, sizeof got);
    while (!(rc = kl_bootstrap_poll(b, peer, 1, &got, sizeof got, &here))) sched_yield();
    must(rc == ncclRemoteError);
    must(strstr(kl_error_text(), "rank 2 (host "));
    expect_the_victim(me);
}

static void die_in_an_exchange(struct rank *me, struct kl_bootstrap *b)
{
    int all[MAX_RANKS] = {0}, rounds = 0;
    ncclResult_t rc = ncclSuccess;

    while (!rc) {
        rc = kl_bootstrap_allgather(b, all, sizeof all[0]);
        if (me->config.rank == VICTIM && ++rounds == 20) raise(SIGKILL);
    }
    must(rc == ncclRemoteError);
    expect_the_victim(me);
}

/* Until the test closes the other end, which it does when all ranks have ended. */
static void outlive_the_ranks(void)
{
    char c;

    while (read((int)strtol(getenv("OUTLIVE_FD"), NULL, 10), &c, 1) > 0) continue;
    _exit(0);
}

/* A child of the victim inherits its sockets, and lives on. */
static void die_with_a_child_left(struct rank *me, struct kl_bootstrap *b)
{
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == VICTIM) {
        if (!fork()) outlive_the_ranks();
        raise(SIGKILL);
    }
    expect_the_victim(me);
}

/* A child, with locks in any state, does not harm its parent's connections. */
static void fork_and_try(struct rank *me, struct kl_bootstrap *b)
{
    int value = 1, status = -1;

    for (int i = 0; i < 20; i++) {
        must(!kl_bootstrap_barrier(b));
        pid_t child = fork();
        if (!child) {
            bool here = true;
            kl_error_quiet(1);
            bool refused = kl_bootstrap_send(b, 0, 1, &value, sizeof value) == ncclInvalidUsage &&
                           kl_bootstrap_recv(b, 0, 1, &value, sizeof value) == ncclInvalidUsage &&
                           kl_bootstrap_post(b, 0, 1, &value, sizeof value) == ncclInvalidUsage &&
                           kl_bootstrap_poll(b, 0, 1, &value, sizeof value, &here) == ncclInvalidUsage && !here &&
                           kl_bootstrap_allgather(b, &value, sizeof value) == ncclInvalidUsage &&
                           kl_bootstrap_barrier(b) == ncclInvalidUsage;
            kl_bootstrap_report(b, 0, ncclRemoteError, "a child");
            kl_bootstrap_abort(b);
            kl_bootstrap_leave(b);
            _exit(!refused);
        }
        must(waitpid(child, &status, 0) == child && !status);
    }
    gather(me, b);
}

/* A job of its own, whose ranks are threads. Returns 0 on success. */
static int run_a_job_here(const ncclUniqueId *id)
{
    struct rank ranks[2];

    setup_ranks(ranks, 2, id, gather);
    for (int r = 0; r < 2; r++) must(!pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]));
    for (int r = 0; r < 2; r++) pthread_join(ranks[r].thread, NULL);
    return ranks[0].joined || ranks[1].joined;
}

/* Children have their own listeners, beside their parents, which continue. */
static void fork_and_join(struct rank *me, struct kl_bootstrap *b)
{
    int status = -1;

    for (int i = 0; i < 5; i++) {
        must(!kl_bootstrap_barrier(b));
        pid_t child = fork();
        if (!child) {
            ncclUniqueId id;
            _exit(kl_bootstrap_id_create(&id) || run_a_job_here(&id));
        }
        must(!kl_bootstrap_barrier(b));
        must(waitpid(child, &status, 0) == child && !status);
    }
    gather(me, b);
}

static void exit_without_a_word(struct rank *me, struct kl_bootstrap *b)
{
    (void)kl_bootstrap_barrier(b);
    if (me->config.rank == VICTIM) _exit(0);
    expect_the_victim(me);
}

static const struct part {
    const char *name;
    void (*run)(struct rank *, struct kl_bootstrap *);
} parts[] = {
    {"gather", gather},
    {"idle", die_while_all_are_idle},
    {"wait", die_while_all_wait},
    {"poll", die_while_all_poll},
    {"exchange", die_in_an_exchange},
    {"child", die_with_a_child_left},
    {"exit", exit_without_a_word},
    {"fork", fork_and_try},
    {"join", fork_and_join},
};

/* argv: part, id, rank, nranks */
static int play(char **argv)
{
    struct rank me;
    ncclUniqueId id;

    alarm(kolo_test_hang_s()); /* no process outlives a failed test */
    must(!kl_bootstrap_id_parse(argv[2], &id));
    setup_ranks(&me, 1, &id, NULL);
    me.config.rank = (int)strtol(argv[3], NULL, 10);
    me.config.nranks = (int)strtol(argv[4], NULL, 10);
    FOR_EACH_CASE(p, parts) if (!strcmp(p->name, argv[1])) me.run = p->run;
    must(me.run);
    rank_main(&me);
    if (me.run != gather && strstr(me.text, "rank 2 (host ")) return 0; /* it died before all had joined */
    if (me.joined) fprintf(stderr, "rank %s: %s\n", argv[3], me.text);
    return me.joined != ncclSuccess;
}

/* ---- the test ---- */

static pid_t start_rank(const char *part, const char *id, int rank, int n)
{
    char rank_text[16], n_text[16];

    snprintf(rank_text, sizeof rank_text, "%d", rank);
    snprintf(n_text, sizeof n_text, "%d", n);
    pid_t pid = fork();
    assert_int_not_equal(pid, -1);
    if (!pid) {
        execl("/proc/self/exe", "process_test", part, id, rank_text, n_text, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void run_processes(const char *part, int n, bool with_victim)
{
    ncclUniqueId id;
    char text[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t pids[MAX_RANKS];

    assert_int_equal(kl_bootstrap_id_create(&id),
                     ncclSuccess); /* the rendezvous runs in this process, which has no rank */
    kl_bootstrap_id_format(&id, text);
    for (int r = 0; r < n; r++) pids[r] = start_rank(part, text, r, n);
    for (int r = 0; r < n; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        if (with_victim && r == VICTIM) continue;
        if (status) fail_msg("%s, %d ranks: rank %d ended with status %x", part, n, r, status);
    }
}

static void processes_exchange(void **state)
{
    static const int sizes[] = {1, 2, 3, 5, 8, 17};

    (void)state;
    FOR_EACH_CASE(n, sizes) run_processes("gather", *n, false);
}

static void survivors_name_the_dead(void **state)
{
    static const int sizes[] = {3, 4, 8, 13};

    (void)state;
    FOR_EACH_CASE(n, sizes) run_processes("idle", *n, true);
    FOR_EACH_CASE(n, sizes) run_processes("wait", *n, true);
    FOR_EACH_CASE(n, sizes) run_processes("poll", *n, true);
    FOR_EACH_CASE(n, sizes) run_processes("exchange", *n, true);
}

static void leaving_without_goodbye_is_a_failure(void **state)
{
    (void)state;
    run_processes("exit", 4, true);
}

static void a_child_does_not_keep_its_parents_connections(void **state)
{
    char fd[16];
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    snprintf(fd, sizeof fd, "%d", ends[0]);
    setenv("OUTLIVE_FD", fd, 1);
    run_processes("child", 4, true);
    close(ends[0]);
    close(ends[1]);
}

static void children_leave_their_parents_job_alone(void **state)
{
    (void)state;
    run_processes("fork", 3, false);
}

static void children_have_jobs_of_their_own(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer knows no threads in the child of a process with threads\n");
    skip();
#endif
    run_processes("join", 3, false);
}

/* A rendezvous that may not have as many connections as it has ranks fails, instead of waiting for them. */
static int lack_descriptors(rlim_t soft, rlim_t hard, int nranks, const char *text)
{
    struct rlimit limit = {.rlim_cur = soft, .rlim_max = hard};
    struct rank me;

    must(!setrlimit(RLIMIT_NOFILE, &limit));
    setup_job(&me, 1, NULL);
    me.config.nranks = nranks;
    me.config.timeout_ms = 2000;
    rank_main(&me);
    must(!getrlimit(RLIMIT_NOFILE, &limit));
    return !(strstr(me.text, text) && limit.rlim_cur >= soft);
}

static void too_few_descriptors_are_an_error(void **state)
{
    int status = -1;

    (void)state;
    pid_t child = fork();
    if (!child) _exit(lack_descriptors(64, 500, 1000, "needs 1010 open files, and may have 500; raise `ulimit -n`"));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    child = fork();
    if (!child) _exit(lack_descriptors(64, 500, 300, "299 of 300 ranks did not join")); /* it has raised the limit */
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- many, one after the other ---- */

enum { IDS = 2000, IN_A_ROW = 2000 };

/* An unused id costs some memory. The first and the last work like any other. */
static int make_unused_ids(void)
{
    static ncclUniqueId ids[IDS];

    must(!kl_bootstrap_id_create(&ids[0]));
    int before = count_fds();
    for (int i = 1; i < IDS; i++) must(!kl_bootstrap_id_create(&ids[i]));
    must(count_fds() == before);
    for (int i = 0; i < IDS; i += IDS - 1) {
        must(!run_a_job_here(&ids[i]));
    }
    return 0;
}

static void unused_ids_hold_no_descriptor_each(void **state)
{
    int status = -1;

    (void)state;
    pid_t child = fork();
    if (!child) _exit(make_unused_ids());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Shared by two processes. */
struct row {
    _Atomic int ids; /* number of ids made so far */
    ncclUniqueId id[IN_A_ROW];
};

/* Each process listens on the same port as before: ended connections keep their ports for a minute, and new ports
 * would soon run out. Now and then another process may have taken the port. */
static void note_port(struct rank *me, struct kl_bootstrap *b)
{
    static int port, changes;
    int mine = kl_address_port(&b->address_records[me->config.rank].address[0]);

    changes += port != mine;
    must(changes < IN_A_ROW / 20);
    port = mine;
    must(!kl_bootstrap_barrier(b));
}

static int join_in_a_row(struct row *row, int rank)
{
    struct rank me;

    alarm(kolo_test_hang_s());
    for (int i = 0; i < IN_A_ROW; i++) {
        if (rank == 0) {
            must(!kl_bootstrap_id_create(&row->id[i]));
            kl_store_release(&row->ids, i + 1);
        }
        while (kl_load_acquire(&row->ids) <= i) sched_yield();
        setup_ranks(&me, 1, &row->id[i], note_port);
        me.config.rank = rank;
        me.config.nranks = 2;
        rank_main(&me);
        if (me.joined) fprintf(stderr, "round %d, rank %d: %s\n", i, rank, me.text);
        if (me.joined) return 1;
    }
    return 0;
}

static void thousands_join_one_after_the_other(void **state)
{
    struct row *row = mmap(NULL, sizeof *row, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[2];

    (void)state;
    assert_ptr_not_equal(row, MAP_FAILED);
    for (int r = 0; r < 2; r++) {
        pids[r] = fork();
        if (!pids[r]) _exit(join_in_a_row(row, r));
    }
    for (int r = 0; r < 2; r++) {
        int status = -1;
        assert_int_equal(waitpid(pids[r], &status, 0), pids[r]);
        assert_int_equal(status, 0);
    }
    munmap(row, sizeof *row);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unused_ids_hold_no_descriptor_each), /* first: these fork, and later ones have threads */
        cmocka_unit_test(thousands_join_one_after_the_other),
        cmocka_unit_test(processes_exchange),
        cmocka_unit_test(survivors_name_the_dead),
        cmocka_unit_test(leaving_without_goodbye_is_a_failure),
        cmocka_unit_test(children_leave_their_parents_job_alone),
        cmocka_unit_test(children_have_jobs_of_their_own),
        cmocka_unit_test(too_few_descriptors_are_an_error),
        cmocka_unit_test(a_child_does_not_keep_its_parents_connections),
    };

    if (argc > 1) return play(argv);
    return cmocka_run_group_tests_name("bootstrap, ranks as processes", tests, NULL, NULL);
}
