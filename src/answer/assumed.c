/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/assumed.h"

#include "answer/graph_json.h"
#include "plan/finding.h"

const char *kl_uncertain_part(enum kl_change change)
{
    return change < KL_CHANGES_OF_TUNING ? "machine" : "tuning";
}

json_t *kl_uncertain_json(const struct kl_cluster *c)
{
    json_t *all = json_array();

    for (int i = 0; i < c->uncertain.n; i++) {
        const enum kl_change change = c->uncertain.change[i];
        const struct kl_change_facts *f = kl_change_facts(change);
        char since[KL_NCCL_TEXT];

        json_array_append_new(all,
                              json_pack("{s:s,s:s,s:s,s:s,s:b}", "code", f->name, "part", kl_uncertain_part(change),
                                        "text", f->text, "since", kl_nccl_text(f->since, since), "followed",
                                        (int)kl_nccl_has(c->options.nccl, change)));
    }
    return all;
}

static void set_name(json_t *o, const char *key, const char *name)
{
    if (name) json_object_set_new(o, key, json_string(name));
}

static void set_number(json_t *o, const char *key, int number)
{
    if (number) json_object_set_new(o, key, json_integer(number));
}

static json_t *assumption_json(const struct kl_assumption *a)
{
    char text[KL_ASSUMED_TEXT];
    json_t *o = json_pack("{s:s,s:s,s:s}", "code", kl_assumed_name(a->code), "text", kl_assumed_text(a, text), "from",
                          kl_assumed_from_name(a->from));

    set_number(o, "count", a->n);
    set_number(o, "more", a->more);
    set_number(o, "gbps", a->gbps);
    set_name(o, "machine", a->machine ? a->machine->name : NULL);
    set_name(o, "or", a->other ? a->other->name : NULL);
    set_name(o, "product", a->product ? a->product->name : a->nic ? a->nic->name : NULL);
    return o;
}

json_t *kl_assumed_json(const struct kl_cluster *c)
{
    json_t *all = json_array();

    for (int i = 0; i < c->assumed.n; i++) json_array_append_new(all, assumption_json(&c->assumed.at[i]));
    return all;
}

json_t *kl_finding_json(const struct kl_cluster *c)
{
    const struct kl_finding *f = &c->finding;
    char text[KL_FINDING_TEXT];

    if (!f->code) return json_null();
    json_t *o =
        json_pack("{s:s,s:s,s:i}", "code", kl_finding_name(f->code), "text", kl_finding_text(f, text), "gpus", f->n);

    if (!f->product) return o;
    set_name(o, "product", f->product->name);
    set_number(o, "links", f->product->links);
    json_object_set_new(o, "busbw", kl_json_float(f->now));
    json_object_set_new(o, "busbw_mended", f->mended > 0 ? kl_json_float(f->mended) : json_null());
    return o;
}

bool kl_origin_find(const struct kl_cluster *c, struct kl_setting *setting)
{
    return c->from_setting && kl_settings_find(&c->settings, "NCCL_TOPO_FILE", setting);
}

json_t *kl_origin_json(const struct kl_cluster *c)
{
    struct kl_setting setting;
    char origin[KL_ORIGIN_TEXT];

    return kl_origin_find(c, &setting) ? json_string(kl_setting_origin(&setting, origin)) : json_null();
}

void kl_assumed_add(const struct kl_cluster *c, json_t *answer)
{
    char nccl[KL_NCCL_TEXT];

    json_object_set_new(answer, "nccl", json_string(kl_nccl_text(c->options.nccl, nccl)));
    json_object_set_new(answer, "assumed", kl_assumed_json(c));
    json_object_set_new(answer, "uncertain", kl_uncertain_json(c));
    json_object_set_new(answer, "finding", kl_finding_json(c));
}
