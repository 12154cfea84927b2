/* SPDX-License-Identifier: Apache-2.0 */
/** switches_link.c - declarations become a tree: one entry for each name, parents found by name, hosts tree by tree. */
#include "base/error.h"
#include "plan/host_list.h"
#include "plan/switches.h"
#include "plan/switches_make.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *x, const void *y)
{
    const struct kl_switch_said *a = x, *b = y;
    const int order = kl_host_compare(a->name, b->name);

    if (a->host != b->host) return a->host ? 1 : -1;
    return order ? order : (a->line > b->line) - (a->line < b->line);
}

static int find(const struct kl_switches *s, const char *name)
{
    int low = 0, high = s->nsw;

    while (low < high) {
        const int middle = low + (high - low) / 2, order = kl_host_compare(s->sw[middle].name, name);

        if (!order) return middle;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return -1;
}

static const char *word_of(const struct kl_switch_said *s)
{
    return s->host ? "host" : "switch";
}

/* Declarations of one name, side by side: one parent at most, and a switch has a line of its own. */
static ncclResult_t join(const struct kl_switches_made *m, int first, int end, const char **parent)
{
    bool made = m->said[first].host;

    *parent = NULL;
    for (int i = first; i < end; i++) {
        const struct kl_switch_said *said = &m->said[i];

        made |= !said->mention;
        if (!said->parent) continue;
        if (*parent && strcmp(*parent, said->parent))
            return KL_FAIL(ncclInvalidUsage, "%s:%d: %s %s is below %s, and below %s; a tree has it once", m->file,
                           said->line, word_of(said), said->name, *parent, said->parent);
        *parent = said->parent;
    }
    if (!made)
        return KL_FAIL(ncclInvalidUsage, "%s:%d: switch %s has no line of its own", m->file, m->said[first].line,
                       m->said[first].name);
    return ncclSuccess;
}

static int end_of_name(const struct kl_switches_made *m, int first)
{
    int end = first + 1;

    while (end < m->nsaid && m->said[end].host == m->said[first].host &&
           !strcmp(m->said[end].name, m->said[first].name))
        end++;
    return end;
}

/* Switches first, then hosts, each sorted by name. */
static ncclResult_t make_nodes(struct kl_switches *s)
{
    const struct kl_switches_made *m = s->made;
    const char *parent;

    for (int i = 0, end; i < m->nsaid; i = end) {
        end = end_of_name(m, i);
        KL_TRY(join(m, i, end, &parent));
        if (!m->said[i].host) s->sw[s->nsw++] = (struct kl_switch){.name = m->said[i].name, .parent = -1};
    }
    for (int i = 0, end, at = 0; i < m->nsaid; i = end) {
        int *to;

        end = end_of_name(m, i);
        KL_TRY(join(m, i, end, &parent));
        if (m->said[i].host) {
            s->host[s->nhosts] = (struct kl_switch_host){m->said[i].name, -1, 0};
            to = &s->host[s->nhosts++].parent;
        } else {
            to = &s->sw[at++].parent;
        }
        *to = parent ? find(s, parent) : -1;
        if (parent && *to < 0)
            return KL_FAIL(ncclInvalidUsage, "%s:%d: switch %s has no line of its own", m->file, m->said[i].line,
                           parent);
    }
    return ncclSuccess;
}

static ncclResult_t count_levels(struct kl_switches *s)
{
    for (int i = 0; i < s->nsw; i++) {
        int levels = 0;

        for (int at = i; at >= 0; at = s->sw[at].parent)
            if (++levels > KL_SWITCH_LEVELS)
                return KL_FAIL(ncclInvalidUsage, "%s: switch %s is below itself, or below more than %d others",
                               s->made->file, s->sw[i].name, KL_SWITCH_LEVELS);
        if (levels > s->levels) s->levels = levels;
    }
    return ncclSuccess;
}

/* ---- places ---- */

struct place {
    int host, n, path[KL_SWITCH_LEVELS]; /* switches from the top; by name, so numbers compare as names */
};

static int by_path(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    for (int i = 0; i < a->n && i < b->n; i++)
        if (a->path[i] != b->path[i]) return a->path[i] - b->path[i];
    if (a->n != b->n) return a->n - b->n;
    return a->host - b->host;
}

static struct place place_of(const struct kl_switches *s, int host)
{
    struct place p = {.host = host};

    for (int at = s->host[host].parent; at >= 0; at = s->sw[at].parent) p.n++;
    for (int at = s->host[host].parent, i = p.n; at >= 0; at = s->sw[at].parent) p.path[--i] = at;
    return p;
}

static ncclResult_t order(struct kl_switches *s)
{
    struct place *place = calloc((size_t)s->nhosts + 1, sizeof *place);

    if (!place) return KL_NOMEM("an order of hosts");
    for (int h = 0; h < s->nhosts; h++) place[h] = place_of(s, h);
    qsort(place, (size_t)s->nhosts, sizeof *place, by_path);
    for (int i = 0; i < s->nhosts; i++) {
        struct kl_switch_host *host = &s->host[place[i].host];

        /* a host without a switch is a pod of its own */
        if (!i || host->parent < 0 || host->parent != s->host[place[i - 1].host].parent) s->npods++;
        host->pod = s->npods - 1;
        if (host->parent >= 0) s->sw[host->parent].hosts++;
        s->by_place[i] = place[i].host;
    }
    free(place);
    return ncclSuccess;
}

ncclResult_t kl_switches_link(struct kl_switches *s)
{
    struct kl_switches_made *m = s->made;

    if (m->nsaid) qsort(m->said, (size_t)m->nsaid, sizeof *m->said, by_name);
    s->sw = calloc((size_t)m->nsaid + 1, sizeof *s->sw);
    s->host = calloc((size_t)m->nsaid + 1, sizeof *s->host);
    s->by_place = calloc((size_t)m->nsaid + 1, sizeof *s->by_place);
    if (!s->sw || !s->host || !s->by_place) return KL_NOMEM("switches");
    KL_TRY(make_nodes(s));
    KL_TRY(count_levels(s));
    if (!s->nhosts)
        return KL_FAIL(ncclInvalidUsage, "%s: no host is named; a leaf switch needs a list of its hosts", m->file);
    return order(s);
}
