/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_rdma_test.c - messages between emulated hosts in memory of GPUs, which a NIC reads and writes itself: the net is
 * tests/plugins/gpu_net.c, whose counts are checked, or, with the argument "verbs", RDMA over the stand-in for libibverbs.
 * While such a message is under way the CPU has no access to its memory. Ranks are processes: this program again, with the
 * name of its part.
 */
#include "bootstrap/bootstrap.h"

#include "coll/select/select.h"
#include "comm/comm.h"
#include "comm/diagnosis/flight.h"
#include "comm/handle.h"
#include "device/cuda/context.h"
#include "device/cuda/rdma.h"
#include "device/device.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/gpu_graphs.h"
#include "tests/gpu_memory.h"
#include "tests/hang.h"
#include "tests/plugins/gpu_net.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 6, PAGE = 4096, STEP = 1 << 20, LEAST = 4096, LARGE = 5 * STEP + 3, SETTINGS = 12 };

static const struct kl_cuda_driver *cu;

/* ---- a rank ---- */

static struct me {
    int rank, n, hosts;
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    kl_cu_stream stream;
    const struct gpu_net_counts *counts; /* over verbs none counts */
    bool counted;
} me;

#define expect(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) give_up(#condition, __LINE__);                                                               \
    } while (0)

static void give_up(const char *condition, int line)
{
    fprintf(stderr, "rank %d, line %d: %s; %s\n", me.rank, line, condition, ncclGetLastError(me.comm));
    _exit(1);
}

static int host_of(int rank)
{
    return rank * me.hosts / me.n;
}

static const char *setting(const char *name)
{
    return getenv(name) ? getenv(name) : "";
}

/* Whole pages of memory of some kind. */
struct place {
    struct gpu_memory memory;
    uint64_t at;
};

static void allocate(struct place *p, enum gpu_memory_kind kind, size_t bytes)
{
    expect(!gpu_memory_alloc(cu, &p->memory, kind, me.context->device, bytes + 2 * (size_t)PAGE));
    p->at = (p->memory.at + PAGE - 1) / PAGE * PAGE;
}

static void release(const struct place *p)
{
    expect(!gpu_memory_free(cu, &p->memory));
}

static void *pointer(const struct place *p)
{
    return (void *)(uintptr_t)p->at;
}

static unsigned char byte_of(size_t i, int seed)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)seed * 31);
}

static void copy(uint64_t to, uint64_t from, size_t bytes)
{
    if (bytes) expect(!cu->cuMemcpyAsync(to, from, bytes, me.stream));
    expect(!cu->cuStreamSynchronize(me.stream));
}

static void fill(const struct place *p, size_t bytes, int seed)
{
    unsigned char *data = malloc(bytes + 1);

    for (size_t i = 0; i < bytes; i++) data[i] = byte_of(i, seed);
    copy(p->at, (uint64_t)(uintptr_t)data, bytes);
    free(data);
}

static void check(const struct place *p, size_t bytes, int seed)
{
    unsigned char *data = malloc(bytes + 1);
    size_t i = 0;

    copy((uint64_t)(uintptr_t)data, p->at, bytes);
    while (i < bytes && data[i] == byte_of(i, seed)) i++;
    if (i < bytes) {
        fprintf(stderr, "%s memory, %zu bytes: byte %zu is %d, not %d\n", gpu_memory_names[p->memory.kind], bytes, i,
                data[i], byte_of(i, seed));
        give_up("the bytes that were sent", __LINE__);
    }
    free(data);
}

/* ---- the expected calls of the net ---- */

