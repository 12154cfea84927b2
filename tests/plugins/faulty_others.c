/* SPDX-License-Identifier: Apache-2.0 */
/** faulty_others.c - a plugin with a fault that a check finds: FAULT is the check's number, 17 to 21. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void any_fn(void);

/* A further fault of the kind, which FAULTY_OTHER names; without it the one that is described below. */
__attribute__((unused)) static int has(const char *name)
{
    const char *fault = getenv("FAULTY_OTHER");

    return fault && !strcmp(fault, name);
}

static int nothing(void)
{
    return 0;
}

#if FAULT == 17
struct {
    const char *name;
    any_fn *fn[18];
} ncclCollNetPlugin_v12 = {"FaultyCollNet", {(any_fn *)nothing}};
#elif FAULT == 18
/* It writes a cell that is forbidden. */
static int get(void *context, int func, size_t bytes, int npipe, float (*table)[3], int nalgos, int nprotos,
               int registered, int *nchannels)
{
    (void)context, (void)func, (void)bytes, (void)npipe, (void)nalgos, (void)nprotos, (void)registered, (void)nchannels;
    if (has("none"))
        for (int i = 0; i < nalgos; i++)
            for (int k = 0; k < nprotos; k++) table[i][k] = -1;
    else if (has("nan"))
        table[0][0] = NAN;
    else if (has("slow"))
        usleep(2000);
    else if (has("unknown"))
        return func > 14 ? (abort(), 0) : 0;
    else
        table[0][1] = 0;
    return 0;
}
struct {
    const char *name;
    any_fn *init, *get, *finalize;
} ncclTunerPlugin_v4 = {"FaultyTuner", (any_fn *)nothing, (any_fn *)get, (any_fn *)nothing};
#elif FAULT == 19
/* It wants a parent. */
static int start(void *context, void **handle, const unsigned char *descr)
{
    static int open;
    char *parent;
    int pid;

    (void)context;
    *handle = NULL;
    memcpy(&parent, descr + 8, sizeof parent);
    memcpy(&pid, descr + 24, sizeof pid);
    if (has("pool")) {
        if (descr[0] == 2 && ++open > 15000 && !parent) abort(); /* more collectives than it keeps */
        if (parent) open = 0;
        return 0;
    }
    if (has("other")) return descr[0] == 8 && pid != getpid() ? *parent : 0;
    if (has("slow")) usleep(1500);
    if (has("slow")) return 0;
    for (int i = 8; i < 16; i++)
        if (descr[i]) return 0;
    return descr[0] == 0x10 ? 3 : 0;
}
struct {
    const char *name;
    any_fn *init, *start, *stop, *state, *finalize;
} ncclProfiler_v4 = {"FaultyProfiler",  (any_fn *)nothing, (any_fn *)start,
                     (any_fn *)nothing, (any_fn *)nothing, (any_fn *)nothing};
#elif FAULT == 20
static const char *get(const char *name)
{
    static char text[64];

    if (has("threads")) { /* one buffer for all names */
        const char *value = getenv(name);
        if (!value) return NULL;
        snprintf(text, sizeof text, "%.60s", value);
        if (strcmp(name, "PATH") != 0) usleep(1);
        return strcmp(name, "PATH") ? text : value;
    }
    return "";
}
struct {
    const char *name;
    any_fn *init, *finalize, *get;
} ncclEnvPlugin_v2 = {"FaultyEnv", (any_fn *)nothing, (any_fn *)nothing, (any_fn *)get};
#else
struct {
    const char *name;
    any_fn *fn[20];
} ncclRmaPlugin_v14 = {"FaultyRma", {(any_fn *)nothing}};
#endif
