/* SPDX-License-Identifier: Apache-2.0 */
/*
 * on_gpus_cases.c - suites of the interface on GPUs: the cases that say nothing about GPUs, each with its reason, are
 * skipped and counted. A suite's main calls cmocka's function; the linker gives it this one (-Wl,--wrap).
 */
#include "tests/kolo_test.h"
#include "tests/on_gpus.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define ALONE                                                                                                          \
    "one thread calls for one rank after the other: on GPUs a call outside of a group waits for the other ranks"
#define HOST_STREAMS "it is about streams of host devices"
#define HOST_MEMORY  "it is about memory of host devices"
#define CAPTURES     "ranks of one process have a graph each, which is refused on GPUs"
#define HOST_GRAPHS  "it is about graphs of host devices: CUDA's know no communicators"
#define WINDOWS      "communicators on GPUs have no windows"
#define HOST_ENGINE  "it is about the engine of host devices"
#define IN_THE_CALL  "on GPUs the call itself reports it, not the stream: gpu_errors_test"

static const struct {
    const char *suite, *name, *reason;
    bool shared; /* it applies to ranks that share a GPU */
} left_out[] = {
    {"api", "streams_and_devices_are_checked", HOST_STREAMS, false},
    {"api", "one_thread_drives_all_ranks", ALONE, false},
    {"api", "operations_on_many_streams_keep_their_order", ALONE, false},
    {"api", "a_failure_is_reported_by_every_stream_of_a_group", ALONE, false},
    {"api", "a_failure_stays_as_long_as_its_communicator", ALONE, false},
    {"api", "a_stream_works_again_after_its_failed_communicator", ALONE, false},
    {"api", "an_abort_does_not_wait_for_another_communicator", ALONE, false},
    {"api", "inline_streams_are_done_when_the_group_ends", HOST_STREAMS, false},
    {"api", "queries_and_events_follow_the_work", ALONE, false},
    {"api", "memory_and_devices", HOST_MEMORY, false},
    {"api", "memory_is_freed_once_and_by_either_name", HOST_MEMORY, false},
    {"api", "ranks_of_a_thread_that_chose_no_device_get_one_each_every_time",
     "a thread that chose no device uses device 0, as in CUDA", false},
    {"api_breaks", "revoked_ones_have_children_and_nothing_else", ALONE, false},
    {"api_breaks", "a_suspended_one_holds_no_connections", HOST_ENGINE, false},
    {"api_call_config", "the_selection_decides", HOST_ENGINE, false},
    {"api_call_config", "ranks_that_differ_are_told_apart", IN_THE_CALL, false},
    {"api_call_config", "a_communicator_may_do_without_nvls", HOST_ENGINE, false},
    {"api_children", "survivors_of_a_death_go_on_together",
     "it forks; CUDA does not work in a child: gpu_processes_test", false},
    {"api_children", "shrinking_may_give_up_what_is_under_way", ALONE, false},
    {"api_nonblocking", "one_whose_end_fails_can_be_destroyed_at_once", ALONE, false},
    {"api_operations", "copies_beyond_the_address_space_are_refused", HOST_STREAMS, false},
    {"api_operations", "a_barrier_waits_for_everybody", ALONE, false},
    {"api_operations", "different_operators_are_found_out", IN_THE_CALL, false},
    {"api_operations", "a_stream_that_is_destroyed_in_a_group_fails_the_group", HOST_STREAMS, false},
    {"api_operations", "a_simulated_group_takes_time_and_does_nothing",
     "operations of GPUs have no plan, so no estimate of their time", false},
    {"api_operations", "buffers_are_registered_until_they_are_not", HOST_MEMORY, false},
    {"api_operations", "windows_are_of_all_ranks", WINDOWS, false},
    {"api_places", "calls_that_take_long_are_queued", WINDOWS, false},
    {"api_places", "every_operation_on_one_stream", "a stream is of one GPU", true},
    {"api_questions", "a_communicator_says_what_it_can_do", WINDOWS, false},
    {"api_questions", "a_window_says_where_its_memory_is", WINDOWS, false},
    {"comm_end", "an_abort_ends_a_finalize_and_a_destroy", ALONE, false},
    {"comm_end", "an_abort_ends_a_destroy_behind_another_communicator", ALONE, false},
    {"graph_collectives", "each_rank_replays_its_collectives", CAPTURES, false},
    {"graph_collectives", "one_graph_has_all_ranks_without_a_group", ALONE, false},
    {"graph_collectives", "a_group_joins_streams", CAPTURES, false},
    {"graph_collectives", "a_graph_keeps_the_operator_that_it_was_captured_with", CAPTURES, false},
    {"graph_collectives", "a_graph_outlives_its_communicator", HOST_GRAPHS, false},
    {"graph_collectives", "a_group_with_a_communicator_for_no_graphs_is_refused", HOST_GRAPHS, false},
    {"graph_collectives", "an_empty_collective_counts_when_it_is_launched", CAPTURES, false},
    {"graph_collectives", "an_update_keeps_function_and_communicator", HOST_GRAPHS, false},
    {"nccl_cuda", "copies_around_a_collective_do_not_wait", ALONE, false},
    {"nccl_cuda", "one_thread_captures_all_devices", CAPTURES, false},
};

