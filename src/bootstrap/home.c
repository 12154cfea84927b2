/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/home.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/exchange.h"
#include "bootstrap/failure.h"
#include "bootstrap/partners.h"
#include "bootstrap/processes.h"
#include "bootstrap/wire.h"

#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * A speaker waits for its members, and then once for all that other speakers have to say, a little longer; its members
 * wait longer than that: who knows best complains first.
 */
enum {
    GRACE_MS = 1000,
    REMEMBER_MS = 600000, /* what all have left, for who has not come yet */
};

enum { GATHERING, COMPLETE, DONE, BROKEN };

/* One exchange. */
struct round {
    struct kl_records records; /* `all` is `table`; the first member */
    struct round *next;
    struct kl_home *home;
    uint32_t number; /* of the exchange */
    size_t bytes;
    _Atomic uint32_t state; /* above; changed under the home's lock */
    /* under the home's lock: */
    int arrived, holders;
    bool *here; /* by member */
    ncclResult_t rc;
    char text[KL_ERROR_TEXT];                   /* where it is broken */
    alignas(max_align_t) unsigned char table[]; /* by rank */
};

struct kl_home {
    struct kl_home *next; /* in the list of those that not all have entered */
    struct kl_key name;
    int nranks, process, nprocesses, nmembers;

    pthread_mutex_t lock;
    /* Once all ranks are known; written under lock, read so by who may not have seen an exchange end since: */
    struct kl_card *cards;         /* by rank */
    struct kl_processes processes; /* of the first that enters, or as the speakers tell each other */
    /* under lock: */
    struct kl_bootstrap **member; /* by place; NULL: not here */
    int entered, left;            /* so far */
    int gone;                     /* the rank that left first; -1 */
    uint64_t forgotten;           /* until when it waits for those who have not come; 0: somebody is here */
    struct round *rounds;
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static struct kl_home *waiting; /* under list_lock */

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&list_lock);
}

/* The other threads, which were entering, do not exist here. */
static void after_fork_in_child(void)
{
    waiting = NULL;
    pthread_mutex_unlock(&list_lock);
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* ---- life ---- */

static void free_rounds(struct kl_home *h)
{
    for (struct round *r; (r = h->rounds);) {
        h->rounds = r->next;
        free(r->here);
        free(r);
    }
}

static void destroy(struct kl_home *h)
{
    free_rounds(h);
    pthread_mutex_destroy(&h->lock);
    kl_processes_fini(&h->processes);
    free(h->cards);
    free(h->member);
    free(h);
}

static void unlist(const struct kl_home *home)
{
    struct kl_home **link = &waiting;

    while (*link && *link != home) link = &(*link)->next;
    if (*link) *link = home->next;
}

/* Those who never came to what the others left. Under list_lock, as the following. */
static void forget_deserted(void)
{
    for (struct kl_home *h = waiting, *next; h; h = next) {
        next = h->next;
        if (!h->forgotten || !kl_deadline_passed(h->forgotten)) continue;
        unlist(h);
        destroy(h);
    }
}

/* For whoever has the lodging `l`. */
static ncclResult_t create(int nranks, const struct kl_lodging *l, const struct kl_key *name, struct kl_home **out)
{
    struct kl_home *h = calloc(1, sizeof *h);

    if (!h) return KL_NOMEM("what the ranks of a process share");
    *h = (struct kl_home){.name = *name,
                          .nranks = nranks,
                          .process = l->process,
                          .nprocesses = l->nprocesses,
                          .nmembers = l->nmembers,
                          .gone = -1};
    h->member = calloc((size_t)l->nmembers, sizeof(struct kl_bootstrap *));
    if (!h->member) {
        free(h);
        return KL_NOMEM("the ranks of a process");
    }
    pthread_mutex_init(&h->lock, NULL);
    h->next = waiting;
    waiting = h;
    *out = h;
    return ncclSuccess;
}

static void move_in(struct kl_bootstrap *b, struct kl_home *h)
{
    pthread_mutex_lock(&h->lock);
    h->member[b->lodging.place] = b;
    bool complete = ++h->entered == h->nmembers;
    h->forgotten = 0;
    pthread_mutex_unlock(&h->lock);
    if (complete) unlist(h);
    b->home = h;
}

/* The table of the home instead of the own one, which a new home has taken. */
static void use_cards(struct kl_bootstrap *b, struct kl_home *h)
{
    pthread_mutex_lock(&b->lock);
    if (b->cards != h->cards) free(b->cards);
    b->cards = h->cards;
    pthread_mutex_unlock(&b->lock);
}

static struct kl_home *find(const struct kl_bootstrap *b, const struct kl_key *name)
{
    const struct kl_lodging *l = &b->lodging;
    struct kl_home *h = waiting;

    while (h && (memcmp(&h->name, name, sizeof *name) || h->process != l->process || h->nmembers != l->nmembers ||
                 h->member[l->place]))
        h = h->next;
    return h;
}

static ncclResult_t enter(struct kl_bootstrap *b)
{
    const struct kl_key name = kl_bootstrap_key(b, "kolo home");
    struct kl_home *h = find(b, &name);

    if (!h) KL_TRY(create(b->nranks, &b->lodging, &name, &h));
    move_in(b, h);
    return ncclSuccess;
}

/* Its lodging is not known yet, but all cards are: where one process pretends to be several, the home is that of its rank. */
static struct kl_home *find_known(const struct kl_bootstrap *b, const struct kl_key *name)
{
    struct kl_home *h = waiting;

    while (h && (memcmp(&h->name, name, sizeof *name) || h->processes.of_rank[b->rank] != h->process)) h = h->next;
    return h;
}

/* With the cards of the first that enters. */
static ncclResult_t create_known(struct kl_bootstrap *b, const struct kl_key *name, struct kl_home **out)
{
    struct kl_processes p;

    KL_TRY(kl_processes_find(b->cards, b->nranks, &p));
    const struct kl_lodging l = kl_processes_lodging(&p, b->rank);
    ncclResult_t rc = create(b->nranks, &l, name, out);
    if (rc) {
        kl_processes_fini(&p);
        return rc;
    }
    (*out)->cards = b->cards;
    (*out)->processes = p;
    return ncclSuccess;
}

static ncclResult_t enter_known(struct kl_bootstrap *b)
{
    const struct kl_key name = kl_bootstrap_key(b, "kolo home");
    struct kl_home *h = find_known(b, &name);

    if (!h) KL_TRY(create_known(b, &name, &h));
    b->lodging = kl_processes_lodging(&h->processes, b->rank);
    move_in(b, h);
    use_cards(b, h);
    return ncclSuccess;
}

static ncclResult_t lodge(struct kl_bootstrap *b, ncclResult_t (*how)(struct kl_bootstrap *b))
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&list_lock);
    forget_deserted();
    ncclResult_t rc = how(b);
    pthread_mutex_unlock(&list_lock);
    return rc;
}

