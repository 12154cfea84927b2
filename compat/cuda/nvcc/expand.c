/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/expand.h"

#include "compat/cuda/nvcc/body.h"

#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8, WORDS = 200000 };

/* A name of a function that stands for something else where it is expanded. */
struct rename {
    uint32_t name;
    char *by;
};

/* A function that is being written; the kernel has no caller. */
struct frame {
    const struct function *f;
    struct frame *caller;
    struct rename *renames;
    size_t count;
    unsigned number, depth;
    bool returns; /* its result goes into __kolo_r<number> */
};

struct expander {
    struct source source;
    const struct tokens *k;
    struct functions *functions;
    char *tiles; /* names of tiles of a warp */
    unsigned numbers;
    uint32_t words; /* written for this kernel: it must not grow without end */
    const char *why;
    uint32_t wrong;
};

static bool refuse(struct expander *x, uint32_t token, const char *why)
{
    if (!x->why) {
        x->why = why;
        x->wrong = token;
    }
    return false;
}

static void put_word(const struct expander *x, uint32_t i, struct text *out)
{
    text_add(out, x->k->text + x->k->at[i].start, x->k->at[i].end - x->k->at[i].start);
}

/* ---- gaps ---- */

/* The text behind token `i`: the kernel's own lines stay, functions come on one line. */
static void put_gap(const struct expander *x, const struct frame *fr, uint32_t i, bool flat, struct text *out)
{
    const struct tokens *k = x->k;

    if (flat || fr->caller) {
        if (!token_touches(k, i)) text_put(out, " ");
    } else if (i + 1 < k->count) {
        text_add(out, k->text + k->at[i].end, k->at[i + 1].start - k->at[i].end);
    }
}

/* The line ends within tokens [from, to), which are written elsewhere. */
static void put_lines(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    const struct tokens *k = x->k;

    if (fr->caller) return;
    for (uint32_t i = from; i < to && i + 1 < k->count; i++)
        if (memchr(k->text + k->at[i].end, '\n', k->at[i + 1].start - k->at[i].end)) put_gap(x, fr, i, false, out);
}

/* ---- names ---- */

static const char *renamed(const struct expander *x, const struct frame *fr, uint32_t i)
{
    if (!token_is_name(x->k, i) || token_among(x->k, i - 1, " . -> :: ")) return NULL;
    for (size_t r = 0; r < fr->count; r++)
        if (token_same(x->k, fr->renames[r].name, i)) return fr->renames[r].by;
    return NULL;
}

static bool is_tile(const struct expander *x, uint32_t i)
{
    return x->tiles && token_among(x->k, i, x->tiles);
}

static void add_tile(struct expander *x, uint32_t i)
{
    char *more = must_print("%s%.*s ", x->tiles ? x->tiles : " ", (int)(x->k->at[i].end - x->k->at[i].start),
                            x->k->text + x->k->at[i].start);

    free(x->tiles);
    x->tiles = more;
}

static void add_rename(struct frame *fr, uint32_t name, char *by)
{
    fr->renames = must_grow(fr->renames, (fr->count + 1) * sizeof *fr->renames);
    fr->renames[fr->count++] = (struct rename){name, by};
}

/* Is the name at `i` declared in front of it by words of a type, as `int i`, `float *p`? */
static bool is_declaration(const struct tokens *k, uint32_t i)
{
    uint32_t before = i - 1;

    if (!token_is_name(k, i) || !i || !token_among(k, i + 1, " = ; , [ ( { : ) ")) return false;
    while (before && token_among(k, before, " * & && const __restrict__ __restrict ")) before--;
    return (token_is_name(k, before) &&
            !token_among(k, before, " return else case goto new delete sizeof do typename ")) ||
           token_is(k, before, ">");
}

/* May the function at `at` declare the word of token `i` anywhere, also as a parameter? */
static bool may_declare(const struct tokens *k, const struct function *at, uint32_t i)
{
    for (uint32_t n = at->statement; n < k->at[at->body].partner; n++) {
        if (!token_same(k, n, i) || token_among(k, n - 1, " . -> :: ")) continue;
        if (is_declaration(k, n) || (token_is(k, n - 1, ",") && token_among(k, n + 1, " = ; , [ { "))) return true;
        if (n < at->open && token_among(k, n - 1, " typename class ")) return true;
    }
    return false;
}

/* Names of the function that are neither its own nor a member's must mean the same where it is expanded. */
static bool check_names(struct expander *x, const struct frame *fr)
{
    const struct tokens *k = x->k;
    const struct function *f = fr->f;

    for (uint32_t i = f->open; i < k->at[f->body].partner; i++) {
        bool own = false;

        if (!token_is_name(k, i) || token_among(k, i - 1, " . -> :: ") || renamed(x, fr, i)) continue;
        for (uint32_t n = f->open; n <= i && !own; n++) own = token_same(k, n, i) && is_declaration(k, n);
        for (const struct frame *other = fr->caller; other && !own; other = other->caller)
            if (may_declare(k, other->f, i))
                return refuse(x, i, "a function with a name that means something else in the kernel");
    }
    return true;
}

