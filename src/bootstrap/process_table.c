/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/process_table.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/fork_lock.h"
#include "bootstrap/exchange.h"
#include "bootstrap/failure.h"
#include "bootstrap/partners.h"
#include "bootstrap/processes.h"
#include "bootstrap/timeout_diagnosis.h"
#include "bootstrap/wire.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limits. A leader waits for its members, and then a little longer for other leaders; its members wait longer
 * than that, so that the rank that knows the cause reports first. */
enum {
    GRACE_MS = 1000,
    REMEMBER_MS = 600000, /* how long an exchange that all members present have left is kept for late members */
};

enum { GATHERING, COMPLETE, DONE, BROKEN };

/* One exchange. */
struct exchange {
    struct kl_records records; /* `all` points to `row`. Must stay the first member: pointers to it are cast */
    struct exchange *next;
    struct kl_process_table *table;
    uint32_t number; /* sequence number */
    size_t bytes;
    _Atomic uint32_t state; /* enum above; changed under the table's lock */
    /* under the table's lock: */
    int arrived, holders;
    bool *here; /* by member */
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];                 /* for the state BROKEN */
    alignas(max_align_t) unsigned char row[]; /* by rank */
};

struct kl_process_table {
    struct kl_process_table *next; /* list of the tables that not all members have entered */
    struct kl_key name;
    int nranks, process, nprocesses, nmembers;

    pthread_mutex_t lock;
    /* Set once all ranks are known; written under lock, and read under lock by members that may not have seen an
     * exchange end since: */
    struct kl_address_record *address_records; /* by rank */
    struct kl_processes processes;             /* from the first member's records, or as the leaders tell each other */
    /* under lock: */
    struct kl_bootstrap **member; /* by place; NULL: not entered */
    int entered, left;            /* so far */
    int gone;                     /* the rank that left first; -1: none */
    uint64_t forgotten;           /* until when it is kept for members that have not entered; 0: a member is present */
    struct exchange *exchanges;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_process_table *waiting; /* under list_lock */

KL_FORK_LOCK(list_lock, waiting = NULL); /* a child does not have the other threads, which were entering */

/* ---- life ---- */

static void free_exchanges(struct kl_process_table *t)
{
    for (struct exchange *x; (x = t->exchanges);) {
        t->exchanges = x->next;
        free(x->here);
        free(x);
    }
}

static void destroy(struct kl_process_table *t)
{
    free_exchanges(t);
    pthread_mutex_destroy(&t->lock);
    kl_processes_fini(&t->processes);
    free(t->address_records);
    free(t->member);
    free(t);
}

static void unlist(const struct kl_process_table *table)
{
    struct kl_process_table **link = &waiting;

    while (*link && *link != table) link = &(*link)->next;
    if (*link) *link = table->next;
}

/* Free tables whose last member left before others came, after a while. Under list_lock, as the following. */
static void free_abandoned(void)
{
    for (struct kl_process_table *t = waiting, *next; t; t = next) {
        next = t->next;
        if (!t->forgotten || !kl_deadline_passed(t->forgotten)) continue;
        unlist(t);
        destroy(t);
    }
}

/* Create the table for the members of placement `l`. */
static ncclResult_t create(int nranks, const struct kl_placement *l, const struct kl_key *name,
                           struct kl_process_table **out)
{
    struct kl_process_table *t = calloc(1, sizeof *t);

