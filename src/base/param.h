/* SPDX-License-Identifier: Apache-2.0 */
/**
 * param.h - parameters as tables.
 *
 * A module describes its parameters once, next to the struct they fill. A row has type, field, full name of the
 * variable, whether ranks may differ in it, default *as a user would write it*, the accepted values, and a sentence for
 * users:
 *
 *     struct kl_shm_config {
 *         int64_t slot_bytes, slots;
 *         char name[KL_PARAM_TEXT];
 *     };
 *     static const struct kl_param rows[] = {
 *         KL_PARAM_SIZE(struct kl_shm_config, slot_bytes, "KOLO_SHM_SLOT", KL_ALIKE, "8K", 64, 16 << 20, "payload of one slot"),
 *         KL_PARAM_INT(struct kl_shm_config, slots, "KOLO_SHM_SLOTS", KL_ALIKE, "16", 2, 4096, "slots per link"),
 *         KL_PARAM_STRING(struct kl_shm_config, name, "KOLO_SHM_NAME", KL_OWN, "", "label of the segment in /proc/PID/maps"),
 *     };
 *     const struct kl_param_set kl_shm_param_set = KL_PARAM_SET("shm", struct kl_shm_config, rows);
 *
 * and lists the set in comm/settings.c. Values come from a struct kl_settings (setting.h). Loading never fails: text
 * that cannot be parsed or is out of range is reported and the default kept.
 *
 * Fields:   INT, SIZE int64_t · BOOL bool · ENUM int, index of the choice · LIST uint32_t, a bit per choice · STRING an
 *           array of char, of KL_PARAM_TEXT bytes at most, which limits the length. Strings are copied: a loaded struct
 *           stands alone.
 * Defaults: "" is unset: -1 for ENUM, "" for STRING. A default may lie outside its range, as -2 for "Kolo decides".
 * Threads:  loading is thread-safe; a loaded struct is constant.
 */
#ifndef KL_BASE_PARAM_H
#define KL_BASE_PARAM_H

#include "base/setting.h"

#include <stddef.h>
#include <stdint.h>

/** Bytes of a string that may be as long as a line of a file. */
#define KL_PARAM_TEXT (KL_CONF_LINE + 1)

enum kl_param_type {
    KL_PARAM_TYPE_INT,
    KL_PARAM_TYPE_SIZE,
    KL_PARAM_TYPE_BOOL,
    KL_PARAM_TYPE_ENUM,
    KL_PARAM_TYPE_LIST,
    KL_PARAM_TYPE_STRING
};

enum kl_param_secrecy {
    KL_PARAM_IS_OPEN,
    KL_PARAM_IS_SECRET,        /* the text is never shown */
    KL_PARAM_IS_KEY_OR_ADDRESS /* the text is shown only if it is an address, host:port */
};

/**
 * May the ranks of a communicator have different values? A row whose scope is not obvious has a comment with the
 * reason.
 */
enum kl_param_scope {
    KL_UNDECLARED, /* no row has this: ensured by a test */
    KL_ALIKE,      /* no: the ranks compare their values at init, and fail if they differ (comm/settings.h) */
    KL_HOST_ALIKE, /* only across hosts: the ranks of one host, or NVLink domain, need the same value */
    KL_SETTLED,    /* yes, but all use one value: the first rank's of a host, or one that suits all ranks */
    KL_OWN,        /* yes: each rank uses its own value, independent of the others */
    KL_PARAM_SCOPES
};

/** "all alike", "a host's alike", "settled" or "own". */
extern const char *const kl_param_scope_name[KL_PARAM_SCOPES];

struct kl_param {
    const char *name, *dfl, *doc;
    enum kl_param_scope scope;
    enum kl_param_type type;
    enum kl_param_secrecy secrecy;
    size_t offset, bytes;       /* of the field in the config struct */
    int64_t min, max;           /* INT, SIZE */
    const char *const *choices; /* ENUM, LIST: ends with NULL */
};

struct kl_param_set {
    const char *module;
    size_t config_bytes;
    const struct kl_param *params;
    size_t nparams;
};

/* Offset and size of a field; does not compile if the field has another type than the row needs. */
#define KL_PARAM_FIELD(T, field, type)                                                                                 \
    .offset = _Generic(((T *)0)->field, type : offsetof(T, field)), .bytes = sizeof(((T *)0)->field)

