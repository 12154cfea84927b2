/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/recorded.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 512, WORD = 32, THREADS = 1024 };

const char *const kl_recorded_names[KL_REC_NAMES] = {
    "init",  "devices", "getProperties", "listen",    "connect",   "accept",      "regMr",       "deregMr", "isend",
    "irecv", "iflush",  "test",          "closeSend", "closeRecv", "closeListen", "makeVDevice", "finalize"};

/* The call of each thread that has not returned. */
struct open_calls {
    struct {
        long thread;
        size_t call;
        bool open;
    } of[THREADS];
    int n;
};

static int find_thread(struct open_calls *o, long thread)
{
    for (int i = 0; i < o->n; i++)
        if (o->of[i].thread == thread) return i;
    if (o->n == THREADS) return -1;
    o->of[o->n].thread = thread;
    o->of[o->n].open = false;
    return o->n++;
}

static int find_name(const char *word)
{
    for (int i = 0; i < KL_REC_NAMES; i++)
        if (!strcmp(word, kl_recorded_names[i])) return i;
    return -1;
}

static struct kl_recorded_call *add(struct kl_recorded *r)
{
    if (!(r->n & (r->n + 1))) { /* 2^k - 1: room for twice as many */
        struct kl_recorded_call *more = realloc(r->call, 2 * (r->n + 1) * sizeof *more);
        if (!more) return NULL;
        r->call = more;
    }
    r->call[r->n] = (struct kl_recorded_call){.name = KL_REC_NAMES};
    return &r->call[r->n++];
}

/* A line's words, one after the other; `good` until one is missing or is no number. */
struct words {
    const char *at;
    bool good;
};

static uint64_t next_number(struct words *w, int base)
{
    char *end;

    w->at += strspn(w->at, " ");
    const bool negative = *w->at == '-';
    const uint64_t value = negative ? (uint64_t)strtoll(w->at, &end, base) : strtoull(w->at, &end, base);
    w->good = w->good && end != w->at && strchr(" \n", *end);
    w->at = end;
    return value;
}

static void next_word(struct words *w, char word[WORD])
{
    w->at += strspn(w->at, " ");
    const size_t n = strcspn(w->at, " \n");

    w->good = w->good && n && n < WORD;
    snprintf(word, WORD, "%.*s", n < WORD ? (int)n : 0, w->at);
    w->at += n;
}

static bool starts(struct words *w, const char *line, const char *kind)
{
    *w = (struct words){.at = line + strlen(kind), .good = !strncmp(line, kind, strlen(kind))};
    return w->good;
}

static bool begin(struct kl_recorded *r, struct open_calls *open, const char *line)
{
    char word[WORD];
    struct kl_recorded_call c = {.name = KL_REC_NAMES};

    struct words w;

    if (!starts(&w, line, "call ")) return false;
    c.thread = (long)next_number(&w, 10);
    c.begun = next_number(&w, 10);
    next_word(&w, word);
    c.object = next_number(&w, 16);
    c.bytes = next_number(&w, 10);
    c.extra = next_number(&w, 16);
    if (!w.good) return false;
    const int name = find_name(word), at = find_thread(open, c.thread);
    struct kl_recorded_call *new = name >= 0 && at >= 0 && !open->of[at].open ? add(r) : NULL;
    if (!new) return false;
    c.name = (enum kl_recorded_name)name;
    *new = c;
    open->of[at].call = r->n - 1;
    open->of[at].open = true;
    return true;
}

static bool end(struct kl_recorded *r, struct open_calls *open, const char *line)
{
    char word[WORD];
    long thread;
    struct kl_recorded_call back;

    struct words w;

    if (!starts(&w, line, "back ")) return false;
    thread = (long)next_number(&w, 10);
    back.ended = next_number(&w, 10);
    next_word(&w, word);
    back.result = (int)next_number(&w, 10);
    back.value = (int)next_number(&w, 10);
    back.out = next_number(&w, 16);
    back.out_extra = next_number(&w, 16);
    if (!w.good) return false;
    const int at = find_thread(open, thread);
    if (at < 0 || !open->of[at].open) return false;
    struct kl_recorded_call *c = &r->call[open->of[at].call];
    open->of[at].open = false;
    if ((int)c->name != find_name(word) || back.ended < c->begun) return false;
    c->ended = back.ended;
    c->result = back.result;
    c->value = back.value;
    c->out = back.out;
    c->out_extra = back.out_extra;
    return true;
}

bool kl_recorded_read(const char *file, struct kl_recorded *r, char *why, size_t why_size)
{
    struct open_calls *open = calloc(1, sizeof *open);
    FILE *from = fopen(file, "re");
    char line[LINE];
    bool good = open && from;

    *r = (struct kl_recorded){.file = file};
    if (!good) snprintf(why, why_size, "%s: %s", file, strerror(errno));
    for (int number = 1; good && fgets(line, sizeof line, from); number++) {
        if (!strchr(line, '\n')) break; /* the process was killed while it wrote */
        good = !strncmp(line, "call ", 5) ? begin(r, open, line) : !strncmp(line, "back ", 5) && end(r, open, line);
        if (!good)
            snprintf(why, why_size, "%s:%d: no call of a net plugin; kolo plugin record writes them", file, number);
    }
    if (good && !r->n) good = false, snprintf(why, why_size, "%s: it has no call", file);
    if (from) fclose(from);
    free(open);
    if (!good) kl_recorded_free(r);
    return good;
}

void kl_recorded_free(struct kl_recorded *r)
{
    free(r->call);
    *r = (struct kl_recorded){.file = r->file};
}