    if (!t) return KL_NOMEM("the process table");
    *t = (struct kl_process_table){.name = *name,
                                   .nranks = nranks,
                                   .process = l->process,
                                   .nprocesses = l->nprocesses,
                                   .nmembers = l->nmembers,
                                   .gone = -1};
    t->member = calloc((size_t)l->nmembers, sizeof(struct kl_bootstrap *));
    if (!t->member) {
        free(t);
        return KL_NOMEM("the ranks of a process");
    }
    pthread_mutex_init(&t->lock, NULL);
    t->next = waiting;
    waiting = t;
    *out = t;
    return ncclSuccess;
}

static void take_place(struct kl_bootstrap *b, struct kl_process_table *t)
{
    pthread_mutex_lock(&t->lock);
    t->member[b->placement.place] = b;
    bool complete = ++t->entered == t->nmembers;
    t->forgotten = 0;
    pthread_mutex_unlock(&t->lock);
    if (complete) unlist(t);
    b->table = t;
}

/* Use the process's records instead of the own ones, which a new table has taken over. */
static void use_address_records(struct kl_bootstrap *b, struct kl_process_table *t)
{
    pthread_mutex_lock(&b->lock);
    if (b->address_records != t->address_records) free(b->address_records);
    b->address_records = t->address_records;
    pthread_mutex_unlock(&b->lock);
}

static struct kl_process_table *find(const struct kl_bootstrap *b, const struct kl_key *name)
{
    const struct kl_placement *l = &b->placement;
    struct kl_process_table *t = waiting;

    while (t && (memcmp(&t->name, name, sizeof *name) || t->process != l->process || t->nmembers != l->nmembers ||
                 t->member[l->place]))
        t = t->next;
    return t;
}

static ncclResult_t enter(struct kl_bootstrap *b)
{
    const struct kl_key name = kl_bootstrap_key(b, "kolo process");
    struct kl_process_table *t = find(b, &name);

    if (!t) KL_TRY(create(b->nranks, &b->placement, &name, &t));
    take_place(b, t);
    return ncclSuccess;
}

/* Find the table of a process whose placement is not known yet, from the records of all ranks. */
static struct kl_process_table *find_known(const struct kl_bootstrap *b, const struct kl_key *name)
{
    struct kl_process_table *t = waiting;

    while (t && (memcmp(&t->name, name, sizeof *name) || t->processes.of_rank[b->rank] != t->process)) t = t->next;
    return t;
}

/* With the records of the first member that enters. */
static ncclResult_t create_known(struct kl_bootstrap *b, const struct kl_key *name, struct kl_process_table **out)
{
    struct kl_processes p;

    KL_TRY(kl_processes_find(b->address_records, b->nranks, &p));
    const struct kl_placement l = kl_processes_placement(&p, b->rank);
    ncclResult_t rc = create(b->nranks, &l, name, out);
    if (rc) {
        kl_processes_fini(&p);
        return rc;
    }
    (*out)->address_records = b->address_records;
    (*out)->processes = p;
    return ncclSuccess;
}

static ncclResult_t enter_known(struct kl_bootstrap *b)
{
    const struct kl_key name = kl_bootstrap_key(b, "kolo process");
    struct kl_process_table *t = find_known(b, &name);

    if (!t) KL_TRY(create_known(b, &name, &t));
    b->placement = kl_processes_placement(&t->processes, b->rank);
    take_place(b, t);
    use_address_records(b, t);
    return ncclSuccess;
}

static ncclResult_t with_list_lock(struct kl_bootstrap *b, ncclResult_t (*how)(struct kl_bootstrap *b))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&list_lock);
    free_abandoned();
    ncclResult_t rc = how(b);
    pthread_mutex_unlock(&list_lock);
    return rc;
}

ncclResult_t kl_process_table_share(struct kl_bootstrap *b)
{
    return with_list_lock(b, enter_known);
}

/* ---- exchanges; under the table's lock ---- */

/* Wakes the waiting members, each under its own lock: they check the state there. */
static void set_state(struct exchange *x, uint32_t state)
{
    struct kl_process_table *t = x->table;

    kl_store_release(&x->state, state); /* pairs with await */
    for (int i = 0; i < t->nmembers; i++) {
        struct kl_bootstrap *b = t->member[i];
        if (!b || (state == COMPLETE && i)) continue; /* only the leader has work in this state */
        pthread_mutex_lock(&b->lock);
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->lock);
    }
}

static void breaks(struct exchange *x, ncclResult_t rc, const char *text)
{
    if (kl_load_relaxed(&x->state) >= DONE) return;
    x->rc = rc;
    snprintf(x->text, sizeof x->text, "%s", text);
    set_state(x, BROKEN);
}

static void break_without(struct exchange *x, int rank)
{
    char text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "rank %d has left its process's exchange; nothing will come from it", rank);
    breaks(x, ncclRemoteError, text);
}

