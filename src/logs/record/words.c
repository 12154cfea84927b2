/* SPDX-License-Identifier: Apache-2.0 */
/** words.c - findings about records as sentences. */
#include "logs/record/record.h"

#include "base/error.h"

#include <inttypes.h>
#include <string.h>

enum { RANGES = 8 }; /* that a list of ranks names */

static const struct {
    const char *name, *remedy;
} codes[KL_RECORD_CODES] = {
    [KL_RECORD_GROUP_DIFFERS] = {"group_differs",
                                 "make all ranks create the group with the same list, in the same order "
                                 "(new_group is called by every rank, members or not)"},
    [KL_RECORD_MISMATCH] = {"mismatch",
                            "compare the program's path on these ranks: a branch, an exception, an uneven number "
                            "of batches, shapes that follow the data"},
    [KL_RECORD_DEAD] = {"dead", "look at the end of that process's log, and at its host (dmesg: out of memory, Xid)"},
    [KL_RECORD_NEVER_CAME] = {"never_came",
                              "look at the stack of the rank that never came (py-spy dump), and at its log: an "
                              "exception, a data loader, a branch that others did not take"},
    [KL_RECORD_NO_PEER] = {"no_peer", "compare the order and number of sends and receives of the two ranks"},
    [KL_RECORD_DEADLOCK] = {"deadlock", "call the operations of both groups in the same order on all ranks"},
    [KL_RECORD_NO_RECORD] = {"no_record",
                             "give the records of all ranks; a rank that wrote none died, or its watchdog did not "
                             "run (TORCH_NCCL_DUMP_ON_TIMEOUT=1)"},
    [KL_RECORD_NOT_BEGUN] = {"not_begun", "look for a kernel or an event that this rank's stream waits for: an earlier "
                                          "operation of another group, a stream that never synchronizes"},
    [KL_RECORD_INSIDE] = {"inside",
                          "the program is not the reason: look at the network (NCCL_DEBUG=INFO, counters of NICs and "
                          "switches), the GPUs (nvidia-smi, dmesg: Xid), and peers in another state"},
    [KL_RECORD_BEHIND] = {"behind",
                          "ask again after some seconds: if the numbers stand still, look at the stack of the ranks "
                          "that are behind (py-spy dump)"},
    [KL_RECORD_SILENT] = {"silent", "look whether the process lives, is stopped, or its host is reachable"},
    [KL_RECORD_STATES_DIFFER] = {"states_differ",
                                 "ask again after some seconds: if it stays so, look at the logs of these ranks"},
    [KL_RECORD_FAILED] = {"failed", "look at the log of that rank (NCCL_DEBUG=WARN)"},
    [KL_RECORD_FOLLOWS] = {"follows", NULL},
    [KL_RECORD_STRAGGLER] = {"straggler",
                             "compare that rank's computation, data loading, clocks (nvidia-smi -q -d CLOCK,"
                             "PERFORMANCE) and CPU with the others'"},
    [KL_RECORD_EXPOSED] = {"exposed",
                           "overlap more (bucket sizes, prefetch of FSDP, a stream of its own), or move fewer bytes"},
    [KL_RECORD_FEW] = {"few", NULL},
    [KL_RECORD_RANKS_GUESSED] = {"ranks_guessed", "name the files by rank, \"trace_0\", \"trace_1\""},
};

static const char *const states[KL_CALL_STATES] = {"queued", "started", "ended", "failed"};
static const char *const fields[] = {"same", "call", "operation", "type", "size", "root"};
static const char *const member_states[] = {"running", "in init", "finalizing", "aborted", "silent", "dead"};

const char *kl_record_code_name(enum kl_record_code code)
{
    return codes[code].name;
}

const char *kl_call_state_name(enum kl_call_state state)
{
    return states[state];
}

const char *kl_call_field_name(enum kl_call_field field)
{
    return fields[field];
}

const char *kl_member_state_name(enum kl_member_state state)
{
    return member_states[state];
}

/* ---- ranks ---- */

static int end_of_range(const int *list, int from, int n)
{
    int end = from + 1;

    while (end < n && list[end] == list[end - 1] + 1) end++;
    return end;
}

