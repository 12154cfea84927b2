/* SPDX-License-Identifier: Apache-2.0 */
/** ras_text.c - the report of NCCL's RAS service as text (ncclras; STATUS): its table of groups, its errors and warnings. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, GROUPS = 4096 };

/* The place in the report. */
struct report {
    struct kl_record *r;
    int file, group;      /* group: of the section; -1 none */
    bool dead, errors;    /* the section is about dead processes, about errors of ranks */
    const char *function; /* of the counts; "" none */
    int64_t most;         /* calls of the ranks that are not named; -1 unknown */
    int size[GROUPS];     /* of groups of the table: ranks of each communicator */
};

/* ---- members ---- */

static ncclResult_t member_of(struct report *p, int rank, const char *line, int *member)
{
    const char *managed = strstr(line, "managed by process ");
    char host[256] = "", key[320];
    int pid = -1, proc;

    *member = kl_record_member_of(p->r, p->group, rank, p->file);
    if (*member < 0) KL_TRY(kl_record_new_member(p->r, p->group, rank, p->file, member));
    if (!managed || sscanf(managed, "managed by process %d on node %255s", &pid, host) != 2) return ncclSuccess;
    snprintf(key, sizeof key, "%s %d", host, pid);
    KL_TRY(kl_record_proc_of(p->r, key, &proc));
    p->r->proc[proc].host = kl_record_name(p->r, host);
    p->r->proc[proc].pid = pid;
    p->r->member[*member].proc = proc;
    return ncclSuccess;
}

static bool has_count(const struct kl_record *r, const struct kl_record_member *m, const char *function)
{
    for (int i = m->first_count; i < m->first_count + m->ncounts; i++)
        if (r->count[i].function == function) return true;
    return false;
}

/* Ranks that the report does not name have the number that it told for many. */
static ncclResult_t end_counts(struct report *p)
{
    const int size = p->group >= 0 ? p->r->group[p->group].size : 0;

    for (int rank = 0; rank < size && rank < 1 << 16 && *p->function && p->most >= 0; rank++) {
        int member;

        KL_TRY(member_of(p, rank, "", &member));
        if (has_count(p->r, &p->r->member[member], p->function)) continue;
        if (p->r->member[member].ncounts) continue; /* counts of a member lie together */
        KL_TRY(kl_record_new_count(p->r, member, p->function, p->most));
    }
    p->function = "";
    p->most = -1;
    return ncclSuccess;
}

/* ---- lines ---- */

/* "    0         1         2         8        16        16   RUNNING  MISMATCH" */
static void read_row(struct report *p, const char *line)
{
    int group, comms, nodes, ranks;
    char per_node[16], status[16];

    if (sscanf(line, "%d %d %d %15s %d %*d %15s", &group, &comms, &nodes, per_node, &ranks, status) != 6) return;
    if (group >= 0 && group < GROUPS && ranks > 0 && ranks < 1 << 20) p->size[group] = ranks;
}

/* "#0-1 (00a1b2c3d4e5f607) MISMATCH" */
static ncclResult_t begin_section(struct report *p, const char *line)
{
    char id[64], hash[20];
    int group, comm;

    KL_TRY(end_counts(p));
    if (sscanf(line, "#%d-%d (%17[0-9a-fA-F])", &group, &comm, hash) != 3) return ncclSuccess;
    p->dead = false;
    p->errors = strstr(line, "ERROR") != NULL;
    snprintf(id, sizeof id, "0x%s", hash + strspn(hash, "0"));
    KL_TRY(kl_record_group_of(p->r, id, "", &p->group));
    if (group >= 0 && group < GROUPS && p->size[group]) p->r->group[p->group].size = p->size[group];
    return ncclSuccess;
}

static ncclResult_t add_count(struct report *p, int member, int64_t n)
{
    if (p->r->member[member].ncounts && p->r->member[member].first_count + p->r->member[member].ncounts != p->r->ncount)
        return ncclSuccess;
    return kl_record_new_count(p->r, member, *p->function ? p->function : "operation", n);
}