static struct exchange *create_exchange(struct kl_process_table *t, uint32_t number, size_t bytes)
{
    struct exchange *x = calloc(1, sizeof *x + (size_t)t->nranks * bytes);

    if (!x) return NULL;
    x->here = calloc((size_t)t->nmembers, sizeof *x->here);
    if (!x->here) {
        free(x);
        return NULL;
    }
    x->table = t;
    x->number = number;
    x->bytes = bytes;
    x->records.all = x->row;
    x->next = t->exchanges;
    t->exchanges = x;
    if (t->gone >= 0) break_without(x, t->gone);
    return x;
}

static struct exchange *arrive(struct kl_process_table *t, const struct kl_bootstrap *b, const void *record,
                               size_t bytes)
{
    struct exchange *x = t->exchanges;

    while (x && x->number != b->exchanges) x = x->next;
    if (!x) x = create_exchange(t, b->exchanges, bytes);
    if (!x) return NULL;
    x->holders++;
    if (bytes) memcpy(x->row + (size_t)b->rank * bytes, record, bytes);
    x->here[b->placement.place] = true;
    if (++x->arrived == t->nmembers && kl_load_relaxed(&x->state) == GATHERING) set_state(x, COMPLETE);
    return x;
}

static void drop(struct exchange *x)
{
    struct exchange **link = &x->table->exchanges;

    if (--x->holders || (x->arrived < x->table->nmembers && kl_load_relaxed(&x->state) < DONE)) return;
    while (*link != x) link = &(*link)->next;
    *link = x->next;
    free(x->here);
    free(x);
}

/* An exchange that all present members have left stays for late ones: a new one would make them wait for ranks that
 * are gone. */
void kl_process_table_leave(struct kl_bootstrap *b)
{
    struct kl_process_table *t = b->table;

    if (!t) return;
    int place = b->placement.place;
    b->table = NULL;
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&t->lock);
    if (b->address_records == t->address_records) b->address_records = NULL;
    t->member[place] = NULL;
    if (t->gone < 0) t->gone = b->rank;
    for (struct exchange *x = t->exchanges; x; x = x->next)
        if (!x->here[place]) break_without(x, b->rank);
    bool last = ++t->left == t->entered, listed = t->entered < t->nmembers;
    if (last && listed) t->forgotten = kl_deadline_in_ms(REMEMBER_MS);
    pthread_mutex_unlock(&t->lock);
    pthread_mutex_unlock(&list_lock);
    if (last && !listed) destroy(t);
}

/* ---- waiting ---- */

/* Wait for the exchange to reach `state`; at the deadline set *late. A member that has left may have learned of a
 * failure whose notice is still under way to this rank: the notice names the cause, so wait for it. */
static ncclResult_t await(struct kl_bootstrap *b, struct exchange *x, uint32_t state, uint64_t deadline, bool *late)
{
    ncclResult_t rc = ncclSuccess;

    *late = false;
    pthread_mutex_lock(&b->lock);
    while (!*late && !(rc = kl_state_check(b)) && kl_load_acquire(&x->state) < state)
        *late = !kl_state_wait(b, deadline);
    pthread_mutex_unlock(&b->lock);
    if (rc || *late || kl_load_acquire(&x->state) != BROKEN) return rc;
    kl_error_adopt(x->text);
    return kl_bootstrap_await_cause(b, x->rc);
}

/* The rank of a member of this process; -1: it has not entered, and its rank is unknown before all records are. */
static int rank_at(struct kl_process_table *t, int place)
{
    int rank = -1;

    pthread_mutex_lock(&t->lock);
    if (t->processes.n)
        rank = t->processes.rank[t->processes.first[t->process] + place];
    else if (t->member[place])
        rank = t->member[place]->rank;
    pthread_mutex_unlock(&t->lock);
    return rank;
}

