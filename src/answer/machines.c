/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/machines.h"

#include "answer/output.h"
#include "answer/schema.h"
#include "topo/known.h"

static json_t *machine_json(const struct kl_known_machine *m)
{
    struct kl_known_parts parts = kl_known_count(m);
    json_t *o = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i}", "name", m->name, "title", m->title, "gpu", m->gpu, "gpus",
                          parts.gpus, "sm", kl_known_product(m)->sm, "trays", m->trays);

    json_object_set_new(o, "nics", json_integer(parts.nics * m->ports));
    json_object_set_new(o, "gbps", json_integer(m->gbps));
    json_object_set_new(o, "certainty", json_string(kl_known_certainty(m)));
    json_object_set_new(o, "source", json_string(m->source));
    return o;
}

ncclResult_t kl_machines_json(FILE *to)
{
    json_t *all = json_array();

    for (int i = 0; kl_known_at(i); i++) json_array_append_new(all, machine_json(kl_known_at(i)));
    return kl_output_answer(KL_SCHEMA_MACHINES, json_pack("{s:o}", "machines", all), KL_OUTPUT_FORMAT, to);
}
