/* SPDX-License-Identifier: Apache-2.0 */
/** log_trouble.c - warnings, and lines of programs and launchers that mean trouble; which of them ended a call. */
#include "logs/log_make.h"
#include "logs/patterns.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum { IN_PROGRESS = 7 }; /* a result that is no failure */

/* Extractors and benchmarks write comments, which tell of trouble elsewhere. */
static bool is_comment(const struct kl_log_line *line)
{
    return line->level == KL_LOG_PLAIN && *line->text == '#';
}

/* "transport/net.cc:700 -> 2", "register/register.cc:161 (ncclCommRegister) -> 1": a call fails, and so do its callers. */
static bool is_unwinding(const char *text)
{
    size_t name = strcspn(text, ": "), digits = text[name] == ':' ? strspn(text + name + 1, "0123456789") : 0;
    const char *at = text + name + 1 + digits;
    int result;

    if (!name || !digits) return false;
    at += strspn(at, " ");
    if (*at == '(') at += strcspn(at, ")") + (strchr(at, ')') != NULL);
    at += strspn(at, " ");
    if (strncmp(at, "-> ", 3)) return false;
    at += 3;
    return kl_log_int(&at, &result) && result > 0 && result != IN_PROGRESS;
}

/* The last warning before such lines is the origin; those among them follow from it. */
static bool read_unwinding(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    struct kl_log_origin *s = &log->origin[origin];

    if (line->level != KL_LOG_INFO || !is_unwinding(line->text)) {
        if (line->level == KL_LOG_INFO) s->unwinding = false;
        return false;
    }
    if (s->warned && !s->unwinding) log->warning[s->warned - 1].fatal = true;
    s->unwinding = true;
    return true;
}

static bool is_trouble(const struct kl_log_line *line, bool loud)
{
    const struct kl_log_message m = {.text = line->text, .where = line->where, .loud = loud, .when = ~0U};

    return loud || kl_xid_cause(line->text) != KL_CAUSE_NONE || kl_pattern_of(&m) != NULL;
}

bool kl_log_read_trouble(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *plain = line->level == KL_LOG_PLAIN ? kl_log_after(line->text, "NCCL WARN") : NULL;
    bool loud = line->level == KL_LOG_WARN || plain;

    if (is_comment(line)) return false;
    if (strstr(line->text, "Connected after")) log->connected = true;
    if (read_unwinding(log, origin, line)) return true;
    if (!is_trouble(line, loud)) return false;
    struct kl_log_warning *w = KL_LOG_NEW(log, warning);
    const char *text = *line->text ? line->text : "a warning without text";

    if (!w) return true;
    *w = (struct kl_log_warning){.at = line->at,
                                 .origin = origin,
                                 .loud = loud,
                                 .follows = log->origin[origin].unwinding,
                                 .where = kl_log_keep(log, line->where, strlen(line->where)),
                                 .text = kl_log_keep(log, text, strlen(text))};
    if (loud && !w->follows) log->origin[origin].warned = log->nwarning;
    return true;
}

/* ---- when all is read ---- */

static bool is_set(const struct kl_log *log, const char *name, const char *value)
{
    const struct kl_log_setting *s = kl_log_find_setting(log, name);

    return s && !strcasecmp(s->value, value);
}

static bool has_no_gdr(const struct kl_log *log)
{
    for (int i = 0; i < log->ngdr; i++)
        if (!log->gdr[i].enabled && !log->gdr[i].by_gpu) return true;
    return false;
}

static unsigned facts_of(const struct kl_log *log)
{
    return (log->tests ? KL_WHEN_TESTS : 0U) | (log->connected ? KL_WHEN_CONNECTED : 0U) |
           (has_no_gdr(log) ? KL_WHEN_GDR_OFF : 0U) | (is_set(log, "NCCL_CUMEM_ENABLE", "0") ? KL_WHEN_CUMEM_OFF : 0U);
}

void kl_log_find_causes(struct kl_log *log)
{
    const struct kl_log_version *v = kl_log_version_of(log, kl_log_main(log));
    struct kl_log_message m = {.release = v ? v->number : 0, .when = facts_of(log)};

    for (int i = 0; i < log->nwarning; i++) {
        struct kl_log_warning *w = &log->warning[i];

        m.text = w->text;
        m.where = w->where;
        m.loud = w->loud;
        const struct kl_log_pattern *p = kl_pattern_of(&m);
        enum kl_log_cause xid = kl_xid_cause(w->text);

        w->cause = xid != KL_CAUSE_NONE ? (int)xid : p ? (int)p->cause : KL_CAUSE_NONE;
        w->source = xid != KL_CAUSE_NONE ? KL_SOURCE_SYSTEM : p ? (int)p->source : KL_SOURCE_NCCL;
        if (w->fatal && w->cause == KL_CAUSE_RETRY) w->cause = KL_CAUSE_UNREACHABLE; /* the last one */
    }
}
