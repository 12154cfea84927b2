/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts in a row that found nothing are one entry; each that found something is its own. */
#include "graph/search_log.h"

#include "graph/test_machine.h"

static struct kl_conn_request attempt(int pass, float bw, int type, int stored, int link)
{
    return (struct kl_conn_request){.pass = pass,
                                    .bw_intra = bw,
                                    .type_intra = type,
                                    .stored = stored,
                                    .steps = 10,
                                    .end = KL_ATTEMPT_EXHAUSTED,
                                    .repeats = -1,
                                    .limiting_link = link,
                                    .refusals = link < 0 ? 0 : 5};
}

static void failures_are_merged(void **state)
{
    struct kl_conn_request a[] = {
        attempt(1, 40, KL_PATH_NVL, 0, 1), attempt(1, 40, KL_PATH_SYS, 0, 2), attempt(1, 30, KL_PATH_NVL, 0, 2),
        attempt(1, 20, KL_PATH_NVL, 2, 0), attempt(1, 20, KL_PATH_NVL, 4, 0), attempt(1, 15, KL_PATH_PIX, 0, -1),
        attempt(2, 24, KL_PATH_NVL, 0, 0),
    };
    struct kl_graph_why why = {.attempt = a, .nattempts = 7};
    struct kl_topo *t = host_devices(4);
    struct kl_search_log *s = NULL;

    (void)state;
    a[1].repeats = 0;
    a[2].end = KL_ATTEMPT_PRUNED;
    a[6].next = KL_RELAX_FASTER;
    assert_int_equal(kl_search_log_create(&why, t, &s), ncclSuccess);
    assert_int_equal(s->log_entries, 5);
    const struct kl_search_log_entry *c = s->entry;

    assert_true(c[0].first == 0 && c[0].last == 2 && c[0].bw_from == 40 && c[0].bw_to == 30);
    assert_true(c[0].type_intra.from == KL_PATH_NVL && c[0].type_intra.to == KL_PATH_SYS);
    assert_true(c[0].made == 1 && c[0].repeated == 1 && c[0].hopeless == 1 && c[0].steps == 10);
    assert_int_equal(c[0].limiting_link, 2);
    assert_true(c[1].stored == 2 && c[1].first == 3 && c[1].last == 3);
    assert_true(c[2].stored == 4 && c[2].first == 4);
    assert_true(c[3].stored == 0 && c[3].limiting_link == -1);
    assert_true(c[4].pass == 2 && c[4].first == 6 && c[4].next == KL_RELAX_FASTER);
    free(s);
    kl_topo_free(t);
}

static void an_attempt_counts_once(void **state)
{
    struct kl_conn_request a[] = {attempt(1, 40, KL_PATH_NVL, 0, -1), attempt(1, 30, KL_PATH_PIX, 0, 1),
                                  attempt(2, 20, KL_PATH_NVL, 0, -1)};
    struct kl_graph_why why = {.attempt = a, .nattempts = 3};

    (void)state;
    a[0].end = KL_ATTEMPT_TIMEOUT;
    a[1].repeats = 0;
    a[1].end = KL_ATTEMPT_PRUNED;
    a[2].end = KL_ATTEMPT_PRUNED;
    struct kl_search_log_entry made = kl_search_log_attempt(&why, 0), repeated = kl_search_log_attempt(&why, 1),
                               hopeless = kl_search_log_attempt(&why, 2);

    assert_true(made.made == 1 && made.timeouts == 1 && made.repeated + made.hopeless == 0);
    assert_true(repeated.repeated == 1 && repeated.made + repeated.hopeless == 0);
    assert_true(hopeless.hopeless == 1 && hopeless.made + hopeless.repeated == 0);
    assert_true(repeated.first == 1 && repeated.last == 1 && repeated.bw_from == 30 && repeated.bw_to == 30);
    assert_true(made.limiting_link == -1 && repeated.limiting_link == 1);
}

static void no_attempt_is_no_story(void **state)
{
    struct kl_graph_why why = {.nattempts = 0};
    struct kl_topo *t = host_devices(2);
    struct kl_search_log *s = NULL;

    (void)state;
    assert_int_equal(kl_search_log_create(&why, t, &s), ncclSuccess);
    assert_int_equal(s->log_entries, 0);
    free(s);
    kl_topo_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failures_are_merged),
        cmocka_unit_test(an_attempt_counts_once),
        cmocka_unit_test(no_attempt_is_no_story),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
