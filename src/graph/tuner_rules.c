/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuner_rules.h"

#include "base/log.h"
#include "base/parse.h"
#include "graph/tuning.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NEEDED = 8, FIELDS = 10, LINE = 1024, MOST = 4096 }; /* MOST: rules of a file */

static const char *const field_name[FIELDS] = {"function", "minBytes", "maxBytes", "algorithm",  "protocol",
                                               "channels", "nNodes",   "nRanks",   "numPipeOps", "regBuff"};
static const char *const funcs[] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce", NULL};
static const char *const algos[] = {"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree",
                                    "pat",  NULL};
static const char *const protos[] = {"ll", "ll128", "simple", NULL};

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

static bool read_line(char *line, const char *name, int number, struct kl_tuner_rule *r)
{
    char *field[FIELDS];
    const int n = split(line, field);

    *r = (struct kl_tuner_rule){.line = number};
    if (n < NEEDED) {
        KL_WARN("%s:%d: a rule has at least %d fields, not %d; it is left out", name, number, NEEDED, n);
        return false;
    }
    if (n > FIELDS) {
        KL_WARN("%s:%d: a rule has at most %d fields; it is left out", name, number, FIELDS);
        return false;
    }
    const int bad = read_fields(field, n, r);
    if (bad == FIELDS) return true;
    KL_WARN("%s:%d: \"%s\" is no %s; the rule is left out", name, number, field[bad], field_name[bad]);
    return false;
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

static void look_at(const struct kl_tuner_rules *rules, const struct kl_tuner_rule *r, const char *name)
{
    const struct kl_tuner_rule *cover = find_cover(rules, r);

    if (r->least > r->most)
        KL_WARN("%s:%d: minBytes is above maxBytes: the rule is never used", name, r->line);
    else if (cover)
        KL_WARN("%s:%d: line %d takes all of it: the rule is never used", name, r->line, cover->line);
}

/* Of the head line of a table. */
static bool is_head(const char *line)
{
    return !strncasecmp(line, "coll", 4) || !strncasecmp(line, "func", 4);
}

/* The next line, without its comment; of one that is too long, nothing. False: there is none. */
static bool next_line(FILE *from, const char *name, int number, char line[LINE])
{
    if (!fgets(line, LINE, from)) return false;
    const bool whole = strchr(line, '\n') || feof(from), comment = strchr(line, '#');
    int c = 0;

    while (!whole && c != '\n' && c != EOF) c = fgetc(from);
    if (!whole && !comment) {
        KL_WARN("%s:%d: a line of more than %d characters; it is left out", name, number, LINE - 2);
        *line = 0;
    }
    line[strcspn(line, "#\r\n")] = 0;
    return true;
}

bool kl_tuner_rules_read(FILE *from, const char *name, struct kl_tuner_rules *rules)
{
    char line[LINE];
    bool good = true;

    *rules = (struct kl_tuner_rules){.rule = NULL};
    for (int number = 1; good && next_line(from, name, number, line); number++) {
        struct kl_tuner_rule r;
        if (!line[strspn(line, " \t")] || (!rules->n && is_head(line)) || !read_line(line, name, number, &r)) continue;
        if (rules->n == MOST) {
            KL_WARN("%s:%d: more than %d rules; this one and those behind it are left out", name, number, MOST);
            break;
        }
        look_at(rules, &r, name);
        good = add(rules, &r);
    }
    if (!good) kl_tuner_rules_free(rules);
    return good;
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
