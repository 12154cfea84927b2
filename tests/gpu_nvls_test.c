/* SPDX-License-Identifier: Apache-2.0 */
/**
 * gpu_nvls_test.c - collectives over multicast objects (KOLO_CUDA_MOVER=nvls): results, sizes around a chunk's, aborts, and
 * the reasons for which operations go another way.
 *
 * Results are compared bit by bit with host devices, and sums of floats with the sum in double: equal where all sums are
 * exact, else within a bound of the rounding of any order. Ranks are in processes of this program, whose logs say that the
 * operations went this way.
 *
 * gpu_nvls_test                  ranks of one process, and the reasons
 * gpu_nvls_test processes        ranks of several
 * gpu_nvls_test RANKS FROM TO TURN SHARES LOG ID
 *                                such a process, with the ranks [FROM, TO); TURN % 2: in threads
 */
#include "bootstrap/bootstrap.h"
#include "coll/gpu/nvls_job.h"
#include "device/cuda/context.h"
#include "device/device.h"
#include "device/host/redop.h"
#include "include/kolo.h"
#include "include/nccl.h"
#include "tests/gpu_call.h"
#include "tests/gpu_data.h"
#include "tests/hang.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { RANKS = 8, ARENA = 700000, GUARD = 64, ARGUMENTS = 8 };

/* ---- cases ---- */

struct tcase {
    enum func func;
    ncclDataType_t type;
    int op;
    size_t count, offset; /* elements; bytes of the buffers from 256-byte alignment */
    bool in_place, exact; /* exact: the floats are small integers */
    int root;
    unsigned seed;
};

enum { GRID = FUNCS * ncclNumTypes * OPS, SIZES = 5, CASES = GRID + FUNCS * SIZES };

static bool reduces(const struct tcase *c)
{
    return c->func <= REDUCE_SCATTER;
}

static bool scales(const struct tcase *c)
{
    return c->op == ncclAvg || c->op == PREMUL_HOST || c->op == PREMUL_DEVICE;
}

/* In an order of the switch's. */
static bool sums_floats(const struct tcase *c)
{
    return reduces(c) && c->type >= ncclFloat16 && (c->op == ncclSum || scales(c));
}

static bool exists(const struct tcase *c)
{
    if (!reduces(c)) return c->op == 0 && c->type % 3 == 0;
    return c->op < BITS || c->type < ncclFloat16;
}

/* The kernels of kernels.h:KL_NVLS_KERNELS. */
static bool has_nvls(const struct tcase *c)
{
    const bool wide = c->type == ncclFloat32 || c->type == ncclFloat64;

    if (!reduces(c) || c->op >= BITS) return true;
    if (c->op == ncclProd || c->type == ncclFloat8e4m3 || c->type == ncclFloat8e5m2) return false;
    if (c->type >= ncclFloat16) return sums_floats(c) || wide;
    return c->type != ncclInt8 && c->type != ncclUint8;
}

/* Bytes of a part that a block's chunk has at most. */
static size_t chunk_of(enum func func, int nranks)
{
    const size_t room = func == ALL_REDUCE ? KL_NVLS_ROOM / 2 : KL_NVLS_ROOM;
    const size_t parts = func == REDUCE_SCATTER || func == ALL_GATHER ? (size_t)nranks : 1;

    return room / parts / KL_NVLS_UNIT * KL_NVLS_UNIT;
}

static struct tcase size_case(unsigned i, int nranks)
{
    static const struct {
        size_t chunks;
        int more;
    } sizes[SIZES] = {{1, -1}, {1, 0}, {2, 1}, {4, 0}, {5, 3}}; /* of two blocks: up to three chunks each */
    struct tcase c = {.func = (enum func)(i % FUNCS), .type = ncclUint8, .seed = i, .root = (int)i % nranks};

    c.op = reduces(&c) ? BITS + KL_BITS_XOR : 0;
    c.offset = i % 3 == 0 ? 0 : i % 3 == 1 ? 4 : 3;
    c.in_place = i % 4 == 3;
    c.count = chunk_of(c.func, nranks) * sizes[i / FUNCS].chunks + (size_t)sizes[i / FUNCS].more;
    return c;
}

