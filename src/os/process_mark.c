/* SPDX-License-Identifier: Apache-2.0 */
#include "os/process_mark.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STARTTIME = 22, TEXT = 1024 };

/* From the field after the command, which is the third; NULL: there is no such process, or no /proc. */
static const char *read_stat(pid_t pid, char text[TEXT])
{
    char path[32];

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f) return NULL;
    text[fread(text, 1, TEXT - 1, f)] = '\0';
    fclose(f);
    const char *end = strrchr(text, ')'); /* a command may contain anything */
    return end && end[1] == ' ' ? end + 2 : NULL;
}

static unsigned long long field_of(const char *third, int number)
{
    for (int field = 3; third && field < number; field++) {
        third = strchr(third, ' ');
        if (third) third++;
    }
    return third ? strtoull(third, NULL, 10) : 0;
}

unsigned long long kl_process_stat(pid_t pid, int number)
{
    char text[TEXT];

    return field_of(read_stat(pid, text), number);
}

static uint64_t own_namespace(void)
{
    struct stat s;

    return stat("/proc/self/ns/pid", &s) ? 0 : (uint64_t)s.st_ino;
}

struct kl_process_mark kl_process_mark_own(void)
{
    return (struct kl_process_mark){
        .started = kl_process_stat(getpid(), STARTTIME), .pid_namespace = own_namespace(), .pid = (int32_t)getpid()};
}

bool kl_process_mark_is_over(const struct kl_process_mark *mark)
{
    char text[TEXT];

    if (!mark->started || !mark->pid_namespace || mark->pid_namespace != own_namespace()) return false;
    const char *third = read_stat(mark->pid, text);
    return !third || *third == 'Z' || *third == 'X' || field_of(third, STARTTIME) != mark->started;
}