enum { ENTRIES = sizeof left_out / sizeof left_out[0] };

/* The program is SUITE_on_gpus. */
static bool is_of_suite(size_t entry)
{
    const size_t n = strlen(left_out[entry].suite);

    return !strncmp(program_invocation_short_name, left_out[entry].suite, n) &&
           !strcmp(program_invocation_short_name + n, "_on_gpus");
}

static bool ranks_share_one(void)
{
    const char *gpus = getenv("TEST_GPUS");

    return gpus && !strcmp(gpus, "1");
}

static const char *reason_of(const char *name)
{
    for (size_t i = 0; i < ENTRIES; i++)
        if (is_of_suite(i) && !strcmp(left_out[i].name, name) && !(left_out[i].shared && ranks_share_one()))
            return left_out[i].reason;
    return NULL;
}

/* An entry without its case would hide that the case has another name now. */
static bool all_exist(const struct CMUnitTest *tests, size_t n)
{
    bool all = true;

    for (size_t i = 0; i < ENTRIES; i++) {
        size_t at = 0;
        while (at < n && strcmp(tests[at].name, left_out[i].name) != 0) at++;
        if (at < n || !is_of_suite(i)) continue;
        print_error("on_gpus_cases.c: %s has no case %s\n", left_out[i].suite, left_out[i].name);
        all = false;
    }
    return all;
}

static void leave_out(void **reason)
{
    print_message("does not apply: %s\n", (const char *)*reason);
    skip();
}

__attribute__((weak)) void on_gpus_begin(void)
{
} /* a program of CUDA's own memory */

int __real__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown);
int __wrap__cmocka_run_group_tests(const char *group, const struct CMUnitTest *tests, size_t n, CMFixtureFunction setup,
                                   CMFixtureFunction teardown)
{
    struct CMUnitTest *own = calloc(n, sizeof *own);
    size_t skipped = 0;

    if (!own || !all_exist(tests, n)) return 1;
    on_gpus_begin();
    for (size_t i = 0; i < n; i++) {
        const char *reason = reason_of(tests[i].name);
        own[i] = tests[i];
        if (!reason) continue;
        own[i] = (struct CMUnitTest){
            .name = tests[i].name, .test_func = leave_out, .initial_state = (void *)(uintptr_t)reason};
        skipped++;
    }
    print_message("%s: %zu cases, %zu of which do not apply to GPUs\n", program_invocation_short_name, n, skipped);
    int failed = __real__cmocka_run_group_tests(group, own, n, setup, teardown);
    free(own);
    return failed;
}
