/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/soak/program.h"

#include "tests/soak/draw.h"

#include <stdlib.h>
#include <string.h>

/* State of a drawing beside the program. */
struct drawing {
    struct soak_program *p;
    uint64_t seed;
    bool alive[SOAK_COMMS];
};

/* ---- the job ---- */

static void set(struct soak_program *p, const char *name, const char *value)
{
    if (!value || p->nsettings == SOAK_SETTINGS) return;
    snprintf(p->setting[p->nsettings++], sizeof p->setting[0], "%s=%s", name, value);
}

/* NULL leaves the default. */
#define ONE_OF(seed, ...)                                                                                              \
    ((const char *const[]){__VA_ARGS__})[soak_pick(seed, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *))]

bool soak_is_on_gpus(void)
{
    const char *devices = getenv("KOLO_DEVICES");

    return devices && !strcmp(devices, "cuda");
}

/* Every list of algorithms has Ring, which serves everything everywhere. */
static void draw_settings(struct drawing *d)
{
    struct soak_program *p = d->p;
    uint64_t *s = &d->seed;

    set(p, "NCCL_ALGO",
        ONE_OF(s, NULL, NULL, "Ring", "Ring;allreduce:Tree", "Ring;allreduce:OneShot,Ring", "^OneShot"));
    set(p, "NCCL_PROTO", ONE_OF(s, NULL, NULL, NULL, "LL", "LL128", "Simple"));
    if (p->nsettings) set(p, "NCCL_PAT_ENABLE", ONE_OF(s, NULL, "0"));
    const char *channels = ONE_OF(s, NULL, NULL, "1", "2", "3");
    set(p, "NCCL_MIN_NCHANNELS", channels);
    set(p, "NCCL_MAX_NCHANNELS", channels);
    set(p, "NCCL_BUFFSIZE", ONE_OF(s, NULL, NULL, "4096", "20000", "64K"));
    set(p, "NCCL_CHECK_MODE", ONE_OF(s, NULL, "DEBUG_GLOBAL", "FIRST_USE", "DEBUG_LOCAL"));
    set(p, "NCCL_RUNTIME_CONNECT", ONE_OF(s, NULL, NULL, "0"));
    const char *without_p2p = ONE_OF(s, NULL, NULL, NULL, "1");
    set(p, "NCCL_P2P_DISABLE", soak_is_on_gpus() ? NULL : without_p2p); /* GPUs without it are refused */
    if (p->hosts > 1) set(p, "KOLO_NET_CRYPT", ONE_OF(s, NULL, NULL, "1"));
    if (p->hosts > 1) set(p, "NCCL_SOCKET_NTHREADS", ONE_OF(s, NULL, NULL, "1", "2"));
}

/* Threads of one process, processes, some of both; then hosts. */
static void draw_places(struct drawing *d)
{
    static const struct {
        int processes, threads;
    } shapes[] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {2, 1}, {3, 1}, {4, 1}, {2, 2}, {3, 2}, {2, 1}, {1, 6}};
    int k = soak_pick(&d->seed, sizeof shapes / sizeof shapes[0]);

    d->p->processes = shapes[k].processes;
    d->p->threads = shapes[k].threads;
    d->p->n = d->p->processes * d->p->threads;
    d->p->hosts = soak_once_in(&d->seed, 2) ? 1 + soak_pick(&d->seed, d->p->processes) : 1;
    d->p->blocking = !soak_once_in(&d->seed, 5);
}

/* ---- communicators ---- */

int soak_comm_rank(const struct soak_comm *c, int rank)
{
    for (int r = 0; r < c->n; r++)
        if (c->member[r] == rank) return r;
    return -1;
}

static int draw_comm(struct drawing *d)
{
    int c;

    do c = soak_pick(&d->seed, d->p->ncomms);
    while (!d->alive[c]);
    return c;
}

static int count_alive(const struct drawing *d)
{
    int n = 0;

    for (int c = 0; c < d->p->ncomms; c++) n += d->alive[c];
    return n;
}

/* Ordered by key, then by rank: one more member behind those with keys not larger. */
static void add_member(const struct soak_step *s, struct soak_comm *child, const struct soak_comm *parent, int rank)
{
    int at = child->n++;

    for (; at && s->key[soak_comm_rank(parent, child->member[at - 1])] > s->key[rank]; at--)
        child->member[at] = child->member[at - 1];
    child->member[at] = parent->member[rank];
}

static int new_comm(struct drawing *d)
{
    int c = d->p->ncomms++;

    d->alive[c] = true;
    return c;
}

