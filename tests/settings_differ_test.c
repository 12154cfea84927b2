/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank of four has another value of a parameter than the others: for every parameter of every table, on one host and over two. Where the parameter is
 * one in which ranks have to be alike, each of them is refused, with a sentence that names it; else all results are right. The same for ncclConfig_t.
 *
 * A parameter that is text needs a row in `texts`, or the test fails. Arguments: names of parameters to look at; with any, each outcome is printed.
 */
#include "comm/setup/settings.h"
#include "include/kolo.h"
#include "tests/hang.h"
#include "tests/kolo_test.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RANKS = 4, TEXT = 1024, MOST_VALUES = 8 };

/* ---- jobs ---- */

static const struct layout {
    const char *label, *machine;
    bool hosts;
} layouts[] = {
    {"one host", NULL, false},
    {"two hosts", NULL, true},
    {"two hosts that play DGX H100", "dgx-h100", true},
};

struct job {
    const struct layout *layout;
    void (*run)(void); /* with the communicator of all */
    unsigned odd;      /* the ranks that differ, a bit each */
    const char *name, *value;
};
enum { LAST_RANK = 1 << (RANKS - 1), LAST_HOST = LAST_RANK | LAST_RANK >> 1 };

/* Shared by the processes. */
static struct shared {
    ncclUniqueId id;
    _Atomic int has_id;
    struct end {
        _Atomic int over;
        ncclResult_t rc; /* ncclSuccess, and not right: a wrong result */
        bool right;
        char text[TEXT]; /* the error, or a former one */
    } end[RANKS];
} * shared;

static struct {
    int number;
    ncclComm_t comm;
} rank;

static _Noreturn void end(ncclResult_t rc, bool right, const char *text)
{
    struct end *e = &shared->end[rank.number];

    e->rc = rc;
    e->right = right;
    snprintf(e->text, sizeof e->text, "%s", text);
    atomic_store(&e->over, 1);
    _exit(0);
}

/* A call may go on in the background: of `comm`, or a call that creates another one from it. */
static void must_in(ncclComm_t comm, ncclResult_t rc)
{
    while (rc == ncclInProgress) {
        const ncclResult_t asked = ncclCommGetAsyncError(comm, &rc);
        if (asked) rc = asked;
        sched_yield();
    }
    if (rc) end(rc, false, ncclGetLastError(comm));
}

static void must(ncclResult_t rc)
{
    must_in(rank.comm, rc);
}

static void finish(void)
{
    must(koloStreamSynchronize(NULL));
}

/* ---- operations, and their results ---- */

static const size_t counts[] = {2, 5000, 100000};
enum { MOST_COUNT = 100000, TIMES = 2 };
static int32_t *from, *to;

static void fill(size_t n, int seed)
{
    for (size_t i = 0; i < n; i++) from[i] = (int32_t)i * (rank.number + 1) + seed;
    memset(to, 0x55, n * sizeof *to);
}

static void expect(const int32_t *got, size_t n, int factor, int seeds, int seed, const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != (int32_t)i * factor + seeds * seed) {
            char text[128];
            snprintf(text, sizeof text, "%s of %zu: %d at %zu", what, n, got[i], i);
            end(ncclSuccess, false, text);
        }
}

enum { SUM = RANKS * (RANKS + 1) / 2 };

static void all_reduce(size_t n, int seed)
{
    fill(n, seed);
    must(ncclAllReduce(from, to, n, ncclInt32, ncclSum, rank.comm, NULL));
    finish();
    expect(to, n, SUM, RANKS, seed, "all-reduce");
}

static void reduce(size_t n, int seed)
{
    fill(n, seed);
    must(ncclReduce(from, to, n, ncclInt32, ncclSum, seed % RANKS, rank.comm, NULL));
    finish();
    if (rank.number == seed % RANKS) expect(to, n, SUM, RANKS, seed, "reduce");
}

static void broadcast(size_t n, int seed)
{
    fill(n, seed);
    must(ncclBroadcast(from, to, n, ncclInt32, seed % RANKS, rank.comm, NULL));
    finish();
    expect(to, n, seed % RANKS + 1, 1, seed, "broadcast");
}

static void all_gather(size_t n, int seed)
{
    n /= RANKS;
    fill(n, seed);
    must(ncclAllGather(from, to, n, ncclInt32, rank.comm, NULL));
    finish();
    for (int r = 0; r < RANKS; r++) expect(to + (size_t)r * n, n, r + 1, 1, seed, "all-gather");
}

