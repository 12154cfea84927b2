/* SPDX-License-Identifier: Apache-2.0 */
/**
 * profiler.c - a profiler plugin: each call is a line of EXAMPLE_PROFILER_FILE.PID.RANK.
 *
 *     cc -shared -fPIC -o libnccl-profiler-lines.so profiler.c      (-DPROFILER_VERSION=1 ... for an older ABI; 7 by default)
 *     NCCL_PROFILER_PLUGIN=./libnccl-profiler-lines.so EXAMPLE_PROFILER_FILE=/tmp/events ...
 *
 *     start ID TYPE PARENT TEXT     TYPE: a bit of the mask; PARENT: its ID; 0: none
 *     state ID STATE VALUE
 *     stop ID
 *
 * EXAMPLE_PROFILER_EVENTS: the mask (all). Functions return 0. Any thread calls; events are kept until finalize, as children
 * may come after the stop of their parent.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef PROFILER_VERSION
#define PROFILER_VERSION 7
#endif

enum {
    ALL = 0xfff,
    COLL = 2,
    P2P = 4,
    PROXY_OP = 8,
    STEP = 0x10,
    KERNEL = 0x40,
    NET = 0x80,
    GROUP_API = 0x100,
    COLL_API = 0x200
};

typedef void profiler_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);

struct event {
    struct context *context;
    unsigned id;
    struct event *next;
};

struct context {
    pthread_mutex_t lock;
    FILE *to; /* opened with the first event, which has the rank */
    unsigned events;
    struct event *event;
};

/* ---- fields of descriptors, at offsets that versions have moved ---- */

static uint64_t number_at(const unsigned char *d, int at, int bytes)
{
    uint64_t value = 0;

    memcpy(&value, d + at, (size_t)bytes);
    return value;
}

static const char *text_at(const unsigned char *d, int at)
{
    const char *text;

    memcpy(&text, d + at, sizeof text);
    return text ? text : "";
}

static void print_coll(FILE *to, const unsigned char *d)
{
#if PROFILER_VERSION == 1
    fprintf(to, "func%u algo%u proto%u", d[48], d[106], d[107]);
#elif PROFILER_VERSION <= 3
    fprintf(to, "%s %s %s", text_at(d, 48), text_at(d, PROFILER_VERSION == 2 ? 112 : 104),
            text_at(d, PROFILER_VERSION == 2 ? 120 : 112));
#else
    fprintf(to, "%s %s %s %s", text_at(d, 32), text_at(d, 88), text_at(d, 96), text_at(d, 72));
#endif
}

static void print_message(FILE *to, const unsigned char *d)
{
#if PROFILER_VERSION == 1
    fprintf(to, "func%u peer %d", d[40], (int)number_at(d, 72, 4));
#elif PROFILER_VERSION <= 3
    fprintf(to, "%s peer %d", text_at(d, 40), (int)number_at(d, 72, 4));
#else
    fprintf(to, "%s peer %d", text_at(d, 24), (int)number_at(d, 56, 4));
#endif
}

static void print_fields(FILE *to, uint64_t type, const unsigned char *d)
{
    if (type == COLL) print_coll(to, d);
    if (type == P2P) print_message(to, d);
    if (type == PROXY_OP)
        fprintf(to, "pid %d channel %u peer %d steps %d send %d", (int)number_at(d, 24, 4), d[28],
                (int)number_at(d, 32, 4), (int)number_at(d, 36, 4), (int)number_at(d, 44, 4));
    if (type == STEP) fprintf(to, "step %d", (int)number_at(d, 24, 4));
    if (type == KERNEL) fprintf(to, "channel %u", d[24]);
    if (type == NET) fprintf(to, "plugin %llx", (unsigned long long)number_at(d, 24, 8));
    if (type == GROUP_API) fprintf(to, "depth %d", (int)number_at(d, 28, 4));
    if (type == COLL_API) fprintf(to, "%s", text_at(d, 24));
}

/* ---- events ---- */

