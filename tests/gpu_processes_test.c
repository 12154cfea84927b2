/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_processes_test.c - two processes with a rank each on one GPU, of which one is killed, aborts, differs, comes late, or has
 * no GPU: the other gets one clear sentence that names it, and no stream waits for ever. And graphs of both, which are
 * replayed. The second process is this program again, with the name of its part. With the argument "hosts" they are on two
 * emulated hosts, where calls do not wait for other processes.
 */
#include "comm/comm.h"

#include "bootstrap/bootstrap.h"
#include "coll/gpu/far.h"
#include "comm/handle.h"
#include "device/cuda/context.h"
#include "device/device.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/gpu_graphs.h"
#include "tests/gpu_memory.h"
#include "tests/hang.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { COUNT = 1000, BYTES = 1 << 20 };

static const struct kl_cuda_driver *cu;
static bool between_hosts;

struct side {
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    uint64_t memory, word; /* of the GPU */
};

/* TEST_GPUS: the ranks' GPUs, 1 or 2. */
static int gpus(void)
{
    const char *text = getenv("TEST_GPUS");

    return text ? atoi(text) : 1;
}

static int own_device; /* the current one */

static void *at(const struct side *s, size_t bytes)
{
    return (void *)(uintptr_t)(s->memory + bytes);
}

static ncclResult_t join(struct side *s, const ncclUniqueId *id, int rank)
{
    memset(s, 0, sizeof *s);
    own_device = rank % gpus();
    if (kl_cuda_driver(&cu) || kl_cuda_context_of(own_device, NULL, 0, &s->context) || kl_cuda_enter(s->context))
        return ncclCommInitRank(&s->comm, 2, *id, rank); /* it says why */
    if (cu->cuMemAlloc(&s->memory, BYTES) || cu->cuMemAlloc(&s->word, 4)) return ncclSystemError;
    return ncclCommInitRank(&s->comm, 2, *id, rank);
}

static void leave(struct side *s, bool failed)
{
    if (s->comm) assert_int_equal(failed ? ncclCommAbort(s->comm) : ncclCommDestroy(s->comm), ncclSuccess);
    assert_int_equal(cu->cuMemFree(s->memory) | cu->cuMemFree(s->word), 0);
    kl_cuda_leave(s->context);
}

static ncclResult_t reduce(struct side *s, size_t count)
{
    return ncclAllReduce(at(s, 0), at(s, BYTES / 2), count, ncclFloat, ncclSum, s->comm, NULL);
}

/* Of a call that returned `rc`: the failure may be found when the operation runs. */
static ncclResult_t outcome(struct side *s, ncclResult_t rc)
{
    if (rc || cu->cuStreamSynchronize(NULL)) return rc ? rc : ncclUnhandledCudaError;
    (void)ncclCommGetAsyncError(s->comm, &rc);
    return rc;
}

/* ---- graphs ---- */

enum { REPLAYS = 5 };

static void set(const struct side *s, float value)
{
    float data[COUNT];

    for (int i = 0; i < COUNT; i++) data[i] = value;
    if (cu->cuMemcpyAsync(s->memory, (uint64_t)(uintptr_t)data, sizeof data, NULL) || cu->cuStreamSynchronize(NULL))
        exit(3);
}

static bool is_set(const struct side *s, size_t from, float value)
{
    float data[COUNT];

    if (cu->cuMemcpyAsync((uint64_t)(uintptr_t)data, s->memory + from, sizeof data, NULL) ||
        cu->cuStreamSynchronize(NULL))
        exit(3);
    for (int i = 0; i < COUNT; i++)
        if (data[i] != value) {
            fprintf(stderr, "element %d is %g, not %g\n", i, (double)data[i], (double)value);
            return false;
        }
    return true;
}

static ncclResult_t exchange(struct side *s, int rank, size_t from, size_t to, kl_cu_stream stream)
{
    ncclGroupStart();
    ncclSend(at(s, from), COUNT, ncclFloat, 1 - rank, s->comm, stream);
    ncclRecv(at(s, to), COUNT, ncclFloat, 1 - rank, s->comm, stream);
    return ncclGroupEnd();
}

