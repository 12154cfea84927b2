/* SPDX-License-Identifier: Apache-2.0 */
/** kineto.c - traces of PyTorch's profiler (Kineto) and of Kolo (KOLO_TRACE), in Chrome's JSON: one file per rank. */
#include "logs/record/make.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times of kernels. */
struct interval {
    double from, to;
};

struct intervals {
    struct interval *interval;
    int n, max;
};

struct trace {
    struct kl_record *r;
    int file;
    struct intervals comm, compute;
    double first, last;
    const json_t *kolo; /* the owner of a trace of Kolo; NULL */
};

/* ---- names of kernels ---- */

static const char *const algorithms[] = {"RING", "TREE", "COLLNET", "NVLS", "PAT"};
static const char *const operators[] = {"Sum", "Prod", "MinMax", "Min", "Max", "PreMulSum", "SumPostDiv", "sum"};

static bool is_in(const char *word, size_t n, const char *const *words, size_t nwords)
{
    for (size_t i = 0; i < nwords; i++)
        if (strlen(words[i]) == n && !strncmp(word, words[i], n)) return true;
    return false;
}

/*
 * "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(...)", "ncclKernel_AllReduce_RING_LL_Sum_float(...)". One kernel serves a family:
 * RING also runs NVLS, CollNet and PAT, and LL in a name says nothing about the protocol, except for symmetric kernels.
 */
static void read_kernel(struct kl_record *r, const char *name, struct kl_record_call *c)
{
    const bool symmetric = !strncmp(name, "ncclSym", 7);
    const char *at = strchr(name, '_');

    for (bool first = true; at && *at == '_'; first = false) {
        const char *word = at + 1;
        const size_t n = strcspn(word, "_(<");

        if (first)
            c->name = kl_record_name_n(r, word, n);
        else if (is_in(word, n, algorithms, sizeof algorithms / sizeof algorithms[0]))
            c->algorithm = kl_record_name_n(r, word, n);
        else if (is_in(word, n, operators, sizeof operators / sizeof operators[0]))
            c->op = kl_record_name_n(r, word, n);
        else if (symmetric && n >= 2 && !strncmp(word, "LL", 2))
            c->protocol = "LL";
        else if ((n == 6 && !strncmp(word, "SIMPLE", n)) || (n == 5 && !strncmp(word, "LL128", n)))
            c->protocol = kl_record_name_n(r, word, n);
        else if (n >= 2 && n <= 8 && strchr("fbuidh", *word) && isdigit((unsigned char)word[n - 1]))
            c->type = kl_record_name_n(r, word, n);
        at = word + n;
    }
    if (symmetric) c->algorithm = "symmetric";
}

static bool is_collective_kernel(const char *name)
{
    return !strncmp(name, "ncclDevKernel", 13) || !strncmp(name, "ncclKernel", 10) || !strncmp(name, "ncclSym", 7);
}

/* ---- intervals ---- */

static ncclResult_t add_interval(struct intervals *list, double from, double to)
{
    KL_TRY(kl_record_grow((void **)&list->interval, &list->n, &list->max, sizeof *list->interval));
    list->interval[list->n - 1] = (struct interval){from, to};
    return ncclSuccess;
}

