/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/causes.h"
#include "logs/log_make.h"

#include <string.h>

/* Extractors and benchmarks write comments, which tell of trouble elsewhere. */
static bool is_comment(const struct kl_log_line *line)
{
    return line->level == KL_LOG_PLAIN && *line->text == '#';
}

bool kl_log_read_trouble(struct kl_log *log, int speaker, const struct kl_log_line *line)
{
    const char *plain = line->level == KL_LOG_PLAIN ? kl_log_after(line->text, "NCCL WARN") : NULL;
    bool loud = line->level == KL_LOG_WARN || plain;

    if (is_comment(line)) return false;
    enum kl_log_cause cause = kl_cause_of(line->text, line->where, loud);

    if (cause == KL_CAUSE_NONE && !loud) return false;
    struct kl_log_warning *w = KL_LOG_NEW(log, warning);

    if (w)
        *w = (struct kl_log_warning){.at = line->at,
                                     .speaker = speaker,
                                     .cause = cause,
                                     .text = kl_log_keep(log, line->text, strlen(line->text))};
    return true;
}
