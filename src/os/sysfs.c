/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sysfs.h"

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    MAX_LINKS = 40,   /* as the kernel's own limit */
    MAX_NAMES = 65536 /* of one directory */
};

ncclResult_t kl_sysfs_open(struct kl_sysfs *fs, const char *root)
{
    int fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0) return KL_FAIL_ERRNO("cannot read below %s", root);
    fs->root = fd;
    return ncclSuccess;
}

void kl_sysfs_close(struct kl_sysfs *fs)
{
    if (fs->root >= 0) close(fs->root);
    fs->root = -1;
}

/* ---- paths ---- */

/* A path being resolved. `real` is free of links; `rest` is still to be walked. */
struct walk {
    char real[KL_SYSFS_PATH];
    char rest[2 * KL_SYSFS_PATH];
    int links;
};

/* Take the next component off `rest`; false when there is none. */
static bool take_component(struct walk *w, char component[KL_SYSFS_PATH], bool *fits)
{
    size_t skip = strspn(w->rest, "/"), length = strcspn(w->rest + skip, "/");

    *fits = length < KL_SYSFS_PATH;
    if (!length || !*fits) return false;
    memcpy(component, w->rest + skip, length);
    component[length] = 0;
    memmove(w->rest, w->rest + skip + length, strlen(w->rest + skip + length) + 1);
    return true;
}

/* ".." at the root stays there. */
static void leave_directory(struct walk *w)
{
    char *slash = strrchr(w->real, '/');

    *(slash ? slash : w->real) = 0;
}

/* Put what a link says in front of the rest. */
static bool follow(struct walk *w, const char *target)
{
    char rest[sizeof w->rest];
    struct kl_text t = kl_text_over(rest, sizeof rest);

    kl_text_add(&t, "%s/%s", target, w->rest);
    if (t.cut || ++w->links > MAX_LINKS) return false;
    memcpy(w->rest, rest, t.length + 1);
    if (target[0] == '/')
        w->real[0] = 0;
    else
        leave_directory(w);
    return true;
}

/* Go to `component`, which is not "." or "..", of the directory `real`. */
static bool enter(const struct kl_sysfs *fs, struct walk *w, const char *component)
{
    char target[KL_SYSFS_PATH];
    size_t length = strlen(w->real);
    struct kl_text real = {.start = w->real, .capacity = sizeof w->real, .length = length};

    kl_text_add(&real, "%s%s", length ? "/" : "", component);
    if (real.cut) return false;
    ssize_t n = readlinkat(fs->root, w->real, target, sizeof target);
    if (n < 0) return errno == EINVAL; /* no link, but it exists */
    if ((size_t)n == sizeof target) return false;
    target[n] = 0;
    return follow(w, target);
}

static bool resolve(const struct kl_sysfs *fs, struct walk *w)
{
    char component[KL_SYSFS_PATH];
    bool fits;

    while (take_component(w, component, &fits)) {
        if (!strcmp(component, ".")) continue;
        if (!strcmp(component, ".."))
            leave_directory(w);
        else if (!enter(fs, w, component))
            return false;
    }
    return fits;
}

bool kl_sysfs_realpath(const struct kl_sysfs *fs, const char *path, char real[KL_SYSFS_PATH])
{
    struct walk w = {.links = 0};

    if (strlen(path) >= KL_SYSFS_PATH) return false;
    memcpy(w.rest, path, strlen(path) + 1);
    if (!resolve(fs, &w)) return false;
    memcpy(real, w.real, strlen(w.real) + 1);
    return true;
}

/* O_NOFOLLOW: the last component was no link a moment ago. */
static int open_below(const struct kl_sysfs *fs, const char *path, int flags)
{
    char real[KL_SYSFS_PATH];

    if (!kl_sysfs_realpath(fs, path, real)) return -1;
    return openat(fs->root, real[0] ? real : ".", flags | O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* ---- files ---- */

/* Bytes read, at most `capacity`, or -1. */
static ssize_t read_all(int fd, char *bytes, size_t capacity)
{
    size_t done = 0;

    while (done < capacity) {
        ssize_t n = read(fd, bytes + done, capacity - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (!n) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

bool kl_sysfs_read(const struct kl_sysfs *fs, const char *path, char *text, size_t capacity)
{
    int fd = open_below(fs, path, 0);
    char *bytes = fd >= 0 ? malloc(capacity) : NULL;
    ssize_t n = bytes ? read_all(fd, bytes, capacity) : -1;
    bool ok = n >= 0 && (size_t)n < capacity;

    if (ok) {
        while (n && isspace((unsigned char)bytes[n - 1])) n--;
        bytes[n] = 0;
        memcpy(text, bytes, (size_t)n + 1);
    }
    free(bytes);
    if (fd >= 0) close(fd);
    return ok;
}

bool kl_sysfs_read_int(const struct kl_sysfs *fs, const char *path, int64_t *value)
{
    char text[64];

    return kl_sysfs_read(fs, path, text, sizeof text) && kl_parse_int(text, value);
}

bool kl_sysfs_read_cpus(const struct kl_sysfs *fs, const char *path, struct kl_cpuset *cpus)
{
    char text[KL_CPUSET_CPUS];
    size_t length = strlen(path);
    bool map = length >= 3 && !strcmp(path + length - 3, "map");

    if (!kl_sysfs_read(fs, path, text, sizeof text)) return false;
    return map ? kl_cpuset_parse_map(text, cpus) : kl_cpuset_parse_list(text, cpus);
}

/* ---- directories ---- */

static bool add_name(struct kl_sysfs_names *names, size_t *capacity, const char *name)
{
    if (names->n == *capacity) {
        size_t more = *capacity ? 2 * *capacity : 32;
        char **grown = more <= MAX_NAMES ? realloc(names->name, more * sizeof *grown) : NULL;

        if (!grown) return false;
        names->name = grown;
        *capacity = more;
    }
    names->name[names->n] = strdup(name);
    return names->name[names->n++] != NULL;
}

static bool read_names(DIR *dir, struct kl_sysfs_names *names)
{
    size_t capacity = 0;

    for (struct dirent *e; (errno = 0, e = readdir(dir));)
        if (e->d_name[0] != '.' && !add_name(names, &capacity, e->d_name)) return false;
    return !errno;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool kl_sysfs_list(const struct kl_sysfs *fs, const char *path, struct kl_sysfs_names *names)
{
    struct kl_sysfs_names made = {0};
    int fd = open_below(fs, path, O_DIRECTORY);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    bool ok = dir && read_names(dir, &made);

    if (ok && made.n) qsort(made.name, made.n, sizeof *made.name, by_name);
    if (ok)
        *names = made;
    else
        kl_sysfs_names_free(&made);
    if (dir)
        closedir(dir); /* and fd */
    else if (fd >= 0)
        close(fd);
    return ok;
}

void kl_sysfs_names_free(struct kl_sysfs_names *names)
{
    for (size_t i = 0; i < names->n; i++) free(names->name[i]);
    free(names->name);
    *names = (struct kl_sysfs_names){0};
}
