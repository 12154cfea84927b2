/* SPDX-License-Identifier: Apache-2.0 */
/** graph_text.h - a plan as text. */
#ifndef KOLO_TOOL_GRAPH_TEXT_H
#define KOLO_TOOL_GRAPH_TEXT_H

#include "answer/plan_json.h"

ncclResult_t kl_plan_text(const struct kl_plan_view *view, FILE *to);

#endif
