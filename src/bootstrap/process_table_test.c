/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/process_table.h"

#include "bootstrap/exchange.h"
#include "bootstrap/test_jobs.h"
#include "bootstrap/partners.h"
#include "bootstrap/processes.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- ranks and processes ---- */

static void ranks_with_the_same_address_record_are_of_one_process(void **state)
{
    static const uint64_t pid[] = {7, 5, 7, 9, 5, 5, 9};
    static const int process[] = {0, 1, 0, 2, 1, 1, 2}, place[] = {0, 0, 1, 0, 1, 2, 1};
    enum { N = 7 };
    struct kl_address_record address_records[N];
    struct kl_processes p;

    (void)state;
    for (int r = 0; r < N; r++)
        address_records[r] = (struct kl_address_record){.rank = r, .pid = pid[r], .host = "h", .naddresses = 1};
    assert_int_equal(kl_processes_find(address_records, N, &p), ncclSuccess);
    assert_int_equal(p.n, 3);
    for (int r = 0; r < N; r++) {
        assert_int_equal(p.of_rank[r], process[r]);
        assert_int_equal(kl_processes_placement(&p, r).place, place[r]);
    }
    assert_int_equal(kl_processes_leader(&p, 1), 1);
    assert_int_equal(kl_processes_members(&p, 1), 3);
    kl_processes_fini(&p);

    address_records[2].address[0].v4.sin_port = 1; /* another listening address */
    address_records[4].host[0] = 'x';
    assert_int_equal(kl_processes_find(address_records, N, &p), ncclSuccess);
    assert_int_equal(p.n, 5);
    kl_processes_fini(&p);
}

/* ---- gathering ---- */

struct record {
    int rank, twice;
    char much[1000];
};

static struct record record_of(int rank)
{
    struct record r = {.rank = rank, .twice = 2 * rank};

    memset(r.much, rank, sizeof r.much);
    return r;
}

static bool is_all_of(const struct record *all, int n)
{
    for (int r = 0; r < n; r++) {
        const struct record want = record_of(r);
        if (memcmp(&all[r], &want, sizeof want)) return false;
    }
    return true;
}

static void gather_twice(struct rank *me, struct kl_bootstrap *b)
{
    struct record mine = record_of(b->rank);
    struct kl_records *first, *second;

    (void)me;
    must(!kl_bootstrap_gather(b, &mine, sizeof mine, &first));
    must(!kl_bootstrap_gather(b, &mine.rank, sizeof mine.rank, &second));
    must(is_all_of(first->all, b->nranks));
    for (int r = 0; r < b->nranks; r++) must(((const int *)second->all)[r] == r);
    must(!kl_bootstrap_barrier(b)); /* all members share one table, readable until the last drops it */
    must(is_all_of(first->all, b->nranks));
    kl_records_unref(second);
    kl_records_unref(first);
    for (int r = 0; r < b->nranks; r++) must(b->address_records[r].rank == r && b->address_records[r].naddresses);
}

static void threads_gather(void **state)
{
    static const int sizes[] = {1, 2, 3, 16, MAX_RANKS};
    struct rank ranks[MAX_RANKS];

    (void)state;
    FOR_EACH_CASE(n, sizes)
    {
        setup_job(ranks, *n, gather_twice);
        run_ranks(ranks, *n);
        expect_joined(ranks, *n);
    }
}

/* The ranks r with r % nprocesses == which, of a job whose id the parent has. */
static int live_in_child(const ncclUniqueId *id, int n, int nprocesses, int which)
{
    struct rank ranks[MAX_RANKS];
    int mine = 0;

    setup_ranks(ranks, n, id, gather_twice);
    for (int r = which; r < n; r += nprocesses, mine++)
        must(!pthread_create(&ranks[r].thread, NULL, rank_main, &ranks[r]));
    for (int r = which; r < n; r += nprocesses) {
        pthread_join(ranks[r].thread, NULL);
        if (ranks[r].joined) fprintf(stderr, "rank %d: %s\n", r, ranks[r].text);
        mine -= !ranks[r].joined;
    }
    return mine;
}

/* Shares of different sizes, with interleaved ranks. */
static void processes_gather(void **state)
{
    static const struct {
        int n, nprocesses;
    } cases[] = {{2, 2}, {5, 2}, {7, 3}, {16, 5}, {MAX_RANKS, 4}, {8, 8}};

    (void)state;
#ifdef __SANITIZE_THREAD__
    print_message("skipped: ThreadSanitizer knows no threads in the child of a process with threads\n");
    skip();
#endif
    FOR_EACH_CASE(c, cases)
    {
        ncclUniqueId id;
        int status;
        assert_int_equal(kl_bootstrap_id_create(&id), ncclSuccess);
        for (int p = 0; p < c->nprocesses; p++)
            if (!fork()) _exit(live_in_child(&id, c->n, c->nprocesses, p));
        for (int p = 0; p < c->nprocesses; p++) {
            assert_true(wait(&status) > 0);
            assert_int_equal(status, 0);
        }
    }
}

