/* SPDX-License-Identifier: Apache-2.0 */
/** findings_make.h - how findings are gathered; for the found_*.c files only. */
#ifndef KL_LOGS_FINDINGS_MAKE_H
#define KL_LOGS_FINDINGS_MAKE_H

#include "logs/findings.h"

/** Rules add their findings here; `rc`: memory was short. */
struct kl_finding_list {
    const struct kl_log *log;
    struct kl_log_findings *out;
    ncclResult_t rc;
};

/** Add a copy. */
void kl_finding_add(struct kl_finding_list *list, struct kl_log_finding finding);

/** Is there one with this code, and for KL_FOUND_CAUSE with this cause? */
bool kl_finding_has(const struct kl_finding_list *list, enum kl_log_code code, enum kl_log_cause cause);

/** A copy of a text that lives as long as the findings. */
const char *kl_finding_keep(struct kl_finding_list *list, const char *text);

/** Host of a member, "" unknown. */
static inline const char *kl_member_host(const struct kl_log *log, const struct kl_log_member *m)
{
    return log->origin[m->origin].host;
}

/** Rules about failures, init, calls, differences between ranks, the machine, and connections. */
void kl_found_init(struct kl_finding_list *list);
void kl_found_ops(struct kl_finding_list *list);
void kl_found_job(struct kl_finding_list *list);
void kl_found_ranks(struct kl_finding_list *list);
void kl_found_machine(struct kl_finding_list *list);
void kl_found_traffic(struct kl_finding_list *list);

#endif
