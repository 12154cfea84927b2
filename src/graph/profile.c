/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/profile.h"

#include "topo/types.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- known processors ---- */

/* EPYC (Zen 4), and Xeon (Sapphire Rapids), as measured in virtual machines: docs/performance.md. */
static const struct kl_profile amd = {.line_ns = 60,
                                      .cma_ns = 1500,
                                      .cma_kib_ns = 130,
                                      .huge_kib_ns = 55,
                                      .copy_kib_ns = 30,
                                      .out_kib_ns = 90,
                                      .nt_kib_ns = 100,
                                      .own_kib = 1024,
                                      .last_kib = 32768,
                                      .cpus = 1},
                               intel = {.line_ns = 75,
                                        .cma_ns = 800,
                                        .cma_kib_ns = 55,
                                        .huge_kib_ns = 45,
                                        .copy_kib_ns = 60,
                                        .out_kib_ns = 140,
                                        .nt_kib_ns = 110,
                                        .own_kib = 2048,
                                        .last_kib = 32768,
                                        .cpus = 1};

struct kl_profile kl_profile_known(int cpu_vendor)
{
    return cpu_vendor == KL_VENDOR_INTEL ? intel : amd;
}

/* ---- words ---- */

static const struct {
    const char *name;
    size_t at;
} words[] = {
    {"line", offsetof(struct kl_profile, line_ns)},         {"cma", offsetof(struct kl_profile, cma_ns)},
    {"cma_kib", offsetof(struct kl_profile, cma_kib_ns)},   {"huge_kib", offsetof(struct kl_profile, huge_kib_ns)},
    {"copy_kib", offsetof(struct kl_profile, copy_kib_ns)}, {"out_kib", offsetof(struct kl_profile, out_kib_ns)},
    {"nt_kib", offsetof(struct kl_profile, nt_kib_ns)},     {"own", offsetof(struct kl_profile, own_kib)},
    {"last", offsetof(struct kl_profile, last_kib)},        {"cpus", offsetof(struct kl_profile, cpus)},
    {"huge", offsetof(struct kl_profile, huge_pages)},
};
enum { WORDS = sizeof words / sizeof words[0] };

static uint32_t *field(struct kl_profile *p, int word)
{
    return (uint32_t *)(void *)((char *)p + words[word].at);
}

static uint32_t value(const struct kl_profile *p, int word)
{
    return *(const uint32_t *)(const void *)((const char *)p + words[word].at);
}

void kl_profile_complete(struct kl_profile *p, const struct kl_profile *known)
{
    for (int w = 0; w < WORDS; w++)
        if (!value(p, w)) *field(p, w) = value(known, w);
}

static int find(const char *name, size_t n)
{
    for (int w = 0; w < WORDS; w++)
        if (strlen(words[w].name) == n && !strncmp(words[w].name, name, n)) return w;
    return -1;
}

/* One word; *end is behind it. */
static bool parse_one(struct kl_profile *p, const char *text, const char **end)
{
    const size_t name = strcspn(text, "=");
    const int w = find(text, name);
    char *behind;

    if (w < 0 || text[name] != '=' || text[name + 1] < '0' || text[name + 1] > '9') return false;
    const unsigned long number = strtoul(text + name + 1, &behind, 10);
    if (number > INT32_MAX || (*behind && *behind != ',')) return false;
    *field(p, w) = (uint32_t)number;
    *end = behind + (*behind == ',');
    return true;
}

ncclResult_t kl_profile_parse(struct kl_profile *p, const char *text)
{
    struct kl_profile parsed = *p;

    for (const char *at = text; *at;)
        if (!parse_one(&parsed, at, &at))
            return KL_FAIL(ncclInvalidArgument,
                           "KOLO_PROFILE: \"%s\" is not NAME=NUMBER,...; names are line, cma, cma_kib, huge_kib, "
                           "copy_kib, out_kib, nt_kib (ns), own, last (KiB), cpus, huge",
                           at);
    if (*text) parsed.source = KL_PROFILE_GIVEN;
    *p = parsed;
    return ncclSuccess;
}

void kl_profile_text(const struct kl_profile *p, struct kl_text *text)
{
    static const char *const sources[] = {"a known processor", "measured", "KOLO_PROFILE"};

    for (int w = 0; w < WORDS; w++) kl_text_add(text, "%s%s=%u", w ? "," : "", words[w].name, value(p, w));
    kl_text_add(text, " (%s)", p->source <= KL_PROFILE_GIVEN ? sources[p->source] : "?");
}
