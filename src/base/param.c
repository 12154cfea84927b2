/* SPDX-License-Identifier: Apache-2.0 */
#include "base/param.h"

#include "base/param_report.h"
#include "base/parse.h"
#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

const char *const kl_param_scope_name[KL_PARAM_SCOPES] = {
    [KL_UNDECLARED] = "undeclared", [KL_ALIKE] = "all alike", [KL_HOST_ALIKE] = "a host's alike",
    [KL_SETTLED] = "settled",       [KL_OWN] = "own",
};

static bool in_range(const struct kl_param *p, int64_t value, bool is_default)
{
    return is_default || (value >= p->min && value <= p->max);
}

static bool store_int(const struct kl_param *p, int64_t *field, const char *text, bool is_default)
{
    int64_t value;

    if (!kl_parse_int(text, &value) || !in_range(p, value, is_default)) return false;
    *field = value;
    return true;
}

static bool store_size(const struct kl_param *p, int64_t *field, const char *text, bool is_default)
{
    uint64_t bytes;

    if (!kl_parse_size(text, &bytes)) return is_default && store_int(p, field, text, true);
    if (!in_range(p, (int64_t)bytes, is_default)) return false;
    *field = (int64_t)bytes;
    return true;
}

static bool store_enum(const struct kl_param *p, int *field, const char *text)
{
    if (*text) return kl_parse_choice(text, p->choices, field);
    *field = -1;
    return true;
}

static bool store_string(const struct kl_param *p, char *field, const char *text)
{
    size_t length = strlen(text);

    if (length >= p->bytes) return false;
    memcpy(field, text, length + 1);
    return true;
}

/* False: the text is refused, the field untouched. The default is accepted even if it lies outside the range. */
static bool store(const struct kl_param *p, void *config, const char *text)
{
    void *field = (char *)config + p->offset;
    bool is_default = !strcmp(text, p->dfl);

    switch (p->type) {
    case KL_PARAM_TYPE_INT:
        return store_int(p, field, text, is_default);
    case KL_PARAM_TYPE_SIZE:
        return store_size(p, field, text, is_default);
    case KL_PARAM_TYPE_BOOL:
        return kl_parse_bool(text, field);
    case KL_PARAM_TYPE_ENUM:
        return store_enum(p, field, text);
    case KL_PARAM_TYPE_LIST:
        return kl_parse_list(text, p->choices, field);
    case KL_PARAM_TYPE_STRING:
        return store_string(p, field, text);
    }
    return false;
}

enum kl_param_state kl_param_load_row(const struct kl_param *param, void *config, const struct kl_settings *from,
                                      struct kl_setting *setting)
{
    bool found = kl_settings_find(from, param->name, setting);

    if (found && store(param, config, setting->text)) return KL_PARAM_IS_SET;
    store(param, config, param->dfl); /* every default is acceptable: ensured by a test */
    return found ? KL_PARAM_IS_REFUSED : KL_PARAM_IS_DEFAULT;
}

void kl_param_load_from(const struct kl_param_set *set, void *config, const struct kl_settings *from)
{
    struct kl_setting setting;

    memset(config, 0, set->config_bytes);
    for (size_t i = 0; i < set->nparams; i++) kl_param_load_row(&set->params[i], config, from, &setting);
}

void kl_param_load(const struct kl_param_set *set, void *config)
{
    const struct kl_settings *from = kl_settings_process();
    struct kl_setting setting;

    memset(config, 0, set->config_bytes);
    for (size_t i = 0; i < set->nparams; i++) {
        enum kl_param_state state = kl_param_load_row(&set->params[i], config, from, &setting);
        kl_param_report(&set->params[i], state, &setting);
    }
}

/* ---- values as texts ---- */

static void add_list(struct kl_text *t, const char *const *choices, uint32_t bits)
{
    for (int i = 0; choices[i]; i++)
        if (bits >> i & 1) kl_text_add(t, "%s%s", t->length ? "," : "", choices[i]);
}

