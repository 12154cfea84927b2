/* SPDX-License-Identifier: Apache-2.0 */
/**
 * private_file.h - files through which processes of one user on a host find each other.
 *
 * Each has the mode 0600, is opened without following links, and is valid as long as a process holds a lock on it: the
 * system releases the locks of a process that ends, however it ends. A file that is not locked is stale; any process
 * that finds it removes it.
 * Threads: any.
 */
#ifndef KL_OS_PRIVATE_FILE_H
#define KL_OS_PRIVATE_FILE_H

#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum { KL_PRIVATE_PATH = 160 };

/**
 * The folders for such files, in the order in which all processes try them: /dev/shm, /run/user/UID, /tmp; ends with
 * NULL.
 */
const char *const *kl_private_folders(void);

/** Is the open file this user's, and closed to all others? `st` is filled in. */
static inline bool kl_private_file_is_mine(int fd, struct stat *st)
{
    return !fstat(fd, st) && S_ISREG(st->st_mode) && st->st_uid == geteuid() && !(st->st_mode & 077);
}

/**
 * Open an existing file, to read and write. -1 with errno: ENOENT if there is none, EPERM if it is not private to this
 * user, or another error.
 */
int kl_private_file_open(const char *path);

/** Does `path` still name the open file? */
bool kl_private_file_is_at(const char *path, int fd);

/**
 * Lock it, until the descriptor is closed, without waiting. False: another descriptor has the lock (EWOULDBLOCK), or
 * another error (errno).
 */
bool kl_private_file_claim(int fd);

/**
 * Remove the files of this user in a folder whose names contain `part`, if `is_stale` (which takes the lock) returns
 * true. The file `except`, or NULL, is not even opened.
 */
void kl_private_files_sweep(const char *folder, const char *part, const char *except, bool (*is_stale)(int fd));

#endif
