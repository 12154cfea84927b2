/* SPDX-License-Identifier: Apache-2.0 */
/**
 * processes.c - the processes that use a device: this one, if it has a context or memory there, and processes of this user that
 * have the segment of the device's memory open, according to /proc.
 */
#include "compat/cuda/core/ledger.h"
#include "compat/cuda/core/memory.h"
#include "compat/cuda/nvml/nvml_state.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct found {
    nvmlProcessInfo_t *list;
    unsigned room, n;
};

static void add(struct found *f, unsigned pid, unsigned long long bytes)
{
    if (f->n < f->room)
        f->list[f->n] = (nvmlProcessInfo_t){
            .pid = pid, .usedGpuMemory = bytes, .gpuInstanceId = 0xffffffff, .computeInstanceId = 0xffffffff};
    f->n++;
}

/* Is one of a process's descriptors of the segment, and how much of that is there? */
static bool is_open(DIR *fds, const char *link, unsigned long long *bytes)
{
    char target[KL_CUDA_SEGMENT_LINK_TEXT + 1];
    const size_t length = strlen(link);
    const struct dirent *entry;
    struct stat s;

    while ((entry = readdir(fds))) {
        ssize_t got = readlinkat(dirfd(fds), entry->d_name, target, sizeof target);

        if (got <= (ssize_t)length || memcmp(target, link, length) != 0 || target[length] != ' ') continue;
        *bytes = fstatat(dirfd(fds), entry->d_name, &s, 0) ? 0 : (unsigned long long)s.st_blocks * 512;
        return true;
    }
    return false;
}

/* A process of this job reports its allocated bytes; other processes only show the pages that they have written. */
static void add_if_it_uses(struct found *f, const char *pid, const struct kl_cuda_device *d, const char *link)
{
    const pid_t number = (pid_t)strtol(pid, NULL, 10);
    unsigned long long bytes, given = kl_cuda_ledger_has(d->ordinal) ? kl_cuda_ledger_used_by(d->ordinal, number) : 0;
    char path[64];

    snprintf(path, sizeof path, "/proc/%.20s/fd", pid);
    DIR *fds = opendir(path);
    if (!fds) return; /* another user's, or gone */
    if (is_open(fds, link, &bytes)) add(f, (unsigned)number, given ? given : bytes);
    closedir(fds);
}

static void add_others(struct found *f, const struct kl_cuda_device *d)
{
    char link[KL_CUDA_SEGMENT_LINK_TEXT];
    const struct dirent *entry;
    DIR *all = opendir("/proc");

    if (!all) return;
    kl_cuda_segment_link(d, link);
    while ((entry = readdir(all)))
        if (isdigit((unsigned char)entry->d_name[0]) && strtol(entry->d_name, NULL, 10) != getpid())
            add_if_it_uses(f, entry->d_name, d, link);
    closedir(all);
}

static void add_own(struct found *f, const struct kl_cuda_device *d)
{
    int visible = kl_nvml_visible(d);
    unsigned long long used = visible < 0 ? 0 : kl_cuda_memory_here(visible);

    if (visible >= 0 && (kl_cuda_primary(visible)->alive || used)) add(f, (unsigned)getpid(), used);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list)
{
    const struct kl_cuda_device *d;

    KL_NVML_TRY(kl_nvml_device(device, &d));
    if (!count || (*count && !list)) return NVML_ERROR_INVALID_ARGUMENT;
    struct found f = {.list = list, .room = *count};
    add_own(&f, d);
    add_others(&f, d);
    *count = f.n;
    return f.n > f.room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count, list);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *list)
{
    enum { MOST = 4096 };

    if (!count || (*count && !list)) return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count < MOST ? *count : MOST;
    nvmlProcessInfo_t *all = calloc(room + 1, sizeof *all);
    if (!all) return NVML_ERROR_UNKNOWN;
    *count = room;
    nvmlReturn_t rc = nvmlDeviceGetComputeRunningProcesses_v3(device, count, all);
    for (unsigned i = 0; !rc && i < *count; i++)
        list[i] = (nvmlProcessInfo_v1_t){.pid = all[i].pid, .usedGpuMemory = all[i].usedGpuMemory};
    free(all);
    return rc;
}
