/* SPDX-License-Identifier: Apache-2.0 */
/** rma.c - check 21: one-sided operations between two members. They connect and register in a thread each, as these calls may wait for each other. */
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/trial.h"

#include "net/plugin/rma_library.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS = 2, SLOTS = 256, SLOT_BYTES = 8192, BYTES = SLOTS * SLOT_BYTES, COUNTERS = 8, PIECES = 4 };

struct member {
    const struct kl_rma_library *l;
    struct kl_check_result *r;
    int number;
    void *context, *listener, *comm, *place;
    void *handles[MEMBERS];
    unsigned char handle[MEMBERS][KL_NET_HANDLE];
    unsigned char *from, *to;
    uint64_t *counters;
    void *from_mr, *to_mr, *counters_mr;
    const char *failed; /* a call in this member's thread */
    ncclResult_t rc;
};

static void note(struct kl_check_result *r, const char *call)
{
    snprintf(r->call, sizeof r->call, "%s", call);
}

/* ---- two members ---- */

/* `made`: the result, once the call has returned; NULL: it has none. */
static bool call(struct member *m, const char *name, ncclResult_t rc, void *const *made)
{
    if (!rc && (!made || *made)) return true;
    m->failed = name;
    m->rc = rc;
    return false;
}

static ncclResult_t enroll(struct member *m, void *data, size_t bytes, uint64_t flags, void **mr)
{
    return m->l->adapter->reg_mr(m->l, m->comm, data, bytes, flags, mr);
}

static void *join(void *arg)
{
    struct member *m = arg;
    const uint64_t counts = KL_RMA_ABI_IN_ORDER | KL_RMA_ABI_NEVER_RESET;

    note(m->r, "connect");
    if (!call(m, "connect",
              kl_rma_library_connect(m->l, m->context, m->handles, MEMBERS, m->number, m->listener, &m->comm),
              &m->comm))
        return NULL;
    note(m->r, "createContext");
    if (!call(m, "createContext", m->l->adapter->create_context(m->l, m->comm, &m->place), &m->place)) return NULL;
    note(m->r, "regMrSym");
    if (!call(m, "regMrSym", enroll(m, m->from, BYTES, 0, &m->from_mr), NULL)) return NULL;
    if (!call(m, "regMrSym", enroll(m, m->to, BYTES, 0, &m->to_mr), NULL)) return NULL;
    (void)call(m, "regMrSym", enroll(m, m->counters, COUNTERS * sizeof *m->counters, counts, &m->counters_mr), NULL);
    return NULL;
}

static bool open_member(struct member *m)
{
    int ndevices;

    m->from = calloc(1, BYTES);
    m->to = calloc(1, BYTES);
    m->counters = calloc(COUNTERS, sizeof *m->counters);
    if (!m->from || !m->to || !m->counters) return kl_check_fails(m->r, "no memory");
    note(m->r, "init");
    if (!kl_rma_library_start(m->l, 1, &m->context, &ndevices))
        return kl_check_fails(m->r, "init, devices or properties were refused; NCCL_DEBUG=INFO says why");
    note(m->r, "listen");
    const ncclResult_t rc = kl_rma_library_listen(m->l, m->context, 0, m->handle[m->number], &m->listener);
    return (!rc && m->listener) || kl_check_fails(m->r, "listen returned %d", (int)rc);
}

/* A member whose call has failed leaves the other waiting, which ends with the process. */
static bool join_all(struct member *m)
{
    pthread_t thread[MEMBERS];
    bool ended[MEMBERS] = {false};

    for (int i = 0; i < MEMBERS; i++) memcpy(m[1 - i].handle[i], m[i].handle[i], KL_NET_HANDLE);
    for (int i = 0; i < MEMBERS; i++) {
        for (int k = 0; k < MEMBERS; k++) m[i].handles[k] = m[i].handle[k];
        if (pthread_create(&thread[i], NULL, join, &m[i])) return kl_check_fails(m->r, "no thread");
    }
    while (!ended[0] || !ended[1])
        for (int i = 0; i < MEMBERS; i++) {
            const struct timespec pause = {.tv_nsec = 1000000};
            if (ended[i]) continue;
            ended[i] = !pthread_tryjoin_np(thread[i], NULL);
            if (ended[i] && m[i].failed)
                return kl_check_fails(m->r, "%s of member %d returned %d", m[i].failed, i, (int)m[i].rc);
            nanosleep(&pause, NULL);
        }
    for (int i = 0; i < MEMBERS; i++) kl_rma_library_close_listen(m[i].l, m[i].listener);
    return true;
}

