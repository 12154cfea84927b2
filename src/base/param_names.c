/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param_names.h"

#include "base/param_report.h"

#include <string.h>

enum {
    PREFIX = 5,      /* "NCCL_", "KOLO_" */
    LONGEST = 64,    /* characters compared; no known name is longer */
    MAX_MISTAKES = 3 /* for long names; short ones allow a third of their length */
};

const struct kl_param *kl_param_find(const struct kl_param_registry *registry, const char *name)
{
    for (const struct kl_param_set *const *set = registry->sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++)
            if (!strcmp((*set)->params[i].name, name)) return &(*set)->params[i];
    return NULL;
}

static bool matches(const char *pattern, const char *name)
{
    size_t length = strlen(pattern);

    if (length && pattern[length - 1] == '*') return !strncmp(pattern, name, length - 1);
    return !strcmp(pattern, name);
}

const struct kl_param_name *kl_param_find_other(const struct kl_param_registry *registry, const char *name)
{
    for (const struct kl_param_name *other = registry->others; other->name; other++)
        if (matches(other->name, name)) return other;
    return NULL;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Edits that turn `a` into `b`; texts longer than LONGEST get the largest distance. */
static int distance(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b);
    int d[LONGEST + 1][LONGEST + 1];

    if (na > LONGEST || nb > LONGEST) return LONGEST;
    for (size_t i = 0; i <= na; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= nb; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= na; i++)
        for (size_t j = 1; j <= nb; j++) {
            d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1);
            d[i][j] = least(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

/* The best candidate so far. */
struct nearest {
    const char *asked, *name;
    int mistakes; /* a candidate needs fewer mistakes than this */
};

/* NCCL_ for KOLO_ or the reverse counts as one mistake, not four. */
static void consider(struct nearest *n, const char *candidate)
{
    if (strlen(candidate) <= PREFIX || strchr(candidate, '*')) return;
    int mistakes = distance(n->asked + PREFIX, candidate + PREFIX) + (strncmp(n->asked, candidate, PREFIX) != 0);
    if (mistakes >= n->mistakes) return;
    n->mistakes = mistakes;
    n->name = candidate;
}

const char *kl_param_nearest(const struct kl_param_registry *registry, const char *name)
{
    size_t length = strlen(name);
    struct nearest n = {.asked = name};

    if (length <= PREFIX) return NULL;
    n.mistakes = 1 + least(MAX_MISTAKES, 1 + (int)(length - PREFIX) / 3);
    for (const struct kl_param_set *const *set = registry->sets; *set; set++)
        for (size_t i = 0; i < (*set)->nparams; i++) consider(&n, (*set)->params[i].name);
    for (const struct kl_param_name *other = registry->others; other->name; other++) consider(&n, other->name);
    return n.name;
}

static void check_name(void *ctx, const struct kl_setting *setting)
{
    const struct kl_param_registry *registry = ctx;

    if (kl_param_find(registry, setting->name) || kl_param_find_other(registry, setting->name)) return;
    kl_param_report_unknown(setting, kl_param_nearest(registry, setting->name));
}

void kl_param_check_names(const struct kl_param_registry *registry, const struct kl_settings *settings)
{
    struct kl_param_registry copy = *registry; /* the visitor's context is not const */

    kl_settings_each(settings, check_name, &copy);
}
