/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuner.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/log.h"
#include "graph/tuner_rules.h"
#include "os/plugin.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { OLDEST = 2, NEWEST = 6, NAME = 63, NONE = -1, KEEP = 0 };

/* ---- the ABI ---- */

typedef void tuner_fn(void);
typedef float tuner_table[KL_NCCL_ALGOS][KL_PROTOS];

struct table {
    const char *name;
    tuner_fn *init, *get, *finalize; /* finalize: destroy before v5 */
};

struct abi_domain {
    int32_t n, least_ranks, most_ranks;
};

struct abi_constants {
    double base_latency[KL_NCCL_ALGOS][KL_PROTOS], hw_latency[KL_HWS][KL_NCCL_ALGOS][KL_PROTOS];
    double ll_max[KL_GENERATIONS][3], ring_ll128[KL_GENERATIONS][3], tree_ll128[KL_GENERATIONS][3],
        tree[KL_GENERATIONS][3], nvls_tree[KL_GENERATIONS][3];
};
_Static_assert(sizeof(struct abi_constants) == 1152, "as measured");

struct kl_tuner {
    void *library;
    char file[KL_PLUGIN_FILE];
    char name[KL_PARAM_TEXT];
    const struct table *table; /* NULL: a file */
    int version;
    void *context;
    struct kl_tuner_place place;
    struct kl_tuner_rules rules;
    bool failed;                                 /* once, which was said */
    const struct kl_tuning_constants *constants; /* for the model: the caller's, or */
    struct kl_tuning_constants own;              /* with a plugin's changes */
};

/* ---- settings ---- */

struct params {
    char plugin[KL_PARAM_TEXT], file[KL_PARAM_TEXT];
};

static const struct kl_param rows[] = {
    KL_PARAM_STRING(struct params, plugin, "NCCL_TUNER_PLUGIN", KL_ALIKE, "",
                    "tuner plugin, a name or file; \"none\": no plugin; without it, libnccl-tuner.so"),
    KL_PARAM_STRING(struct params, file, "NCCL_TUNER_CONFIG_FILE", KL_ALIKE, "",
                    "rules for algorithm, protocol and channels (CSV): for the tuner plugin, or without one for Kolo"),
};

const struct kl_param_set kl_tuner_param_set = KL_PARAM_SET("tuner", struct params, rows);

/* ---- constants ---- */

/* Copy each value that both have: one way, or back those that have changed, so that the others keep their bits. */
static void copy_constants(struct kl_tuning_constants *c, struct abi_constants *a, const struct abi_constants *before)
{
#define EACH(field, rows, columns)                                                                                     \
    for (int i = 0; i < (rows); i++)                                                                                   \
        for (int k = 0; k < (columns); k++) COPY(c->field[i][k], a->field[i][k], before->field[i][k])
#define ALL()                                                                                                          \
    EACH(base_latency, KL_NCCL_ALGOS, KL_PROTOS);                                                                      \
    for (int hw = 0; hw < KL_HWS; hw++) EACH(hw_latency[hw], KL_NCCL_ALGOS, KL_PROTOS);                                \
    EACH(ll_max, KL_GENERATIONS, 3);                                                                                   \
    EACH(ring_ll128, KL_GENERATIONS, 3);                                                                               \
    EACH(tree_ll128, KL_GENERATIONS, 3);                                                                               \
    EACH(tree, KL_GENERATIONS, 3);                                                                                     \
    EACH(nvls_tree, KL_GENERATIONS, 3)
#define COPY(ours, theirs, old)                                                                                        \
    if (!before)                                                                                                       \
        theirs = (double)(ours);                                                                                       \
    else if ((theirs) > (old) || (theirs) < (old))                                                                     \
    ours = (__typeof__(ours))(theirs)
    ALL();
#undef COPY
#undef ALL
#undef EACH
}

/* ---- plugins ---- */

__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long subsys, const char *file, int line,
                                                           const char *fmt, ...)
{
    char text[2000];
    va_list args;

    (void)subsys;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (level == 2)
        KL_WARN("%s", text);
    else
        KL_INFO(KL_TUNING, "%s:%d %s", file ? file : "tuner", line, text);
}

