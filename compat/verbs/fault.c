/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/verbs/standin.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAULTS = 16, PLACE_TEXT = 24 };

static struct fault {
    char place[PLACE_TEXT];
    int number;
    unsigned at, seen; /* at 0: each one */
} faults[MAX_FAULTS];
static int nfaults;
static bool is_read;

static void add(const char *entry)
{
    struct fault f = {.at = 0};
    const size_t n = strspn(entry, "abcdefghijklmnopqrstuvwxyz_");
    const char *number = entry + n + 1;
    char *end = NULL;

    if (n && n < sizeof f.place && entry[n] == ':') {
        memcpy(f.place, entry, n);
        f.number = (int)strtol(number, &end, 10);
        if (end != number && *end == '@') f.at = (unsigned)strtoul(end + 1, &end, 10);
    }
    if (end && end != number && !*end && nfaults < MAX_FAULTS)
        faults[nfaults++] = f;
    else
        fprintf(stderr, "libibverbs (Kolo's stand-in): KOLO_VERBS_FAULT: \"%s\" is not PLACE:NUMBER@N\n", entry);
}

static void read_faults(const char *text)
{
    char copy[512], *rest = copy;

    is_read = true;
    nfaults = 0;
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *entry; (entry = strsep(&rest, ","));)
        if (*entry) add(entry);
}

int vs_fault(const char *place)
{
    if (!is_read) read_faults(getenv("KOLO_VERBS_FAULT"));
    for (int i = 0; i < nfaults; i++) {
        struct fault *f = &faults[i];
        if (strcmp(f->place, place) != 0) continue;
        f->seen++;
        if (!f->at || f->seen == f->at) return f->number;
    }
    return 0;
}

/** For tests: replace the faults by the faults in this text. */
VS_EXPORT void kolo_verbs_fault(const char *text);
VS_EXPORT void kolo_verbs_fault(const char *text)
{
    vs_enter();
    read_faults(text);
    vs_leave();
}

/* ---- counters ---- */

static const char *counter_of(int status)
{
    switch (status) {
    case KL_IBV_WC_RETRY_EXC:
        return "hw_counters/local_ack_timeout_err";
    case KL_IBV_WC_RNR_RETRY_EXC:
        return "hw_counters/rnr_nak_retry_err";
    case KL_IBV_WC_REM_ACCESS:
        return "hw_counters/req_remote_access_errors";
    default:
        return NULL;
    }
}

void vs_fault_count(const struct kl_ibv_device *device, int status)
{
    const char *counter = counter_of(status);
    char path[PATH_MAX];
    char text[32];

    if (!counter || !*device->ibdev_path) return;
    snprintf(path, sizeof path, "%s/ports/1/%s", device->ibdev_path, counter);
    FILE *f = fopen(path, "r+");
    if (!f) return;
    if (fgets(text, sizeof text, f)) {
        rewind(f);
        fprintf(f, "%lu\n", strtoul(text, NULL, 10) + 1);
    }
    fclose(f);
}
