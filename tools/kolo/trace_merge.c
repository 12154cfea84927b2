/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/trace_merge.h"

#include "base/error.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The trace of a rank. */
struct trace {
    const char *file;
    json_t *document;
    const char *communicator;
    int rank, nranks;
    double shift_us; /* to the axis of rank 0 */
};

/* A collective, as one rank began it. */
struct start {
    const char *communicator;
    json_int_t number;
    int of; /* which trace */
    double us;
};

/* ---- reading ---- */

/* An error without a place in the file is one of reading it. */
static ncclResult_t load(const char *file, json_t **document)
{
    json_error_t error;
    FILE *from = fopen(file, "re");

    if (!from) return KL_FAIL_ERRNO("%s", file);
    *document = json_loadf(from, 0, &error);
    ncclResult_t rc = *document ? ncclSuccess : ferror(from) ? KL_FAIL_ERRNO("%s", file) : ncclInvalidUsage;
    fclose(from);
    if (rc == ncclInvalidUsage && error.line > 0)
        return KL_FAIL(rc, "%s:%d: %s; it should be a trace (KOLO_TRACE)", file, error.line, error.text);
    return rc == ncclInvalidUsage ? KL_FAIL(rc, "%s: %s; it should be a trace (KOLO_TRACE)", file, error.text) : rc;
}

static ncclResult_t read_trace(const char *file, struct trace *t)
{
    const char *communicator;
    double offset = 0;
    json_t *clock = NULL;

    t->file = file;
    KL_TRY(load(file, &t->document));
    if (json_unpack(t->document, "{s:{s:s, s:i, s:i, s?o}, s:o}", "kolo", "communicator", &communicator, "rank",
                    &t->rank, "nranks", &t->nranks, "clock", &clock, "traceEvents", &(json_t *){NULL}))
        return KL_FAIL(ncclInvalidUsage, "%s: this is not the trace of a rank (KOLO_TRACE)", file);
    if (clock) (void)json_unpack(clock, "{s:F}", "offset_ns", &offset);
    t->communicator = communicator;
    t->shift_us = offset / 1e3;
    return ncclSuccess;
}

static int by_rank(const void *a, const void *b)
{
    const struct trace *x = a, *y = b;
    int order = strcmp(x->communicator, y->communicator);

    return order ? order : x->rank - y->rank;
}

static ncclResult_t check_distinct(const struct trace *t, int n)
{
    for (int i = 1; i < n; i++)
        if (!by_rank(&t[i - 1], &t[i]))
            return KL_FAIL(ncclInvalidUsage, "%s and %s are both of rank %d", t[i - 1].file, t[i].file, t[i].rank);
    return ncclSuccess;
}

/* ---- one axis ---- */

static double time_of(const json_t *event)
{
    return json_number_value(json_object_get(event, "ts"));
}

static double earliest(const struct trace *t, int n)
{
    double first = INFINITY;
    size_t i;
    json_t *event;

    for (int k = 0; k < n; k++) json_array_foreach(json_object_get(t[k].document, "traceEvents"), i, event)
        {
            double ts = time_of(event) + t[k].shift_us;
            if (json_object_get(event, "ts") && ts < first) first = ts;
        }
    return first;
}

/* Traces have a resolution of nanoseconds. */
static double rounded(double us)
{
    return round(us * 1e3) / 1e3;
}

/* Convert from the clock of its rank to rank 0's, relative to the first event; and give it a process of its own. */
static int place(json_t *event, const struct trace *t, int process, double zero)
{
    if (json_object_set_new(event, "pid", json_integer(process))) return -1;
    if (!json_object_get(event, "ts")) return 0;
    return json_object_set_new(event, "ts", json_real(rounded(time_of(event) + t->shift_us - zero)));
}

static json_t *label(const struct trace *t, int process)
{
    return json_pack("{s:s, s:i, s:s, s:{s:i}, s:s}", "ph", "M", "pid", process, "name", "process_sort_index", "args",
                     "sort_index", process, "communicator", t->communicator);
}