static bool is_direct(enum gpu_memory_kind kind, size_t bytes, bool sends)
{
    const char *net = setting("GPU_NET"), *from = setting("KOLO_CUDA_RDMA");
    const bool dma_buf = (!strcmp(net, "dmabuf") || !strcmp(net, "both")) && strcmp(setting("NCCL_DMABUF_ENABLE"), "0");
    const bool address = !strcmp(net, "cuda") || !strcmp(net, "both");

    if (bytes < (*from ? strtoul(from, NULL, 10) : LEAST) || strcmp(setting("NCCL_NET_GDR_LEVEL"), "SYS")) return false;
    if (sends && !strcmp(setting("NCCL_NET_GDR_READ"), "0")) return false;
    return (dma_buf && (kind == GPU_DEVICE || kind == GPU_VIRTUAL)) || (address && kind == GPU_DEVICE);
}

static unsigned long pieces(size_t bytes)
{
    return (bytes + STEP - 1) / STEP;
}

static bool flushes_by_net(void)
{
    struct kl_cuda_rdma gpu;

    expect(!kl_cuda_rdma_of(me.context->device, &gpu));
    if (!strcmp(setting("GPU_NET_FLUSH"), "0")) return false;
    return !gpu.ordered || !strcmp(setting("GPU_NET_FLUSH"), "always") || !strcmp(setting("NCCL_NET_FORCE_FLUSH"), "1");
}

static unsigned long registrations(void)
{
    return me.counts->dma_bufs + me.counts->addresses;
}

/* ---- messages ---- */

/* The CPU, which is the stand-in's GPU, too, does not get at the pages. */
static void take_away(const struct place *p, size_t bytes, bool away)
{
    if (bytes)
        expect(!mprotect(pointer(p), (bytes + PAGE - 1) / PAGE * PAGE, away ? PROT_NONE : PROT_READ | PROT_WRITE));
}

/* The last operation but `before`. */
static uint8_t way_of(uint64_t before)
{
    ncclComm_t comm = kl_handle_try(me.comm);
    struct kl_flight_op op = {.way = 0};

    expect(comm && kl_flight_read(comm->flight, kl_flight_issued(comm->flight) - before, &op));
    kl_handle_leave(comm);
    return op.way;
}

static uint8_t way(bool direct)
{
    return kl_select_way(direct ? KL_COPY_DIRECT : KL_COPY_STAGED, false, false);
}

static void call(const struct place *out, const struct place *in, size_t bytes, int peer)
{
    expect(!ncclGroupStart());
    expect(!ncclSend(pointer(out), bytes, ncclUint8, peer, me.comm, me.stream));
    expect(!ncclRecv(pointer(in), bytes, ncclUint8, peer, me.comm, me.stream));
    expect(!ncclGroupEnd());
}

/* A message each way between two ranks. */
static void exchange(const struct place *out, const struct place *in, size_t bytes, int seed)
{
    const struct gpu_net_counts before = *me.counts;
    const bool sends = is_direct(out->memory.kind, bytes, true), receives = is_direct(in->memory.kind, bytes, false);

    fill(out, bytes, seed + me.rank);
    fill(in, bytes, seed + 77);
    if (sends) take_away(out, bytes, true);
    if (receives) take_away(in, bytes, true);
    call(out, in, bytes, 1 - me.rank);
    expect(!cu->cuStreamSynchronize(me.stream));
    if (sends) take_away(out, bytes, false);
    if (receives) take_away(in, bytes, false);
    check(in, bytes, seed + 1 - me.rank);
    check(out, bytes, seed + me.rank);
    expect(way_of(1) == way(sends) && way_of(0) == way(receives));
    if (!me.counted) return;
    expect(me.counts->sends - before.sends == (sends ? pieces(bytes) : 0));
    expect(me.counts->recvs - before.recvs == (receives ? pieces(bytes) : 0));
    expect(me.counts->sent - before.sent == (sends ? bytes : 0));
    expect(me.counts->received - before.received == (receives ? bytes : 0));
    expect(me.counts->flushes - before.flushes == (receives && flushes_by_net() ? pieces(bytes) : 0));
}

/* ---- parts ---- */

