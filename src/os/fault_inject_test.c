/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fault_inject.h"

#include "base/clock.h"
#include "tests/kolo_test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TURNS = 400 };

/* The faults in a process whose variable is `value`: a bit per kind that struck, and the attempts at which memory was
 * refused. */
struct outcome {
    bool on;
    unsigned struck;
    uint64_t took_ns;
    int refused;
    unsigned char memory[TURNS];
};

static void live(struct outcome *s)
{
    int pair[2];
    char data[64] = "";

    const uint64_t began = kl_now_ns();

    if (getenv("SPARED")) kl_inject_disable();
    s->on = kl_inject_is_on();
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair)) _exit(1);
    for (int i = 0; i < TURNS; i++) {
        s->memory[i] = kl_inject_no_memory();
        if (s->memory[i]) s->struck |= 1u << KL_INJECT_MEMORY;
        if (kl_inject_no_descriptor()) {
            s->struck |= 1u << KL_INJECT_DESCRIPTORS;
            s->refused |= errno == EMFILE ? 1 : errno == ENFILE ? 2 : 4;
        }
        ssize_t n = kl_inject_send(pair[0], data, sizeof data, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n > 0 && n < (ssize_t)sizeof data) s->struck |= 1u << KL_INJECT_SHORT;
        if (n < 0 && errno == EPIPE) s->struck |= 1u << KL_INJECT_DROP;
        while (recv(pair[1], data, sizeof data, MSG_DONTWAIT) > 0) continue;
    }
    s->took_ns = kl_now_ns() - began;
    _exit(0);
}

static int process_with(const char *value, const char *rank, struct outcome *s)
{
    struct outcome *shared = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = -1;

    assert_ptr_not_equal(shared, MAP_FAILED);
    pid_t child = fork();
    assert_int_not_equal(child, -1);
    if (!child) {
        setenv("KOLO_RANK", rank, 1);
        setenv("KOLO_CHAOS", value, 1);
        live(shared);
    }
    assert_int_equal(waitpid(child, &status, WUNTRACED), child);
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    *s = *shared;
    munmap(shared, sizeof *s);
    return status;
}

static void only_what_is_asked_for_strikes(void **state)
{
    static const struct {
        const char *value;
        unsigned struck;
    } cases[] = {
        {"", 0},
        {"5:short", 1u << KL_INJECT_SHORT},
        {"5:memory", 1u << KL_INJECT_MEMORY},
        {"5:descriptors", 1u << KL_INJECT_DESCRIPTORS},
        {"5:short,memory", 1u << KL_INJECT_SHORT | 1u << KL_INJECT_MEMORY},
        {"many", 0},
        {"5:elephants", 0},
        {"5 short", 0},
    };
    struct outcome s;

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        expect_case(c->value, process_with(c->value, "0", &s) == 0);
        expect_case(c->value, s.struck == c->struck);
    }
    assert_int_equal(process_with("5:descriptors", "0", &s), 0);
    assert_int_equal(s.refused, 3);
}

static void every_kind_that_the_parameter_names_is_known(void **state)
{
    const char *list = strstr(kl_inject_param_set.params[0].doc, "SEED:KIND[@N],... of ");
    char names[128], value[64], *rest = NULL;
    struct outcome s;
    int n = 0;

    (void)state;
    assert_non_null(list);
    snprintf(names, sizeof names, "%s", strstr(list, " of ") + 4);
    for (char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest), n++) {
        snprintf(value, sizeof value, "5:%s", name);
        (void)process_with(value, "0", &s);
        expect_case(name, s.on);
    }
    assert_int_equal(n, KL_INJECT_KINDS);
}

/* Some 60 of 800 calls are late, 1.5 ms each. */
static void calls_are_late(void **state)
{
    struct outcome s;

    (void)state;
    assert_int_equal(process_with("5:delay", "0", &s), 0);
    assert_int_equal(s.struck, 0);
    assert_true(s.took_ns > 20 * 1000000u);
}

static void a_bare_seed_asks_for_all(void **state)
{
    unsigned struck = 0;
    int ended = 0;
    struct outcome s;

    (void)state;
    for (int seed = 0; seed < 12; seed++) {
        char value[16];
        snprintf(value, sizeof value, "%d", seed);
        ended += process_with(value, "0", &s) != 0;
        struck |= s.struck;
    }
    assert_int_equal(struck & ~(1u << KL_INJECT_DROP),
                     1u << KL_INJECT_SHORT | 1u << KL_INJECT_DESCRIPTORS | 1u << KL_INJECT_MEMORY);
    assert_true(ended);
}

static void connections_break_and_processes_end(void **state)
{
    unsigned dropped = 0;
    int killed = 0, stopped = 0;
    char value[32];
    struct outcome s;

    (void)state;
    for (int seed = 0; seed < 12; seed++) {
        snprintf(value, sizeof value, "%d:drop", seed);
        assert_int_equal(process_with(value, "0", &s), 0);
        dropped |= s.struck;
        snprintf(value, sizeof value, "%d:kill", seed);
        int status = process_with(value, "0", &s);
        killed += WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        snprintf(value, sizeof value, "%d:stop", seed);
        stopped += WIFSTOPPED(process_with(value, "0", &s));
    }
    assert_int_equal(dropped, 1u << KL_INJECT_DROP);
    assert_true(killed && stopped);
}

static void one_chance_can_be_chosen(void **state)
{
    struct outcome s;

    (void)state;
    assert_int_equal(process_with("5:memory@7", "0", &s), 0);
    for (int i = 0; i < TURNS; i++) assert_int_equal(s.memory[i], i == 6);
    assert_true(WIFSTOPPED(process_with("5:stop@3", "0", &s)));
    assert_int_equal(process_with("5:stop@0", "0", &s), 0);
    assert_false(s.on);
    assert_int_equal(process_with("5:stop@x", "0", &s), 0);
    assert_false(s.on);
}

static void who_keeps_watch_is_spared(void **state)
{
    struct outcome s;

    (void)state;
    setenv("SPARED", "1", 1);
    assert_int_equal(process_with("5:memory,stop@1", "0", &s), 0);
    unsetenv("SPARED");
    assert_false(s.on);
    assert_int_equal(s.struck, 0);
}

static void a_seed_is_one_story_for_each_rank(void **state)
{
    struct outcome first, again, other;

    (void)state;
    assert_int_equal(process_with("17:memory", "1", &first), 0);
    assert_int_equal(process_with("17:memory", "1", &again), 0);
    assert_int_equal(process_with("17:memory", "2", &other), 0);
    assert_memory_equal(first.memory, again.memory, sizeof first.memory);
    assert_memory_not_equal(first.memory, other.memory, sizeof first.memory);
    assert_int_equal(process_with("18:memory", "1", &other), 0);
    assert_memory_not_equal(first.memory, other.memory, sizeof first.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_asked_for_strikes),
        cmocka_unit_test(every_kind_that_the_parameter_names_is_known),
        cmocka_unit_test(calls_are_late),
        cmocka_unit_test(a_bare_seed_asks_for_all),
        cmocka_unit_test(connections_break_and_processes_end),
        cmocka_unit_test(one_chance_can_be_chosen),
        cmocka_unit_test(who_keeps_watch_is_spared),
        cmocka_unit_test(a_seed_is_one_story_for_each_rank),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
