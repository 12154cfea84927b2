/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/perf_measure.h"

#include "base/clock.h"
#include "base/error.h"
#include "device/host/redop.h"
#include "tools/kolo/perf_agree.h"
#include "tools/kolo/perf_expected.h"
#include "tools/kolo/perf_graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COMPLAINTS = 5 }; /* of a thread; the table counts the rest */

/* The size that the table shows: of a rank's larger buffer. */
static size_t table_bytes(const struct kl_perf_op *op)
{
    return (op->shape.send > op->shape.recv ? op->shape.send : op->shape.recv) * op->element_bytes;
}

/* ---- the ranks of a thread together ---- */

static void begin_step(struct kl_perf_thread *t, enum kl_watchdog_phase phase)
{
    for (int i = 0; i < t->config->ndevices; i++) {
        const struct kl_perf_rank *r = &t->rank[i];
        struct kl_watchdog_step step = {
            .phase = phase,
            .bytes = table_bytes(&r->op),
            .type = r->op.type,
            .in_place = r->in_place,
        };
        kl_watchdog_begin(r->slot, &step);
    }
}

static void end_step(struct kl_perf_thread *t)
{
    for (int i = 0; i < t->config->ndevices; i++) kl_watchdog_end(t->rank[i].slot);
}

static ncclResult_t synchronize(struct kl_perf_thread *t)
{
    for (int i = 0; i < t->config->ndevices; i++) KL_TRY(koloStreamSynchronize(t->rank[i].stream));
    return ncclSuccess;
}

/* A group is closed whatever happened inside, or it would swallow all that follows. */
static ncclResult_t close_group(ncclResult_t inside)
{
    ncclResult_t end = ncclGroupEnd();

    return inside ? inside : end;
}

static ncclResult_t issue_step(struct kl_perf_thread *t, int step, int iteration)
{
    ncclResult_t rc = ncclSuccess;

    if (t->config->ndevices == 1) return kl_perf_rank_issue(&t->rank[0], step, iteration);
    KL_TRY(ncclGroupStart());
    for (int i = 0; i < t->config->ndevices && !rc; i++) rc = kl_perf_rank_issue(&t->rank[i], step, iteration);
    return close_group(rc);
}

static ncclResult_t issue_operation(struct kl_perf_thread *t, int iteration)
{
    int nsteps = kl_coll_steps(kl_coll_id(t->config->coll), t->nranks);

    for (int step = 0; step < nsteps; step++) KL_TRY(issue_step(t, step, iteration));
    return ncclSuccess;
}

/* One iteration: an operation, or -m of them in a group. */
static ncclResult_t issue_iteration(struct kl_perf_thread *t, int iteration)
{
    int m = t->config->aggregated;
    ncclResult_t rc = ncclSuccess;

    if (m == 1) return issue_operation(t, iteration);
    KL_TRY(ncclGroupStart());
    for (int i = 0; i < m && !rc; i++) rc = issue_operation(t, iteration * m + i);
    return close_group(rc);
}

/* ---- agreeing ---- */

/* Every rank takes part, but a thread's values count once in a sum. */
static ncclResult_t agree_some(struct kl_perf_thread *t, double *values, size_t n, ncclRedOp_t op)
{
    int ndevices = t->config->ndevices;

    for (int i = 0; i < ndevices; i++)
        for (size_t k = 0; k < n; k++) t->rank[i].scratch[k] = i && op == ncclSum ? 0 : values[k];
    KL_TRY(kl_perf_combine(t->rank, ndevices, n, op));
    memcpy(values, t->rank[0].scratch, n * sizeof *values);
    return ncclSuccess;
}

/* Combine n values of every thread by op (sum, min or max), in place. All threads of the job call it together; as a
 * barrier, with any value. */
static ncclResult_t agree(struct kl_perf_thread *t, double *values, size_t n, ncclRedOp_t op)
{
    begin_step(t, KL_PHASE_AGREE);
    for (size_t i = 0; i < n; i += KL_PERF_SCRATCH) {
        size_t some = n - i < KL_PERF_SCRATCH ? n - i : KL_PERF_SCRATCH;
        KL_TRY(agree_some(t, values + i, some, op));
    }
    end_step(t);
    return ncclSuccess;
}