/* Of one call, small enough for a slot of a connection. */
static void several(const struct place *out, const struct place *in)
{
    enum { N = 6 };
    const unsigned long before = me.counts->received;

    fill(out, N * LEAST, me.rank);
    fill(in, N * LEAST, 99);
    expect(!ncclGroupStart());
    for (int i = 0; i < N; i++) {
        expect(!ncclSend((char *)pointer(out) + i * LEAST, LEAST, ncclUint8, 1 - me.rank, me.comm, me.stream));
        expect(!ncclRecv((char *)pointer(in) + i * LEAST, LEAST, ncclUint8, 1 - me.rank, me.comm, me.stream));
    }
    expect(!ncclGroupEnd());
    check(in, N * LEAST, 1 - me.rank);
    expect(!me.counted || me.counts->received - before == (is_direct(GPU_DEVICE, LEAST, false) ? N * LEAST : 0));
}

static void sizes(void)
{
    static const size_t bytes[] = {
        0,        1,    104,      105,         LEAST - 1,   LEAST,       LEAST + 1, 3 * LEAST + 100,
        STEP - 1, STEP, STEP + 1, STEP + 1023, STEP + 1024, STEP + 1025, LARGE,     2 * STEP + 100};
    struct place out, in;

    allocate(&out, GPU_DEVICE, LARGE);
    allocate(&in, GPU_DEVICE, LARGE);
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) exchange(&out, &in, bytes[i], (int)i);
    several(&out, &in);
    release(&out);
    release(&in);
}

/* Memory of each kind with each kind at the other side. */
static void kinds(void)
{
    struct place out[GPU_MEMORY_KINDS], in[GPU_MEMORY_KINDS];

    for (int k = 0; k < GPU_MEMORY_KINDS; k++) {
        allocate(&out[k], (enum gpu_memory_kind)k, STEP + 100);
        allocate(&in[k], (enum gpu_memory_kind)k, STEP + 100);
    }
    for (int k = 0; k < GPU_MEMORY_KINDS * GPU_MEMORY_KINDS; k++) {
        const int a = k % GPU_MEMORY_KINDS, b = k / GPU_MEMORY_KINDS;
        exchange(&out[me.rank ? b : a], &in[me.rank ? b : a], k % 2 ? 5 * PAGE + 1 : STEP + 100, k);
    }
    for (int k = 0; k < GPU_MEMORY_KINDS; k++) {
        release(&out[k]);
        release(&in[k]);
    }
}

/* Other memory at the same addresses. */
static void replace_device(struct place *p)
{
    const uint64_t at = p->at;

    release(p);
    allocate(p, GPU_DEVICE, 4 * LEAST);
    expect(p->at == at); /* the stand-in gives the first one that fits */
}

static void replace_virtual(struct place *p)
{
    const struct gpu_properties made = {.type = 1,
                                        .location = {.type = KL_CU_LOCATION_DEVICE, .id = me.context->device}};
    struct gpu_memory *m = &p->memory;
    struct gpu_access all[64];
    const size_t n = gpu_list_access(cu, all, me.context->device, false);

    expect(!GPU_CALL(cuMemUnmap, (uint64_t, size_t), m->at, m->bytes));
    expect(!GPU_CALL(cuMemRelease, (unsigned long long), m->handle));
    expect(!GPU_CALL(cuMemCreate, (unsigned long long *, size_t, const struct gpu_properties *, unsigned long long),
                     &m->handle, m->bytes, &made, 0));
    expect(!GPU_CALL(cuMemMap, (uint64_t, size_t, size_t, unsigned long long, unsigned long long), m->at, m->bytes, 0,
                     m->handle, 0));
    expect(!GPU_CALL(cuMemSetAccess, (uint64_t, size_t, const struct gpu_access *, size_t), m->at, m->bytes, all, n));
}

