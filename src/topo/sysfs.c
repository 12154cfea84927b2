/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/sysfs.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool kl_sysfs_is_busid(const char *text)
{
    static const char shape[] = "hhhh:hh:hh.h";

    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'h' ? !isxdigit((unsigned char)text[i]) : text[i] != shape[i]) return false;
    return true;
}

static void lower_case(const char *text, char out[KL_BUSID_TEXT])
{
    size_t i = 0;

    for (; text[i] && i < KL_BUSID_TEXT - 1; i++) out[i] = (char)tolower((unsigned char)text[i]);
    out[i] = 0;
}

void kl_sysfs_busid(const char *text, char busid[KL_BUSID_TEXT])
{
    size_t domain = strspn(text, "0123456789abcdefABCDEF");

    if (domain >= 4 && kl_sysfs_is_busid(text + domain - 4))
        kl_busid_text(kl_busid_parse(text), busid);
    else
        lower_case(text, busid);
}

bool kl_sysfs_pci_dir(const char *root, const char *busid, char dir[KL_SYSFS_PATH_TEXT])
{
    char path[PATH_MAX], lower[KL_BUSID_TEXT], resolved[PATH_MAX];

    lower_case(busid, lower);
    if (!kl_sysfs_is_busid(lower)) return false;
    int n = snprintf(path, sizeof path, "%s/class/pci_bus/%.7s/../../%s", root, lower, lower);
    if (n < 0 || n >= (int)sizeof path || !realpath(path, resolved)) return false;
    if (strlen(resolved) >= KL_SYSFS_PATH_TEXT) return false;
    memcpy(dir, resolved, strlen(resolved) + 1);
    return true;
}

void kl_sysfs_below(const char *root, const char *path, char out[KL_SYSFS_PATH_TEXT])
{
    bool live = !strcmp(root, "/sys") || strncmp(path, "/sys/", 5) != 0;
    int n = live ? snprintf(out, KL_SYSFS_PATH_TEXT, "%s", path)
                 : snprintf(out, KL_SYSFS_PATH_TEXT, "%s%s", root, path + 4);

    if (n < 0 || n >= KL_SYSFS_PATH_TEXT) *out = 0;
}