/* ---- calls ---- */

static bool is_function_call(struct expander *x, uint32_t i)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1;

    if (call_waits(x->functions, k, i) == NO_NAME) return false;
    if (token_is(k, open, "<")) open = angle_end(k, open);
    if (open == NO_TOKEN) return false;
    if (token_is(k, open, ">")) open++;
    return token_is(k, open, "(") && k->at[open].partner != NO_TOKEN;
}

/* `warp.shfl(v, 0)` */
static bool is_tile_call(const struct expander *x, uint32_t i)
{
    return is_tile(x, i) && token_is(x->k, i + 1, ".") && token_is_name(x->k, i + 2) && token_is(x->k, i + 3, "(") &&
           x->k->at[i + 3].partner != NO_TOKEN;
}

/* `cg::reduce(warp, v, cg::plus<float>())` */
static bool is_tile_reduction(const struct expander *x, uint32_t i)
{
    return token_among(x->k, i, " reduce sync ") && token_is(x->k, i + 1, "(") && is_tile(x, i + 2) &&
           token_among(x->k, i + 3, " , ) ");
}

static bool is_call(struct expander *x, uint32_t i)
{
    if (!token_is_name(x->k, i) || (i && token_among(x->k, i - 1, " . -> "))) return false;
    return is_warp_operation(x->k, i) || is_tile_call(x, i) || is_tile_reduction(x, i) || is_function_call(x, i);
}

static bool is_tile_declaration(const struct expander *x, uint32_t from, uint32_t to)
{
    return find_outside(x->k, from, to, " tiled_partition ") != NO_TOKEN;
}

static bool has_calls(struct expander *x, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (token_is(x->k, i, "tiled_partition") || is_call(x, i)) return true;
    return false;
}

static bool put_expression(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, bool flat,
                           struct text *before, struct text *out);
static bool put_sequence(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out);

static bool put_arguments(struct expander *x, struct frame *fr, uint32_t open, struct text *before, struct text *out)
{
    return put_expression(x, fr, open + 1, x->k->at[open].partner, true, before, out);
}

static bool put_operation(struct expander *x, struct frame *fr, const char *name, const char *mask, uint32_t open,
                          struct text *before, struct text *out)
{
    struct text arguments = {0};
    unsigned number = ++x->numbers;
    bool good = put_arguments(x, fr, open, before, &arguments);

    text_print(before, "auto __kolo_w%u = %s(%s%s%s); ", number, name, mask,
               *mask && open + 1 < x->k->at[open].partner ? ", " : "", arguments.at ? arguments.at : "");
    text_print(out, "__kolo_w%u", number);
    text_drop(&arguments);
    return good;
}

/* Methods of a tile that is a warp of a block of whole warps. */
static bool put_tile_call(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out)
{
    static const char all[] = "0xffffffffu";
    static const struct {
        const char *method, *instead;
        bool operation;
    } methods[] = {
        {"thread_rank", "(threadIdx.x % 32)", false},
        {"size", "32u", false},
        {"num_threads", "32u", false},
        {"meta_group_rank", "((threadIdx.y + blockDim.y * threadIdx.z) * (blockDim.x / 32) + threadIdx.x / 32)", false},
        {"meta_group_size", "(blockDim.x / 32 * blockDim.y * blockDim.z)", false},
        {"shfl", "__shfl_sync", true},
        {"shfl_up", "__shfl_up_sync", true},
        {"shfl_down", "__shfl_down_sync", true},
        {"shfl_xor", "__shfl_xor_sync", true},
        {"any", "__any_sync", true},
        {"all", "__all_sync", true},
        {"ballot", "__ballot_sync", true},
        {"match_any", "__match_any_sync", true},
    };

    if (token_is(x->k, i + 2, "sync")) {
        text_put(out, "__syncwarp()");
        return true;
    }
    for (size_t m = 0; m < sizeof methods / sizeof methods[0]; m++) {
        if (!token_is(x->k, i + 2, methods[m].method)) continue;
        if (methods[m].operation) return put_operation(x, fr, methods[m].instead, all, i + 3, before, out);
        text_put(out, methods[m].instead);
        return true;
    }
    return refuse(x, i + 2, "a method of a tile that is not known");
}

/* ---- types ---- */

static void put_type_words(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to,
                           struct text *out)
{
    static const char no_types[] = " static inline __inline__ __forceinline__ __noinline__ __device__ __host__ "
                                   "constexpr const __restrict__ __restrict register ";

    for (uint32_t i = from; i < to; i++) {
        const char *by = renamed(x, fr, i);

        if (token_among(x->k, i, no_types)) continue;
        if (token_is(x->k, i, "__attribute__") && x->k->at[i + 1].partner != NO_TOKEN) {
            i = x->k->at[i + 1].partner;
            continue;
        }
        if (by)
            text_put(out, by);
        else
            put_word(x, i, out);
        text_put(out, " ");
    }
}

