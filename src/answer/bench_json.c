/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/bench.h"

#include "answer/output.h"
#include "answer/schema.h"

#include "logs/remedy.h"

#include <jansson.h>

/* Titles and names come from files: what is no UTF-8 is null. */
static json_t *text(const char *s)
{
    json_t *t = s && s[0] ? json_string(s) : NULL;

    return t ? t : json_null();
}

static json_t *place(const struct kl_bench *b, struct kl_log_at at)
{
    return json_pack("{s:o, s:i}", "file", text(b->log.file[at.file].name), "line", at.line);
}

static json_t *half(const struct kl_bench_time *t)
{
    if (!t->there) return json_null();
    return json_pack("{s:f, s:f, s:f, s:o}", "time_us", t->us, "alg_bw", t->algorithm, "bus_bw", t->bus, "wrong",
                     t->wrong >= 0 ? json_integer(t->wrong) : json_null());
}

static json_t *rows(const struct kl_bench *b, const struct kl_bench_table *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->n; i++) {
        const struct kl_bench_row *r = &b->row[t->first + i];
        json_t *model = r->predicted_bus > 0
                            ? json_pack("{s:f, s:f}", "time_us", r->predicted_us, "bus_bw", r->predicted_bus)
                            : json_null();

        json_array_append_new(list,
                              json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:i}", "size", (json_int_t)r->size, "type",
                                        text(r->type), "op", text(r->op), "out_of_place", half(&r->time[0]), "in_place",
                                        half(&r->time[1]), "predicted", model, "line", r->at.line));
    }
    return list;
}

static json_t *findings(const struct kl_bench *b, int table)
{
    json_t *list = json_array();

    for (int i = 0; i < b->nfinding; i++) {
        const struct kl_bench_finding *f = &b->finding[i];
        char line[1024], remedy[1024];
        struct kl_text t = kl_text_in(line, sizeof line), r = kl_text_in(remedy, sizeof remedy);

        if (f->table != table) continue;
        kl_remedy_add(&b->log, kl_bench_finding_remedy(f->code), &r);
        kl_bench_finding_text(f, &t);
        json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:o, s:I, s:o}", "code", kl_bench_finding_name(f->code),
                                              "problem", f->problem, "text", line, "remedy", text(remedy), "size",
                                              (json_int_t)f->size, "at", place(b, f->at)));
    }
    return list;
}

static json_t *reasons(const struct kl_bench_table *t)
{
    json_t *list = json_array();

    for (int i = 0; i < t->nhypotheses; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:f}", "code", t->hypothesis[i].name, "text",
                                              t->hypothesis[i].text, "experiment", t->hypothesis[i].experiment,
                                              "factor", t->hypothesis[i].off));
    return list;
}

static json_t *table(const struct kl_bench *b, int i)
{
    const struct kl_bench_table *t = &b->table[i];
    json_t *shape = json_pack("{s:o, s:f, s:I, s:I}", "floor_us",
                              t->shape.floor_us > 0 ? json_real(t->shape.floor_us) : json_null(), "peak", t->shape.peak,
                              "peak_size", (json_int_t)t->shape.peak_size, "knee", (json_int_t)t->shape.knee);

    return json_pack("{s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:o}", "collective", text(t->name),
                     "named_by_ratio", t->named_by_ratio, "ranks", t->nranks ? json_integer(t->nranks) : json_null(),
                     "hosts", t->nhosts ? json_integer(t->nhosts) : json_null(), "gpu", text(t->gpu), "nccl",
                     text(t->version), "shape", shape, "modelled", t->modelled, "compared", t->compared, "factor",
                     t->off > 0 ? json_real(t->off) : json_null(), "rows", rows(b, t), "findings", findings(b, i),
                     "reasons", reasons(t));
}

ncclResult_t kl_bench_json(const struct kl_bench *b, FILE *to)
{
    json_t *tables = json_array();
    bool problem = b->nfinding && b->finding[0].problem;

    for (int i = 0; i < b->ntable; i++) json_array_append_new(tables, table(b, i));
    json_t *o = json_pack("{s:b, s:b, s:i, s:o, s:o, s:o, s:o, s:o}", "problem", problem, "dropped", b->log.full,
                          "runs", b->log.nrun, "failures", findings(b, -1), "machine", text(b->machine), "nccl",
                          text(b->nccl), "why", text(b->why), "tables", tables);

    return kl_output_answer(KL_SCHEMA_BENCH, o, JSON_INDENT(2) | JSON_REAL_PRECISION(7), to);
}
