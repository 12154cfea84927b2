/* SPDX-License-Identifier: Apache-2.0 */
/** collnet.c - check 17: two members of a network that reduces, each in its own thread. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "base/clock.h"
#include "device/host/redop.h"
#include "net/plugin/collnet_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MEMBERS = 2, COUNT = 1000, REQUESTS = 4, ALONE_MS = 50, WORD = 8, MISSING_S = 15 };

struct member {
    const struct kl_collnet_library *l;
    struct kl_check_result result;
    int number;
    void *listener, *comm;
    void *handles[MEMBERS];
    unsigned char handle[MEMBERS][KL_NET_HANDLE];
    struct kl_collnet_op op;
    void *late; /* != NULL: begin after a while */
    int made;   /* operations */
};

static void note(struct member *m, const char *call)
{
    snprintf(m->result.call, sizeof m->result.call, "%s", call);
}

/* ---- data: small whole numbers, so that sums and products are exact in all types ---- */

static int number_of(int member, size_t i, int round)
{
    return 1 + (int)((i + (size_t)member * 3 + (size_t)round) % 4);
}

static int expected_of(ncclRedOp_t op, size_t i, int round)
{
    const int a = number_of(0, i, round), b = number_of(1, i, round);

    return op == ncclSum ? a + b : op == ncclProd ? a * b : op == ncclMax ? (a > b ? a : b) : (a < b ? a : b);
}

static void put(void *data, size_t i, ncclDataType_t type, int value)
{
    unsigned char *at = (unsigned char *)data + i * kl_type_bytes(type);
    const int64_t whole = value;
    const double wide = value;
    const float narrow = (float)value;

    if (type == ncclFloat64)
        memcpy(at, &wide, sizeof wide);
    else if (type == ncclFloat32)
        memcpy(at, &narrow, sizeof narrow);
    else
        memcpy(at, &whole, kl_type_bytes(type)); /* little endian */
}

static bool is_at(const void *data, size_t i, ncclDataType_t type, int value)
{
    unsigned char wanted[WORD];

    put(wanted, 0, type, value);
    return !memcmp((const unsigned char *)data + i * kl_type_bytes(type), wanted, kl_type_bytes(type));
}

/* ---- requests ---- */

struct buffers {
    void *from, *to, *from_mr, *to_mr, *request;
};

static bool open_buffers(struct member *m, struct buffers *b, size_t given, size_t got)
{
    *b = (struct buffers){.from = calloc(1, given), .to = calloc(1, got)};
    note(m, "regMr");
    const bool good = b->from && b->to && !m->l->adapter->reg_mr(m->l, m->comm, b->from, given, &b->from_mr) &&
                      !m->l->adapter->reg_mr(m->l, m->comm, b->to, got, &b->to_mr);
    note(m, "");
    return good || kl_check_fails(&m->result, "regMr of member %d failed", m->number);
}

static bool close_buffers(struct member *m, struct buffers *b)
{
    note(m, "deregMr");
    const bool good = !kl_collnet_library_dereg_mr(m->l, m->comm, b->from_mr) &&
                      !kl_collnet_library_dereg_mr(m->l, m->comm, b->to_mr);
    note(m, "");
    free(b->from);
    free(b->to);
    return good || kl_check_fails(&m->result, "deregMr of member %d failed", m->number);
}

static bool finish(struct member *m, struct buffers *b, const char *call)
{
    int done = 0;

    while (!done) {
        note(m, "test");
        const ncclResult_t rc = kl_collnet_library_test(m->l, b->request, &done);
        note(m, "");
        if (rc) return kl_check_fails(&m->result, "test of an %s returned %d", call, (int)rc);
    }
    m->made++;
    return true;
}

static bool look_at(struct member *m, const struct buffers *b, size_t count, size_t first, int round, const char *call)
{
    for (size_t i = 0; i < count; i++)
        if (!is_at(b->to, i, m->op.type, expected_of(m->op.op, first + i, round)))
            return kl_check_fails(&m->result,
                                  "element %zu of an %s (type %d, operation %d, request %d) is wrong at member %d", i,
                                  call, (int)m->op.type, (int)m->op.op, round, m->number);
    return true;
}

