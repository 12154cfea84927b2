/* SPDX-License-Identifier: Apache-2.0 */
#include "os/private_file.h"

#include "os/job_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static char runtime_folder[32];

static void name_runtime_folder(void)
{
    snprintf(runtime_folder, sizeof runtime_folder, "/run/user/%u", (unsigned)geteuid());
}

const char *const *kl_private_folders(void)
{
    static const char *const folders[] = {"/dev/shm", runtime_folder, "/tmp", NULL};
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, name_runtime_folder);
    return folders;
}

/* A pipe of another user at this path must not block the open. */
static int open_at(int folder, const char *path)
{
    int fd = openat(folder, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;

    if (fd < 0 || kl_private_file_is_mine(fd, &st)) return fd;
    close(fd);
    errno = EPERM;
    return -1;
}

int kl_private_file_open(const char *path)
{
    return open_at(AT_FDCWD, path);
}

static bool names(int folder, const char *path, int fd)
{
    struct stat there, open;

    return !fstatat(folder, path, &there, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &open) && there.st_dev == open.st_dev &&
           there.st_ino == open.st_ino;
}

bool kl_private_file_is_at(const char *path, int fd)
{
    return names(AT_FDCWD, path, fd);
}

bool kl_private_file_claim(int fd)
{
    int rc;

    do rc = flock(fd, LOCK_EX | LOCK_NB);
    while (rc && errno == EINTR);
    return !rc;
}

static void remove_if_stale(int folder, const char *name, bool (*is_stale)(int fd))
{
    int fd = open_at(folder, name);

    if (fd < 0) return;
    if (is_stale(fd) && names(folder, name, fd)) unlinkat(folder, name, 0);
    close(fd);
}

void kl_private_files_sweep(const char *folder, const char *part, const char *except, bool (*is_stale)(int fd))
{
    char prefix[KL_JOB_NAME];
    const struct dirent *entry;
    DIR *d = opendir(folder);

    if (!d) return;
    kl_job_name_prefix(prefix);
    while ((entry = readdir(d)))
        if (!strncmp(entry->d_name, prefix, strlen(prefix)) && strstr(entry->d_name, part) &&
            (!except || strcmp(entry->d_name, except) != 0))
            remove_if_stale(dirfd(d), entry->d_name, is_stale);
    closedir(d);
}
