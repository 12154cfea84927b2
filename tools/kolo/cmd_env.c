/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "answer/output.h"
#include "tools/kolo/options.h"

#include <ctype.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request {
    const char *only; /* module or name, or NULL */
    int only_set, json, markdown, help;
};

static const struct kl_opt table[] = {
    {0, "set", KL_OPT_FLAG, offsetof(struct request, only_set), 0, 0, NULL, "only parameters that are set"},
    {0, "json", KL_OPT_FLAG, offsetof(struct request, json), 0, 0, NULL, "print JSON"},
    {0, "markdown", KL_OPT_FLAG, offsetof(struct request, markdown), 0, 0, NULL,
     "print the reference page (docs/env.md), independently of the settings"},
    KL_OPT_HELP(struct request, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fputs("usage: kolo env [MODULE|NAME] [options]\n\n"
          "List parameters: the value in force and its source, the default, accepted values, and the meaning.\n"
          "Sources, the first one wins: environment, or NCCL_ENV_PLUGIN; NCCL_CONF_FILE, else ~/.nccl.conf; "
          "/etc/nccl.conf.\n\n"
          "  MODULE      only the parameters of one module\n"
          "  NAME        only this parameter\n\n",
          to);
    kl_opts_help(table, to);
    fputs("\nExit code 1: a value is rejected, a name is unknown, or a line of a file is ignored.\n", to);
}

static const char *const type_names[] = {
    [KL_PARAM_TYPE_INT] = "integer", [KL_PARAM_TYPE_SIZE] = "size", [KL_PARAM_TYPE_BOOL] = "boolean",
    [KL_PARAM_TYPE_ENUM] = "choice", [KL_PARAM_TYPE_LIST] = "list", [KL_PARAM_TYPE_STRING] = "text",
};

/* ---- entries ---- */

/* A row and its value. */
struct entry {
    const char *module;
    const struct kl_param *param;
    enum kl_param_state state;
    struct kl_setting setting; /* unless the state is "default" */
};

/* A name that is no parameter: `other` describes it; NULL: the name is unknown. */
struct stray {
    struct kl_setting setting; /* without text if the name was asked for and is not set */
    const struct kl_param_name *other;
    const char *nearest;
};

struct printer {
    void (*entry)(void *ctx, const struct entry *e);
    void (*stray)(void *ctx, const struct stray *s);
    void (*problem)(void *ctx, const struct kl_conf *conf, const struct kl_conf_problem *p);
    void *ctx;
};

/* One walk over everything. */
struct walk {
    const struct request *request;
    const struct printer *printer;
    int shown, bad;
};

static bool is_asked_for(const struct request *r, const char *module, const char *name)
{
    return !r->only || !strcmp(r->only, name) || (module && !strcmp(r->only, module));
}

static void walk_row(struct walk *w, const struct kl_param_set *set, const struct kl_param *param, void *config)
{
    struct entry e = {.module = set->module, .param = param};

    if (!is_asked_for(w->request, set->module, param->name)) return;
    w->shown++;
    e.state = kl_param_load_row(param, config, kl_settings_process(), &e.setting);
    if (w->request->only_set && e.state == KL_PARAM_IS_DEFAULT) return;
    w->bad += e.state == KL_PARAM_IS_REFUSED;
    w->printer->entry(w->printer->ctx, &e);
}

static void walk_set(struct walk *w, const struct kl_param_set *set)
{
    void *config = calloc(1, set->config_bytes);

    for (size_t i = 0; config && i < set->nparams; i++) walk_row(w, set, &set->params[i], config);
    free(config);
}

static void walk_name(void *ctx, const struct kl_setting *setting)
{
    struct walk *w = ctx;
    struct stray s = {.setting = *setting, .other = kl_param_find_other(&kl_param_registry, setting->name)};

    if (kl_param_find(&kl_param_registry, setting->name)) return;
    if (!is_asked_for(w->request, NULL, setting->name)) return;
    w->shown++;
    if (!s.other) {
        s.nearest = kl_param_nearest(&kl_param_registry, setting->name);
        w->bad++;
    }
    w->printer->stray(w->printer->ctx, &s);
}

static void walk_problems(struct walk *w, const struct kl_conf *conf)
{
    for (size_t i = 0; i < conf->nproblems; i++, w->bad++)
        w->printer->problem(w->printer->ctx, conf, &conf->problems[i]);
}

/* A name that was asked for and is neither a parameter nor set. */
static void walk_unset(struct walk *w, const char *name)
{
    struct stray s = {.setting = {.name = name}, .other = kl_param_find_other(&kl_param_registry, name)};

    if (!s.other) return;
    w->shown++;
    w->printer->stray(w->printer->ctx, &s);
}

static void walk_all(struct walk *w)
{
    const struct kl_settings *settings = kl_settings_process();

    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++) walk_set(w, *set);
    kl_settings_each(settings, walk_name, w);
    if (w->request->only) {
        if (!w->shown) walk_unset(w, w->request->only);
        return;
    }
    walk_problems(w, &settings->user);
    walk_problems(w, &settings->system);
}

