/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/record/trace_nodes.h"

#include "base/error.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the file ---- */

/* The last number in a file's name: "et.3.json", "trace_rank_3". */
static int rank_of_name(const char *name)
{
    const char *at = name + strlen(name);

    while (at > name && at[-1] != '/' && !isdigit((unsigned char)at[-1])) at--;
    const char *end = at;

    while (at > name && isdigit((unsigned char)at[-1])) at--;
    return at < end && end - at < 8 ? (int)strtol(at, NULL, 10) : -1;
}

void kl_trace_nodes_begin(struct kl_trace_nodes *t, int64_t rank)
{
    struct kl_record_file *f = &t->r->file[t->file];

    if (rank < 0) rank = rank_of_name(f->name);
    f->rank = rank >= 0 && rank < KL_TRACE_RANKS ? (int)rank : t->file;
    f->rank_guessed = rank < 0;
    f->numbers = KL_NUMBERS_OF_FILE;
}

ncclResult_t kl_trace_nodes_end(struct kl_trace_nodes *t, const char *names)
{
    if (t->r->ncall) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s: an execution trace without communication: it has no node %s",
                   t->r->file[t->file].name, names);
}

/* ---- groups ---- */

ncclResult_t kl_trace_nodes_groups(struct kl_trace_nodes *t, const char *text)
{
    json_t *list = json_loads(text, 0, NULL), *o; /* other texts say nothing about groups */
    size_t i;

    if (!t->groups) t->groups = json_object();
    json_array_foreach(list, i, o)
    {
        const char *name = kl_json_get_text(o, "pg_name");

        if (*name && json_object_set(t->groups, name, o)) {
            json_decref(list);
            return KL_NOMEM("groups of a trace");
        }
    }
    json_decref(list);
    return ncclSuccess;
}

/* "0,1,2" of a list, or of a dictionary whose keys are ranks. "" if there is none. */
static char *listed_ranks(const json_t *o)
{
    const json_t *ranks = json_object_get(o, "ranks");
    char *text = json_is_array(ranks) || json_is_object(ranks) ? json_dumps(ranks, JSON_COMPACT) : strdup("");
    char *to = text;

    if (!text) return NULL;
    if (json_is_object(ranks)) { /* {"0":0,"8":1} */
        for (const char *from = text; *from; from++) {
            if (*from == ':') from += strcspn(from, ",}");
            if (isdigit((unsigned char)*from) || *from == ',') *to++ = *from;
            if (!*from) break;
        }
    } else {
        for (const char *from = text; *from; from++)
            if (isdigit((unsigned char)*from) || *from == ',') *to++ = *from;
    }
    *to = 0;
    return text;
}

/* "0,1,2" up to `size`: the group of the job, whose ranks PyTorch leaves out. */
static char *first_ranks(int64_t size)
{
    char *text = malloc((size_t)size * 8 + 1);
    size_t n = 0;

    for (int64_t i = 0; text && i < size; i++) n += (size_t)sprintf(text + n, "%s%d", i ? "," : "", (int)i);
    return text;
}

static bool is_job(const json_t *o, const char *name)
{
    return !*name || !strcmp(kl_json_get_text(o, "pg_desc"), "default_pg");
}

static ncclResult_t find_group(struct kl_trace_nodes *t, const char *name, int *group)
{
    const json_t *o = json_object_get(t->groups, name);
    const int64_t size = kl_json_get_int(o, "group_size", kl_json_get_int(o, "pg_size", -1));
    const bool sized = size > 0 && size <= KL_TRACE_RANKS;
    char *listed = listed_ranks(o);
    const int before = t->r->ngroup;

    if (listed && !*listed && sized && is_job(o, name)) {
        free(listed);
        listed = first_ranks(size);
    }
    if (!listed) return KL_NOMEM("the ranks of a group");
    ncclResult_t rc = kl_record_group_of(t->r, name, *listed || is_job(o, name) ? listed : "unknown", group);

    free(listed);
    if (rc || t->r->ngroup == before) return rc;
    t->r->group[*group].desc = kl_record_name(t->r, kl_json_get_text(o, "pg_desc"));
    if (sized) t->r->group[*group].size = (int)size;
    return rc;
}

/* ---- calls ---- */

static ncclResult_t find_member(struct kl_trace_nodes *t, const char *name, int *member)
{
    const int rank = t->r->file[t->file].rank;
    char key[32];
    int group;

    *member = kl_record_member_of_id(t->r, t->file, name);
    if (*member >= 0) return ncclSuccess;
    KL_TRY(find_group(t, name, &group));
    KL_TRY(kl_record_new_member(t->r, group, rank, t->file, member));
    snprintf(key, sizeof key, "rank %d", rank);
    KL_TRY(kl_record_proc_of(t->r, key, &t->r->member[*member].proc));
    t->r->proc[t->r->member[*member].proc].recorded = true;
    return ncclSuccess;
}

ncclResult_t kl_trace_nodes_call(struct kl_trace_nodes *t, const char *group, int *call)
{
    int member;

    KL_TRY(find_member(t, group, &member));
    KL_TRY(kl_record_new_call(t->r, member, call));
    t->r->call[*call].state = KL_CALL_ENDED;
    return ncclSuccess;
}

void kl_trace_nodes_number(struct kl_trace_nodes *t, struct kl_record_call *c)
{
    c->number = kl_record_next_number(t->r, c->member);
    t->r->member[c->member].called = c->number;
}

void kl_trace_nodes_lacks(struct kl_trace_nodes *t, struct kl_record_call *c, const char *attribute)
{
    char text[128];

    if (strstr(c->name, " without ")) return;
    snprintf(text, sizeof text, "%.60s without %.40s", c->name, attribute);
    c->name = kl_record_name(t->r, text);
}