/* Two collectives and messages, of which each uses the results of the one before. */
static void *capture(const struct gpu_graphs *graphs, struct side *s, int rank, kl_cu_stream stream)
{
    const size_t step = COUNT * sizeof(float);

    if (graphs->begin(stream, 0)) return NULL;
    ncclResult_t rc = ncclAllReduce(at(s, 0), at(s, step), COUNT, ncclFloat, ncclSum, s->comm, stream);
    if (!rc) rc = ncclBroadcast(at(s, step), at(s, 2 * step), COUNT, ncclFloat, 1, s->comm, stream);
    if (!rc) rc = exchange(s, rank, 2 * step, 3 * step, stream);
    if (rc) fprintf(stderr, "rank %d captures: %s\n", rank, ncclGetLastError(s->comm));
    return gpu_graphs_finish(graphs, stream);
}

/* Other operations come in between, and the replays of the two processes meet only on the GPU. */
static int replay(struct side *s, int rank)
{
    struct gpu_graphs graphs;
    kl_cu_stream stream;
    bool right = true;

    gpu_graphs_find(&graphs);
    if (reduce(s, COUNT) || cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0)) return 1;
    void *executable = capture(&graphs, s, rank, stream);
    if (!executable) return 1;
    for (int i = 0; i < REPLAYS && right; i++) {
        set(s, (float)(i + rank));
        if (graphs.launch(executable, stream) || cu->cuStreamSynchronize(stream)) return 1;
        right = is_set(s, 3 * COUNT * sizeof(float), (float)(2 * i + 1));
        if (i % 2 && (exchange(s, rank, 0, BYTES / 2, NULL) || cu->cuStreamSynchronize(NULL))) return 1;
    }
    for (int i = 0; i < REPLAYS; i++)
        if (graphs.launch(executable, stream)) return 1;
    if (cu->cuStreamSynchronize(stream) || graphs.destroy(executable) || cu->cuStreamDestroy(stream)) return 1;
    return !right;
}

/* ---- memory that other processes cannot map ---- */

enum { LARGE = 100000, STREAMS = 2, ROUNDS = 12 };

/* Operations of growing sizes, alternately on two streams without synchronisation, and two messages in a group. */
struct staged {
    struct gpu_memory send[ROUNDS], recv[ROUNDS], mail[2], box[2];
    kl_cu_stream stream[STREAMS];
};

static size_t round_count(int i)
{
    return LARGE / ROUNDS * (size_t)(i + 1);
}

static void fill_floats(const struct gpu_memory *m, size_t count, float value)
{
    float *data = malloc(count * sizeof *data);

    for (size_t i = 0; data && i < count; i++) data[i] = value + (float)(i % 128);
    if (!data || cu->cuMemcpyAsync(m->at, (uint64_t)(uintptr_t)data, count * sizeof *data, NULL) ||
        cu->cuStreamSynchronize(NULL))
        exit(3);
    free(data);
}

static bool has_floats(const struct gpu_memory *m, size_t count, float value, float step)
{
    float *data = malloc(count * sizeof *data);
    size_t i = 0;

    if (!data || cu->cuMemcpyAsync((uint64_t)(uintptr_t)data, m->at, count * sizeof *data, NULL) ||
        cu->cuStreamSynchronize(NULL))
        exit(3);
    while (i < count && data[i] == value + step * (float)(i % 128)) i++;
    if (i < count)
        fprintf(stderr, "%s memory: element %zu of %zu is %g\n", gpu_memory_names[m->kind], i, count, (double)data[i]);
    free(data);
    return i == count;
}

static bool allocate_staged(struct staged *t)
{
    int rc = 0;

    for (int i = 0; i < ROUNDS; i++) {
        const enum gpu_memory_kind kind = (enum gpu_memory_kind)(1 + i % (GPU_MEMORY_KINDS - 1));
        rc |= gpu_memory_alloc(cu, &t->send[i], kind, own_device, LARGE * sizeof(float));
        rc |= gpu_memory_alloc(cu, &t->recv[i], kind, own_device, LARGE * sizeof(float));
    }
    for (int i = 0; i < 2; i++) {
        rc |= gpu_memory_alloc(cu, &t->mail[i], GPU_PINNED, own_device, LARGE * sizeof(float));
        rc |= gpu_memory_alloc(cu, &t->box[i], GPU_POOL, own_device, LARGE * sizeof(float));
        rc |= cu->cuStreamCreateWithPriority(&t->stream[i], KL_CU_STREAM_NON_BLOCKING, 0);
    }
    return !rc;
}