/* "rank 3", "ranks 0-2, 5" */
static void add_ranks(const int *list, int n, struct kl_text *t)
{
    int ranges = 0;

    kl_text_add(t, n == 1 ? "rank " : "ranks ");
    for (int from = 0, end; from < n; from = end, ranges++) {
        end = end_of_range(list, from, n);
        if (ranges == RANGES) {
            kl_text_add(t, " and %d more", n - from);
            return;
        }
        kl_text_add(t, "%s%d", from ? ", " : "", list[from]);
        if (end - from > 1) kl_text_add(t, "%s%d", end - from > 2 ? "-" : ", ", list[end - 1]);
    }
}

static void ranks(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    add_ranks(r->list + f->first, f->n, t);
}

static void others(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    add_ranks(r->list + f->first_other, f->nothers, t);
}

static const char *is(int n)
{
    return n == 1 ? "is" : "are";
}

static const char *s(int n) /* of a verb */
{
    return n == 1 ? "s" : "";
}

/* Where the first of the ranks runs: host and process, as far as the record tells. */
static void add_place(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    for (int i = 0; i < r->nmember && f->n == 1; i++) {
        const struct kl_record_member *m = &r->member[i];
        const struct kl_record_proc *p = m->proc >= 0 ? &r->proc[m->proc] : NULL;

        if (m->group != f->group || m->rank != r->list[f->first] || !p || !*p->host) continue;
        kl_text_add(t, " (host %s", p->host);
        if (p->pid >= 0) kl_text_add(t, ", pid %d", p->pid);
        kl_text_add(t, ")");
        return;
    }
}

/* ---- calls and groups ---- */

void kl_record_group_text(const struct kl_record *r, int group, struct kl_text *t)
{
    const struct kl_record_group *g = &r->group[group];
    const bool named = *g->desc && strcmp(g->desc, "undefined") != 0;

    if (!*g->id)
        kl_text_add(t, "the job");
    else if (!strncmp(g->id, "0x", 2))
        kl_text_add(t, "communicator %.*s", (int)strcspn(g->id, "-"), g->id); /* without its second hash */
    else
        kl_text_add(t, "group %s", g->id);
    if (named) kl_text_add(t, " (%s)", g->desc);
}

static void add_number(const struct kl_record_call *c, struct kl_text *t)
{
    kl_text_add(t, "%s", *c->name ? c->name : "a call");
    if (c->number >= 0) kl_text_add(t, " number %" PRId64, c->number);
}

static void add_sizes(const struct kl_record_call *c, struct kl_text *t)
{
    if (c->in >= 0 && c->out >= 0 && c->in != c->out)
        kl_text_add(t, "%" PRId64 " to %" PRId64 " %s", c->in, c->out, *c->type ? c->type : "elements");
    else if (c->in >= 0 || c->out >= 0)
        kl_text_add(t, "%" PRId64 " %s", c->in >= 0 ? c->in : c->out, *c->type ? c->type : "elements");
    else if (c->bytes >= 0)
        kl_text_add_size(t, c->bytes);
    else
        kl_text_add(t, "%s", c->type);
}

/* "all_reduce number 5 (1024 Float)" */
void kl_record_call_text(const struct kl_record *r, const struct kl_record_call *c, struct kl_text *t)
{
    char facts[256];
    struct kl_text f = kl_text_in(facts, sizeof facts);

    (void)r;
    add_sizes(c, &f);
    if (*c->op) kl_text_add(&f, "%s%s", f.length ? ", " : "", c->op);
    if (c->root >= 0) kl_text_add(&f, "%sroot %d", f.length ? ", " : "", c->root);
    add_number(c, t);
    if (c->peer >= 0) kl_text_add(t, " %s rank %d", c->kind == KL_CALL_SEND ? "to" : "from", c->peer);
    if (f.length) kl_text_add(t, " (%s)", facts);
}

static void call_in_group(const struct kl_record *r, int call, struct kl_text *t)
{
    kl_record_call_text(r, &r->call[call], t);
    kl_text_add(t, " of ");
    kl_record_group_text(r, r->member[r->call[call].member].group, t);
}

/* ---- findings ---- */

static void mismatch_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    kl_text_add(t, " called ");
    kl_record_call_text(r, &r->call[f->call], t);
    kl_text_add(t, " where ");
    others(r, f, t);
    kl_text_add(t, " called ");
    kl_record_call_text(r, &r->call[f->other_call], t);
    kl_text_add(t, ", in ");
    kl_record_group_text(r, f->group, t);
    kl_text_add(t, ": the %s differs", fields[f->a]);
    if (f->count == 1) kl_text_add(t, ", as if %s had left out a call", f->n == 1 ? "it" : "they");
    if (f->count == 2) kl_text_add(t, ", as if %s had made one call more", f->n == 1 ? "it" : "they");
}

