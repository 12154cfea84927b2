/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuner_json.h"

#include <jansson.h>
#include <string.h>
#include <strings.h>

const char *const kl_tuner_field_name[KL_TUNER_FIELDS] = {"function", "minBytes", "maxBytes", "algorithm",  "protocol",
                                                          "channels", "nNodes",   "nRanks",   "numPipeOps", "regBuff"};

/* -1: there is no such field. */
static int field_of(const char *key)
{
    if (!strcasecmp(key, "collType") || !strcasecmp(key, "coll")) return 0;
    for (int i = 0; i < KL_TUNER_FIELDS; i++)
        if (!strcasecmp(key, kl_tuner_field_name[i])) return i;
    return -1;
}

/* A text or a number of it; false: it is neither. */
static bool text_of(const json_t *value, char text[KL_TUNER_FIELD])
{
    if (json_is_string(value)) return snprintf(text, KL_TUNER_FIELD, "%s", json_string_value(value)) < KL_TUNER_FIELD;
    if (json_is_integer(value)) return snprintf(text, KL_TUNER_FIELD, "%lld", (long long)json_integer_value(value)) > 0;
    *text = 0;
    return json_is_null(value);
}

static bool read_rule(json_t *rule, int number, const struct kl_tuner_json_reader *r)
{
    char text[KL_TUNER_FIELDS][KL_TUNER_FIELD] = {""}, why[256] = "";
    char *field[KL_TUNER_FIELDS];
    const char *key;
    json_t *value;

    if (!json_is_object(rule)) snprintf(why, sizeof why, "it is no object; it is left out");
    json_object_foreach(rule, key, value)
    {
        const int i = field_of(key);
        if (i < 0)
            snprintf(why, sizeof why, "there is no field \"%.60s\"; the rule is left out", key);
        else if (!text_of(value, text[i]))
            snprintf(why, sizeof why, "\"%s\" is neither a short text nor a whole number; the rule is left out", key);
    }
    if (*why) {
        r->mistake(r->ctx, number, why);
        return true;
    }
    for (int i = 0; i < KL_TUNER_FIELDS; i++) field[i] = text[i];
    return r->rule(r->ctx, number, field);
}

void kl_tuner_json_read(FILE *from, const struct kl_tuner_json_reader *r)
{
    json_error_t error;
    json_t *all = json_loadf(from, JSON_REJECT_DUPLICATES, &error);
    json_t *list = json_is_object(all) ? json_object_get(all, "rules") : all;
    char why[256];

    if (!all) {
        snprintf(why, sizeof why, "line %d, column %d: %.150s; the file has no effect", error.line, error.column,
                 error.text);
        r->mistake(r->ctx, 0, why);
    } else if (!json_is_array(list))
        r->mistake(r->ctx, 0, "it has neither an array of rules nor an object with the array \"rules\"");
    for (size_t i = 0; json_is_array(list) && i < json_array_size(list); i++)
        if (!read_rule(json_array_get(list, i), (int)i + 1, r)) break;
    json_decref(all);
}