static int by_begin(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

/* Make them disjoint, in order; the sum of their lengths. */
static double unite(struct intervals *list)
{
    double sum = 0;
    int kept = 0;

    if (list->n) qsort(list->interval, (size_t)list->n, sizeof *list->interval, by_begin);
    for (int i = 0; i < list->n; i++) {
        struct interval *last = kept ? &list->interval[kept - 1] : NULL;

        if (last && list->interval[i].from <= last->to)
            last->to = list->interval[i].to > last->to ? list->interval[i].to : last->to;
        else
            list->interval[kept++] = list->interval[i];
    }
    list->n = kept;
    for (int i = 0; i < kept; i++) sum += list->interval[i].to - list->interval[i].from;
    return sum;
}

/* Time in both lists, which are disjoint and in order. */
static double common(const struct intervals *a, const struct intervals *b)
{
    double sum = 0;

    for (int i = 0, k = 0; i < a->n && k < b->n;) {
        const double from = a->interval[i].from > b->interval[k].from ? a->interval[i].from : b->interval[k].from;
        const double to = a->interval[i].to < b->interval[k].to ? a->interval[i].to : b->interval[k].to;

        if (to > from) sum += to - from;
        if (a->interval[i].to < b->interval[k].to)
            i++;
        else
            k++;
    }
    return sum;
}

/* ---- members ---- */

static ncclResult_t new_member(struct trace *t, int group, int rank, int *member)
{
    char key[32];

    KL_TRY(kl_record_new_member(t->r, group, rank, t->file, member));
    snprintf(key, sizeof key, "rank %d", rank);
    KL_TRY(kl_record_proc_of(t->r, key, &t->r->member[*member].proc));
    t->r->proc[t->r->member[*member].proc].recorded = true;
    return ncclSuccess;
}

/* Kernels name their process group where the profiler recorded it. */
static ncclResult_t member_of(struct trace *t, const json_t *args, int *member)
{
    const char *id = t->kolo ? kl_json_get_text(t->kolo, "communicator") : kl_json_get_text(args, "Process Group Name");
    const char *listed = kl_json_get_text(args, "Process Group Ranks");
    const int rank = t->r->file[t->file].rank;
    int group;

    KL_TRY(kl_record_group_of(t->r, id, listed, &group));
    *member = kl_record_member_of(t->r, group, rank, t->file);
    if (*member >= 0) return ncclSuccess;
    t->r->group[group].desc = kl_record_name(t->r, kl_json_get_text(args, "Process Group Description"));
    t->r->group[group].size = (int)kl_json_get_int(args, "Group size", t->r->file[t->file].ranks);
    return new_member(t, group, rank, member);
}

/* ---- events ---- */

static void read_args(struct trace *t, const json_t *args, struct kl_record_call *c)
{
    const char *type = kl_json_get_text(args, "dtype");

    c->in = kl_json_get_int(args, "In msg nelems", kl_json_get_int(args, "count", -1));
    c->out = kl_json_get_int(args, "Out msg nelems", c->in);
    c->bytes = kl_json_get_int(args, "bytes", -1);
    if (*type) c->type = kl_record_name(t->r, type);
    if (!t->kolo) return;
    kl_record_whole_counts(c, t->r->file[t->file].ranks);
    c->peer = (int)kl_json_get_int(args, "peer", -1);
    c->type = kl_record_name(t->r, kl_json_get_text(args, "type"));
    c->op = kl_record_name(t->r, kl_json_get_text(args, "operator"));
    c->algorithm = kl_record_name(t->r, kl_json_get_text(args, "algorithm"));
    c->protocol = kl_record_name(t->r, kl_json_get_text(args, "protocol"));
}

static bool is_message(const char *name)
{
    return !strcmp(name, "SendRecv") || !strcmp(name, "Send") || !strcmp(name, "Recv");
}

/* The rank of the job at a place of a group that is listed as "[0, 8, 16]"; the place itself where no list has it. */
static int rank_at(const char *listed, int place)
{
    const char *at = listed + strspn(listed, "[( ");

    for (int i = 0; isdigit((unsigned char)*at); i++) {
        char *end;
        const long rank = strtol(at, &end, 10);

        if (i == place) return rank < 1 << 20 ? (int)rank : -1;
        at = end + strspn(end, ", ");
    }
    return place;
}

/* One kernel serves messages and all-to-alls: the arguments say which. */
static void read_message(struct trace *t, const json_t *args, struct kl_record_call *c)
{
    const char *name = kl_json_get_text(args, "Collective name");
    const bool receives = !strcmp(name, "recv") || !strcmp(c->name, "Recv");
    const int64_t peer = kl_json_get_int(args, receives ? "Src Rank" : "Dst Rank", -1);

    if (*name && strcmp(name, "send") && !receives) { /* "all_to_allv", "gather" */
        c->name = kl_record_name(t->r, name);
        return;
    }
    c->kind = receives ? KL_CALL_RECV : KL_CALL_SEND;
    if (!t->kolo && peer >= 0 && peer < 1 << 20)
        c->peer = rank_at(kl_json_get_text(args, "Process Group Ranks"), (int)peer);
}

static ncclResult_t add_call(struct trace *t, const json_t *e, const char *name, double from, double took)
{
    const json_t *args = json_object_get(e, "args");
    int member, call;

    KL_TRY(member_of(t, args, &member));
    KL_TRY(kl_record_new_call(t->r, member, &call));
    struct kl_record_call *c = &t->r->call[call];

    if (t->kolo)
        c->name = kl_record_name(t->r, name);
    else
        read_kernel(t->r, name, c);
    read_args(t, args, c);
    if (is_message(c->name)) read_message(t, args, c);
    c->number = kl_json_get_int(args, "Seq", kl_json_get_int(args, "collective", -1));
    if (c->number < 0 && c->kind == KL_CALL_COLLECTIVE) {
        t->r->file[t->file].numbers = KL_NUMBERS_OF_FILE;
        c->number = kl_record_next_number(t->r, member);
    }
    if (c->kind == KL_CALL_COLLECTIVE && c->number > t->r->member[member].called)
        t->r->member[member].called = c->number;
    c->begun_us = from;
    c->took_us = took;
    c->state = KL_CALL_ENDED;
    return ncclSuccess;
}

static ncclResult_t add_event(struct trace *t, const json_t *e)
{
    const char *category = kl_json_get_text(e, "cat"), *name = kl_json_get_text(e, "name");
    const double from = kl_json_get_real(e, "ts", -1), took = kl_json_get_real(e, "dur", -1);
    const bool kernel =
        t->kolo ? !strcmp(category, "operation") : !strcmp(category, "kernel") || !strcmp(category, "Kernel");

    if (from < 0 || took < 0 || strcmp(kl_json_get_text(e, "ph"), "X")) return ncclSuccess;
    if (t->first < 0 || from < t->first) t->first = from;
    if (from + took > t->last) t->last = from + took;
    if (!kernel) return ncclSuccess;
    if (!t->kolo && !is_collective_kernel(name)) return add_interval(&t->compute, from, from + took);
    KL_TRY(add_interval(&t->comm, from, from + took));
    return add_call(t, e, name, from, took);
}

/* ---- the file ---- */

static int rank_of_name(const char *name)
{
    const char *at = name + strlen(name);

    while (at > name && at[-1] != '/' && !isdigit((unsigned char)at[-1])) at--;
    const char *end = at;

    while (at > name && isdigit((unsigned char)at[-1])) at--;
    return at < end && end - at < 8 ? (int)strtol(at, NULL, 10) : -1;
}

static void read_owner(struct trace *t, const json_t *document)
{
    const json_t *info = json_object_get(document, "distributedInfo");
    struct kl_record_file *f = &t->r->file[t->file];
    int64_t rank = kl_json_get_int(t->kolo ? t->kolo : info, "rank", -1);

    if (rank < 0) rank = rank_of_name(f->name);
    f->rank = rank >= 0 && rank < 1 << 20 ? (int)rank : t->file;
    f->rank_guessed = rank < 0;
    f->ranks = (int)kl_json_get_int(t->kolo ? t->kolo : info, t->kolo ? "nranks" : "world_size", -1);
    f->version = kl_record_name(t->r, kl_json_get_text(info, "nccl_version"));
}

static void end_file(struct trace *t)
{
    struct kl_record_file *f = &t->r->file[t->file];

    f->comm_us = unite(&t->comm);
    f->compute_us = unite(&t->compute);
    f->hidden_us = common(&t->comm, &t->compute);
    f->span_us = t->last > t->first ? t->last - t->first : 0;
}

ncclResult_t kl_record_add_kineto(struct kl_record *r, int file, const char *text, size_t bytes)
{
    struct trace t = {.r = r, .file = file, .first = -1};
    json_t *document, *e;
    size_t i;

    KL_TRY(kl_record_parse(r->file[file].name, text, bytes, &document));
    ncclResult_t rc = ncclSuccess;

    t.kolo = json_object_get(document, "kolo");
    read_owner(&t, document);
    json_array_foreach(json_object_get(document, "traceEvents"), i, e)
    {
        if (!rc) rc = add_event(&t, e);
    }
    end_file(&t);
    json_decref(document);
    free(t.comm.interval);
    free(t.compute.interval);
    if (!rc && !t.comm.n && !r->ncall)
        rc = KL_FAIL(ncclInvalidUsage, "%s: a trace without kernels of NCCL: profile with ProfilerActivity.CUDA",
                     r->file[file].name);
    return rc;
}
