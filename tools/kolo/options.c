/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/options.h"

#include "base/parse.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SAY(parse, ...) snprintf((parse)->why, (parse)->why_size, __VA_ARGS__)

struct parse {
    const struct kl_opt *table;
    int argc;
    char **argv;
    int at; /* the word being read */
    void *values;
    char *why;
    size_t why_size;
    char shown[64]; /* the option as the user wrote it, for messages */
};

static int parse_ms(const char *text, uint64_t *ms)
{
    char *end;

    if (!isdigit((unsigned char)text[0]) && text[0] != '.') return -1;
    double seconds = strtod(text, &end);
    if (end == text || *end || !(seconds >= 0 && seconds <= 1e9)) return -1;
    *ms = (uint64_t)(seconds * 1000 + 0.5);
    return 0;
}

/* The range of KOLO_NET_SPEED: from 1 to 2^31 - 1 Mb/s. */
static int parse_rate(const char *text, uint64_t *bits)
{
    char *end;

    if (!isdigit((unsigned char)text[0])) return -1;
    double rate = strtod(text, &end);
    if (toupper((unsigned char)*end) == 'M')
        rate *= 1e6, end++;
    else if (toupper((unsigned char)*end) == 'G')
        rate *= 1e9, end++;
    if (*end || !(rate >= 1e6 && rate <= 1e6 * INT_MAX)) return -1;
    *bits = (uint64_t)(rate + 0.5);
    return 0;
}

static int store_int(struct parse *p, const struct kl_opt *opt, const char *text, int *field)
{
    int64_t value;

    if (kl_parse_int(text, &value) && value >= opt->min && value <= opt->max) return *field = (int)value, 0;
    const bool is_number = *text && strspn(text, "0123456789") == strlen(text);
    if (is_number && opt->max == INT_MAX && (!kl_parse_int(text, &value) || value > INT_MAX))
        SAY(p, "%s: %s is too large; at most %d", p->shown, text, INT_MAX);
    else if (opt->max == INT_MAX)
        SAY(p, "%s: \"%s\" is not a whole number from %lld on", p->shown, text, (long long)opt->min);
    else
        SAY(p, "%s: \"%s\" is not a whole number from %lld to %lld", p->shown, text, (long long)opt->min,
            (long long)opt->max);
    return -1;
}

static int add_to_list(struct parse *p, const char *text, struct kl_opt_list *list)
{
    if (list->n == KL_OPT_LIST_MAX)
        return SAY(p, "%s: it may be given at most %d times", p->shown, KL_OPT_LIST_MAX), -1;
    list->text[list->n++] = text;
    return 0;
}

static int store(struct parse *p, const struct kl_opt *opt, const char *text)
{
    void *field = (char *)p->values + opt->field;

    if (!*text && (opt->kind == KL_OPT_TEXT || opt->kind == KL_OPT_LIST))
        return SAY(p, "%s needs a value, and was given an empty one", p->shown), -1;
    switch (opt->kind) {
    case KL_OPT_INT:
    case KL_OPT_SWITCH:
        return store_int(p, opt, text, field);
    case KL_OPT_SIZE:
        if (kl_parse_size(text, field)) return 0;
        SAY(p, "%s: \"%s\" is not a size; write bytes, or 64K, 1.5M, 1GB", p->shown, text);
        return -1;
    case KL_OPT_TIME:
        if (!parse_ms(text, field)) return 0;
        SAY(p, "%s: \"%s\" is not a number of seconds", p->shown, text);
        return -1;
    case KL_OPT_RATE:
        if (!parse_rate(text, field)) return 0;
        SAY(p, "%s: \"%s\" is not a rate; write bits per second, 1M at least, or 100M, 25G", p->shown, text);
        return -1;
    case KL_OPT_LIST:
        return add_to_list(p, text, field);
    default:
        *(const char **)field = text;
        return 0;
    }
}

static int is_binary_digit(const char *word)
{
    return word && (!strcmp(word, "0") || !strcmp(word, "1"));
}