static ncclResult_t barrier(struct kl_perf_thread *t)
{
    double nothing = 0;

    return agree(t, &nothing, 1, ncclSum);
}

/* ---- iterations ---- */

/* -z. The barrier is no step of its own: its time counts. */
static ncclResult_t block(struct kl_perf_thread *t)
{
    double nothing = 0;

    if (t->config->blocking & KL_BLOCKING_WAIT) KL_TRY(synchronize(t));
    return t->config->blocking & KL_BLOCKING_BARRIER ? agree_some(t, &nothing, 1, ncclSum) : ncclSuccess;
}

static ncclResult_t run_iterations(struct kl_perf_thread *t, int n)
{
    for (int i = 0; i < n; i++) {
        KL_TRY(issue_iteration(t, i));
        KL_TRY(block(t));
    }
    return ncclSuccess;
}

/* The checked operation, launched as the timed ones are. */
static ncclResult_t run_checked(struct kl_perf_thread *t)
{
    struct kl_perf_graphs graphs;

    if (!t->config->graph_launches) return issue_operation(t, 0);
    KL_TRY(kl_perf_graphs_capture(&graphs, t, issue_operation, 0));
    ncclResult_t rc = kl_perf_graphs_launch(&graphs, t);
    kl_perf_graphs_free(&graphs);
    return rc;
}

static ncclResult_t run_timed(struct kl_perf_thread *t)
{
    if (!t->graphs) return run_iterations(t, t->config->iterations);
    for (int i = 0; i < t->config->graph_launches; i++) KL_TRY(kl_perf_graphs_launch(t->graphs, t));
    return ncclSuccess;
}

/* The times of each thread, combined as -a says. */
static ncclResult_t average(struct kl_perf_thread *t, double *times, size_t n)
{
    switch (t->config->average) {
    case KL_AVERAGE_MIN:
        return agree(t, times, n, ncclMin);
    case KL_AVERAGE_MAX:
        return agree(t, times, n, ncclMax);
    case KL_AVERAGE_RANK0:
        for (size_t i = 0; i < n && t->rank[0].rank; i++) times[i] = 0;
        return agree(t, times, n, ncclSum);
    default:
        KL_TRY(agree(t, times, n, ncclSum));
        for (size_t i = 0; i < n; i++) times[i] /= t->nthreads;
        return ncclSuccess;
    }
}

/* ---- one half of a row ---- */

static void fill(struct kl_perf_thread *t)
{
    t->seed++;
    for (int i = 0; i < t->config->ndevices; i++) kl_perf_rank_fill(&t->rank[i], t->seed);
}

static ncclResult_t warm_up(struct kl_perf_thread *t)
{
    begin_step(t, KL_PHASE_WARMUP);
    KL_TRY(run_iterations(t, t->config->warmups));
    KL_TRY(synchronize(t));
    end_step(t);
    return ncclSuccess;
}

static ncclResult_t time_each(struct kl_perf_thread *t)
{
    for (int i = 0; i < t->config->iterations; i++) {
        uint64_t start = kl_now_ns();
        KL_TRY(issue_iteration(t, i));
        KL_TRY(synchronize(t));
        t->times_us[i] = (double)(kl_now_ns() - start) / 1e3 / t->config->aggregated;
    }
    return ncclSuccess;
}

static ncclResult_t time_all(struct kl_perf_thread *t, double *us)
{
    const struct kl_perf_config *c = t->config;
    uint64_t start, issued;

    begin_step(t, KL_PHASE_TIMING);
    start = kl_now_ns();
    KL_TRY(t->times_us ? time_each(t) : run_timed(t));
    issued = kl_now_ns();
    KL_TRY(synchronize(t));
    if (!c->cpu_time) issued = kl_now_ns();
    end_step(t);
    *us = (double)(issued - start) / 1e3 / c->iterations / c->aggregated / (t->graphs ? c->graph_launches : 1);
    return ncclSuccess;
}