/* The missing member may itself wait for another process. */
static ncclResult_t nothing_came(struct kl_bootstrap *b, int rank)
{
    char who[KL_RANK_DESCRIPTION] = "another rank", text[KL_ERROR_TEXT];

    pthread_mutex_lock(&b->lock);
    if (rank >= 0) kl_rank_describe(b, rank, who);
    snprintf(text, sizeof text,
             "rank %d: nothing came from %s, of the same process, within %g s in phase %s; see whether it is stuck, or "
             "raise "
             "KOLO_BOOTSTRAP_TIMEOUT",
             b->rank, who, (double)b->timeout_ms / 1000, b->phase);
    ncclResult_t rc = kl_state_late(text);
    b->waits_for = rank;
    pthread_mutex_unlock(&b->lock);
    rc = kl_timeout_diagnose(b, rank, rc);
    kl_state_waits_for(b, -1);
    return kl_failure_report_result(b, rank, rc);
}

static int first_missing(struct exchange *x)
{
    struct kl_process_table *t = x->table;
    int place = 0;

    pthread_mutex_lock(&t->lock);
    while (place < t->nmembers - 1 && x->here[place]) place++;
    pthread_mutex_unlock(&t->lock);
    return rank_at(t, place);
}

/* ---- between processes ---- */

/* Data of an exchange: `units` of records by process, and the size of a unit. */
struct parcels {
    const int32_t *first; /* by process: index of its first unit; NULL: one unit each */
    size_t bytes;
};

/* Bytes of `count` processes, beginning with the own one. */
static size_t bytes_from_here(const struct kl_process_table *t, const struct parcels *p, int count)
{
    int own = t->process, end = own + count, n = t->nprocesses;

    if (!p->first) return (size_t)count * p->bytes;
    if (end <= n) return (size_t)(p->first[end] - p->first[own]) * p->bytes;
    return (size_t)(p->first[n] - p->first[own] + p->first[end - n]) * p->bytes;
}

/* The leader of the process at a distance; before all records are known, as the root has sent it. */
static int leader_at(const struct kl_bootstrap *b, int distance)
{
    const struct kl_process_table *t = b->table;
    int process = kl_rank_at(t->process, distance, t->nprocesses), partner[KL_MAX_PARTNERS], i = 0;

    if (t->processes.n) return kl_processes_leader(&t->processes, process);
    kl_partners(t->process, t->nprocesses, partner);
    while (partner[i] != process) i++;
    return b->leaders[i];
}

/* Bruck: each step doubles the number of processes whose records are here: the own one and those after it, in order. */
static ncclResult_t gather_onwards(struct kl_bootstrap *b, const struct parcels *p, unsigned char *mine,
                                   uint64_t deadline)
{
    const struct kl_process_table *t = b->table;

    for (int have = 1; have < t->nprocesses; have *= 2) {
        int more = have < t->nprocesses - have ? have : t->nprocesses - have;
        size_t had = bytes_from_here(t, p, have);
        struct kl_step s = {.to = leader_at(b, -have),
                            .from = leader_at(b, have),
                            .out = mine,
                            .in = mine + had,
                            .out_bytes = bytes_from_here(t, p, more),
                            .in_bytes = bytes_from_here(t, p, have + more) - had};
        KL_TRY(kl_exchange_step(b, &s, deadline));
    }
    return ncclSuccess;
}

/* All members' records are in the table; fetch those of all ranks. */
static ncclResult_t exchange_records(struct kl_bootstrap *b, struct exchange *x, uint64_t deadline)
{
    const struct kl_process_table *t = x->table;
    const struct kl_processes *all = &t->processes;
    const struct parcels p = {.first = all->first, .bytes = x->bytes};
    size_t n = (size_t)t->nranks, first = (size_t)all->first[t->process], own = (size_t)t->nmembers;
    unsigned char *mine;

    if (t->nprocesses == 1) return ncclSuccess;
    mine = malloc(n * x->bytes + 1);
    if (!mine) return KL_NOMEM("an all-gather");
    for (size_t i = 0; i < own; i++)
        memcpy(mine + i * x->bytes, x->row + (size_t)all->rank[first + i] * x->bytes, x->bytes);
    ncclResult_t rc = gather_onwards(b, &p, mine, deadline);
    for (size_t i = own; i < n && !rc; i++)
        memcpy(x->row + (size_t)all->rank[(first + i) % n] * x->bytes, mine + i * x->bytes, x->bytes);
    free(mine);
    return rc;
}