/* ---- several simulated processes in this one ---- */

/* The ranks failed, with this text. */
static void expect_all_but(const struct rank *ranks, int n, int who, const char *text)
{
    for (int r = 0; r < n; r++) {
        if (r == who) continue;
        assert_int_equal(ranks[r].joined, ncclRemoteError);
        if (!strstr(ranks[r].text, text)) fail_msg("rank %d: \"%s\" is not in \"%s\"", r, text, ranks[r].text);
    }
}

/* Traffic between processes; each entry is used by one thread. */
static struct {
    bool watched;
    int steps;
    uint64_t deadline; /* of all of them */
} exchange_of[MAX_RANKS];

ncclResult_t __real_kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *step, uint64_t deadline);
ncclResult_t __wrap_kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *step, uint64_t deadline);

/* Rank 0 waits here, when it sends so many bytes to another process, until one of its own ranks has left. Relaxed:
 * must not order other accesses. */
static struct {
    size_t bytes; /* 0: nowhere */
    _Atomic uint32_t reached, open, behind;
} gate;

static void close_gate(size_t bytes)
{
    gate.bytes = bytes;
    kl_store_relaxed(&gate.reached, 0);
    kl_store_relaxed(&gate.open, 0);
    kl_store_relaxed(&gate.behind, 0);
}

static void pass_gate(void)
{
    kl_store_relaxed(&gate.reached, 1);
    while (!kl_load_relaxed(&gate.open)) sched_yield();
}

ncclResult_t __wrap_kl_exchange_step(struct kl_bootstrap *b, const struct kl_step *step, uint64_t deadline)
{
    if (gate.bytes && b->rank == 0 && step->out_bytes == gate.bytes) pass_gate();
    if (!exchange_of[b->rank].steps++) exchange_of[b->rank].deadline = deadline;
    must(!exchange_of[b->rank].watched || deadline == exchange_of[b->rank].deadline);
    return __real_kl_exchange_step(b, step, deadline);
}

/* Back to the state where ranks know only their partners. */
static void move_out(struct kl_bootstrap *b)
{
    struct kl_address_record own = b->address_records[b->rank];

    must(!kl_bootstrap_barrier(b)); /* no rank is inside an exchange any more */
    kl_process_table_leave(b);
    must((b->address_records = calloc((size_t)b->nranks, sizeof *b->address_records)));
    b->address_records[b->rank] = own;
    must(!kl_bootstrap_barrier(b));
}

/* As if this rank lived in one of several processes with `nmembers` each. */
static void pretend_to_live(struct kl_bootstrap *b, int nmembers)
{
    int partner[KL_MAX_PARTNERS], process = b->rank / nmembers, nprocesses = b->nranks / nmembers;

    move_out(b);
    b->placement = (struct kl_placement){process, nprocesses, b->rank % nmembers, nmembers};
    b->address_records[b->rank].pid = (uint64_t)process;
    for (int i = kl_partners(process, nprocesses, partner); i--;) b->leaders[i] = partner[i] * nmembers;
}

static void meet_once_more(struct rank *me, struct kl_bootstrap *b)
{
    (void)me;
    pretend_to_live(b, 2);
    exchange_of[b->rank].watched = true;
    exchange_of[b->rank].steps = 0;
    must(!kl_process_table_gather(b));
    exchange_of[b->rank].watched = false;
    for (int r = 0; r < b->nranks; r++)
        must(b->address_records[r].rank == r && b->address_records[r].pid == (uint64_t)(r / 2));
    must(exchange_of[b->rank].steps == (b->rank % 2 ? 0 : 2 * 3)); /* how many ranks, and their address records */
    must(!kl_bootstrap_barrier(b));
}

static void an_exchange_has_one_deadline(void **state)
{
    (void)state;
    /* each process has one leader, or its members would time out before the leader does */
    run_job(12, meet_once_more);
}

static void *abort_at_gate(void *b)
{
    while (!kl_load_relaxed(&gate.reached)) sched_yield();
    kl_bootstrap_abort(b);
    return NULL;
}

static void rank_1_is_aborted(struct rank *me, struct kl_bootstrap *b)
{
    pthread_t aborter;

    pretend_to_live(b, 2);
    if (b->rank != 1) {
        me->joined = kl_process_table_gather(b);
        snprintf(me->text, sizeof me->text, "%s", kl_error_text());
        if (!b->rank) kl_store_relaxed(&gate.behind, 1);
        return;
    }
    must(!pthread_create(&aborter, NULL, abort_at_gate, b));
    must(kl_process_table_gather(b) == ncclInternalError);
    kl_process_table_leave(b);
    kl_store_relaxed(&gate.open, 1);
    while (!kl_load_relaxed(&gate.behind)) sched_yield(); /* no other synchronisation orders this rank's accesses */
    pthread_join(aborter, NULL);
}

