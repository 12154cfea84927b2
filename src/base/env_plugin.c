/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env_plugin.h"

#include "base/atomic.h"
#include "base/plugin_name.h"
#include "base/text.h"
#include "include/nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLDEST = 1, NEWEST = 2, NOTES = 2048, NAME = 63 };

typedef void logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);
typedef int init_v1(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix);
typedef int init_v2(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, logger *log);

struct table {
    const char *name; /* v1: may be NULL */
    void (*init)(void);
    int (*finalize)(void);
    const char *(*get)(const char *name);
};

/* A text that the plugin returned once: texts are kept, as it may free its own. */
struct kept {
    char *text;
    struct kept *next;
};

static struct {
    pthread_mutex_t lock; /* of calls of the plugin, and of `kept` */
    const struct table *table;
    bool finalized;
    struct kept *kept;
    char origin[NAME + sizeof "env plugin "];
    char notes[NOTES]; /* lines for the log */
    bool is_problem;   /* a plugin that the user named is not used */
    void (*_Atomic log)(const char *text);
} plugin = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- notes ---- */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...)
{
    const size_t used = strlen(plugin.notes);
    va_list args;

    va_start(args, format);
    vsnprintf(plugin.notes + used, sizeof plugin.notes - used, format, args);
    va_end(args);
}

const char *kl_env_plugin_notes(bool *is_problem)
{
    *is_problem = plugin.is_problem;
    return plugin.notes;
}

void kl_env_plugin_log_to(void (*log)(const char *text))
{
    kl_store_release(&plugin.log, log);
}

/* The plugin's own lines. Until somebody logs them, they are notes. */
__attribute__((format(printf, 5, 6))) static void log_line(int level, unsigned long subsys, const char *file, int line,
                                                           const char *format, ...)
{
    void (*log)(const char *text) = kl_load_acquire(&plugin.log);
    char text[512];
    va_list args;

    (void)level, (void)subsys, (void)file, (void)line;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (log)
        log(text);
    else
        note("ENV/Plugin: %s\n", text);
}

/* ---- life ---- */

static void finalize(void)
{
    pthread_mutex_lock(&plugin.lock);
    if (plugin.table && !plugin.finalized) (void)plugin.table->finalize();
    plugin.finalized = true;
    pthread_mutex_unlock(&plugin.lock);
}

static bool start(const struct table *t, int version, const char *file)
{
    if (!t->init || !t->finalize || !t->get) {
        note("ENV/Plugin: %s: v%d has no init, finalize or getEnv, and is not used\n", file, version);
        return false;
    }
    const int rc = version == 1 ? ((init_v1 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX)
                                : ((init_v2 *)t->init)(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX, log_line);
    if (rc) {
        note("ENV/Plugin: %s: init of v%d returned %d, and it is not used\n", file, version, rc);
        return false;
    }
    snprintf(plugin.origin, sizeof plugin.origin, "env plugin %.*s", NAME, t->name ? t->name : file);
    note("ENV/Plugin: using %s (ncclEnvPlugin_v%d of %s)\n", plugin.origin + sizeof "env plugin " - 1, version, file);
    plugin.table = t;
    atexit(finalize);
    return true;
}

static bool start_library(void *library, const char *file)
{
    char symbol[32];

    for (int v = NEWEST; v >= OLDEST; v--) {
        snprintf(symbol, sizeof symbol, "ncclEnvPlugin_v%d", v);
        const struct table *t = dlsym(library, symbol);
        if (t) return start(t, v, file);
    }
    note("ENV/Plugin: %s: has neither ncclEnvPlugin_v%d nor v%d\n", file, NEWEST, OLDEST);
    return false;
}

static bool try_file(const char *file)
{
    void *library = dlopen(*file ? file : NULL, RTLD_NOW | RTLD_LOCAL);

    if (!*file) file = "the program";
    if (!library) {
        note("ENV/Plugin: looked for %s, not used: %s\n", file, dlerror());
        return false;
    }
    if (start_library(library, file)) return true;
    dlclose(library);
    return false;
}

bool kl_env_plugin_open(void)
{
    const char *name = getenv("NCCL_ENV_PLUGIN");
    char file[KL_PLUGIN_FILES][KL_PLUGIN_FILE];
    const int n = kl_plugin_files("env", name ? name : "", file);

    for (int i = 0; i < n; i++)
        if (try_file(file[i])) return true;
    plugin.is_problem = name && *name && !kl_plugin_is_none(name);
    return false;
}

/* ---- variables ---- */

static const char *keep(const char *text)
{
    struct kept *k = plugin.kept;

    while (k && strcmp(k->text, text)) k = k->next;
    if (k) return k->text;
    k = malloc(sizeof *k);
    char *copy = strdup(text);
    if (!k || !copy) {
        free(k);
        free(copy);
        return NULL;
    }
    *k = (struct kept){.text = copy, .next = plugin.kept};
    plugin.kept = k;
    return copy;
}

const char *kl_env_plugin_get(const char *name)
{
    pthread_mutex_lock(&plugin.lock);
    const char *text = plugin.finalized ? getenv(name) : plugin.table->get(name);
    if (text) text = keep(text);
    pthread_mutex_unlock(&plugin.lock);
    return text;
}

const char *kl_env_plugin_origin(void)
{
    return plugin.origin;
}