static void never_came_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    const struct kl_record_call *last = f->other_call >= 0 ? &r->call[f->other_call] : NULL;

    ranks(r, f, t);
    add_place(r, f, t);
    kl_text_add(t, " never called ");
    call_in_group(r, f->call, t);
    kl_text_add(t, ", in which ");
    others(r, f, t);
    kl_text_add(t, " wait%s: %s outside of any collective", s(f->nothers), f->n == 1 ? "it is" : "they are");
    if (!last) {
        kl_text_add(t, ", and called nothing in that group");
        return;
    }
    kl_text_add(t, " since ");
    add_number(last, t);
    if (*last->where) kl_text_add(t, " (%s)", last->where);
}

/* With one record of a group, the other ranks are unknown. */
static void inside_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    const bool alone = f->n == 1 && !f->nothers && r->group[f->group].size != 1;

    ranks(r, f, t);
    kl_text_add(t, " %s %s ", is(f->n), alone ? "in" : "stuck inside");
    call_in_group(r, f->call, t);
    if (alone) {
        kl_text_add(t, ", and did not end it: the records of the other ranks show which one is missing");
    } else if (f->nothers) {
        kl_text_add(t, ", which ");
        others(r, f, t);
        kl_text_add(t, " ended");
    } else {
        kl_text_add(t, ": all of them called the same, and none ended it");
    }
}

static void not_begun_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    add_place(r, f, t);
    kl_text_add(t, " called ");
    call_in_group(r, f->call, t);
    kl_text_add(t, ", but %s GPU has not begun it; ", f->n == 1 ? "its" : "their");
    others(r, f, t);
    kl_text_add(t, " wait%s in it", s(f->nothers));
}

static void no_record_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    kl_text_add(t, " left no record: ");
    others(r, f, t);
    kl_text_add(t, " wait%s in ", s(f->nothers));
    call_in_group(r, f->call, t);
    kl_text_add(t, f->n == 1 ? "; it is dead, or never came" : "; one of them is dead, or never came");
}

static void no_peer_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    kl_text_add(t, " wait%s in ", s(f->n));
    call_in_group(r, f->call, t);
    kl_text_add(t, ": ");
    others(r, f, t);
    kl_text_add(t, " did not %s", r->call[f->call].kind == KL_CALL_SEND ? "receive it" : "send it");
}

static void deadlock_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    kl_text_add(t, " wait%s in ", s(f->n));
    call_in_group(r, f->call, t);
    kl_text_add(t, " for ");
    others(r, f, t);
    kl_text_add(t, ", which wait%s in ", s(f->nothers));
    call_in_group(r, f->other_call, t);
    kl_text_add(t, ": a circle, no rank can go on");
}

static void follows_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    others(r, f, t);
    kl_text_add(t, " wait%s in ", s(f->nothers));
    call_in_group(r, f->call, t);
    kl_text_add(t, " for ");
    ranks(r, f, t);
    kl_text_add(t, ", which wait%s in another group: a consequence", s(f->n));
}

static void group_differs_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    kl_record_group_text(r, f->group, t);
    kl_text_add(t, " has ranks %.200s at ", f->text);
    ranks(r, f, t);
    kl_text_add(t, ", and ranks %.200s at ", f->other);
    others(r, f, t);
}

static void behind_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    add_place(r, f, t);
    kl_text_add(t, " called %s %" PRId64 " time%s, ", f->text, f->count, kl_plural(f->count));
    others(r, f, t);
    kl_text_add(t, " %" PRId64 " times, in ", f->most);
    kl_record_group_text(r, f->group, t);
    if (f->a) kl_text_add(t, ", and went on between two questions");
}

static void state_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    if (*r->group[f->group].id) {
        ranks(r, f, t);
    } else {
        kl_text_add(t, f->n == 1 ? "process " : "processes ");
        for (int i = 0; i < f->n && i < RANGES; i++) kl_text_add(t, "%s%d", i ? ", " : "", r->list[f->first + i]);
    }
    add_place(r, f, t);
    if (f->code == KL_RECORD_SILENT)
        kl_text_add(t, " %s not answer RAS", f->n == 1 ? "does" : "do");
    else
        kl_text_add(t, " %s %s", is(f->n), member_states[f->a]);
    kl_text_add(t, ", in ");
    kl_record_group_text(r, f->group, t);
    if (f->code != KL_RECORD_STATES_DIFFER || !f->nothers) return;
    kl_text_add(t, ", where ");
    others(r, f, t);
    kl_text_add(t, " run%s", s(f->nothers));
}