static void reduce_scatter(size_t n, int seed)
{
    n /= RANKS;
    fill(n * RANKS, seed);
    must(ncclReduceScatter(from, to, n, ncclInt32, ncclSum, rank.comm, NULL));
    finish();
    for (size_t i = 0; i < n; i++)
        if (to[i] != (int32_t)(i + (size_t)rank.number * n) * SUM + RANKS * seed)
            end(ncclSuccess, false, "reduce-scatter");
}

static void all_to_all(size_t n, int seed)
{
    n /= RANKS;
    fill(n * RANKS, seed);
    must(ncclAlltoAll(from, to, n, ncclInt32, rank.comm, NULL));
    finish();
    for (int r = 0; r < RANKS; r++)
        for (size_t i = 0; i < n; i++)
            if (to[(size_t)r * n + i] != (int32_t)(i + (size_t)rank.number * n) * (r + 1) + seed)
                end(ncclSuccess, false, "all-to-all");
}

static void pass_on(size_t n, int seed)
{
    fill(n, seed);
    must(ncclGroupStart());
    must(ncclSend(from, n, ncclInt32, (rank.number + 1) % RANKS, rank.comm, NULL));
    must(ncclRecv(to, n, ncclInt32, (rank.number + RANKS - 1) % RANKS, rank.comm, NULL));
    must(ncclGroupEnd());
    finish();
    expect(to, n, (rank.number + RANKS - 1) % RANKS + 1, 1, seed, "send and receive");
}

static void (*const operations[])(size_t n, int seed) = {all_reduce, reduce,         broadcast,  all_gather,
                                                         all_reduce, reduce_scatter, all_to_all, pass_on};

static void run_operations(void)
{
    int seed = 0;

    for (int i = 0; i < TIMES; i++) FOR_EACH_CASE(n, counts)
    for (size_t o = 0; o < sizeof operations / sizeof operations[0]; o++) operations[o](*n, seed++);
}

/* Sums of two, over both hosts if there are two, and one of all with memory that others can map. */
static void run_children(void)
{
    const ncclComm_t parent = rank.comm;
    ncclComm_t child;
    int32_t one = rank.number, sum = 0;

    must(ncclCommSplit(parent, rank.number % 2, 0, &child, NULL));
    must_in(child, ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, child, NULL));
    finish();
    if (sum != 2 + 2 * (rank.number % 2)) end(ncclSuccess, false, "all-reduce in a child");
    must_in(child, ncclCommFinalize(child));
    must(ncclCommDestroy(child));
}

static void run(void)
{
    const size_t bytes = MOST_COUNT * sizeof *from;
    void *memory[2];

    from = malloc(bytes);
    to = malloc(bytes);
    run_operations();
    for (int i = 0; i < 2; i++) must(ncclMemAlloc(&memory[i], bytes));
    from = memory[0];
    to = memory[1];
    for (int i = 0; i < TIMES; i++) {
        all_reduce(MOST_COUNT, i);
        all_to_all(MOST_COUNT, i);
        pass_on(MOST_COUNT, i);
    }
    run_children();
}

/* ---- ncclConfig_t ---- */

#define FIELD(name, value, alike)                                                                                      \
    {                                                                                                                  \
#name, offsetof(ncclConfig_t, name), value, alike                                                              \
    }
static const struct field {
    const char *name;
    size_t offset;
    int value;
    bool alike; /* else ranks may differ */
} fields[] = {
    FIELD(minCTAs, 2, true),
    FIELD(maxCTAs, 1, true),
    FIELD(collnetEnable, 1, true),
    FIELD(nvlsCTAs, 4, true),
    FIELD(nChannelsPerNetPeer, 2, true),
    FIELD(cgaClusterSize, 2, false),
    FIELD(splitShare, 1, false),
    FIELD(shrinkShare, 1, false),
    FIELD(trafficClass, 1, false),
    FIELD(CTAPolicy, NCCL_CTA_POLICY_EFFICIENCY, false),
    FIELD(nvlinkCentricSched, 1, false),
    FIELD(graphUsageMode, 1, false),
    FIELD(numRmaCtx, 2, false),
    FIELD(maxP2pPeers, 2, false),
    FIELD(graphStreamOrdering, 1, false),
};
#undef FIELD

