/* SPDX-License-Identifier: Apache-2.0 */
/** others.c - checks 18 to 20: tuners, profilers, environment plugins. */
#include "tools/kolo/plugin/call_times.h"
#include "tools/kolo/plugin/check.h"

#include "base/clock.h"
#include "graph/tuning.h"
#include "include/nccl.h"
#include "os/plugin.h"
#include "os/profiler_abi.h"

#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void any_fn(void);

static void note(struct kl_check_result *r, const char *call)
{
    snprintf(r->call, sizeof r->call, "%s", call);
}

/* The newest table of a kind; NULL: the check does not apply. */
static const void *table_of(const char *file, const char *prefix, int newest, int oldest, int *version,
                            struct kl_check_result *r)
{
    char taken[KL_PLUGIN_FILE];
    void *library = kl_plugin_open("net", file, taken);
    const void *table = library ? kl_plugin_symbol(library, taken, prefix, newest, oldest, version) : NULL;

    if (!table) kl_check_skips(r, "no symbol %s%d to %d", prefix, oldest, newest);
    return table;
}

static void log_nothing(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...)
{
    (void)level, (void)subsys, (void)file, (void)line, (void)fmt;
}
typedef void logger(int, unsigned long, const char *, int, const char *, ...);

static bool has_all(const void *table, int from, int to, struct kl_check_result *r)
{
    for (int at = from; at <= to; at += (int)sizeof(void *)) {
        any_fn *fn;
        memcpy(&fn, (const char *)table + at, sizeof fn);
        if (!fn) return kl_check_fails(r, "the function at byte %d of the table is NULL", at);
    }
    return true;
}

/* ---- 18: tuner ---- */

enum { GUARD = 64, CELLS = KL_NCCL_ALGOS * KL_PROTOS, SLOW_NS = 1000000 };
static const float canary = 12345.5f;

struct tuner_table {
    const char *name;
    any_fn *init, *get, *finalize;
};

struct cost {
    float before[GUARD], cell[KL_NCCL_ALGOS][KL_PROTOS], behind[GUARD];
};

static int init_tuner(const struct tuner_table *t, int version, void **context)
{
    typedef int init_v2(size_t, size_t, logger *, void **);
    typedef int init_v5(void **, uint64_t, size_t, size_t, logger *, void *, void *);
    int32_t domain[3] = {2, 4, 4};
    static double constants[144 + GUARD];

    for (int i = 0; i < 144; i++) constants[i] = 1;
    if (version >= 5) return ((init_v5 *)t->init)(context, 1, 8, 2, log_nothing, domain, constants);
    return ((init_v2 *)t->init)(8, 2, log_nothing, context);
}

static int ask_tuner(const struct tuner_table *t, int version, void *context, int func, size_t bytes, struct cost *c,
                     int *channels)
{
    typedef int get_v2(void *, int, size_t, int, int, int, int *, int *, int *);
    typedef int get_v3(void *, int, size_t, int, float **, int, int, int *);
    typedef int get_v4(void *, int, size_t, int, float **, int, int, int, int *);
    int algo = -1, proto = -1;

    if (version == 2) return ((get_v2 *)t->get)(context, func, bytes, 0, 0, 1, &algo, &proto, channels);
    if (version == 3)
        return ((get_v3 *)t->get)(context, func, bytes, 1, (float **)c->cell, KL_NCCL_ALGOS, KL_PROTOS, channels);
    return ((get_v4 *)t->get)(context, func, bytes, 1, (float **)c->cell, KL_NCCL_ALGOS, KL_PROTOS, 0, channels);
}

static bool is(float value, float expected)
{
    return fabsf(value - expected) < 1e-3f;
}

/* The candidate that the core takes: the least, the first in the order of rows on a tie. -1: none is left. */
static int chosen(const struct cost *c)
{
    const float *cell = &c->cell[0][0];
    int best = -1;

    for (int i = 0; i < CELLS; i++)
        if (cell[i] >= 0 && (best < 0 || cell[i] < cell[best])) best = i;
    return best;
}

static bool check_cost(const struct cost *c, struct kl_check_result *r)
{
    for (int i = 0; i < GUARD; i++)
        if (!is(c->before[i], canary) || !is(c->behind[i], canary))
            return kl_check_fails(r, "memory beside the table of times was written");
    for (int a = 0; a < KL_NCCL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++)
            if ((a + p) % 2 && !is(c->cell[a][p], -1))
                return kl_check_fails(r, "the cell of algorithm %d and protocol %d was -1", a, p);
    for (int i = 0; i < CELLS; i++)
        if (isnan((&c->cell[0][0])[i]) || isinf((&c->cell[0][0])[i]))
            return kl_check_fails(r, "the time of algorithm %d and protocol %d is no number", i / KL_PROTOS,
                                  i % KL_PROTOS);
    return chosen(c) >= 0 || kl_check_fails(r, "it leaves no candidate: all cells are negative");
}