ncclResult_t kl_home_enter(struct kl_bootstrap *b)
{
    return lodge(b, enter_known);
}

/* ---- rounds; under the home's lock ---- */

/* Whoever waits sees it: they look at the state under their own lock. */
static void set_state(struct round *r, uint32_t state)
{
    struct kl_home *h = r->home;

    kl_store_release(&r->state, state); /* pairs with await */
    for (int i = 0; i < h->nmembers; i++) {
        struct kl_bootstrap *b = h->member[i];
        if (!b || (state == COMPLETE && i)) continue; /* only the speaker works then */
        pthread_mutex_lock(&b->lock);
        pthread_cond_broadcast(&b->changed);
        pthread_mutex_unlock(&b->lock);
    }
}

static void breaks(struct round *r, ncclResult_t rc, const char *text)
{
    if (kl_load_relaxed(&r->state) >= DONE) return;
    r->rc = rc;
    snprintf(r->text, sizeof r->text, "%s", text);
    set_state(r, BROKEN);
}

static void break_without(struct round *r, int rank)
{
    char text[KL_ERROR_TEXT];

    snprintf(text, sizeof text, "rank %d has left its process's exchange; nothing will come from it", rank);
    breaks(r, ncclRemoteError, text);
}

static struct round *create_round(struct kl_home *h, uint32_t number, size_t bytes)
{
    struct round *r = calloc(1, sizeof *r + (size_t)h->nranks * bytes);

    if (!r) return NULL;
    r->here = calloc((size_t)h->nmembers, sizeof *r->here);
    if (!r->here) {
        free(r);
        return NULL;
    }
    r->home = h;
    r->number = number;
    r->bytes = bytes;
    r->records.all = r->table;
    r->next = h->rounds;
    h->rounds = r;
    if (h->gone >= 0) break_without(r, h->gone);
    return r;
}

static struct round *arrive(struct kl_home *h, const struct kl_bootstrap *b, const void *record, size_t bytes)
{
    struct round *r = h->rounds;