/* The spread of the iterations, each averaged over ranks, and the longest one of each process. */
static ncclResult_t spread_of(struct kl_perf_thread *t, struct kl_perf_half *half)
{
    size_t n = (size_t)t->config->iterations;
    double longest = 0, *sorted;

    for (size_t i = 0; i < n; i++)
        if (t->times_us[i] > longest) longest = t->times_us[i];
    for (int p = 0; p < t->nprocesses; p++) half->process_max_us[p] = p == t->process ? longest : 0;
    KL_TRY(agree(t, half->process_max_us, (size_t)t->nprocesses, ncclMax));
    KL_TRY(average(t, t->times_us, n));

    sorted = malloc(n * sizeof *sorted);
    if (!sorted) return KL_NOMEM("the times of iterations");
    memcpy(sorted, t->times_us, n * sizeof *sorted);
    half->spread = kl_perf_spread(sorted, n);
    free(sorted);
    memcpy(half->times_us, t->times_us, n * sizeof *half->times_us);
    return ncclSuccess;
}

static ncclResult_t time_from_barrier(struct kl_perf_thread *t, struct kl_perf_half *half)
{
    KL_TRY(barrier(t));
    return time_all(t, &half->time_us);
}

static ncclResult_t time_graphs(struct kl_perf_thread *t, struct kl_perf_half *half)
{
    struct kl_perf_graphs graphs;

    KL_TRY(kl_perf_graphs_capture(&graphs, t, run_iterations, t->config->iterations));
    t->graphs = &graphs;
    ncclResult_t rc = time_from_barrier(t, half);
    t->graphs = NULL;
    kl_perf_graphs_free(&graphs);
    return rc;
}

static ncclResult_t time_half(struct kl_perf_thread *t, struct kl_perf_half *half)
{
    const struct kl_perf_rank *r = &t->rank[0];

    fill(t);
    KL_TRY(warm_up(t));
    KL_TRY(t->config->graph_launches ? time_graphs(t, half) : time_from_barrier(t, half));
    if (half->times_us && half->process_max_us) KL_TRY(spread_of(t, half));
    KL_TRY(average(t, &half->time_us, 1));
    half->bandwidth = kl_coll_bandwidth(&r->op.shape, r->op.element_bytes, half->time_us / 1e6);
    return ncclSuccess;
}

static ncclResult_t look_at_results(struct kl_perf_thread *t, double *wrong)
{
    char complaint[512];
    size_t nwrong;

    *wrong = 0;
    for (int i = 0; i < t->config->ndevices; i++) {
        KL_TRY(kl_perf_rank_check(&t->rank[i], t->reduced, t->seed, &nwrong, complaint, sizeof complaint));
        *wrong += (double)nwrong;
        if (nwrong && t->ncomplaints++ < MAX_COMPLAINTS)
            fprintf(stderr, "kolo perf: %s (%zu wrong)\n", complaint, nwrong);
    }
    t->own_wrong += (int64_t)*wrong;
    return ncclSuccess;
}

static ncclResult_t check_half(struct kl_perf_thread *t, struct kl_perf_half *half)
{
    half->wrong = 0;
    for (int i = 0; i < t->config->checks && !half->wrong; i++) {
        double wrong;

        fill(t);
        begin_step(t, KL_PHASE_CHECK);
        KL_TRY(run_checked(t));
        KL_TRY(synchronize(t));
        end_step(t);
        KL_TRY(look_at_results(t, &wrong));
        KL_TRY(agree(t, &wrong, 1, ncclSum));
        half->wrong = (int64_t)wrong;
    }
    return ncclSuccess;
}

static ncclResult_t run_half(struct kl_perf_thread *t, const struct kl_coll_shape *shape, bool in_place,
                             struct kl_perf_half *half)
{
    const struct kl_coll *coll = t->config->coll;
    bool checked = t->config->checks && coll->cut != KL_CUT_ONE && (!in_place || coll->checks_in_place);

    for (int i = 0; i < t->config->ndevices; i++) kl_perf_rank_shape(&t->rank[i], shape, in_place);
    half->wrong = KL_PERF_UNCHECKED;
    KL_TRY(time_half(t, half));
    if (checked) KL_TRY(check_half(t, half));
    t->summary.wrong += checked ? half->wrong : 0;
    t->summary.bus_sum += half->bandwidth.bus;
    t->summary.nhalves++;
    return ncclSuccess;
}

