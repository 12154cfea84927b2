/* SPDX-License-Identifier: Apache-2.0 */
/**
 * param_sets.h - all parameters of Kolo, and all other known names of variables.
 *
 * A module that gets parameters of its own adds its set to the list in comm/settings.c.
 */
#ifndef KL_API_PARAM_SETS_H
#define KL_API_PARAM_SETS_H

#include "base/param_names.h"

extern const struct kl_param_registry kl_param_registry;

/** Warn about unknown NCCL_* and KOLO_* names in the environment and in configuration files; once per process. */
void kl_param_sets_check_names(void);

#endif