/* The type of the variable that the token names, with the frame's names. False: it is not found, or deduced. */
static bool put_type_of(const struct expander *x, const struct frame *fr, uint32_t name, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t at = fr->f->open + 1, close = k->at[fr->f->open].partner;
    struct piece p, type = {0, 0}, signs = {0, 0};

    if (token_among(k, name - 1, " . -> :: ")) return false;
    while (next_piece(k, &at, close, &p)) {
        uint32_t own = declared_name(k, p);

        if (own == NO_TOKEN || !token_same(k, own, name) || own + 1 != p.to) continue;
        type = (struct piece){p.from, type_end(k, p.from, p.to)};
        signs = (struct piece){type.to, own};
    }
    for (uint32_t i = fr->f->body + 1; i < name; i++) {
        uint32_t end;

        if (!token_among(k, i - 1, " ; { } ( ) else ") || token_among(k, i, " ( ; { } ")) continue;
        end = find_outside(k, i, k->at[fr->f->body].partner, " ; : ");
        if (end == NO_TOKEN || !declares(k, i, end)) continue;
        at = type_end(k, i, end);
        for (uint32_t first = i; next_piece(k, &at, end, &p);) {
            uint32_t own = p.from;

            while (token_among(k, own, " * & && const __restrict__ __restrict ")) own++;
            if (!token_same(k, own, name) || own > name) continue;
            if (token_is(k, own + 1, "[")) return false;
            type = (struct piece){first, type_end(k, first, end)};
            signs = (struct piece){p.from, own};
        }
    }
    if (type.from == type.to || find_outside(k, type.from, type.to, " auto ") != NO_TOKEN) return false;
    put_type_words(x, fr, type.from, type.to, out);
    for (uint32_t i = signs.from; i < signs.to; i++)
        if (token_is(k, i, "*")) text_put(out, "*");
    return true;
}

/* The type of an argument: of a variable, or a number with a point. */
static bool put_type_of_argument(const struct expander *x, const struct frame *fr, struct piece p, struct text *out)
{
    const struct token *t = &x->k->at[p.from];
    char last;

    if (p.from + 1 != p.to) return false;
    if (token_is_name(x->k, p.from)) return put_type_of(x, fr, p.from, out);
    if (t->kind != TOKEN_NUMBER) return false;
    last = x->k->text[t->end - 1];
    if (!memchr(x->k->text + t->start, '.', t->end - t->start)) return false;
    text_put(out, last == 'f' || last == 'F' ? "float" : "double");
    return true;
}

/* ---- reductions of tiles ---- */

static bool put_tile_reduction(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out)
{
    static const char *const kinds[] = {"plus", "less", "greater", "bit_and", "bit_or", "bit_xor"};
    const struct tokens *k = x->k;
    uint32_t close = k->at[i + 1].partner, at = i + 4, kind = 0, operation;
    unsigned number = ++x->numbers;
    struct text type = {0}, value = {0};
    char name[32];
    struct piece p, of;
    bool good;

    if (token_is(k, i, "sync")) {
        text_put(out, "__syncwarp()");
        return true;
    }
    if (close == NO_TOKEN || !next_piece(k, &at, close, &p) || !next_piece(k, &at, close, &of) || of.to != close)
        return refuse(x, i, "a reduction of a shape that is not known");
    for (operation = of.from; token_is(k, operation + 1, "::");) operation += 2;
    for (; kind < sizeof kinds / sizeof kinds[0]; kind++)
        if (token_is(k, operation, kinds[kind])) break;
    if (kind == sizeof kinds / sizeof kinds[0]) return refuse(x, operation, "a reduction of a shape that is not known");
    if (!put_type_of_argument(x, fr, p, &type)) {
        uint32_t end = token_is(k, operation + 1, "<") ? angle_end(k, operation + 1) : NO_TOKEN;

        type.bytes = 0;
        if (end == NO_TOKEN || end == operation + 2) {
            text_drop(&type);
            return refuse(x, operation, "a reduction of a type that is not known");
        }
        put_type_words(x, fr, operation + 2, end, &type);
    }
    good = put_expression(x, fr, p.from, p.to, true, before, &value);
    (void)snprintf(name, sizeof name, "__kolo_v%u", number);
    text_print(before, "%s %s = %s; ", type.at, name, value.at ? value.at : "");
    for (unsigned d = 16; d; d /= 2) {
        char other[32];
        char *expression;

        (void)snprintf(other, sizeof other, "__kolo_w%u", ++x->numbers);
        text_print(before, "auto %s = __shfl_xor_sync(0xffffffffu, %s, %u); ", other, name, d);
        switch (kind) {
        case 1:
            expression = must_print("%s < %s ? %s : %s", other, name, other, name);
            break;
        case 2:
            expression = must_print("%s < %s ? %s : %s", name, other, other, name);
            break;
        default:
            expression = must_print("%s %c %s", name, "+??&|^"[kind], other);
        }
        text_print(before, "%s = %s; ", name, expression);
        free(expression);
    }
    text_put(out, name);
    text_drop(&type);
    text_drop(&value);
    return good;
}

/* ---- functions ---- */