    while (r && r->number != b->exchanges) r = r->next;
    if (!r) r = create_round(h, b->exchanges, bytes);
    if (!r) return NULL;
    r->holders++;
    if (bytes) memcpy(r->table + (size_t)b->rank * bytes, record, bytes);
    r->here[b->lodging.place] = true;
    if (++r->arrived == h->nmembers && kl_load_relaxed(&r->state) == GATHERING) set_state(r, COMPLETE);
    return r;
}

static void drop(struct round *r)
{
    struct round **link = &r->home->rounds;

    if (--r->holders || (r->arrived < r->home->nmembers && kl_load_relaxed(&r->state) < DONE)) return;
    while (*link != r) link = &(*link)->next;
    *link = r->next;
    free(r->here);
    free(r);
}

/* What all have left, before others came, stays for them: in a new one they would wait for who is gone. */
void kl_home_leave(struct kl_bootstrap *b)
{
    struct kl_home *h = b->home;

    if (!h) return;
    int place = b->lodging.place;
    b->home = NULL;
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&h->lock);
    if (b->cards == h->cards) b->cards = NULL;
    h->member[place] = NULL;
    if (h->gone < 0) h->gone = b->rank;
    for (struct round *r = h->rounds; r; r = r->next)
        if (!r->here[place]) break_without(r, b->rank);
    bool last = ++h->left == h->entered, listed = h->entered < h->nmembers;
    if (last && listed) h->forgotten = kl_deadline_in_ms(REMEMBER_MS);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&list_lock);
    if (last && !listed) destroy(h);
}

/* ---- waiting ---- */

/* Until the round is at `state`, or further. False: in vain. */
static ncclResult_t await(struct kl_bootstrap *b, struct round *r, uint32_t state, uint64_t deadline, bool *late)
{
    ncclResult_t rc = ncclSuccess;

    *late = false;
    pthread_mutex_lock(&b->lock);
    while (!*late && !(rc = kl_state_check(b)) && kl_load_acquire(&r->state) < state)
        *late = !kl_state_wait(b, deadline);
    pthread_mutex_unlock(&b->lock);
    if (rc || *late || kl_load_acquire(&r->state) != BROKEN) return rc;
    kl_error_adopt(r->text);
    return r->rc;
}

/* A rank of this process; -1: it has not come here, and before all know each other nobody can say who it is. */
static int rank_at(struct kl_home *h, int place)
{
    int rank = -1;

    pthread_mutex_lock(&h->lock);
    if (h->processes.n)
        rank = h->processes.rank[h->processes.first[h->process] + place];
    else if (h->member[place])
        rank = h->member[place]->rank;
    pthread_mutex_unlock(&h->lock);
    return rank;
}

static ncclResult_t nothing_came(struct kl_bootstrap *b, int rank)
{
    char who[KL_WHO_TEXT] = "another rank";

    pthread_mutex_lock(&b->lock);
    if (rank >= 0) kl_who(b, rank, who);
    ncclResult_t rc =
        KL_FAIL(ncclRemoteError,
                "rank %d: nothing came from %s, of the same process, within %g s in phase %s; see whether it "
                "is stuck, or raise KOLO_BOOTSTRAP_TIMEOUT",
                b->rank, who, (double)b->timeout_ms / 1000, b->phase);
    pthread_mutex_unlock(&b->lock);
    return kl_failure_settle(b, rank, rc);
}

static int first_missing(struct round *r)
{
    struct kl_home *h = r->home;
    int place = 0;

    pthread_mutex_lock(&h->lock);
    while (place < h->nmembers - 1 && r->here[place]) place++;
    pthread_mutex_unlock(&h->lock);
    return rank_at(h, place);
}

/* ---- between processes ---- */

/* Of an exchange: `units` of records by process, and how many bytes a unit has. */
struct parcels {
    const int32_t *first; /* by process: where its units begin; NULL: one each */
    size_t bytes;
};

/* Bytes of `count` processes from the own one on. */
static size_t bytes_from_here(const struct kl_home *h, const struct parcels *p, int count)
{
    int own = h->process, end = own + count, n = h->nprocesses;

    if (!p->first) return (size_t)count * p->bytes;
    if (end <= n) return (size_t)(p->first[end] - p->first[own]) * p->bytes;
    return (size_t)(p->first[n] - p->first[own] + p->first[end - n]) * p->bytes;
}

/* The rank that speaks for the process so many further on; before all cards are known, that is what the root has said. */
static int speaker_at(const struct kl_bootstrap *b, int distance)
{
    const struct kl_home *h = b->home;
    int process = kl_rank_at(h->process, distance, h->nprocesses), partner[KL_MAX_PARTNERS], i = 0;

    if (h->processes.n) return kl_processes_speaker(&h->processes, process);
    kl_partners(h->process, h->nprocesses, partner);
    while (partner[i] != process) i++;
    return b->speakers[i];
}

