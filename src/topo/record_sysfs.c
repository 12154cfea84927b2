/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"
#include "topo/record.h"
#include "topo/sysfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_BYTES = 8192, MAX_DEPTH = 40 };

struct copy {
    const char *from, *to; /* roots */
};

/* Names of files and links worth keeping, wherever they are. */
static const char *const kept_files[] = {
    "class",
    "vendor",
    "device",
    "subsystem_vendor",
    "subsystem_device",
    "subsystem",
    "max_link_speed",
    "max_link_width",
    "numa_node",
    "operstate",
    "speed",
    "cpumap",
    "online",
    "state",
    "rate",
    "link_layer",
    "sys_image_guid",
};

/* Files of interfaces: they identify bridges, tunnels, ports and bonds. */
static const char *const kept_of_interfaces[] = {"type",      "uevent",  "tun_flags", "master",      "bridge",
                                                 "bridge_id", "bonding", "slaves",    "active_slave"};

static bool is_among(const char *name, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, names[i])) return true;
    return false;
}

static bool is_of_interface(const char *dir, const char *name)
{
    if (!strstr(dir, "/net/")) return false;
    return is_among(name, kept_of_interfaces, sizeof kept_of_interfaces / sizeof kept_of_interfaces[0]) ||
           !strncmp(name, "lower_", 6);
}

static bool is_kept(const char *dir, const char *name)
{
    return is_among(name, kept_files, sizeof kept_files / sizeof kept_files[0]) || is_of_interface(dir, name);
}

static bool starts(const char *text, const char *start)
{
    return !strncmp(text, start, strlen(start));
}

/* Is it the directory of interfaces? */
static bool is_net(const char *dir)
{
    const char *slash = strrchr(dir, '/');

    return slash && !strcmp(slash, "/net");
}

/* Directories of `dir` that lead to devices, below devices/pci* and its likes. */
static bool is_entered(const char *dir, const char *name)
{
    static const char *const starts_of[] = {"pci", "virtio", "net", "infiniband", "ports", "mlx", "node"};

    if (is_net(dir) || is_of_interface(dir, name) || kl_sysfs_is_busid(name) ||
        strspn(name, "0123456789abcdef:.") == strlen(name))
        return true;
    for (size_t i = 0; i < sizeof starts_of / sizeof starts_of[0]; i++)
        if (starts(name, starts_of[i])) return true;
    return false;
}

static bool join(char out[PATH_MAX], const char *root, const char *path)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", root, path);

    return n > 0 && n < PATH_MAX;
}

static ncclResult_t make_dir(const struct copy *c, const char *path)
{
    char to[PATH_MAX];

    if (join(to, c->to, path) && mkdir(to, 0777) && errno != EEXIST) return KL_FAIL_ERRNO("creating %s", to);
    return ncclSuccess;
}

/* Files that cannot be read are left out: many files of sysfs fail for good reasons. */
static ncclResult_t copy_file(const struct copy *c, const char *dir, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX], path[PATH_MAX], text[FILE_BYTES];

    if (!join(path, dir, name) || !join(from, c->from, dir) || !join(to, c->to, path)) return ncclSuccess;
    if (!kl_sysfs_text(from, name, text, sizeof text) && !kl_sysfs_is_busid(name)) return ncclSuccess;
    FILE *f = fopen(to, "we");
    if (!f) return KL_FAIL_ERRNO("creating %s", to);
    fprintf(f, "%s\n", text);
    if (fclose(f)) return KL_FAIL_ERRNO("writing %s", to);
    return ncclSuccess;
}

static ncclResult_t copy_link(const struct copy *c, const char *dir, const char *name)
{
    char from[PATH_MAX], to[PATH_MAX], path[PATH_MAX], target[PATH_MAX];
    ssize_t n;

    if (!join(path, dir, name) || !join(from, c->from, path) || !join(to, c->to, path)) return ncclSuccess;
    n = readlink(from, target, sizeof target - 1);
    if (n < 0) return ncclSuccess;
    target[n] = 0;
    if (symlink(target, to) && errno != EEXIST) return KL_FAIL_ERRNO("creating %s", to);
    return ncclSuccess;
}

static ncclResult_t copy_dir(const struct copy *c, const char *path, int depth);

static ncclResult_t copy_entry(const struct copy *c, const char *dir, const struct dirent *e, int depth)
{
    char path[PATH_MAX];

    if (e->d_name[0] == '.') return ncclSuccess;
    if (e->d_type == DT_LNK)
        return is_kept(dir, e->d_name) || starts(dir, "class/") ? copy_link(c, dir, e->d_name) : ncclSuccess;
    if (e->d_type == DT_REG)
        return is_kept(dir, e->d_name) || kl_sysfs_is_busid(e->d_name) ? copy_file(c, dir, e->d_name) : ncclSuccess;
    if (e->d_type != DT_DIR || depth == MAX_DEPTH || !is_entered(dir, e->d_name) || !join(path, dir, e->d_name))
        return ncclSuccess;
    return copy_dir(c, path, depth + 1);
}

static ncclResult_t copy_dir(const struct copy *c, const char *path, int depth)
{
    char from[PATH_MAX];
    struct dirent **entry;
    ncclResult_t rc;

    if (!join(from, c->from, path)) return ncclSuccess;
    int n = scandir(from, &entry, NULL, alphasort);
    if (n < 0) return ncclSuccess;
    rc = make_dir(c, path);
    for (int i = 0; i < n; i++) {
        if (!rc) rc = copy_entry(c, path, entry[i], depth);
        free(entry[i]);
    }
    free(entry);
    return rc;
}

/* The roots that device links of `class` lead to: PCI domains, and whatever else interfaces hang on. */
static ncclResult_t copy_devices(const struct copy *c)
{
    char from[PATH_MAX], path[PATH_MAX];
    struct dirent **entry;
    ncclResult_t rc = ncclSuccess;

    if (!join(from, c->from, "devices")) return ncclSuccess;
    int n = scandir(from, &entry, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        if (!rc && starts(entry[i]->d_name, "pci") && join(path, "devices", entry[i]->d_name))
            rc = copy_dir(c, path, 0);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return rc;
}

ncclResult_t kl_record_sysfs(const char *sysfs, const char *dir)
{
    static const char *const above[] = {
        "", "class", "devices", "devices/system", "devices/virtual", "kernel", "kernel/pci_switch_link"};
    static const char *const copied[] = {"class/pci_bus",       "class/net",
                                         "class/infiniband",    "devices/system/node",
                                         "devices/virtual/net", "kernel/pci_switch_link/virtual_switch_links"};
    struct copy c = {.from = sysfs, .to = dir};

    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++) KL_TRY(make_dir(&c, above[i]));
    for (size_t i = 0; i < sizeof copied / sizeof copied[0]; i++) KL_TRY(copy_dir(&c, copied[i], 0));
    return copy_devices(&c);
}