/* One of each type of field. */
union field {
    int64_t number;
    bool on;
    int choice;
    uint32_t bits;
    char text[KL_PARAM_TEXT];
};

static void add_field(struct kl_text *t, const struct kl_param *p, const union field *field)
{
    switch (p->type) {
    case KL_PARAM_TYPE_INT:
    case KL_PARAM_TYPE_SIZE:
        kl_text_add(t, "%" PRId64, field->number);
        break;
    case KL_PARAM_TYPE_BOOL:
        kl_text_add(t, "%d", field->on);
        break;
    case KL_PARAM_TYPE_ENUM:
        kl_text_add(t, "%s", field->choice < 0 ? "" : p->choices[field->choice]);
        break;
    case KL_PARAM_TYPE_LIST:
        add_list(t, p->choices, field->bits);
        break;
    case KL_PARAM_TYPE_STRING:
        kl_text_add(t, "%s", field->text);
        break;
    }
}

const char *kl_param_value(const struct kl_param *param, const struct kl_settings *from, char text[KL_PARAM_TEXT])
{
    struct kl_text t = kl_text_over(text, KL_PARAM_TEXT);
    struct kl_param alone = *param; /* a config struct with just this field */
    struct kl_setting setting;
    union field field;

    alone.offset = 0;
    kl_param_load_row(&alone, &field, from, &setting);
    add_field(&t, param, &field);
    return text;
}

/* ---- showing values ---- */

/* A key is written in hexadecimal digits; a label of a host name is shorter. */
static bool holds_key(const char *text)
{
    enum { LEAST_KEY = 64 };
    int run = 0;

    for (; *text && run < LEAST_KEY; text++) run = isxdigit((unsigned char)*text) ? run + 1 : 0;
    return run == LEAST_KEY;
}

bool kl_param_is_address(const char *text)
{
    return strchr(text, ':') && !holds_key(text);
}

const char *kl_param_shown(const struct kl_param *param, const char *text)
{
    bool open = param->secrecy == KL_PARAM_IS_OPEN ||
                (param->secrecy == KL_PARAM_IS_KEY_OR_ADDRESS && kl_param_is_address(text));

    return open || !*text ? text : "(set)";
}

static void add_size(struct kl_text *t, int64_t bytes)
{
    static const char *const suffixes[] = {"", "K", "M", "G"};
    int unit = 0;

    for (; unit < 3 && bytes && bytes % 1024 == 0; unit++) bytes /= 1024;
    kl_text_add(t, "%" PRId64 "%s", bytes, suffixes[unit]);
}

static void add_choices(struct kl_text *t, const char *const *choices)
{
    for (int i = 0; choices[i]; i++) kl_text_add(t, "%s%s", i ? ", " : "", choices[i]);
}

const char *kl_param_expected(const struct kl_param *param, char *text, size_t bytes)
{
    struct kl_text t = kl_text_over(text, bytes);

    switch (param->type) {
    case KL_PARAM_TYPE_INT:
        kl_text_add(&t, "an integer from %" PRId64 " to %" PRId64, param->min, param->max);
        break;
    case KL_PARAM_TYPE_SIZE:
        kl_text_add(&t, "a size from ");
        add_size(&t, param->min);
        kl_text_add(&t, " to ");
        add_size(&t, param->max);
        break;
    case KL_PARAM_TYPE_BOOL:
        kl_text_add(&t, "0, 1, on or off");
        break;
    case KL_PARAM_TYPE_ENUM:
        kl_text_add(&t, "one of ");
        add_choices(&t, param->choices);
        break;
    case KL_PARAM_TYPE_LIST:
        kl_text_add(&t, "a list (\"A,B\"; \"^A,B\" for all others) of ALL, ");
        add_choices(&t, param->choices);
        break;
    case KL_PARAM_TYPE_STRING:
        kl_text_add(&t, "text of at most %zu bytes", param->bytes - 1);
        break;
    }
    return text;
}