static struct tcase case_of(unsigned i, int nranks)
{
    static const size_t counts[] = {1021, 1, 64, 7, 5003, 2048};
    struct tcase c = {.func = (enum func)(i % FUNCS),
                      .type = (ncclDataType_t)(i / FUNCS % ncclNumTypes),
                      .op = (int)(i / FUNCS / ncclNumTypes),
                      .seed = i};
    const size_t size = kl_type_bytes(c.type);

    if (i >= GRID) return size_case(i - GRID, nranks);
    c.count = counts[gpu_mix(i) % 6];
    c.offset = i % 4 < 2 ? 0 : i % 4 == 2 ? size : 1;
    c.in_place = i / 7 % 2;
    c.exact = i / 3 % 2;
    c.root = (int)(i % (unsigned)nranks);
    return c;
}

static size_t send_elements(const struct tcase *c, int n)
{
    return c->func == REDUCE_SCATTER ? c->count * (size_t)n : c->count;
}

static size_t recv_elements(const struct tcase *c, int n)
{
    return c->func == ALL_GATHER ? c->count * (size_t)n : c->count;
}

/* ---- floats ---- */

static double number_of(ncclDataType_t type, const unsigned char *at)
{
    uint16_t bits;
    double wide;
    float value;

    switch (type) {
    case ncclFloat64:
        memcpy(&wide, at, sizeof wide);
        return wide;
    case ncclFloat32:
        memcpy(&value, at, sizeof value);
        return (double)value;
    case ncclBfloat16:
        memcpy(&bits, at, sizeof bits);
        memcpy(&value, &(uint32_t){(uint32_t)bits << 16}, sizeof value);
        return (double)value;
    default:
        memcpy(&bits, at, sizeof bits);
        wide = bits & 0x7c00 ? ldexp(0x400 + (bits & 0x3ff), (bits >> 10 & 31) - 25) : ldexp(bits & 0x3ff, -24);
        return bits & 0x8000 ? -wide : wide;
    }
}

static double rounding_of(ncclDataType_t type)
{
    return type == ncclFloat64 ? 0x1p-53 : type == ncclFloat32 ? 0x1p-24 : type == ncclFloat16 ? 0x1p-11 : 0x1p-8;
}

/* Small integers, or numbers between -1 and 1 that have all digits of the type. */
static void put_number(const struct tcase *c, unsigned char *to, uint64_t random)
{
    static const uint16_t halves[] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
    const int small = (int)(random % 17) - 8;
    const double wide = c->exact ? small : (double)(random % 20001 + 1) / 10001 - 1;
    const float value = (float)wide;
    const uint16_t digits = (uint16_t)((random & 0x83ff) | (10 + (random >> 20) % 5) << 10);
    const uint16_t half = c->exact ? (uint16_t)(halves[abs(small)] | (small < 0) << 15) : digits;
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    const uint16_t upper = (uint16_t)(bits >> 16);
    if (c->type == ncclFloat64) memcpy(to, &wide, sizeof wide);
    if (c->type == ncclFloat32) memcpy(to, &value, sizeof value);
    if (c->type == ncclFloat16) memcpy(to, &half, sizeof half);
    if (c->type == ncclBfloat16) memcpy(to, &upper, sizeof upper);
}

static void fill(const struct tcase *c, unsigned char *to, int n, int rank)
{
    const size_t count = send_elements(c, n), size = kl_type_bytes(c->type);

    if (!sums_floats(c) || c->type > ncclBfloat16) gpu_fill(to, count * size, c->seed, rank);
    for (size_t i = 0; i < count && sums_floats(c) && c->type <= ncclBfloat16; i++)
        put_number(c, to + i * size, gpu_mix(c->seed * 977u + (unsigned)rank * 131u + i * 7919u + 1) >> 8);
}

/* ---- results ---- */

static void redop_of(const struct tcase *c, int rank, int n, struct kl_redop *op)
{
    unsigned char scalar[8];

    gpu_factor(c->type, c->seed, rank, scalar);
    if (c->op < ncclNumOps)
        assert_int_equal(kl_redop_init(op, c->type, (ncclRedOp_t)c->op, n), ncclSuccess);
    else if (c->op < BITS)
        assert_int_equal(kl_redop_init_scaled(op, c->type, scalar), ncclSuccess);
    else
        assert_int_equal(kl_redop_init_bits(op, c->type, (enum kl_bits_op)(c->op - BITS)), ncclSuccess);
}

