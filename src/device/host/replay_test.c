/* SPDX-License-Identifier: Apache-2.0 */
#include "device/host/replay.h"

#include "base/error.h"
#include "device/host/event.h"
#include "device/host/refuse.h"
#include "device/host/submit.h"
#include "tests/kolo_test.h"

#include <sched.h>

#define ok(call) assert_int_equal((call), ncclSuccess)

/* A node that is more than work, and may fail when it is launched. */
struct joint {
    ncclResult_t rc;
    int launched, freed;
};

static ncclResult_t check_joint(void *joint)
{
    (void)joint;
    return ncclSuccess;
}

static ncclResult_t launch_joint(void *joint, struct kl_stream *const *lanes)
{
    struct joint *j = joint;

    (void)lanes;
    j->launched++;
    return j->rc ? KL_FAIL(j->rc, "a launch that fails") : ncclSuccess;
}

static bool are_alike(const void *joint, const void *other)
{
    return joint == other;
}

static void free_joint(void *joint)
{
    ((struct joint *)joint)->freed++;
}

static const struct kl_recorded_kind joints = {
    .check = check_joint, .launch = launch_joint, .alike = are_alike, .free = free_joint};

static enum kl_progress await_flag(struct kl_stream *stream, struct kl_work *work)
{
    (void)stream;
    return kl_load_acquire((_Atomic uint32_t *)work->owner) ? KL_DONE : KL_STALLED;
}

static enum kl_progress raise_flag(struct kl_stream *stream, struct kl_work *work)
{
    (void)stream;
    kl_store_release((_Atomic uint32_t *)work->owner, 1);
    return KL_DONE;
}

static struct kl_stream *make_stream(void)
{
    struct kl_stream *s;

    ok(kl_stream_create(KOLO_STREAM_DEFAULT, &s));
    return s;
}

static void order(struct kl_stream *first, struct kl_stream *second)
{
    struct kl_event *e;

    ok(kl_event_create(KOLO_EVENT_DEFAULT, &e));
    ok(kl_event_record(e, first));
    ok(kl_event_order(e, second));
    kl_event_destroy(e);
}

/* Work on a second lane, a joint on the first, which then waits for the second. */
static struct kl_replay *make_replay(struct joint *joint, _Atomic uint32_t *go)
{
    struct kl_work await = {.progress = await_flag, .owner = go};
    struct kl_stream *a = make_stream(), *b = make_stream();
    struct kl_recording *graph;
    struct kl_replay *replay;
    uint32_t lane;

    ok(kl_capture_begin(a, koloCaptureModeGlobal));
    order(a, b);
    ok(kl_submit(b, &await));
    ok(kl_capture_other(&a, 1, &joints, joint, &lane));
    order(b, a);
    ok(kl_capture_end(a, &graph));
    ok(kl_replay_create(graph, &replay));
    kl_recording_drop(graph);
    ok(kl_stream_destroy(a));
    ok(kl_stream_destroy(b));
    return replay;
}

/* Work queued before the failure is part of the stream, on any lane. */
static void a_launch_that_fails_half_way_is_waited_for(void **state)
{
    struct joint joint = {.rc = ncclSystemError};
    _Atomic uint32_t go = 0, behind = 0;
    struct kl_work raise = {.progress = raise_flag, .owner = &behind};
    struct kl_replay *replay = make_replay(&joint, &go);
    struct kl_stream *s = make_stream();

    (void)state;
    assert_int_equal(kl_replay_launch(replay, s), ncclSystemError);
    assert_int_equal(joint.launched, 1);
    kl_stream_push(s, &raise);
    for (int i = 0; i < 20; i++) assert_int_equal(kl_stream_query(s), ncclInProgress);
    assert_int_equal(behind, 0);
    kl_store_release(&go, 1);
    kl_stream_wait(s, kl_stream_tail(s));
    assert_int_equal(behind, 1);
    joint.rc = ncclSuccess;
    ok(kl_replay_launch(replay, s));
    kl_stream_wait(s, kl_stream_tail(s));
    kl_replay_destroy(replay);
    assert_true(joint.launched == 2 && joint.freed == 1);
    ok(kl_stream_destroy(s));
}