/* The net registers each allocation once. */
static void reuse_of(enum gpu_memory_kind kind, void (*replace)(struct place *p))
{
    struct place out, in;

    allocate(&out, kind, 4 * LEAST);
    allocate(&in, kind, 4 * LEAST);
    for (int i = 0; i < 5; i++) {
        const unsigned long before = registrations();
        exchange(&out, &in, 4 * LEAST, i);
        expect(!me.counted || registrations() - before == 2);
        exchange(&out, &in, 3 * LEAST, i + 50);
        expect(!me.counted || registrations() - before == 2);
        replace(&out);
        replace(&in);
    }
    release(&out);
    release(&in);
}

enum { MANY = 40, KEPT = 32 };

/* More allocations than a connection keeps. */
static void keep_some(void)
{
    static struct place out[MANY], in[MANY];

    for (int i = 0; i < MANY; i++) {
        allocate(&out[i], GPU_DEVICE, LEAST);
        allocate(&in[i], GPU_DEVICE, LEAST);
    }
    for (int i = 0; i < 2 * MANY; i++) {
        exchange(&out[i % MANY], &in[i % MANY], LEAST, i);
        expect(registrations() - me.counts->ended <= 2 * KEPT);
    }
    for (int i = 0; i < MANY; i++) {
        release(&out[i]);
        release(&in[i]);
    }
}

static void reuse(void)
{
    reuse_of(GPU_DEVICE, replace_device);
    reuse_of(GPU_VIRTUAL, replace_virtual);
    keep_some();
}

/* Captured messages, and those behind them, are staged. */
static void graphs(void)
{
    struct gpu_graphs g;
    struct place out, in;
    const size_t bytes = STEP + 100;

    allocate(&out, GPU_DEVICE, bytes);
    allocate(&in, GPU_DEVICE, bytes);
    exchange(&out, &in, bytes, 1);
    const unsigned long sends = me.counts->sends, recvs = me.counts->recvs;
    gpu_graphs_find(&g);
    expect(!g.begin(me.stream, 0));
    call(&out, &in, bytes, 1 - me.rank);
    void *executable = gpu_graphs_finish(&g, me.stream);
    expect(executable);
    for (int i = 0; i < 6; i++) {
        fill(&out, bytes, i + me.rank);
        fill(&in, bytes, 99);
        if (i % 2)
            call(&out, &in, bytes, 1 - me.rank);
        else
            expect(!g.launch(executable, me.stream));
        check(&in, bytes, i + 1 - me.rank);
    }
    expect(me.counts->sends == sends && me.counts->recvs == recvs && sends && recvs);
    expect(!g.destroy(executable));
    release(&out);
    release(&in);
}

/* On rails, data for another rail go to its NIC through the memory of the GPU there (PXN), over host memory. */
static bool is_relayed(int to)
{
    return *setting("TEST_RAILS") && to % 2 != me.rank % 2;
}

/* All to all by messages: only messages to other hosts are the NIC's. */
static void all(void)
{
    const size_t bytes = 2 * STEP + 5;
    struct place out[RANKS], in[RANKS];
    unsigned long others = 0, sent = 0;

    for (int r = 0; r < me.n; r++) {
        allocate(&out[r], GPU_DEVICE, bytes);
        allocate(&in[r], GPU_DEVICE, bytes);
        others += host_of(r) != host_of(me.rank);
        sent += host_of(r) != host_of(me.rank) && !is_relayed(r);
    }
    for (int round = 0; round < 3; round++) {
        const struct gpu_net_counts before = *me.counts;
        for (int r = 0; r < me.n; r++) {
            fill(&out[r], bytes, round + 10 * me.rank + r);
            fill(&in[r], bytes, 99);
        }
        expect(!ncclGroupStart());
        for (int r = 0; r < me.n; r++) {
            expect(!ncclSend(pointer(&out[r]), bytes, ncclUint8, r, me.comm, me.stream));
            expect(!ncclRecv(pointer(&in[r]), bytes, ncclUint8, r, me.comm, me.stream));
        }
        expect(!ncclGroupEnd());
        expect(!cu->cuStreamSynchronize(me.stream));
        for (int r = 0; r < me.n; r++) check(&in[r], bytes, round + 10 * r + me.rank);
        if (!me.counted) continue;
        expect(me.counts->sends - before.sends == pieces(bytes) * sent);
        expect(me.counts->sent - before.sent == bytes * sent);
        expect(me.counts->received - before.received == bytes * others);
    }
    for (int r = 0; r < me.n; r++) {
        release(&out[r]);
        release(&in[r]);
    }
}

