/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/limit.h"

#include "device/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The limit in a file of the control group; 0: none. */
static size_t allowed_by(const char *path)
{
    FILE *file = fopen(path, "re");
    char text[32] = "";

    if (!file) return 0;
    const char *line = fgets(text, sizeof text, file);
    fclose(file);
    return line ? (size_t)strtoull(line, NULL, 10) : 0; /* "max" is 0, too */
}

static size_t of_machine(void)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    size_t bytes = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        size_t allowed = allowed_by(files[i]);
        if (allowed && allowed < bytes) bytes = allowed;
    }
    return bytes;
}

size_t kl_cuda_limit_of_device(int devices)
{
    const size_t unit = (size_t)1 << 20;
    struct kl_device_config config;

    kl_param_load_from(&kl_device_param_set, &config, kl_settings_process());
    size_t bytes = config.device_memory ? (size_t)config.device_memory : of_machine() / (size_t)(devices ? devices : 1);
    return bytes < unit ? unit : bytes / unit * unit;
}
