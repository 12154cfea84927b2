/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/switches_make.h"

#include "base/error.h"
#include "plan/host_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *list, int n, int *max, size_t size)
{
    if (n < *max) return list;
    void *more = realloc(list, (size_t)(*max ? 2 * *max : 64) * size);

    if (more) *max = *max ? 2 * *max : 64;
    return more;
}

const char *kl_switches_keep(struct kl_switches_made *m, const char *text)
{
    char **list = grown(m->text, m->ntext, &m->maxtext, sizeof *m->text);

    if (!list) return NULL;
    m->text = list;
    m->text[m->ntext] = strdup(text);
    return m->text[m->ntext] ? m->text[m->ntext++] : NULL;
}

ncclResult_t kl_switches_say(struct kl_switches_made *m, struct kl_switch_said said)
{
    struct kl_switch_said *list = grown(m->said, m->nsaid, &m->maxsaid, sizeof *m->said);

    if (list) m->said = list;
    said.name = kl_switches_keep(m, said.name);
    if (!list || !said.name) return KL_NOMEM("switches");
    m->said[m->nsaid++] = said;
    return ncclSuccess;
}

struct children {
    struct kl_switches_made *made;
    const char *parent;
    bool host;
    int line;
};

static ncclResult_t say_child(void *ctx, const char *name)
{
    const struct children *c = ctx;

    return kl_switches_say(
        c->made, (struct kl_switch_said){
                     .name = name, .parent = c->parent, .line = c->line, .host = c->host, .mention = !c->host});
}

ncclResult_t kl_switches_say_list(struct kl_switches_made *m, const char *parent, const char *list, bool host, int line)
{
    struct children c = {m, parent, host, line};
    char place[512];

    snprintf(place, sizeof place, "%s:%d", m->file, line);
    return kl_host_list(place, list, say_child, &c);
}
