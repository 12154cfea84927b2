/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/record.h"

#include "answer/output.h"
#include "answer/schema.h"
#include "logs/findings.h"

#include <jansson.h>

enum { LINE = 4096 };

static json_t *text(const char *s)
{
    return kl_output_text(s && *s ? s : NULL);
}

static json_t *known(int64_t value)
{
    return value >= 0 ? json_integer(value) : json_null();
}

static json_t *time_us(double us)
{
    return us >= 0 ? json_real(us) : json_null();
}

static json_t *call(const struct kl_record *r, int index)
{
    const struct kl_record_call *c = index >= 0 ? &r->call[index] : NULL;

    if (!c) return json_null();
    return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "name", text(c->name), "number",
                     known(c->number), "state", kl_call_state_name(c->state), "type", text(c->type), "operator",
                     text(c->op), "in", known(c->in), "out", known(c->out), "bytes", known(c->bytes), "root",
                     known(c->root), "peer", known(c->peer), "where", text(c->where));
}

static json_t *list(const struct kl_record *r, int first, int n)
{
    json_t *ranks = json_array();

    for (int i = 0; i < n; i++) json_array_append_new(ranks, json_integer(r->list[first + i]));
    return ranks;
}

static json_t *group_id(const struct kl_record *r, int group)
{
    return group >= 0 ? text(r->group[group].id) : json_null();
}

static json_t *finding(const struct kl_record *r, const struct kl_record_finding *f)
{
    char line[LINE], remedy[LINE];
    struct kl_text t = kl_text_in(line, sizeof line), u = kl_text_in(remedy, sizeof remedy);
    const bool differs = f->code == KL_RECORD_MISMATCH;

    kl_record_finding_text(r, f, &t);
    kl_record_finding_remedy(r, f, &u);
    return json_pack("{s:s, s:s, s:o, s:o, s:i, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "code",
                     kl_record_code_name(f->code), "weight", kl_log_weight_name(f->weight), "text", text(line),
                     "remedy", text(remedy), "times", 1, "at", "group", group_id(r, f->group), "ranks",
                     list(r, f->first, f->n), "others", list(r, f->first_other, f->nothers), "call", call(r, f->call),
                     "other_call", call(r, f->other_call), "differs",
                     differs ? json_string(kl_call_field_name((enum kl_call_field)f->a)) : json_null());
}

static json_t *findings(const struct kl_record *r)
{
    json_t *all = json_array();

    for (int i = 0; i < r->nfinding; i++) json_array_append_new(all, finding(r, &r->finding[i]));
    return all;
}

static json_t *files(const struct kl_record *r)
{
    json_t *all = json_array();

    for (int i = 0; i < r->nfile; i++) {
        const struct kl_record_file *f = &r->file[i];
        json_t *times = f->span_us > 0
                            ? json_pack("{s:f, s:f, s:f, s:f}", "span_us", f->span_us, "communication_us", f->comm_us,
                                        "hidden_us", f->hidden_us, "computation_us", f->compute_us)
                            : json_null();

        json_array_append_new(all, json_pack("{s:o, s:s, s:o, s:o, s:b, s:o}", "name", text(f->name), "kind",
                                             kl_input_name(f->kind), "version", text(f->version), "rank",
                                             known(f->rank), "rank_guessed", f->rank_guessed, "times", times));
    }
    return all;
}

static json_t *groups(const struct kl_record *r)
{
    json_t *all = json_array();

    for (int i = 0; i < r->ngroup; i++)
        json_array_append_new(all, json_pack("{s:o, s:o, s:o, s:i}", "id", text(r->group[i].id), "name",
                                             text(r->group[i].desc), "ranks", known(r->group[i].size), "recorded",
                                             r->group[i].n));
    return all;
}

static json_t *ranks(const struct kl_record *r)
{
    json_t *all = json_array();

    for (int i = 0; i < r->nmember; i++) {
        const struct kl_record_member *m = &r->member[r->by_group[i]];
        const struct kl_record_proc *p = m->proc >= 0 ? &r->proc[m->proc] : NULL;

        json_array_append_new(all, json_pack("{s:o, s:i, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}", "group",
                                             group_id(r, m->group), "rank", m->rank, "host", text(p ? p->host : NULL),
                                             "pid", known(p ? p->pid : -1), "state", kl_member_state_name(m->state),
                                             "called", known(m->called), "ended", known(m->ended), "waits_for",
                                             known(m->waits_for), "open", call(r, m->open), "last", call(r, m->last)));
    }
    return all;
}

static json_t *sums(const struct kl_record_answer *a)
{
    json_t *all = json_array();

    for (int i = 0; i < a->nsum; i++) {
        const struct kl_record_sum *s = &a->sum[i];
        const struct kl_record_call *c = s->like;

        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o, s:o, s:o}", "name", text(c->name), "type",
                           text(c->type), "operator", text(c->op), "algorithm", text(c->algorithm), "protocol",
                           text(c->protocol), "bytes", known(c->bytes), "elements", known(c->in), "calls", s->n,
                           "mean_us", time_us(s->timed ? s->total_us / s->timed : -1), "least_us",
                           time_us(s->timed ? s->least_us : -1), "most_us", time_us(s->timed ? s->most_us : -1)));
    }
    return all;
}

ncclResult_t kl_record_json(const struct kl_record_answer *a, FILE *to)
{
    const struct kl_record *r = &a->record;
    char answer[LINE];
    struct kl_text t = kl_text_in(answer, sizeof answer);

    kl_record_verdict(r, &t);
    json_t *o = json_pack("{s:o, s:b, s:s, s:o, s:o, s:o, s:o, s:o}", "answer", text(answer), "problem",
                          kl_record_has_problem(r), "kind", r->nfile ? kl_input_name(r->file[0].kind) : "", "findings",
                          findings(r), "files", files(r), "groups", groups(r), "ranks", ranks(r), "calls", sums(a));

    return kl_output_answer(KL_SCHEMA_RECORD, o, JSON_INDENT(2) | JSON_REAL_PRECISION(9), to);
}
