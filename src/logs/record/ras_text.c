/* SPDX-License-Identifier: Apache-2.0 */
/** ras_text.c - the report of NCCL's RAS service as text (ncclras; STATUS): its table of groups, its errors and warnings. */
#include "logs/record/make.h"

#include "base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, GROUPS = 4096, MOST_RANKS = 1 << 20 };

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

/* "812 on node h1": the participant with this process. */
static ncclResult_t proc_at(struct report *p, const char *text, int *proc, int *pid)
{
    char host[256], key[320];
    int64_t number;

    *proc = -1;
    if (!kl_scan_int(&text, &number) || number > INT32_MAX || !kl_scan_word(&text, " on node ") ||
        !kl_scan_token(&text, host, sizeof host))
        return ncclSuccess;
    *pid = (int)number;
    snprintf(key, sizeof key, "%s %d", host, *pid);
    KL_TRY(kl_record_proc_of(p->r, key, proc));
    p->r->proc[*proc].host = kl_record_name(p->r, host);
    p->r->proc[*proc].pid = *pid;
    return ncclSuccess;
}

static ncclResult_t member_of(struct report *p, int rank, const char *line, int *member)
{
    static const char managed[] = "managed by process ";
    const char *process = strstr(line, managed);
    int pid, proc;

    *member = kl_record_member_of(p->r, p->group, rank, p->file);
    if (*member < 0) KL_TRY(kl_record_new_member(p->r, p->group, rank, p->file, member));
    if (!process) return ncclSuccess;
    KL_TRY(proc_at(p, process + sizeof managed - 1, &proc, &pid));
    if (proc >= 0) p->r->member[*member].proc = proc;
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
    int64_t group, comms, nodes, ranks, all;
    char per_node[16], status[16];

    if (!kl_scan_int(&line, &group) || !kl_scan_int(&line, &comms) || !kl_scan_int(&line, &nodes) ||
        !kl_scan_token(&line, per_node, sizeof per_node) || !kl_scan_int(&line, &ranks) || !kl_scan_int(&line, &all) ||
        !kl_scan_token(&line, status, sizeof status))
        return;
    if (group < GROUPS && ranks > 0 && ranks < MOST_RANKS) p->size[group] = (int)ranks;
}

/* "#0-1 (00a1b2c3d4e5f607) MISMATCH" */
static ncclResult_t begin_section(struct report *p, const char *line)
{
    char id[64];
    int64_t group, comm;

    KL_TRY(end_counts(p));
    if (!kl_scan_word(&line, "#") || !kl_scan_int(&line, &group) || !kl_scan_word(&line, "-") ||
        !kl_scan_int(&line, &comm) || !kl_scan_word(&line, " ("))
        return ncclSuccess;
    const char *hash = line + strspn(line, "0");

    p->dead = false;
    p->errors = strstr(line, "ERROR") != NULL;
    snprintf(id, sizeof id, "0x%.*s", (int)strspn(hash, "0123456789abcdefABCDEF"), hash);
    KL_TRY(kl_record_group_of(p->r, id, "", &p->group));
    if (group < GROUPS && p->size[group]) p->r->group[p->group].size = p->size[group];
    return ncclSuccess;
}

static ncclResult_t add_count(struct report *p, int member, int64_t n)
{
    if (p->r->member[member].ncounts && p->r->member[member].first_count + p->r->member[member].ncounts != p->r->ncount)
        return ncclSuccess;
    return kl_record_new_count(p->r, member, *p->function ? p->function : "operation", n);
}

static const char UP_TO[] = " has launched up to operation ", MANY_UP_TO[] = " ranks have launched up to operation ";

static void read_state(struct report *p, const char *rest, struct kl_record_member *m)
{
    const char *reported = strstr(rest, " reported ");

    if (strstr(rest, "has status INIT")) m->state = KL_MEMBER_INIT;
    if (strstr(rest, "has status ABORT")) m->state = KL_MEMBER_ABORTED;
    if (strstr(rest, "has status FINALIZE")) m->state = KL_MEMBER_ENDS;
    if (!strncmp(rest, " -- ", 4) && !p->errors) m->state = KL_MEMBER_SILENT; /* of INCOMPLETE */
    if (!p->errors) return;
    m->code = ncclInternalError;
    m->failure = kl_record_name_n(p->r, reported ? reported + 10 : "", reported ? strcspn(reported + 10, "-\n") : 0);
}

/* "Rank 3 has launched up to operation 17 -- GPU 3 managed by process 812 on node h1" */
static ncclResult_t read_rank(struct report *p, const char *line)
{
    const char *rest = line + strlen("Rank ");
    int64_t rank, n;
    int member;

    if (p->group < 0 || !kl_scan_int(&rest, &rank) || rank >= MOST_RANKS) return ncclSuccess;
    KL_TRY(member_of(p, (int)rank, line, &member));
    if (strstr(rest, "has not launched any operations")) return add_count(p, member, 0);
    if (kl_scan_word(&rest, UP_TO) && kl_scan_int(&rest, &n)) return add_count(p, member, n);
    read_state(p, rest, &p->r->member[member]);
    return ncclSuccess;
}

/* "Process 812 on node h1 managing GPU 3": its ranks are not named. */
static ncclResult_t read_process(struct report *p, const char *line)
{
    int pid, group, member, proc;

    KL_TRY(proc_at(p, line + strlen("Process "), &proc, &pid));
    if (proc < 0) return ncclSuccess;
    KL_TRY(kl_record_group_of(p->r, "", "", &group));
    KL_TRY(kl_record_new_member(p->r, group, pid, p->file, &member));
    p->r->member[member].proc = proc;
    p->r->member[member].state = p->dead ? KL_MEMBER_DEAD : KL_MEMBER_SILENT;
    return ncclSuccess;
}

/* "Communicator ranks have different AllReduce operation counts" */
static ncclResult_t begin_counts(struct report *p, const char *function)
{
    char name[32];

    KL_TRY(end_counts(p));
    if (strstr(function, " operation counts") && kl_scan_token(&function, name, sizeof name))
        p->function = kl_record_name(p->r, name);
    return ncclSuccess;
}

/* "3 ranks have launched up to operation 11" */
static bool read_many(struct report *p, const char *line)
{
    int64_t ranks, n;

    if (!kl_scan_int(&line, &ranks) || !kl_scan_word(&line, MANY_UP_TO) || !kl_scan_int(&line, &n)) return false;
    p->most = n;
    if (!*p->function) p->function = kl_record_name(p->r, "operation");
    return true;
}

static ncclResult_t read_line(struct report *p, const char *line)
{
    static const char version[] = "NCCL version ", counts[] = "ranks have different ";
    const char *different = strstr(line, counts);

    line += strspn(line, " ");
    if (*line == '#') return begin_section(p, line);
    if (!strncmp(line, "DEAD", 4)) p->dead = true;
    if (!strncmp(line, "INCOMPLETE", 10)) p->dead = false;
    if (!strncmp(line, version, sizeof version - 1))
        p->r->file[p->file].version =
            kl_record_name_n(p->r, line + sizeof version - 1, strcspn(line + sizeof version - 1, " \n"));
    if (!strncmp(line, "Rank ", 5)) return read_rank(p, line);
    if (!strncmp(line, "Process ", 8)) return read_process(p, line);
    if (different) return begin_counts(p, different + sizeof counts - 1);
    if (!read_many(p, line)) read_row(p, line);
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