/* A rank's contribution to elements [from, from + count). */
static void contribution(const struct tcase *c, int n, int rank, size_t from, unsigned char *to, struct kl_redop *op)
{
    static _Thread_local unsigned char in[ARENA];
    const size_t size = kl_type_bytes(c->type);

    fill(c, in, n, rank);
    redop_of(c, rank, n, op);
    memcpy(to, in + from * size, c->count * size);
}

static void reduce_on_host(const struct tcase *c, int n, size_t from, unsigned char *to)
{
    static _Thread_local unsigned char own[ARENA];
    const size_t bytes = c->count * kl_type_bytes(c->type);
    struct kl_redop op;

    for (int r = 0; r < n; r++) {
        contribution(c, n, r, from, own, &op);
        if (r)
            op.combine(&op, to, to, own, c->count);
        else if (op.first)
            op.first(&op, to, own, c->count);
        else
            memcpy(to, own, bytes);
    }
    if (op.last) op.last(&op, to, c->count);
}

/* Is it the sum, within the rounding of any order? Contributions are rounded before. */
static bool is_sum(const struct tcase *c, int n, size_t from, const unsigned char *got)
{
    static _Thread_local unsigned char own[ARENA];
    const size_t size = kl_type_bytes(c->type);
    double *sum = calloc(c->count, sizeof *sum), *magnitude = calloc(c->count, sizeof *magnitude);
    struct kl_redop op;
    bool right = sum && magnitude;

    for (int r = 0; r < n && right; r++) {
        contribution(c, n, r, from, own, &op);
        if (op.first) op.first(&op, own, own, c->count);
        for (size_t i = 0; i < c->count; i++) {
            const double x = number_of(c->type, own + i * size);
            sum[i] += x;
            magnitude[i] += fabs(x);
        }
    }
    for (size_t i = 0; i < c->count && right; i++) {
        const double bound = c->exact && !scales(c) ? 0 : n * rounding_of(c->type) * magnitude[i];
        right = fabs(number_of(c->type, got + i * size) - sum[i]) <= bound;
    }
    free(sum);
    free(magnitude);
    return right;
}

/* The rank's results in `got`. */
static bool is_right(const struct tcase *c, int n, int rank, const unsigned char *got)
{
    static _Thread_local unsigned char want[ARENA];
    const size_t bytes = c->count * kl_type_bytes(c->type),
                 from = c->func == REDUCE_SCATTER ? c->count * (size_t)rank : 0;

    if (c->func == REDUCE && c->root != rank) return true;
    if (sums_floats(c) && has_nvls(c)) return is_sum(c, n, from, got);
    if (reduces(c)) reduce_on_host(c, n, from, want);
    if (c->func == BROADCAST) fill(c, want, n, c->root);
    for (int r = 0; c->func == ALL_GATHER && r < n; r++) fill(c, want + (size_t)r * bytes, n, r);
    return !memcmp(got, want, recv_elements(c, n) * kl_type_bytes(c->type));
}

/* ---- ranks ---- */

static const struct kl_cuda_driver *cu;

struct job;

struct rank {
    struct job *job;
    int rank;
    const struct kl_cuda_context *context;
    ncclComm_t comm;
    kl_cu_stream stream;
    uint64_t send, recv, scalar;
    unsigned char data[ARENA + 256], factor[8];
    pthread_t thread;
};

struct job {
    int n, from, to, turn, shares;
    ncclUniqueId id;
    struct rank rank[RANKS];
};

static void enter(const struct rank *r)
{
    assert_int_equal(kl_cuda_enter(r->context), ncclSuccess);
}

static void leave(const struct rank *r)
{
    kl_cuda_leave(r->context);
}

static void start_rank(struct job *j, int rank)
{
    struct rank *r = &j->rank[rank];

    r->job = j;
    r->rank = rank;
    assert_int_equal(kl_cuda_context_of(rank, NULL, 0, &r->context), ncclSuccess);
    enter(r);
    assert_int_equal(cu->cuMemAlloc(&r->send, ARENA + 256), 0);
    assert_int_equal(cu->cuMemAlloc(&r->recv, ARENA + 256), 0);
    assert_int_equal(cu->cuMemAlloc(&r->scalar, 256), 0);
    assert_int_equal(cu->cuStreamCreateWithPriority(&r->stream, KL_CU_STREAM_NON_BLOCKING, 0), 0);
    leave(r);
}