static void failed_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    add_place(r, f, t);
    kl_text_add(t, " failed in ");
    kl_record_group_text(r, f->group, t);
    kl_text_add(t, ": %s", *f->text ? f->text : kl_result_text((ncclResult_t)f->a));
}

static void straggler_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    add_place(r, f, t);
    kl_text_add(t, " came last to %" PRId64 " of %" PRId64 " collectives of ", f->count, f->most);
    kl_record_group_text(r, f->group, t);
    kl_text_add(t, ": the others waited ");
    kl_text_add_time(t, f->x);
    kl_text_add(t, " for it, %.0f %% of the time in them", 100 * f->y);
}

static void exposed_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    ranks(r, f, t);
    kl_text_add(t, " communicates for %.0f %% of its time, and %.0f %% of it without computing meanwhile", 100 * f->y,
                100 * f->x);
}

static void few_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    (void)r;
    kl_text_add(t, "records of %" PRId64 " of %" PRId64 " ranks", f->count, f->most);
}

static void guessed_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    (void)r;
    kl_text_add(t, "%" PRId64 " of %" PRId64 " files name%s no rank: their order counts as rank", f->count, f->most,
                s((int)f->count));
}

void kl_record_finding_text(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    static void (*const texts[KL_RECORD_CODES])(const struct kl_record *, const struct kl_record_finding *,
                                                struct kl_text *) = {
        [KL_RECORD_GROUP_DIFFERS] = group_differs_text,
        [KL_RECORD_MISMATCH] = mismatch_text,
        [KL_RECORD_DEAD] = state_text,
        [KL_RECORD_NEVER_CAME] = never_came_text,
        [KL_RECORD_NO_PEER] = no_peer_text,
        [KL_RECORD_DEADLOCK] = deadlock_text,
        [KL_RECORD_NO_RECORD] = no_record_text,
        [KL_RECORD_NOT_BEGUN] = not_begun_text,
        [KL_RECORD_INSIDE] = inside_text,
        [KL_RECORD_BEHIND] = behind_text,
        [KL_RECORD_SILENT] = state_text,
        [KL_RECORD_STATES_DIFFER] = state_text,
        [KL_RECORD_FAILED] = failed_text,
        [KL_RECORD_FOLLOWS] = follows_text,
        [KL_RECORD_STRAGGLER] = straggler_text,
        [KL_RECORD_EXPOSED] = exposed_text,
        [KL_RECORD_FEW] = few_text,
        [KL_RECORD_RANKS_GUESSED] = guessed_text,
    };

    texts[f->code](r, f, t);
}

void kl_record_finding_remedy(const struct kl_record *r, const struct kl_record_finding *f, struct kl_text *t)
{
    (void)r;
    if (codes[f->code].remedy) kl_text_add(t, "%s", codes[f->code].remedy);
}

/* ---- the answer ---- */

static int ended(const struct kl_record *r)
{
    int n = 0;

    for (int i = 0; i < r->ncall; i++) n += r->call[i].state == KL_CALL_ENDED;
    return n;
}

static bool same_counts(const struct kl_record *r)
{
    for (int i = 0; i < r->nfinding; i++)
        if (r->finding[i].code == KL_RECORD_BEHIND) return false;
    return r->ncount > 0;
}

static void add_fine(const struct kl_record *r, struct kl_text *t)
{
    int recorded = 0;

    for (int i = 0; i < r->nproc; i++) recorded += r->proc[i].recorded;
    if (!r->nmember)
        kl_text_add(t, "no rank is named, and no error");
    else if (!r->ncall)
        kl_text_add(t, "%d rank%s, all running%s", recorded, kl_plural(recorded),
                    same_counts(r) ? ", with the same numbers of calls" : "");
    else
        kl_text_add(t, "no rank waits: all %d calls of %d rank%s ended", ended(r), recorded, kl_plural(recorded));
}

void kl_record_verdict(const struct kl_record *r, struct kl_text *t)
{
    if (kl_record_has_problem(r))
        kl_record_finding_text(r, &r->finding[0], t);
    else
        add_fine(r, t);
}