/* ---- for people ---- */

/* Text from the environment must not move the cursor. */
static void put_plain(const char *text)
{
    for (; *text; text++) putchar(iscntrl((unsigned char)*text) ? '?' : *text);
}

static void put_origin(const struct kl_setting *setting)
{
    char origin[KL_ORIGIN_TEXT];

    put_plain(kl_setting_origin(setting, origin));
}

static void print_value(const struct entry *e)
{
    const char *text = e->state == KL_PARAM_IS_SET ? e->setting.text : e->param->dfl;

    put_plain(*text ? kl_param_display(e->param, text) : "(unset)");
    if (e->state == KL_PARAM_IS_DEFAULT) {
        printf(*text ? " (default)\n" : "\n");
        return;
    }
    printf(e->state == KL_PARAM_IS_SET ? " (" : " (default; refused: \"");
    if (e->state == KL_PARAM_IS_REFUSED) {
        put_plain(kl_param_display(e->param, e->setting.text));
        printf("\" from ");
    }
    put_origin(&e->setting);
    printf(")\n");
}

/* The entry that was printed last, for the empty lines between groups. */
struct page {
    const char *module;
    bool strays;
};

static void print_entry(void *ctx, const struct entry *e)
{
    struct page *page = ctx;
    char expected[512];

    if (!page->module || strcmp(page->module, e->module)) printf("%s%s\n", page->module ? "\n" : "", e->module);
    page->module = e->module;
    printf("  %s = ", e->param->name);
    print_value(e);
    const enum kl_param_scope scope = e->param->scope;
    printf("      %s%s\n", e->param->doc,
           scope == KL_ALIKE        ? "; the same on all ranks"
           : scope == KL_HOST_ALIKE ? "; the same on all ranks of a host"
                                    : "");
    printf("      %s; default ", kl_param_expected(e->param, expected, sizeof expected));
    printf(*e->param->dfl ? "\"%s\"\n" : "unset%s\n", e->param->dfl);
}

static void end_entries(struct page *page)
{
    if (page->module && !page->strays) putchar('\n');
    page->strays = true;
}

static void print_stray(void *ctx, const struct stray *s)
{
    end_entries(ctx);
    put_plain(s->setting.name);
    if (s->setting.text) {
        printf(" (");
        put_origin(&s->setting);
        putchar(')');
    }
    if (s->other)
        printf(": %s\n", s->other->note ? s->other->note : "known to NCCL, no effect in Kolo");
    else
        printf(s->nearest ? ": unknown, no effect; did you mean %s?\n" : ": unknown, no effect%s\n",
               s->nearest ? s->nearest : "");
}

static void print_problem(void *ctx, const struct kl_conf *conf, const struct kl_conf_problem *p)
{
    end_entries(ctx);
    if (p->line)
        printf("%s:%d %s; the line is left out\n", conf->file, p->line, p->what);
    else
        printf("%s %s; no setting is taken from it\n", conf->file, p->what);
}