/* The answers of a tuner. */
struct answers {
    int times[CELLS]; /* that a candidate was chosen */
    struct kl_call_times took;
};

static bool ask_one(const struct tuner_table *t, int version, void *context, int func, size_t bytes,
                    struct answers *all, struct kl_check_result *r)
{
    struct cost c;
    int channels = 0;

    for (int i = 0; i < GUARD; i++) c.before[i] = c.behind[i] = canary;
    for (int i = 0; i < CELLS; i++) (&c.cell[0][0])[i] = (i / KL_PROTOS + i % KL_PROTOS) % 2 ? -1 : 10.0f + (float)i;
    note(r, "getCollInfo");
    const uint64_t begun = kl_now_ns();
    const int rc = ask_tuner(t, version, context, func, bytes, &c, &channels);
    kl_call_times_add(&all->took, kl_now_ns() - begun);
    note(r, "");
    if (rc) return kl_check_fails(r, "getCollInfo of function %d and %zu bytes returned %d", func, bytes, rc);
    if (channels < 0 || channels > 64) return kl_check_fails(r, "%d channels are wanted", channels);
    if (!check_cost(&c, r)) return false;
    all->times[chosen(&c)]++;
    return true;
}

/* A function of a later release: an error, or no opinion. */
static bool ask_unknown(const struct tuner_table *t, int version, void *context, struct kl_check_result *r)
{
    struct cost c = {.cell = {{0}}};
    int channels = 0;

    for (int i = 0; i < GUARD; i++) c.before[i] = c.behind[i] = canary;
    for (int i = 0; i < CELLS; i++) (&c.cell[0][0])[i] = (i / KL_PROTOS + i % KL_PROTOS) % 2 ? -1 : 10.0f + (float)i;
    note(r, "getCollInfo of an unknown function");
    (void)ask_tuner(t, version, context, 99, 1024, &c, &channels);
    note(r, "");
    return check_cost(&c, r);
}

static void describe(const struct answers *all, char *text, size_t room)
{
    static const char *const algo[KL_NCCL_ALGOS] = {"Tree",     "Ring", "CollnetDirect", "CollnetChain", "NVLS",
                                                    "NVLSTree", "PAT"};
    static const char *const proto[KL_PROTOS] = {"LL", "LL128", "Simple"};
    size_t used = 0;

    *text = 0;
    for (int i = 0; i < CELLS; i++)
        if (all->times[i] && used < room)
            used += (size_t)snprintf(text + used, room - used, ", %s %s %d times", algo[i / KL_PROTOS],
                                     proto[i % KL_PROTOS], all->times[i]);
}

void kl_check_tuner(const char *file, struct kl_check_result *r)
{
    typedef int finalize(void *);
    static struct answers all;
    char text[200];
    int version, asked = 0;
    const struct tuner_table *t = table_of(file, "ncclTunerPlugin_v", 6, 2, &version, r);
    void *context = NULL;

    if (!t || !has_all(t, 8, 24, r)) return;
    note(r, "init");
    const int rc = init_tuner(t, version, &context);
    if (rc) {
        kl_check_fails(r, "init returned %d", rc);
        return;
    }
    for (int func = 0; func < KL_FUNCS; func++)
        for (size_t bytes = 1; bytes <= (size_t)1 << 32; bytes *= 4, asked++)
            if (!ask_one(t, version, context, func, bytes, &all, r)) return;
    if (!ask_unknown(t, version, context, r)) return;
    const uint64_t p50 = kl_call_times_quantile(&all.took, 0.5);
    if (p50 > SLOW_NS) {
        kl_check_fails(r, "a question takes %.1f ms", (double)p50 / 1e6);
        return;
    }
    describe(&all, text, sizeof text);
    note(r, "finalize");
    (void)((finalize *)t->finalize)(context);
    note(r, "");
    kl_check_notes(r, "v%d, %d questions, %.1f us each%s", version, asked, (double)p50 / 1e3, version == 2 ? "" : text);
}

/* ---- 19: profiler ---- */

