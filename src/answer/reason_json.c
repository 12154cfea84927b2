/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/reason_json.h"

json_t *kl_json_reason(const char *code, const char *text)
{
    return json_pack("{s:s, s:s}", "code", code, "text", text);
}

json_t *kl_json_gdr(const struct kl_gdr *gdr)
{
    char why[KL_WHY_TEXT];

    return json_pack("{s:b, s:o}", "used", gdr->mode != KL_GDR_OFF, "reason",
                     kl_json_reason(kl_gdr_why_name(gdr->why), kl_gdr_why_text(gdr, why)));
}

json_t *kl_json_pxn(const struct kl_pxn *pxn, int relay, int own)
{
    char why[KL_WHY_TEXT];

    return json_pack("{s:i, s:o}", "relay", pxn->why == KL_PXN_USED ? relay : own, "reason",
                     kl_json_reason(kl_pxn_why_name(pxn->why), kl_pxn_why_text(pxn->why, relay, why)));
}
