/* SPDX-License-Identifier: Apache-2.0 */
/** json.c - values of JSON documents, of any type: a wrong one counts as absent. */
#include "logs/record/make.h"

#include "base/error.h"

#include <math.h>
#include <stdlib.h>

int64_t kl_json_get_int(const json_t *object, const char *key, int64_t absent)
{
    const json_t *v = json_object_get(object, key);
    char *end;

    if (json_is_integer(v)) return json_integer_value(v);
    if (json_is_real(v) && fabs(json_real_value(v)) < 9e15) return (int64_t)json_real_value(v);
    if (!json_is_string(v) || !json_string_length(v)) return absent;
    const long long n = strtoll(json_string_value(v), &end, 10); /* OTLP writes 64-bit numbers as texts */

    return *end ? absent : n;
}

double kl_json_get_real(const json_t *object, const char *key, double absent)
{
    const json_t *v = json_object_get(object, key);

    return json_is_number(v) && isfinite(json_number_value(v)) ? json_number_value(v) : absent;
}

const char *kl_json_get_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool kl_json_get_true(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

ncclResult_t kl_record_parse(const char *name, const char *text, size_t bytes, json_t **document)
{
    json_error_t error;

    *document = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, &error);
    if (*document) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s:%d: not a complete JSON document: %s", name, error.line, error.text);
}