/* ---- address records ---- */

enum { COUNT_WIRE = 4 };

static ncclResult_t no_sense(const struct kl_bootstrap *b)
{
    return KL_FAIL(ncclInternalError, "rank %d: the addresses of all ranks are damaged", b->rank);
}

/* `wire` has a number for each process, beginning with the own one. */
static ncclResult_t read_counts(const struct kl_bootstrap *b, const unsigned char *wire, struct kl_processes *p)
{
    const struct kl_process_table *t = b->table;
    uint64_t total = 0, most = (uint64_t)t->nranks;

    for (int i = 0; i < t->nprocesses; i++) {
        size_t place = (size_t)(i - t->process + t->nprocesses) % (size_t)t->nprocesses;
        struct kl_reader r = kl_reader_on(wire + place * COUNT_WIRE, COUNT_WIRE);
        uint32_t members = kl_get_u32(&r);
        total += members;
        if (members < 1 || total > most) return no_sense(b);
        p->first[i + 1] = (int32_t)total;
    }
    return total == most ? ncclSuccess : no_sense(b);
}

/* How many ranks each process has. */
static ncclResult_t count_members(struct kl_bootstrap *b, struct kl_processes *p, uint64_t deadline)
{
    const struct kl_process_table *t = b->table;
    const struct parcels one = {.bytes = COUNT_WIRE};
    unsigned char *wire = calloc((size_t)t->nprocesses, COUNT_WIRE);

    if (!wire) return KL_NOMEM("how many ranks each process has");
    struct kl_writer w = kl_writer_on(wire, COUNT_WIRE);
    kl_put_u32(&w, (uint32_t)t->nmembers);
    ncclResult_t rc = gather_onwards(b, &one, wire, deadline);
    if (!rc) rc = read_counts(b, wire, p);
    free(wire);
    return rc;
}

/* Store received records, which are in the order of processes beginning with the own one. */
static ncclResult_t note_address_records(struct kl_bootstrap *b, const unsigned char *wire, struct kl_processes *p,
                                         struct kl_address_record *address_records)
{
    size_t n = (size_t)b->nranks, first = (size_t)p->first[b->table->process];

    for (size_t i = 0; i < n; i++) {
        struct kl_address_record record;
        if (!kl_address_record_decode(wire + i * KL_ADDRESS_RECORD_WIRE, &record) || record.rank >= b->nranks ||
            address_records[record.rank].naddresses)
            return no_sense(b);
        address_records[record.rank] = record;
        p->rank[(first + i) % n] = record.rank;
    }
    for (int i = 0; i < p->n; i++)
        for (int k = p->first[i]; k < p->first[i + 1]; k++) p->of_rank[p->rank[k]] = i;
    return ncclSuccess;
}

/* By place, from the members' own tables. All have entered; if one has left since, its record is gone: fail. */
static ncclResult_t write_own_cards(struct kl_bootstrap *b, unsigned char *wire)
{
    struct kl_process_table *t = b->table;

    pthread_mutex_lock(&t->lock);
    int gone = t->gone;
    for (int i = 0; i < t->nmembers && gone < 0; i++) {
        const struct kl_bootstrap *m = t->member[i];
        kl_address_record_encode(&m->address_records[m->rank], wire + (size_t)i * KL_ADDRESS_RECORD_WIRE);
    }
    pthread_mutex_unlock(&t->lock);
    if (gone < 0) return ncclSuccess;
    return kl_failure_report_result(b, gone,
                                    KL_FAIL(ncclRemoteError, "rank %d has left while the others were joining", gone));
}

static ncclResult_t gather_address_records(struct kl_bootstrap *b, struct kl_processes *p, unsigned char *wire,
                                           struct kl_address_record *address_records, uint64_t deadline)
{
    struct parcels parcels = {.first = p->first, .bytes = KL_ADDRESS_RECORD_WIRE};

    KL_TRY(count_members(b, p, deadline));
    KL_TRY(write_own_cards(b, wire));
    KL_TRY(gather_onwards(b, &parcels, wire, deadline));
    return note_address_records(b, wire, p, address_records);
}