/* Streams that have left the capture meanwhile, or belong to another one: no node is added, no data freed. */
static void a_node_is_of_one_capture(void **state)
{
    struct kl_stream *s[2] = {make_stream(), make_stream()};
    struct kl_recording *graph;
    struct joint joint = {0};
    uint32_t lanes[2];

    (void)state;
    for (int both = 0; both < 2; both++) {
        ok(kl_capture_begin(s[1], koloCaptureModeGlobal));
        if (both) ok(kl_capture_begin(s[0], koloCaptureModeGlobal));
        assert_false(kl_capture_same(s[0], s[1]));
        assert_int_equal(kl_capture_other(s, 2, &joints, &joint, lanes), ncclInvalidUsage);
        assert_int_equal(kl_refuse_reason(), koloReasonCaptureMerge);
        for (int i = !both; i < 2; i++) {
            ok(kl_capture_end(s[i], &graph));
            assert_int_equal(graph->n, 0);
            kl_recording_drop(graph);
        }
    }
    assert_true(kl_capture_same(s[0], s[1]));
    assert_int_equal(kl_capture_check(s[0]), ncclInvalidUsage);
    assert_int_equal(joint.freed, 0);
    for (int i = 0; i < 2; i++) ok(kl_stream_destroy(s[i]));
}

/* After it has run all its streams are at that point: the first need not wait for the others once more. */
static void a_node_on_several_streams_joins_them(void **state)
{
    enum { LANES = 3 };
    struct kl_stream *s[LANES] = {make_stream(), make_stream(), make_stream()};
    struct kl_recording *graph;
    struct joint joint = {0};
    uint32_t lanes[LANES];

    (void)state;
    ok(kl_capture_begin(s[0], koloCaptureModeGlobal));
    for (int i = 1; i < LANES; i++) order(s[0], s[i]);
    ok(kl_capture_other(s, LANES, &joints, &joint, lanes));
    for (uint32_t i = 0; i < LANES; i++) assert_int_equal(lanes[i], i);
    ok(kl_capture_end(s[0], &graph));
    assert_int_equal(graph->node[0].lane, LANES - 1);
    kl_recording_drop(graph);
    assert_int_equal(joint.freed, 1);
    for (int i = 0; i < LANES; i++) ok(kl_stream_destroy(s[i]));
}

/* ---- many replays destroyed before they have run ---- */

static struct {
    _Atomic uint32_t inside, most, freed;
} frees;

/* As a release that takes a while. */
static void free_slowly(void *unused)
{
    uint32_t inside = 1 + kl_fetch_add_relaxed(&frees.inside, 1);

    (void)unused;
    if (inside > kl_load_relaxed(&frees.most)) kl_store_relaxed(&frees.most, inside);
    for (int i = 0; i < 100 && kl_load_relaxed(&frees.inside) == 1; i++) sched_yield();
    kl_fetch_sub_acq_rel(&frees.inside, 1);
    kl_fetch_add_relaxed(&frees.freed, 1);
}

static struct kl_replay *make_kept_replay(_Atomic uint32_t *go)
{
    struct kl_work await = {.progress = await_flag, .owner = go};
    struct kl_stream *s = make_stream();
    struct kl_recording *graph;
    struct kl_replay *replay;

    ok(kl_capture_begin(s, koloCaptureModeGlobal));
    ok(kl_submit(s, &await));
    ok(kl_capture_end(s, &graph));
    ok(kl_recording_keep(graph, free_slowly, go));
    ok(kl_replay_create(graph, &replay));
    kl_recording_drop(graph);
    ok(kl_stream_destroy(s));
    return replay;
}

/* Objects kept with them are released by one thread, for any number of graphs. */
static void graphs_that_are_destroyed_early_take_one_thread(void **state)
{
    enum { GRAPHS = 300 };
    _Atomic uint32_t go = 0;
    struct kl_stream *s = make_stream();

    (void)state;
    for (int i = 0; i < GRAPHS; i++) {
        struct kl_replay *replay = make_kept_replay(&go);
        ok(kl_replay_launch(replay, s));
        kl_replay_destroy(replay);
    }
    assert_int_equal(kl_load_relaxed(&frees.freed), 0);
    kl_store_release(&go, 1);
    kl_stream_wait(s, kl_stream_tail(s));
    while (kl_load_relaxed(&frees.freed) < GRAPHS) sched_yield();
    assert_int_equal(kl_load_relaxed(&frees.most), 1);
    ok(kl_stream_destroy(s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_that_fails_half_way_is_waited_for),
        cmocka_unit_test(a_node_is_of_one_capture),
        cmocka_unit_test(a_node_on_several_streams_joins_them),
        cmocka_unit_test(graphs_that_are_destroyed_early_take_one_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
