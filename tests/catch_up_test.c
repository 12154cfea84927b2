/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rank has queued because there were no data yet is looked at before more is queued: else nothing would run in the call again until somebody waits.
 * Two ranks in one thread, so that it is known when data are there. The background thread may look at the same moment: so
 * most times count, not each.
 */
#include "include/kolo.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <stdbool.h>

enum { RANKS = 2, TIMES = 200, MOST = TIMES * 9 / 10 };

static struct {
    ncclComm_t comm;
    koloStream_t stream;
    float send, recv;
} ranks[RANKS];

static void must(ncclResult_t rc)
{
    if (rc) fail_msg("%s: %s", ncclGetErrorString(rc), ncclGetLastError(NULL));
}

static void broadcast(int r)
{
    must(ncclBroadcast(&ranks[r].send, &ranks[r].recv, 1, ncclFloat, 0, ranks[r].comm, ranks[r].stream));
}

static void create(void)
{
    ncclUniqueId id;

    must(ncclGetUniqueId(&id));
    must(ncclGroupStart());
    for (int r = 0; r < RANKS; r++) {
        must(koloSetDevice(r));
        must(ncclCommInitRank(&ranks[r].comm, RANKS, id, r));
        must(koloStreamCreate(&ranks[r].stream, KOLO_STREAM_DEFAULT));
    }
    must(ncclGroupEnd());
}

static void synchronize(void)
{
    for (int r = 0; r < RANKS; r++) must(koloStreamSynchronize(ranks[r].stream));
}

static void destroy(void)
{
    for (int r = 0; r < RANKS; r++) must(ncclCommDestroy(ranks[r].comm));
    for (int r = 0; r < RANKS; r++) must(koloStreamDestroy(ranks[r].stream));
}

/* Rank 1 calls before the root has, and once more after it. Is the second value there when that call returns? */
static bool is_there_at_once(int time)
{
    broadcast(1);
    for (int i = 0; i < 2; i++) {
        ranks[0].send = (float)(2 * time + i);
        broadcast(0);
    }
    broadcast(1);
    return ranks[1].recv == (float)(2 * time + 1);
}

static bool has_cores(void)
{
    cpu_set_t cpus;

    return !sched_getaffinity(0, sizeof cpus, &cpus) && CPU_COUNT(&cpus) >= RANKS;
}

static void what_is_queued_is_looked_at_before_more_is(void **state)
{
    int at_once = 0;

    (void)state;
    if (!has_cores()) {
        print_message("skipped: ranks that share a core leave it to others\n");
        skip();
    }
    create();
    for (int i = 0; i < RANKS; i++) broadcast(i);
    synchronize();
    for (int i = 0; i < TIMES; i++) at_once += is_there_at_once(i);
    assert_in_range(at_once, MOST, TIMES);
    synchronize();
    destroy();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_queued_is_looked_at_before_more_is)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
