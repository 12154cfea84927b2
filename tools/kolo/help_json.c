/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/help_json.h"

#include "answer/output.h"
#include "base/error.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

static const char *const value_kinds[] = {
    [KL_OPT_FLAG] = "none",    [KL_OPT_SWITCH] = "optional", [KL_OPT_INT] = "integer", [KL_OPT_SIZE] = "size",
    [KL_OPT_TIME] = "seconds", [KL_OPT_RATE] = "rate",       [KL_OPT_TEXT] = "text",   [KL_OPT_LIST] = "text",
};

static json_t *option_json(const struct kl_opt *o)
{
    char letter[2] = {o->letter, 0};

    return json_pack("{s:s*, s:s*, s:s, s:s*, s:s, s:b}", "letter", o->letter ? letter : NULL, "name", o->name, "value",
                     value_kinds[o->kind], "argument", o->arg, "doc", o->doc, "repeats", o->kind == KL_OPT_LIST);
}

static json_t *options_json(const struct kl_opt *table)
{
    json_t *options = json_array();

    for (const struct kl_opt *o = table; o->letter || o->name; o++)
        if (o->kind != KL_OPT_REFUSED) json_array_append_new(options, option_json(o));
    return options;
}

static json_t *operands_json(const struct kl_command *c)
{
    json_t *operands = c->operand ? json_array() : NULL;
    const char *word;

    for (int i = 0; c->operand && (word = c->operand(i)); i++) json_array_append_new(operands, json_string(word));
    return operands;
}

/* The printed help, and the part of it that lists the options; the caller frees both. NULL: no memory. */
static char *printed(const struct kl_command *c, bool whole)
{
    char *text = NULL;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);

    if (!to) return NULL;
    if (whole)
        c->print_help(to);
    else
        kl_opts_help(c->options, to);
    if (!fclose(to)) return text;
    free(text);
    return NULL;
}

/* The help around the list of its options. */
static json_t *command_json(const struct kl_command *c)
{
    char *help = printed(c, true), *list = printed(c, false), *at = help && list ? strstr(help, list) : NULL;
    json_t *command = NULL;

    if (at) {
        *at = 0;
        command =
            json_pack("{s:s, s:s, s:s, s:o, s:s, s:o*}", "name", c->name, "summary", c->summary, "about", help,
                      "options", options_json(c->options), "notes", at + strlen(list), "operands", operands_json(c));
    }
    free(help);
    free(list);
    return command;
}

ncclResult_t kl_help_json(const struct kl_command *const *commands, FILE *to)
{
    json_t *all = json_array();

    for (; *commands; commands++) {
        json_t *command = (*commands)->summary ? command_json(*commands) : NULL;

        if ((*commands)->summary && json_array_append_new(all, command)) {
            json_decref(all);
            return KL_NOMEM("the help of a command");
        }
    }
    return kl_output_json(json_pack("{s:o}", "commands", all), to);
}
