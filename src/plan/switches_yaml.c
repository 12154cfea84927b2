/* SPDX-License-Identifier: Apache-2.0 */
/**
 * switches_yaml.c - the YAML of Slurm's topology.yaml and of topograph's models, line by line: items "- switch: NAME", "- block: NAME",
 * "- name: NAME" with the keys nodes, children, switches and capacity_blocks. A list is a text as in n[1-4], [a, b], or items below.
 */
#include "base/error.h"
#include "plan/switches_make.h"

#include <string.h>

enum { KEY_BYTES = 32 };

struct reader {
    struct kl_switches_made *made;
    const char *item; /* NULL: none */
    size_t item_column;
    int list; /* of the key above: 1 hosts, 0 switches, -1 none */
    size_t list_column;
};

/* Blanks, quotes and a comment's text go. */
static char *trimmed(char *text)
{
    size_t n;

    for (char *at = text; *at; at++)
        if (*at == '#' && (at == text || strchr(" \t", at[-1]))) *at = 0;
    text += strspn(text, " \t\"'");
    for (n = strlen(text); n && strchr(" \t\r\"'", text[n - 1]);) text[--n] = 0;
    return text;
}

static int list_of(const char *key)
{
    static const char *const hosts[] = {"nodes", "hosts"}, *const below[] = {"children", "switches", "capacity_blocks"};

    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (!strcmp(key, hosts[i])) return 1;
    for (size_t i = 0; i < sizeof below / sizeof below[0]; i++)
        if (!strcmp(key, below[i])) return 0;
    return -1;
}

/* "[a, b]", "n[1-4]", "a" */
static ncclResult_t say_list(struct reader *r, char *value, int line)
{
    const size_t n = strlen(value);

    if (*value != '[') return kl_switches_say_list(r->made, r->item, value, r->list, line);
    if (value[n - 1] != ']')
        return KL_FAIL(ncclInvalidUsage, "%s:%d: a list over several lines; write it in one", r->made->file, line);
    value[n - 1] = 0;
    char *rest = value + 1, *word;

    while ((word = strsep(&rest, ","))) {
        word = trimmed(word);
        if (*word) KL_TRY(kl_switches_say_list(r->made, r->item, word, r->list, line));
    }
    return ncclSuccess;
}

static ncclResult_t begin_item(struct reader *r, const char *name, size_t column, int line)
{
    r->item = kl_switches_keep(r->made, name);
    r->item_column = column;
    r->list = -1;
    if (!r->item) return KL_NOMEM("switches");
    return kl_switches_say(r->made, (struct kl_switch_said){.name = name, .line = line});
}

static ncclResult_t read_line(struct reader *r, char *text, int line)
{
    size_t column = strspn(text, " ");
    char *at = text + column, *colon;
    const bool dash = *at == '-' && (at[1] == ' ' || !at[1]);

    if (dash) at += 1 + strspn(at + 1, " ");
    at = trimmed(at);
    if (!*at || !strcmp(at, "---")) return ncclSuccess;
    colon = strchr(at, ':');
    if (dash && (!colon || (colon[1] && colon[1] != ' ')))
        return r->item && r->list >= 0 && column >= r->list_column ? say_list(r, at, line) : ncclSuccess;
    if (!colon) return KL_FAIL(ncclInvalidUsage, "%s:%d: \"%.64s\" is no line of YAML here", r->made->file, line, at);
    *colon = 0;
    char *value = trimmed(colon + 1);

    if (dash) column = (size_t)(at - text);
    if (dash && *value && (!strcmp(at, "switch") || !strcmp(at, "block") || !strcmp(at, "name")))
        return begin_item(r, value, column, line);
    if (r->item && column < r->item_column) r->item = NULL;
    r->list = r->item ? list_of(at) : -1;
    r->list_column = column;
    return r->list >= 0 && *value ? say_list(r, value, line) : ncclSuccess;
}

ncclResult_t kl_switches_read_yaml(struct kl_switches_made *m, char *text)
{
    struct reader r = {.made = m, .list = -1};
    char *rest = text, *one;

    for (int line = 1; (one = strsep(&rest, "\n")); line++) KL_TRY(read_line(&r, one, line));
    return ncclSuccess;
}
