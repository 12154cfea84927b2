/* SPDX-License-Identifier: Apache-2.0 */
/** switches_conf.c - lines of Slurm's topology.conf: SwitchName=s0 Nodes=n[1-4], SwitchName=s1 Switches=s0, BlockName=b0 Nodes=... */
#include "base/error.h"
#include "plan/switches_make.h"

#include <string.h>
#include <strings.h>

enum key { KEY_SWITCH, KEY_NODES, KEY_SWITCHES, KEY_OTHER, KEYS };

static const struct {
    const char *name;
    enum key key;
} keys[] = {{"SwitchName", KEY_SWITCH}, {"BlockName", KEY_SWITCH},       {"Nodes", KEY_NODES},
            {"Switches", KEY_SWITCHES}, {"LinkSpeed", KEY_OTHER},        {"BlockSizes", KEY_OTHER},
            {"BlockSize", KEY_OTHER},   {"PlanningBlockSize", KEY_OTHER}};

static int key_of(const char *word, size_t n)
{
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (strlen(keys[i].name) == n && !strncasecmp(keys[i].name, word, n)) return (int)keys[i].key;
    return -1;
}

static ncclResult_t read_line(struct kl_switches_made *m, char *text, int line)
{
    const char *value[KEYS] = {NULL};
    char *rest = text, *word;

    while ((word = strsep(&rest, " \t\r\n"))) {
        char *equals = strchr(word, '=');
        const int key = equals ? key_of(word, (size_t)(equals - word)) : -1;

        if (!*word) continue;
        if (key < 0)
            return KL_FAIL(ncclInvalidUsage,
                           "%s:%d: \"%.64s\" is not of topology.conf; expected SwitchName or BlockName, Nodes, "
                           "Switches, LinkSpeed or BlockSizes, each with = and a value",
                           m->file, line, word);
        value[key] = equals + 1;
    }
    if (value[KEY_SWITCH] && !*value[KEY_SWITCH])
        return KL_FAIL(ncclInvalidUsage, "%s:%d: a switch without a name", m->file, line);
    if (!value[KEY_SWITCH] && (value[KEY_NODES] || value[KEY_SWITCHES]))
        return KL_FAIL(ncclInvalidUsage, "%s:%d: a line without SwitchName or BlockName", m->file, line);
    if (!value[KEY_SWITCH]) return ncclSuccess;
    const char *name = kl_switches_keep(m, value[KEY_SWITCH]);

    if (!name) return KL_NOMEM("switches");
    KL_TRY(kl_switches_say(m, (struct kl_switch_said){.name = name, .line = line}));
    if (value[KEY_NODES]) KL_TRY(kl_switches_say_list(m, name, value[KEY_NODES], true, line));
    return value[KEY_SWITCHES] ? kl_switches_say_list(m, name, value[KEY_SWITCHES], false, line) : ncclSuccess;
}

/* A line that ends with a backslash goes on. */
static void join_line(char *at, int *line, char **end)
{
    char *stop = at + strcspn(at, "\n");

    while (*stop) {
        char *last = stop;

        while (last > at && strchr(" \t\r", last[-1])) last--;
        if (last == at || last[-1] != '\\') break;
        memset(last - 1, ' ', (size_t)(stop - last) + 2);
        ++*line;
        stop += strcspn(stop, "\n");
    }
    *end = *stop ? stop + 1 : stop;
    *stop = 0;
}

ncclResult_t kl_switches_read_conf(struct kl_switches_made *m, char *text)
{
    int line = 0;

    for (char *at = text, *end; *at; at = end) {
        const int first = ++line;

        join_line(at, &line, &end);
        at[strcspn(at, "#")] = 0;
        KL_TRY(read_line(m, at, first));
    }
    return ncclSuccess;
}