/* The parameters or arguments in a parenthesis. `needed`: only parameters without a default. */
static unsigned pieces_of(const struct tokens *k, uint32_t open, bool needed)
{
    uint32_t at = open + 1, close = k->at[open].partner;
    unsigned n = 0;
    struct piece p;

    if (close == open + 2 && token_is(k, at, "void")) return 0;
    while (next_piece(k, &at, close, &p)) n += !needed || find_outside(k, p.from, p.to, " = ") == NO_TOKEN;
    return n;
}

/* The one function of this name that takes so many arguments, where the kernel sees its namespace. */
static const struct function *find_callee(struct expander *x, const struct frame *fr, uint32_t i, unsigned arguments)
{
    const struct tokens *k = x->k;
    const struct function *found = NULL;

    for (size_t at = call_waits(x->functions, k, i) == NO_NAME ? NO_NAME : functions_first(x->functions, k, i);
         at != NO_NAME; at = x->functions->at[at].same) {
        const struct function *f = &x->functions->at[at];

        if (pieces_of(k, f->open, true) > arguments || pieces_of(k, f->open, false) < arguments) continue;
        if (found || f->kernel || f->implicit || f->class != NO_TOKEN || !token_same(k, f->name, i)) return NULL;
        if (f->space != NO_TOKEN && !(f->space < fr->f->body && fr->f->body < k->at[f->space].partner)) return NULL;
        if (token_is(k, f->open - 1, ">") || token_is(k, f->name - 1, "::")) return NULL;
        found = f;
    }
    return found;
}