/* ---- for programs ---- */

struct document {
    json_t *parameters, *others, *unknown, *problems;
};

/* JSON is UTF-8; the environment may be anything. */
static json_t *json_text(const char *text)
{
    json_t *json = json_string(text);
    char *ascii = json ? NULL : strdup(text);

    if (!ascii) return json;
    for (char *c = ascii; *c; c++)
        if (!isascii((unsigned char)*c)) *c = '?';
    json = json_string(ascii);
    free(ascii);
    return json;
}

static json_t *json_origin(const struct kl_setting *setting)
{
    char origin[KL_ORIGIN_TEXT];

    return json_text(kl_setting_origin(setting, origin));
}

static json_t *json_choices(const char *const *choices)
{
    json_t *array = json_array();

    for (; *choices; choices++) json_array_append_new(array, json_string(*choices));
    return array;
}

static void add_entry(void *ctx, const struct entry *e)
{
    static const char *const states[] = {"default", "set", "refused"};
    struct document *d = ctx;
    const struct kl_param *p = e->param;
    const char *text = e->state == KL_PARAM_IS_SET ? e->setting.text : p->dfl;
    char expected[512];
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "module", e->module, "name", p->name, "ranks",
                  kl_param_scope_name[p->scope], "type", type_names[p->type], "default", p->dfl, "accepts",
                  kl_param_expected(p, expected, sizeof expected), "meaning", p->doc, "state", states[e->state]);

    json_object_set_new(row, "value", json_text(kl_param_display(p, text)));
    json_object_set_new(row, "source", e->state == KL_PARAM_IS_DEFAULT ? json_null() : json_origin(&e->setting));
    if (e->state == KL_PARAM_IS_REFUSED)
        json_object_set_new(row, "refused", json_text(kl_param_display(p, e->setting.text)));
    if (p->choices) json_object_set_new(row, "choices", json_choices(p->choices));
    if (p->type == KL_PARAM_TYPE_INT || p->type == KL_PARAM_TYPE_SIZE) {
        json_object_set_new(row, "min", json_integer(p->min));
        json_object_set_new(row, "max", json_integer(p->max));
    }
    json_array_append_new(d->parameters, row);
}

static void add_stray(void *ctx, const struct stray *s)
{
    struct document *d = ctx;
    json_t *row = json_pack("{s:o, s:o}", "name", json_text(s->setting.name), "source",
                            s->setting.text ? json_origin(&s->setting) : json_null());

    if (s->other)
        json_object_set_new(row, "note", s->other->note ? json_string(s->other->note) : json_null());
    else
        json_object_set_new(row, "nearest", s->nearest ? json_string(s->nearest) : json_null());
    json_array_append_new(s->other ? d->others : d->unknown, row);
}

static void add_problem(void *ctx, const struct kl_conf *conf, const struct kl_conf_problem *p)
{
    struct document *d = ctx;

    json_array_append_new(
        d->problems, json_pack("{s:o, s:i, s:s}", "file", json_text(conf->file), "line", p->line, "problem", p->what));
}

static void print_json(struct walk *w)
{
    struct document d = {json_array(), json_array(), json_array(), json_array()};
    const struct printer printer = {add_entry, add_stray, add_problem, &d};

    w->printer = &printer;
    walk_all(w);
    json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "parameters", d.parameters, "others", d.others, "unknown",
                            d.unknown, "problems", d.problems);
    if (w->shown || !w->request->only) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    }
    json_decref(all);
}

/* ---- the reference page ---- */

static void put_cell(const char *text)
{
    for (; *text; text++) {
        if (*text == '|') putchar('\\');
        putchar(*text);
    }
}

static void page_set(const struct kl_param_set *set)
{
    char expected[512];

    printf("\n## %s\n\n| variable | default | ranks | accepts | meaning |\n|---|---|---|---|---|\n", set->module);
    for (size_t i = 0; i < set->nparams; i++) {
        const struct kl_param *p = &set->params[i];

        printf("| `%s` | ", p->name);
        if (*p->dfl) printf("`%s`", p->dfl);
        printf(" | %s | ", kl_param_scope_name[p->scope]);
        put_cell(kl_param_expected(p, expected, sizeof expected));
        printf(" | ");
        put_cell(p->doc);
        printf(" |\n");
    }
}

