/* SPDX-License-Identifier: Apache-2.0 */
/** own_shm.h - a /dev/shm that only this process and its children see, so that no other job's files are there. */
#ifndef KOLO_TEST_OWN_SHM_H
#define KOLO_TEST_OWN_SHM_H

#include <sched.h>
#include <stdbool.h>
#include <sys/mount.h>

/** Call it before other threads and children exist. False where that is not allowed. */
static inline bool kolo_test_own_shm(void)
{
    return !unshare(CLONE_NEWNS) && !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
           !mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
}

#endif
