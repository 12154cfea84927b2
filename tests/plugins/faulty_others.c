/* SPDX-License-Identifier: Apache-2.0 */
/** faulty_others.c - a plugin with a fault that a check finds: FAULT is the check's number, 17 to 21. */
#include <stddef.h>
#include <stdint.h>

typedef void any_fn(void);

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
    (void)context;
    *handle = NULL;
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
    (void)name;
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
