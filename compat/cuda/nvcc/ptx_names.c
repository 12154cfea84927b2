/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/ptx.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { REGISTERS = 256 }; /* of one name<n> */

static const struct {
    const char *name, *value;
} special[] = {{"laneid", "__kolo::lane()"},
               {"warpid", "(__kolo::thread_rank() / 32)"},
               {"nwarpid", "((blockDim.x * blockDim.y * blockDim.z + 31) / 32)"},
               {"lanemask_lt", "((1u << __kolo::lane()) - 1)"},
               {"lanemask_le", "((2u << __kolo::lane()) - 1)"},
               {"lanemask_eq", "(1u << __kolo::lane())"},
               {"lanemask_ge", "(~0u << __kolo::lane())"},
               {"lanemask_gt", "(~0u << __kolo::lane() << 1)"},
               {"globaltimer", "__globaltimer()"},
               {"globaltimer_lo", "(unsigned)__globaltimer()"},
               {"globaltimer_hi", "(unsigned)(__globaltimer() >> 32)"},
               {"clock", "(unsigned)clock64()"},
               {"clock_hi", "(unsigned)(clock64() >> 32)"},
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

static const char *without_percent(const char *word)
{
    while (*word == '%') word++;
    return word;
}

/* ---- registers ---- */

const struct ptx_register *ptx_find(const struct ptx_block *b, const char *name)
{
    name = without_percent(name);
    for (size_t r = b->register_count; r-- > 0;)
        if (!strcmp(b->registers[r].name, name)) return &b->registers[r];
    return NULL;
}

static void add_register(struct ptx_block *b, char *name, const char *type)
{
    unsigned number = b->register_number++;

    b->registers = must_grow(b->registers, (b->register_count + 1) * sizeof *b->registers);
    b->registers[b->register_count++] = (struct ptx_register){name, type, number, b->scope};
    text_print(&b->out, "__attribute__((unused)) %s __kolo_r%u; __kolo_r%u = 0; ", type, number,
               number); /* a goto may pass a declaration, not one with a value */
}

static bool is_register_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && !strchr("_$", *name)) return false;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && !strchr("_$", *name)) return false;
    return true;
}

/* `a`, or `a<4>`, which is a0 to a3. */
static bool add_declared(struct ptx_block *b, char *word, const char *type)
{
    char *angle = strchr(word, '<'), *end;
    unsigned long n = angle ? strtoul(angle + 1, &end, 10) : 1;

    if (angle && (strcmp(end, ">") != 0 || n > REGISTERS)) return false;
    if (angle) *angle = 0;
    if (!*word || !is_register_name(word)) return false;
    for (unsigned long k = 0; k < n; k++)
        add_register(b, angle ? must_print("%s%lu", word, k) : must_copy(word, strlen(word)), type);
    return true;
}

bool ptx_declare(struct ptx_block *b, const char *rest)
{
    char *copy = must_copy(rest, strlen(rest)), *place = NULL, *word = strtok_r(copy, ", \t\n", &place);
    const char *type = word && *word == '.' ? ptx_type_of_word(word + 1) : NULL;
    bool good = type != NULL, any = false;

    while (good && (word = strtok_r(NULL, ", \t\n", &place))) {
        char *name = must_copy(without_percent(word), strlen(without_percent(word)));

        good = add_declared(b, name, type);
        any = true;
        free(name);
    }
    free(copy);
    return good && any;
}

void ptx_leave_scope(struct ptx_block *b)
{
    while (b->register_count && b->registers[b->register_count - 1].scope >= b->scope)
        free(b->registers[--b->register_count].name);
    b->scope--;
}

/* ---- values ---- */

/* 0f3F800000, 0d..., 12, 0xFFu, -1, 1.5; NULL: none of these. */
static char *literal(const char *word, const char *type)
{
    const char *digits = word + (*word == '-');
    char *end;

    if (word[0] == '0' && (word[1] == 'f' || word[1] == 'F') && strlen(word) == 10 &&
        strspn(word + 2, "0123456789abcdefABCDEF") == 8)
        return must_print("__kolo::ptx::take<%s>(__kolo::ptx::take<float>(0x%sU))", type, word + 2);
    if (word[0] == '0' && (word[1] == 'd' || word[1] == 'D') && strlen(word) == 18 &&
        strspn(word + 2, "0123456789abcdefABCDEF") == 16)
        return must_print("__kolo::ptx::take<%s>(__kolo::ptx::take<double>((uint64_t)0x%sULL))", type, word + 2);
    if (!isdigit((unsigned char)*digits)) return NULL;
    if (strpbrk(digits, ".") && (strtod(digits, &end), !*end) && !strpbrk(digits, "xX"))
        return must_print("((%s)%s)", type, word);
    (void)strtoull(digits, &end, 0);
    return !*end || !strcmp(end, "U") ? must_print("((%s)%.*sLL)", type, (int)(end - word), word) : NULL;
}

static const char *special_register(const char *word)
{
    if (!strcmp(word, "WARP_SZ")) return "32u";
    word = without_percent(word);
    for (size_t r = 0; r < sizeof special / sizeof special[0]; r++)
        if (!strcmp(word, special[r].name)) return special[r].value;
    return NULL;
}

/* The number in `%12`, or one beyond all. */
static unsigned variable_number(const struct ptx_block *b, const char *word)
{
    char *end;
    unsigned long n;

    if (word[0] != '%' || !isdigit((unsigned char)word[1])) return b->variables;
    n = strtoul(word + 1, &end, 10);
    return !*end && n < b->variables ? (unsigned)n : b->variables;
}

char *ptx_word_value(const struct ptx_block *b, const char *word, const char *type)
{
    const struct ptx_register *r = ptx_find(b, word);
    unsigned n = variable_number(b, word);
    const char *value;

    if (n < b->variables) return must_print("__kolo::ptx::take<%s>(__kolo_v%u)", type, n);
    if (r) return must_print("__kolo::ptx::take<%s>(__kolo_r%u)", type, r->number);
    value = special_register(word);
    if (value) return must_print("__kolo::ptx::take<%s>(%s)", type, value);
    return literal(word, type);
}

char *ptx_value(const struct ptx_block *b, const struct ptx_operand *o, const char *type)
{
    char *value, *negated;

    if (o->count != 1 || o->vector || o->address || o->second) return NULL;
    value = ptx_word_value(b, o->element[0], type);
    if (!value || !o->negated) return value;
    negated = must_print("!%s", value);
    free(value);
    return negated;
}

char *ptx_target(const struct ptx_block *b, const char *word)
{
    const struct ptx_register *r = ptx_find(b, word);
    unsigned n = variable_number(b, word);

    if (n < b->variables) return must_print("__kolo_v%u", n);
    if (r) return must_print("__kolo_r%u", r->number);
    return !strcmp(word, "_") ? must_print("__kolo_none") : NULL;
}

bool ptx_put(struct ptx_block *b, char *target, char *value)
{
    bool good = target && value;

    if (good) text_print(&b->out, "__kolo::ptx::put(%s, %s); ", target, value);
    free(target);
    free(value);
    return good;
}