/* The parameters of the template: given between angles, by default, or from the types of arguments. */
static bool bind_template(struct expander *x, struct frame *fr, uint32_t i, uint32_t open)
{
    const struct tokens *k = x->k;
    const struct function *f = fr->f;
    uint32_t given = i + 2, given_end = token_is(k, i + 1, "<") ? open - 1 : i + 2, at = f->header + 1, end;
    struct piece p, argument;

    if (f->header == NO_TOKEN) return !token_is(k, i + 1, "<");
    end = angle_end(k, f->header);
    if (end == NO_TOKEN || f->statement + 1 != f->header) return false;
    while (next_piece(k, &at, end, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = "), name = (assigned == NO_TOKEN ? p.to : assigned) - 1;
        bool type = token_among(k, p.from, " typename class ");
        struct text by = {0};

        if (find_outside(k, p.from, p.to, " ... template ") != NO_TOKEN || !token_is_name(k, name) || name == p.from)
            return false;
        if (!type) text_put(&by, "(");
        if (next_piece(k, &given, given_end, &argument)) {
            put_type_words(x, fr->caller, argument.from, argument.to, &by);
        } else if (type) {
            uint32_t parameter = f->open + 1, passed = open + 1;
            bool found = false;
            struct piece q;

            while (!found && next_piece(k, &parameter, k->at[f->open].partner, &q) &&
                   next_piece(k, &passed, k->at[open].partner, &argument)) {
                uint32_t first = q.from + token_is(k, q.from, "const");

                if (token_same(k, first, name) && token_among(k, first + 1, " & ") == (first + 3 == q.to) &&
                    first + 2 + token_is(k, first + 1, "&") == q.to)
                    found = put_type_of_argument(x, fr->caller, argument, &by);
                else if (token_same(k, first, name) && token_is(k, first + 1, "*"))
                    break;
            }
            if (!found && assigned != NO_TOKEN) {
                put_type_words(x, fr, assigned + 1, p.to, &by);
                found = true;
            }
            if (!found) {
                text_drop(&by);
                return false;
            }
        } else if (assigned != NO_TOKEN) {
            put_type_words(x, fr, assigned + 1, p.to, &by);
        } else {
            text_drop(&by);
            return false;
        }
        if (!type) text_put(&by, ")");
        add_rename(fr, name, by.at);
    }
    return true;
}

/* A parameter becomes a variable; one by reference is the caller's variable itself. */
static bool bind_parameter(struct expander *x, struct frame *fr, struct piece p, struct piece argument, bool by_default,
                           struct text *before, struct text *body)
{
    const struct tokens *k = x->k;
    uint32_t assigned = find_outside(k, p.from, p.to, " = "), end = assigned == NO_TOKEN ? p.to : assigned,
             name = end - 1;
    bool constant = find_outside(k, p.from, end, " const ") != NO_TOKEN,
         reference = find_outside(k, p.from, end, " & && ") != NO_TOKEN;
    struct text value = {0}, type = {0};
    char *by;
    bool good;

    if (find_outside(k, p.from, end, " thread_block_tile ") != NO_TOKEN ||
        (argument.from + 1 == argument.to && is_tile(x, argument.from))) {
        if (argument.from + 1 != argument.to || !is_tile(x, argument.from) || !token_is_name(k, name)) return false;
        add_tile(x, name);
        return true;
    }
    if (!token_is_name(k, name) || name == p.from || find_outside(k, p.from, end, " ... [ ( ") != NO_TOKEN)
        return false;
    if (reference && !constant) {
        if (argument.from + 1 != argument.to || !token_is_name(k, argument.from) || by_default) return false;
        if (may_declare(k, fr->f, argument.from) && !token_same(k, argument.from, name)) return false;
        const char *other = renamed(x, fr->caller, argument.from);

        by = other ? must_print("%s", other) : source_word(&x->source, argument.from);
        add_rename(fr, name, by);
        return true;
    }
    good = put_expression(x, by_default ? fr : fr->caller, argument.from, argument.to, true, before, &value);
    for (uint32_t i = p.from; i < name; i++) {
        const char *other = renamed(x, fr, i);

        if (token_among(k, i, " & && register ")) continue;
        if (other)
            text_put(&type, other);
        else
            put_word(x, i, &type);
        text_put(&type, " ");
    }
    by =
        must_print("%.*s__kolo%u", (int)(k->at[name].end - k->at[name].start), k->text + k->at[name].start, fr->number);
    text_print(body, "%s%s = %s; ", type.at ? type.at : "", by, value.at ? value.at : "");
    text_drop(&type);
    text_drop(&value);
    add_rename(fr, name, by);
    return good;
}

/* The result comes at the end, if there is one. */
static bool returns_at_end(const struct tokens *k, const struct function *f)
{
    uint32_t end = k->at[f->body].partner, last = f->body + 1;
    unsigned returns = 0;

    for (uint32_t i = f->body + 1; i < end; i++) returns += token_is(k, i, "return");
    for (uint32_t i = f->body + 1; i < end; i = statement_end(k, i, end)) last = i;
    return !returns || (returns == 1 && token_is(k, last, "return"));
}

/* The function's variables have names of their own: the kernel, and other calls of it, may have the same. */
static void rename_variables(const struct expander *x, struct frame *fr)
{
    const struct tokens *k = x->k;
    uint32_t end = k->at[fr->f->body].partner;

    for (uint32_t i = fr->f->body + 1; i < end; i++) {
        uint32_t stop = find_outside(k, i, end, " ; : "), at;
        struct piece p;

        if (!token_among(k, i - 1, " ; { } ") && !(token_is(k, i - 1, "(") && token_is(k, i - 2, "for"))) continue;
        if (token_among(k, i, " typedef using ") || stop == NO_TOKEN || !declares(k, i, stop)) continue;
        at = type_end(k, i, stop);
        while (next_piece(k, &at, stop, &p)) {
            uint32_t own = p.from;

            while (token_among(k, own, " * & && const __restrict__ __restrict ")) own++;
            if (token_is_name(k, own) && !renamed(x, fr, own))
                add_rename(fr, own,
                           must_print("%.*s__kolo%u", (int)(k->at[own].end - k->at[own].start),
                                      k->text + k->at[own].start, fr->number));
        }
    }
}

/* The word static of a variable that is not the block's. */
static bool is_lasting(const struct tokens *k, uint32_t i)
{
    return token_is(k, i, "static") && !token_is(k, i + 1, "__shared__") && !token_is(k, i - 1, "__shared__");
}

static bool write_function(struct expander *x, struct frame *fr, uint32_t i, uint32_t open, struct text *before,
                           struct text *out)
{
    static const char never[] = " asm __asm__ goto ";
    const struct tokens *k = x->k;
    const struct function *f = fr->f;
    uint32_t at = f->open + 1, passed = open + 1;
    struct text body = {0}, type = {0}, inner = {0};
    struct piece p, argument;
    bool good = true;

    for (uint32_t n = f->body; n < k->at[f->body].partner; n++)
        if (token_among(k, n, never) || is_lasting(k, n))
            return refuse(x, n, "a function that cannot stand in the kernel");
    if (!returns_at_end(k, f)) return refuse(x, f->name, "a function that returns from within");
    if (!bind_template(x, fr, i, open)) return refuse(x, i, "a function whose template arguments are not clear");
    while (good && pieces_of(k, f->open, false) && next_piece(k, &at, k->at[f->open].partner, &p)) {
        uint32_t assigned = find_outside(k, p.from, p.to, " = ");
        bool by_default = !next_piece(k, &passed, k->at[open].partner, &argument);

        if (by_default) argument = (struct piece){assigned + 1, p.to};
        if (!bind_parameter(x, fr, p, argument, by_default, before, &body))
            good = refuse(x, p.from < p.to ? p.to - 1 : i, "a function with a parameter of a shape that is not known");
    }
    rename_variables(x, fr);
    good = good && check_names(x, fr);
    put_type_words(x, fr, f->from, f->name, &type);
    fr->returns = type.at && strcmp(type.at, "void ") != 0;
    if (fr->returns && (!type.at || strstr(type.at, "auto ") || strchr(type.at, '&')))
        good = refuse(x, f->name, "a function whose type is not clear");
    if (good) good = put_sequence(x, fr, f->body + 1, k->at[f->body].partner, &inner);
    if (fr->returns) {
        text_print(before, "%s __kolo_r%u; ", type.at, fr->number);
        text_print(out, "__kolo_r%u", fr->number);
    }
    text_print(before, "{ %s%s} ", body.at ? body.at : "", inner.at ? inner.at : "");
    text_drop(&body);
    text_drop(&type);
    text_drop(&inner);
    return good;
}

static bool put_function_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t open, struct text *before,
                              struct text *out)
{
    const struct function *callee = find_callee(x, fr, i, pieces_of(x->k, open, false));
    struct frame inner = {.f = callee, .caller = fr, .number = ++x->numbers, .depth = fr->depth + 1};
    bool good;

