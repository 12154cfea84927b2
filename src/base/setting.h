/* SPDX-License-Identifier: Apache-2.0 */
/**
 * setting.h - sources of parameter values.
 *
 * The environment, or the plugin that stands in its place (env_plugin.h), counts first, then the user's file, then the system's. The user's file is NCCL_CONF_FILE if that is
 * set, else ~/.nccl.conf; the system's is /etc/nccl.conf. A variable with empty text means "the default": it hides
 * lower sources, as `NCCL_DEBUG= ./program` is meant to. Options of a command line (kl_settings_overlay) take precedence
 * over all: a tool can ask for the effect of a setting without touching the environment. Settings that the program made by a
 * function of the API (kl_settings_program) come last.
 *
 * Files are read once per process, at first use; the environment is read anew each time.
 *
 * Threads:  any, as long as no thread changes the environment meanwhile (setenv(3)).
 * Source:   the runtime specification, 8.3.
 */
#ifndef KL_BASE_SETTING_H
#define KL_BASE_SETTING_H

#include "base/conf.h"

#include <stdbool.h>

/** Bytes that hold any origin (kl_setting_origin). */
#define KL_ORIGIN_TEXT 256

/** One variable and its text. Valid as long as its source: copy to keep it. */
struct kl_setting {
    const char *name, *text;
    const char *file; /* NULL: the environment. For a command-line option, the option itself; it has no line */
    int line;         /* 0: no line */
};

struct kl_settings {
    char *const *environment; /* "NAME=TEXT" each, ends with NULL; NULL itself: the process's own environment */
    struct kl_conf user, system;
    const struct kl_setting *over; /* take precedence over all others */
    size_t nover;
    bool program; /* kl_settings_program counts, after all others */
    bool plugin;  /* the environment comes from a plugin (env_plugin.h) */
};

/** This process's settings. */
const struct kl_settings *kl_settings_process(void);

/**
 * From now on `name` has this text in kl_settings_process unless the user has set it; "": the program's setting is void. `origin` is
 * the name of the API function. `name` and `origin` must be constants; `text` is copied and never freed, so that earlier lookups stay
 * valid. False: no memory. Any thread.
 */
bool kl_settings_program(const char *name, const char *text, const char *origin);

/**
 * Read the files for `environment` (above). Problems are left in `settings->user` and `->system`; a file that does not
 * exist is a problem only if NCCL_CONF_FILE names it.
 */
void kl_settings_open(struct kl_settings *settings, char *const *environment, const char *system_file);
void kl_settings_close(struct kl_settings *settings);

/**
 * `below` with `n` settings over it; the last of several with one name counts. Both must outlive the result, which owns
 * nothing and is not closed.
 */
struct kl_settings kl_settings_overlay(const struct kl_settings *below, const struct kl_setting *over, size_t n);

/** The setting of `name` that counts. False if there is none, or if it is empty. */
bool kl_settings_find(const struct kl_settings *settings, const char *name, struct kl_setting *found);

/**
 * Call `visit` for every NCCL_* and KOLO_* in any source, whether in force or hidden; the name is valid during the
 * call.
 */
void kl_settings_each(const struct kl_settings *settings, void (*visit)(void *ctx, const struct kl_setting *setting),
                      void *ctx);

/** "environment", "FILE:LINE", or the command-line option. */
const char *kl_setting_origin(const struct kl_setting *setting, char text[KL_ORIGIN_TEXT]);

#endif
