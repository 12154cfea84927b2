/* SPDX-License-Identifier: Apache-2.0 */
/** found_ops.c - operations that ranks called differently, or that some did not call. */
#include "base/error.h"
#include "logs/findings_make.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An operation with its key: communicator, sequence number (of `op`), and occurrence. */
struct call {
    const struct kl_log_op *op;
    int64_t comm; /* a number that all ranks of a communicator share */
    int nth;
};

/* ---- which communicator ---- */

/* A communicator of a process by its pointer; `index`: where it appears first. */
struct seen {
    uint64_t pointer;
    int origin, nranks, index;
    int64_t comm;
};

static int by_pointer(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;

    if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
    if (a->pointer != b->pointer) return a->pointer < b->pointer ? -1 : 1;
    return a->index - b->index;
}

static int by_place(const void *x, const void *y)
{
    const struct seen *a = x, *b = y;

    if (a->origin != b->origin) return a->origin < b->origin ? -1 : 1;
    if (a->nranks != b->nranks) return a->nranks < b->nranks ? -1 : 1;
    return a->index - b->index;
}

/* The member of a process with this communicator, by lines of init; -1 without. */
static const struct kl_log_member *member_with(const struct kl_log *log, int origin, uint64_t pointer)
{
    for (int m = log->origin[origin].last; m >= 0; m = log->member[m].earlier)
        if (log->member[m].pointer == pointer && log->member[m].comm >= 0) return &log->member[m];
    return NULL;
}

/* Pointers differ between processes. Lines of init name the communicator; without them, communicators of one size are
 * matched in the order in which each process uses them. */
static void name_comms(const struct kl_log *log, struct seen *s, int n)
{
    int kept = 0, nth = 0;

    qsort(s, (size_t)n, sizeof *s, by_pointer);
    for (int i = 0; i < n; i++)
        if (!kept || s[i].origin != s[kept - 1].origin || s[i].pointer != s[kept - 1].pointer) s[kept++] = s[i];
    qsort(s, (size_t)kept, sizeof *s, by_place);
    for (int i = 0; i < kept; i++) {
        const struct kl_log_member *m = member_with(log, s[i].origin, s[i].pointer);
        bool same = i && s[i - 1].origin == s[i].origin && s[i - 1].nranks == s[i].nranks;

        nth = same ? nth + 1 : 0;
        s[i].comm = m ? m->comm : log->ncomm + (((int64_t)s[i].nranks + 1) << 32) + nth;
    }
    qsort(s, (size_t)kept, sizeof *s, by_pointer);
    for (int i = kept; i < n; i++) s[i] = (struct seen){.origin = log->norigin}; /* behind all others */
}

static int64_t comm_of(const struct seen *s, int n, const struct kl_log_op *o)
{
    const struct seen key = {.origin = o->origin, .pointer = o->pointer};

    for (int low = 0, high = n; low < high;) {
        int mid = low + (high - low) / 2;

        if (s[mid].origin == key.origin && s[mid].pointer == key.pointer) return s[mid].comm;
        if (s[mid].origin < key.origin || (s[mid].origin == key.origin && s[mid].pointer < key.pointer))
            low = mid + 1;
        else
            high = mid;
    }
    return 0;
}

/* ---- which rank ---- */

static int rank_of(const struct kl_log *log, const struct kl_log_op *o)
{
    const struct kl_log_member *m = o->from == KL_LOG_OP_COLL ? member_with(log, o->origin, o->pointer) : NULL;

    if (o->rank >= 0) return o->rank;
    return m && m->rank >= 0 ? m->rank : -1;
}

/* Do devices number the ranks: all on one host, one process each, none twice? */
static bool devices_are_ranks(const struct kl_log *log, const struct call *c, int n)
{
    for (int i = 0; i < n; i++) {
        const struct kl_log_origin *a = &log->origin[c[i].op->origin], *first = &log->origin[c[0].op->origin];

        if (a->dev < 0 || c[i].op->nranks < 1 || a->dev >= c[i].op->nranks || strcmp(a->host, first->host))
            return false;
    }
    return true;
}

static void add_rank(struct kl_text *t, const struct kl_log *log, const struct call *c, bool devices)
{
    char who[KL_LOG_ORIGIN_TEXT] = "";
    int rank = rank_of(log, c->op);

    if (rank < 0 && devices) rank = log->origin[c->op->origin].dev;
    if (rank >= 0)
        kl_text_add(t, "rank %d", rank);
    else
        kl_text_add(t, "%s", *kl_log_origin_text(log, c->op->origin, who) ? who : "another rank");
}