/* ThreadSanitizer reports unsynchronised accesses. */
static void one_leaves_while_all_are_made_known(void **state)
{
    struct rank ranks[4];

    (void)state;
    close_gate(2 * KL_ADDRESS_RECORD_WIRE);
    run_job(4, rank_1_is_aborted);
    close_gate(4); /* before their address records: how many ranks a process has */
    setup_job(ranks, 4, rank_1_is_aborted);
    run_ranks(ranks, 4);
    close_gate(0);
    expect_all_but(ranks, 4, 1, "rank 1 has left while the others were joining");
}

/* ---- a missing member ---- */

static void gather_alone(struct rank *me, struct kl_bootstrap *b)
{
    struct kl_records *records;

    me->joined = kl_bootstrap_gather(b, &b->rank, sizeof b->rank, &records);
    snprintf(me->text, sizeof me->text, "%s", kl_error_text());
}

static void all_but_rank_2(struct rank *me, struct kl_bootstrap *b)
{
    if (b->rank != 2) gather_alone(me, b); /* rank 2 leaves in good order */
}

static void who_leaves_without_gathering_is_named(void **state)
{
    struct rank ranks[5];

    (void)state;
    setup_job(ranks, 5, all_but_rank_2);
    run_ranks(ranks, 5);
    expect_all_but(ranks, 5, 2, "rank 2 has left its process's exchange");
}

static sem_t over;

static void all_but_rank_3(struct rank *me, struct kl_bootstrap *b)
{
    if (b->rank == 3) {
        while (sem_wait(&over)) continue;
        return;
    }
    gather_alone(me, b);
    if (b->rank == 0) sem_post(&over);
}

static void who_does_not_come_in_time_is_named(void **state)
{
    struct rank ranks[5];

    (void)state;
    sem_init(&over, 0, 0);
    setup_job(ranks, 5, all_but_rank_3);
    for (int r = 0; r < 5; r++) ranks[r].after_join_timeout_ms = 2000;
    run_ranks(ranks, 5);
    expect_all_but(ranks, 5, 3, "nothing came from rank 3");
}

static void all_but_rank_1(struct rank *me, struct kl_bootstrap *b)
{
    if (b->rank == 1)
        kl_bootstrap_report(b, 1, ncclRemoteError, "rank 1 has had enough");
    else
        gather_alone(me, b);
}

/* Long before the deadline, which stays that of joining. */
static void a_failure_ends_the_wait(void **state)
{
    struct rank ranks[5];

    (void)state;
    setup_job(ranks, 5, all_but_rank_1);
    run_ranks(ranks, 5);
    expect_all_but(ranks, 5, 1, "rank 1 has had enough");
}

/* Ranks 0 to 2 pretend to be a process of four; the fourth never comes. */
static void three_of_four(struct rank *me, struct kl_bootstrap *b)
{
    move_out(b);
    b->placement = (struct kl_placement){0, 1, b->rank, 4};
    if (b->rank == 3) {
        await_failure(me); /* before it leaves: a rank that has left gets no notice */
        return;
    }
    b->timeout_ms = 2000;
    me->joined = kl_process_table_gather(b);
    snprintf(me->text, sizeof me->text, "%s", kl_error_text());
}

/* The leader knows neither the missing rank, nor a fault of its own. */
static void nobody_is_blamed_who_is_not_known(void **state)
{
    struct rank ranks[4];

    (void)state;
    setup_job(ranks, 4, three_of_four);
    run_ranks(ranks, 4);
    expect_all_but(ranks, 4, 3, "rank 0: nothing came from another rank, of the same process");
    assert_int_equal(ranks[3].culprit, -1);
}

static sem_t left;

/* Rank 0 is there, and gone again, before rank 1 comes. */
static void one_after_the_other(struct rank *me, struct kl_bootstrap *b)
{
    move_out(b);
    b->placement = (struct kl_placement){0, 1, b->rank, 2};
    b->timeout_ms = 200;
    if (b->rank == 0) kl_bootstrap_abort(b);
    while (b->rank && sem_wait(&left)) continue;
    me->joined = kl_process_table_gather(b);
    snprintf(me->text, sizeof me->text, "%s", kl_error_text());
    kl_process_table_leave(b);
    if (b->rank == 0) sem_post(&left);
}

static void who_comes_when_all_have_left_hears_it(void **state)
{
    struct rank ranks[2];

    (void)state;
    sem_init(&left, 0, 0);
    setup_job(ranks, 2, one_after_the_other);
    run_ranks(ranks, 2);
    assert_int_equal(ranks[0].joined, ncclInternalError);
    assert_int_equal(ranks[1].joined, ncclRemoteError);
    assert_non_null(strstr(ranks[1].text, "rank 0 has left its process's exchange"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_with_the_same_address_record_are_of_one_process),
        leak_test(threads_gather),
        leak_test(processes_gather),
        leak_test(an_exchange_has_one_deadline),
        leak_test(one_leaves_while_all_are_made_known),
        leak_test(who_leaves_without_gathering_is_named),
        leak_test(who_does_not_come_in_time_is_named),
        leak_test(a_failure_ends_the_wait),
        leak_test(nobody_is_blamed_who_is_not_known),
        leak_test(who_comes_when_all_have_left_hears_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