static void print_page(void)
{
    const struct kl_param_name *other;

    printf(
        "# Environment variables\n\n"
        "Generated by `kolo env --markdown`; `kolo env` shows the values in force.\n\n"
        "Sources, the first counts: the environment; the file named by `NCCL_CONF_FILE`, else `~/.nccl.conf`;\n"
        "`/etc/nccl.conf`. Files hold lines `NAME=VALUE`, taken literally; lines that begin with `#` are comments.\n"
        "An empty value is the default. A value that is refused is reported (`NCCL_DEBUG=WARN`) and the default\n"
        "stays in force. Sizes take K, M and G, powers of 1024, as in 64K, 1.5M, 1GB.\n\n"
        "May ranks have different values? *all alike*: no. They compare them when a communicator is made, and each\n"
        "of them fails with ncclInvalidUsage and a sentence that names the variable, its values and the ranks.\n"
        "*a host's alike*: the ranks of one host (or NVLink domain) need the same, which is compared as well; hosts\n"
        "may differ. *settled*: yes, and one counts: that of the first rank of a host, or the values that all have.\n"
        "*own*: yes, each rank uses its own.\n");
    for (const struct kl_param_set *const *set = kl_param_registry.sets; *set; set++) page_set(*set);

    printf("\n## Elsewhere\n\n| variable | meaning |\n|---|---|\n");
    for (other = kl_param_registry.others; other->name; other++)
        if (other->note) printf("| `%s` | %s |\n", other->name, other->note);
    printf("\n## Known to NCCL, no effect in Kolo\n\n");
    for (other = kl_param_registry.others; other->name; other++)
        if (!other->note) printf("- `%s`\n", other->name);
}

/* ---- the command ---- */

static int refuse(const char *why)
{
    fprintf(stderr, "kolo env: %s; `kolo env --help` explains\n", why);
    return EXIT_USAGE;
}

/* -1: go on; else the exit code. The name may stand between options. */
static int parse_arguments(int argc, char **argv, struct request *r)
{
    char why[256];
    int at = kl_opts_parse(table, argc, argv, 1, r, why, sizeof why);

    if (at >= 0 && at < argc) {
        r->only = argv[at];
        at = kl_opts_parse(table, argc, argv, at + 1, r, why, sizeof why);
    }
    if (at >= 0 && at < argc) {
        kl_opts_refuse_word(table, argv[at], why, sizeof why);
        at = -1;
    }
    if (at < 0) return refuse(why);
    if (r->help) {
        print_help(stdout);
        return EXIT_OK;
    }
    return r->markdown && (r->only || r->only_set || r->json) ? refuse("--markdown goes alone") : -1;
}

static int report_unknown(const char *name)
{
    const char *nearest = kl_param_nearest(&kl_param_registry, name);

    fprintf(stderr, "kolo env: no module or parameter \"%s\"", name);
    fprintf(stderr, nearest ? "; did you mean %s?\n" : "; `kolo env` lists all%s\n", nearest ? nearest : "");
    return EXIT_USAGE;
}

static int command(int argc, char **argv)
{
    struct request request = {0};
    struct page page = {0};
    const struct printer people = {print_entry, print_stray, print_problem, &page};
    struct walk w = {.request = &request, .printer = &people};
    int done = parse_arguments(argc, argv, &request);

    if (done >= 0) return done;
    if (request.markdown) {
        print_page();
        return EXIT_OK;
    }
    if (request.json)
        print_json(&w);
    else
        walk_all(&w);
    if (!w.shown && request.only) return report_unknown(request.only);
    if (!w.bad) return EXIT_OK;
    if (kl_output_end(stdout)) fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}

const struct kl_command kl_command_env = {"env",      command, "list parameters, their defaults and current values",
                                          print_help, table,   NULL};
