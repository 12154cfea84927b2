/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning.h"

#include "base/error.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A piece of text: no copy, no final zero. */
struct piece {
    const char *at;
    size_t length;
};

/* The piece before the next `separator`; moves `rest` behind it. */
static struct piece split(struct piece *rest, char separator)
{
    const char *end = memchr(rest->at, separator, rest->length);
    size_t length = end ? (size_t)(end - rest->at) : rest->length;
    struct piece p = {rest->at, length};

    rest->at += length + (end != NULL);
    rest->length -= length + (end != NULL);
    return p;
}

static int find(struct piece p, const char *const *names, int n)
{
    for (int i = 0; i < n; i++)
        if (strlen(names[i]) == p.length && !strncasecmp(names[i], p.at, p.length)) return i;
    return -1;
}

static void list_names(char *text, size_t size, const char *const *names, int n)
{
    size_t used = 0;

    for (int i = 0; i < n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "", names[i]);
}

/* Grammar tables: the names that may be listed. */
struct names {
    const char *what; /* the variable */
    const char *const *name;
    int n;
};

static ncclResult_t unknown(const struct names *names, const char *kind, struct piece p, const char *const *known,
                            int n)
{
    char list[256];

    list_names(list, sizeof list, known, n);
    return KL_FAIL(ncclInvalidUsage, "%s: no %s \"%.*s\"; known are %s", names->what, kind, (int)p.length, p.at, list);
}

/* `[^]name,name`: the names that are switched on. */
static ncclResult_t parse_list(const struct names *names, struct piece list, int on[KL_ALGOS])
{
    int listed = 1;

    if (list.length && list.at[0] == '^') {
        listed = 0;
        list.at++, list.length--;
    }
    for (int i = 0; i < names->n; i++) on[i] = !listed;
    while (list.length) {
        struct piece name = split(&list, ',');
        int i = find(name, names->name, names->n);

        if (!name.length) continue;
        if (i < 0) return unknown(names, "name", name, names->name, names->n);
        on[i] = listed;
    }
    return ncclSuccess;
}

/* One `[function:]list`. */
static ncclResult_t parse_entry(const struct names *names, struct piece entry, bool first, int on[KL_FUNCS][KL_ALGOS])
{
    bool has_func = memchr(entry.at, ':', entry.length) != NULL;
    int func = -1, row[KL_ALGOS] = {0};

    if (has_func) {
        struct piece name = split(&entry, ':');

        func = find(name, kl_func_name, KL_FUNCS);
        if (func < 0) return unknown(names, "function", name, kl_func_name, KL_FUNCS);
    } else if (!first) {
        return KL_FAIL(
            ncclInvalidUsage,
            "%s: \"%.*s\" must begin with a function, as in allreduce:%s; only the first entry may leave it out",
            names->what, (int)entry.length, entry.at, names->name[0]);
    }
    KL_TRY(parse_list(names, entry, row));
    for (int f = 0; f < KL_FUNCS; f++)
        if (func < 0 || f == func) memcpy(on[f], row, (size_t)names->n * sizeof row[0]);
    return ncclSuccess;
}

ncclResult_t kl_tuning_parse(const char *what, const char *text, const char *const *names, int nnames,
                             int on[KL_FUNCS][KL_ALGOS])
{
    const struct names table = {what, names, nnames};
    struct piece rest = {text, strlen(text)};
    int parsed[KL_FUNCS][KL_ALGOS];
    bool first = true;

    memcpy(parsed, on, sizeof parsed);
    while (rest.length) {
        struct piece entry = split(&rest, ';');

        if (!entry.length) continue;
        KL_TRY(parse_entry(&table, entry, first, parsed));
        first = false;
    }
    memcpy(on, parsed, sizeof parsed);
    return ncclSuccess;
}