static json_t *merged(struct trace *t, int n)
{
    double zero = earliest(t, n);
    json_t *all = json_array(), *event;
    int failed = !all;
    size_t i;

    for (int k = 0; k < n && !failed; k++) {
        json_array_foreach(json_object_get(t[k].document, "traceEvents"), i, event) failed |=
            place(event, &t[k], k, zero) || json_array_append(all, event);
        failed |= json_array_append_new(all, label(&t[k], k));
    }
    if (failed) {
        json_decref(all);
        return NULL;
    }
    return json_pack("{s:s, s:o}", "displayTimeUnit", "ns", "traceEvents", all);
}

static ncclResult_t write_merged(struct trace *t, int n, const char *out)
{
    json_t *document = merged(t, n);

    if (!document) return KL_NOMEM("a merged trace");
    int failed = json_dump_file(document, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    json_decref(document);
    return failed ? KL_FAIL_ERRNO("cannot write %s", out) : ncclSuccess;
}

/* ---- late ranks ---- */

static int by_collective(const void *a, const void *b)
{
    const struct start *x = a, *y = b;
    int order = strcmp(x->communicator, y->communicator);

    if (order) return order;
    return x->number == y->number ? x->of - y->of : x->number < y->number ? -1 : 1;
}

static bool is(const json_t *event, const char *category)
{
    const char *text = json_string_value(json_object_get(event, "cat"));

    return text && !strcmp(text, category);
}

/* Its collectives. Messages have a peer, and no number that means anything elsewhere. */
static size_t collect(const struct trace *t, int of, struct start *to, struct kl_trace_rank *rank)
{
    size_t i, n = 0;
    json_t *event;

    json_array_foreach(json_object_get(t->document, "traceEvents"), i, event)
    {
        const json_t *args = json_object_get(event, "args"), *number = json_object_get(args, "collective");
        if (is(event, "wait")) rank->waiting_us += json_number_value(json_object_get(event, "dur"));
        if (!is(event, "operation") || !number) continue;
        to[n++] = (struct start){t->communicator, json_integer_value(number), of, time_of(event)};
    }
    return n;
}

/* The same collective, at `n` ranks. */
static void compare(const struct start *s, size_t n, struct kl_trace_findings *f)
{
    double first = INFINITY;
    size_t last = 0;

    for (size_t i = 0; i < n; i++) {
        if (s[i].us < first) first = s[i].us;
        if (s[i].us > s[last].us) last = i;
    }
    for (size_t i = 0; i < n; i++) f->rank[s[i].of].late_us += s[i].us - first;
    f->rank[s[last].of].last++;
    f->compared++;
}

static void compare_all(const struct trace *t, const struct start *s, size_t n, struct kl_trace_findings *f)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && s[end].communicator == s[i].communicator && s[end].number == s[i].number;) end++;
        if (end - i > 1 && (int)(end - i) == t[s[i].of].nranks) compare(s + i, end - i, f);
    }
}

static void describe(const struct trace *t, struct kl_trace_rank *rank)
{
    const json_t *kolo = json_object_get(t->document, "kolo");
    const json_t *error = json_object_get(json_object_get(kolo, "clock"), "error_ns");

    rank->rank = t->rank;
    rank->error_us = error ? json_number_value(error) / 1e3 : -1;
    snprintf(rank->communicator, sizeof rank->communicator, "%s", t->communicator);
}

static size_t events_of(const struct trace *t)
{
    return json_array_size(json_object_get(t->document, "traceEvents"));
}