struct replay {
    const struct kl_profiler_table *t;
    struct kl_profiler_place place;
    int version;
    void *context;
    struct kl_check_result *r;
    pid_t of_other; /* whose parents proxy operations name; 0: this process */
    struct kl_call_times took;
};
enum { PID_AT = 24, OPEN = 20000 };

static bool start(struct replay *p, enum kl_profile_type type, void *parent, void **handle)
{
    const struct kl_profile_descr d = {.type = type,
                                       .parent = parent,
                                       .parent_group = parent,
                                       .func = "AllReduce",
                                       .datatype = "ncclFloat32",
                                       .algo = "RING",
                                       .proto = "SIMPLE",
                                       .count = 1024,
                                       .channels = 2,
                                       .steps = 4};
    unsigned char descr[KL_PROFILER_DESCR];

    *handle = NULL;
    if (!(kl_profiler_known(p->version) & type)) return true;
    kl_profiler_describe(p->version, &d, &p->place, descr);
    if (p->of_other && type == KL_PROFILE_PROXY_OP) memcpy(descr + PID_AT, &p->of_other, sizeof p->of_other);
    note(p->r, "startEvent");
    const uint64_t begun = kl_now_ns();
    const int rc = p->t->start(p->context, handle, descr);
    kl_call_times_add(&p->took, kl_now_ns() - begun);
    note(p->r, "");
    return !rc || kl_check_fails(p->r, "startEvent of type %#x returned %d", (unsigned)type, rc);
}

static bool end(struct replay *p, void *handle, enum kl_profile_state state)
{
    unsigned char args[16] = {0};

    if (!handle) return true;
    note(p->r, "recordEventState");
    if (state && p->t->state(handle, (int)state, args))
        return kl_check_fails(p->r, "recordEventState %d failed", (int)state);
    note(p->r, "stopEvent");
    if (p->t->stop(handle)) return kl_check_fails(p->r, "stopEvent failed");
    note(p->r, "");
    return true;
}

/* A collective's events: children come after their parents' stops. */
static bool replay_one(struct replay *p)
{
    void *group, *api, *coll, *op, *step;

    if (!start(p, KL_PROFILE_GROUP_API, NULL, &group) || !start(p, KL_PROFILE_COLL_API, group, &api) || !end(p, api, 0))
        return false;
    if (!start(p, KL_PROFILE_COLL, api, &coll) || !end(p, coll, 0) || !end(p, group, KL_PROFILE_GROUP_END_API_START))
        return false;
    if (!start(p, KL_PROFILE_PROXY_OP, coll, &op)) return false;
    for (int i = 0; i < 4; i++)
        if (!start(p, KL_PROFILE_PROXY_STEP, op, &step) || !end(p, step, KL_PROFILE_SEND_WAIT)) return false;
    return end(p, op, KL_PROFILE_PROXY_OP_IN_PROGRESS) && start(p, KL_PROFILE_PROXY_STEP, NULL, &step) &&
           end(p, step, KL_PROFILE_RECV_WAIT);
}

/* More open events than a pool has: NULL is "not interested", and each other one is stopped. */
static bool exhaust(struct replay *p, int *taken)
{
    static void *open[OPEN];

    for (int i = 0; i < OPEN; i++) {
        if (!start(p, i % 2 ? KL_PROFILE_PROXY_STEP : KL_PROFILE_COLL, NULL, &open[i])) return false;
        *taken += open[i] != NULL;
    }
    for (int i = 0; i < OPEN; i++)
        if (!end(p, open[i], 0)) return false;
    return replay_one(p);
}

/* A proxy works for a rank of another process, whose parent is no address here. */
static bool replay_other(struct replay *p)
{
    void *op, *step;

    p->of_other = 1;
    const bool good = start(p, KL_PROFILE_PROXY_OP, (void *)(uintptr_t)PID_AT, &op) &&
                      start(p, KL_PROFILE_PROXY_STEP, op, &step) && end(p, step, KL_PROFILE_SEND_WAIT) &&
                      end(p, op, KL_PROFILE_PROXY_OP_IN_PROGRESS);
    p->of_other = 0;
    return good;
}

