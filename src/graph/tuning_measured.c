/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_measured.h"

#include "base/hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const int kl_measured_ranks[KL_MEASURED_RANKS] = {2, 4, 8};
const int64_t kl_measured_bytes[KL_MEASURED_SIZES] = {8,         512,       4 << 10, 32 << 10,
                                                      128 << 10, 512 << 10, 2 << 20, 8 << 20};

/* The format and the meaning of its numbers: sizes, ranks, kinds of memory. */
static const char first_line[] = "kolo tuning 1\n";

#define LONGEST_US 1e7f

/* ---- times ---- */

/* Interpolate linearly between the times of a line. */
static float at_size(const float us[KL_MEASURED_SIZES], int64_t bytes)
{
    int i = 0;

    while (i < KL_MEASURED_SIZES - 2 && bytes > kl_measured_bytes[i + 1]) i++;
    if (bytes <= kl_measured_bytes[0]) return us[0];
    double run = (double)(kl_measured_bytes[i + 1] - kl_measured_bytes[i]), rise = (double)us[i + 1] - (double)us[i];
    return (float)((double)us[i] + rise * (double)(bytes - kl_measured_bytes[i]) / run);
}

float kl_tuning_measured_us(const struct kl_tuning_measured *m, int func, int algo, int nranks, int64_t bytes)
{
    const float(*us)[KL_MEASURED_SIZES] = m->us[func][algo];
    int i = 0;

    while (i < KL_MEASURED_RANKS - 2 && nranks > kl_measured_ranks[i + 1]) i++;
    if (us[i][0] <= 0 || us[i + 1][0] <= 0)
        return us[i][0] > 0 && nranks <= kl_measured_ranks[i] ? at_size(us[i], bytes) : 0;
    double low = (double)at_size(us[i], bytes), high = (double)at_size(us[i + 1], bytes);
    double share = (double)(nranks - kl_measured_ranks[i]) / (double)(kl_measured_ranks[i + 1] - kl_measured_ranks[i]);
    if (high < low && share > 1) return (float)high; /* more ranks take no less */
    if (nranks <= kl_measured_ranks[0]) share = 0;
    return (float)(low * (1 - share) + high * share); /* so that rounding never makes it fall with the size */
}

uint32_t kl_tuning_measured_mark(const struct kl_tuning_measured *m)
{
    uint64_t hash = kl_hash_add(KL_HASH_START, m, sizeof *m);

    return (uint32_t)(hash ^ hash >> 32) | 1;
}

/* ---- text ---- */

static uint64_t checksum(const char *text, size_t bytes)
{
    return kl_hash_add(KL_HASH_START, text, bytes);
}

static void print_line(struct kl_text *t, int func, int algo, int ranks, const float us[KL_MEASURED_SIZES])
{
    if (us[0] <= 0) return;
    kl_text_add(t, "%s %s %d", kl_func_name[func], kl_algo_name[algo], kl_measured_ranks[ranks]);
    for (int s = 0; s < KL_MEASURED_SIZES; s++) {
        long nanoseconds = lround((double)us[s] * 1000); /* whole numbers: no locale changes them */
        kl_text_add(t, " %ld", nanoseconds > 0 ? nanoseconds : 1);
    }
    kl_text_add(t, "\n");
}

size_t kl_tuning_measured_print(const struct kl_tuning_measured *m, const char *machine, char *text, size_t room)
{
    struct kl_text t = kl_text_over(text, room);

    kl_text_add(&t, "%s%s\n", first_line, machine);
    for (int f = 0; f < KL_FUNCS; f++)
        for (int a = 0; a < KL_ALGOS; a++)
            for (int r = 0; r < KL_MEASURED_RANKS; r++) print_line(&t, f, a, r, m->us[f][a][r]);
    uint64_t sum = checksum(text, strlen(text));
    kl_text_add(&t, "end %016llx\n", (unsigned long long)sum);
    size_t bytes = strlen(text);
    return bytes && bytes + 1 < room && text[bytes - 1] == '\n' ? bytes : 0;
}

/* Consume `word` and the separator after it. */
static bool take(const char **at, const char *word)
{
    size_t n = strlen(word);

    if (strncmp(*at, word, n)) return false;
    *at += n;
    return true;
}

static int take_name(const char **at, const char *const *names, int n)
{
    for (int i = 0; i < n; i++) {
        size_t length = strlen(names[i]);
        if (strncmp(*at, names[i], length) || (*at)[length] != ' ') continue;
        *at += length + 1;
        return i;
    }
    return -1;
}

static bool take_number(const char **at, char end, long most, long *value)
{
    long v = 0;
    const char *p = *at;

    for (; *p >= '0' && *p <= '9' && v <= most; p++) v = 10 * v + (*p - '0');
    if (p == *at || *p != end || v > most || !v) return false;
    *at = p + 1;
    *value = v;
    return true;
}

static int rank_index(long ranks)
{
    for (int r = 0; r < KL_MEASURED_RANKS; r++)
        if (kl_measured_ranks[r] == ranks) return r;
    return -1;
}

/* A line that was measured; noise may have made a larger operation quicker. */
static bool take_line(const char **at, struct kl_tuning_measured *m)
{
    int func = take_name(at, kl_func_name, KL_FUNCS), algo = func < 0 ? -1 : take_name(at, kl_algo_name, KL_ALGOS), r;
    long ranks, ns;

    if (algo < 0 || !take_number(at, ' ', 1 << 20, &ranks) || (r = rank_index(ranks)) < 0) return false;
    float *us = m->us[func][algo][r];
    if (us[0] > 0) return false; /* twice */
    for (int s = 0; s < KL_MEASURED_SIZES; s++) {
        if (!take_number(at, s + 1 < KL_MEASURED_SIZES ? ' ' : '\n', (long)(LONGEST_US * 1000), &ns)) return false;
        us[s] = (float)((double)ns / 1000); /* rounded once: printed and read again it is the same */
        if (s && us[s] < us[s - 1]) us[s] = us[s - 1];
    }
    return true;
}

static const char *parse(const char *text, const char *machine, struct kl_tuning_measured *m)
{
    const char *at = text;
    char end[32];

    if (!take(&at, first_line)) return "it is no tuning of this version";
    if (!take(&at, machine) || !take(&at, "\n")) return "it is of another machine";
    while (strncmp(at, "end ", 4))
        if (!take_line(&at, m)) return "a line of it is not understood";
    snprintf(end, sizeof end, "end %016llx\n", (unsigned long long)checksum(text, (size_t)(at - text)));
    return strcmp(at, end) ? "its checksum is wrong" : NULL;
}

ncclResult_t kl_tuning_measured_parse(const char *text, size_t bytes, const char *machine, struct kl_tuning_measured *m,
                                      const char **why)
{
    struct kl_tuning_measured read = {0};
    char *copy = memchr(text, 0, bytes) || bytes >= KL_MEASURED_TEXT ? NULL : malloc(bytes + 1);

    *why = "it is no text of a tuning";
    if (!copy) return ncclInvalidUsage;
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    *why = parse(copy, machine, &read);
    free(copy);
    if (*why) return ncclInvalidUsage;
    *m = read;
    return ncclSuccess;
}