/* Work on the stream before and after a message, without synchronisation. */
static void order(void)
{
    const size_t bytes = 3 * STEP;
    struct place out, in, result;

    allocate(&out, GPU_DEVICE, bytes);
    allocate(&in, GPU_DEVICE, bytes);
    allocate(&result, GPU_DEVICE, 8 * bytes);
    for (int i = 0; i < 8; i++) {
        expect(!cu->cuMemsetD8Async(out.at, (unsigned char)(16 * me.rank + i), bytes, me.stream));
        call(&out, &in, bytes, 1 - me.rank);
        expect(!cu->cuMemcpyAsync(result.at + (size_t)i * bytes, in.at, bytes, me.stream));
    }
    unsigned char *data = malloc(8 * bytes);
    copy((uint64_t)(uintptr_t)data, result.at, 8 * bytes);
    for (size_t i = 0; i < 8 * bytes; i++) expect(data[i] == 16 * (1 - me.rank) + i / bytes);
    free(data);
    release(&out);
    release(&in);
    release(&result);
}

/* ---- parts that fail ---- */

static void expect_failure(const char *text)
{
    ncclResult_t rc = ncclSuccess;

    while (!rc || rc == ncclInProgress) {
        expect(!ncclCommGetAsyncError(me.comm, &rc));
        sched_yield();
    }
    if (strstr(ncclGetLastError(me.comm), text)) return;
    fprintf(stderr, "the failure does not have \"%s\"\n", text);
    give_up("the reason", __LINE__);
}

static void begin_to_fail(struct place *out, struct place *in)
{
    allocate(out, GPU_DEVICE, LARGE);
    allocate(in, GPU_DEVICE, LARGE);
    exchange(out, in, LARGE, 1);
}

/* Nothing may still be registered, and the memory may be freed. */
static void end_failed(const struct place *out, const struct place *in)
{
    expect(!ncclCommAbort(me.comm));
    me.comm = NULL;
    expect(me.counts->ended == registrations());
    release(out);
    release(in);
}

/* The net of rank 1 stops in the middle of a message, and rank 0 gives up, with receives posted. */
static void aborted(void)
{
    struct place out, in;

    begin_to_fail(&out, &in);
    const unsigned long before = me.counts->recvs;
    if (me.rank) {
        expect(!ncclSend(pointer(&out), LARGE, ncclUint8, 0, me.comm, me.stream));
        expect_failure("rank 0");
    } else {
        expect(!ncclRecv(pointer(&in), LARGE, ncclUint8, 1, me.comm, me.stream));
        while (me.counts->recvs == before) sched_yield();
    }
    end_failed(&out, &in);
    expect(!cu->cuStreamSynchronize(me.stream));
}

/* Rank 1 is killed by the net in the middle of a message that it sends, or receives. */
static void killed(void)
{
    const bool sends = !*setting("TEST_RECEIVES");
    struct place out, in;

    begin_to_fail(&out, &in);
    const ncclResult_t rc = (me.rank == 1) == sends
                                ? ncclSend(pointer(&out), LARGE, ncclUint8, 1 - me.rank, me.comm, me.stream)
                                : ncclRecv(pointer(&in), LARGE, ncclUint8, 1 - me.rank, me.comm, me.stream);
    expect(!rc || (!me.rank && rc == ncclRemoteError)); /* the death may be known before */
    expect(!cu->cuStreamSynchronize(me.stream));
    expect_failure("rank 1");
    end_failed(&out, &in);
}