/* ---- rows ---- */

static void report(struct kl_perf_thread *t, const struct kl_perf_row *row, int half)
{
    if (t->report) t->report(t->context, row, half);
}

static ncclResult_t allocate_row(const struct kl_perf_thread *t, struct kl_perf_row *row)
{
    if (!t->config->per_iteration) return ncclSuccess;
    for (int h = 0; h < 2; h++) {
        row->half[h].times_us = calloc((size_t)t->config->iterations, sizeof(double));
        row->half[h].process_max_us = calloc((size_t)t->nprocesses, sizeof(double));
        if (!row->half[h].times_us || !row->half[h].process_max_us) return KL_NOMEM("the times of iterations");
    }
    return ncclSuccess;
}

static void free_row(struct kl_perf_row *row)
{
    for (int h = 0; h < 2; h++) {
        free(row->half[h].times_us);
        free(row->half[h].process_max_us);
    }
}

static ncclResult_t run_row(struct kl_perf_thread *t, uint64_t bytes, int root)
{
    const struct kl_coll *coll = t->config->coll;
    const struct kl_perf_op *op = &t->rank[0].op;
    struct kl_coll_shape s = kl_coll_shape(kl_coll_id(coll), bytes, op->element_bytes, t->nranks, root);
    struct kl_perf_row row = {
        .bytes = table_bytes(&(struct kl_perf_op){.shape = s, .element_bytes = op->element_bytes}),
        .count = s.count,
        .type = kl_type_name(op->type),
        .op = coll->has_op || coll->cut == KL_CUT_ONE ? kl_redop_name(op->op) : "none",
        .root = coll->has_root ? root : -1,
    };
    ncclResult_t rc = allocate_row(t, &row);

    report(t, &row, -1);
    for (int half = 0; half < 2 && !rc; half++) {
        rc = run_half(t, &s, half == 1, &row.half[half]);
        if (!rc) report(t, &row, half);
    }
    if (!rc) report(t, &row, 2);
    free_row(&row);
    return rc;
}

static ncclResult_t run_sizes(struct kl_perf_thread *t, int root)
{
    const struct kl_perf_config *c = t->config;

    for (int cycle = 0; cycle < c->cycles || !c->cycles; cycle++)
        for (uint64_t bytes = c->min_bytes; bytes; bytes = kl_perf_next_size(c, bytes)) KL_TRY(run_row(t, bytes, root));
    return ncclSuccess;
}

static ncclResult_t run_roots(struct kl_perf_thread *t)
{
    const struct kl_perf_config *c = t->config;

    if (c->root >= 0) return run_sizes(t, c->root);
    for (int root = 0; root < t->nranks; root++) KL_TRY(run_sizes(t, root));
    return ncclSuccess;
}

static ncclResult_t run_type(struct kl_perf_thread *t, ncclDataType_t type, ncclRedOp_t op)
{
    const struct kl_perf_config *c = t->config;

    for (int i = 0; i < c->ndevices; i++) KL_TRY(kl_perf_rank_data(&t->rank[i], c->coll, type, op));
    if (c->coll->reduces && c->checks) {
        t->reduced = kl_expected_get(type, op, t->nranks);
        if (!t->reduced) return KL_NOMEM("test data");
    }
    ncclResult_t rc = run_roots(t);
    kl_expected_put(t->reduced);
    t->reduced = NULL;
    return rc;
}

static ncclResult_t run_everything(struct kl_perf_thread *t)
{
    const struct kl_perf_config *c = t->config;

    for (int type = 0; type < c->ntypes; type++)
        for (int op = 0; op < c->nops; op++) KL_TRY(run_type(t, c->types[type], c->ops[op]));
    return ncclSuccess;
}

ncclResult_t kl_perf_measure(struct kl_perf_thread *t)
{
    if (t->config->per_iteration) {
        t->times_us = calloc((size_t)t->config->iterations, sizeof *t->times_us);
        if (!t->times_us) return KL_NOMEM("the times of iterations");
    }
    ncclResult_t rc = run_everything(t);
    free(t->times_us);
    return rc;
}
