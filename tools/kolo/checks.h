/* SPDX-License-Identifier: Apache-2.0 */
/** checks.h - what the tool's own jobs check that a library which nobody asked does not. */
#ifndef KOLO_TOOL_CHECKS_H
#define KOLO_TOOL_CHECKS_H

#include <stdbool.h>

/**
 * NCCL_CHECK_MODE=FIRST_USE for this process and those that it starts, unless somebody has set it. Before anything of the library
 * runs.
 */
void kl_checks_by_default(void);

/** Let this process and the ranks it starts follow a release of NCCL; NULL leaves all as it is. False: there is none such, and stderr says so. */
bool kl_follow_release(const char *command, const char *nccl);

#endif
