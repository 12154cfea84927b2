/* SPDX-License-Identifier: Apache-2.0 */
/* The table of messages: each row is reached, and place, facts and settings decide. */
#include "logs/patterns.h"

#include "base/error.h"
#include "logs/findings.h"
#include "logs/log.h"
#include "logs/remedy.h"
#include "tests/kolo_test.h"
#include "topo/release.h"

#include <stdio.h>
#include <string.h>

static struct kl_log read_text(const char *text)
{
    struct kl_log log;

    kl_log_init(&log);
    assert_int_equal(kl_log_add_text(&log, "a.log", text, strlen(text)), ncclSuccess);
    assert_int_equal(kl_log_finish(&log), ncclSuccess);
    return log;
}

/* A message that has all that a row asks for. */
static void message_for(const struct kl_log_pattern *p, char text[256], char where[64], struct kl_log_message *m)
{
    struct kl_text t = kl_text_in(text, 256);

    for (int i = 0; i < KL_PATTERN_WORDS && p->word[i]; i++) kl_text_add(&t, "%s ", p->word[i]);
    if (p->cuda > 0) kl_text_add(&t, "Cuda failure %d 'x'", p->cuda);
    if (p->cuda < 0) kl_text_add(&t, "Cuda failure 'an error of no number'");
    snprintf(where, 64, "%.*s", p->place ? (int)strcspn(p->place, "|") : 0, p->place ? p->place : "");
    *m = (struct kl_log_message){.text = text, .where = where, .loud = true, .release = p->since, .when = p->when};
}

static void every_pattern_has_a_meaning_and_a_use(void **state)
{
    (void)state;
    assert_true(kl_patterns() > 150);
    for (int i = 0; i < kl_patterns(); i++) {
        const struct kl_log_pattern *p = kl_pattern_at(i), *found;
        struct kl_log_message m;
        char text[256], where[64];

        message_for(p, text, where, &m);
        found = kl_pattern_of(&m);
        if (!found || found->cause != p->cause)
            fail_msg("row %d (\"%s\" in \"%s\") is hidden by another", i, text, where);
        assert_true(!p->until || p->since <= p->until);
        assert_non_null(kl_cause_facts(p->cause)->text);
        assert_true(*kl_source_name(p->source));
    }
    assert_null(kl_pattern_at(kl_patterns()));
}

static void places_and_facts_decide(void **state)
{
    static const struct {
        const char *text, *where;
        int release;
        unsigned when;
        enum kl_log_cause cause;
    } cases[] = {
        {"Cuda failure 101 'invalid device ordinal'", "transport/p2p.cc:1", 0, 0, KL_CAUSE_PEER_HIDDEN},
        {"Cuda failure 101 'invalid device ordinal'", "init.cc:1", 0, 0, KL_CAUSE_DEVICE_NUMBER},
        {"Cuda failure 'named symbol not found'", "enqueue.cc:1", 0, 0, KL_CAUSE_NO_KERNEL},
        {"Cuda failure 'named symbol not found'", "a.cc:1 (ncclCommRegister)", 0, 0, KL_CAUSE_REGISTER},
        {"Cuda failure 'illegal memory access'", "", 0, 0, KL_CAUSE_PROGRAM_FAULT},
        {"Cuda failure 'illegal memory access'", "", 0, KL_WHEN_TESTS, KL_CAUSE_TESTS_FAULT},
        {"Message truncated : 8 bytes instead of 4", "bootstrap.cc:77", 21903, 0, KL_CAUSE_BOOTSTRAP_DEFECT},
        {"Message truncated : 8 bytes instead of 4", "bootstrap.cc:77", 22100, 0, KL_CAUSE_BOOTSTRAP_SIZE},
        {"Message truncated : 8 bytes instead of 4", "bootstrap.cc:77", 0, 0, KL_CAUSE_BOOTSTRAP_SIZE},
        {"message truncated : 8 bytes instead of 4", "transport/net_socket.cc:1", 0, 0, KL_CAUSE_SIZES},
        {"Call to ibv_reg_mr failed with error Cannot allocate memory", "", 0, 0, KL_CAUSE_REG_MEMORY},
        {"Call to ibv_reg_mr failed with error Cannot allocate memory", "", 0, KL_WHEN_GDR_OFF, KL_CAUSE_GDR_REGISTER},
        {"Cuda failure 1 'invalid argument'", "transport/nvls.cc:1", 0, KL_WHEN_CUMEM_OFF, KL_CAUSE_NVLS_CUMEM},
        {"Cuda failure 1 'invalid argument'", "transport/nvls.cc:1", 0, 0, KL_CAUSE_NVLS_BIND},
        {"Cuda failure 217 'peer access is not supported'", "transport/shm.cc:1", 0, 0, KL_CAUSE_SHM_PEER},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        const struct kl_log_message m = {c->text, c->where, true, c->release, c->when};
        const struct kl_log_pattern *p = kl_pattern_of(&m);

        if (!p || p->cause != c->cause)
            fail_msg("\"%s\" in \"%s\": %s", c->text, c->where, p ? kl_cause_facts(p->cause)->name : "none");
    }
}

static void applied_remedies_are_left_out(void **state)
{
    static const struct {
        const char *remedy, *rest;
    } cases[] = {{"do this; NCCL_A_B=1 shows it; or that", "do this; or that"},
                 {"NCCL_A_B=2 helps", "NCCL_A_B=2 helps"},
                 {"NCCL_A_B=10 helps", "NCCL_A_B=10 helps"},
                 {"NCCL_A_B=1", ""},
                 {"XNCCL_A_B=1", "XNCCL_A_B=1"},
                 {NULL, ""}};
    struct kl_log log = read_text("$ mpirun -x \"NCCL_A_B=1\" -x NCCL_C=x ./a\n");

    (void)state;
    assert_int_equal(log.nsetting, 2);
    FOR_EACH_CASE(c, cases)
    {
        char text[128];
        struct kl_text t = kl_text_in(text, sizeof text);

        kl_remedy_add(&log, c->remedy, &t);
        assert_string_equal(text, c->rest);
    }
    kl_log_fini(&log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_has_a_meaning_and_a_use),
        cmocka_unit_test(places_and_facts_decide),
        cmocka_unit_test(applied_remedies_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