static const struct part {
    const char *name;
    void (*play)(void);
} parts[] = {
    {"sizes", sizes}, {"kinds", kinds}, {"reuse", reuse},     {"graphs", graphs},
    {"all", all},     {"order", order}, {"aborted", aborted}, {"killed", killed},
};

/* ---- processes ---- */

static bool over_verbs(void)
{
    return !strcmp(setting("NCCL_NET"), "IB");
}

static const struct gpu_net_counts *find_counts(void)
{
    static const struct gpu_net_counts none;
    void *plugin = dlopen(setting("NCCL_NET_PLUGIN"), RTLD_NOW | RTLD_NOLOAD);

    if (over_verbs()) return &none;
    return plugin ? dlsym(plugin, "gpu_net_counts") : NULL;
}

static void join(const char *hex)
{
    ncclUniqueId id;

    expect(!kl_bootstrap_id_parse(hex, &id));
    expect(!kl_cuda_driver(&cu));
    expect(!kl_cuda_context_of(me.rank % cu->devices, NULL, 0, &me.context));
    expect(!kl_cuda_enter(me.context));
    expect(!cu->cuStreamCreateWithPriority(&me.stream, KL_CU_STREAM_NON_BLOCKING, 0));
    expect(!ncclCommInitRank(&me.comm, me.n, id, me.rank));
    expect(me.counts = find_counts());
    me.counted = !over_verbs();
}

/* The communicator's end gives all registrations back. */
static void leave(void)
{
    if (!me.comm) return;
    expect(!ncclCommFinalize(me.comm));
    expect(!ncclCommDestroy(me.comm));
    expect(me.counts->ended == registrations());
}

/* NAME RANK RANKS HOSTS ID */
static int play(char **argv)
{
    me.rank = atoi(argv[2]);
    me.n = atoi(argv[3]);
    me.hosts = atoi(argv[4]);
    if (prctl(PR_SET_PDEATHSIG, SIGKILL)) return 1;
    join(argv[5]);
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!strcmp(parts[i].name, argv[1])) {
            parts[i].play();
            leave();
            return 0;
        }
    return 1;
}

static bool verbs; /* the net of all jobs */

/* A part, for ranks of hosts; settings are NAME=VALUE, or 1:NAME=VALUE of one rank. */
struct job {
    const char *part;
    int n, hosts;
    const char *settings[SETTINGS];
};

static void put_settings(const struct job *j, int rank)
{
    char host[32];

    snprintf(host, sizeof host, "host%d", rank * j->hosts / j->n);
    setenv("NCCL_HOSTID", host, 1);
    setenv("NCCL_NET_GDR_LEVEL", "SYS", 1); /* GPUs and NICs of the stand-in are behind one CPU */
    setenv("NCCL_NET_PLUGIN", verbs ? "none" : GPU_NET, 1);
    if (verbs) setenv("NCCL_NET", "IB", 1);
    if (verbs) setenv("NCCL_IBVERBS_LIB", VERBS, 1);
    for (int i = 0; i < SETTINGS && j->settings[i]; i++) {
        const char *s = j->settings[i];
        if (s[1] == ':' && s[0] - '0' != rank) continue;
        putenv((char *)(uintptr_t)(s[1] == ':' ? s + 2 : s));
    }
}

static pid_t start(const struct job *j, int rank, const ncclUniqueId *id)
{
    char hex[2 * NCCL_UNIQUE_ID_BYTES + 1], number[3][16];
    const pid_t child = fork();

    if (child) return child;
    kl_bootstrap_id_format(id, hex);
    snprintf(number[0], 16, "%d", rank);
    snprintf(number[1], 16, "%d", j->n);
    snprintf(number[2], 16, "%d", j->hosts);
    put_settings(j, rank);
    execl("/proc/self/exe", "gpu_rdma_test", j->part, number[0], number[1], number[2], hex, (char *)NULL);
    _exit(99);
}