static void close_member(struct member *m)
{
    void *const mr[] = {m->from_mr, m->to_mr, m->counters_mr};

    note(m->r, "deregMrSym");
    for (int i = 0; i < 3; i++)
        if (kl_rma_library_dereg_mr(m->l, m->comm, mr[i])) kl_check_fails(m->r, "deregMrSym failed");
    note(m->r, "destroyContext");
    kl_rma_library_destroy_context(m->l, m->place);
    note(m->r, "closeColl");
    kl_rma_library_close(m->l, m->comm);
    note(m->r, "finalize");
    kl_rma_library_finalize(m->l, m->context);
    note(m->r, "");
    free(m->from);
    free(m->to);
    free(m->counters);
}

/* ---- puts ---- */

static bool put(struct member *m, const struct kl_net_rma_put *p, void **request)
{
    const char *name = p->counter_mr ? "iputSignal" : "iput";

    *request = NULL;
    note(m->r, name);
    const ncclResult_t rc = p->counter_mr ? m->l->adapter->put_signal(m->l, m->place, p, request)
                                          : m->l->adapter->put(m->l, m->place, p, request);
    note(m->r, "");
    if (rc) return kl_check_fails(m->r, "%s of %zu bytes returned %d", name, p->bytes, (int)rc);
    return *request ||
           kl_check_fails(m->r, "%s of %zu bytes gave no request, which is no way to say \"not yet\"", name, p->bytes);
}

static bool progress(struct member *m)
{
    for (int i = 0; i < MEMBERS; i++) {
        note(m->r, "progress");
        const ncclResult_t rc = kl_rma_library_progress(m[i].l, m[i].place);
        note(m->r, "");
        if (rc) return kl_check_fails(m->r, "progress of member %d returned %d", i, (int)rc);
        if (kl_rma_library_has_failed(m[i].l, m[i].place))
            return kl_check_fails(m->r, "queryLastError of member %d reports a failure", i);
    }
    return true;
}

static bool finish(struct member *all, struct member *m, void *request)
{
    int done = 0;

    while (!done) {
        note(m->r, "test");
        const ncclResult_t rc = kl_rma_library_test(m->l, m->comm, request, &done);
        note(m->r, "");
        if (rc) return kl_check_fails(m->r, "test returned %d", (int)rc);
        if (!done && !progress(all)) return false;
    }
    return true;
}

static uint64_t counter_of(const struct member *m, int counter)
{
    return __atomic_load_n(&m->counters[counter], __ATOMIC_ACQUIRE);
}

static bool await(struct member *all, const struct member *target, int counter, uint64_t wanted)
{
    note(all->r, "progress, for a signal");
    while (counter_of(target, counter) < wanted)
        if (!progress(all)) return false;
    return counter_of(target, counter) == wanted ||
           kl_check_fails(all->r, "a counter is %llu after %llu signals",
                          (unsigned long long)counter_of(target, counter), (unsigned long long)wanted);
}

static struct kl_net_rma_put slot_put(const struct member *m, int target, size_t slot, size_t offset, size_t bytes)
{
    const uint64_t at = slot * SLOT_BYTES + offset;

    return (struct kl_net_rma_put){
        .peer = target, .from_mr = m->from_mr, .to_mr = m->to_mr, .from = at, .to = at, .bytes = bytes};
}

