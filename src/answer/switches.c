/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/switches.h"

#include "answer/output.h"
#include "answer/schema.h"
#include "base/error.h"
#include "topo/xml.h"

#include <stdlib.h>

ncclResult_t kl_switches_open(const char *file, struct kl_switches *s)
{
    char *text;
    size_t bytes;

    *s = (struct kl_switches){.kind = KL_INPUT_UNKNOWN};
    KL_TRY(kl_xml_read(file, &text, &bytes));
    ncclResult_t rc = kl_switches_read(kl_text_input(file), text, bytes, s);

    free(text);
    return rc;
}

void kl_switches_summary(const struct kl_switches *s, struct kl_text *to)
{
    const int by_name = kl_switches_crossings(s, NULL), by_place = kl_switches_crossings(s, s->by_place);

    kl_text_add(to, "%d host%s in %d pod%s (hosts of one switch), %d switch%s in %d level%s: ", s->nhosts,
                kl_plural(s->nhosts), s->npods, kl_plural(s->npods), s->nsw, s->nsw == 1 ? "" : "es", s->levels,
                kl_plural(s->levels));
    if (by_name > by_place)
        kl_text_add(to, "a ring of the hosts by name crosses pods %d times, in the order below %d", by_name, by_place);
    else if (s->npods > 1)
        kl_text_add(to, "hosts by name already stand pod by pod, and a ring of them crosses pods %d times", by_place);
    else
        kl_text_add(to, "any order of hosts stays in it");
}

static json_t *order_json(const struct kl_switches *s)
{
    json_t *a = json_array();

    for (int i = 0; i < s->nhosts; i++) json_array_append_new(a, kl_output_text(s->host[s->by_place[i]].name));
    return a;
}

static json_t *hosts_json(const struct kl_switches *s)
{
    json_t *a = json_array();

    for (int i = 0; i < s->nhosts; i++) {
        json_t *path = json_array();

        for (int at = s->host[i].parent; at >= 0; at = s->sw[at].parent)
            json_array_append_new(path, kl_output_text(s->sw[at].name));
        json_array_append_new(a, json_pack("{s:o,s:i,s:o}", "host", kl_output_text(s->host[i].name), "pod",
                                           s->host[i].pod, "switches", path));
    }
    return a;
}

ncclResult_t kl_switches_json(const struct kl_switches *s, FILE *to)
{
    char line[512];
    struct kl_text text = kl_text_in(line, sizeof line);

    kl_switches_summary(s, &text);
    json_t *o = json_pack("{s:s,s:s,s:i,s:i,s:i,s:i}", "summary", line, "read_as", kl_input_name(s->kind), "pods",
                          s->npods, "levels", s->levels, "crossings_by_name", kl_switches_crossings(s, NULL),
                          "crossings_by_place", kl_switches_crossings(s, s->by_place));

    json_object_set_new(o, "order", order_json(s));
    json_object_set_new(o, "hosts", hosts_json(s));
    return kl_output_answer(KL_SCHEMA_SWITCHES, o, KL_OUTPUT_FORMAT, to);
}