static void end_rank(struct rank *r)
{
    enter(r);
    if (r->comm) assert_int_equal(ncclCommDestroy(r->comm), ncclSuccess);
    assert_int_equal(cu->cuStreamDestroy(r->stream), 0);
    assert_int_equal(cu->cuMemFree(r->send), 0);
    assert_int_equal(cu->cuMemFree(r->recv), 0);
    assert_int_equal(cu->cuMemFree(r->scalar), 0);
    leave(r);
}

static void join(struct rank *r)
{
    enter(r);
    if (ncclCommInitRank(&r->comm, r->job->n, r->job->id, r->rank))
        fail_msg("rank %d: %s", r->rank, ncclGetLastError(NULL));
    leave(r);
}

static void copy(struct rank *r, uint64_t to, uint64_t from, size_t bytes)
{
    assert_int_equal(cu->cuMemcpyAsync(to, from, bytes, r->stream), 0);
    assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
}

static uint64_t host(const void *ptr)
{
    return (uint64_t)(uintptr_t)ptr;
}

static void *address(uint64_t at)
{
    return (void *)(uintptr_t)at;
}

/* ---- one operation of a rank ---- */

static uint64_t send_of(const struct rank *r, const struct tcase *c)
{
    const uint64_t behind = c->count * (uint64_t)r->rank * kl_type_bytes(c->type);

    if (c->in_place && c->func == ALL_GATHER) return r->recv + GUARD + c->offset + behind;
    return r->send + GUARD + c->offset;
}

static uint64_t recv_of(const struct rank *r, const struct tcase *c)
{
    const uint64_t behind = c->count * (uint64_t)r->rank * kl_type_bytes(c->type);

    if (!c->in_place || c->func == ALL_GATHER) return r->recv + GUARD + c->offset;
    return r->send + GUARD + c->offset + (c->func == REDUCE_SCATTER ? behind : 0);
}

static void prepare(struct rank *r, const struct tcase *c)
{
    const size_t size = kl_type_bytes(c->type);

    enter(r);
    assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
    memset(r->data, 0xa5, sizeof r->data);
    copy(r, r->recv, host(r->data), 2 * GUARD + 16 + recv_elements(c, r->job->n) * size);
    fill(c, r->data, r->job->n, r->rank);
    copy(r, send_of(r, c), host(r->data), send_elements(c, r->job->n) * size);
    gpu_factor(c->type, c->seed, r->rank, r->factor);
    copy(r, r->scalar, host(r->factor), 8);
    leave(r);
}

static void issue(struct rank *r, const struct tcase *c)
{
    enter(r);
    const ncclRedOp_t op = gpu_op(c->op, c->type, r->factor, address(r->scalar), r->comm);
    const ncclResult_t rc = gpu_call(c->func, address(send_of(r, c)), address(recv_of(r, c)), c->count, c->type, op,
                                     c->root, r->comm, r->stream);
    if (rc) fail_msg("function %d of rank %d: %s", (int)c->func, r->rank, ncclGetLastError(r->comm));
    gpu_drop_op(c->op, op, r->comm);
    leave(r);
}

static void verify(struct rank *r, const struct tcase *c)
{
    const size_t bytes = recv_elements(c, r->job->n) * kl_type_bytes(c->type);

    enter(r);
    copy(r, host(r->data), recv_of(r, c) - GUARD / 2, bytes + GUARD);
    leave(r);
    const char *problem = is_right(c, r->job->n, r->rank, r->data + GUARD / 2) ? NULL : "a result is wrong";
    for (size_t i = 0; !c->in_place && i < GUARD / 2; i++)
        if (r->data[i] != 0xa5 || r->data[GUARD / 2 + bytes + i] != 0xa5) problem = "it wrote outside of its buffer";
    if (problem)
        fail_msg("%d ranks: function %d type %s op %d count %zu offset %zu%s%s root %d: rank %d: %s", r->job->n,
                 (int)c->func, kl_type_name(c->type), c->op, c->count, c->offset, c->in_place ? " in place" : "",
                 c->exact ? " exact" : "", c->root, r->rank, problem);
}

