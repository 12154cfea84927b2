/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuner_rules.h"

#include "base/parse.h"
#include "graph/tuner_json.h"
#include "graph/tuning.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEEDED = 8, FIELDS = KL_TUNER_FIELDS, LINE = 1024, TEXT = 1400, MOST = 4096 }; /* MOST: rules of a file */

static const char *const funcs[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
static const char *const algos[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree",
                                    "pat",  NULL};
static const char *const protos[] = {"ll", "ll128", "simple", NULL};

/* ---- a file that is read ---- */

struct source {
    const char *name;
    bool is_json; /* its numbers count rules, not lines */
    kl_tuner_say *say;
    void *ctx;
    struct kl_tuner_rules *rules;
    bool no_memory;
};

__attribute__((format(printf, 4, 5))) static void say(const struct source *s, int number, bool mistake,
                                                      const char *format, ...)
{
    char text[TEXT];
    const int n = number && s->is_json ? snprintf(text, sizeof text, "%.300s, rule %d: ", s->name, number)
                  : number             ? snprintf(text, sizeof text, "%.300s:%d: ", s->name, number)
                                       : snprintf(text, sizeof text, "%.300s: ", s->name);
    va_list args;

    va_start(args, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    s->say(s->ctx, mistake, text);
}

/* ---- a line ---- */

/* Cut at commas, without blanks around; the number of fields, FIELDS + 1 for any more. */
static int split(char *line, char *field[FIELDS])
{
    char *at = line, *comma;
    int n = 0;

    for (; at && n < FIELDS; at = comma) {
        comma = strchr(at, ',');
        if (comma) *comma++ = 0;
        while (isspace((unsigned char)*at)) at++;
        size_t bytes = strlen(at);
        while (bytes && isspace((unsigned char)at[bytes - 1])) at[--bytes] = 0;
        field[n++] = at;
    }
    return n + (at != NULL);
}

static bool read_name(const char *text, const char *const *names, int *value)
{
    *value = KL_TUNER_ANY;
    if (!*text || !strcmp(text, "-1")) return true;
    for (int i = 0; names[i]; i++)
        if (!strcasecmp(text, names[i])) *value = i;
    return *value >= 0;
}

static bool read_number(const char *text, int64_t most, int64_t *value)
{
    *value = KL_TUNER_ANY;
    return !*text || (kl_parse_int(text, value) && *value >= KL_TUNER_ANY && *value <= most);
}

/* The number of the field that is not understood; FIELDS: all are. */
static int read_fields(char *const field[FIELDS], int n, struct kl_tuner_rule *r)
{
    int64_t number[FIELDS];

    if (!read_name(field[0], funcs, &r->func)) return 0;
    if (!read_name(field[3], algos, &r->algo)) return 3;
    if (!read_name(field[4], protos, &r->proto)) return 4;
    for (int i = 0; i < FIELDS; i++) {
        const bool is_size = i == 1 || i == 2, is_name = i == 0 || i == 3 || i == 4;
        number[i] = KL_TUNER_ANY;
        if (i < n && !is_name && !read_number(field[i], is_size ? INT64_MAX : INT32_MAX, &number[i])) return i;
    }
    r->least = number[1] < 0 ? 0 : number[1];
    r->most = number[2] < 0 ? INT64_MAX : number[2];
    r->nchannels = (int)number[5];
    r->nnodes = (int)number[6];
    r->nranks = (int)number[7];
    r->npipe = (int)number[8];
    r->registered = (int)number[9];
    return FIELDS;
}

static bool read_texts(char *const field[FIELDS], int n, const struct source *s, int number, struct kl_tuner_rule *r)
{
    *r = (struct kl_tuner_rule){.line = number};
    const int bad = read_fields(field, n, r);
    if (bad == FIELDS) return true;
    say(s, number, true, "\"%s\" is no %s; the rule is left out", field[bad], kl_tuner_field_name[bad]);
    return false;
}

static bool read_line(char *line, const struct source *s, int number, struct kl_tuner_rule *r)
{
    char *field[FIELDS];
    const int n = split(line, field);

    if (n < NEEDED) {
        say(s, number, true, "a rule has at least %d fields, not %d; it is left out", NEEDED, n);
        return false;
    }
    if (n > FIELDS) {
        say(s, number, true, "a rule has at most %d fields; it is left out", FIELDS);
        return false;
    }
    return read_texts(field, n, s, number, r);
}

/* ---- files ---- */

static bool add(struct kl_tuner_rules *rules, const struct kl_tuner_rule *r)
{
    struct kl_tuner_rule *more = realloc(rules->rule, (size_t)(rules->n + 1) * sizeof *more);

    if (!more) return false;
    more[rules->n++] = *r;
    rules->rule = more;
    return true;
}

static bool within(int part, int whole)
{
    return whole == KL_TUNER_ANY || part == whole;
}

/* Does an earlier rule take all that this one is for? */
static const struct kl_tuner_rule *find_cover(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *r)
{
    for (int i = 0; i < rules->n; i++) {
        const struct kl_tuner_rule *e = &rules->rule[i];
        if (within(r->func, e->func) && within(r->nnodes, e->nnodes) && within(r->nranks, e->nranks) &&
            within(r->npipe, e->npipe) && within(r->registered, e->registered) && r->least >= e->least &&
            r->most <= e->most)
            return e;
    }
    return NULL;
}

static bool meets(int a, int b)
{
    return a == KL_TUNER_ANY || b == KL_TUNER_ANY || a == b;
}

/* The first earlier rule that takes a part of it. */
static const struct kl_tuner_rule *find_overlap(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *r)
{
    for (int i = 0; i < rules->n; i++) {
        const struct kl_tuner_rule *e = &rules->rule[i];
        if (meets(r->func, e->func) && meets(r->nnodes, e->nnodes) && meets(r->nranks, e->nranks) &&
            meets(r->npipe, e->npipe) && meets(r->registered, e->registered) && r->least <= e->most &&
            e->least <= r->most)
            return e;
    }
    return NULL;
}

static void look_at(const struct source *s, const struct kl_tuner_rule *r)
{
    const struct kl_tuner_rule *cover = find_cover(s->rules, r), *overlap = find_overlap(s->rules, r);
    const char *unit = s->is_json ? "rule" : "line";

    if (r->least > r->most)
        say(s, r->line, true, "minBytes is above maxBytes: the rule is never used");
    else if (cover)
        say(s, r->line, true, "%s %d takes all of it: the rule is never used", unit, cover->line);
    else if (overlap)
        say(s, r->line, false, "%s %d takes a part of it, %lld to %lld bytes", unit, overlap->line,
            (long long)(r->least > overlap->least ? r->least : overlap->least),
            (long long)(r->most < overlap->most ? r->most : overlap->most));
}

/* False: no more are taken. */
static bool take(struct source *s, const struct kl_tuner_rule *r)
{
    if (s->rules->n == MOST) {
        say(s, r->line, true, "more than %d rules; this one and those behind it are left out", MOST);
        return false;
    }
    look_at(s, r);
    s->no_memory = !add(s->rules, r);
    return !s->no_memory;
}

/* Of the head line of a table. */
static bool is_head(const char *line)
{
    return !strncasecmp(line, "coll", 4) || !strncasecmp(line, "func", 4);
}

/* The next line, without its comment; of one that is too long, nothing. False: there is none. */
static bool next_line(FILE *from, const struct source *s, int number, char line[LINE])
{
    if (!fgets(line, LINE, from)) return false;
    const bool whole = strchr(line, '\n') || feof(from), comment = strchr(line, '#');
    int c = 0;

    while (!whole && c != '\n' && c != EOF) c = fgetc(from);
    if (!whole && !comment) {
        say(s, number, true, "a line of more than %d characters; it is left out", LINE - 2);
        *line = 0;
    }
    line[strcspn(line, "#\r\n")] = 0;
    return true;
}

static void read_csv(FILE *from, struct source *s)
{
    char line[LINE];

    for (int number = 1; next_line(from, s, number, line); number++) {
        struct kl_tuner_rule r;
        if (!line[strspn(line, " \t")] || (!s->rules->n && is_head(line)) || !read_line(line, s, number, &r)) continue;
        if (!take(s, &r)) return;
    }
}

static bool take_json(void *ctx, int number, char *const field[FIELDS])
{
    struct source *s = ctx;
    struct kl_tuner_rule r;

    return !read_texts(field, FIELDS, s, number, &r) || take(s, &r);
}

static void say_json(void *ctx, int number, const char *text)
{
    say(ctx, number, true, "%s", text);
}

/* Does it begin as JSON does? No rule of CSV begins so. */
static bool looks_like_json(FILE *from)
{
    int c;

    do c = fgetc(from);
    while (c != EOF && isspace(c));
    rewind(from);
    return c == '[' || c == '{';
}

bool kl_tuner_rules_read(FILE *from, const char *name, kl_tuner_say *report, void *ctx, struct kl_tuner_rules *rules)
{
    struct source s = {.name = name, .is_json = looks_like_json(from), .say = report, .ctx = ctx, .rules = rules};
    const struct kl_tuner_json_reader reader = {.ctx = &s, .rule = take_json, .mistake = say_json};

    *rules = (struct kl_tuner_rules){.rule = NULL};
    if (s.is_json)
        kl_tuner_json_read(from, &reader);
    else
        read_csv(from, &s);
    if (s.no_memory) kl_tuner_rules_free(rules);
    return !s.no_memory;
}

void kl_tuner_rules_free(struct kl_tuner_rules *rules)
{
    free(rules->rule);
    *rules = (struct kl_tuner_rules){.rule = NULL};
}

const struct kl_tuner_rule *kl_tuner_rules_find(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *call,
                                                int64_t bytes)
{
    for (int i = 0; i < rules->n; i++) {
        const struct kl_tuner_rule *r = &rules->rule[i];
        if (within(call->func, r->func) && within(call->nnodes, r->nnodes) && within(call->nranks, r->nranks) &&
            within(call->npipe, r->npipe) && within(call->registered, r->registered) && bytes >= r->least &&
            bytes <= r->most)
            return r;
    }
    return NULL;
}

/* ---- writing ---- */

static const char *name_of(const char *const *names, int value)
{
    return value < 0 ? "-1" : names[value];
}

static long long last_of(const struct kl_tuner_rule *r)
{
    return r->most == INT64_MAX ? KL_TUNER_ANY : (long long)r->most;
}

void kl_tuner_rules_csv(const struct kl_tuner_rules *rules, FILE *to)
{
    for (int i = 0; i < FIELDS; i++) fprintf(to, "%s%s", i ? "," : "# ", kl_tuner_field_name[i]);
    fputc('\n', to);
    for (int i = 0; i < rules->n; i++) {
        const struct kl_tuner_rule *r = &rules->rule[i];
        fprintf(to, "%s,%lld,%lld,%s,%s,%d,%d,%d,%d,%d\n", name_of(funcs, r->func), (long long)r->least, last_of(r),
                name_of(algos, r->algo), name_of(protos, r->proto), r->nchannels, r->nnodes, r->nranks, r->npipe,
                r->registered);
    }
}

void kl_tuner_rules_json(const struct kl_tuner_rules *rules, FILE *to)
{
    fprintf(to, "{\"rules\": [");
    for (int i = 0; i < rules->n; i++) {
        const struct kl_tuner_rule *r = &rules->rule[i];
        fprintf(
            to,
            "%s\n {\"function\": \"%s\", \"minBytes\": %lld, \"maxBytes\": %lld, \"algorithm\": \"%s\", \"protocol\": "
            "\"%s\", \"channels\": %d, \"nNodes\": %d, \"nRanks\": %d, \"numPipeOps\": %d, \"regBuff\": %d}",
            i ? "," : "", name_of(funcs, r->func), (long long)r->least, last_of(r), name_of(algos, r->algo),
            name_of(protos, r->proto), r->nchannels, r->nnodes, r->nranks, r->npipe, r->registered);
    }
    fprintf(to, "\n]}\n");
}
