/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/log.h"

#include "answer/output.h"
#include "answer/schema.h"
#include "logs/patterns.h"
#include "logs/verdict.h"

#include <jansson.h>
#include <string.h>

enum { LINE = 2048 };

static json_t *text(const char *s)
{
    return kl_output_text(s);
}

static json_t *known(int value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *place(const struct kl_log *log, struct kl_log_at at)
{
    if (!at.line) return json_null();
    return json_pack("{s:o, s:i}", "file", text(log->file[at.file].name), "line", at.line);
}

static json_t *finding(const struct kl_log *log, const struct kl_log_finding *f)
{
    char line[LINE], remedy[LINE];
    struct kl_text t = kl_text_in(line, sizeof line), r = kl_text_in(remedy, sizeof remedy);

    kl_log_finding_text(f, &t);
    kl_log_finding_remedy(log, f, &r);
    const bool cause = f->code == KL_FOUND_CAUSE;

    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:o, s:o, s:o}", "code", kl_log_finding_name(f), "weight",
                     kl_log_weight_name(f->weight), "text", text(line), "remedy", text(*remedy ? remedy : NULL),
                     "times", f->times, "at", place(log, f->at), "line", cause ? text(f->text) : json_null(), "source",
                     cause ? text(kl_source_name((enum kl_log_source)f->source)) : json_null());
}

static json_t *findings(const struct kl_log_answer *a)
{
    json_t *list = json_array();

    for (int i = 0; i < a->findings.n; i++) json_array_append_new(list, finding(&a->log, &a->findings.finding[i]));
    return list;
}

/* Each release once. */
static json_t *versions(const struct kl_log *log)
{
    json_t *list = json_array(), *seen = json_object();

    for (int i = 0; i < log->nversion; i++) {
        const struct kl_log_version *v = &log->version[i];

        if (json_object_get(seen, v->text)) continue;
        json_object_set_new(seen, v->text, json_true());
        json_array_append_new(
            list, json_pack("{s:s, s:b, s:o}", "version", v->text, "rccl", v->rccl, "at", place(log, v->at)));
    }
    json_decref(seen);
    return list;
}

static json_t *settings(const struct kl_log *log)
{
    json_t *list = json_array();

    for (int i = 0; i < log->nsetting; i++) {
        const struct kl_log_setting *s = &log->setting[i];
        char who[KL_LOG_ORIGIN_TEXT] = "";

        json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:o, s:o}", "name", s->name, "value", text(s->value),
                                              "by_plugin", s->by_plugin, "who",
                                              text(kl_log_origin_text(log, s->origin, who)), "at", place(log, s->at)));
    }
    return list;
}

static json_t *communicators(const struct kl_log *log)
{
    json_t *list = json_array();

    for (int i = 0; i < log->ncomm; i++) {
        const struct kl_log_comm *c = &log->comm[i];

        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:i}", "id", text(c->id), "ranks", known(c->nranks),
                                              "nodes", known(c->nnodes), "seen", c->seen));
    }
    return list;
}

static json_t *ranks(const struct kl_log *log)
{
    json_t *list = json_array();

    for (int i = 0; i < log->nmember; i++) {
        const struct kl_log_member *m = &log->member[i];
        char who[KL_LOG_ORIGIN_TEXT] = "";
        json_t *channels = json_pack("{s:o, s:o, s:o, s:o, s:o}", "coll", known(m->coll), "collnet", known(m->collnet),
                                     "nvls", known(m->nvls), "p2p", known(m->p2p), "per_peer", known(m->per_peer));

        json_array_append_new(list, json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:o}", "comm", known(m->comm), "rank",
                                              known(m->rank), "who", text(kl_log_origin_text(log, m->origin, who)),
                                              "network", text(m->network), "complete", m->completed, "channels",
                                              channels, "at", place(log, m->at)));
    }
    return list;
}

