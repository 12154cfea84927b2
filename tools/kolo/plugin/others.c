/* SPDX-License-Identifier: Apache-2.0 */
/** others.c - checks 18 to 20: tuners, profilers, environment plugins. */
#include "tools/kolo/plugin/check.h"

#include "graph/tuning.h"
#include "include/nccl.h"
#include "os/plugin.h"
#include "os/profiler_abi.h"

#include <math.h>
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

enum { GUARD = 64, CELLS = KL_NCCL_ALGOS * KL_PROTOS };
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

static bool check_cost(const struct cost *c, struct kl_check_result *r)
{
    for (int i = 0; i < GUARD; i++)
        if (!is(c->before[i], canary) || !is(c->behind[i], canary))
            return kl_check_fails(r, "memory beside the table of times was written");
    for (int a = 0; a < KL_NCCL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++)
            if ((a + p) % 2 && !is(c->cell[a][p], -1))
                return kl_check_fails(r, "the cell of algorithm %d and protocol %d was -1", a, p);
    return true;
}

static bool ask_one(const struct tuner_table *t, int version, void *context, int func, size_t bytes,
                    struct kl_check_result *r)
{
    struct cost c;
    int channels = 0;

    for (int i = 0; i < GUARD; i++) c.before[i] = c.behind[i] = canary;
    for (int i = 0; i < CELLS; i++) (&c.cell[0][0])[i] = (i / KL_PROTOS + i % KL_PROTOS) % 2 ? -1 : 10.0f + (float)i;
    note(r, "getCollInfo");
    const int rc = ask_tuner(t, version, context, func, bytes, &c, &channels);
    note(r, "");
    if (rc) return kl_check_fails(r, "getCollInfo of function %d and %zu bytes returned %d", func, bytes, rc);
    if (channels < 0 || channels > 64) return kl_check_fails(r, "%d channels are wanted", channels);
    return check_cost(&c, r);
}

void kl_check_tuner(const char *file, struct kl_check_result *r)
{
    typedef int finalize(void *);
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
            if (!ask_one(t, version, context, func, bytes, r)) return;
    note(r, "finalize");
    (void)((finalize *)t->finalize)(context);
    note(r, "");
    kl_check_notes(r, "v%d, %d questions", version, asked);
}

/* ---- 19: profiler ---- */

struct replay {
    const struct kl_profiler_table *t;
    struct kl_profiler_place place;
    int version;
    void *context;
    struct kl_check_result *r;
};

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
    note(p->r, "startEvent");
    const int rc = p->t->start(p->context, handle, descr);
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

void kl_check_profiler(const char *file, struct kl_check_result *r)
{
    struct replay p = {.r = r, .place = {.comm = 1, .name = "check", .nnodes = 1, .nranks = 2}};
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
    for (int i = 0; i < 20000; i++)
        if (!replay_one(&p)) return;
    if (!start(&p, KL_PROFILE_GROUP, NULL, &open)) return;
    note(r, "finalize");
    if (p.t->finalize(p.context)) kl_check_fails(r, "finalize with an open event failed");
    note(r, "");
    kl_check_notes(r, "v%d, 20000 collectives, events %#x", p.version, (unsigned)mask);
}

/* ---- 20: environment ---- */

struct env_table {
    const char *name;
    any_fn *init;
    int (*finalize)(void);
    const char *(*get)(const char *name);
};

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
    note(r, "init");
    const int rc = version == 1 ? ((init_v1 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX)
                                : ((init_v2 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX, log_nothing);
    if (rc) {
        kl_check_fails(r, "init returned %d", rc);
        return;
    }
    if (!ask_env(t, r)) return;
    note(r, "finalize");
    if (t->finalize()) kl_check_fails(r, "finalize failed");
    note(r, "");
    kl_check_notes(r, "v%d", version);
}
