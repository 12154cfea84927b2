/* SPDX-License-Identifier: Apache-2.0 */
/* Inline PTX for operations that C++ lacked: loads and stores with an order, reductions, fences, barriers, and special
 * registers. Each instruction becomes a call of kolo_cuda/ptx.h; any other one is an error. */
#include "compat/cuda/nvcc/translate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 40, ARGUMENTS = 10, MODIFIERS = 12 };

/* An asm statement: its text, and the expressions that %0, %1, ... stand for. */
struct statement {
    struct translation *t;
    uint32_t at; /* the word asm */
    char *expression[OPERANDS];
    unsigned operands;
    struct text out;
};

/* `red.global.add.u64 [%0+8], %1` in parts; vectors are several arguments. */
struct instruction {
    char *copy;
    const char *words[MODIFIERS]; /* separated by dots */
    unsigned word_count;
    char *arguments[ARGUMENTS];
    unsigned argument_count;
    char *address; /* the text in brackets */
    bool predicated;
};

static bool has(const struct instruction *i, const char *word)
{
    for (unsigned w = 0; w < i->word_count; w++)
        if (!strcmp(i->words[w], word)) return true;
    return false;
}

static bool is(const struct instruction *i, const char *word)
{
    return i->word_count && !strcmp(i->words[0], word);
}

/* ---- reading ---- */

static char *trimmed(const char *from, size_t bytes)
{
    while (bytes && isspace((unsigned char)*from)) from++, bytes--;
    while (bytes && isspace((unsigned char)from[bytes - 1])) bytes--;
    return must_copy(from, bytes);
}

static void add_argument(struct instruction *i, const char *from, size_t bytes)
{
    char *word = trimmed(from, bytes);

    if (!*word || i->argument_count == ARGUMENTS)
        free(word);
    else
        i->arguments[i->argument_count++] = word;
}

static void read_arguments(struct instruction *i, const char *c)
{
    const char *start = c;

    for (; *c; c++) {
        if (*c == '[' && strchr(c, ']')) {
            const char *close = strchr(c, ']');

            free(i->address);
            i->address = trimmed(c + 1, (size_t)(close - c - 1));
            start = c = close;
            start++;
        } else if (*c == ',' || *c == '{' || *c == '}') {
            add_argument(i, start, (size_t)(c - start));
            start = c + 1;
        }
    }
    add_argument(i, start, (size_t)(c - start));
}

static struct instruction read_instruction(const char *text)
{
    struct instruction i = {.copy = trimmed(text, strlen(text))};
    char *end = i.copy + strcspn(i.copy, " \t\n"), *rest = *end ? end + 1 : end;

    *end = 0;
    i.predicated = i.copy[0] == '@';
    for (char *w = i.copy; w && i.word_count < MODIFIERS;) {
        char *dot = strchr(w, '.');

        if (dot) *dot = 0;
        i.words[i.word_count++] = w;
        w = dot ? dot + 1 : NULL;
    }
    read_arguments(&i, rest);
    return i;
}

static void drop_instruction(struct instruction *i)
{
    for (unsigned a = 0; a < i->argument_count; a++) free(i->arguments[a]);
    free(i->address);
    free(i->copy);
}

/* ---- operands ---- */

static const struct {
    const char *name, *value;
} registers[] = {{"laneid", "__kolo::lane()"},
                 {"warpid", "(__kolo::thread_rank() / 32)"},
                 {"lanemask_lt", "((1u << __kolo::lane()) - 1)"},
                 {"lanemask_le", "((2u << __kolo::lane()) - 1)"},
                 {"lanemask_eq", "(1u << __kolo::lane())"},
                 {"lanemask_ge", "(~0u << __kolo::lane())"},
                 {"lanemask_gt", "(~0u << __kolo::lane() << 1)"},
                 {"globaltimer", "__globaltimer()"},
                 {"globaltimer_lo", "(unsigned)__globaltimer()"},
                 {"clock", "(unsigned)clock64()"},
                 {"clock64", "clock64()"},
                 {"smid", "0u"},
                 {"nsmid", "1u"},
                 {"gridid", "0ull"},
                 {"tid.x", "threadIdx.x"},
                 {"tid.y", "threadIdx.y"},
                 {"tid.z", "threadIdx.z"},
                 {"ntid.x", "blockDim.x"},
                 {"ntid.y", "blockDim.y"},
                 {"ntid.z", "blockDim.z"},
                 {"ctaid.x", "blockIdx.x"},
                 {"ctaid.y", "blockIdx.y"},
                 {"ctaid.z", "blockIdx.z"},
                 {"nctaid.x", "gridDim.x"},
                 {"nctaid.y", "gridDim.y"},
                 {"nctaid.z", "gridDim.z"}};