/* The same for an array of char; a pointer does not compile. */
#define KL_PARAM_ARRAY(T, field)                                                                                       \
    .offset = _Generic(&((T *)0)->field, char(*)[sizeof(((T *)0)->field)]                                              \
                       : offsetof(T, field)),                                                                          \
    .bytes = sizeof(((T *)0)->field)

#define KL_PARAM_INT(T, field, name_, scope_, dfl_, min_, max_, doc_)                                                  \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_INT, .min = (min_),    \
        .max = (max_), KL_PARAM_FIELD(T, field, int64_t)                                                               \
    }
#define KL_PARAM_SIZE(T, field, name_, scope_, dfl_, min_, max_, doc_)                                                 \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_SIZE, .min = (min_),   \
        .max = (max_), KL_PARAM_FIELD(T, field, int64_t)                                                               \
    }
#define KL_PARAM_BOOL(T, field, name_, scope_, dfl_, doc_)                                                             \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_BOOL,                  \
        KL_PARAM_FIELD(T, field, bool)                                                                                 \
    }
#define KL_PARAM_ENUM(T, field, name_, scope_, dfl_, choices_, doc_)                                                   \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_ENUM,                  \
        .choices = (choices_), KL_PARAM_FIELD(T, field, int)                                                           \
    }
#define KL_PARAM_LIST(T, field, name_, scope_, dfl_, choices_, doc_)                                                   \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_LIST,                  \
        .choices = (choices_), KL_PARAM_FIELD(T, field, uint32_t)                                                      \
    }
#define KL_PARAM_STRING(T, field, name_, scope_, dfl_, doc_)                                                           \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_STRING,                \
        KL_PARAM_ARRAY(T, field)                                                                                       \
    }
#define KL_PARAM_HIDDEN(T, field, name_, scope_, dfl_, secrecy_, doc_)                                                 \
    {                                                                                                                  \
        .name = (name_), .scope = (scope_), .dfl = (dfl_), .doc = (doc_), .type = KL_PARAM_TYPE_STRING,                \
        .secrecy = (secrecy_), KL_PARAM_ARRAY(T, field)                                                                \
    }
/** A string that is neither logged nor printed as it is: all output goes through kl_param_shown. */
#define KL_PARAM_SECRET(T, field, name_, scope_, dfl_, doc_)                                                           \
    KL_PARAM_HIDDEN(T, field, name_, scope_, dfl_, KL_PARAM_IS_SECRET, doc_)
#define KL_PARAM_KEY_OR_ADDRESS(T, field, name_, scope_, dfl_, doc_)                                                   \
    KL_PARAM_HIDDEN(T, field, name_, scope_, dfl_, KL_PARAM_IS_KEY_OR_ADDRESS, doc_)

#define KL_PARAM_SET(module_, T, rows)                                                                                 \
    {                                                                                                                  \
        .module = (module_), .config_bytes = sizeof(T), .params = (rows), .nparams = sizeof(rows) / sizeof((rows)[0])  \
    }

/**
 * Fill `config` from this process's settings. Reports, once per process and text: a line of level INFO, subsystem ENV,
 * for each setting in force, and a warning for each that is refused.
 */
void kl_param_load(const struct kl_param_set *set, void *config);

enum kl_param_state {
    KL_PARAM_IS_DEFAULT, /* not set */
    KL_PARAM_IS_SET,     /* `setting` is in force */
    KL_PARAM_IS_REFUSED  /* `setting` cannot be parsed; the default is in force */
};

/**
 * Store one row's value in the config struct of its set. Silent. `setting` is written unless the result is
 * KL_PARAM_IS_DEFAULT.
 */
enum kl_param_state kl_param_load_row(const struct kl_param *param, void *config, const struct kl_settings *from,
                                      struct kl_setting *setting);

/** As kl_param_load, from other settings. Silent. */
void kl_param_load_from(const struct kl_param_set *set, void *config, const struct kl_settings *from);

/**
 * The value of one row that is in force, as text. Equal values have equal texts, however they were written, except for
 * strings. Returns `text`. Silent.
 */
const char *kl_param_value(const struct kl_param *param, const struct kl_settings *from, char text[KL_PARAM_TEXT]);

/** The text that logs, tables and files show for `text`, a value of the row: the same, or "(set)". Never a secret. */
const char *kl_param_shown(const struct kl_param *param, const char *text);

/** Could `text` be an address, host:port? True if it has a colon and no run of digits as long as a key. */
bool kl_param_is_address(const char *text);

/** Describe the accepted values, as in "an integer from 2 to 4096". Returns `text`. */
const char *kl_param_expected(const struct kl_param *param, char *text, size_t bytes);

#endif