/* "  Rank 3 has launched up to operation 17 -- GPU 3 managed by process 812 on node h1" */
static ncclResult_t read_rank(struct report *p, const char *line)
{
    char *rest;
    const long rank = strtol(line + strlen("Rank "), &rest, 10);
    long long n = 0;
    int member;

    if (p->group < 0 || rank < 0 || rank > 1 << 20) return ncclSuccess;
    KL_TRY(member_of(p, (int)rank, line, &member));
    struct kl_record_member *m = &p->r->member[member];

    if (sscanf(rest, " has launched up to operation %lld", &n) == 1) return add_count(p, member, n);
    if (strstr(rest, "has not launched any operations")) return add_count(p, member, 0);
    if (strstr(rest, "has status INIT")) m->state = KL_MEMBER_INIT;
    if (strstr(rest, "has status ABORT")) m->state = KL_MEMBER_ABORTED;
    if (strstr(rest, "has status FINALIZE")) m->state = KL_MEMBER_ENDS;
    if (p->errors) {
        const char *reported = strstr(rest, " reported ");

        m->code = ncclInternalError;
        m->failure =
            kl_record_name_n(p->r, reported ? reported + 10 : "", reported ? strcspn(reported + 10, "-\n") : 0);
    }
    if (!strncmp(rest, " -- ", 4) && !p->errors) m->state = KL_MEMBER_SILENT; /* of INCOMPLETE */
    return ncclSuccess;
}

/* "  Process 812 on node h1 managing GPU 3": its ranks are not named. */
static ncclResult_t read_process(struct report *p, const char *line)
{
    char host[256], key[320];
    int pid, group, member, proc;

    if (sscanf(line, "Process %d on node %255s", &pid, host) != 2) return ncclSuccess;
    KL_TRY(kl_record_group_of(p->r, "", "", &group));
    snprintf(key, sizeof key, "%s %d", host, pid);
    KL_TRY(kl_record_proc_of(p->r, key, &proc));
    p->r->proc[proc].host = kl_record_name(p->r, host);
    p->r->proc[proc].pid = pid;
    KL_TRY(kl_record_new_member(p->r, group, pid, p->file, &member));
    p->r->member[member].proc = proc;
    p->r->member[member].state = p->dead ? KL_MEMBER_DEAD : KL_MEMBER_SILENT;
    return ncclSuccess;
}

static void read_counts(struct report *p, const char *line)
{
    const char *name = strstr(line, "ranks have different ");
    char function[32] = "operation";
    long long n;

    if (name && sscanf(name, "ranks have different %31s operation counts", function) == 1 &&
        strstr(line, "operation counts"))
        p->function = kl_record_name(p->r, function);
    if (sscanf(line, "%*d ranks have launched up to operation %lld", &n) == 1) p->most = n;
    if (p->most >= 0 && !*p->function) p->function = kl_record_name(p->r, "operation");
}

static ncclResult_t read_line(struct report *p, const char *line)
{
    long long n;

    line += strspn(line, " ");
    if (*line == '#') return begin_section(p, line);
    if (!strncmp(line, "DEAD", 4)) p->dead = true;
    if (!strncmp(line, "INCOMPLETE", 10)) p->dead = false;
    if (!strncmp(line, "NCCL version ", 13))
        p->r->file[p->file].version = kl_record_name_n(p->r, line + 13, strcspn(line + 13, " \n"));
    if (!strncmp(line, "Rank ", 5)) return read_rank(p, line);
    if (!strncmp(line, "Process ", 8)) return read_process(p, line);
    if (strstr(line, "different ") && *p->function) KL_TRY(end_counts(p));
    if (sscanf(line, "%*d ranks have launched up to operation %lld", &n) == 1 || strstr(line, "different "))
        read_counts(p, line);
    read_row(p, line);
    return ncclSuccess;
}

ncclResult_t kl_record_add_ras_text(struct kl_record *r, int file, const char *text, size_t bytes)
{
    struct report *p = calloc(1, sizeof *p);
    ncclResult_t rc = p ? ncclSuccess : KL_NOMEM("a report");

    if (p) *p = (struct report){.r = r, .file = file, .group = -1, .function = "", .most = -1};
    for (size_t at = 0; at < bytes && !rc;) {
        const char *stop = memchr(text + at, '\n', bytes - at);
        const size_t n = stop ? (size_t)(stop - text) - at : bytes - at;
        char line[LINE];

        snprintf(line, sizeof line, "%.*s", (int)(n < LINE ? n : LINE - 1), text + at);
        rc = read_line(p, line);
        at += n + (stop != NULL);
    }
    if (!rc) rc = end_counts(p);
    free(p);
    return rc;
}