static bool free_staged(struct staged *t)
{
    int rc = 0;

    for (int i = 0; i < ROUNDS; i++) rc |= gpu_memory_free(cu, &t->send[i]) | gpu_memory_free(cu, &t->recv[i]);
    for (int i = 0; i < 2; i++)
        rc |= gpu_memory_free(cu, &t->mail[i]) | gpu_memory_free(cu, &t->box[i]) | cu->cuStreamDestroy(t->stream[i]);
    return !rc;
}

static void *memory(const struct gpu_memory *m)
{
    return (void *)(uintptr_t)m->at;
}

static ncclResult_t exchange_staged(struct side *s, const struct staged *t, int rank)
{
    ncclGroupStart();
    for (int i = 0; i < 2; i++) {
        ncclSend(memory(&t->mail[i]), LARGE, ncclFloat, 1 - rank, s->comm, t->stream[i]);
        ncclRecv(memory(&t->box[i]), LARGE, ncclFloat, 1 - rank, s->comm, t->stream[i]);
    }
    return ncclGroupEnd();
}

static ncclResult_t issue_staged(struct side *s, const struct staged *t, int rank)
{
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < ROUNDS && !rc; i++) {
        rc = ncclAllReduce(memory(&t->send[i]), memory(&t->recv[i]), round_count(i), ncclFloat, ncclSum, s->comm,
                           t->stream[i % STREAMS]);
        if (!rc && i % 4 == 1) rc = exchange_staged(s, t, rank);
    }
    return rc;
}

static bool has_staged_results(const struct staged *t, int rank)
{
    bool right = true;

    for (int i = 0; i < ROUNDS; i++) right &= has_floats(&t->recv[i], round_count(i), (float)(2 * i + 1), 2);
    for (int i = 0; i < 2; i++) right &= has_floats(&t->box[i], LARGE, (float)(10 * (1 - rank) + i), 1);
    return right;
}

static int stage(struct side *s, int rank)
{
    struct staged t;

    if (!allocate_staged(&t)) return 1;
    for (int i = 0; i < ROUNDS; i++) fill_floats(&t.send[i], LARGE, (float)(i + rank));
    for (int i = 0; i < 2; i++) fill_floats(&t.mail[i], LARGE, (float)(10 * rank + i));
    ncclResult_t rc = issue_staged(s, &t, rank);
    if (rc) fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(s->comm));
    for (int i = 0; i < STREAMS; i++)
        if (cu->cuStreamSynchronize(t.stream[i])) return 1;
    return rc || !has_staged_results(&t, rank) || !free_staged(&t);
}

/* ---- large messages ---- */

enum { HUGE = 5000000 };

/* Two of a group in each direction, of 20 MB. */
static int send_large(struct side *s, int rank)
{
    struct gpu_memory mail[2], box[2];
    bool right = true;
    ncclResult_t rc = ncclSuccess;

    for (int i = 0; i < 2; i++) {
        if (gpu_memory_alloc(cu, &mail[i], GPU_DEVICE, own_device, HUGE * sizeof(float)) ||
            gpu_memory_alloc(cu, &box[i], GPU_DEVICE, own_device, HUGE * sizeof(float)))
            return 1;
        fill_floats(&mail[i], HUGE, (float)(2 * rank + i));
    }
    for (int round = 0; round < 2 && !rc; round++) {
        ncclGroupStart();
        for (int i = 0; i < 2; i++) {
            ncclSend(memory(&mail[i]), HUGE, ncclFloat, 1 - rank, s->comm, NULL);
            ncclRecv(memory(&box[i]), HUGE, ncclFloat, 1 - rank, s->comm, NULL);
        }
        rc = ncclGroupEnd();
    }
    if (rc) fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(s->comm));
    for (int i = 0; i < 2; i++) right &= !rc && has_floats(&box[i], HUGE, (float)(2 * (1 - rank) + i), 1);
    for (int i = 0; i < 2; i++) right &= !gpu_memory_free(cu, &mail[i]) && !gpu_memory_free(cu, &box[i]);
    return !right;
}

