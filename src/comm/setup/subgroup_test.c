/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/setup/subgroup.h"

#include "bootstrap/test_jobs.h"

enum { BIG = 9 << 20 }; /* more than a piece */

/* Every third rank of a job, and the last. */
static int list_ranks(int nranks, int32_t *list)
{
    int n = 0;

    for (int r = 0; r < nranks; r++)
        if (r % 3 == 0 || r == nranks - 1) list[n++] = r;
    return n;
}

static bool join(const struct rank *me, struct kl_bootstrap *b, int32_t *list, struct kl_subgroup *subgroup)
{
    *subgroup = (struct kl_subgroup){.bootstrap = b, .rank = list, .n = list_ranks(me->config.nranks, list)};
    for (int i = 0; i < subgroup->n; i++)
        if (list[i] == me->config.rank) subgroup->own = i;
    return list[subgroup->own] == me->config.rank;
}

/* ---- one tells the others ---- */

static void broadcast_from_each(struct rank *me, struct kl_bootstrap *b)
{
    int32_t list[MAX_RANKS] = {0};
    struct kl_subgroup subgroup;

    if (!join(me, b, list, &subgroup)) return;
    for (int root = 0; root < subgroup.n; root++) {
        char mine[64], expected[64];
        void *data = mine;
        size_t bytes = 0, size = (size_t)snprintf(expected, sizeof expected, "words of rank %d", list[root]);

        if (subgroup.own == root) {
            memcpy(mine, expected, size);
            bytes = size;
        }
        must(!kl_subgroup_broadcast(&subgroup, root, &data, &bytes));
        must(bytes == size && !memcmp(data, expected, size));
        if (subgroup.own == root) continue;
        must(((char *)data)[bytes] == 0);
        free(data);
    }
}

static void broadcasts_reach_every_rank(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_RANKS; n++) run_job(n, broadcast_from_each);
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 7 + (i >> 13));
}

static void broadcast_large(struct rank *me, struct kl_bootstrap *b)
{
    int32_t list[] = {0, 1, 2};
    struct kl_subgroup subgroup = {.bootstrap = b, .rank = list, .n = 3, .own = me->config.rank};
    size_t bytes = BIG;
    unsigned char *room = malloc(BIG);
    void *data = room;

    must(room);
    for (size_t i = 0; i < BIG; i++) room[i] = me->config.rank == 1 ? byte_at(i) : 0;
    must(!kl_subgroup_broadcast(&subgroup, 1, &data, &bytes));
    must(bytes == BIG);
    for (size_t i = 0; i < BIG; i++) must(((unsigned char *)data)[i] == byte_at(i));
    if (data != room) free(data);
    free(room);
}

static void much_comes_in_pieces(void **state)
{
    (void)state;
    run_job(3, broadcast_large);
}

static void announce_too_much(struct rank *me, struct kl_bootstrap *b)
{
    int32_t list[] = {0, 1};
    struct kl_subgroup subgroup = {.bootstrap = b, .rank = list, .n = 2, .own = me->config.rank};
    uint64_t announced = UINT64_MAX;
    void *data = NULL;
    size_t bytes = 0;

    if (!me->config.rank)
        must(!kl_bootstrap_send(b, 1, 0x4b4c, &announced, sizeof announced));
    else
        must(kl_subgroup_broadcast(&subgroup, 0, &data, &bytes) == ncclInternalError && !data);
}

static void an_impossible_size_is_refused(void **state)
{
    (void)state;
    run_job(2, announce_too_much);
}

/* ---- all tell all ---- */

/* Blocks of different sizes, some of them empty. */
static size_t block_of(int place)
{
    return (size_t)(place % 4) * 5;
}

static void gather(struct rank *me, struct kl_bootstrap *b)
{
    int32_t list[MAX_RANKS] = {0};
    size_t block[MAX_RANKS] = {0}, total = 0, own = 0;
    struct kl_subgroup subgroup;
    char all[MAX_RANKS * 15], expected[MAX_RANKS * 15];

    if (!join(me, b, list, &subgroup)) return;
    for (int i = 0; i < subgroup.n; i++) {
        if (i == subgroup.own) own = total;
        block[i] = block_of(i);
        memset(expected + total, 'a' + i, block[i]);
        total += block[i];
    }
    memset(all, 0, sizeof all);
    memset(all + own, 'a' + subgroup.own, block[subgroup.own]);
    must(!kl_subgroup_allgather(&subgroup, all, block));
    must(!memcmp(all, expected, total));
}

static void all_blocks_reach_all(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_RANKS; n++) run_job(n, gather);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        leak_test(broadcasts_reach_every_rank),
        leak_test(much_comes_in_pieces),
        leak_test(an_impossible_size_is_refused),
        leak_test(all_blocks_reach_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