/* ---- which calls differ ---- */

static bool is_p2p(const char *name)
{
    return !strncmp(name, "Send", 4) || !strncmp(name, "Recv", 4) || !strncmp(name, "SEND", 4) ||
           !strncmp(name, "RECV", 4) || !strcmp(name, "COALESCED");
}

/* Operations whose sizes may differ from rank to rank. */
static bool is_uneven(const char *name)
{
    static const char *const uneven[] = {"ALLTOALL", "GATHER", "SCATTER", "ALLGATHER", "REDUCE_SCATTER"};

    for (size_t i = 0; i < sizeof uneven / sizeof uneven[0]; i++)
        if (!strncmp(name, uneven[i], strlen(uneven[i]))) return true;
    return false;
}

enum difference { ALIKE, NAME, COUNT, TYPE, OPERATION, ROOT };

static enum difference compare(const struct kl_log_op *a, const struct kl_log_op *b)
{
    if (strcmp(a->name, b->name) != 0) return NAME;
    if (a->count >= 0 && b->count >= 0 && a->count != b->count && !is_uneven(a->name)) return COUNT;
    if (a->type != b->type) return TYPE;
    if (a->op != b->op) return OPERATION;
    return a->root != b->root ? ROOT : ALIKE;
}

static void add_value(struct kl_text *t, const struct kl_log_op *o, enum difference d)
{
    if (d == NAME)
        kl_text_add(t, "%s", o->name);
    else if (d == COUNT)
        kl_text_add(t, "%s of %lld elements", o->name, (long long)o->count);
    else if (d == TYPE)
        kl_text_add(t, "%s of data type %d", o->name, o->type);
    else if (d == OPERATION)
        kl_text_add(t, "%s with operation %d", o->name, o->op);
    else
        kl_text_add(t, "%s with root %d", o->name, o->root);
}

static void add_difference(struct kl_finding_list *list, const struct call *common, const struct call *odd,
                           enum difference d, bool devices)
{
    char text[512];
    struct kl_text t = kl_text_in(text, sizeof text);
    const bool watchdog = odd->op->from == KL_LOG_OP_WATCHDOG;

    if (watchdog) {
        add_rank(&t, list->log, common, devices);
        kl_text_add(&t, " called ");
        add_value(&t, common->op, d);
        kl_text_add(&t, ", ");
        add_rank(&t, list->log, odd, devices);
        kl_text_add(&t, " ");
        add_value(&t, odd->op, d);
        kl_text_add(&t, " at the same sequence number %lld", (long long)odd->op->sequence);
    } else {
        add_rank(&t, list->log, odd, devices);
        kl_text_add(&t, " called ");
        add_value(&t, odd->op, d);
        kl_text_add(&t, " as opCount %llx where ", (unsigned long long)odd->op->sequence);
        add_rank(&t, list->log, common, devices);
        kl_text_add(&t, " called ");
        add_value(&t, common->op, d);
    }
    kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_CALLS_DIFFER,
                                                 .weight = KL_LOG_STOPS,
                                                 .at = odd->op->at,
                                                 .text = kl_finding_keep(list, text)});
}

/* The call that most ranks made; of several, the first. */
static int most_common(const struct call *c, int n)
{
    enum { LOOKED_AT = 64 };
    int best = 0, most = 0;

    for (int i = 0; i < n && i < LOOKED_AT; i++) {
        int same = 0;

        for (int k = 0; k < n; k++) same += compare(c[i].op, c[k].op) == ALIKE;
        if (same <= most) continue;
        most = same;
        best = i;
    }
    return best;
}

/* Calls of one operation, by the ranks that made it. More of them than the communicator has ranks belong to several, which the
 * log does not tell apart. */
static bool look_at_calls(struct kl_finding_list *list, const struct call *c, int n)
{
    if (c->op->nranks > 0 && n > c->op->nranks) return false;
    int common = n > 1 ? most_common(c, n) : 0;

    for (int i = 0; i < n; i++) {
        enum difference d = compare(c[common].op, c[i].op);

        if (d == ALIKE) continue;
        add_difference(list, &c[common], &c[i], d, devices_are_ranks(list->log, c, n));
        return true;
    }
    return false;
}

/* ---- all calls ---- */