/* In parts, the last with a signal: when it has come, all of them are there, and nothing beside them. */
static bool put_parts(struct member *all, int source, int target, size_t bytes, unsigned round, uint64_t *signals)
{
    struct member *m = &all[source];
    const size_t slot = round % SLOTS, part = bytes / PIECES;
    unsigned char *to = all[target].to + slot * SLOT_BYTES;
    void *request[PIECES];

    kl_trial_fill(m->from + slot * SLOT_BYTES, bytes, round);
    memset(to, 0x5a, SLOT_BYTES);
    for (int i = 0; i < PIECES; i++) {
        const bool last = i == PIECES - 1;
        struct kl_net_rma_put p =
            slot_put(m, target, slot, (size_t)i * part, last ? bytes - (PIECES - 1) * part : part);
        if (last) {
            p.counter_mr = m->counters_mr;
            p.counter = sizeof *m->counters * (unsigned)source;
            ++*signals;
        }
        if (!put(m, &p, &request[i])) return false;
        /* Where no flag asks for strong signals, parts are in order only when they are done. */
        if (!last && m->l->adapter->version == 13 && !finish(all, m, request[i])) return false;
    }
    if (!await(all, &all[target], source, *signals)) return false;
    if (!kl_trial_is_filled(to, bytes, round))
        return kl_check_fails(m->r, "the signal of a put of %zu bytes came before its data", bytes);
    for (size_t i = bytes; i < SLOT_BYTES; i++)
        if (to[i] != 0x5a) return kl_check_fails(m->r, "byte %zu was written by a put of %zu", i, bytes);
    for (int i = 0; i < PIECES; i++)
        if ((i == PIECES - 1 || m->l->adapter->version > 13) && !finish(all, m, request[i])) return false;
    return true;
}

static bool put_sizes(struct member *all)
{
    static const size_t sizes[] = {0, 1, 7, 64, 1001, 4096, SLOT_BYTES - 1, SLOT_BYTES};
    uint64_t signals[MEMBERS][MEMBERS] = {{0}};
    unsigned round = 0;

    for (int i = 0; i < 4; i++) {
        const int source = i / 2, target = i % 2;
        uint64_t *n = &signals[target][source];
        for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
            if (!put_parts(all, source, target, sizes[k], round++, n)) return false;
    }
    return true;
}

/* More than any queue has: none may be lost, or refused. */
static bool put_many(struct member *all)
{
    enum { COUNTER = 5 };
    static void *request[SLOTS];
    struct member *m = &all[0];

    memset(all[1].to, 0, BYTES);
    for (unsigned i = 0; i < SLOTS; i++) {
        struct kl_net_rma_put p = slot_put(m, 1, i, 0, 1024);
        kl_trial_fill(m->from + (size_t)i * SLOT_BYTES, 1024, i);
        p.counter_mr = m->counters_mr;
        p.counter = sizeof *m->counters * COUNTER;
        if (!put(m, &p, &request[i])) return false;
    }
    for (int i = 0; i < SLOTS; i++)
        if (!finish(all, m, request[i])) return false;
    memset(m->from, 0, BYTES); /* done: it may change */
    if (!await(all, &all[1], COUNTER, SLOTS)) return false;
    for (unsigned i = 0; i < SLOTS; i++)
        if (!kl_trial_is_filled(all[1].to + (size_t)i * SLOT_BYTES, 1024, i))
            return kl_check_fails(m->r, "put %u of %d outstanding ones has other data", i, SLOTS);
    return true;
}

/* ---- the check ---- */

static void run(const struct kl_rma_library *l, struct kl_check_result *r)
{
    static struct member m[MEMBERS];

    for (int i = 0; i < MEMBERS; i++) {
        m[i] = (struct member){.l = l, .number = i, .r = r};
        if (!open_member(&m[i])) return;
    }
    if (!join_all(m) || !put_sizes(m) || !put_many(m)) return;
    for (int i = 0; i < MEMBERS; i++) close_member(&m[i]);
    kl_check_notes(r, "%s%d, %s: data before signals, also in parts; %d puts outstanding", l->adapter->prefix,
                   l->adapter->version, l->name, SLOTS);
}

void kl_check_rma(const char *file, struct kl_check_result *r)
{
    struct kl_rma_library l = {.library = NULL};
    int version;

    l.library = kl_plugin_open("rma", file, l.file);
    if (!l.library ||
        (!kl_plugin_symbol(l.library, l.file, "ncclRmaPlugin_v", KL_RMA_ABI_NEWEST, KL_RMA_ABI_OLDEST, &version) &&
         !kl_plugin_symbol(l.library, l.file, "ncclGinPlugin_v", KL_RMA_ABI_OLDEST, KL_RMA_ABI_OLDEST, &version)))
        kl_check_skips(r, "no symbol ncclRmaPlugin_v%d to %d, or ncclGinPlugin_v13", KL_RMA_ABI_OLDEST,
                       KL_RMA_ABI_NEWEST);
    else if (kl_rma_library_read(&l))
        run(&l, r);
    else
        kl_check_fails(r, "v%d is not usable: its table lacks a name or a function; NCCL_DEBUG=INFO says which",
                       version);
}