/* ---- the second process ---- */

static int good(struct side *s)
{
    return reduce(s, COUNT) || cu->cuStreamSynchronize(NULL);
}

/* Its stream never comes to the operation, for which the other's stream waits. */
static int die_with_work_in_flight(struct side *s)
{
    if (good(s) || cu->cuStreamWaitValue32(NULL, s->word, 1, KL_CU_WAIT_EQUAL) || reduce(s, COUNT)) return 1;
    return raise(SIGKILL);
}

static int die_between_calls(struct side *s)
{
    return good(s) ? 1 : raise(SIGKILL);
}

/* Until the parent kills it. */
static int stay(struct side *s)
{
    return good(s) ? 1 : pause();
}

static int abort_between_calls(struct side *s)
{
    return good(s) || ncclCommAbort(s->comm);
}

static int differ(struct side *s)
{
    ncclResult_t rc = outcome(s, reduce(s, COUNT + 1));

    return ncclCommAbort(s->comm) || rc != ncclInvalidUsage;
}

static int differ_in_a_message(struct side *s)
{
    ncclResult_t rc = outcome(s, ncclSend(at(s, 0), COUNT, ncclFloat, 0, s->comm, NULL));

    while (!rc) rc = outcome(s, reduce(s, COUNT)); /* between hosts, the receiver finds it */
    return ncclCommAbort(s->comm) || rc == ncclSuccess;
}

/* Memory is freed and given out again between operations. */
static int free_and_allocate(struct side *s)
{
    for (int i = 0; i < 6; i++) {
        if (cu->cuMemFree(s->memory) || cu->cuMemAlloc(&s->memory, (size_t)BYTES << i % 3)) return 1;
        set(s, (float)i);
        if (good(s)) return 1;
    }
    return ncclCommDestroy(s->comm);
}

static int replay_and_leave(struct side *s)
{
    return replay(s, 1) || ncclCommDestroy(s->comm);
}

static int stage_and_leave(struct side *s)
{
    return stage(s, 1) || ncclCommDestroy(s->comm);
}

static int send_large_and_leave(struct side *s)
{
    return send_large(s, 1) || ncclCommDestroy(s->comm);
}

/* Its graph is launched, but never gets to the operation. */
static int die_in_a_graph(struct side *s)
{
    struct gpu_graphs graphs;
    kl_cu_stream stream;

    gpu_graphs_find(&graphs);
    if (reduce(s, COUNT) || cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0)) return 1;
    return capture(&graphs, s, 1, stream) ? pause() : 1; /* until the parent kills it */
}

static int capture_alone(struct side *s)
{
    ncclResult_t rc = reduce(s, COUNT);

    return ncclCommAbort(s->comm) || rc != ncclInvalidUsage;
}

static int never(struct kl_cu_ipc_handle *handle, uint64_t ptr)
{
    (void)handle;
    (void)ptr;
    return pause();
}

/* Its call is there; then it does not give others the memory for schedules, until the parent kills it. */
static int stop_before_memory(struct side *s)
{
    ((struct kl_cuda_driver *)(uintptr_t)cu)->cuIpcGetMemHandle = never;
    return reduce(s, COUNT) != ncclSuccess;
}

static const struct part {
    const char *name;
    int (*play)(struct side *s);
} parts[] = {
    {"in-flight", die_with_work_in_flight},
    {"between", die_between_calls},
    {"stays", stay},
    {"aborts", abort_between_calls},
    {"differs", differ},
    {"message", differ_in_a_message},
    {"frees", free_and_allocate},
    {"lacks", NULL},
    {"stages", stage_and_leave},
    {"replays", replay_and_leave},
    {"large", send_large_and_leave},
    {"dies-in-graph", die_in_a_graph},
    {"not-captured", capture_alone},
    {"stops", stop_before_memory},
};

static int play(const char *name, const char *hex)
{
    struct side s;
    ncclUniqueId id;

    if (kl_bootstrap_id_parse(hex, &id)) return 1;
    ncclResult_t rc = join(&s, &id, 1);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strcmp(parts[i].name, name)) {
            if (!parts[i].play) return rc == ncclSuccess || !strstr(ncclGetLastError(NULL), "rank 1");
            return rc ? 1 : parts[i].play(&s);
        }
    return 1;
}

