/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/sysfs.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static ssize_t read_file(const char *path, char *text, size_t bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    size_t used = 0;
    ssize_t n = 0;

    if (fd < 0) return -1;
    while (used < bytes && (n = read(fd, text + used, bytes - used)) > 0) used += (size_t)n;
    close(fd);
    return n < 0 || used == bytes ? -1 : (ssize_t)used;
}

bool kl_sysfs_text(const char *dir, const char *name, char *text, size_t bytes)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    ssize_t used = n < 0 || n >= (int)sizeof path ? -1 : read_file(path, text, bytes);

    if (used < 0) used = 0;
    while (used > 0 && (text[used - 1] == '\n' || !text[used - 1])) used--;
    text[used] = 0;
    return *text;
}

bool kl_sysfs_is_busid(const char *text)
{
    static const char shape[] = "hhhh:hh:hh.h";

    for (size_t i = 0; i < sizeof shape; i++)
        if (shape[i] == 'h' ? !isxdigit((unsigned char)text[i]) : text[i] != shape[i]) return false;
    return true;
}

bool kl_sysfs_pci_dir(const char *root, const char *busid, char dir[KL_SYSFS_PATH_TEXT])
{
    char path[PATH_MAX], lower[KL_BUSID_TEXT], resolved[PATH_MAX];
    size_t i = 0;

    for (; busid[i] && i < sizeof lower - 1; i++) lower[i] = (char)tolower((unsigned char)busid[i]);
    lower[i] = 0;
    if (!kl_sysfs_is_busid(lower)) return false;
    int n = snprintf(path, sizeof path, "%s/class/pci_bus/%.7s/../../%s", root, lower, lower);
    if (n < 0 || n >= (int)sizeof path || !realpath(path, resolved)) return false;
    if (strlen(resolved) >= KL_SYSFS_PATH_TEXT) return false;
    memcpy(dir, resolved, strlen(resolved) + 1);
    return true;
}

void kl_sysfs_link_name(const char *dir, const char *name, char *text, size_t bytes)
{
    char path[PATH_MAX], target[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    ssize_t used = n < 0 || n >= (int)sizeof path ? -1 : readlink(path, target, sizeof target - 1);

    target[used > 0 ? used : 0] = 0;
    const char *slash = strrchr(target, '/');
    snprintf(text, bytes, "%s", slash ? slash + 1 : target);
}

void kl_sysfs_below(const char *root, const char *path, char out[KL_SYSFS_PATH_TEXT])
{
    bool live = !strcmp(root, "/sys") || strncmp(path, "/sys/", 5) != 0;
    int n = live ? snprintf(out, KL_SYSFS_PATH_TEXT, "%s", path)
                 : snprintf(out, KL_SYSFS_PATH_TEXT, "%s%s", root, path + 4);

    if (n < 0 || n >= KL_SYSFS_PATH_TEXT) *out = 0;
}
