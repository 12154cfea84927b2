/* SPDX-License-Identifier: Apache-2.0 */
/* The simulator that proves schedules (schedule_sim.h) detects errors: rules of schedules, broken one at a time. */
#include "coll/schedule_graphs.h"

typedef void spoil_fn(const struct kl_position *p, int lane, int hop, struct kl_hop *h);

static void keeps_nothing(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 1) h->actions &= ~(uint32_t)KL_HOP_KEEP;
}

static void keeps_elsewhere(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 1) h->result = kl_wrap(h->result + 1, p->nranks);
}

static void never_finishes(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)p, (void)lane, (void)hop;
    h->actions &= ~(uint32_t)KL_HOP_FINISH;
}

static void finishes_early(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 0) h->actions |= KL_HOP_FINISH;
}

static void adds_the_result(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == p->nranks) h->actions |= KL_HOP_REDUCE;
}

static void adds_other_data(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 1) h->own = kl_wrap(h->own + 1, p->nranks);
}

static void adds_nothing(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 1) h->actions &= ~(uint32_t)KL_HOP_REDUCE;
}

static void sends_too_much(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane;
    if (p->rank == 1 && hop == 2 * p->nranks - 2) h->send = 1;
}

static void forgets_a_child(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (lane == 0 && p->ndown > 1) h->recv &= ~1u;
}

static void tells_one_child_only(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->ndown > 1 && h->actions & KL_HOP_KEEP) h->send = 1;
}

static void root_has_a_parent(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (!p->up) h->send |= 1u << KL_TREE_UP;
}

static void stands_elsewhere(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->before = 0;
}

static void stands_behind_nobody(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->before = 7;
}

static void misses_one(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_MEET) h->recv &= ~1u, h->before--;
}

static void parks_for_ever(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)lane, (void)hop;
    if (p->rank == 3 && h->actions & KL_HOP_KEEP) h->actions ^= KL_HOP_KEEP | KL_HOP_PARK | KL_HOP_FINISH;
}

static void resumes_too_early(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 3 && lane == 1) h->actions |= KL_HOP_RESUME;
}

static void chain_never_finishes(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)p, (void)lane, (void)hop;
    h->actions &= ~(uint32_t)KL_HOP_FINISH;
}

static void brings_the_share_of_another(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && !lane) h->own = kl_wrap(h->own + 1, p->nheads);
}

static void keeps_it_from_the_others(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && lane) h->send = 0;
}

static void takes_no_result(const struct kl_position *p, int lane, int hop, struct kl_hop *h)
{
    (void)hop;
    if (p->rank == 1 && lane) h->recv &= ~(1u << KL_DIRECT_NET);
}

static const struct broken {
    const struct kl_schedule *healthy;
    connect_fn *connect;
    spoil_fn *spoil;
    const char *says;
} broken[] = {
    {&kl_allreduce_ring, ring_of, keeps_nothing, "has in element"},
    {&kl_allreduce_ring, ring_of, keeps_elsewhere, "keeps elements"},
    {&kl_allreduce_ring, ring_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_ring, ring_of, finishes_early, "is no partial result"},
    {&kl_allreduce_ring, ring_of, adds_the_result, "adds to a value that is no partial result"},
    {&kl_allreduce_ring, ring_of, adds_other_data, "adds elements"},
    {&kl_allreduce_ring, ring_of, adds_nothing, "has in element"},
    {&kl_allreduce_ring, ring_of, sends_too_much, "data that no rank receives"},
    {&kl_allreduce_tree, double_tree_of, keeps_nothing, "has in element"},
    {&kl_allreduce_tree, double_tree_of, forgets_a_child, "data that no rank receives"},
    {&kl_allreduce_tree, double_tree_of, tells_one_child_only, "waits for ever"},
    {&kl_allreduce_tree, double_tree_of, root_has_a_parent, "which leads nowhere"},
    {&kl_reducescatter_pat, pat_of, adds_other_data, "adds elements"},
    {&kl_reducescatter_pat, pat_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_chain, chain_of, chain_never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_direct, direct_of, brings_the_share_of_another, "adds elements"},
    {&kl_allgather_direct, direct_of, keeps_it_from_the_others, "waits for ever"},
    {&kl_allgather_direct, direct_of, takes_no_result, "does not take all results"},
    {&kl_allreduce_oneshot, grid_of, stands_elsewhere, "computed element"},
    {&kl_allreduce_oneshot, grid_of, stands_behind_nobody, "stands behind more"},
    {&kl_allreduce_oneshot, grid_of, misses_one, "data that no rank receives"},
    {&kl_allreduce_oneshot, grid_of, never_finishes, "keeps an incomplete result"},
    {&kl_allreduce_oneshot, grid_of, parks_for_ever, "has in element"},
    {&kl_allreduce_oneshot, grid_of, resumes_too_early, "resumes without a parked value"},
};

static const struct broken *now_broken;

static struct kl_hop broken_hop(const struct kl_position *p, int lane, int hop)
{
    struct kl_hop h = now_broken->healthy->hop(p, lane, hop);

    now_broken->spoil(p, lane, hop, &h);
    return h;
}

/* Seven elements of each chunk on seven ranks; returns the error. */
static const char *run_seven(const struct kl_schedule *s, connect_fn *connect, void *context)
{
    struct sim *sim = sim_new(s, 7, KL_EDGE_STEPS, 3);

    sim->first = 0;
    sim->count = sim->end = 49;
    sim->most = s->send == KL_LAYOUT_CHUNKS ? 7 : 49;
    sim_forget(sim);
    connect(sim, 0, context);
    return *sim_run(sim) ? sim->wrong : judge(sim, 0);
}

static void broken_rules_are_seen(void **state)
{
    static struct ring_context ring;
    static struct cluster node = {.nnodes = 1, .local = 7, .nheads = 7};

    (void)state;
    grid = kl_grid_of(7, 1, 7);
    FOR_EACH_CASE(b, broken)
    {
        struct kl_schedule s = *b->healthy;
        void *context = b->connect == ring_of ? (void *)&ring : &node;

        expect_case(b->says, !*run_seven(&s, b->connect, context));
        now_broken = b;
        s.hop = broken_hop;
        expect_case(b->says, strstr(run_seven(&s, b->connect, context), b->says));
    }
}

/* A rank that calls with another count. */
static void sizes_that_differ_are_seen(void **state)
{
    struct sim *sim = sim_new(&kl_allreduce_tree, 2, 1, 0);

    (void)state;
    sim->first = 0;
    sim->count = sim->end = sim->most = 8;
    sim_forget(sim);
    connect_double_tree(sim, 0);
    sim_start(sim);
    sim->rank[1].lane[0].chunk = sim->rank[1].lane[1].chunk = 7;
    while (!*sim->wrong && sim_round(sim, true)) continue;
    assert_non_null(strstr(sim->wrong, "expects"));
}

/* PAT that assumes more room in edges than there is. */
static void pat_depends_on_the_room(void **state)
{
    struct sim *sim = sim_new(&kl_allgather_pat, SIM_RANKS, 2, 0);

    (void)state;
    sim->first = 0;
    sim->count = sim->end = sim->most = 1;
    sim_forget(sim);
    connect_pat(sim);
    for (int r = 0; r < SIM_RANKS; r++) sim->rank[r].at.steps = SIM_STEPS;
    assert_non_null(strstr(sim_run(sim), "waits for ever"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(broken_rules_are_seen),
        cmocka_unit_test(sizes_that_differ_are_seen),
        cmocka_unit_test(pat_depends_on_the_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
