/* SPDX-License-Identifier: Apache-2.0 */
/** reason_json.h - a reason as every answer has it: {"code", "text"}. */
#ifndef KOLO_TOOL_EXPLAIN_REASON_JSON_H
#define KOLO_TOOL_EXPLAIN_REASON_JSON_H

#include <jansson.h>

static inline json_t *kl_json_reason(const char *code, const char *text)
{
    return json_pack("{s:s, s:s}", "code", code, "text", text);
}

#endif
