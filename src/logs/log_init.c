/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/log_make.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- versions and settings ---- */

static int version_number(const char *text)
{
    int major = 0, minor = 0, patch = 0;

    if (!kl_log_int(&text, &major) || *text++ != '.' || !kl_log_int(&text, &minor)) return 0;
    if (*text == '.' && text++) kl_log_int(&text, &patch);
    if (major < 1 || major > 99 || minor < 0 || minor > 99 || patch < 0 || patch > 99) return 0;
    return major * 10000 + minor * 100 + patch;
}

/* "2.28.9" of "2.28.9+cuda12.8", "2.28.9." */
static size_t version_length(const char *text)
{
    size_t n = strspn(text, "0123456789.");

    while (n && text[n - 1] == '.') n--;
    return n;
}

/* Releases as libraries and the programs around them print them. Digits: "22707", as nccl-tests have it. */
static const struct {
    const char *before;
    bool rccl, digits;
} version_forms[] = {
    {"RCCL version", true, false},    {"rccl-library=", true, true},      {"NCCL version ", false, false},
    {"NCCL version: ", false, false}, {"nccl-library=", false, true},     {"rccl==", true, false},
    {"nccl==", false, false},         {"nvidia-nccl-cu12", false, false}, {"nvidia-nccl-cu13", false, false}};

static int read_digits(const char *at, char text[16])
{
    long n = strtol(at, NULL, 10);

    if (n < 20000 || n > 99999) return 0;
    snprintf(text, 16, "%ld.%ld.%ld", n / 10000, n / 100 % 100, n % 100);
    return (int)n;
}

/* Of comments, only nccl-tests' name the library's release. */
static bool read_version(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    for (size_t i = 0; i < sizeof version_forms / sizeof version_forms[0]; i++) {
        const char *at = kl_log_after(line->text, version_forms[i].before);
        char digits[16];
        int number;

        if (!at || (*line->text == '#' && !version_forms[i].digits)) continue;
        at += strspn(at, " :=");
        number = version_forms[i].digits ? read_digits(at, digits) : version_number(at);
        if (!number) continue;
        struct kl_log_version *v = KL_LOG_NEW(log, version);
        const char *text = version_forms[i].digits ? digits : at;

        log->amd |= version_forms[i].rccl;
        if (v)
            *v = (struct kl_log_version){line->at,
                                         origin,
                                         kl_log_keep(log, text, version_length(text)),
                                         number,
                                         version_forms[i].rccl,
                                         version_forms[i].digits};
        return true;
    }
    return false;
}

static bool is_name(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isupper((unsigned char)text[i]) && !isdigit((unsigned char)text[i]) && text[i] != '_') return false;
    return n > 5;
}

static void add_setting(struct kl_log *log, int origin, const struct kl_log_line *line, const char *name, size_t n,
                        const char *value, bool by_plugin)
{
    size_t length = strcspn(value, " \"';");
    struct kl_log_setting *s = KL_LOG_NEW(log, setting);

    if (!s) return;
    while (length && (value[length - 1] == '.' || value[length - 1] == ',')) length--;
    *s = (struct kl_log_setting){line->at, origin, kl_log_keep(log, name, n), kl_log_keep(log, value, length),
                                 by_plugin};
}

/* Settings stand at the start of a line, behind "export", or among the words of a launcher: "mpirun -x NCCL_X=1 ...". */
static bool is_command(const char *text)
{
    static const char *const launchers[] = {"export ",    "mpirun ",     "mpiexec ", "srun ",
                                            "torchrun ",  "docker run ", "env ",     "python",
                                            "deepspeed ", "accelerate ", "_perf ",   "ENV "};
    const char *equals = strchr(text, '=');

    if (!strncmp(text, "NCCL_", 5) && equals && is_name(text, (size_t)(equals - text))) return true;
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++)
        if (strstr(text, launchers[i])) return equals != NULL;
    return false;
}

static bool add_command_settings(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    int n = 0;

    for (const char *at = strstr(line->text, "NCCL_"); at; at = strstr(at + 1, "NCCL_")) {
        size_t length = strcspn(at, " =");

        if (at[length] != '=' || !is_name(at, length) || (at > line->text && !strchr(" \"'=", at[-1]))) continue;
        const char *value = at + length + 1;

        value += *value == '"' || *value == '\'';
        add_setting(log, origin, line, at, length, value, false);
        n++;
    }
    return n > 0;
}

/* "NCCL_X set by environment to Y", "NCCL_X set to Y", a plugin's "Adding NCCL_X=Y to environment". */
static bool read_setting(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    static const char *const forms[] = {" set by environment to ", " set by ", " set to "};
    const char *added = kl_log_after(line->text, "Adding NCCL_"), *name = strstr(line->text, "NCCL_");

    if (added) {
        size_t n = strcspn(added -= 5, "=");

        if (added[n] != '=' || !is_name(added, n)) return false;
        add_setting(log, origin, line, added, n, added + n + 1, true);
        return true;
    }
    if (!name) return false;
    if (line->level == KL_LOG_PLAIN && is_command(line->text)) return add_command_settings(log, origin, line);
    size_t n = strcspn(name, " =");

    if (!is_name(name, n)) return false;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        const char *value = name + n;

        if (strncmp(value, forms[i], strlen(forms[i]))) continue;
        value += strlen(forms[i]);
        if (i == 1 && !(value = kl_log_after(value, " to "))) continue;
        add_setting(log, origin, line, name, n, value, false);
        return true;
    }
    return false;
}

