/* SPDX-License-Identifier: Apache-2.0 */
#include "base/setting.h"

#include "base/atomic.h"
#include "base/env_plugin.h"
#include "base/text.h"

#include <limits.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES = 128 }; /* longer names are unknown to Kolo */

static const char *find_in_environment(char *const *environment, const char *name)
{
    size_t length = strlen(name);

    if (!environment) return getenv(name);
    for (; *environment; environment++)
        if (!strncmp(*environment, name, length) && (*environment)[length] == '=') return *environment + length + 1;
    return NULL;
}

/* The directory for ~: HOME, as in a shell, else the user database's entry; NULL if neither has one. */
static const char *home_directory(char *const *environment, struct passwd *user, char *room, size_t room_bytes)
{
    const char *home = find_in_environment(environment, "HOME");
    struct passwd *found = NULL;

    if (home && *home) return home;
    return getpwuid_r(getuid(), user, room, room_bytes, &found) || !found ? NULL : found->pw_dir;
}

static void read_user_file(struct kl_conf *conf, char *const *environment)
{
    const char *chosen = find_in_environment(environment, "NCCL_CONF_FILE");
    char path[PATH_MAX], room[2048];
    struct kl_text text = kl_text_in(path, sizeof path);
    struct passwd user;

    *conf = KL_CONF_NONE;
    if (chosen && *chosen) {
        kl_conf_read(conf, chosen, true);
        return;
    }
    const char *home = home_directory(environment, &user, room, sizeof room);
    if (!home) return;
    kl_text_add(&text, "%s/.nccl.conf", home);
    if (!text.cut) kl_conf_read(conf, path, false);
}

void kl_settings_open(struct kl_settings *settings, char *const *environment, const char *system_file)
{
    settings->over = NULL;
    settings->nover = 0;
    settings->program = settings->plugin = false;
    settings->environment = environment;
    read_user_file(&settings->user, environment);
    kl_conf_read(&settings->system, system_file, false);
}

void kl_settings_close(struct kl_settings *settings)
{
    kl_conf_free(&settings->user);
    kl_conf_free(&settings->system);
}

static struct kl_settings process; /* written once, by pthread_once */

static void open_process(void)
{
    kl_settings_open(&process, NULL, "/etc/nccl.conf");
    process.program = true;
    process.plugin = kl_env_plugin_open();
}

const struct kl_settings *kl_settings_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_process);
    return &process;
}

static bool find_in_file(const struct kl_conf *conf, const char *name, struct kl_setting *found)
{
    const struct kl_conf_entry *entry = kl_conf_find(conf, name);

    if (!entry) return false;
    *found = (struct kl_setting){.name = name, .text = entry->value, .file = conf->file, .line = entry->line};
    return true;
}

/* ---- the program's ---- */

struct program_setting {
    struct kl_setting setting;
    struct program_setting *next; /* an older one */
};
static struct program_setting *_Atomic program_settings; /* a registry: entries are added at the front, and stay */

static bool find_in_program(const char *name, struct kl_setting *found)
{
    const struct program_setting *p = kl_load_acquire(&program_settings); /* pairs with kl_settings_program */

    while (p && strcmp(p->setting.name, name)) p = p->next;
    if (p) *found = p->setting;
    return p != NULL;
}

bool kl_settings_program(const char *name, const char *text, const char *origin)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    struct kl_setting now = {.text = ""};
    struct program_setting *p = NULL;
    char *copy = NULL;

    pthread_mutex_lock(&lock);
    (void)find_in_program(name, &now);
    const bool same = !strcmp(now.text, text);
    if (!same) {
        p = malloc(sizeof *p);
        copy = strdup(text);
    }
    if (p && copy) {
        p->setting = (struct kl_setting){.name = name, .text = copy, .file = origin};
        p->next = kl_load_relaxed(&program_settings);
        kl_store_release(&program_settings, p); /* pairs with find_in_program */
    }
    pthread_mutex_unlock(&lock);
    if (same || (p && copy)) return true;
    free(p);
    free(copy);
    return false;
}

struct kl_settings kl_settings_overlay(const struct kl_settings *below, const struct kl_setting *over, size_t n)
{
    struct kl_settings s = *below;

    s.over = over;
    s.nover = n;
    return s;
}

static bool find_over(const struct kl_settings *settings, const char *name, struct kl_setting *found)
{
    for (size_t i = settings->nover; i-- > 0;)
        if (!strcmp(settings->over[i].name, name)) {
            *found = settings->over[i];
            return true;
        }
    return false;
}

/* In the plugin, or in the environment. */
static void find_first(const struct kl_settings *settings, struct kl_setting *s)
{
    const char *own = find_in_environment(settings->environment, s->name);

    s->text = settings->plugin ? kl_env_plugin_get(s->name) : own;
    if (settings->plugin && s->text && (!own || strcmp(own, s->text) != 0)) s->file = kl_env_plugin_origin();
}

bool kl_settings_find(const struct kl_settings *settings, const char *name, struct kl_setting *found)
{
    struct kl_setting s = {.name = name};

    if (!find_over(settings, name, &s)) find_first(settings, &s);
    if (!s.text && !find_in_file(&settings->user, name, &s) && !find_in_file(&settings->system, name, &s) &&
        !(settings->program && find_in_program(name, &s)))
        return false;
    if (!*s.text) return false;
    *found = s;
    return true;
}

static bool is_ours(const char *name)
{
    return !strncmp(name, "NCCL_", 5) || !strncmp(name, "KOLO_", 5);
}

static void visit_file(const struct kl_conf *conf, void (*visit)(void *, const struct kl_setting *), void *ctx)
{
    for (size_t i = 0; i < conf->nentries; i++) {
        const struct kl_conf_entry *e = &conf->entries[i];
        struct kl_setting s = {.name = e->name, .text = e->value, .file = conf->file, .line = e->line};

        if (is_ours(e->name)) visit(ctx, &s);
    }
}

void kl_settings_each(const struct kl_settings *settings, void (*visit)(void *ctx, const struct kl_setting *setting),
                      void *ctx)
{
    for (size_t i = 0; i < settings->nover; i++)
        if (is_ours(settings->over[i].name)) visit(ctx, &settings->over[i]);
    for (char *const *e = settings->environment ? settings->environment : environ; e && *e; e++) {
        size_t length = strcspn(*e, "=");
        char name[NAME_BYTES];

        if (!is_ours(*e) || !(*e)[length] || length >= sizeof name) continue;
        memcpy(name, *e, length);
        name[length] = 0;
        visit(ctx, &(struct kl_setting){.name = name, .text = *e + length + 1});
    }
    visit_file(&settings->user, visit, ctx);
    visit_file(&settings->system, visit, ctx);
}

const char *kl_setting_origin(const struct kl_setting *setting, char text[KL_ORIGIN_TEXT])
{
    struct kl_text t = kl_text_in(text, KL_ORIGIN_TEXT);

    if (setting->file && setting->line)
        kl_text_add(&t, "%.240s:%d", setting->file, setting->line);
    else if (setting->file)
        kl_text_add(&t, "%.250s", setting->file);
    else
        kl_text_add(&t, "environment");
    return text;
}