    if (!callee) return refuse(x, i, "a function that waits, and that is not found, or not the only one of its name");
    if (inner.depth > DEPTH) return refuse(x, i, "functions that wait, too deep in each other");
    for (const struct frame *other = fr; other; other = other->caller)
        if (other->f == callee) return refuse(x, i, "a function that calls itself");
    good = write_function(x, &inner, i, open, before, out);
    for (size_t r = 0; r < inner.count; r++) free(inner.renames[r].by);
    free(inner.renames);
    return good;
}

/* Write the call at `i` before the statement, and its result in place of it; *close becomes its last token. */
static bool put_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t *close, struct text *before,
                     struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1;
    char *word;
    bool good;

    if (is_tile_call(x, i)) {
        *close = k->at[i + 3].partner;
        return put_tile_call(x, fr, i, before, out);
    }
    if (token_is(k, open, "<")) open = angle_end(k, open) + 1;
    *close = k->at[open].partner;
    if (is_tile_reduction(x, i)) return put_tile_reduction(x, fr, i, before, out);
    if (!is_warp_operation(k, i)) return put_function_call(x, fr, i, open, before, out);
    word = source_word(&x->source, i);
    if (token_is(k, i, "__syncwarp")) {
        text_put(out, "__syncwarp(");
        good = put_arguments(x, fr, open, before, out);
        text_put(out, ")");
    } else {
        good = put_operation(x, fr, word, "", open, before, out);
    }
    free(word);
    return good;
}

/* ---- statements ---- */

/* Past `cg::` in front of an operation on a tile. */
static uint32_t behind_namespaces(const struct expander *x, uint32_t i)
{
    uint32_t at = i;

    while (token_is_name(x->k, at) && token_is(x->k, at + 1, "::")) at += 2;
    return is_tile_reduction(x, at) ? at : i;
}

static bool put_expression(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, bool flat,
                           struct text *before, struct text *out)
{
    const struct tokens *k = x->k;
    bool sure = true; /* all threads that execute the statement come here */

    x->words += to - from;
    if (x->words > WORDS) return refuse(x, from, "functions that are too long to stand in the kernel");
    for (uint32_t i = from; i < to; i++) {
        uint32_t close, first = i;
        const char *by;

        if (token_among(k, i, " && || ? { ")) sure = false;
        i = behind_namespaces(x, i); /* without cg:: */
        if (is_call(x, i)) {
            if (!sure) return refuse(x, i, "in a part of an expression that not all threads may evaluate");
            if (i && token_is(k, i - 1, "::") && !is_tile_reduction(x, i)) return refuse(x, i, "a name of a namespace");
            if (!put_call(x, fr, i, &close, before, out)) return false;
            if (!flat) put_lines(x, fr, first, close, out);
            i = close;
            put_gap(x, fr, i, flat, out);
            continue;
        }
        if (is_tile(x, i)) return refuse(x, i, "a tile that is used otherwise");
        by = renamed(x, fr, i);
        if (by)
            text_put(out, by);
        else
            put_word(x, i, out);
        put_gap(x, fr, i, flat, out);
    }
    return true;
}

/* A statement inside of braces, also where the source has none. */
static bool put_inner(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    bool good;

    text_put(out, "{ ");
    good = put_sequence(x, fr, from, to, out);
    text_put(out, " }");
    return good;
}

static bool put_declaration(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    uint32_t type = type_end(x->k, from, to), at = type;
    struct piece p;
    bool first = true;

    while (next_piece(x->k, &at, to - 1, &p)) {
        struct text before = {0}, rest = {0};
        bool good = put_expression(x, fr, from, type, !first, &before, &rest) &&
                    put_expression(x, fr, p.from, p.to, false, &before, &rest);

        if (!good) {
            text_drop(&before);
            text_drop(&rest);
            return false;
        }
        if (before.at) text_put(out, before.at);
        text_put(out, rest.at);
        text_put(out, ";");
        put_gap(x, fr, p.to, false, out); /* of the comma, or the semicolon */
        text_drop(&before);
        text_drop(&rest);
        first = false;
    }
    return true;
}

/* Is there nothing but the end of a statement? */
static bool is_empty(const char *text)
{
    return text[strspn(text, " \t\n;")] == 0;
}

static bool put_simple(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    const struct tokens *k = x->k;
    struct text before = {0}, rest = {0};
    bool good, result = fr->caller && token_is(k, from, "return");

    if (result && from + 2 == to) return true; /* return; */
    if (result) text_print(&rest, "__kolo_r%u = ", fr->number);
    if (result && !fr->returns) return refuse(x, from, "a function whose type is not clear");
    good = put_expression(x, fr, from + result, to, false, &before, &rest);
    if (before.at) text_put(out, before.at);
    for (const char *c = rest.at; c && is_empty(rest.at) && *c; c++)
        if (*c == ';') rest.at[c - rest.at] = ' ';
    if (rest.at) text_put(out, rest.at);
    text_drop(&before);
    text_drop(&rest);
    return good;
}

