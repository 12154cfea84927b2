/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sysfs.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
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

void kl_sysfs_link_name(const char *dir, const char *name, char *text, size_t bytes)
{
    char path[PATH_MAX], target[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/%s", dir, name);
    ssize_t used = n < 0 || n >= (int)sizeof path ? -1 : readlink(path, target, sizeof target - 1);

    target[used > 0 ? used : 0] = 0;
    const char *slash = strrchr(target, '/');
    snprintf(text, bytes, "%s", slash ? slash + 1 : target);
}