/* ---- jobs ---- */

static bool next_case(const struct job *j, unsigned *i, struct tcase *c)
{
    for (; *i < CASES; (*i)++) {
        if (*i < GRID && (int)(gpu_mix(*i) % (unsigned)j->shares) != j->turn % j->shares) continue;
        *c = case_of(*i, j->n);
        if (*i >= GRID || exists(c)) return true;
    }
    return false;
}

static void *run_thread(void *arg)
{
    struct rank *r = arg;
    struct tcase c;

    join(r);
    for (unsigned i = 0; next_case(r->job, &i, &c); i++) {
        prepare(r, &c);
        issue(r, &c);
        verify(r, &c);
    }
    return NULL;
}

static void run_threads(struct job *j)
{
    for (int r = j->from; r < j->to; r++)
        assert_int_equal(pthread_create(&j->rank[r].thread, NULL, run_thread, &j->rank[r]), 0);
    for (int r = j->from; r < j->to; r++) pthread_join(j->rank[r].thread, NULL);
}

static void join_all(struct job *j)
{
    ncclGroupStart();
    for (int r = j->from; r < j->to; r++) join(&j->rank[r]);
    if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
}

static void run_one_thread(struct job *j)
{
    struct tcase c;

    join_all(j);
    for (unsigned i = 0; next_case(j, &i, &c); i++) {
        for (int r = j->from; r < j->to; r++) prepare(&j->rank[r], &c);
        ncclGroupStart();
        for (int r = j->from; r < j->to; r++) issue(&j->rank[r], &c);
        if (ncclGroupEnd()) fail_msg("%s", ncclGetLastError(NULL));
        for (int r = j->from; r < j->to; r++) verify(&j->rank[r], &c);
    }
}

static struct job *of_process;

/* Says how many operations there were, and how many of them have a kernel for switches. */
static void ranks_of_a_process(void **state)
{
    struct job *j = of_process;
    struct tcase c;
    unsigned all = 0, by_switches = 0;

    (void)state;
    for (int r = j->from; r < j->to; r++) start_rank(j, r);
    if (j->turn % 2)
        run_threads(j);
    else
        run_one_thread(j);
    for (int r = j->from; r < j->to; r++) end_rank(&j->rank[r]);
    for (unsigned i = 0; next_case(j, &i, &c); i++, all++) by_switches += has_nvls(&c);
    printf("done %u %u\n", all, by_switches);
}

/* ---- processes ---- */

struct part {
    FILE *out;
    char log[32];
    unsigned all, by_switches; /* operations */
};

static void start(struct part *p, const struct job *j, int from, int to)
{
    char program[512], command[1200], hex[2 * NCCL_UNIQUE_ID_BYTES + 1];
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(p->log, sizeof p->log, "/tmp/gpu_nvls_XXXXXX");
    const int fd = mkstemp(p->log);
    assert_true(fd >= 0);
    close(fd);
    kl_bootstrap_id_format(&j->id, hex);
    snprintf(command, sizeof command, "exec '%s' %d %d %d %d %d %s %s", program, j->n, from, to, j->turn, j->shares,
             p->log, hex);
    p->out = popen(command, "r");
    assert_non_null(p->out);
}

static void await(struct part *p)
{
    char line[1024];

    while (fgets(line, sizeof line, p->out)) (void)sscanf(line, "done %u %u", &p->all, &p->by_switches);
    assert_int_equal(pclose(p->out), 0);
    assert_true(p->all > 0);
}

static unsigned count_in(const struct part *p, const char *text)
{
    FILE *from = fopen(p->log, "r");
    unsigned found = 0;
    char line[1024];

    while (from && fgets(line, sizeof line, from)) found += strstr(line, text) != NULL;
    if (from) fclose(from);
    return found;
}

static const char by_nvls[] = "by nvls, over a multicast object";