static int open_file(struct context *c, int rank)
{
    const char *name = getenv("EXAMPLE_PROFILER_FILE");
    char path[1024];

    if (c->to) return 1;
    if (!name) return 0;
    snprintf(path, sizeof path, "%s.%d.%d", name, (int)getpid(), rank);
    c->to = fopen(path, "a");
    return c->to != NULL;
}

static int start(void *context, void **handle, void *descr)
{
    const unsigned char *d = descr;
    const uint64_t type = PROFILER_VERSION <= 4 ? d[0] : number_at(d, 0, 8);
    struct context *c = context;
    struct event *parent = (struct event *)(uintptr_t)number_at(d, 8, 8), *e = malloc(sizeof *e);

    *handle = NULL;
    if (!e) return 0;
    pthread_mutex_lock(&c->lock);
    if (!open_file(c, (int)number_at(d, 16, 4))) {
        free(e);
    } else {
        *e = (struct event){.context = c, .id = ++c->events, .next = c->event};
        c->event = e;
        fprintf(c->to, "start %u %llu %u ", e->id, (unsigned long long)type, parent ? parent->id : 0);
        print_fields(c->to, type, d);
        fprintf(c->to, "\n");
        *handle = e;
    }
    pthread_mutex_unlock(&c->lock);
    return 0;
}

static int stop(void *handle)
{
    struct event *e = handle;

    pthread_mutex_lock(&e->context->lock);
    fprintf(e->context->to, "stop %u\n", e->id);
    pthread_mutex_unlock(&e->context->lock);
    return 0;
}

static int state(void *handle, int number, void *args)
{
    struct event *e = handle;

    pthread_mutex_lock(&e->context->lock);
    fprintf(e->context->to, "state %u %d %llu\n", e->id, number, (unsigned long long)number_at(args, 0, 8));
    pthread_mutex_unlock(&e->context->lock);
    return 0;
}

/* ---- contexts ---- */

static int begin(void **context, int *mask)
{
    const char *events = getenv("EXAMPLE_PROFILER_EVENTS");
    struct context *c = calloc(1, sizeof *c);

    if (!c) return 2;
    pthread_mutex_init(&c->lock, NULL);
    *context = c;
    *mask = events ? (int)strtol(events, NULL, 0) : ALL;
    return 0;
}

#if PROFILER_VERSION <= 3
static int init(void **context, int *mask)
{
    return begin(context, mask);
}
#elif PROFILER_VERSION == 4
static int init(void **context, int *mask, const char *name, uint64_t hash, int nnodes, int nranks, int rank,
                profiler_logger *log)
{
    (void)name, (void)hash, (void)nnodes, (void)nranks, (void)rank, (void)log;
    return begin(context, mask);
}
#else
static int init(void **context, uint64_t comm, int *mask, const char *name, int nnodes, int nranks, int rank,
                profiler_logger *log)
{
    (void)comm, (void)name;
    log(3, 0x4000, __FILE__, __LINE__, "rank %d of %d on %d nodes", rank, nranks, nnodes);
    return begin(context, mask);
}
#endif

static int finalize(void *context)
{
    struct context *c = context;

    for (struct event *e = c->event, *next; e; e = next) {
        next = e->next;
        free(e);
    }
    if (c->to) fclose(c->to);
    pthread_mutex_destroy(&c->lock);
    free(c);
    return 0;
}

struct profiler {
    const char *name;
    void *init;
    int (*start)(void *context, void **handle, void *descr);
    int (*stop)(void *handle);
    int (*state)(void *handle, int number, void *args);
    int (*finalize)(void *context);
};

#define PROFILER_SYMBOL_OF(version) ncclProfiler_v##version
#define PROFILER_SYMBOL(version)    PROFILER_SYMBOL_OF(version)
extern const struct profiler PROFILER_SYMBOL(PROFILER_VERSION);
__attribute__((visibility("default")))
const struct profiler PROFILER_SYMBOL(PROFILER_VERSION) = {"ExampleLines", (void *)init, start, stop, state, finalize};