void kl_check_profiler(const char *file, struct kl_check_result *r)
{
    static struct replay p;
    int taken = 0;

    p = (struct replay){.r = r, .place = {.comm = 1, .name = "check", .nnodes = 1, .nranks = 2}};
    int mask = 0;
    void *open = NULL;

    p.t = table_of(file, "ncclProfiler_v", KL_PROFILER_NEWEST, KL_PROFILER_OLDEST, &p.version, r);
    if (!p.t || !has_all(p.t, 8, 40, r)) return;
    note(r, "init");
    const int rc = kl_profiler_call_init(p.version, p.t, &p.place, &p.context, &mask);
    if (rc) {
        kl_check_fails(r, "init returned %d", rc);
        return;
    }
    for (int i = 0; i < 20000 && (i != 200 || kl_call_times_quantile(&p.took, 0.5) <= SLOW_NS); i++)
        if (!replay_one(&p)) return;
    if (kl_call_times_quantile(&p.took, 0.5) > SLOW_NS) {
        kl_check_fails(r, "startEvent takes %.1f ms", (double)kl_call_times_quantile(&p.took, 0.5) / 1e6);
        return;
    }
    if (!exhaust(&p, &taken) || !replay_other(&p) || !start(&p, KL_PROFILE_GROUP, NULL, &open)) return;
    const uint64_t p50 = kl_call_times_quantile(&p.took, 0.5);
    note(r, "finalize");
    if (p.t->finalize(p.context)) kl_check_fails(r, "finalize with an open event failed");
    note(r, "");
    kl_check_notes(r, "v%d, 20000 collectives, events %#x, %.1f us each; %d of %d open at once were taken", p.version,
                   (unsigned)mask, (double)p50 / 1e3, taken, OPEN);
}

/* ---- 20: environment ---- */

struct env_table {
    const char *name;
    any_fn *init;
    int (*finalize)(void);
    const char *(*get)(const char *name);
};

/* Variables of threads that ask at once, each for its own. */
struct asker {
    const struct env_table *t;
    char name[32], text[32];
    bool wrong;
};

static void *keep_asking(void *arg)
{
    struct asker *a = arg;

    for (int i = 0; i < 2000 && !a->wrong; i++) {
        const char *text = a->t->get(a->name);
        a->wrong = text && strcmp(text, a->text) != 0;
    }
    return NULL;
}

static bool ask_at_once(const struct env_table *t, struct kl_check_result *r)
{
    enum { THREADS = 4 };
    struct asker a[THREADS];
    pthread_t thread[THREADS];
    bool good = true;

    for (int i = 0; i < THREADS; i++) {
        a[i] = (struct asker){.t = t};
        snprintf(a[i].name, sizeof a[i].name, "KOLO_CHECK_THREAD_%d", i);
        snprintf(a[i].text, sizeof a[i].text, "text of %d", i);
        setenv(a[i].name, a[i].text, 1);
    }
    note(r, "getEnv in threads");
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, keep_asking, &a[i])) return kl_check_fails(r, "no thread");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        good &= !a[i].wrong;
    }
    note(r, "");
    return good || kl_check_fails(r, "getEnv in a thread returned the text of another one");
}

/* init may log, and the logger may read a variable. */
static const struct env_table *asked_again;

static void log_and_ask(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...)
{
    (void)level, (void)subsys, (void)file, (void)line, (void)fmt;
    (void)asked_again->get("KOLO_CHECK_NOT_SET");
}

static bool ask_env(const struct env_table *t, struct kl_check_result *r)
{
    static const char unset[] = "KOLO_CHECK_NOT_SET", odd[] = "KOLO_CHECK_\xc3\xa4";
    char copy[256];

    note(r, "getEnv");
    if (t->get(unset)) return kl_check_fails(r, "getEnv of an unset variable is not NULL");
    const char *path = t->get("PATH");
    snprintf(copy, sizeof copy, "%s", path ? path : "");
    for (int i = 0; i < 1000; i++) (void)t->get(i % 2 ? odd : unset);
    if (path && strncmp(path, copy, sizeof copy - 1))
        return kl_check_fails(r, "a text has changed without a call with its name");
    note(r, "");
    return true;
}

void kl_check_env(const char *file, struct kl_check_result *r)
{
    typedef int init_v1(uint8_t, uint8_t, uint8_t, const char *);
    typedef int init_v2(uint8_t, uint8_t, uint8_t, const char *, logger *);
    int version;
    const struct env_table *t = table_of(file, "ncclEnvPlugin_v", 2, 1, &version, r);

    if (!t || !has_all(t, 8, 24, r)) return;
    asked_again = t;
    note(r, "init");
    const int rc = version == 1 ? ((init_v1 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX)
                                : ((init_v2 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX, log_and_ask);
    if (rc) {
        kl_check_fails(r, "init returned %d", rc);
        return;
    }
    if (!ask_env(t, r) || !ask_at_once(t, r)) return;
    note(r, "finalize");
    if (t->finalize()) kl_check_fails(r, "finalize failed");
    note(r, "");
    kl_check_notes(r, "v%d", version);
}
