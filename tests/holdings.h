/* SPDX-License-Identifier: Apache-2.0 */
/** holdings.h - for tests and benchmarks: the resources of the process, to be compared before and after. Any thread;
 * forked children too. */
#ifndef KOLO_HOLDINGS_H
#define KOLO_HOLDINGS_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/** Entries of a folder, "." and ".." included; 0 where there is none. */
static inline int count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;

    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/** Open descriptors, and always the same few more: compare only. */
static inline int count_fds(void)
{
    return count_entries("/proc/self/fd");
}

/** Lines of /proc/self/maps that name something. */
static inline int count_maps(const char *name)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    int n = 0;

    while (f && fgets(line, sizeof line, f)) n += strstr(line, name) != NULL;
    if (f) fclose(f);
    return n;
}

/** Mapped segments of the library. */
static inline int count_segments(void)
{
    return count_maps("memfd:kolo");
}

/** Resident memory. */
static inline uint64_t resident_kib(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    char line[128] = "", *rest = line;

    if (f && fgets(line, sizeof line, f)) (void)strtoul(line, &rest, 10); /* size, then resident, in pages */
    if (f) fclose(f);
    return strtoul(rest, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

#endif