/* `attached` is the value written in the same word, or NULL. */
static int take(struct parse *p, const struct kl_opt *opt, const char *attached)
{
    static const struct kl_opt binary = {.kind = KL_OPT_INT, .min = 0, .max = 1};
    const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : NULL;
    int *flag = (int *)((char *)p->values + opt->field);

    switch (opt->kind) {
    case KL_OPT_REFUSED:
        SAY(p, "%s has no meaning here: %s", p->shown, opt->doc);
        return -1;
    case KL_OPT_FLAG:
        if (attached) return SAY(p, "%s takes no value", p->shown), -1;
        *flag = 1;
        return 0;
    case KL_OPT_SWITCH:
        if (!attached && !is_binary_digit(next)) return *flag = 1, 0;
        if (!attached) p->at++, attached = next;
        return store_int(p, &binary, attached, flag);
    default:
        if (!attached && !next) return SAY(p, "%s needs a value", p->shown), -1;
        if (!attached) p->at++, attached = next;
        return store(p, opt, attached);
    }
}

static int take_long(struct parse *p, const char *word)
{
    size_t length = strcspn(word, "=");

    snprintf(p->shown, sizeof p->shown, "--%.*s", (int)(length < 48 ? length : 48), word);
    for (const struct kl_opt *o = p->table; o->letter || o->name; o++)
        if (o->name && strlen(o->name) == length && !strncmp(o->name, word, length))
            return take(p, o, word[length] ? word + length + 1 : NULL);
    SAY(p, "unknown option %s", p->shown);
    return -1;
}

static int take_short(struct parse *p, const char *word)
{
    snprintf(p->shown, sizeof p->shown, "-%c", word[0]);
    for (const struct kl_opt *o = p->table; o->letter || o->name; o++)
        if (o->letter == word[0]) return take(p, o, word[1] ? word + 1 : NULL);
    SAY(p, "unknown option %s", p->shown);
    return -1;
}

/* -np 4, as mpirun has it, where there is --np. */
static bool is_np(const struct kl_opt *table, const char *word)
{
    bool has_np = false;

    for (const struct kl_opt *o = table; o->letter || o->name; o++) has_np |= o->name && !strcmp(o->name, "np");
    return has_np && !strcmp(word, "-np");
}

int kl_opts_parse(const struct kl_opt *table, int argc, char **argv, int first, void *values, char *why,
                  size_t why_size)
{
    struct parse p = {.table = table, .argc = argc, .argv = argv, .values = values, .why = why, .why_size = why_size};

    for (p.at = first; p.at < argc; p.at++) {
        const char *word = argv[p.at];

        if (word[0] != '-' || !word[1]) return p.at;
        if (!strcmp(word, "--")) return p.at + 1;
        if (is_np(table, word)) word = "--np";
        if (word[1] == '-' ? take_long(&p, word + 2) : take_short(&p, word + 1)) return -1;
    }
    return argc;
}

bool kl_opts_is_file(const char *word)
{
    size_t n = strlen(word);

    return (n > 4 && !strcmp(word + n - 4, ".xml")) || (strchr(word, '/') && !access(word, F_OK));
}

void kl_opts_refuse_word(const struct kl_opt *table, const char *word, char *why, size_t why_size)
{
    bool has_topo = false;

    for (const struct kl_opt *o = table; o->letter || o->name; o++) has_topo |= o->name && !strcmp(o->name, "topo");
    if (has_topo && kl_opts_is_file(word))
        snprintf(why, why_size, "\"%s\" is no operand; use --topo %s", word, word);
    else
        snprintf(why, why_size, "unexpected operand \"%s\"", word);
}

static void print_doc(FILE *to, const char *doc)
{
    enum { COLUMN = 30, WIDTH = 90 };

    while (strlen(doc) > WIDTH) {
        int cut = WIDTH;
        while (cut > 1 && doc[cut] != ' ') cut--;
        fprintf(to, "%.*s\n%*s", cut, doc, COLUMN, "");
        doc += cut + 1;
    }
    fprintf(to, "%s\n", doc);
}

void kl_opts_help(const struct kl_opt *table, FILE *to)
{
    for (const struct kl_opt *o = table; o->letter || o->name; o++) {
        char form[64], letter[8] = "   ";

        if (o->kind == KL_OPT_REFUSED) continue;
        if (o->letter) snprintf(letter, sizeof letter, "-%c%s", o->letter, o->name ? "," : "");
        snprintf(form, sizeof form, "%s %s%s %s", letter, o->name ? "--" : "", o->name ? o->name : "",
                 o->arg ? o->arg : "");
        if (strlen(form) > 27)
            fprintf(to, "  %s\n%30s", form, "");
        else
            fprintf(to, "  %-27s ", form);
        print_doc(to, o->doc);
    }
}