/* Several requests are outstanding, and done in their order. */
static bool reduce(struct member *m, size_t n)
{
    const size_t bytes = n * kl_type_bytes(m->op.type);
    struct buffers b[REQUESTS];

    for (int k = 0; k < REQUESTS; k++) {
        if (!open_buffers(m, &b[k], bytes, bytes)) return false;
        for (size_t i = 0; i < n; i++) put(b[k].from, i, m->op.type, number_of(m->number, i, k));
        while (!b[k].request) {
            note(m, "iallreduce");
            const ncclResult_t rc = m->l->adapter->iallreduce(m->l, m->comm, b[k].from, b[k].to, n, m->op, b[k].from_mr,
                                                              b[k].to_mr, &b[k].request);
            note(m, "");
            if (rc) return kl_check_fails(&m->result, "iallreduce returned %d", (int)rc);
        }
    }
    for (int k = 0; k < REQUESTS; k++)
        if (!finish(m, &b[k], "iallreduce") || !look_at(m, &b[k], n, 0, k, "iallreduce") || !close_buffers(m, &b[k]))
            return false;
    return true;
}

static bool gather(struct member *m)
{
    const size_t bytes = COUNT;
    struct buffers b;
    ncclResult_t rc = ncclSuccess;

    if (!kl_collnet_library_has_gather(m->l)) return true;
    if (!open_buffers(m, &b, bytes, MEMBERS * bytes)) return false;
    kl_trial_fill(b.from, bytes, (unsigned)m->number);
    while (!rc && !b.request) {
        note(m, "iallgather");
        rc = kl_collnet_library_gather(m->l, m->comm, b.from, b.from_mr, b.to, b.to_mr, MEMBERS, bytes, &b.request);
        note(m, "");
    }
    if (rc) return kl_check_fails(&m->result, "iallgather returned %d", (int)rc);
    if (!finish(m, &b, "iallgather")) return false;
    for (unsigned i = 0; i < MEMBERS; i++)
        if (!kl_trial_is_filled((char *)b.to + i * bytes, bytes, i))
            return kl_check_fails(&m->result, "part %u of an iallgather is wrong at member %d", i, m->number);
    return close_buffers(m, &b);
}

static bool scatter(struct member *m)
{
    const size_t bytes = COUNT * kl_type_bytes(m->op.type);
    struct buffers b;
    ncclResult_t rc = ncclSuccess;

    if (!kl_collnet_library_has_scatter(m->l)) return true;
    if (!open_buffers(m, &b, MEMBERS * bytes, bytes)) return false;
    for (size_t i = 0; i < MEMBERS * COUNT; i++) put(b.from, i, m->op.type, number_of(m->number, i, 0));
    while (!rc && !b.request) {
        note(m, "ireducescatter");
        rc = kl_collnet_library_scatter(m->l, m->comm, b.from, b.from_mr, b.to, b.to_mr, MEMBERS, bytes, m->op,
                                        &b.request);
        note(m, "");
    }
    if (rc) return kl_check_fails(&m->result, "ireducescatter returned %d", (int)rc);
    return finish(m, &b, "ireducescatter") && look_at(m, &b, COUNT, (size_t)m->number * COUNT, 0, "ireducescatter") &&
           close_buffers(m, &b);
}

/* ---- members ---- */

static bool use(struct member *m)
{
    static const ncclDataType_t types[] = {ncclInt32, ncclUint32, ncclInt64, ncclUint64, ncclFloat32, ncclFloat64};
    static const ncclRedOp_t ops[] = {ncclSum, ncclProd, ncclMax, ncclMin};

    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (size_t o = 0; o < sizeof ops / sizeof ops[0]; o++) {
            m->op = (struct kl_collnet_op){.type = types[t], .op = ops[o]};
            if (!kl_collnet_library_reduces(m->l, m->op)) continue;
            if (!reduce(m, COUNT) || !reduce(m, 1) || !reduce(m, 7) || !scatter(m)) return false;
        }
    return gather(m);
}

static void *be_member(void *arg)
{
    struct member *m = arg;

    if (m->late) {
        const struct timespec pause = {.tv_nsec = ALONE_MS * 1000000};
        nanosleep(&pause, NULL); /* meanwhile the other is alone, and must wait or fail, and not go on without */
    }
    note(m, "connect");
    const ncclResult_t rc = kl_collnet_library_connect(m->l, m->handles, MEMBERS, m->number, m->listener, &m->comm);
    note(m, "");
    if (rc || !m->comm) {
        kl_check_fails(&m->result, "connect of member %d returned %d%s", m->number, (int)rc,
                       m->comm ? "" : ", and no communicator");
        return NULL;
    }
    kl_collnet_library_close_listen(m->l, m->listener);
    if (use(m)) kl_collnet_library_close(m->l, m->comm);
    return NULL;
}

