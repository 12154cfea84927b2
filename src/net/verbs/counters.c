/* SPDX-License-Identifier: Apache-2.0 */
#include "net/verbs/counters.h"

#include "base/parse.h"
#include "os/sysfs.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[KL_VERBS_COUNTERS] = {
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_rcv_remote_physical_errors",
    "counters/port_xmit_discards",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/implied_nak_seq_err",
    "hw_counters/req_remote_access_errors",
    "hw_counters/resp_local_length_error",
    "hw_counters/np_cnp_sent",
    "hw_counters/rp_cnp_handled",
    "hw_counters/out_of_buffer",
    "hw_counters/retry_exceeded_err",
    "hw_counters/completer_retry_err",
};

void kl_verbs_counters_read(const char *port, struct kl_verbs_counters *counters)
{
    char text[32];

    for (int i = 0; i < KL_VERBS_COUNTERS; i++) {
        int64_t value;
        bool known = kl_sysfs_text(port, names[i], text, sizeof text) && kl_parse_int(text, &value) && value >= 0;
        counters->value[i] = known ? (uint64_t)value : UINT64_MAX;
    }
}

static const char *last_part(const char *name)
{
    while (*name != '/') name++;
    return name + 1;
}

const char *kl_verbs_counters_moved(const struct kl_verbs_counters *before, const struct kl_verbs_counters *now,
                                    char *text, size_t bytes)
{
    size_t used = 0;

    *text = 0;
    for (int i = 0; i < KL_VERBS_COUNTERS && used + 1 < bytes; i++) {
        if (before->value[i] == UINT64_MAX || now->value[i] == UINT64_MAX || now->value[i] <= before->value[i])
            continue;
        int n = snprintf(text + used, bytes - used, "%s%s +%" PRIu64, used ? ", " : "", last_part(names[i]),
                         now->value[i] - before->value[i]);
        if (n > 0) used += (size_t)n;
    }
    return text;
}
