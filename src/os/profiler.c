/* SPDX-License-Identifier: Apache-2.0 */
#include "os/profiler.h"

#include "base/log.h"
#include "os/plugin.h"
#include "os/profiler_abi.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 63, INIT_MASK = 0 };

struct params {
    char plugin[KL_PARAM_TEXT];
};

static const struct kl_param rows[] = {
    KL_PARAM_STRING(struct params, plugin, "NCCL_PROFILER_PLUGIN", KL_OWN, "",
                    "profiler plugin, a name or file; \"none\": no plugin; without it, libnccl-profiler.so"),
};

const struct kl_param_set kl_profiler_param_set = KL_PARAM_SET("profiler", struct params, rows);

/* The plugin of the process. */
static struct {
    pthread_mutex_t lock;
    const struct kl_profiler_table *_Atomic table; /* NULL: none, or not looked for; written under the lock */
    void *library;
    int version, users;
    bool none;        /* looked for the default, and there is none */
    _Atomic int mask; /* written by the plugin, at init and at any later time */
    char name[NAME + 1 + KL_PLUGIN_FILE + 16], file[KL_PLUGIN_FILE];
} process = {.lock = PTHREAD_MUTEX_INITIALIZER};

struct kl_profiler {
    const struct kl_profiler_table *table;
    int version;
    void *context;
    struct kl_profiler_place place;
};

KL_THREAD_LOCAL const struct kl_profile_event *kl_profile_parent;

/* ---- loading ---- */

static bool has_functions(const struct kl_profiler_table *t)
{
    return t->init && t->start && t->stop && t->state && t->finalize && kl_plugin_is_text(t->name, NAME);
}

static const struct kl_profiler_table *read_table(void *library, const char *file, int *version)
{
    const struct kl_profiler_table *t =
        kl_plugin_symbol(library, file, "ncclProfiler_v", KL_PROFILER_NEWEST, KL_PROFILER_OLDEST, version);

    if (!t || has_functions(t)) return t;
    KL_INFO(KL_INIT | KL_PROFILE, "%s: its profiler v%d has no printable name or lacks a function, and is not used",
            file, *version);
    return NULL;
}

static void *open_library(const struct kl_profiler_place *place, const char *name, char *file)
{
    void *library = kl_plugin_open("profiler", name, file);

    return library || *name || !place->net_library ? library : place->net_library(file);
}

static bool load(const struct kl_profiler_place *place)
{
    struct params params;

    if (kl_load_relaxed(&process.table)) return true;
    kl_param_load(&kl_profiler_param_set, &params);
    if (process.none && !*params.plugin) return false;
    process.library = open_library(place, params.plugin, process.file);
    const struct kl_profiler_table *t =
        process.library ? read_table(process.library, process.file, &process.version) : NULL;
    kl_store_release(&process.table, t); /* pairs with kl_profile_net_event */
    if (t) {
        snprintf(process.name, sizeof process.name, "%s (%s, v%d)", t->name, process.file, process.version);
        return true;
    }
    kl_plugin_close(process.library);
    process.library = NULL;
    process.none = !*params.plugin;
    return false;
}

static void unload(void)
{
    if (process.users) return;
    kl_plugin_close(process.library);
    process.library = NULL;
    kl_store_release(&process.table, (const struct kl_profiler_table *)NULL);
}

/* ---- contexts ---- */

/* Under the lock. The mask is a plain int for the plugin, which writes it when it likes. */
static struct kl_profiler *start(const struct kl_profiler_place *place)
{
    struct kl_profiler *p = calloc(1, sizeof *p);

    if (!p) return NULL;
    *p = (struct kl_profiler){.table = kl_load_relaxed(&process.table), .version = process.version, .place = *place};
    const int rc = kl_profiler_call_init(p->version, p->table, place, &p->context, (int *)&process.mask);
    if (rc) {
        KL_INFO(KL_INIT | KL_PROFILE, "PROFILER/Plugin: init of %s returned %d, and it is not used", process.name, rc);
        free(p);
        return NULL;
    }
    process.users++;
    KL_INFO(KL_INIT | KL_PROFILE, "PROFILER/Plugin: using %s, events %#x", process.name,
            (unsigned)kl_load_relaxed(&process.mask));
    return p;
}

struct kl_profiler *kl_profiler_open(const struct kl_profiler_place *place)
{
    struct kl_profiler *p = NULL;