/* Into two halves at most, some ranks going without; one colour and keys in order make a copy. */
static void draw_split(struct drawing *d, struct soak_step *s)
{
    const struct soak_comm *parent = &d->p->comm[s->comm];
    bool copy = soak_once_in(&d->seed, 3);
    int made[2] = {-1, -1};

    for (int r = 0; r < parent->n; r++) {
        s->colour[r] = copy ? 0 : soak_pick(&d->seed, 5) / 2;
        if (s->colour[r] == 2) s->colour[r] = -1;
        s->key[r] = copy ? r : soak_pick(&d->seed, 4);
        s->child[r] = -1;
    }
    for (int r = 0; r < parent->n; r++) {
        if (s->colour[r] < 0) continue;
        int *c = &made[s->colour[r]];
        if (*c < 0) *c = new_comm(d);
        s->child[r] = *c;
        add_member(s, &d->p->comm[*c], parent, r);
    }
}

static void draw_shrink(struct drawing *d, struct soak_step *s)
{
    const struct soak_comm *parent = &d->p->comm[s->comm];
    int kept = soak_pick(&d->seed, parent->n), c = new_comm(d);

    for (int r = 0; r < parent->n; r++) {
        bool out = r != kept && soak_once_in(&d->seed, 3);
        s->child[r] = out ? -1 : c;
        if (out) s->excluded[s->nexcluded++] = r;
    }
    if (!s->nexcluded && parent->n > 1) { /* nothing to be left out is refused */
        int r = (kept + 1) % parent->n;
        s->excluded[s->nexcluded++] = r;
        s->child[r] = -1;
    }
    for (int r = 0; r < parent->n; r++)
        if (s->child[r] == c) d->p->comm[c].member[d->p->comm[c].n++] = parent->member[r];
}

/* ---- operations ---- */

bool soak_reduces(enum soak_kind kind)
{
    return kind == SOAK_ALL_REDUCE || kind == SOAK_REDUCE || kind == SOAK_REDUCE_SCATTER ||
           kind == SOAK_REDUCE_SCATTER_V;
}

static bool is_integer(ncclDataType_t type)
{
    return type <= ncclUint64;
}

/* Often few, sometimes none, seldom many. */
static size_t draw_count(struct drawing *d)
{
    static const int most[] = {1, 3, 20, 20, 300, 300, 3000, 3000, 20000, 60000};

    if (soak_once_in(&d->seed, 12)) return 0;
    return 1 + (size_t)soak_pick(&d->seed, most[soak_pick(&d->seed, sizeof most / sizeof most[0])]);
}

/* Without a group each waits for the one before it, and no rank writes to itself. */
static void draw_messages(struct drawing *d, struct soak_operation *o, int n)
{
    o->together = n == 1 || !soak_once_in(&d->seed, 3);
    o->messages = 1 + soak_pick(&d->seed, SOAK_MESSAGES);
    for (int m = 0; m < o->messages; m++) {
        struct soak_message *x = &o->message[m];
        x->from = soak_pick(&d->seed, n);
        x->to = o->together ? soak_pick(&d->seed, n) : (x->from + 1 + soak_pick(&d->seed, n - 1)) % n;
        x->count = draw_count(d) / 2;
    }
}

static bool can_be_in_place(enum soak_kind kind)
{
    return kind <= SOAK_REDUCE_SCATTER || (kind >= SOAK_GATHER && kind <= SOAK_ALL_GATHER_V);
}

static void draw_operation(struct drawing *d, struct soak_operation *o, int comm)
{
    int n = d->p->comm[comm].n;

    o->comm = comm;
    o->key = soak_draw(&d->seed);
    o->kind = (enum soak_kind)soak_pick(&d->seed, SOAK_KINDS + 3);
    if (o->kind >= SOAK_KINDS) o->kind = o->kind == SOAK_KINDS ? SOAK_ALL_REDUCE : SOAK_MESSAGE;
    o->type = (ncclDataType_t)soak_pick(&d->seed, ncclNumTypes);
    o->reduction = (enum soak_reduction)soak_pick(&d->seed, is_integer(o->type) ? SOAK_REDUCTIONS : SOAK_BIT_AND);
    o->root = soak_pick(&d->seed, n);
    o->count = draw_count(d);
    if (o->kind >= SOAK_ALL_GATHER) o->count = (o->count + (size_t)n - 1) / (size_t)n;
    o->in_place = can_be_in_place(o->kind) && soak_once_in(&d->seed, 3);
    if (o->kind == SOAK_MESSAGE) draw_messages(d, o, n);
}