static bool listen_all(struct member *m, struct kl_check_result *r)
{
    for (int i = 0; i < MEMBERS; i++) {
        const ncclResult_t rc = m[i].l->adapter->listen(m[i].l, 0, m[i].handle[i], &m[i].listener);
        if (rc || !m[i].listener) return kl_check_fails(r, "listen returned %d", (int)rc);
    }
    for (int i = 0; i < MEMBERS; i++) {
        memcpy(m[1 - i].handle[i], m[i].handle[i], KL_NET_HANDLE);
        for (int k = 0; k < MEMBERS; k++) m[i].handles[k] = m[i].handle[k];
    }
    return true;
}

/* False: a member has failed; the other may wait for ever, and ends with this process. */
static bool await(struct member *m, const pthread_t *thread, struct kl_check_result *r)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    bool ended[MEMBERS] = {false};

    while (!ended[0] || !ended[1]) {
        nanosleep(&pause, NULL);
        for (int i = 0; i < MEMBERS; i++) {
            if (ended[i] || pthread_tryjoin_np(thread[i], NULL)) continue;
            ended[i] = true;
            if (m[i].result.verdict == KL_CHECK_FAILS) return kl_check_fails(r, "%s", m[i].result.figure);
        }
    }
    return true;
}

/* Member 1 is called, but member 0 has left: its listener is closed. */
static bool connect_to_missing(const struct kl_collnet_library *l, struct kl_check_result *r)
{
    static struct member m[MEMBERS];
    const struct timespec pause = {.tv_nsec = 1000000};
    const uint64_t deadline = kl_deadline_in_ms(MISSING_S * 1000);
    pthread_t thread;

    for (int i = 0; i < MEMBERS; i++) m[i] = (struct member){.l = l, .number = i};
    if (!listen_all(m, r)) return false;
    kl_collnet_library_close_listen(l, m[0].listener);
    if (pthread_create(&thread, NULL, be_member, &m[1])) return kl_check_fails(r, "no thread");
    while (pthread_tryjoin_np(thread, NULL)) {
        if (kl_deadline_passed(deadline))
            return kl_check_fails(r, "connect has not ended in %d s where a member is missing", MISSING_S);
        nanosleep(&pause, NULL);
    }
    if (m[1].comm) return kl_check_fails(r, "connect gave a communicator where a member is missing");
    kl_collnet_library_close_listen(l, m[1].listener);
    return true;
}

static void run(const struct kl_collnet_library *l, struct kl_check_result *r)
{
    static struct member m[MEMBERS];
    pthread_t thread[MEMBERS];

    for (int i = 0; i < MEMBERS; i++) m[i] = (struct member){.l = l, .number = i, .late = i ? m : NULL};
    if (!listen_all(m, r)) return;
    for (int i = 0; i < MEMBERS; i++)
        if (pthread_create(&thread[i], NULL, be_member, &m[i])) {
            kl_check_fails(r, "no thread");
            return;
        }
    snprintf(r->call, sizeof r->call, "of the two members");
    if (!await(m, thread, r) || !connect_to_missing(l, r)) return;
    r->call[0] = 0;
    if (!m[0].made) kl_check_fails(r, "reduceSupport knows no operation of any 32-bit or 64-bit type");
    kl_check_notes(r, "v%d, %s, %d devices, %d operations of %d members", l->adapter->version, l->name, l->ndevices,
                   m[0].made, MEMBERS);
}

/* The plugin's net table is of other checks; its library is opened without it. */
void kl_check_collnet(const char *file, struct kl_check_result *r)
{
    struct kl_net_library net = {.library = NULL};
    struct kl_collnet_library l;
    int version;

    net.library = kl_plugin_open("net", file, net.file);
    if (!net.library || !kl_plugin_symbol(net.library, net.file, "ncclCollNetPlugin_v", KL_NET_ABI_NEWEST,
                                          KL_NET_ABI_OLDEST, &version)) {
        kl_check_skips(r, "no symbol ncclCollNetPlugin_v%d to %d", KL_NET_ABI_OLDEST, KL_NET_ABI_NEWEST);
        return;
    }
    snprintf(r->call, sizeof r->call, "init");
    if (!kl_collnet_library_open(&l, &net)) {
        kl_check_fails(r,
                       "v%d is not usable: its table lacks a function, or it has no device; NCCL_DEBUG=INFO says which",
                       version);
        return;
    }
    r->call[0] = 0;
    run(&l, r);
    if (r->verdict == KL_CHECK_OK) kl_collnet_library_finalize(&l);
}
