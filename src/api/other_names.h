/* SPDX-License-Identifier: Apache-2.0 */
/** other_names.h - variables that have a meaning without being a parameter of Kolo's; see base/param_names.h. */
#ifndef KL_API_OTHER_NAMES_H
#define KL_API_OTHER_NAMES_H

#include "base/param_names.h"

/** In alphabetical order; ends with a NULL name. */
extern const struct kl_param_name kl_other_names[];

#endif
