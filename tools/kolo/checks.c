/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/checks.h"

#include "base/setting.h"

#include <stdlib.h>

void kl_checks_by_default(void)
{
    struct kl_setting found;

    if (!kl_settings_find(kl_settings_process(), "NCCL_CHECK_MODE", &found))
        setenv("NCCL_CHECK_MODE", "FIRST_USE", 1); /* an empty one sets nothing */
}