/* `cg::thread_block_tile<32> warp = cg::tiled_partition<32>(block);` */
static bool read_tile(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    uint32_t assigned = find_outside(x->k, from, to, " = "), word = find_outside(x->k, from, to, " tiled_partition ");

    if (assigned == NO_TOKEN || !token_is_name(x->k, assigned - 1) || word < assigned ||
        !token_is(x->k, word + 1, "<") || !token_is(x->k, word + 2, "32") || !token_is(x->k, word + 3, ">") ||
        !token_is(x->k, word + 4, "("))
        return refuse(x, word, "a tile that is not a warp");
    add_tile(x, assigned - 1);
    put_lines(x, fr, from, to - 1, out);
    put_gap(x, fr, to - 1, false, out);
    return true;
}

static bool put_if(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = token_is(k, i + 1, "constexpr") ? i + 2 : i + 1, close = k->at[open].partner, then;
    struct text before = {0}, head = {0};
    bool good;

    if (!token_is(k, open, "(") || close == NO_TOKEN) return refuse(x, i, "a statement of a shape that is not known");
    then = statement_end(k, close + 1, end);
    good = put_expression(x, fr, i, open + 1, false, &before, &head) &&
           put_expression(x, fr, open + 1, close, false, &before, &head) &&
           put_expression(x, fr, close, close + 1, false, &before, &head);
    if (before.at) text_put(out, before.at);
    if (head.at) text_put(out, head.at);
    text_drop(&before);
    text_drop(&head);
    if (!good || !put_inner(x, fr, close + 1, then, out)) return false;
    if (then == end) return true;
    text_put(out, " else");
    put_gap(x, fr, then, false, out);
    text_put(out, " ");
    return put_inner(x, fr, then + 1, end, out);
}

static bool put_loop(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t open = i + 1, close = token_is(k, open, "(") ? k->at[open].partner : NO_TOKEN;
    struct text none = {0};

    if (close == NO_TOKEN) return refuse(x, i, "a statement of a shape that is not known");
    for (uint32_t n = open; n < close; n++)
        if (is_call(x, n) && !is_tile_call(x, n)) return refuse(x, n, "in the condition of a loop");
    if (!put_expression(x, fr, i, close + 1, false, &none, out)) return false;
    if (none.at) {
        text_drop(&none);
        return refuse(x, open, "in the condition of a loop");
    }
    return put_inner(x, fr, close + 1, end, out);
}

static bool put_do(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    uint32_t then = statement_end(x->k, i + 1, end);
    struct text none = {0};

    if (has_calls(x, then, end)) return refuse(x, then, "in the condition of a loop");
    return put_expression(x, fr, i, i + 1, false, &none, out) && put_inner(x, fr, i + 1, then, out) &&
           put_expression(x, fr, then, end, false, &none, out);
}

static bool put_statement(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    const struct tokens *k = x->k;
    bool calls = has_calls(x, i, end);

    if (token_is(k, i, "{")) {
        text_put(out, "{");
        put_gap(x, fr, i, false, out);
        if (!put_sequence(x, fr, i + 1, end - 1, out)) return false;
        text_put(out, "}");
        put_gap(x, fr, end - 1, false, out);
        return true;
    }
    if (calls && token_is(k, i, "if")) return put_if(x, fr, i, end, out);
    if (calls && token_among(k, i, " for while ")) return put_loop(x, fr, i, end, out);
    if (calls && token_is(k, i, "do")) return put_do(x, fr, i, end, out);
    if (calls && (token_among(k, i, " switch case default ") || token_is(k, i + 1, ":")))
        return refuse(x, i, "a statement of a shape that is not known");
    if (calls && is_tile_declaration(x, i, end)) return read_tile(x, fr, i, end, out);
    if (calls && declares(k, i, end)) return put_declaration(x, fr, i, end, out);
    return put_simple(x, fr, i, end, out);
}

static bool put_sequence(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    for (uint32_t i = from, end; i < to; i = end) {
        end = statement_end(x->k, i, to);
        if (!put_statement(x, fr, i, end, out)) return false;
    }
    return true;
}

/* ---- kernels ---- */

