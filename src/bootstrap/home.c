/* SPDX-License-Identifier: Apache-2.0 */
#include "bootstrap/home.h"

#include "base/clock.h"
#include "base/error.h"
#include "bootstrap/exchange.h"
#include "bootstrap/failure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Speakers wait for each other longer than for their own members, and members longer than speakers: who knows best complains first. */
enum { GRACE_MS = 1000 };

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
    char text[KL_ERROR_TEXT]; /* where it is broken */
    unsigned char table[];    /* by rank */
};

struct kl_home {
    struct kl_home *next; /* in the list of those that not all have entered */
    struct kl_key name;
    struct kl_card *cards; /* by rank */
    int nranks, process, nprocesses, nmembers;
    int32_t *first; /* by process, one more at the end: where its ranks begin in `rank`; */
    int32_t *rank;  /* all, by process and ascending; processes by their lowest */

    pthread_mutex_t lock;
    /* under lock: */
    struct kl_bootstrap **member; /* by place among the members; NULL: not here */
    int entered, left;            /* so far */
    int gone;                     /* the rank that left first; -1 */
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

/* ---- who lives where ---- */

/* Any order that brings those of one process together. */
static int compare_processes(const struct kl_card *a, const struct kl_card *b)
{
    if (a->pid != b->pid) return a->pid < b->pid ? -1 : 1;
    if (a->naddresses != b->naddresses) return a->naddresses < b->naddresses ? -1 : 1;
    int addresses = memcmp(a->address, b->address, (size_t)a->naddresses * sizeof a->address[0]);
    return addresses ? addresses : strncmp(a->host, b->host, sizeof a->host);
}

static int by_process(const void *a, const void *b)
{
    const struct kl_card *const *x = a, *const *y = b;
    int order = compare_processes(*x, *y);

    return order ? order : (*x)->rank - (*y)->rank;
}

/* `process` by rank: the lowest rank of the same process. */
static void find_speakers(const struct kl_card **sorted, int n, int32_t *speaker)
{
    for (int i = 0, begin = 0; i < n; i++) {
        if (compare_processes(sorted[i], sorted[begin])) begin = i;
        speaker[sorted[i]->rank] = sorted[begin]->rank;
    }
}

/* Processes in the order of their speakers. */
static void number_processes(struct kl_home *h, const int32_t *speaker, int32_t *number)
{
    int at = 0;

    for (int r = 0; r < h->nranks; r++)
        if (speaker[r] == r) {
            number[r] = h->nprocesses++;
            h->first[number[r] + 1] = 0;
        }
    for (int r = 0; r < h->nranks; r++) h->first[number[speaker[r]] + 1]++;
    for (int p = 0; p < h->nprocesses; p++) h->first[p + 1] += h->first[p];
    for (int r = 0; r < h->nranks; r++) { /* first[p] moves to the end of p, which is where p + 1 begins */
        at = h->first[number[speaker[r]]]++;
        h->rank[at] = r;
    }
    memmove(h->first + 1, h->first, (size_t)h->nprocesses * sizeof *h->first);
    h->first[0] = 0;
}

static ncclResult_t group(struct kl_home *h, int rank)
{
    size_t n = (size_t)h->nranks;
    const struct kl_card **sorted = malloc(n * sizeof(const struct kl_card *));
    int32_t *speaker = malloc(2 * n * sizeof *speaker), *number = speaker + n;
    bool there = sorted && speaker;

    for (size_t r = 0; there && r < n; r++) sorted[r] = &h->cards[r];
    if (there) {
        qsort(sorted, n, sizeof(const struct kl_card *), by_process);
        find_speakers(sorted, h->nranks, speaker);
        number_processes(h, speaker, number);
        h->process = number[speaker[rank]];
        h->nmembers = h->first[h->process + 1] - h->first[h->process];
    }
    free(sorted);
    free(speaker);
    return there ? ncclSuccess : KL_NOMEM("who lives where");
}

static int speaker_of(const struct kl_home *h, int process)
{
    return h->rank[h->first[process]];
}

/* The place of a rank among the members; -1 for others. */
static int place_of(const struct kl_home *h, int rank)
{
    const int32_t *members = h->rank + h->first[h->process];
    int low = 0, high = h->nmembers;

    while (low < high) {
        int middle = (low + high) / 2;
        if (members[middle] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->nmembers && members[low] == rank ? low : -1;
}

/* ---- life ---- */

static void destroy(struct kl_home *h)
{
    pthread_mutex_destroy(&h->lock);
    free(h->cards);
    free(h->first);
    free(h->rank);
    free(h->member);
    free(h);
}

/* It takes over the cards, if it succeeds. */
static ncclResult_t create(struct kl_bootstrap *b, const struct kl_key *name, struct kl_home **out)
{
    struct kl_home *h = calloc(1, sizeof *h);
    size_t n = (size_t)b->nranks;

    if (!h) return KL_NOMEM("what the ranks of a process share");
    *h = (struct kl_home){.name = *name, .cards = b->cards, .nranks = b->nranks, .gone = -1};
    pthread_mutex_init(&h->lock, NULL);
    h->first = calloc(n + 1, sizeof *h->first);
    h->rank = malloc(n * sizeof *h->rank);
    ncclResult_t rc = h->first && h->rank ? group(h, b->rank) : KL_NOMEM("who lives where");
    if (!rc) h->member = calloc((size_t)h->nmembers, sizeof(struct kl_bootstrap *));
    if (!rc && !h->member) rc = KL_NOMEM("the ranks of a process");
    if (rc) {
        h->cards = NULL;
        destroy(h);
        return rc;
    }
    h->next = waiting;
    waiting = h;
    *out = h;
    return ncclSuccess;
}

static void unlist(const struct kl_home *home)
{
    struct kl_home **link = &waiting;

    while (*link && *link != home) link = &(*link)->next;
    if (*link) *link = home->next;
}

static struct kl_home *find(const struct kl_key *name, int rank)
{
    struct kl_home *h = waiting;

    while (h && (memcmp(&h->name, name, sizeof *name) || place_of(h, rank) < 0 || h->member[place_of(h, rank)]))
        h = h->next;
    return h;
}

/* The table of the home instead of the own one, which a new home has taken. */
static void use_cards(struct kl_bootstrap *b, struct kl_home *h)
{
    pthread_mutex_lock(&b->lock);
    if (b->cards != h->cards) free(b->cards);
    b->cards = h->cards;
    pthread_mutex_unlock(&b->lock);
}

/* Under list_lock. */
static ncclResult_t enter(struct kl_bootstrap *b)
{
    const struct kl_key name = kl_bootstrap_key(b, "kolo home");
    struct kl_home *h = find(&name, b->rank);

    if (!h) KL_TRY(create(b, &name, &h));
    use_cards(b, h);
    pthread_mutex_lock(&h->lock);
    h->member[place_of(h, b->rank)] = b;
    bool complete = ++h->entered == h->nmembers;
    pthread_mutex_unlock(&h->lock);
    if (complete) unlist(h);
    b->home = h;
    return ncclSuccess;
}

ncclResult_t kl_home_enter(struct kl_bootstrap *b)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, install_fork_handlers);
    pthread_mutex_lock(&list_lock);
    ncclResult_t rc = enter(b);
    pthread_mutex_unlock(&list_lock);
    return rc;
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
    memcpy(r->table + (size_t)b->rank * bytes, record, bytes);
    r->here[place_of(h, b->rank)] = true;
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

static void free_rounds(struct kl_home *h)
{
    for (struct round *r; (r = h->rounds);) {
        h->rounds = r->next;
        free(r->here);
        free(r);
    }
}

void kl_home_leave(struct kl_bootstrap *b)
{
    struct kl_home *h = b->home;

    if (!h) return;
    int place = place_of(h, b->rank);
    pthread_mutex_lock(&list_lock);
    pthread_mutex_lock(&h->lock);
    h->member[place] = NULL;
    if (h->gone < 0) h->gone = b->rank;
    for (struct round *r = h->rounds; r; r = r->next)
        if (!r->here[place]) break_without(r, b->rank);
    bool last = ++h->left == h->entered;
    if (last && h->entered < h->nmembers) unlist(h);
    pthread_mutex_unlock(&h->lock);
    pthread_mutex_unlock(&list_lock);
    b->home = NULL;
    b->cards = NULL;
    if (!last) return;
    free_rounds(h);
    destroy(h);
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

static ncclResult_t nothing_came(struct kl_bootstrap *b, int rank)
{
    char who[KL_WHO_TEXT];

    pthread_mutex_lock(&b->lock);
    ncclResult_t rc =
        KL_FAIL(ncclRemoteError,
                "rank %d: nothing came from %s, of the same process, within %g s in phase %s; see whether it "
                "is stuck, or raise KOLO_BOOTSTRAP_TIMEOUT",
                b->rank, kl_who(b, rank, who), (double)b->timeout_ms / 1000, b->phase);
    pthread_mutex_unlock(&b->lock);
    return kl_failure_settle(b, rank, rc);
}

static int first_missing(struct round *r)
{
    const struct kl_home *h = r->home;
    int place = 0;

    pthread_mutex_lock(&r->home->lock);
    while (place < h->nmembers - 1 && r->here[place]) place++;
    pthread_mutex_unlock(&r->home->lock);
    return h->rank[h->first[h->process] + place];
}

/* ---- between processes ---- */

/* How many ranks there are in `count` processes from the own one on. */
static size_t ranks_from_here(const struct kl_home *h, int count)
{
    int end = h->process + count;

    if (end <= h->nprocesses) return (size_t)(h->first[end] - h->first[h->process]);
    return (size_t)(h->nranks - h->first[h->process] + h->first[end - h->nprocesses]);
}

static int speaker_at(const struct kl_home *h, int distance)
{
    return speaker_of(h, (h->process + distance + h->nprocesses) % h->nprocesses);
}

/* Bruck: after each step there are twice as many processes' records, the own ones and those after them, in order. */
static ncclResult_t gather_onwards(struct kl_bootstrap *b, const struct kl_home *h, unsigned char *mine, size_t bytes)
{
    uint64_t deadline = kl_deadline_in_ms(b->timeout_ms + GRACE_MS);

    for (int have = 1; have < h->nprocesses; have *= 2) {
        int more = have < h->nprocesses - have ? have : h->nprocesses - have;
        size_t had = ranks_from_here(h, have) * bytes;
        struct kl_step s = {.to = speaker_at(h, -have),
                            .from = speaker_at(h, have),
                            .out = mine,
                            .in = mine + had,
                            .out_bytes = ranks_from_here(h, more) * bytes,
                            .in_bytes = ranks_from_here(h, have + more) * bytes - had};
        KL_TRY(kl_exchange_step(b, &s, deadline));
    }
    return ncclSuccess;
}

/* All members' records are in the table; then those of all ranks. */
static ncclResult_t exchange(struct kl_bootstrap *b, struct round *r)
{
    const struct kl_home *h = r->home;
    size_t bytes = r->bytes, n = (size_t)h->nranks;
    const int32_t *list = h->rank;
    size_t first = (size_t)h->first[h->process], own = (size_t)h->nmembers;
    unsigned char *mine;

    if (h->nprocesses == 1) return ncclSuccess;
    mine = malloc(n * bytes);
    if (!mine) return KL_NOMEM("an all-gather");
    for (size_t i = 0; i < own; i++) memcpy(mine + i * bytes, r->table + (size_t)list[first + i] * bytes, bytes);
    ncclResult_t rc = gather_onwards(b, h, mine, bytes);
    for (size_t i = own; i < n && !rc; i++)
        memcpy(r->table + (size_t)list[(first + i) % n] * bytes, mine + i * bytes, bytes);
    free(mine);
    return rc;
}

static ncclResult_t speak(struct kl_bootstrap *b, struct round *r)
{
    bool late;

    ncclResult_t rc = await(b, r, COMPLETE, kl_deadline_in_ms(b->timeout_ms), &late);
    if (late) rc = nothing_came(b, first_missing(r));
    if (!rc) rc = exchange(b, r);
    pthread_mutex_lock(&r->home->lock);
    if (rc)
        breaks(r, rc, kl_error_text());
    else
        set_state(r, DONE);
    pthread_mutex_unlock(&r->home->lock);
    return rc;
}

static ncclResult_t hear(struct kl_bootstrap *b, struct round *r)
{
    bool late;

    /* the speaker waits for its members, and then for other speakers */
    ncclResult_t rc = await(b, r, DONE, kl_deadline_in_ms(2 * (b->timeout_ms + GRACE_MS)), &late);
    return late ? nothing_came(b, speaker_of(r->home, r->home->process)) : rc;
}

/* ---- */

ncclResult_t kl_bootstrap_gather(struct kl_bootstrap *b, const void *record, size_t bytes, struct kl_records **out)
{
    struct kl_home *h = b->home;

    KL_TRY(kl_state_check_owner(b));
    b->exchanges++;
    pthread_mutex_lock(&h->lock);
    struct round *r = arrive(h, b, record, bytes);
    pthread_mutex_unlock(&h->lock);
    if (!r) return KL_NOMEM("the records of all ranks");
    ncclResult_t rc = b->rank == speaker_of(h, h->process) ? speak(b, r) : hear(b, r);
    if (rc)
        kl_records_drop(&r->records);
    else
        *out = &r->records;
    return rc;
}

void kl_records_drop(struct kl_records *records)
{
    struct round *r = (struct round *)(void *)records;
    struct kl_home *h = r->home;

    pthread_mutex_lock(&h->lock);
    drop(r);
    pthread_mutex_unlock(&h->lock);
}
