/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/rankenv.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SET = 24 };

struct settings {
    const char *name[MAX_SET];
    char *line[MAX_SET]; /* "NAME=value"; NULL: the name is taken out */
    int count;
    bool no_memory;
};

/* NULL takes the variable out. */
static void set(struct settings *s, const char *name, const char *value)
{
    char *line = NULL;

    if (value && asprintf(&line, "%s=%s", name, value) < 0) s->no_memory = true, line = NULL;
    s->name[s->count] = name;
    s->line[s->count++] = line;
}

static void set_int(struct settings *s, const char *name, int value)
{
    char text[16];

    snprintf(text, sizeof text, "%d", value);
    set(s, name, text);
}

static void describe(struct settings *s, const struct kl_rank_env *r)
{
    set_int(s, "KOLO_RANK", r->rank);
    set_int(s, "KOLO_SIZE", r->size);
    set_int(s, "KOLO_LOCAL_RANK", r->local_rank);
    set_int(s, "KOLO_LOCAL_SIZE", r->local_size);
    set(s, "KOLO_COMM_ID", r->comm_id);
    set_int(s, "RANK", r->rank);
    set_int(s, "WORLD_SIZE", r->size);
    set_int(s, "LOCAL_RANK", r->local_rank);
    set_int(s, "LOCAL_WORLD_SIZE", r->local_size);
    set(s, "MASTER_ADDR", r->master_addr);
    set_int(s, "MASTER_PORT", r->master_port);
    if (r->host_id) set(s, "NCCL_HOSTID", r->host_id);
    if (r->topo_file) set(s, "NCCL_TOPO_FILE", r->topo_file);
    if (r->host_devices) set_int(s, "KOLO_HOST_DEVICES", r->host_devices);
    if (r->mnnvl) set_int(s, "KOLO_MNNVL", r->mnnvl);
    if (r->link_mbps) set_int(s, "KOLO_NET_SPEED", r->link_mbps);
}

static bool replaced(const struct settings *s, const char *line)
{
    size_t length = strcspn(line, "=");

    for (int i = 0; i < s->count; i++)
        if (strlen(s->name[i]) == length && !strncmp(s->name[i], line, length)) return true;
    return false;
}

char **kl_rank_environ(char *const *inherited, const struct kl_rank_env *rank)
{
    struct settings s = {0};
    size_t n = 0, used = 0;

    describe(&s, rank);
    while (inherited[n]) n++;
    char **env = calloc(n + MAX_SET + 1, sizeof *env);
    if (!env) s.no_memory = true;

    for (size_t i = 0; env && i < n; i++) {
        if (replaced(&s, inherited[i])) continue;
        env[used] = strdup(inherited[i]);
        if (!env[used++]) s.no_memory = true;
    }
    for (int i = 0; i < s.count; i++) {
        if (env && s.line[i])
            env[used++] = s.line[i];
        else
            free(s.line[i]);
    }
    if (!s.no_memory) return env;
    for (size_t i = 0; env && i < used; i++) free(env[i]);
    free(env);
    return NULL;
}

void kl_rank_environ_free(char **env)
{
    for (char **e = env; e && *e; e++) free(*e);
    free(env);
}