/* The kernel as it is, as a function. */
static void put_clone(const struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    char *marker = source_marker(&x->source, f->statement);

    text_print(out, "\n%s\n", marker);
    for (uint32_t i = f->statement; i <= k->at[f->body].partner; i++) {
        if (token_is(k, i, "__global__"))
            text_put(out, "static __attribute__((unused)) __device__");
        else if (i == f->name)
            text_print(out, "__kolo_fibres_of_%.*s", (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);
        else if (i > f->name || !(token_among(k, i, " static inline extern __inline__ __forceinline__ ") ||
                                  k->at[i].kind == TOKEN_STRING))
            put_word(x, i, out);
        if (i + 1 < k->count) text_add(out, k->text + k->at[i].end, k->at[i + 1].start - k->at[i].end);
    }
    free(marker);
    marker = source_marker(&x->source, f->statement);
    text_print(out, "\n%s\n", marker);
    free(marker);
}

/* `__kolo_or_fibres(3, __kolo_fibres_of_k<T, N>(a, b));` */
static bool put_choice(struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    uint32_t at, end;
    const char *between = "";
    struct piece p;

    text_print(out, " __kolo_or_fibres(%u, __kolo_fibres_of_%.*s", f->name,
               (int)(k->at[f->name].end - k->at[f->name].start), k->text + k->at[f->name].start);
    if (f->header != NO_TOKEN) {
        end = angle_end(k, f->header);
        at = f->header + 1;
        if (end == NO_TOKEN || f->statement + 1 != f->header || end == at)
            return refuse(x, f->name, "a template of a shape that is not known");
        text_put(out, "<");
        while (next_piece(k, &at, end, &p)) {
            uint32_t assigned = find_outside(k, p.from, p.to, " = "),
                     name = (assigned == NO_TOKEN ? p.to : assigned) - 1;

            if (!token_is_name(k, name) || name == p.from ||
                find_outside(k, p.from, p.to, " ... template ") != NO_TOKEN)
                return refuse(x, f->name, "a template of a shape that is not known");
            text_put(out, between);
            put_word(x, name, out);
            between = ", ";
        }
        text_put(out, ">");
    }
    text_put(out, "(");
    at = f->open + 1;
    between = "";
    while (pieces_of(k, f->open, false) && next_piece(k, &at, k->at[f->open].partner, &p)) {
        uint32_t name = declared_name(k, p);

        if (name == NO_TOKEN || name == p.from || is_type_word(k, name) ||
            find_outside(k, p.from, p.to, " ... ") != NO_TOKEN)
            return refuse(x, f->name, "a parameter without a name");
        text_put(out, between);
        put_word(x, name, out);
        between = ", ";
    }
    text_put(out, "));");
    return true;
}

static bool is_to_be_expanded(struct expander *x, const struct function *f)
{
    const struct tokens *k = x->k;

    if (!f->kernel || f->class != NO_TOKEN || token_is(k, f->open - 1, ">") || token_is(k, f->name - 1, "::"))
        return false;
    return has_calls(x, f->body, k->at[f->body].partner);
}

static bool put_kernel(struct expander *x, const struct function *f, struct text *out)
{
    const struct tokens *k = x->k;
    struct frame fr = {.f = f};
    uint32_t end = k->at[f->body].partner;

    for (uint32_t i = f->body; i < end; i++)
        if (is_lasting(k, i)) return refuse(x, i, "a static variable, of which there must be one only");
    put_clone(x, f, out);
    for (uint32_t i = f->statement; i <= f->body; i++) {
        put_word(x, i, out);
        if (i < f->body) put_gap(x, &fr, i, false, out);
    }
    if (!put_choice(x, f, out)) return false;
    put_gap(x, &fr, f->body, false, out);
    if (!put_sequence(x, &fr, f->body + 1, end, out)) return false;
    text_put(out, "}");
    return true;
}

static void try_kernel(struct expander *x, const struct function *f, struct refusals *refusals, struct text *out)
{
    char *place = source_named_place(&x->source, f->name);
    char *why;

    free(x->tiles);
    x->tiles = NULL;
    x->why = NULL;
    x->words = 0;
    if (!refusal_of(refusals, place) && !put_kernel(x, f, out)) {
        char *word = source_word(&x->source, x->wrong), *where = source_place(&x->source, x->wrong);

        text_drop(out);
        why = must_print("%s (\"%s\", %s)", x->why, word, where);
        refuse_kernel(refusals, place, why);
        free(why);
        free(word);
        free(where);
    }
    free(place);
}

bool expand(const char *text, size_t bytes, struct refusals *refusals, struct text *out)
{
    struct expander x = {0};
    struct translation t = {0};
    size_t at = 0;
    bool any = false;

    if (!memmem(text, bytes, "__global__", 10) ||
        !(memmem(text, bytes, "__sync", 6) || memmem(text, bytes, "tiled_partition", 15) ||
          memmem(text, bytes, "_sync", 5)))
        return false;
    source_open(&x.source, text, bytes, NULL);
    x.k = &x.source.tokens;
    t.source = x.source;
    x.functions = functions_find(&t);
    for (size_t n = 0; n < x.functions->count; n++) {
        const struct function *f = &x.functions->at[n];
        struct text kernel = {0};

        if (!is_to_be_expanded(&x, f) || x.k->at[f->statement].start < at) continue;
        try_kernel(&x, f, refusals, &kernel);
        if (!kernel.at) continue;
        any = true;
        text_add(out, text + at, x.k->at[f->statement].start - at);
        text_put(out, kernel.at);
        at = x.k->at[x.k->at[f->body].partner].end;
        text_drop(&kernel);
    }
    if (any) text_add(out, text + at, bytes - at);
    functions_drop(x.functions);
    free(x.tiles);
    source_close(&x.source);
    return any;
}