/* In processes that begin with these ranks; `first[processes]` is the number of ranks. Returns the operations by switches. */
static unsigned run_job(const int *first, int processes, int turn, int shares)
{
    struct job *j = calloc(1, sizeof *j);
    struct part part[RANKS] = {0};

    assert_non_null(j);
    j->n = first[processes];
    j->turn = turn;
    j->shares = shares;
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    for (int p = 0; p < processes; p++) start(&part[p], j, first[p], first[p + 1]);
    for (int p = 0; p < processes; p++) await(&part[p]);
    for (int p = 0; p < processes; p++) {
        assert_true(part[p].by_switches > 0);
        assert_int_equal(count_in(&part[p], by_nvls), part[p].by_switches);
        assert_int_equal(count_in(&part[p], "no NVLS: switches do not have the operator for the type"),
                         part[p].all - part[p].by_switches);
        unlink(part[p].log);
    }
    const unsigned operations = part[0].by_switches;
    free(j);
    return operations;
}

static void results_of_a_process(void **state)
{
    static const int ranks[] = {2, 3, 4, 8};
    unsigned operations = 0;

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int turn = 0; turn < 2; turn++)
            if (ranks[i] <= cu->devices) operations += run_job((const int[]){0, ranks[i]}, 1, 2 * i + turn, 4);
    printf("%u operations over multicast objects\n", operations);
}

static void results_of_processes(void **state)
{
    static const struct {
        int processes, first[RANKS + 1];
    } jobs[] = {{2, {0, 1, 2}}, {3, {0, 1, 2, 3}}, {4, {0, 1, 2, 3, 4}}, {2, {0, 1, 3}}, {3, {0, 3, 4, 8}}};
    unsigned operations = 0;

    (void)state;
    for (int i = 0; i < 5; i++)
        if (jobs[i].first[jobs[i].processes] <= cu->devices)
            operations += run_job(jobs[i].first, jobs[i].processes, i, 8);
    printf("%u operations over multicast objects between processes\n", operations);
}

/* ---- another way ---- */

/* Every process says why, of each operation; results are right. */
static void goes_another_way(const char *name, const char *value, const char *why, int processes)
{
    struct job *j = calloc(1, sizeof *j);
    struct part part[2] = {0};
    const char *before = getenv(name);
    char *kept = before ? strdup(before) : NULL;

    assert_non_null(j);
    j->n = 2;
    j->shares = 60;
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    setenv(name, value, 1);
    for (int p = 0; p < processes; p++) start(&part[p], j, p, processes == 1 ? 2 : p + 1);
    for (int p = 0; p < processes; p++) {
        await(&part[p]);
        assert_int_equal(count_in(&part[p], by_nvls), 0);
        if (count_in(&part[p], why) < part[p].all) fail_msg("%s=%s: the log does not say \"%s\"", name, value, why);
        unlink(part[p].log);
    }
    if (kept)
        setenv(name, kept, 1);
    else
        unsetenv(name);
    free(kept);
    free(j);
}

static void kernels_that_may_not_wait(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++)
        goes_another_way("KOLO_CUDA_SPIN", "0", "no NVLS: kernels of the GPUs do not wait for each other", n);
}

static void gpus_without_p2p(void **state)
{
    (void)state;
    goes_another_way("KOLO_CUDA_P2P", "0", "no NVLS: there is no P2P between the GPUs", 2);
}

static void gpus_without_multicast(void **state)
{
    (void)state;
    for (int n = 1; n <= 2; n++) {
        goes_another_way("KOLO_CUDA_MULTICAST", "0", "has no multicast objects", n);
        goes_another_way("KOLO_CUDA_MULTICAST", "unready", "failed with CUDA_ERROR_SYSTEM_NOT_READY (802)", n);
    }
}

/* ---- aborts ---- */

enum { PAGE = 4096 };

static uint64_t hold(const struct rank *r, _Atomic uint32_t *word)
{
    uint64_t at = 0;

    enter(r);
    assert_int_equal(cu->cuMemHostRegister((void *)word, PAGE, KL_CU_HOST_PORTABLE_MAPPED), 0);
    assert_int_equal(cu->cuMemHostGetDevicePointer(&at, (void *)word, 0), 0);
    assert_int_equal(cu->cuStreamWaitValue32(r->stream, at, 1, KL_CU_WAIT_EQUAL), 0);
    leave(r);
    return at;
}

static bool is_idle(const struct rank *r)
{
    return kl_cuda_stream_is_idle(r->context, r->stream);
}