/* `killed`: the rank that is, -1: none. */
static void run(const struct job *j, int killed)
{
    ncclUniqueId id;
    pid_t child[RANKS];
    int status;

    assert_int_equal(ncclGetUniqueId(&id), ncclSuccess);
    for (int r = 0; r < j->n; r++) child[r] = start(j, r, &id);
    for (int r = 0; r < j->n; r++) {
        assert_int_equal(waitpid(child[r], &status, 0), child[r]);
        if (r == killed)
            assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        else
            assert_true(WIFEXITED(status) && !WEXITSTATUS(status));
    }
}

#define RUN(part, n, hosts, ...) run(&(struct job){part, n, hosts, {__VA_ARGS__}}, -1)

/* ---- tests ---- */

/* Does a file have this text? */
static bool has_text(const char *file, const char *text)
{
    FILE *f = fopen(file, "r");
    char line[2048];
    bool found = false;

    while (f && !found && fgets(line, sizeof line, f)) found = strstr(line, text);
    if (f) fclose(f);
    return found;
}

static void each_size_goes_its_way(void **state)
{
    (void)state;
    RUN("sizes", 2, 2, "GPU_NET=dmabuf");
    RUN("sizes", 2, 2, "GPU_NET=cuda");
    RUN("sizes", 2, 2, "GPU_NET=none");
}

static void each_kind_of_memory_goes_its_way(void **state)
{
    (void)state;
    RUN("kinds", 2, 2, "GPU_NET=dmabuf");
    RUN("kinds", 2, 2, "GPU_NET=cuda");
    RUN("kinds", 2, 2, "GPU_NET=both");
}

static void settings_count(void **state)
{
    (void)state;
    RUN("kinds", 2, 2, "GPU_NET=both", "NCCL_DMABUF_ENABLE=0");
    RUN("sizes", 2, 2, "GPU_NET=both", "NCCL_NET_GDR_LEVEL=PXB");
    RUN("sizes", 2, 2, "GPU_NET=both", "NCCL_NET_GDR_READ=0");
    RUN("sizes", 2, 2, "GPU_NET=both", "KOLO_CUDA_RDMA=1048577");
}

static void sides_may_differ(void **state)
{
    (void)state;
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "1:KOLO_CUDA_RDMA=1073741824");
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "0:KOLO_CUDA_RDMA=1048577");
    RUN("sizes", 2, 2, "0:GPU_NET=dmabuf", "1:GPU_NET=cuda");
    RUN("sizes", 2, 2, "0:GPU_NET=none", "1:GPU_NET=both");
}

static void data_are_flushed_where_needed(void **state)
{
    (void)state;
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "NCCL_NET_FORCE_FLUSH=1");
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "GPU_NET_FLUSH=always");
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "GPU_NET_FLUSH=0", "NCCL_NET_FORCE_FLUSH=1"); /* by CUDA */
}

static void freed_memory_is_not_confused(void **state)
{
    (void)state;
    RUN("reuse", 2, 2, "GPU_NET=dmabuf");
}

static void streams_keep_their_order_and_graphs_are_staged(void **state)
{
    (void)state;
    RUN("order", 2, 2, "GPU_NET=dmabuf");
    RUN("graphs", 2, 2, "GPU_NET=both");
}

static void all_ranks_exchange(void **state)
{
    (void)state;
    RUN("all", 3, 3, "GPU_NET=dmabuf");
    RUN("all", 6, 3, "GPU_NET=cuda");
}