/* ---- the first process ---- */

static pid_t start(const char *part, const ncclUniqueId *id)
{
    char hex[2 * NCCL_UNIQUE_ID_BYTES + 1];
    pid_t child = fork();

    if (child) return child;
    kl_bootstrap_id_format(id, hex);
    if (between_hosts) setenv("NCCL_HOSTID", "second", 1);
    if (!strcmp(part, "lacks")) setenv("CUDA_VISIBLE_DEVICES", "", 1);
    execl("/proc/self/exe", "gpu_processes_test", part, hex, (char *)NULL);
    _exit(99);
}

static void end(pid_t child, bool killed)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    if (killed)
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    else
        assert_int_equal(status, 0);
}

static pid_t begin(struct side *s, const char *part)
{
    ncclUniqueId id;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    pid_t child = start(part, &id);
    if (join(s, &id, 0)) fail_msg("%s", ncclGetLastError(NULL));
    return child;
}

static void expect_text(ncclComm_t comm, const char *text)
{
    if (!strstr(ncclGetLastError(comm), text)) fail_msg("no \"%s\" in: %s", text, ncclGetLastError(comm));
}

/* Operations go on until the failure is known; then the next call names rank 1. */
static void expect_failure(struct side *s)
{
    ncclResult_t rc = ncclSuccess;

    while (!rc) rc = reduce(s, COUNT);
    expect_text(s->comm, "rank 1");
    assert_int_equal(cu->cuStreamSynchronize(NULL), 0);
}

static void a_killed_process_is_named(void **state)
{
    struct side s;
    pid_t child = begin(&s, "between");

    (void)state;
    assert_int_equal(good(&s), 0);
    expect_failure(&s);
    leave(&s, true);
    end(child, true);
}

static void streams_do_not_wait_for_a_killed_process(void **state)
{
    struct side s;
    pid_t child = begin(&s, "in-flight");

    (void)state;
    assert_int_equal(good(&s), 0);
    const ncclResult_t rc = reduce(&s, COUNT);
    assert_true(rc == ncclSuccess || rc == ncclRemoteError); /* the death may be known before */
    assert_int_equal(cu->cuStreamSynchronize(NULL), 0);      /* ends when it is */
    expect_failure(&s);
    leave(&s, true);
    end(child, true);
}

/* Has the other process published its next call? */
static bool has_come(const struct side *s)
{
    ncclComm_t comm = kl_handle_try(s->comm);
    struct kl_gpu_team *team = comm->shared->team;

    pthread_mutex_lock(&team->lock);
    const bool come = kl_gpu_far_has_come(team, 1);
    pthread_mutex_unlock(&team->lock);
    kl_handle_leave(comm);
    return come;
}

static void a_process_without_memory_for_schedules_is_named(void **state)
{
    const char *mover = getenv("KOLO_CUDA_MOVER");
    ncclUniqueId id;
    struct side s;

    (void)state;
    if (!mover || strcmp(mover, "schedule") != 0 || gpus() != 2) skip();
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    pid_t child = start("stops", &id);
    setenv("KOLO_TIMEOUT", "1", 1); /* of this process alone */
    assert_int_equal(join(&s, &id, 0), ncclSuccess);
    unsetenv("KOLO_TIMEOUT");
    while (!has_come(&s)) sched_yield();
    assert_int_equal(outcome(&s, reduce(&s, COUNT)), ncclSystemError);
    expect_text(s.comm, "AllReduce of rank 0 has waited KOLO_TIMEOUT for the memory for schedules of rank 1");
    kill(child, SIGKILL);
    leave(&s, true);
    end(child, true);
}

static void an_abort_is_named(void **state)
{
    struct side s;
    pid_t child = begin(&s, "aborts");

    (void)state;
    assert_int_equal(good(&s), 0);
    expect_failure(&s);
    leave(&s, true);
    end(child, false);
}