/* The expression of `%1`, `%%laneid` or a number; NULL: none of these. To be freed. */
static char *value_of(const struct statement *s, const char *word)
{
    char *end;

    if (isdigit((unsigned char)word[0]) || (word[0] == '-' && isdigit((unsigned char)word[1])))
        return must_copy(word, strlen(word));
    if (word[0] != '%') return NULL;
    if (isdigit((unsigned char)word[1])) {
        unsigned long n = strtoul(word + 1, &end, 10);
        return n < s->operands && !*end ? must_print("(%s)", s->expression[n]) : NULL;
    }
    word += word[1] == '%' ? 2 : 1;
    for (size_t r = 0; r < sizeof registers / sizeof registers[0]; r++)
        if (!strcmp(word, registers[r].name)) return must_copy(registers[r].value, strlen(registers[r].value));
    return NULL;
}

static const char *type_of(const struct instruction *i)
{
    static const struct {
        const char *ptx, *type;
    } types[] = {{"u8", "uint8_t"},   {"s8", "int8_t"},    {"b8", "uint8_t"},  {"u16", "uint16_t"}, {"s16", "int16_t"},
                 {"b16", "uint16_t"}, {"u32", "uint32_t"}, {"s32", "int32_t"}, {"b32", "uint32_t"}, {"u64", "uint64_t"},
                 {"s64", "int64_t"},  {"b64", "uint64_t"}, {"f32", "float"},   {"f64", "double"}};

    for (size_t n = 0; n < sizeof types / sizeof types[0]; n++)
        if (has(i, types[n].ptx)) return types[n].type;
    return NULL;
}

/* The address as a pointer to its type: `%1`, `%1+8`, `%1 + 8`. */
static bool put_address(struct statement *s, const struct instruction *i, const char *type)
{
    char *plus, *base, *value;
    long offset = 0;

    if (!i->address || !*i->address) return false;
    plus = strpbrk(i->address + 1, "+-");
    if (plus) offset = strtol(plus + (*plus == '+'), NULL, 0);
    base = trimmed(i->address, plus ? (size_t)(plus - i->address) : strlen(i->address));
    value = value_of(s, base);
    if (value)
        text_print(&s->out, "%s *__kolo_at = __kolo::ptx::%s<%s>(%s, %ld); ", type,
                   has(i, "shared") ? "shared" : "global", type, value, offset);
    free(base);
    free(value);
    return value != NULL;
}

/* ---- instructions ---- */

static const char *order_of(const struct instruction *i)
{
    if (has(i, "sc")) return "__kolo::ptx::seq_cst";
    if (has(i, "acq_rel")) return "__kolo::ptx::acq_rel";
    if (has(i, "acquire")) return "__kolo::ptx::acquire";
    if (has(i, "release")) return "__kolo::ptx::release";
    return "__kolo::ptx::relaxed";
}

static bool is_ordered(const struct instruction *i)
{
    return has(i, "relaxed") || has(i, "acquire") || has(i, "release") || has(i, "volatile") || has(i, "mmio");
}

static unsigned width_of(const struct instruction *i)
{
    return has(i, "v2") ? 2 : has(i, "v4") ? 4 : has(i, "v8") ? 8 : 1;
}

static bool do_load(struct statement *s, const struct instruction *i)
{
    const char *type = type_of(i);

    if (!type || i->argument_count != width_of(i) || !put_address(s, i, type)) return false;
    for (unsigned n = 0; n < i->argument_count; n++) {
        char *to = value_of(s, i->arguments[n]);

        if (!to) return false;
        if (is_ordered(i))
            text_print(&s->out, "__kolo::ptx::put(%s, __kolo::ptx::load<%s>(__kolo_at + %u)); ", to, order_of(i), n);
        else
            text_print(&s->out, "__kolo::ptx::put(%s, __kolo_at[%u]); ", to, n);
        free(to);
    }
    return true;
}

static bool do_store(struct statement *s, const struct instruction *i)
{
    const char *type = type_of(i);

    if (!type || has(i, "async") || has(i, "bulk") || i->argument_count != width_of(i) || !put_address(s, i, type))
        return false;
    for (unsigned n = 0; n < i->argument_count; n++) {
        char *from = value_of(s, i->arguments[n]);

        if (!from) return false;
        if (is_ordered(i))
            text_print(&s->out, "__kolo::ptx::store<%s>(__kolo_at + %u, __kolo::ptx::take<%s>(%s)); ", order_of(i), n,
                       type, from);
        else
            text_print(&s->out, "__kolo_at[%u] = __kolo::ptx::take<%s>(%s); ", n, type, from);
        free(from);
    }
    return true;
}

