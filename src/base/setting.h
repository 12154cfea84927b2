/* SPDX-License-Identifier: Apache-2.0 */
/**
 * setting.h - where the text of parameters comes from.
 *
 * The environment counts first, then the user's file, then the system's. The user's file is NCCL_CONF_FILE if that is
 * set, else ~/.nccl.conf; the system's is /etc/nccl.conf. A variable with empty text is set to "the default": it hides
 * lower sources, as `NCCL_DEBUG= ./program` is meant to. Above all of them stands what a command line says
 * (kl_settings_over): so a tool can ask what a setting would change without touching the environment. Below all of them
 * stands what the program has set by a function of the API (kl_settings_program).
 *
 * Files are read once per process, at first use; the environment is looked at anew each time.
 *
 * Threads:  any, as long as nobody changes the environment meanwhile (setenv(3)).
 * Source:   the runtime specification, 8.3.
 */
#ifndef KL_BASE_SETTING_H
#define KL_BASE_SETTING_H

#include "base/conf.h"
#include "include/nccl.h"

#include <stdbool.h>

/** Bytes that hold any origin (kl_setting_origin). */
#define KL_ORIGIN_TEXT 256

/** One variable as somebody set it. Valid while its source is: copy what must last. */
struct kl_setting {
    const char *name, *text;
    const char *file; /* NULL: the environment. An option of a command line is its own file, without lines */
    int line;         /* 0: none */
};

struct kl_settings {
    char *const *environment; /* "NAME=TEXT" each, ends with NULL; NULL itself: the process's own */
    struct kl_conf user, system;
    const struct kl_setting *over; /* count before all others */
    size_t nover;
    bool program; /* kl_settings_program counts, after all others */
};

/** What this process was given. */
const struct kl_settings *kl_settings_process(void);

/**
 * From now on `name` has this text in kl_settings_process, where the user has not set it; "": nothing any more. `origin` is the
 * function that was called. Both texts are constants; `text` is copied, and never freed: what was found earlier stays valid.
 * ncclSystemError: no memory. Any thread.
 */
ncclResult_t kl_settings_program(const char *name, const char *text, const char *origin);

/**
 * Read the files for `environment` (above). Problems, and that NCCL_CONF_FILE names a file that cannot be read, are
 * left in `settings->user` and `->system`: a file that does not exist is no problem otherwise.
 */
void kl_settings_open(struct kl_settings *settings, char *const *environment, const char *system_file);
void kl_settings_close(struct kl_settings *settings);

/**
 * `below` with `n` settings over it: of two with one name the later counts. Both must outlive the result, which holds
 * nothing of its own and is not closed.
 */
struct kl_settings kl_settings_over(const struct kl_settings *below, const struct kl_setting *over, size_t n);

/** The setting of `name` that counts. False if there is none, or if it is empty. */
bool kl_settings_find(const struct kl_settings *settings, const char *name, struct kl_setting *found);

/** Call `visit` for every NCCL_* and KOLO_* that any source holds, be it in force or not; a name lasts for the call. */
void kl_settings_each(const struct kl_settings *settings, void (*visit)(void *ctx, const struct kl_setting *setting),
                      void *ctx);

/** "environment", "FILE:LINE", or the option of a command line. */
const char *kl_setting_origin(const struct kl_setting *setting, char text[KL_ORIGIN_TEXT]);

#endif
