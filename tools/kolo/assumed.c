/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/assumed.h"

#include "plan/finding.h"
#include "tools/kolo/graph_json.h"

void kl_print_preamble(const struct kl_cluster *c, FILE *to)
{
    char nccl[KL_NCCL_TEXT];

    fprintf(to, "NCCL %s: ", kl_nccl_text(c->options.nccl, nccl));
    kl_finding_print(c, to);
}

void kl_finding_print(const struct kl_cluster *c, FILE *to)
{
    char text[KL_FINDING_TEXT];

    if (c->finding.code) fprintf(to, "%s.\n", kl_finding_text(&c->finding, text));
}

void kl_finding_warn(const struct kl_cluster *c)
{
    char text[KL_FINDING_TEXT];

    if (c->finding.code) fprintf(stderr, "warning: %s\n", kl_finding_text(&c->finding, text));
    if (c->assumed.n)
        fprintf(stderr, "warning: %d thing%s assumed that the file does not say; the text of kolo topo lists them\n",
                c->assumed.n, c->assumed.n == 1 ? " is" : "s are");
}

void kl_assumed_print(const struct kl_cluster *c, const char *indent, FILE *to)
{
    if (c->assumed.n) fprintf(to, "%sassumed, as the file does not say it:\n", indent);
    for (int i = 0; i < c->assumed.n; i++) {
        const struct kl_assumption *a = &c->assumed.at[i];
        char text[KL_ASSUMED_TEXT];

        fprintf(to, "%s  %s (%s)\n", indent, kl_assumed_text(a, text), kl_assumed_from_text(a->from));
    }
}

static const char *part_of(enum kl_change change)
{
    return change < KL_CHANGES_OF_TUNING ? "machine" : "tuning";
}

void kl_uncertain_print(const struct kl_cluster *c, const char *indent, FILE *to)
{
    char nccl[KL_NCCL_TEXT];
    const int release = c->options.nccl;

    if (c->uncertain.n)
        fprintf(to, "%suncertain, as NCCL %s's code for it could not be read:\n", indent, kl_nccl_text(release, nccl));
    for (int i = 0; i < c->uncertain.n; i++) {
        const enum kl_change change = c->uncertain.change[i];

        fprintf(to, "%s  %s: %s (%s)\n", indent, part_of(change), kl_change_facts(change)->text,
                kl_nccl_has(release, change) ? "assumed" : "assumed not yet");
    }
}

json_t *kl_uncertain_json(const struct kl_cluster *c)
{
    json_t *all = json_array();

    for (int i = 0; i < c->uncertain.n; i++) {
        const enum kl_change change = c->uncertain.change[i];
        const struct kl_change_facts *f = kl_change_facts(change);
        char since[KL_NCCL_TEXT];

        json_array_append_new(all, json_pack("{s:s,s:s,s:s,s:s,s:b}", "code", f->name, "part", part_of(change), "text",
                                             f->text, "since", kl_nccl_text(f->since, since), "followed",
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