static int call_init(struct kl_tuner *t, struct abi_constants *constants)
{
    typedef int init_v2(size_t, size_t, void (*)(int, unsigned long, const char *, int, const char *, ...), void **);
    typedef int init_v5(void **, uint64_t, size_t, size_t,
                        void (*)(int, unsigned long, const char *, int, const char *, ...), struct abi_domain *,
                        struct abi_constants *);
    const size_t nranks = (size_t)t->place.nranks, nnodes = (size_t)t->place.nnodes;
    struct abi_domain domain = {t->place.nnodes, (int32_t)(nranks / nnodes), (int32_t)((nranks + nnodes - 1) / nnodes)};

    if (t->version >= 5)
        return ((init_v5 *)t->table->init)(&t->context, t->place.comm, nranks, nnodes, log_line, &domain, constants);
    return ((init_v2 *)t->table->init)(nranks, nnodes, log_line, &t->context);
}

static bool start_plugin(struct kl_tuner *t)
{
    struct abi_constants given, theirs;

    t->own = *t->constants;
    copy_constants(&t->own, &given, NULL);
    theirs = given;
    const int rc = call_init(t, &theirs);
    if (rc) {
        KL_WARN("tuner %s (%s, v%d): init returned %d, and it is not used", t->name, t->file, t->version, rc);
        return false;
    }
    copy_constants(&t->own, &theirs, &given);
    if (memcmp(&given, &theirs, sizeof given) != 0) t->constants = &t->own;
    KL_INFO(KL_INIT | KL_TUNING, "TUNER/Plugin: using %s (ncclTunerPlugin_v%d of %s)", t->name, t->version, t->file);
    return true;
}

static bool read_table(struct kl_tuner *t)
{
    t->table = kl_plugin_symbol(t->library, t->file, "ncclTunerPlugin_v", NEWEST, OLDEST, &t->version);
    if (!t->table) return false;
    if (!t->table->init || !t->table->get || !t->table->finalize || !kl_plugin_is_text(t->table->name, NAME)) {
        KL_INFO(KL_INIT | KL_TUNING,
                "%s: its tuner v%d has no printable name, or no init, getCollInfo or finalize, and is not taken",
                t->file, t->version);
        return false;
    }
    snprintf(t->name, sizeof t->name, "%s", t->table->name);
    return true;
}

static void open_library(struct kl_tuner *t, const char *name)
{
    static _Atomic int none; /* the default is looked for once in a process */

    if (*name || !kl_load_relaxed(&none)) t->library = kl_plugin_open("tuner", name, t->file);
    if (*name || t->library) return;
    kl_store_relaxed(&none, 1);
    if (t->place.net_library) t->library = t->place.net_library(t->file);
}

static bool open_plugin(struct kl_tuner *t, const char *name)
{
    open_library(t, name);
    if (t->library && read_table(t) && start_plugin(t)) return true;
    kl_plugin_close(t->library);
    t->library = NULL;
    t->table = NULL;
    return false;
}

static int ask_plugin(struct kl_tuner *t, const struct kl_tuning_op *op, tuner_table table, int *nchannels)
{
    typedef int get_v2(void *, int, size_t, int, int, int, int *, int *, int *);
    typedef int get_v3(void *, int, size_t, int, float **, int, int, int *);
    typedef int get_v4(void *, int, size_t, int, float **, int, int, int, int *);
    const size_t bytes = (size_t)op->bytes;
    int algo = NONE, proto = NONE;

    if (t->version >= 4)
        return ((get_v4 *)t->table->get)(t->context, op->func, bytes, op->npipe, (float **)table, KL_NCCL_ALGOS,
                                         KL_PROTOS, 0, nchannels);
    if (t->version == 3)
        return ((get_v3 *)t->table->get)(t->context, op->func, bytes, op->npipe, (float **)table, KL_NCCL_ALGOS,
                                         KL_PROTOS, nchannels);
    const int rc = ((get_v2 *)t->table->get)(t->context, op->func, bytes, op->collnet, op->nvls, op->npipe, &algo,
                                             &proto, nchannels);
    if (algo >= 0 && algo < KL_NCCL_ALGOS && proto >= 0 && proto < KL_PROTOS && table[algo][proto] >= 0)
        table[algo][proto] = 0;
    return rc;
}