/* ---- ranks ---- */

static const char *word_after(struct kl_log *log, const char *text, const char *word)
{
    const char *at = kl_log_after(text, word);

    return at && *at ? kl_log_keep(log, at, strcspn(at, " ")) : NULL;
}

static void set_number(int *field, const char *text, const char *word)
{
    *field = (int)kl_log_number(text, word, *field);
}

static void read_identity(struct kl_log *log, struct kl_log_member *m, const char *text)
{
    const char *id = word_after(log, text, " commId ");

    if (!id) id = word_after(log, text, " color "); /* of a split, before it names the communicator */
    set_number(&m->rank, text, " rank ");
    set_number(&m->nranks, text, " nranks ");
    set_number(&m->nranks, text, " nRanks ");
    set_number(&m->nnodes, text, " nNodes ");
    set_number(&m->local_ranks, text, " localRanks ");
    set_number(&m->cuda, text, " cudaDev ");
    set_number(&m->nvml, text, " nvmlDev ");
    const char *pointer = kl_log_after(text, "comm 0x"), *busid = word_after(log, text, " busId ");

    if (pointer) m->pointer = strtoull(pointer, NULL, 16);
    if (busid) m->busid = busid;
    if (id) m->id = id;
}

/* A line that names its rank is about the member with it. */
static int member_named(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    int rank = (int)kl_log_number(line->text, " rank ", -1), m = kl_log_member_of(log, origin, line->at);

    if (m < 0 || log->member[m].rank < 0 || log->member[m].rank == rank) return m;
    for (int i = log->origin[origin].last; i >= 0; i = log->member[i].earlier)
        if (log->member[i].rank == rank) return log->origin[origin].member = i;
    return kl_log_new_member(log, origin, line->at);
}

static bool read_start(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    if (!strstr(line->text, "Init START")) return false;
    int m = kl_log_member_of(log, origin, line->at);

    if (m >= 0 && (log->member[m].started || log->member[m].rank >= 0)) m = kl_log_new_member(log, origin, line->at);
    if (m < 0) return true;
    read_identity(log, &log->member[m], line->text);
    log->member[m].started = true;
    log->member[m].at = line->at;
    kl_log_reach(log, m, KL_LOG_BEGUN, line->at);
    return true;
}

static bool read_rank(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *t = line->text;
    bool complete = strstr(t, "Init COMPLETE") != NULL;

    if (!complete && !(strstr(t, "comm 0x") && strstr(t, " rank ") && strstr(t, " nRanks "))) return false;
    int m = member_named(log, origin, line);

    if (m < 0) return true;
    read_identity(log, &log->member[m], t);
    log->member[m].completed |= complete;
    if (!complete) kl_log_reach(log, m, KL_LOG_MET, line->at);
    return true;
}

/* "24 coll channels, 24 collnet channels, 0 nvls channels, 32 p2p channels, 32 p2p channels per peer" */
static bool read_channels(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    static const struct {
        const char *words;
        size_t field;
    } counts[] = {{" coll channels", offsetof(struct kl_log_member, coll)},
                  {" collnet channels", offsetof(struct kl_log_member, collnet)},
                  {" nvls channels", offsetof(struct kl_log_member, nvls)},
                  {" p2p channels per peer", offsetof(struct kl_log_member, per_peer)},
                  {" p2p channels,", offsetof(struct kl_log_member, p2p)}};

    if (!strstr(line->text, " coll channels, ")) return false;
    int m = kl_log_member_of(log, origin, line->at);

    if (m >= 0 && log->member[m].coll >= 0) m = kl_log_new_member(log, origin, line->at);
    for (size_t i = 0; m >= 0 && i < sizeof counts / sizeof counts[0]; i++) {
        const char *end = strstr(line->text, counts[i].words), *at = end;

        while (at && at > line->text && isdigit((unsigned char)at[-1])) at--;
        if (at) kl_log_int(&at, (int *)((char *)&log->member[m] + counts[i].field));
    }
    if (m >= 0) log->member[m].channels_at = line->at;
    kl_log_reach(log, m, KL_LOG_PLANNED, line->at);
    return true;
}

/* "Init timings - ncclCommInitRank: rank 0 nranks 8 total 55.17 (kernels 52.33, alloc 0.42, ...)" */
static bool read_timings(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *total = kl_log_after(line->text, " total "), *at = kl_log_after(line->text, " (");

    if (!strstr(line->text, "Init timings") || !total || !at) return false;
    int m = member_named(log, origin, line);

    if (m < 0) return true;
    struct kl_log_member *r = &log->member[m];

    read_identity(log, r, line->text);
    r->completed = true;
    char *unit;
    const double whole = strtod(total, &unit), scale = strncmp(unit, " ms", 3) ? 1 : 1e-3; /* Kolo's own are in ms */
    r->total = whole * scale;
    r->timings_at = line->at;
    r->phase_s = 0;
    while (*at && *at != ')') {
        size_t n = strcspn(at, " ,)");
        double s = strtod(at + n, NULL) * scale;

        if (s > r->phase_s) {
            r->phase_s = s;
            r->phase = kl_log_keep(log, at, n);
        }
        at += strcspn(at, ",)");
        at += strspn(at, ", ");
    }
    return true;
}

