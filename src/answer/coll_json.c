/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text.h"
#include "device/host/redop.h"
#include "answer/coll.h"
#include "answer/assumed.h"
#include "answer/graph_json.h"
#include "answer/output.h"
#include "answer/reason_json.h"
#include "answer/schema.h"

/* ---- the question ---- */

json_t *kl_coll_question_json(const struct kl_coll_asked *a)
{
    json_t *o = json_pack("{s:s,s:s,s:o,s:i,s:i,s:i,s:I,s:I,s:s,s:o}", "collective", a->coll->name, "topology",
                          a->cluster->name, "topology_origin", kl_origin_json(a->cluster), "hosts", a->cluster->hosts,
                          "nodes", a->nodes, "ranks", a->ranks, "first_bytes", (json_int_t)a->first, "last_bytes",
                          (json_int_t)a->last, "type", kl_type_name(a->type), "op",
                          a->coll->reduces ? json_string(kl_redop_name(a->op)) : json_null());

    kl_assumed_add(a->cluster, o);
    return o;
}

/* ---- algorithms ---- */

static json_t *choice_json(const struct kl_tuning_choice *c)
{
    if (c->algo < 0) return json_pack("{s:n,s:n}", "algorithm", "protocol");
    return json_pack("{s:s,s:s,s:i,s:i}", "algorithm", kl_algo_name[c->algo], "protocol", kl_proto_name[c->proto],
                     "channels", c->nchannels, "threads", c->nthreads);
}

static json_t *terms_json(const struct kl_tuning_terms *x)
{
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "start_us", kl_json_float(x->latency.base), "inside_us",
                     kl_json_float(x->latency.inside), "between_us", kl_json_float(x->latency.between), "per_rank_us",
                     kl_json_float(x->latency.extra), "correction_us", kl_json_float(x->correction), "group_us",
                     kl_json_float(x->group), "fp8_us", kl_json_float(x->fp8), "transfer_us",
                     kl_json_float(x->transfer));
}

static json_t *expected_json(const struct kl_coll_asked *a, const struct kl_expected *e)
{
    if (e->time <= 0) return json_null();
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:s}", "time_us", kl_json_float(e->time), "bus_gbs",
                     json_real(kl_coll_bus(a, a->first, e->time)), "latency_us", kl_json_float(e->latency), "start_us",
                     kl_json_float(e->start), "ramp_us", kl_json_float(e->ramp), "tcp_us", kl_json_float(e->tcp),
                     "transfer_us", kl_json_float(e->transfer), "transfer_gbs", kl_json_float(e->bandwidth), "limit",
                     kl_expected_limit_name(e->limit));
}

static json_t *candidate_json(const struct kl_coll_asked *a, const struct kl_op_choice *f,
                              const struct kl_op_candidate *c)
{
    const struct kl_tuning_terms *x = &c->terms;
    json_t *o = choice_json(&c->choice);

    json_object_update_new(o, json_pack("{s:o,s:o,s:o,s:o,s:i,s:i,s:o,s:o,s:o,s:b}", "time_us", kl_json_float(x->time),
                                        "bus_gbs", json_real(kl_coll_bus(a, a->first, x->time)), "slower_percent",
                                        json_real(kl_coll_slower(x->time, f->candidate[0].terms.time)), "terms",
                                        terms_json(x), "inside_hops", x->latency.inside_hops, "between_hops",
                                        x->latency.between_hops, "transfer_gbs", kl_json_float(x->bandwidth),
                                        "tree_share", kl_json_float(x->tree_share), "latency_factor",
                                        kl_json_float(x->latency_factor), "timeless_hops", x->timeless_hops));
    json_object_set_new(o, "expected", expected_json(a, &c->expected));
    if (x->measured) json_object_set_new(o, "modelled_us", kl_json_float(x->modelled));
    return o;
}

static json_t *candidates_json(const struct kl_coll_asked *a, const struct kl_op_choice *f)
{
    json_t *list = json_array();

    for (int i = 0; i < f->npossible; i++) json_array_append_new(list, candidate_json(a, f, &f->candidate[i]));
    return list;
}

static json_t *refusal_json(const struct kl_op_choice *f, const struct kl_op_candidate *c)
{
    char why[160];
    struct kl_text text = kl_text_in(why, sizeof why);

    kl_tuning_refusal_text(f->tuning, &f->op, c->choice.algo, c->choice.proto, &text);
    return json_pack("{s:s,s:s,s:o}", "algorithm", kl_algo_name[c->choice.algo], "protocol",
                     kl_proto_name[c->choice.proto], "reason", kl_json_reason(kl_tuning_refusal_name(c->refusal), why));
}