static ncclResult_t find(const struct trace *t, int n, struct kl_trace_findings *f)
{
    size_t nstarts = 0, nevents = 0;

    for (int k = 0; k < n; k++) nevents += events_of(&t[k]);
    f->events += (long)nevents;
    struct start *s = calloc(nevents + 1, sizeof *s);
    f->rank = calloc((size_t)n, sizeof *f->rank);
    if (!s || !f->rank) {
        free(s);
        return KL_NOMEM("the findings of traces");
    }
    f->nranks = n;
    for (int k = 0; k < n; k++) {
        describe(&t[k], &f->rank[k]);
        f->lost += (long)json_integer_value(json_object_get(json_object_get(t[k].document, "kolo"), "events_lost"));
        size_t more = collect(&t[k], k, s + nstarts, &f->rank[k]);
        for (size_t i = 0; i < more; i++) {
            s[nstarts + i].us += t[k].shift_us;
            for (int e = 0; e < k; e++) /* texts that are equal are one, so that they can be compared */
                if (!strcmp(t[e].communicator, t[k].communicator)) {
                    s[nstarts + i].communicator = t[e].communicator;
                    break;
                }
        }
        nstarts += more;
    }
    qsort(s, nstarts, sizeof *s, by_collective);
    compare_all(t, s, nstarts, f);
    for (int k = 0; k < n && f->compared; k++) f->rank[k].late_us /= (double)f->compared;
    free(s);
    return ncclSuccess;
}

/* ---- all of it ---- */

static ncclResult_t merge(char **files, struct trace *t, int n, const char *out, struct kl_trace_findings *f)
{
    for (int k = 0; k < n; k++) KL_TRY(read_trace(files[k], &t[k]));
    qsort(t, (size_t)n, sizeof *t, by_rank);
    KL_TRY(check_distinct(t, n));
    KL_TRY(find(t, n, f));
    return write_merged(t, n, out);
}

ncclResult_t kl_trace_merge(char **files, int n, const char *out, struct kl_trace_findings *findings)
{
    struct trace *t = calloc((size_t)n, sizeof *t);

    *findings = (struct kl_trace_findings){0};
    if (!t) return KL_NOMEM("traces");
    ncclResult_t rc = merge(files, t, n, out, findings);
    for (int k = 0; k < n; k++) json_decref(t[k].document);
    free(t);
    return rc;
}

void kl_trace_findings_fini(struct kl_trace_findings *findings)
{
    free(findings->rank);
}

/* ---- in words ---- */

static const struct kl_trace_rank *latest(const struct kl_trace_findings *f)
{
    const struct kl_trace_rank *worst = &f->rank[0];

    for (int k = 1; k < f->nranks; k++)
        if (f->rank[k].last > worst->last) worst = &f->rank[k];
    return worst;
}

void kl_trace_findings_text(const struct kl_trace_findings *f, const char *out, FILE *to)
{
    fprintf(to, "%ld events of %d ranks in %s; %ld older ones were not kept\n", f->events, f->nranks, out, f->lost);
    if (!f->compared) {
        fprintf(to, "no collective is in the traces of all ranks: nobody can be compared\n");
        return;
    }
    fprintf(to, "\n%-8s %-14s %-16s %-12s %s\n", "rank", "last to begin", "late, mean us", "waits, ms", "clock, us");
    for (int k = 0; k < f->nranks; k++) {
        const struct kl_trace_rank *r = &f->rank[k];
        fprintf(to, "%-8d %-14ld %-16.1f %-12.2f ", r->rank, r->last, r->late_us, r->waiting_us / 1e3);
        fprintf(to, r->error_us < 0 ? "unknown\n" : "+-%.1f\n", r->error_us);
    }
    const struct kl_trace_rank *w = latest(f);
    fprintf(to, "\nrank %d was the last to begin %ld of %ld collectives, on average %.1f us after the first\n", w->rank,
            w->last, f->compared, w->late_us);
}

json_t *kl_trace_findings_json(const struct kl_trace_findings *f)
{
    json_t *ranks = json_array();

    for (int k = 0; k < f->nranks; k++) {
        const struct kl_trace_rank *r = &f->rank[k];
        json_array_append_new(ranks, json_pack("{s:s, s:i, s:I, s:f, s:f, s:f}", "communicator", r->communicator,
                                               "rank", r->rank, "last_to_begin", (json_int_t)r->last, "late_us",
                                               r->late_us, "waiting_us", r->waiting_us, "clock_error_us", r->error_us));
    }
    return json_pack("{s:I, s:I, s:I, s:o}", "events", (json_int_t)f->events, "lost", (json_int_t)f->lost, "compared",
                     (json_int_t)f->compared, "ranks", ranks);
}
