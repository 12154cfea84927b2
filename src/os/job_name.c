/* SPDX-License-Identifier: Apache-2.0 */
#include "os/job_name.h"

#include "os/hostinfo.h"
#include "os/process_mark.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANCESTORS_MAX = 64, PPID = 4, STARTTIME = 22 };

/* ---- processes ---- */

/* Does `entry` of an environment set a variable of `own` to another value than here, or one that is not set here?
 * Counts equal ones in `*found`. */
static bool differs_from_own(const char *entry, const char *const *own, int *found)
{
    for (; *own; own++) {
        const char *mine = getenv(*own);
        size_t n = strlen(*own);

        if (strncmp(entry, *own, n) != 0 || entry[n] != '=') continue;
        if (!mine || strcmp(entry + n + 1, mine) != 0) return true;
        ++*found;
    }
    return false;
}

/* Was this process started with the same values? False if its environment cannot be read. */
static bool is_of_this_rank(pid_t pid, const char *const *own)
{
    char path[32], *entry = NULL;
    int expected = 0, found = 0;
    bool another = false;
    size_t room = 0;

    for (const char *const *name = own; *name; name++) expected += getenv(*name) != NULL;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = expected ? fopen(path, "re") : NULL;
    if (!f) return false;
    while (!another && getdelim(&entry, &room, 0, f) > 0) another = differs_from_own(entry, own, &found);
    fclose(f);
    free(entry);
    return !another && found == expected;
}

static pid_t find_launcher(const char *const *own)
{
    pid_t pid = getppid();

    for (int i = 0; i < ANCESTORS_MAX && is_of_this_rank(pid, own); i++) {
        pid_t parent = (pid_t)kl_process_stat(pid, PPID);
        if (parent < 1) break;
        pid = parent;
    }
    return pid;
}

/* ---- names ---- */

static bool join_values(const char *const *settings, char *text, size_t size)
{
    size_t used = 0;

    for (; *settings; settings++) {
        const char *value = getenv(*settings);
        if (!value) return false;
        int n = snprintf(text + used, size - used, "%s=%s;", *settings, value);
        if (n < 0 || (size_t)n >= size - used) return false;
        used += (size_t)n;
    }
    return used;
}

/* A pid is reused; with its start time (clock ticks since boot) and its pid namespace it is unique. */
static void name_launcher(const char *const *own, char *text, size_t size)
{
    char pids[64] = "";
    pid_t pid = find_launcher(own);

    if (readlink("/proc/self/ns/pid", pids, sizeof pids - 1) < 0) *pids = 0;
    snprintf(text, size, "process %d, started at %llu, in %s", (int)pid, kl_process_stat(pid, STARTTIME), pids);
}

void kl_job_name_prefix(char prefix[KL_JOB_NAME])
{
    snprintf(prefix, KL_JOB_NAME, "kolo-%u-", (unsigned)geteuid());
}

void kl_job_name(const char *const *shared, const char *const *own, unsigned turn, char name[KL_JOB_NAME])
{
    char text[512], prefix[KL_JOB_NAME];
    uint64_t job = 0;

    if (!join_values(shared, text, sizeof text)) name_launcher(own, text, sizeof text);
    (void)kl_hostinfo_host_hash(text, &job);
    kl_job_name_prefix(prefix);
    snprintf(name, KL_JOB_NAME, "%.24s%016llx-%u", prefix, (unsigned long long)job, turn);
}