static void data_for_other_rails_are_relayed(void **state)
{
    char name[64], setting[128];

    (void)state;
    snprintf(name, sizeof name, "gpu_rdma_test.%d.log", (int)getpid());
    snprintf(setting, sizeof setting, "0:NCCL_DEBUG_FILE=%s", name);
    RUN("all", 4, 2, "GPU_NET=dmabuf", "TEST_RAILS=1", "EXAMPLE_NET_DEVICES=2", "NCCL_P2P_PXN_LEVEL=2",
        "NCCL_TOPO_FILE=tests/data/topologies/synthetic/h100-rail-2gpu-2nic-400g.xml", "NCCL_DEBUG=INFO", setting);
    assert_true(has_text(name, "0[0] -> 2[0] [send] via NET/GPUNet/0/GDRDMA"));
    assert_true(has_text(name, "0[0] -> 3[1] [send] via NET/GPUNet/1(1)/PXN"));
    assert_false(has_text(name, "/PXN/GDRDMA"));
    remove(name);
}

static void an_abort_ends_messages(void **state)
{
    (void)state;
    RUN("aborted", 2, 2, "GPU_NET=dmabuf", "1:GPU_NET_STOP=7000000");
}

static void a_killed_process_is_named(void **state)
{
    (void)state;
    run(&(struct job){"killed", 2, 2, {"GPU_NET=dmabuf", "1:GPU_NET_KILL=7000000"}}, 1);
    run(&(struct job){"killed", 2, 2, {"GPU_NET=dmabuf", "1:GPU_NET_KILL=7000000", "TEST_RECEIVES=1"}}, 1);
}

static void the_log_names_the_way(void **state)
{
    char name[64], setting[128];

    (void)state;
    for (int direct = 0; direct < 2; direct++) {
        snprintf(name, sizeof name, "gpu_rdma_test.%d.log", (int)getpid());
        snprintf(setting, sizeof setting, "0:NCCL_DEBUG_FILE=%s", name);
        RUN("sizes", 2, 2, direct ? "GPU_NET=dmabuf" : "GPU_NET=none", "NCCL_DEBUG=INFO", setting);
        assert_true(has_text(name, "[send] via NET/GPUNet/0"));
        assert_int_equal(has_text(name, "[send] via NET/GPUNet/0/GDRDMA"), direct);
        assert_int_equal(has_text(name, "[receive] via NET/GPUNet/0/GDRDMA"), direct);
        remove(name);
    }
}

static void cards_move_messages(void **state)
{
    (void)state;
    RUN("sizes", 2, 2, "GPU_NET=dmabuf");
    RUN("sizes", 2, 2, "GPU_NET=dmabuf", "KOLO_VERBS_MAX_MSG=1048500"); /* with small ends of writes */
    RUN("kinds", 2, 2, "GPU_NET=dmabuf");
    RUN("reuse", 2, 2, "GPU_NET=dmabuf");
    RUN("order", 2, 2, "GPU_NET=dmabuf", "NCCL_IB_QPS_PER_CONNECTION=2");
    RUN("all", 3, 3, "GPU_NET=dmabuf");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest of_verbs[] = {cmocka_unit_test(cards_move_messages)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_size_goes_its_way),
        cmocka_unit_test(each_kind_of_memory_goes_its_way),
        cmocka_unit_test(settings_count),
        cmocka_unit_test(sides_may_differ),
        cmocka_unit_test(data_are_flushed_where_needed),
        cmocka_unit_test(freed_memory_is_not_confused),
        cmocka_unit_test(streams_keep_their_order_and_graphs_are_staged),
        cmocka_unit_test(all_ranks_exchange),
        cmocka_unit_test(data_for_other_rails_are_relayed),
        cmocka_unit_test(an_abort_ends_messages),
        cmocka_unit_test(a_killed_process_is_named),
        cmocka_unit_test(the_log_names_the_way),
    };

    alarm(kolo_test_hang_s());
    setenv("KOLO_DEVICES", "cuda", 1);
    if (argc == 6) return play(argv);
    if (kl_cuda_driver(&cu)) {
        printf("skipped: %s\n", kl_error_text());
        return 77;
    }
    verbs = argc == 2 && !strcmp(argv[1], "verbs");
    if (verbs) return cmocka_run_group_tests(of_verbs, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