static json_t *graphs(const struct kl_log *log)
{
    json_t *list = json_array();

    for (int i = 0; i < log->ngraph; i++) {
        const struct kl_log_graph *g = &log->graph[i];

        json_array_append_new(list,
                              json_pack("{s:i, s:i, s:f, s:f, s:o, s:o, s:o}", "pattern", g->pattern, "channels",
                                        g->nchannels, "bw_intra", g->bw_intra, "bw_inter", g->bw_inter, "type_intra",
                                        text(g->type_intra < 0 ? NULL : kl_path_type_name[g->type_intra]), "type_inter",
                                        text(g->type_inter < 0 ? NULL : kl_path_type_name[g->type_inter]), "at",
                                        place(log, g->at)));
    }
    return list;
}

static json_t *rings(const struct kl_log *log)
{
    json_t *list = json_array();

    for (int i = 0; i < log->nring; i++) {
        const struct kl_log_ring *r = &log->ring[i];
        json_t *order = json_array();

        for (int j = 0; j < r->n; j++) json_array_append_new(order, json_integer(log->rank[r->first + j]));
        json_array_append_new(
            list, json_pack("{s:i, s:o, s:o}", "channel", r->channel, "ranks", order, "at", place(log, r->at)));
    }
    return list;
}

static json_t *ways(const struct kl_log *log)
{
    json_t *count = json_object();

    for (int i = 0; i < log->nlink; i++) {
        json_t *n = json_object_get(count, log->link[i].how);

        json_object_set_new(count, log->link[i].how, json_integer(n ? json_integer_value(n) + 1 : 1));
    }
    return count;
}

static json_t *compared(const struct kl_log_answer *a)
{
    const struct kl_log_compare *c = &a->compared;
    json_t *parts = json_object(), *list = json_array();

    for (int p = 0; p < KL_PARTS; p++)
        json_object_set_new(parts, kl_log_part_name((enum kl_log_part)p),
                            json_pack("{s:i, s:i}", "checked", c->checked[p], "same", c->same[p]));
    for (int i = 0; i < c->n; i++) {
        const struct kl_log_difference *d = &c->difference[i];
        char line[LINE];
        struct kl_text t = kl_text_in(line, sizeof line);

        kl_log_difference_text(d, &t);
        json_array_append_new(list, json_pack("{s:s, s:o, s:i, s:i, s:i, s:i, s:o}", "part", kl_log_part_name(d->part),
                                              "text", text(line), "channel", d->channel, "rank", d->rank, "log",
                                              d->have, "plan", d->want, "at", place(&a->log, d->at)));
    }
    return json_pack("{s:b, s:o, s:o, s:b, s:s, s:b, s:i, s:i, s:o, s:o, s:o}", "made", c->made, "why",
                     c->made || !c->why[0] ? json_null() : text(c->why), "machine",
                     c->machine[0] ? text(c->machine) : json_null(), "from_log", c->from_log, "nccl", c->nccl,
                     "other_release", c->other_release, "hosts", c->hosts, "gpus", c->gpus, "assumed",
                     c->from_log ? json_pack("{s:i, s:s}", "sm", c->assumed.sm, "sm_from", c->assumed.sm_from)
                                 : json_null(),
                     "parts", parts, "differences", list);
}

ncclResult_t kl_log_json(const struct kl_log_answer *a, FILE *to)
{
    const struct kl_log *log = &a->log;
    char answer[LINE];
    struct kl_text t = kl_text_in(answer, sizeof answer);

    kl_log_verdict(log, &a->findings, &a->compared, &t);
    json_t *o =
        json_pack("{s:o, s:b, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "answer", text(answer),
                  "problem", kl_log_has_problem(&a->findings), "lines", log->lines, "understood", log->understood,
                  "dropped", log->full || a->findings.dropped, "versions", versions(log), "communicators",
                  communicators(log), "ranks", ranks(log), "settings", settings(log), "graphs", graphs(log), "rings",
                  rings(log), "connections", ways(log), "findings", findings(a), "plan", compared(a));

    return kl_output_answer(KL_SCHEMA_LOG, o, JSON_INDENT(2) | JSON_REAL_PRECISION(6), to);
}
