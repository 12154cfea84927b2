/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/rank_map.h"

#include "tests/kolo_test.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RANKS = 40 };

static struct kl_peer *peers_of(int n)
{
    struct kl_peer *peer = calloc((size_t)n, sizeof *peer);

    assert_non_null(peer);
    for (int r = 0; r < n; r++) peer[r] = (struct kl_peer){.rank = r, .host = 7, .process = 9, .device = -1};
    return peer;
}

static struct kl_rank_map rank_map_of(struct kl_peer *peer, int n)
{
    struct kl_rank_map r;

    assert_int_equal(kl_rank_map_init(&r, peer, n), ncclSuccess);
    return r;
}

static void ranks_without_device_get_the_lowest_free_one(void **state)
{
    static const int chosen[] = {-1, 2, -1, 0, -1, 2}, given[] = {1, 2, 3, 0, 4, 2};
    struct kl_peer *peer = peers_of(6);

    (void)state;
    for (int r = 0; r < 6; r++) peer[r].device = chosen[r];
    struct kl_rank_map rank_map = rank_map_of(peer, 6);
    for (int r = 0; r < 6; r++) assert_int_equal(rank_map.peer[r].device, given[r]);
    assert_int_equal(rank_map.peer[1].replica, 0);
    assert_int_equal(rank_map.peer[5].replica, 1);
    kl_rank_map_fini(&rank_map);
}

static void processes_are_numbered_by_their_leaders(void **state)
{
    static const uint64_t process[] = {30, 10, 30, 20, 10, 30};
    static const int number[] = {0, 1, 0, 2, 1, 0}, leader[] = {0, 1, 3}, members[] = {3, 2, 1};
    static const int by_process[] = {0, 2, 5, 1, 4, 3};
    struct kl_peer *peer = peers_of(6);

    (void)state;
    for (int r = 0; r < 6; r++) peer[r].process = process[r];
    struct kl_rank_map rank_map = rank_map_of(peer, 6);
    assert_int_equal(rank_map.nprocesses, 3);
    for (int r = 0; r < 6; r++) assert_int_equal(rank_map.process[r], number[r]);
    for (int i = 0; i < 6; i++) assert_int_equal(rank_map.rank[i], by_process[i]);
    for (int p = 0; p < 3; p++) assert_int_equal(kl_rank_map_leader(&rank_map, p), leader[p]);
    for (int p = 0; p < 3; p++) assert_int_equal(kl_rank_map_members(&rank_map, p), members[p]);
    kl_rank_map_fini(&rank_map);
}

static void hosts_count_ranks_and_machines_cores(void **state)
{
    struct kl_peer *peer = peers_of(4);

    (void)state;
    peer[2].host = 8;
    peer[3].machine = 5;
    for (int r = 0; r < 4; r++) peer[r].cpus[0] = r < 3 ? 1u << r % 2 : 1u << 7;
    struct kl_rank_map rank_map = rank_map_of(peer, 4);
    assert_int_equal(kl_rank_map_local_ranks(&rank_map, 0), 3);
    assert_int_equal(kl_rank_map_local_ranks(&rank_map, 2), 1);
    assert_int_equal(kl_rank_map_ranks_per_cpu(&rank_map, 0),
                     2); /* three on CPUs 0 and 1, whatever hosts they are on */
    assert_int_equal(kl_rank_map_ranks_per_cpu(&rank_map, 2), 2);
    assert_int_equal(kl_rank_map_ranks_per_cpu(&rank_map, 3), 1);
    assert_int_equal(kl_rank_map_most_ranks_per_cpu(&rank_map), 2);
    for (int r = 0; r < 4; r++) rank_map.peer[r].cpus[0] = 1u << r;
    assert_int_equal(kl_rank_map_most_ranks_per_cpu(&rank_map), 1);
    rank_map.peer[2].machine = 5;
    rank_map.peer[2].cpus[0] = rank_map.peer[3].cpus[0];
    assert_int_equal(kl_rank_map_most_ranks_per_cpu(&rank_map), 2); /* on the second machine */
    assert_int_equal(rank_map.nprocesses, 2);                       /* one process that plays two hosts */
    kl_rank_map_fini(&rank_map);
}

/* Ranks 0, 2 and 4 may run on CPU 1, 1 and 5 on CPU 3; so may 3, but on another machine. */
static void ranks_of_a_core_have_its_number(void **state)
{
    static const int32_t want[] = {0, 1, 0, 3, 0, 1};
    struct kl_peer *peer = peers_of(6);
    int32_t core[6];

    (void)state;
    for (int r = 0; r < 6; r++) peer[r].cpus[0] = r % 2 ? 1u << 3 : 1u << 1;
    peer[3].machine = 5;
    peer[4].host = 8; /* emulated by the machine */
    struct kl_rank_map rank_map = rank_map_of(peer, 6);
    assert_int_equal(kl_rank_map_cores(&rank_map, core), ncclSuccess);
    for (int r = 0; r < 6; r++) assert_int_equal(core[r], want[r]);
    kl_rank_map_fini(&rank_map);
}

/* ---- random jobs, compared with the rules spelled out ---- */

static uint32_t seed = 1;

static int any(int n)
{
    seed = seed * 1664525u + 1013904223u;
    return (int)((seed >> 8) % (uint32_t)n);
}

static bool taken(const struct kl_peer *peer, int n, int rank, int device)
{
    for (int r = 0; r < n; r++)
        if (r != rank && peer[r].host == peer[rank].host && peer[r].device == device) return true;
    return false;
}

static void give(struct kl_peer *peer, int n)
{
    for (int r = 0; r < n; r++) {
        int device = 0;

        while (taken(peer, n, r, device)) device++;
        if (peer[r].device < 0) peer[r].device = device;
    }
    for (int r = 0; r < n; r++)
        for (int q = 0; q < r; q++) peer[r].replica += peer[q].host == peer[r].host && peer[q].device == peer[r].device;
}

static void check_job(const struct kl_rank_map *rank_map, const struct kl_peer *expected)
{
    for (int r = 0; r < rank_map->nranks; r++) {
        int first = 0;

        assert_int_equal(rank_map->peer[r].device, expected[r].device);
        assert_int_equal(rank_map->peer[r].replica, expected[r].replica);
        while (expected[first].host != expected[r].host || expected[first].process != expected[r].process) first++;
        assert_int_equal(kl_rank_map_leader(rank_map, rank_map->process[r]), first);
    }
}

static void random_jobs_follow_the_rules(void **state)
{
    struct kl_peer expected[MAX_RANKS];

    (void)state;
    for (int job = 0; job < 500; job++) {
        int n = 1 + any(MAX_RANKS), hosts = 1 + any(3), processes = 1 + any(5), devices = 1 + any(2 * n);
        struct kl_peer *peer = peers_of(n);

        for (int r = 0; r < n; r++) {
            peer[r].host = (uint64_t)any(hosts);
            peer[r].process = (uint64_t)any(processes);
            peer[r].device = any(2) ? any(devices) : -1;
        }
        memcpy(expected, peer, (size_t)n * sizeof *peer);
        give(expected, n);
        struct kl_rank_map rank_map = rank_map_of(peer, n);
        check_job(&rank_map, expected);
        kl_rank_map_fini(&rank_map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_without_device_get_the_lowest_free_one),
        cmocka_unit_test(processes_are_numbered_by_their_leaders),
        cmocka_unit_test(hosts_count_ranks_and_machines_cores),
        cmocka_unit_test(ranks_of_a_core_have_its_number),
        cmocka_unit_test(random_jobs_follow_the_rules),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