static void different_calls_are_named(void **state)
{
    struct side s;
    pid_t child = begin(&s, "differs");

    (void)state;
    assert_int_equal(outcome(&s, reduce(&s, COUNT)), ncclInvalidUsage);
    expect_text(s.comm, "rank 1 called AllReduce(1001 elements) as #1");
    leave(&s, true);
    end(child, false);
}

static void different_messages_are_named(void **state)
{
    struct side s;
    pid_t child = begin(&s, "message");

    (void)state;
    assert_int_equal(outcome(&s, ncclRecv(at(&s, 0), COUNT / 2, ncclFloat, 1, s.comm, NULL)), ncclInvalidUsage);
    expect_text(s.comm, "rank 1 sends 1000 float");
    leave(&s, true);
    end(child, false);
}

static void memory_may_be_freed_between_operations(void **state)
{
    struct side s;
    pid_t child = begin(&s, "frees");

    (void)state;
    for (int i = 0; i < 6; i++) {
        set(&s, 10);
        assert_int_equal(good(&s), 0);
        assert_true(is_set(&s, BYTES / 2, (float)(10 + i)));
    }
    leave(&s, false);
    end(child, false);
}

static void memory_that_cannot_be_shared_is_refused(void **state)
{
    struct side s;
    pid_t child = begin(&s, "stays");
    uint64_t base;
    size_t bytes = 0;

    (void)state;
    assert_int_equal(good(&s), 0);
    assert_int_equal(cu->cuMemGetAddressRange(&base, &bytes, s.memory), 0);
    const ncclResult_t rc =
        ncclAllReduce((void *)(uintptr_t)(s.memory + bytes - 8), at(&s, 0), COUNT, ncclFloat, ncclSum, s.comm, NULL);
    assert_int_equal(rc, ncclInvalidArgument);
    expect_text(s.comm, "the allocation ends");
    assert_int_equal(kill(child, SIGKILL), 0);
    expect_failure(&s);
    leave(&s, true);
    end(child, true);
}

static bool file_has(const char *path, const char *text)
{
    FILE *f = fopen(path, "r");
    char line[4096];
    bool has = false;

    while (f && fgets(line, sizeof line, f)) has |= strstr(line, text) != NULL;
    if (f) fclose(f);
    return has;
}

/* Pools, managed memory, pinned memory and memory of cuMemCreate. The flight record says so. */
static void memory_that_cannot_be_mapped_is_staged(void **state)
{
    char record[64];
    struct side s;

    (void)state;
    snprintf(record, sizeof record, "/tmp/kolo-gpu-record-%d.0", (int)getpid());
    pid_t child = begin(&s, "stages");
    assert_int_equal(stage(&s, 0), 0);
    assert_int_equal(koloFlightRecorder(s.comm, "/tmp/kolo-gpu-record-%p.%r"), ncclSuccess);
    leave(&s, false);
    end(child, false);
    if (between_hosts) {
        unlink(record);
        return;
    }
    /* Rank 0 works for both, so only its messages are staged. */
    if (!file_has(record, "\"way\": \"staged\"")) fail_msg("%s says of no operation that it was staged", record);
    if (gpus() == 1 && !file_has(record, "\"way\": \"direct\""))
        fail_msg("%s says of no operation that it was not staged", record);
    unlink(record);
}

static void large_messages_arrive(void **state)
{
    struct side s;
    pid_t child = begin(&s, "large");

    (void)state;
    assert_int_equal(send_large(&s, 0), 0);
    leave(&s, false);
    end(child, false);
}

static void captured_operations_are_replayed(void **state)
{
    struct side s;
    pid_t child = begin(&s, "replays");

    (void)state;
    assert_int_equal(replay(&s, 0), 0);
    leave(&s, false);
    end(child, false);
}