static void wait_for(const struct rank *r)
{
    enter(r);
    assert_int_equal(cu->cuStreamSynchronize(r->stream), 0);
    leave(r);
}

/* The last rank's stream does not come to the operation: kernels of the others wait, until one of them aborts. */
static void an_abort_ends_kernels_that_wait(void **state)
{
    enum { N = 3, LATE = N - 1 };
    struct job *j = calloc(1, sizeof *j);
    _Atomic uint32_t *word = aligned_alloc(PAGE, PAGE);

    (void)state;
    if (cu->devices < N) skip();
    assert_non_null(j);
    assert_non_null(word);
    memset((void *)word, 0, PAGE);
    j->n = j->to = N;
    assert_int_equal(ncclGetUniqueId(&j->id), ncclSuccess);
    for (int r = 0; r < N; r++) start_rank(j, r);
    join_all(j);
    hold(&j->rank[LATE], word);
    ncclGroupStart();
    for (int r = 0; r < N; r++)
        assert_int_equal(ncclAllReduce(address(j->rank[r].send), address(j->rank[r].recv), 1000, ncclFloat, ncclSum,
                                       j->rank[r].comm, j->rank[r].stream),
                         ncclSuccess);
    assert_int_equal(ncclGroupEnd(), ncclSuccess);
    assert_false(is_idle(&j->rank[0]));
    assert_int_equal(ncclCommAbort(j->rank[0].comm), ncclSuccess);
    for (int r = 0; r < LATE; r++) wait_for(&j->rank[r]);
    assert_false(is_idle(&j->rank[LATE]));
    atomic_store_explicit(word, 1, memory_order_release);
    wait_for(&j->rank[LATE]);
    for (int r = 1; r < N; r++) assert_int_equal(ncclCommAbort(j->rank[r].comm), ncclSuccess);
    for (int r = 0; r < N; r++) j->rank[r].comm = NULL;
    enter(&j->rank[0]);
    assert_int_equal(cu->cuMemHostUnregister((void *)word), 0);
    leave(&j->rank[0]);
    for (int r = 0; r < N; r++) end_rank(&j->rank[r]);
    free((void *)word);
    free(j);
}

/* ---- main ---- */

static int setup(void)
{
    const struct kl_device_kind *kind;

    setenv("KOLO_DEVICES", "cuda", 1);
    setenv("KOLO_CUDA_MOVER", "nvls", 1);
    setenv("KOLO_CUDA_SPIN", "1", 0);
    setenv("KOLO_CUDA_BLOCKS", "2", 1); /* so that operations have several chunks */
    if (!kl_cuda_driver(&cu) && !kl_devices(&kind)) return kind == &kl_cuda_devices && cu->devices >= 2 ? 0 : 77;
    printf("skipped: %s\n", kl_error_text());
    return 77;
}

static int be_ranks(char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_of_a_process)};
    struct job *j = of_process = calloc(1, sizeof *j);

    setenv("NCCL_DEBUG", "INFO", 1);
    setenv("NCCL_DEBUG_SUBSYS", "TUNING", 1);
    setenv("NCCL_DEBUG_FILE", argv[6], 1);
    if (!j || setup()) return 1;
    int *const numbers[] = {&j->n, &j->from, &j->to, &j->turn, &j->shares};
    for (int i = 0; i < 5; i++) *numbers[i] = (int)strtol(argv[i + 1], NULL, 10);
    if (kl_bootstrap_id_parse(argv[7], &j->id)) return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_abort_ends_kernels_that_wait),
        cmocka_unit_test(kernels_that_may_not_wait),
        cmocka_unit_test(gpus_without_p2p),
        cmocka_unit_test(gpus_without_multicast),
        cmocka_unit_test(results_of_a_process),
    };
    const struct CMUnitTest processes[] = {cmocka_unit_test(results_of_processes)};

    alarm(kolo_test_hang_s());
    if (argc == ARGUMENTS) return be_ranks(argv);
    const int rc = setup();
    if (rc) return rc;
    return argc == 2 && !strcmp(argv[1], "processes") ? cmocka_run_group_tests(processes, NULL, NULL)
                                                      : cmocka_run_group_tests(tests, NULL, NULL);
}
