/* SPDX-License-Identifier: Apache-2.0 */
/** checks.h - checks that are on in the tool's own jobs, and off by default in the library. */
#ifndef KOLO_TOOL_CHECKS_H
#define KOLO_TOOL_CHECKS_H

#include <stdbool.h>

/**
 * NCCL_CHECK_MODE=FIRST_USE for this process and those that it starts, unless it is set. Before anything of the library
 * runs.
 */
void kl_checks_by_default(void);

/** Let this process and the ranks it starts follow a release of NCCL; NULL changes nothing. False after an error message on stderr: unknown release. */
bool kl_follow_release(const char *command, const char *nccl);

#endif
