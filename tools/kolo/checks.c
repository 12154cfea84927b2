/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/checks.h"

#include "base/setting.h"
#include "topo/release.h"

#include <stdio.h>
#include <stdlib.h>

void kl_checks_enable_by_default(void)
{
    struct kl_setting found;

    if (!kl_settings_find(kl_settings_process(), "NCCL_CHECK_MODE", &found))
        setenv("NCCL_CHECK_MODE", "FIRST_USE", 1); /* an empty one sets nothing */
}

bool kl_follow_release(const char *command, const char *nccl)
{
    char expected[KL_NCCL_EXPECTED];

    if (!nccl) return true;
    if (kl_nccl_parse(nccl) >= 0) return !setenv("KOLO_NCCL_VERSION", nccl, 1);
    fprintf(stderr, "kolo %s: --nccl %s: %s\n", command, nccl, kl_nccl_expected(expected));
    return false;
}