/* Operations of one communicator or of several. */
static void draw_operations(struct drawing *d, struct soak_step *s)
{
    bool several = soak_once_in(&d->seed, 2);
    int comm = draw_comm(d);

    s->operations = soak_once_in(&d->seed, 2) ? 1 : 1 + soak_pick(&d->seed, SOAK_GROUP);
    s->depth = s->operations > 1 || soak_once_in(&d->seed, 4) ? 1 + soak_pick(&d->seed, 3) / 2 : 0;
    for (int i = 0; i < s->operations; i++) draw_operation(d, &s->operation[i], several ? draw_comm(d) : comm);
    if (s->operations > 1 && soak_once_in(&d->seed, 3)) s->depth = 0;
}

/* Operations that one process can be waiting for when another one aborts: of this communicator only. */
static void draw_abort(struct drawing *d, struct soak_step *s)
{
    const struct soak_comm *c = &d->p->comm[s->comm];

    s->operations = soak_pick(&d->seed, SOAK_GROUP + 1);
    for (int i = 0; i < s->operations; i++) draw_operation(d, &s->operation[i], s->comm);
    for (int r = 0; r < c->n; r++) s->aborters |= (uint32_t)soak_pick(&d->seed, 2) << r;
    if (!s->aborters) s->aborters = 1u << soak_pick(&d->seed, c->n);
    s->by_another = soak_once_in(&d->seed, 2);
    d->alive[s->comm] = false;
}

/* ---- steps ---- */

static enum soak_act draw_act(struct drawing *d)
{
    int k = soak_pick(&d->seed, 24), room = SOAK_COMMS - d->p->ncomms;

    if (k < 3 && room >= 2) return SOAK_SPLIT;
    if (k == 3 && room >= 1) return SOAK_SHRINK;
    if (k <= 5 && count_alive(d) > 1) return SOAK_LEAVE;
    return k == 6 && count_alive(d) > 1 ? SOAK_ABORT : SOAK_OPERATE;
}

static void draw_step(struct drawing *d, struct soak_step *s)
{
    s->act = draw_act(d);
    s->wait = s->act != SOAK_OPERATE || !soak_once_in(&d->seed, 3);
    if (s->act != SOAK_OPERATE) s->comm = draw_comm(d);
    if (s->act == SOAK_SHRINK && d->p->comm[s->comm].n == 1) s->act = SOAK_SPLIT;
    if (s->act == SOAK_SPLIT && SOAK_COMMS - d->p->ncomms < 2) s->act = SOAK_OPERATE;
    s->finalize = soak_once_in(&d->seed, 2);
    switch (s->act) {
    case SOAK_OPERATE:
        draw_operations(d, s);
        break;
    case SOAK_SPLIT:
        draw_split(d, s);
        break;
    case SOAK_SHRINK:
        draw_shrink(d, s);
        break;
    case SOAK_LEAVE:
        d->alive[s->comm] = false;
        break;
    case SOAK_ABORT:
        draw_abort(d, s);
        break;
    }
}

void soak_program_disturb(struct soak_program *p, bool hard)
{
    static const char *const also[] = {",descriptors", ",memory", ",drop",
                                       ",kill",        ",stop",   ",descriptors,memory,drop"};
    uint64_t seed = soak_key(p->seed, 1000);
    char text[64];

    p->hard = hard;
    snprintf(text, sizeof text, "%llu:delay,short%s", (unsigned long long)p->seed,
             hard ? also[soak_pick(&seed, sizeof also / sizeof also[0])] : "");
    set(p, "KOLO_CHAOS", text);
    if (!hard) return;
    set(p, "KOLO_TIMEOUT", "2"); /* a stopped rank is waited for no longer */
    set(p, "KOLO_BOOTSTRAP_TIMEOUT", "3");
}

void soak_program_draw(struct soak_program *p, uint64_t seed)
{
    struct drawing d = {.p = p, .seed = soak_key(seed, 0)};

    memset(p, 0, sizeof *p);
    p->seed = seed;
    draw_places(&d);
    draw_settings(&d);
    p->comm[new_comm(&d)].n = p->n;
    for (int r = 0; r < p->n; r++) p->comm[0].member[r] = r;
    p->nsteps = 4 + soak_pick(&d.seed, SOAK_STEPS - 3);
    for (int i = 0; i < p->nsteps; i++) draw_step(&d, &p->step[i]);
    if (soak_once_in(&d.seed, 6)) { /* the last communicator may be aborted with none left beside it */
        struct soak_step *last = &p->step[p->nsteps - 1];
        if (last->act != SOAK_OPERATE || !d.alive[0]) return;
        memset(last, 0, sizeof *last);
        last->act = SOAK_ABORT;
        last->wait = true;
        draw_abort(&d, last);
    }
}