/* Bruck: after each step there are twice as many processes' records, the own ones and those after them, in order. */
static ncclResult_t gather_onwards(struct kl_bootstrap *b, const struct parcels *p, unsigned char *mine,
                                   uint64_t deadline)
{
    const struct kl_home *h = b->home;

    for (int have = 1; have < h->nprocesses; have *= 2) {
        int more = have < h->nprocesses - have ? have : h->nprocesses - have;
        size_t had = bytes_from_here(h, p, have);
        struct kl_step s = {.to = speaker_at(b, -have),
                            .from = speaker_at(b, have),
                            .out = mine,
                            .in = mine + had,
                            .out_bytes = bytes_from_here(h, p, more),
                            .in_bytes = bytes_from_here(h, p, have + more) - had};
        KL_TRY(kl_exchange_step(b, &s, deadline));
    }
    return ncclSuccess;
}

/* All members' records are in the table; then those of all ranks. */
static ncclResult_t exchange(struct kl_bootstrap *b, struct round *r, uint64_t deadline)
{
    const struct kl_home *h = r->home;
    const struct kl_processes *all = &h->processes;
    const struct parcels p = {.first = all->first, .bytes = r->bytes};
    size_t n = (size_t)h->nranks, first = (size_t)all->first[h->process], own = (size_t)h->nmembers;
    unsigned char *mine;

    if (h->nprocesses == 1) return ncclSuccess;
    mine = malloc(n * r->bytes + 1);
    if (!mine) return KL_NOMEM("an all-gather");
    for (size_t i = 0; i < own; i++)
        memcpy(mine + i * r->bytes, r->table + (size_t)all->rank[first + i] * r->bytes, r->bytes);
    ncclResult_t rc = gather_onwards(b, &p, mine, deadline);
    for (size_t i = own; i < n && !rc; i++)
        memcpy(r->table + (size_t)all->rank[(first + i) % n] * r->bytes, mine + i * r->bytes, r->bytes);
    free(mine);
    return rc;
}

/* ---- cards ---- */

enum { COUNT_WIRE = 4 };

static ncclResult_t no_sense(const struct kl_bootstrap *b)
{
    return KL_FAIL(ncclInternalError, "rank %d: the addresses of all ranks are damaged", b->rank);
}

