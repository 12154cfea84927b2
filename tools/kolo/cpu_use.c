/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cpu_use.h"

#include "os/affinity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* user nice system idle iowait irq softirq steal; user and nice include guests. */
enum { COLUMNS = 8, IDLE = 3, IOWAIT = 4 };

/* Ticks that were not idle in a line "cpu3 1 2 3 ..."; -1: another line. */
static double busy_ticks(const char *columns)
{
    double busy = 0;

    for (int i = 0; i < COLUMNS; i++) {
        char *end;
        double ticks = strtod(columns, &end);

        if (end == columns) return -1;
        if (i != IDLE && i != IOWAIT) busy += ticks;
        columns = end;
    }
    return busy;
}

static const char *line_of(const char *text, int cpu)
{
    char name[24];

    snprintf(name, sizeof name, "\ncpu%d ", cpu);
    const char *line = strstr(text, name);
    return line ? line + strlen(name) : NULL;
}

bool kl_cpu_use_parse(const char *text, const struct kl_cpuset *cpus, long ticks_per_second, double *all)
{
    double ticks = 0;

    for (int cpu = -1; (cpu = kl_cpuset_next(cpus, cpu + 1)) >= 0;) {
        const char *line = line_of(text, cpu);
        double busy = line ? busy_ticks(line) : -1;

        if (busy < 0) return false;
        ticks += busy;
    }
    *all = ticks / (double)ticks_per_second;
    return true;
}

static double seconds_of(int who)
{
    struct rusage r;

    if (getrusage(who, &r)) return 0;
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

struct kl_cpu_use kl_cpu_use_now(void)
{
    struct kl_cpu_use use = {.own = seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN)};
    struct kl_cpuset cpus;
    char *text = NULL;
    size_t room = 0;
    FILE *stat = fopen("/proc/stat", "re");

    if (stat && !kl_affinity_get(&cpus) && getdelim(&text, &room, 0, stat) > 0)
        use.known = kl_cpu_use_parse(text, &cpus, sysconf(_SC_CLK_TCK), &use.all);
    free(text);
    if (stat) fclose(stat);
    return use;
}

double kl_cpu_use_of_others(const struct kl_cpu_use *begin, const struct kl_cpu_use *end, int cpus, double seconds)
{
    if (!begin->known || !end->known || seconds <= 0 || cpus <= 0) return 0;
    double others = (end->all - begin->all) - (end->own - begin->own), share = others / seconds / cpus;

    return share < 0 ? 0 : share > 1 ? 1 : share;
}