/* ---- files ---- */

/* A folder has no lines, a pipe may never have one, and a device's lines may never end. */
static bool is_regular(const char *file)
{
    struct stat s;

    return !stat(file, &s) && S_ISREG(s.st_mode);
}

/* That rules overlap is legal, and no news for a job. */
static void tell(void *ctx, bool mistake, const char *text)
{
    (void)ctx;
    if (mistake) KL_WARN("%s", text);
}

static ncclResult_t open_file(struct kl_tuner *t, const char *file)
{
    FILE *from = is_regular(file) ? fopen(file, "re") : NULL;

    if (!from) {
        KL_WARN("NCCL_TUNER_CONFIG_FILE=%s is no file that can be read, and has no effect", file);
        return ncclSuccess;
    }
    const bool good = kl_tuner_rules_read(from, file, tell, NULL, &t->rules);
    fclose(from);
    snprintf(t->name, sizeof t->name, "%s", file);
    if (!good) return KL_NOMEM("the rules of a tuner");
    if (!t->rules.n) KL_WARN("NCCL_TUNER_CONFIG_FILE=%s has no rule, and has no effect", file);
    KL_INFO(KL_INIT | KL_TUNING, "TUNER: using %d rules of %s", t->rules.n, file);
    return ncclSuccess;
}

/* A rule names a cell, or all cells of an algorithm or a protocol; those that are forbidden stay so. */
static int ask_rules(const struct kl_tuner *t, const struct kl_tuning_op *op, tuner_table table, int *nchannels)
{
    const struct kl_tuner_rule call = {
        .func = op->func, .nnodes = t->place.nnodes, .nranks = t->place.nranks, .npipe = op->npipe};
    const struct kl_tuner_rule *r = kl_tuner_rules_find(&t->rules, &call, op->bytes);

    if (!r) return ncclSuccess;
    for (int a = 0; a < KL_NCCL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            const bool named = (r->algo == KL_TUNER_ANY || r->algo == a) && (r->proto == KL_TUNER_ANY || r->proto == p);
            const bool any = r->algo == KL_TUNER_ANY && r->proto == KL_TUNER_ANY;
            if (named && !any && table[a][p] >= 0) table[a][p] *= 1e-6f; /* before all others, in their own order */
        }
    if (r->nchannels > 0) *nchannels = r->nchannels;
    return ncclSuccess;
}

/* ---- life ---- */

ncclResult_t kl_tuner_open(const struct kl_tuner_place *place, const struct kl_tuning_constants *constants,
                           struct kl_tuner **tuner)
{
    struct kl_tuner *t = calloc(1, sizeof *t);
    struct params params;
    ncclResult_t rc = ncclSuccess;

    *tuner = NULL;
    if (!t) return KL_NOMEM("a tuner");
    t->place = *place;
    t->constants = constants;
    kl_param_load(&kl_tuner_param_set, &params);
    if (!open_plugin(t, params.plugin) && *params.file) rc = open_file(t, params.file);
    if (!rc && (t->table || t->rules.n))
        *tuner = t;
    else
        kl_tuner_close(t);
    return rc;
}

/* Text, and so no library. */
static bool is_text_file(const char *file)
{
    unsigned char first = 0;
    FILE *from = is_regular(file) ? fopen(file, "re") : NULL;

    if (!from) return false;
    const bool read = fread(&first, 1, 1, from) == 1;
    fclose(from);
    return !read || first != 0x7f;
}

