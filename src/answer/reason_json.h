/* SPDX-License-Identifier: Apache-2.0 */
/** reason_json.h - reasons as every answer has them: {"code", "text"}; and what rules answered, with their reasons. */
#ifndef KL_ANSWER_REASON_JSON_H
#define KL_ANSWER_REASON_JSON_H

#include "topo/reasons.h"

#include <jansson.h>

json_t *kl_json_reason(const char *code, const char *text);

/** {"used", "reason"} */
json_t *kl_json_gdr(const struct kl_gdr *gdr);

/** {"relay", "reason"}: the rank of `own`, or of the GPU that it sends through; `relay` is the one that was considered. */
json_t *kl_json_pxn(const struct kl_pxn *pxn, int relay, int own);

#endif