/* `wire` has a number for each process, from the own one on. */
static ncclResult_t read_counts(const struct kl_bootstrap *b, const unsigned char *wire, struct kl_processes *p)
{
    const struct kl_home *h = b->home;
    uint64_t total = 0, most = (uint64_t)h->nranks;

    for (int i = 0; i < h->nprocesses; i++) {
        size_t place = (size_t)(i - h->process + h->nprocesses) % (size_t)h->nprocesses;
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
    const struct kl_home *h = b->home;
    const struct parcels one = {.bytes = COUNT_WIRE};
    unsigned char *wire = calloc((size_t)h->nprocesses, COUNT_WIRE);

    if (!wire) return KL_NOMEM("how many ranks each process has");
    struct kl_writer w = kl_writer_on(wire, COUNT_WIRE);
    kl_put_u32(&w, (uint32_t)h->nmembers);
    ncclResult_t rc = gather_onwards(b, &one, wire, deadline);
    if (!rc) rc = read_counts(b, wire, p);
    free(wire);
    return rc;
}

/* What came is in the order of processes, from the own one on. */
static ncclResult_t note_cards(struct kl_bootstrap *b, const unsigned char *wire, struct kl_processes *p,
                               struct kl_card *cards)
{
    size_t n = (size_t)b->nranks, first = (size_t)p->first[b->home->process];

    for (size_t i = 0; i < n; i++) {
        struct kl_card card;
        if (!kl_card_decode(wire + i * KL_CARD_WIRE, &card) || card.rank >= b->nranks || cards[card.rank].naddresses)
            return no_sense(b);
        cards[card.rank] = card;
        p->rank[(first + i) % n] = card.rank;
    }
    for (int i = 0; i < p->n; i++)
        for (int k = p->first[i]; k < p->first[i + 1]; k++) p->of_rank[p->rank[k]] = i;
    return ncclSuccess;
}

/* By place, as the members have them. */
static void write_own_cards(struct kl_home *h, unsigned char *wire)
{
    pthread_mutex_lock(&h->lock);
    for (int i = 0; i < h->nmembers; i++) {
        const struct kl_bootstrap *m = h->member[i]; /* all are here, or the exchange is broken */
        if (m) kl_card_encode(&m->cards[m->rank], wire + (size_t)i * KL_CARD_WIRE);
    }
    pthread_mutex_unlock(&h->lock);
}

static ncclResult_t gather_cards(struct kl_bootstrap *b, struct kl_processes *p, unsigned char *wire,
                                 struct kl_card *cards, uint64_t deadline)
{
    struct parcels parcels = {.first = p->first, .bytes = KL_CARD_WIRE};

    KL_TRY(count_members(b, p, deadline));
    write_own_cards(b->home, wire);
    KL_TRY(gather_onwards(b, &parcels, wire, deadline));
    return note_cards(b, wire, p, cards);
}

static ncclResult_t exchange_cards(struct kl_bootstrap *b, struct round *r, uint64_t deadline)
{
    struct kl_home *h = r->home;
    size_t n = (size_t)h->nranks;
    unsigned char *wire = malloc(n * KL_CARD_WIRE);
    struct kl_card *cards = calloc(n, sizeof *cards);
    struct kl_processes p = {.n = h->nprocesses,
                             .of_rank = malloc(n * sizeof *p.of_rank),
                             .first = calloc((size_t)h->nprocesses + 1, sizeof *p.first),
                             .rank = malloc(n * sizeof *p.rank)};
    bool there = wire && cards && p.of_rank && p.first && p.rank;
    ncclResult_t rc = there ? gather_cards(b, &p, wire, cards, deadline) : KL_NOMEM("the addresses of all ranks");

    free(wire);
    if (rc) {
        free(cards);
        kl_processes_fini(&p);
        return rc;
    }
    pthread_mutex_lock(&h->lock);
    h->cards = cards;
    h->processes = p;
    pthread_mutex_unlock(&h->lock);
    return ncclSuccess;
}

/* ---- exchanges ---- */

static ncclResult_t speak(struct kl_bootstrap *b, struct round *r,
                          ncclResult_t (*fn)(struct kl_bootstrap *b, struct round *r, uint64_t deadline))
{
    bool late;

    ncclResult_t rc = await(b, r, COMPLETE, kl_deadline_in_ms(b->timeout_ms), &late);
    if (late) rc = nothing_came(b, first_missing(r));
    if (!rc) rc = fn(b, r, kl_deadline_in_ms(b->timeout_ms + GRACE_MS));
    pthread_mutex_lock(&r->home->lock);
    if (rc)
        breaks(r, rc, kl_error_text());
    else
        set_state(r, DONE);
    pthread_mutex_unlock(&r->home->lock);
    return rc;
}

/* The speaker waits for its members, and then for other speakers. */
static ncclResult_t hear(struct kl_bootstrap *b, struct round *r)
{
    bool late;

    ncclResult_t rc = await(b, r, DONE, kl_deadline_in_ms(2 * (b->timeout_ms + GRACE_MS)), &late);
    return late ? nothing_came(b, rank_at(r->home, 0)) : rc;
}

static ncclResult_t run_round(struct kl_bootstrap *b, const void *record, size_t bytes,
                              ncclResult_t (*fn)(struct kl_bootstrap *b, struct round *r, uint64_t deadline),
                              struct round **out)
{
    struct kl_home *h = b->home;

    b->exchanges++;
    pthread_mutex_lock(&h->lock);
    struct round *r = arrive(h, b, record, bytes);
    pthread_mutex_unlock(&h->lock);
    if (!r) return KL_NOMEM("the records of all ranks");
    ncclResult_t rc = b->lodging.place ? hear(b, r) : speak(b, r, fn);
    if (rc)
        kl_records_drop(&r->records);
    else
        *out = r;
    return rc;
}

ncclResult_t kl_home_meet(struct kl_bootstrap *b)
{
    struct round *r;

    KL_TRY(lodge(b, enter));
    KL_TRY(run_round(b, NULL, 0, exchange_cards, &r));
    use_cards(b, b->home);
    kl_records_drop(&r->records);
    return ncclSuccess;
}

ncclResult_t kl_bootstrap_gather(struct kl_bootstrap *b, const void *record, size_t bytes, struct kl_records **out)
{
    struct round *r;

    KL_TRY(kl_state_check_owner(b));
    KL_TRY(run_round(b, record, bytes, exchange, &r));
    *out = &r->records;
    return ncclSuccess;
}

void kl_records_drop(struct kl_records *records)
{
    struct round *r = (struct round *)(void *)records;
    struct kl_home *h = r->home;

    pthread_mutex_lock(&h->lock);
    drop(r);
    pthread_mutex_unlock(&h->lock);
}