/* "Setting affinity for GPU 0 to ff", "Affinity for GPU 4 is 64-95. (...)" */
static bool read_affinity(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *set = kl_log_after(line->text, "Setting affinity for GPU "),
               *is = kl_log_after(line->text, "Affinity for GPU "), *value;

    value = set ? kl_log_after(set, " to ") : is ? kl_log_after(is, " is ") : NULL;
    if (!value) return false;
    int m = kl_log_planning(log, origin, line->at);

    if (m < 0) return true;
    log->member[m].cpus = kl_log_keep(log, value, strspn(value, "0123456789abcdef,-"));
    log->member[m].cpus_at = line->at;
    return true;
}

/* "Check P2P Type isAllDirectP2p 1 ...", "... intraNodeP2pSupport 0 ..." */
static bool read_p2p_check(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    if (!strstr(line->text, "Check P2P Type")) return false;
    int m = kl_log_member_of(log, origin, line->at);

    if (m < 0) return true;
    set_number(&log->member[m].all_p2p, line->text, "isAllDirectP2p ");
    set_number(&log->member[m].all_p2p, line->text, "intraNodeP2pSupport ");
    return true;
}

/* "P2P from the GPU of rank 0 to the GPU of rank 1 is broken: reads are wrong" */
static bool read_tested(const char *text, struct kl_log_gpu_path *p, const char **why)
{
    const char *at = kl_log_after(text, "P2P from the GPU of rank ");

    if (!at || !kl_log_int(&at, &p->from)) return false;
    at = kl_log_after(at, " to the GPU of rank ");
    if (!at || !kl_log_int(&at, &p->to) || *at != ' ') return false;
    *why = at + 1;
    return p->tested = true;
}

/* "the GPUs of ranks 0 and 1, and all others, use no P2P: ..." */
static bool read_forbidden(const char *text, struct kl_log_gpu_path *p, const char **why)
{
    const char *at = kl_log_after(text, "the GPUs of ranks ");

    if (!at || !kl_log_int(&at, &p->from)) return false;
    at = kl_log_after(at, " and ");
    if (!at || !kl_log_int(&at, &p->to)) return false;
    return (*why = kl_log_after(at, ", and all others, use no P2P: ")) != NULL;
}

static bool read_gpu_path(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    struct kl_log_gpu_path p = {.at = line->at, .origin = origin}, *kept;
    const char *why;

    if (!read_tested(line->text, &p, &why) && !read_forbidden(line->text, &p, &why)) return false;
    kept = KL_LOG_NEW(log, gpu_path);
    if (!kept) return true;
    *kept = p;
    kept->why = kl_log_keep(log, why, strlen(why));
    return true;
}

static bool read_nvls(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "NVLS multicast support is ");

    if (!at) return false;
    int m = kl_log_planning(log, origin, line->at);

    if (m >= 0) log->member[m].nvls_support = strncmp(at, "not ", 4) != 0;
    return true;
}

/* nccl-tests: "#  Rank  0 Group  0 Pid  13510 on     hostA device  0 [0x08] Tesla V100-SXM2-16GB" */
static bool read_device(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, " Rank "), *pid = kl_log_after(line->text, " Pid ");
    const char *host = pid ? kl_log_after(pid, " on ") : NULL, *name = host ? kl_log_after(host, "] ") : NULL;
    int rank;

    (void)origin;
    if (!at || !host || !strstr(host, " device ")) return false;
    at += strspn(at, " ");
    if (!kl_log_int(&at, &rank)) return false;
    struct kl_log_device *d = KL_LOG_NEW(log, device);

    if (!d) return true;
    host += strspn(host, " ");
    *d = (struct kl_log_device){.at = line->at,
                                .rank = rank,
                                .pid = strtol(pid, NULL, 10),
                                .host = kl_log_keep(log, host, strcspn(host, " ")),
                                .name = name ? kl_log_keep(log, name, strlen(name)) : ""};
    return true;
}

/* "AllReduce: 268435456 Bytes -> Algo NVLS proto SIMPLE channel{Lo..Hi}={0..15}": choices are not judged. */
static bool read_choice(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    (void)log;
    (void)origin;
    return strstr(line->text, " Bytes -> Algo ") != NULL;
}

bool kl_log_read_init(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    static bool (*const forms[])(struct kl_log *, int, const struct kl_log_line *) = {
        read_start, read_rank,   read_channels, read_timings, read_affinity, read_p2p_check,
        read_nvls,  read_device, read_choice,   read_version, read_setting,  read_gpu_path};

    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i](log, origin, line)) return true;
    return false;
}