    pthread_mutex_lock(&process.lock);
    if (load(place)) {
        p = start(place);
        unload();
    }
    pthread_mutex_unlock(&process.lock);
    return p;
}

void kl_profiler_close(struct kl_profiler *p)
{
    if (!p) return;
    pthread_mutex_lock(&process.lock);
    const int rc = p->table->finalize(p->context);
    if (rc) KL_INFO(KL_PROFILE, "PROFILER/Plugin: finalize of %s returned %d", process.name, rc);
    process.users--;
    unload();
    pthread_mutex_unlock(&process.lock);
    free(p);
}

/* ---- the mask ---- */

/* A child's ancestors are started as well. */
static uint64_t with_ancestors(uint64_t mask)
{
    if (mask & KL_PROFILE_NET_PLUGIN) mask |= KL_PROFILE_PROXY_STEP;
    if (mask & KL_PROFILE_PROXY_STEP) mask |= KL_PROFILE_PROXY_OP;
    if (mask & (KL_PROFILE_PROXY_OP | KL_PROFILE_KERNEL_CH)) mask |= KL_PROFILE_COLL | KL_PROFILE_P2P;
    if (mask & (KL_PROFILE_COLL | KL_PROFILE_P2P)) mask |= KL_PROFILE_GROUP;
    if (mask & KL_PROFILE_COLL) mask |= KL_PROFILE_COLL_API;
    if (mask & KL_PROFILE_P2P) mask |= KL_PROFILE_P2P_API;
    if (mask & (KL_PROFILE_COLL_API | KL_PROFILE_P2P_API | KL_PROFILE_KERNEL_LAUNCH)) mask |= KL_PROFILE_GROUP_API;
    return mask;
}

/* Such events, or children of them. */
static bool wants(const struct kl_profiler *p, enum kl_profile_type type)
{
    if (!p) return false;
    return with_ancestors((uint64_t)kl_load_relaxed(&process.mask)) & kl_profiler_known(p->version) & type;
}

/* ---- events ---- */

void kl_profile_start(const struct kl_profiler *p, const struct kl_profile_descr *descr, struct kl_profile_event *event)
{
    unsigned char d[KL_PROFILER_DESCR];

    *event = (struct kl_profile_event){.type = descr->type};
    if (!wants(p, descr->type)) return;
    kl_profiler_describe(p->version, descr, &p->place, d);
    event->profiler = p;
    if (p->table->start(p->context, &event->handle, d)) event->handle = NULL;
}

void kl_profile_state(const struct kl_profile_event *event, enum kl_profile_state state, uint64_t value)
{
    unsigned char args[16];

    if (!event->handle) return;
    kl_profiler_state_args(event->profiler->version, state, value, args);
    (void)event->profiler->table->state(event->handle, (int)state, args);
}

void kl_profile_stop(struct kl_profile_event *event)
{
    if (event->handle) (void)event->profiler->table->stop(event->handle);
    event->handle = NULL;
}

/* ---- net plugins ---- */

enum { START, STOP, UPDATE, UPDATE_AND_STOP };

static int start_net_event(void **handle, const struct kl_profile_event *parent, int64_t plugin, void *data)
{
    struct kl_profile_event event;
    const struct kl_profile_descr d = {
        .type = KL_PROFILE_NET_PLUGIN, .parent = parent->handle, .plugin = plugin, .data = data};

    *handle = NULL;
    if (!parent->profiler) return 0;
    kl_profile_start(parent->profiler, &d, &event);
    *handle = event.handle;
    return 0;
}

/* The process's plugin; contexts share its handles. */
int kl_profile_net_event(void **handle, int type, void *parent, int64_t plugin, void *data)
{
    const struct kl_profiler_table *t = kl_load_acquire(&process.table);
    unsigned char args[16] = {0};

    if (!handle) return 0;
    if (type == START) return parent ? start_net_event(handle, parent, plugin, data) : 0;
    if (!*handle || !t) return 0;
    memcpy(args, &data, sizeof data);
    if (type == UPDATE || type == UPDATE_AND_STOP) (void)t->state(*handle, KL_PROFILE_NET_PLUGIN_UPDATE, args);
    if (type == STOP || type == UPDATE_AND_STOP) {
        (void)t->stop(*handle);
        *handle = NULL;
    }
    return 0;
}