/* red has no result, atom has one before its operands. */
static bool do_atomic(struct statement *s, const struct instruction *i)
{
    static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};
    const char *type = type_of(i), *operation = NULL;
    unsigned first = is(i, "atom"), last = i->argument_count;
    char *to, *values[2] = {NULL, NULL};
    bool good;

    for (size_t n = 0; n < sizeof operations / sizeof operations[0]; n++)
        if (has(i, operations[n])) operation = operations[n];
    if (!type || !operation || has(i, "async") || width_of(i) != 1 || last != first + 1 + !strcmp(operation, "cas") ||
        !put_address(s, i, type))
        return false;
    to = first ? value_of(s, i->arguments[0]) : NULL;
    for (unsigned n = first; n < last; n++) values[n - first] = value_of(s, i->arguments[n]);
    good = values[0] && (last - first == 1 || values[1]) && (!first || to);
    if (good) {
        if (first) text_print(&s->out, "__kolo::ptx::put(%s, ", to);
        if (has(i, "acquire") || has(i, "release") || has(i, "acq_rel")) text_put(&s->out, "__kolo::ptx::fenced(");
        text_print(&s->out, "__kolo::ptx::atomic_%s(__kolo_at, __kolo::ptx::take<%s>(%s)", operation, type, values[0]);
        if (values[1]) text_print(&s->out, ", __kolo::ptx::take<%s>(%s)", type, values[1]);
        text_put(&s->out, has(i, "acquire") || has(i, "release") || has(i, "acq_rel") ? "))" : ")");
        text_put(&s->out, first ? "); " : "; ");
    }
    free(to);
    free(values[0]);
    free(values[1]);
    return good;
}

static bool do_move(struct statement *s, const struct instruction *i)
{
    char *to = i->argument_count == 2 ? value_of(s, i->arguments[0]) : NULL,
         *from = to ? value_of(s, i->arguments[1]) : NULL;
    const char *type = type_of(i);

    if (from && type) text_print(&s->out, "__kolo::ptx::put(%s, __kolo::ptx::take<%s>(%s)); ", to, type, from);
    free(to);
    free(from);
    return from && type;
}

static bool do_convert(struct statement *s, const struct instruction *i)
{
    char *to = i->argument_count == 2 ? value_of(s, i->arguments[0]) : NULL,
         *from = to ? value_of(s, i->arguments[1]) : NULL;

    if (from && has(i, "shared"))
        text_print(&s->out, "__kolo::ptx::put(%s, __kolo::ptx::%s(%s)); ", to, has(i, "to") ? "to_shared" : "of_shared",
                   from);
    else if (from)
        text_print(&s->out, "__kolo::ptx::put(%s, __kolo::ptx::take<uint64_t>(%s)); ", to, from);
    free(to);
    free(from);
    return from != NULL;
}

static bool do_barrier(struct statement *s, const struct instruction *i)
{
    char *id = i->argument_count ? value_of(s, i->arguments[0]) : NULL;
    char *count = i->argument_count > 1 ? value_of(s, i->arguments[1]) : must_copy("0", 1);
    bool good = id && count && !has(i, "red") && !has(i, "cluster");

    if (good && has(i, "warp"))
        text_print(&s->out, "__syncwarp(%s); ", id);
    else if (good && has(i, "arrive"))
        text_print(&s->out, "__koloBarrierArrive(%s, %s); ", id, count);
    else if (good && has(i, "sync"))
        text_print(&s->out, "(void)__koloBarrier(%s, %s, KOLO_BARRIER_PLAIN, 0, __builtin_FILE(), __builtin_LINE()); ",
                   id, count);
    else
        good = false;
    free(id);
    free(count);
    return good;
}

static bool do_other(struct statement *s, const struct instruction *i)
{
    char *value;

    if (is(i, "fence") || is(i, "membar")) {
        text_put(&s->out, "__threadfence_system(); ");
    } else if (is(i, "trap")) {
        text_put(&s->out, "__koloTrap(\"trap\"); ");
    } else if (is(i, "exit")) {
        text_put(&s->out, "__koloExit(); ");
    } else if (is(i, "activemask")) {
        value = i->argument_count == 1 ? value_of(s, i->arguments[0]) : NULL;
        if (!value) return false;
        text_print(&s->out, "%s = __activemask(); ", value);
        free(value);
    } else if (is(i, "nanosleep")) {
        text_put(&s->out, "__nanosleep(0); ");
    } else {
        return is(i, "prefetch") || is(i, "prefetchu") || is(i, "brkpt") || is(i, "discard") || is(i, "applypriority");
    }
    return true;
}