static void expect_child(const struct field *f, const char *how, ncclComm_t child, ncclResult_t rc)
{
    int32_t one = 1, sum = 0;
    int n;
    char text[TEXT];

    if (f->alike && rc == ncclInvalidUsage && strstr(ncclGetLastError(NULL), f->name)) return;
    if (f->alike || rc) {
        snprintf(text, sizeof text, "%s, %s: %s: %.800s", f->name, how, ncclGetErrorString(rc), ncclGetLastError(NULL));
        end(rc, false, text);
    }
    must(ncclCommCount(child, &n));
    must(ncclAllReduce(&one, &sum, 1, ncclInt32, ncclSum, child, NULL));
    finish();
    if (sum != n) end(ncclSuccess, false, f->name);
    must(ncclCommDestroy(child));
}

/* The last rank uses other arguments than the others, in a split, in a shrink, and in an init of its own. */
static void run_configs(void)
{
    int excluded[] = {0};

    FOR_EACH_CASE(f, fields)
    {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        ncclComm_t child = NULL;
        ncclUniqueId id;
        ncclResult_t rc;

        if (rank.number == RANKS - 1) memcpy((char *)&config + f->offset, &f->value, sizeof f->value);
        rc = ncclCommSplit(rank.comm, 0, 0, &child, &config);
        expect_child(f, "split", child, rc);
        if (rank.number) {
            rc = ncclCommShrink(rank.comm, excluded, 1, &child, &config, NCCL_SHRINK_DEFAULT);
            expect_child(f, "shrink", child, rc);
        }
        if (!rank.number) must(ncclGetUniqueId(&id));
        must(ncclBroadcast(&id, &id, sizeof id, ncclInt8, 0, rank.comm, NULL));
        finish();
        rc = ncclCommInitRankConfig(&child, RANKS, id, rank.number, &config);
        expect_child(f, "init", child, rc);
    }
    from = malloc(MOST_COUNT * sizeof *from);
    to = malloc(MOST_COUNT * sizeof *to);
    all_reduce(MOST_COUNT, 0); /* the fate of children does the parent no harm */
}

/* ---- processes ---- */

static void set_up(const struct job *job)
{
    const struct layout *l = job->layout;

    setenv("KOLO_BOOTSTRAP_TIMEOUT", "30", 1);
    setenv("KOLO_TIMEOUT", "30", 1);
    setenv("NCCL_DEBUG_FILE", "/dev/null", 1);
    if (l->hosts) setenv("NCCL_HOSTID", rank.number < RANKS / 2 ? "north" : "south", 1);
    if (l->machine) setenv("KOLO_MACHINE", l->machine, 1);
    if (job->odd >> rank.number & 1) setenv(job->name, job->value, 1);
}

static void be_rank(const struct job *job, int number)
{
    rank.number = number;
    set_up(job);
    if (!number) {
        must(ncclGetUniqueId(&shared->id));
        atomic_store(&shared->has_id, 1);
    }
    while (!atomic_load(&shared->has_id)) sched_yield();
    must(ncclCommInitRank(&rank.comm, RANKS, shared->id, number));
    job->run();
    must(ncclCommFinalize(rank.comm));
    must(ncclCommDestroy(rank.comm));
    end(ncclSuccess, true, "right");
}

static bool wait_for(const pid_t *child)
{
    const time_t until = time(NULL) + kolo_test_hang_s();
    int left = RANKS;
    bool gone[RANKS] = {false};

    while (left && time(NULL) < until) {
        for (int r = 0; r < RANKS; r++)
            if (!gone[r] && waitpid(child[r], NULL, WNOHANG) == child[r]) {
                gone[r] = true;
                left--;
            }
        if (left) usleep(2000);
    }
    for (int r = 0; r < RANKS; r++) {
        if (gone[r]) continue;
        kill(child[r], SIGKILL);
        waitpid(child[r], NULL, 0);
    }
    return !left;
}

static void run_job(const struct job *job)
{
    pid_t child[RANKS];

    memset(shared, 0, sizeof *shared);
    for (int r = 0; r < RANKS; r++) {
        child[r] = fork();
        assert_true(child[r] >= 0);
        if (!child[r]) be_rank(job, r);
    }
    wait_for(child);
}

/* ---- verdicts ---- */

static bool talks;
static int faults;

static bool all_are_right(void)
{
    for (int r = 0; r < RANKS; r++)
        if (!shared->end[r].over || !shared->end[r].right) return false;
    return true;
}