static int compare_group(const struct call *a, const struct call *b)
{
    int d = strcmp(a->op->group, b->op->group);

    if (a->op->from != b->op->from) return a->op->from < b->op->from ? -1 : 1;
    if (a->comm != b->comm) return a->comm < b->comm ? -1 : 1;
    if (d) return d;
    return a->op->sequence < b->op->sequence ? -1 : a->op->sequence > b->op->sequence;
}

static int by_caller(const void *x, const void *y)
{
    const struct call *a = x, *b = y;
    int d = compare_group(a, b);

    if (d) return d;
    if (a->op->origin != b->op->origin) return a->op->origin < b->op->origin ? -1 : 1;
    if (a->op->rank != b->op->rank) return a->op->rank < b->op->rank ? -1 : 1;
    return (a->op > b->op) - (a->op < b->op);
}

static int by_nth(const void *x, const void *y)
{
    const struct call *a = x, *b = y;
    int d = compare_group(a, b);

    if (d) return d;
    if (a->nth != b->nth) return a->nth - b->nth;
    return (a->op > b->op) - (a->op < b->op);
}

/* One rank may print several lines with one number. */
static void count_calls(struct call *c, int n)
{
    qsort(c, (size_t)n, sizeof *c, by_caller);
    for (int i = 1; i < n; i++) {
        bool same = !compare_group(&c[i - 1], &c[i]) && c[i - 1].op->origin == c[i].op->origin &&
                    c[i - 1].op->rank == c[i].op->rank;

        c[i].nth = same ? c[i - 1].nth + 1 : 0;
    }
    qsort(c, (size_t)n, sizeof *c, by_nth);
}

static void find_differences(struct kl_finding_list *list, struct call *c, int n)
{
    count_calls(c, n);
    for (int i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && !compare_group(&c[i], &c[next]) && c[i].nth == c[next].nth;) next++;
        if (look_at_calls(list, &c[i], next - i)) return; /* later ones follow from it */
    }
}

/* ---- ranks that are behind ---- */

/* Do all watchdogs name the same process group? */
static bool is_one_group(const struct kl_log *log)
{
    for (int i = 1; i < log->nprogress; i++)
        if (strcmp(log->progress[i].group, log->progress[0].group) != 0) return false;
    return true;
}

/* A rank whose group has enqueued fewer operations than another waits for. */
static void find_behind(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    const struct kl_log_op *wait = NULL;
    const struct kl_log_progress *behind = NULL;

    if (kl_finding_has(list, KL_FOUND_CALLS_DIFFER, 0)) return;
    for (int i = 0; i < log->nop; i++)
        if (log->op[i].from == KL_LOG_OP_WATCHDOG && (!wait || log->op[i].sequence > wait->sequence))
            wait = &log->op[i];
    if (wait && !*wait->group && !is_one_group(log)) return;
    for (int i = 0; wait && i < log->nprogress; i++) {
        const struct kl_log_progress *p = &log->progress[i];

        if (p->rank == wait->rank || p->enqueued >= wait->sequence ||
            (*p->group && *wait->group && strcmp(p->group, wait->group)))
            continue;
        if (!behind || p->enqueued < behind->enqueued) behind = p;
    }
    if (!behind) return;
    char text[256];

    snprintf(text, sizeof text, "rank %d called only %lld operations; rank %d waits in %.60s, number %lld",
             behind->rank, (long long)behind->enqueued, wait->rank, wait->name, (long long)wait->sequence);
    kl_finding_add(list, (struct kl_log_finding){.code = KL_FOUND_CALLS_BEHIND,
                                                 .weight = KL_LOG_STOPS,
                                                 .at = behind->at,
                                                 .text = kl_finding_keep(list, text)});
}

void kl_found_ops(struct kl_finding_list *list)
{
    const struct kl_log *log = list->log;
    struct call *c = malloc(((size_t)log->nop + 1) * sizeof *c);
    struct seen *s = malloc(((size_t)log->nop + 1) * sizeof *s);
    int n = 0;

    if (!c || !s) {
        list->rc = KL_NOMEM("findings of a log");
        goto out;
    }
    for (int i = 0; i < log->nop; i++)
        s[i] = (struct seen){log->op[i].pointer, log->op[i].origin, log->op[i].nranks, i, 0};
    name_comms(log, s, log->nop);
    for (int i = 0; i < log->nop; i++)
        if (!is_p2p(log->op[i].name)) c[n++] = (struct call){&log->op[i], comm_of(s, log->nop, &log->op[i]), 0};
    find_differences(list, c, n);
    find_behind(list);
out:
    free(s);
    free(c);
}
