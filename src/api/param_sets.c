/* SPDX-License-Identifier: Apache-2.0 */
#include "api/param_sets.h"

#include "api/other_names.h"
#include "comm/setup/settings.h"

const struct kl_param_registry kl_param_registry = {.sets = kl_comm_param_sets, .others = kl_other_names};

void kl_param_sets_check_names(void)
{
    kl_param_check_names(&kl_param_registry, kl_settings_process());
}
