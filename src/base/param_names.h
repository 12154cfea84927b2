/* SPDX-License-Identifier: Apache-2.0 */
/**
 * param_names.h - the names of variables that have a meaning, and suggestions for misspelt ones.
 *
 * All names NCCL_* and KOLO_* are reserved for the library: an unknown one is a mistake, most often of spelling, and
 * deserves a warning.
 *
 * Source: the distance is optimal string alignment: insert, delete, replace, swap neighbours; Damerau, A technique for
 *         computer detection and correction of spelling errors (CACM 1964).
 */
#ifndef KL_BASE_PARAM_NAMES_H
#define KL_BASE_PARAM_NAMES_H

#include "base/param.h"

/** A known name that is not a row of a set. */
struct kl_param_name {
    const char *name; /* a final '*' matches any ending */
    const char *note; /* its reader and purpose; NULL: NCCL has it, in Kolo it has no effect */
};

struct kl_param_registry {
    const struct kl_param_set *const *sets; /* ends with NULL */
    const struct kl_param_name *others;     /* ends with a NULL name */
};

/** The row called `name`, or NULL. */
const struct kl_param *kl_param_find(const struct kl_param_registry *registry, const char *name);

/** The name among `others`, or NULL. */
const struct kl_param_name *kl_param_find_other(const struct kl_param_registry *registry, const char *name);

/** The known name that `name` may be a misspelling of, or NULL. */
const char *kl_param_nearest(const struct kl_param_registry *registry, const char *name);

/** Warn about unknown names in `settings`, each once per process. */
void kl_param_check_names(const struct kl_param_registry *registry, const struct kl_settings *settings);

#endif