static ncclResult_t exchange_cards(struct kl_bootstrap *b, struct exchange *x, uint64_t deadline)
{
    struct kl_process_table *t = x->table;
    size_t n = (size_t)t->nranks;
    unsigned char *wire = malloc(n * KL_ADDRESS_RECORD_WIRE);
    struct kl_address_record *address_records = calloc(n, sizeof *address_records);
    struct kl_processes p = {.n = t->nprocesses,
                             .of_rank = malloc(n * sizeof *p.of_rank),
                             .first = calloc((size_t)t->nprocesses + 1, sizeof *p.first),
                             .rank = malloc(n * sizeof *p.rank)};
    bool there = wire && address_records && p.of_rank && p.first && p.rank;
    ncclResult_t rc =
        there ? gather_address_records(b, &p, wire, address_records, deadline) : KL_NOMEM("the addresses of all ranks");

    free(wire);
    if (rc) {
        free(address_records);
        kl_processes_fini(&p);
        return rc;
    }
    pthread_mutex_lock(&t->lock);
    t->address_records = address_records;
    t->processes = p;
    pthread_mutex_unlock(&t->lock);
    return ncclSuccess;
}

/* ---- exchanges ---- */

static ncclResult_t speak(struct kl_bootstrap *b, struct exchange *x,
                          ncclResult_t (*fn)(struct kl_bootstrap *b, struct exchange *x, uint64_t deadline))
{
    bool late;

    ncclResult_t rc = await(b, x, COMPLETE, kl_deadline_in_ms(b->timeout_ms), &late);
    if (late) rc = nothing_came(b, first_missing(x));
    if (!rc) rc = fn(b, x, kl_deadline_in_ms(b->timeout_ms + GRACE_MS));
    pthread_mutex_lock(&x->table->lock);
    if (rc)
        breaks(x, rc, kl_error_text());
    else
        set_state(x, DONE);
    pthread_mutex_unlock(&x->table->lock);
    return rc;
}

/* The leader waits for its members, and then for other leaders. */
static ncclResult_t receive(struct kl_bootstrap *b, struct exchange *x)
{
    bool late;

    kl_state_waits_for(b, rank_at(x->table, 0));
    ncclResult_t rc = await(b, x, DONE, kl_deadline_in_ms(2 * (b->timeout_ms + GRACE_MS)), &late);
    if (late) rc = nothing_came(b, rank_at(x->table, 0));
    kl_state_waits_for(b, -1);
    return rc;
}

static ncclResult_t run_exchange(struct kl_bootstrap *b, const void *record, size_t bytes,
                                 ncclResult_t (*fn)(struct kl_bootstrap *b, struct exchange *x, uint64_t deadline),
                                 struct exchange **out)
{
    struct kl_process_table *t = b->table;

    b->exchanges++;
    pthread_mutex_lock(&t->lock);
    struct exchange *x = arrive(t, b, record, bytes);
    pthread_mutex_unlock(&t->lock);
    if (!x) return KL_NOMEM("the records of all ranks");
    ncclResult_t rc = b->placement.place ? receive(b, x) : speak(b, x, fn);
    if (rc)
        kl_records_unref(&x->records);
    else
        *out = x;
    return rc;
}

ncclResult_t kl_process_table_gather(struct kl_bootstrap *b)
{
    struct exchange *x;

    KL_TRY(with_list_lock(b, enter));
    KL_TRY(run_exchange(b, NULL, 0, exchange_cards, &x));
    use_address_records(b, b->table);
    kl_records_unref(&x->records);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_gather(struct kl_bootstrap *b, const void *record, size_t bytes, struct kl_records **out)
{
    struct exchange *x;

    KL_TRY(kl_state_check_owner(b));
    KL_TRY(run_exchange(b, record, bytes, exchange_records, &x));
    *out = &x->records;
    return ncclSuccess;
}

void kl_records_unref(struct kl_records *records)
{
    struct exchange *x = (struct exchange *)(void *)records;
    struct kl_process_table *t = x->table;

    pthread_mutex_lock(&t->lock);
    drop(x);
    pthread_mutex_unlock(&t->lock);
}