static void graphs_do_not_wait_for_a_killed_process(void **state)
{
    struct gpu_graphs graphs;
    kl_cu_stream stream;
    struct side s;
    pid_t child = begin(&s, "dies-in-graph");

    (void)state;
    gpu_graphs_find(&graphs);
    assert_int_equal(reduce(&s, COUNT), ncclSuccess);
    assert_int_equal(cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
    void *executable = capture(&graphs, &s, 0, stream);
    assert_non_null(executable);
    for (int i = 0; i < REPLAYS; i++) assert_int_equal(graphs.launch(executable, stream), 0);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(cu->cuStreamSynchronize(stream), 0); /* ends when the death is known */
    expect_failure(&s);
    assert_int_equal(graphs.launch(executable, stream) | cu->cuStreamSynchronize(stream), 0);
    assert_int_equal(graphs.destroy(executable) | cu->cuStreamDestroy(stream), 0);
    leave(&s, true);
    end(child, true);
}

static void a_capture_of_one_process_is_named(void **state)
{
    struct gpu_graphs graphs;
    kl_cu_stream stream;
    void *graph;
    struct side s;
    pid_t child = begin(&s, "not-captured");

    (void)state;
    gpu_graphs_find(&graphs);
    assert_int_equal(cu->cuStreamCreateWithPriority(&stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
    assert_int_equal(graphs.begin(stream, 0), 0);
    assert_int_equal(ncclAllReduce(at(&s, 0), at(&s, BYTES / 2), COUNT, ncclFloat, ncclSum, s.comm, stream),
                     ncclInvalidUsage);
    expect_text(s.comm, "of ranks 0 and 1, one captures the operation into a graph, and one does not");
    (void)graphs.end(stream, &graph);
    assert_int_equal(cu->cuStreamDestroy(stream), 0);
    leave(&s, true);
    end(child, false);
}

/* Both inits end, with the sentence of the rank that has no GPU. */
static void a_rank_without_its_gpu_is_named(void **state)
{
    struct side s;
    ncclUniqueId id;

    (void)state;
    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    pid_t child = start("lacks", &id);
    assert_int_not_equal(join(&s, &id, 0), ncclSuccess);
    expect_text(NULL, "rank 1 (host ");
    expect_text(NULL, "CUDA");
    assert_int_equal(cu->cuMemFree(s.memory) | cu->cuMemFree(s.word), 0);
    kl_cuda_leave(s.context);
    end(child, false);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rank_without_its_gpu_is_named),
        cmocka_unit_test(a_killed_process_is_named),
        cmocka_unit_test(streams_do_not_wait_for_a_killed_process),
        cmocka_unit_test(a_process_without_memory_for_schedules_is_named),
        cmocka_unit_test(an_abort_is_named),
        cmocka_unit_test(different_calls_are_named),
        cmocka_unit_test(different_messages_are_named),
        cmocka_unit_test(memory_may_be_freed_between_operations),
        cmocka_unit_test(memory_that_cannot_be_shared_is_refused),
        cmocka_unit_test(memory_that_cannot_be_mapped_is_staged),
        cmocka_unit_test(large_messages_arrive),
        cmocka_unit_test(captured_operations_are_replayed),
        cmocka_unit_test(graphs_do_not_wait_for_a_killed_process),
        cmocka_unit_test(a_capture_of_one_process_is_named),
    };
    const struct CMUnitTest hosts[] = {
        cmocka_unit_test(a_rank_without_its_gpu_is_named),
        cmocka_unit_test(a_killed_process_is_named),
        cmocka_unit_test(streams_do_not_wait_for_a_killed_process),
        cmocka_unit_test(an_abort_is_named),
        cmocka_unit_test(different_calls_are_named),
        cmocka_unit_test(different_messages_are_named),
        cmocka_unit_test(memory_may_be_freed_between_operations),
        cmocka_unit_test(memory_that_cannot_be_shared_is_refused),
        cmocka_unit_test(memory_that_cannot_be_mapped_is_staged),
        cmocka_unit_test(captured_operations_are_replayed),
        cmocka_unit_test(graphs_do_not_wait_for_a_killed_process),
    };
    const struct kl_device_kind *kind;

    alarm(kolo_test_hang_s());
    setenv("KOLO_DEVICES", "cuda", 1);
    if (argc == 3) return play(argv[1], argv[2]);
    if (kl_cuda_driver(&cu) || kl_devices(&kind)) {
        printf("skipped: %s\n", kl_error_text());
        return 77;
    }
    between_hosts = argc == 2 && !strcmp(argv[1], "hosts");
    if (!between_hosts) return cmocka_run_group_tests(tests, NULL, NULL);
    setenv("NCCL_HOSTID", "first", 1);
    return cmocka_run_group_tests(hosts, NULL, NULL);
}