static json_t *refused_json(const struct kl_op_choice *f)
{
    json_t *a = json_array();

    for (int i = f->npossible; i < f->ncandidates; i++) json_array_append_new(a, refusal_json(f, &f->candidate[i]));
    return a;
}

static json_t *ranges_json(const struct kl_op_choice *f)
{
    json_t *a = json_array();

    for (int i = 0; i < f->nranges; i++) {
        const struct kl_tuning_range *r = &f->range[i];
        json_t *o = choice_json(&r->choice);

        json_object_update_new(o, json_pack("{s:I,s:I,s:o,s:o}", "first_bytes", (json_int_t)r->first, "last_bytes",
                                            (json_int_t)r->last, "first_us", kl_json_float(r->choice.time), "last_us",
                                            kl_json_float(r->last_time)));
        json_array_append_new(a, o);
    }
    return a;
}

static ncclResult_t write_choice(const struct kl_coll_answer *answer, FILE *to)
{
    const struct kl_coll_asked *a = &answer->asked;
    const struct kl_op_choice *f = &answer->choice;
    json_t *o = kl_coll_question_json(a);

    json_object_set_new(o, "constants", json_string(a->cluster->constants->name));
    json_object_set_new(o, "choice", f->npossible ? candidate_json(a, f, &f->candidate[0]) : json_null());
    json_object_set_new(o, "candidates", candidates_json(a, f));
    json_object_set_new(o, "refused", refused_json(f));
    json_object_set_new(o, "ranges", ranges_json(f));
    if (answer->selected) json_object_set(o, "selected", answer->selected);
    if (answer->tuner) json_object_set(o, "tuner", answer->tuner);
    return kl_output_answer(KL_SCHEMA_COLLECTIVE, o, KL_OUTPUT_FORMAT, to);
}

/* ---- sends and receives ---- */

static json_t *rank_json(int rank)
{
    return rank < 0 ? json_null() : json_integer(rank);
}

static json_t *round_json(const struct kl_op_rounds *m, const struct kl_op_round *r)
{
    json_t *channels = json_array();

    for (int k = 0; k < m->channels.per_peer; k++)
        json_array_append_new(channels, json_integer(kl_p2p_channel(r->base, k, m->channels.n, m->channels.nccl)));
    return json_pack("{s:i,s:o,s:o,s:o}", "round", r->round, "send", rank_json(r->send), "recv", rank_json(r->recv),
                     "channels", channels);
}

static json_t *rounds_json(const struct kl_op_rounds *m)
{
    json_t *a = json_array();

    for (int i = 0; i < m->nrounds; i++) json_array_append_new(a, round_json(m, &m->round[i]));
    return a;
}

static ncclResult_t write_rounds(const struct kl_coll_asked *a, const struct kl_op_rounds *m, FILE *to)
{
    const struct kl_p2p_channels_why *w = &m->channels.why;
    json_t *o = kl_coll_question_json(a), *share = NULL;

    share = kl_json_reason(kl_p2p_share_name(w->share), kl_p2p_share_text(w->share));
    json_object_set_new(share, "rank", rank_json(w->gpu));
    json_object_set_new(share, "peer", rank_json(w->far));
    json_object_update_new(
        o, json_pack("{s:b,s:I,s:I,s:i,s:i,s:o,s:i,s:o,s:i,s:o}", "sends_and_receives", 1, "first_message_bytes",
                     (json_int_t)kl_coll_piece_bytes(a, a->first), "last_message_bytes",
                     (json_int_t)kl_coll_piece_bytes(a, a->last), "steps", kl_coll_steps(kl_coll_id(a->coll), a->ranks),
                     "channels", m->channels.n, "channels_reason",
                     kl_json_reason(kl_p2p_channels_limit_name(w->limit), kl_p2p_channels_limit_text(w->limit)),
                     "channels_per_peer", m->channels.per_peer, "channels_per_peer_reason", share, "rounds_total",
                     a->ranks, "rounds", rounds_json(m)));
    return kl_output_answer(KL_SCHEMA_COLLECTIVE, o, KL_OUTPUT_FORMAT, to);
}

ncclResult_t kl_coll_json(const struct kl_coll_answer *answer, FILE *to)
{
    const struct kl_coll_asked *a = &answer->asked;

    return a->func < 0 ? write_rounds(a, &answer->rounds, to) : write_choice(answer, to);
}