static bool do_instruction(struct statement *s, const struct instruction *i)
{
    if (i->predicated || has(i, "multimem") || is(i, "multimem")) return false;
    if (is(i, "ld")) return do_load(s, i);
    if (is(i, "st")) return do_store(s, i);
    if (is(i, "red") || is(i, "atom")) return do_atomic(s, i);
    if (is(i, "mov")) return do_move(s, i);
    if (is(i, "cvta")) return do_convert(s, i);
    if (is(i, "bar") || is(i, "barrier")) return do_barrier(s, i);
    return do_other(s, i);
}

/* ---- the statement ---- */

/* The text of string literals [from, to), with their escapes for ends of lines and tabs undone. */
static void put_literals(const struct tokens *k, uint32_t from, uint32_t to, struct text *out)
{
    for (uint32_t i = from; i < to; i++)
        for (uint32_t c = k->at[i].start + 1; c + 1 < k->at[i].end; c++) {
            bool escape = k->text[c] == '\\' && c + 2 < k->at[i].end;

            if (escape) c++;
            text_add(out, escape && (k->text[c] == 'n' || k->text[c] == 't') ? "\n" : k->text + c, 1);
        }
}

/* One operand: "constraint" (expression) */
static bool read_operand(struct statement *s, struct piece p)
{
    const struct tokens *k = &s->t->source.tokens;
    struct text expression = {0};
    uint32_t open;

    if (s->operands == OPERANDS) return false;
    open = find_outside(k, p.from, p.to, " ( ");
    if (open == NO_TOKEN || k->at[open].partner == NO_TOKEN) return false;
    for (uint32_t n = open + 1; n < k->at[open].partner; n++)
        if (token_is_name(k, n)) translate_word(s->t, n);
    source_render_range(&s->t->source, open + 1, k->at[open].partner, &expression);
    s->expression[s->operands++] = must_copy(expression.at ? expression.at : "", expression.bytes);
    text_drop(&expression);
    return true;
}

/* Where the section ends that begins at `from`: at a colon, or the end. `::` is two. */
static uint32_t section_end(const struct tokens *k, uint32_t from, uint32_t end)
{
    uint32_t at = find_outside(k, from, end, " : :: ");

    return at == NO_TOKEN ? end : at;
}

static bool read_operands(struct statement *s, uint32_t from, uint32_t end)
{
    const struct tokens *k = &s->t->source.tokens;

    for (unsigned section = 0; section < 2 && from < end;) {
        uint32_t stop, at;
        struct piece p;

        section += token_is(k, from, "::") ? 2 : 1;
        at = from + 1;
        stop = section_end(k, at, end);
        if (section <= 2)
            while (next_piece(k, &at, stop, &p))
                if (p.from < p.to && !read_operand(s, p)) return false;
        from = stop;
    }
    return true;
}

static bool do_statement(struct statement *s, uint32_t open)
{
    const struct tokens *k = &s->t->source.tokens;
    uint32_t end = k->at[open].partner, text_end = section_end(k, open + 1, end);
    struct text text = {0};
    bool good = true;

    for (uint32_t i = open + 1; i < text_end; i++)
        if (k->at[i].kind != TOKEN_STRING) return false;
    if (!read_operands(s, text_end, end)) return false;
    put_literals(k, open + 1, text_end, &text);
    for (char *line = text.at; line && *line && good;) {
        size_t n = strcspn(line, ";\n");
        char *one = trimmed(line, n);

        if (*one && strcmp(one, "{") != 0 && strcmp(one, "}") != 0) {
            struct instruction i = read_instruction(one);

            text_put(&s->out, "{ ");
            good = do_instruction(s, &i);
            text_put(&s->out, "} ");
            if (!good) source_error(&s->t->source, s->at, "no translation to CPUs for the PTX instruction \"%s\"", one);
            drop_instruction(&i);
        }
        free(one);
        line += n + (line[n] != 0);
    }
    text_drop(&text);
    return good || s->t->source.failed;
}

uint32_t translate_asm(struct translation *t, uint32_t i)
{
    const struct tokens *k = &t->source.tokens;
    struct statement s = {.t = t, .at = i};
    uint32_t open = i + 1, close = i;

    while (token_among(k, open, " volatile __volatile__ __volatile goto inline ")) open++;
    if (!token_is(k, open, "(") || k->at[open].partner == NO_TOKEN || !do_statement(&s, open)) {
        source_error(&t->source, i, "this asm statement is none of PTX that has a translation");
    } else {
        close = k->at[open].partner;
        source_drop_range(&t->source, i, close + 1);
        source_before(&t->source, i, "do { ");
        source_before(&t->source, i, s.out.at ? s.out.at : "");
        source_before(&t->source, i, "} while (0)");
    }
    for (unsigned n = 0; n < s.operands; n++) free(s.expression[n]);
    text_drop(&s.out);
    return close;
}
