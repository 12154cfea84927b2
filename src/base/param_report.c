/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param_report.h"

#include "base/atomic.h"
#include "base/hash.h"
#include "base/log.h"

#include <stdint.h>
#include <string.h>

/* Hashes of reported messages. Two messages that share a slot may be repeated; none is ever suppressed before it was
 * printed. */
static _Atomic uint64_t said[1024];

static uint64_t hash_setting(const struct kl_setting *s)
{
    uint64_t hash = kl_hash_add(KL_HASH_START, s->name, strlen(s->name) + 1);

    hash = kl_hash_add(hash, s->text, strlen(s->text) + 1);
    if (s->file) hash = kl_hash_add(hash, s->file, strlen(s->file));
    return kl_hash_add(hash, &s->line, sizeof s->line);
}

/* Should this message be printed now? Marks it as printed. */
static bool is_news(enum kl_log_level level, const struct kl_setting *s)
{
    uint64_t hash = hash_setting(s);

    if (!kl_log_on(level, KL_ENV)) return false;
    return kl_swap_acq_rel(&said[hash % (sizeof said / sizeof said[0])], hash) != hash;
}

static void report_refused(const struct kl_param *param, const struct kl_setting *s)
{
    char origin[KL_ORIGIN_TEXT], expected[512];

    KL_WARN("%s=\"%.100s\" (%s) is refused: expected %s; the default \"%s\" stays in force", s->name,
            kl_param_shown(param, s->text), kl_setting_origin(s, origin),
            kl_param_expected(param, expected, sizeof expected), param->dfl);
}

void kl_param_report(const struct kl_param *param, enum kl_param_state state, const struct kl_setting *setting)
{
    char origin[KL_ORIGIN_TEXT];

    if (state == KL_PARAM_IS_REFUSED && is_news(KL_LOG_WARN, setting)) report_refused(param, setting);
    if (state == KL_PARAM_IS_SET && is_news(KL_LOG_INFO, setting))
        KL_INFO(KL_ENV, "%s set by %s to %s", setting->name, kl_setting_origin(setting, origin),
                kl_param_shown(param, setting->text));
}

static void report_file(const struct kl_conf *conf)
{
    for (size_t i = 0; i < conf->nproblems; i++) {
        const struct kl_conf_problem *p = &conf->problems[i];
        struct kl_setting s = {.name = "", .text = p->what, .file = conf->file, .line = p->line};

        if (!is_news(KL_LOG_WARN, &s)) continue;
        if (p->line)
            KL_WARN("%s:%d %s; the line is left out", conf->file, p->line, p->what);
        else
            KL_WARN("%s %s; no setting is taken from it", conf->file, p->what);
    }
}

void kl_param_report_files(const struct kl_settings *settings)
{
    report_file(&settings->user);
    report_file(&settings->system);
}

void kl_param_report_unknown(const struct kl_setting *setting, const char *nearest)
{
    char origin[KL_ORIGIN_TEXT];

    if (!is_news(KL_LOG_WARN, setting)) return;
    if (nearest)
        KL_WARN("%s (%s) is unknown and has no effect; did you mean %s?", setting->name,
                kl_setting_origin(setting, origin), nearest);
    else
        KL_WARN("%s (%s) is unknown and has no effect; `kolo env` lists the known names", setting->name,
                kl_setting_origin(setting, origin));
}
