/* SPDX-License-Identifier: Apache-2.0 */
/**
 * verdict.h - the answer about a log in one line.
 *
 * It names the worst problem and the ranks that show it. It says that there is no problem only of a log that shows its
 * communicators finished; else it says how far the log goes.
 *
 * Threads: pure.
 */
#ifndef KL_LOGS_VERDICT_H
#define KL_LOGS_VERDICT_H

#include "logs/compare.h"
#include "logs/findings.h"

/** Append the line, without its full stop. `compared` may be one that was not made. */
void kl_log_verdict(const struct kl_log *log, const struct kl_log_findings *findings,
                    const struct kl_log_compare *compared, struct kl_text *text);

/** Does the log show a problem by itself? */
bool kl_log_has_problem(const struct kl_log_findings *findings);

#endif