ncclResult_t kl_tuner_open_file(const struct kl_tuner_place *place, const struct kl_tuning_constants *constants,
                                const char *file, struct kl_tuner **tuner)
{
    struct kl_tuner *t = calloc(1, sizeof *t);
    ncclResult_t rc = ncclSuccess;

    *tuner = NULL;
    if (!t) return KL_NOMEM("a tuner");
    t->place = *place;
    t->constants = constants;
    if (is_text_file(file))
        rc = open_file(t, file);
    else
        (void)open_plugin(t, file);
    if (!rc && !t->table && !t->rules.n)
        rc = KL_FAIL(
            ncclInvalidArgument,
            "\"%s\" is no tuner: neither a library with ncclTunerPlugin_v%d to v%d that starts, nor a file with a "
            "rule; NCCL_DEBUG=INFO says why",
            file, OLDEST, NEWEST);
    if (!rc)
        *tuner = t;
    else
        kl_tuner_close(t);
    return rc;
}

void kl_tuner_close(struct kl_tuner *t)
{
    typedef int finalize(void *);

    if (!t) return;
    if (t->table) (void)((finalize *)t->table->finalize)(t->context);
    kl_plugin_close(t->library);
    kl_tuner_rules_free(&t->rules);
    free(t);
}

const struct kl_tuning_constants *kl_tuner_constants(const struct kl_tuner *tuner)
{
    return tuner->constants;
}

const char *kl_tuner_name(const struct kl_tuner *tuner)
{
    return tuner->name;
}

/* ---- questions ---- */

static void warn_once(struct kl_tuner *t, int rc)
{
    if (!t->failed)
        KL_WARN("tuner %s (%s, v%d): getCollInfo returned %d; such operations are as without it", t->name, t->file,
                t->version, rc);
    t->failed = true;
}

/* Take over the cells of candidates; true: some have changed. */
static bool take_cells(tuner_table table, float cost[KL_ALGOS][KL_PROTOS])
{
    bool changed = false, left = false;

    for (int a = 0; a < KL_NCCL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) left |= cost[a][p] >= 0 && table[a][p] >= 0;
    for (int a = 0; left && a < KL_NCCL_ALGOS; a++)
        for (int p = 0; p < KL_PROTOS; p++) {
            if (cost[a][p] < 0 || (table[a][p] >= cost[a][p] && table[a][p] <= cost[a][p])) continue;
            cost[a][p] = table[a][p] >= 0 ? table[a][p] : -1;
            changed = true;
        }
    return changed;
}

static bool ask(struct kl_tuner *t, const struct kl_tuning_op *op, float cost[KL_ALGOS][KL_PROTOS], int *nchannels)
{
    tuner_table table;

    *nchannels = KEEP;
    memcpy(table, cost, sizeof table);
    const int rc = t->table ? ask_plugin(t, op, table, nchannels) : ask_rules(t, op, table, nchannels);
    if (rc) {
        *nchannels = KEEP;
        warn_once(t, rc);
        return false;
    }
    if (*nchannels < 0) *nchannels = KEEP;
    return take_cells(table, cost) || *nchannels != KEEP;
}

ncclResult_t kl_tuner_choose(struct kl_tuner *tuner, const struct kl_tuning *tuning, const struct kl_tuning_op *op,
                             float cost[KL_ALGOS][KL_PROTOS], struct kl_tuning_choice *choice, bool *decided)
{
    struct kl_tuning_choice picked;
    struct kl_tuning_terms terms;
    int nchannels;

    *decided = false;
    if (!ask(tuner, op, cost, &nchannels)) return ncclSuccess;
    KL_TRY(kl_tuning_pick(tuning, op, (const float(*)[KL_PROTOS])cost, &picked));
    if (picked.algo >= KL_NCCL_ALGOS) return ncclSuccess; /* of the model, not in a tuner's table */
    kl_tuning_size(tuning, op->bytes, &picked);
    if (nchannels) picked.nchannels = nchannels < tuning->in.nchannels ? nchannels : tuning->in.nchannels;
    kl_tuning_terms(tuning, op, picked.algo, picked.proto, &terms);
    picked.time = terms.time; /* a tuner's is a preference, not an estimate */
    *choice = picked;
    *decided = true;
    return ncclSuccess;
}