static bool all_name(const char *name, ncclResult_t rc)
{
    for (int r = 0; r < RANKS; r++) {
        const struct end *e = &shared->end[r];
        if (!e->over || e->right || !e->rc || (rc && e->rc != rc) || !strstr(e->text, name)) return false;
        if (strstr(e->text, " -2 on rank")) return false; /* the default, which nobody can set, is "unset" */
    }
    return true;
}

static void show(const struct job *job, const char *verdict)
{
    fprintf(stderr, "%s: ranks %#x have %s=%s: %s\n", job->layout->label, job->odd, job->name, job->value, verdict);
    for (int r = 0; r < RANKS; r++)
        fprintf(stderr, "    rank %d: %s: %s\n", r,
                shared->end[r].over ? ncclGetErrorString(shared->end[r].rc) : "hangs or died", shared->end[r].text);
}

static bool must_be_refused(const struct job *job, enum kl_param_scope scope)
{
    return scope == KL_ALIKE || (scope == KL_HOST_ALIKE && job->odd != LAST_HOST);
}

static void judge(const struct job *job, enum kl_param_scope scope)
{
    const bool right = all_are_right(), named = all_name(job->name, 0), refused = all_name(job->name, ncclInvalidUsage);
    const bool good = must_be_refused(job, scope) ? refused : right || named;

    if (talks || !good) show(job, right ? "right" : refused ? "refused" : named ? "named" : "WRONG");
    faults += !good;
}

/* ---- values ---- */

static const struct {
    const char *name, *value[MOST_VALUES];
} texts[] = {
    {"NCCL_ALGO", {"Ring", "allreduce:Tree", "OneShot", "^Tree", "PAT"}},
    {"NCCL_PROTO", {"LL", "LL128", "Simple"}},
    {"NCCL_GRAPH_FILE", {"/nonexistent.xml"}},
    {"NCCL_GRAPH_DUMP_FILE", {"/dev/null"}},
    {"KOLO_TUNING", {"none", "/nonexistent.json"}},
    {"NCCL_NET_PLUGIN", {"none", "/nonexistent.so"}},
    {"NCCL_RMA_PLUGIN", {"none", "/nonexistent.so"}},
    {"NCCL_GIN_PLUGIN", {"none", "/nonexistent.so"}},
    {"NCCL_TUNER_PLUGIN", {"none", "/nonexistent.so"}},
    {"NCCL_PROFILER_PLUGIN", {"none", "/nonexistent.so"}},
    {"NCCL_TUNER_CONFIG_FILE", {"/nonexistent.csv"}},
    {"NCCL_COLLNET_ENABLE", {"1", "0"}},
    {"NCCL_THREAD_THRESHOLDS", {"1 1 1 1 1 1", "4096 4096 4096 4096 4096 4096"}},
    {"NCCL_TOPO_FILE", {"/nonexistent.xml"}},
    {"KOLO_MACHINE", {"dgx-a100", "dgx-1v", "aws-g5.12xlarge", "gb200-nvl72"}},
    {"NCCL_TOPO_DUMP_FILE", {"/dev/null"}},
    {"KOLO_NCCL_VERSION", {"2.26", "2.29.7"}},
    {"NCCL_NETDEVS_POLICY", {"ALL", "MAX:1"}},
    {"NCCL_NET_FORCE_MERGE", {"mlx5_0,mlx5_1"}},
    {"NCCL_IB_HCA", {"mlx5_0", "^mlx5_0"}},
    {"KOLO_NET_SPEED", {"100000", "400000"}},
    {"KOLO_CHAOS", {"1:delay", "1:short"}},
    {"NCCL_DEBUG_FILE", {"/dev/null"}},
    {"NCCL_DEBUG_TIMESTAMP_FORMAT", {"%s"}},
    {"NCCL_COMM_ID", {"127.0.0.1:1"}},
    {"KOLO_COMM_ID", {"127.0.0.1:1"}},
    {"KOLO_SECRET", {"another"}},
    {"KOLO_PSK", {""}}, /* ranks with different keys do not meet: api_call_config_test */
    {"KOLO_PROFILE", {"line=147"}},
    {"KOLO_OPEN_TO", {"1"}},
    {"NCCL_SOCKET_IFNAME", {"lo"}},
    {"NCCL_NET", {"Socket", "nosuch"}},
    {"KOLO_FLIGHT_RECORDER", {"/dev/null"}},
    {"NCCL_RAS_ADDR", {"localhost:1"}},
    {"KOLO_TRACE", {"/dev/null"}},
    {"KOLO_CUDA_LIBRARY", {"/nonexistent.so"}},
    {"NCCL_IBVERBS_LIB", {"/nonexistent.so"}},
    {"KOLO_DEVICES", {"host"}}, /* a rank that shall have GPUs, and has none, fails before it meets the others */
    {"NCCL_HOSTID", {"west", "north", "south"}},
};

