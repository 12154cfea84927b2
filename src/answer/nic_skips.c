/* SPDX-License-Identifier: Apache-2.0 */
#include "answer/nic_skips.h"

#include "answer/reason_json.h"

json_t *kl_nic_skips_json(const struct kl_net_skip *skip, int n)
{
    json_t *list = json_array();
    char text[KL_NET_SKIP_TEXT];

    for (int i = 0; i < n; i++) {
        const char *code = kl_net_skip_code(skip[i].why);

        json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:o}", "name", skip[i].name, "kind",
                                              skip[i].rdma ? "rdma" : "interface", "reason",
                                              kl_json_reason(code, kl_net_skip_text(&skip[i], text)), "operand",
                                              *skip[i].other ? json_string(skip[i].other) : json_null()));
    }
    return list;
}