struct values {
    int n;
    char text[MOST_VALUES][64];
};

static void add(struct values *v, const char *text)
{
    assert_true(v->n < MOST_VALUES);
    snprintf(v->text[v->n++], sizeof v->text[0], "%s", text);
}

static void add_number(struct values *v, const struct kl_param *p, int64_t number)
{
    char text[32];

    snprintf(text, sizeof text, "%lld", (long long)number);
    if (number >= p->min && number <= p->max && strcmp(text, p->dfl)) add(v, text);
}

static bool add_texts(struct values *v, const char *name)
{
    FOR_EACH_CASE(t, texts)
    {
        if (strcmp(t->name, name)) continue;
        for (int i = 0; i < MOST_VALUES && t->value[i]; i++) add(v, t->value[i]);
        return true;
    }
    return false;
}

static struct values values_of(const struct kl_param *p)
{
    struct values v = {0};

    if (add_texts(&v, p->name)) return v;
    switch (p->type) {
    case KL_PARAM_TYPE_INT:
    case KL_PARAM_TYPE_SIZE:
        add_number(&v, p, p->min);
        add_number(&v, p, p->min < 64 ? p->min + 1 : 1 << 20);
        break;
    case KL_PARAM_TYPE_BOOL:
        add(&v, !strcmp(p->dfl, "0") || !strcmp(p->dfl, "off") ? "1" : "0");
        break;
    case KL_PARAM_TYPE_ENUM:
    case KL_PARAM_TYPE_LIST:
        for (int i = 0; p->choices[i] && v.n < 3; i++)
            if (strcmp(p->choices[i], p->dfl)) add(&v, p->choices[i]);
        break;
    case KL_PARAM_TYPE_STRING:
        fail_msg("%s is text, and new: `texts` needs a value of it", p->name);
    }
    return v;
}

/* ---- the table ---- */

static char **wanted; /* NULL: all */

static void try_job(const struct kl_param *p, const char *value, const struct layout *layout, unsigned odd)
{
    const struct job job = {.layout = layout, .run = run, .odd = odd, .name = p->name, .value = value};

    run_job(&job);
    judge(&job, p->scope);
}

/* In turns, to save time: the first rank differs, or the last; and of the layouts with two hosts one, unless the job ends at init. */
static void try_value(const struct kl_param *p, const char *value)
{
    static unsigned turn;
    const struct layout *left_out = p->scope == KL_ALIKE || wanted ? NULL : &layouts[1 + turn / 2 % 2];

    FOR_EACH_CASE(l, layouts)
    {
        if (l == left_out) continue;
        try_job(p, value, l, turn++ % 2 ? 1 : LAST_RANK);
        if (l->hosts && (p->scope == KL_HOST_ALIKE || p->scope == KL_SETTLED)) try_job(p, value, l, LAST_HOST);
    }
}

static bool is_wanted(const char *name)
{
    for (char **w = wanted; w && *w; w++)
        if (!strcmp(*w, name)) return true;
    return !wanted;
}

static void a_rank_that_differs_is_named_or_does_no_harm(void **state)
{
    (void)state;
    for (const struct kl_param_set *const *set = kl_comm_param_sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++) {
            const struct kl_param *p = &(*set)->params[i];
            struct values v = values_of(p);
            for (int k = 0; k < v.n && is_wanted(p->name); k++) try_value(p, v.text[k]);
        }
    assert_int_equal(faults, 0);
}

static void a_configuration_that_differs_is_named_or_does_no_harm(void **state)
{
    (void)state;
    FOR_EACH_CASE(l, layouts)
    {
        const struct job job = {.layout = l, .run = run_configs, .name = "ncclConfig_t", .value = "another"};

        run_job(&job);
        if (!all_are_right()) show(&job, "WRONG");
        assert_true(all_are_right());
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_rank_that_differs_is_named_or_does_no_harm),
                                       cmocka_unit_test(a_configuration_that_differs_is_named_or_does_no_harm)};

    talks = argc > 1;
    wanted = argc > 1 && strcmp(argv[1], "-v") ? argv + 1 : NULL;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
