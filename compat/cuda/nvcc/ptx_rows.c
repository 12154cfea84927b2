/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that compute a result from their operands: each row names a function of kolo_cuda/ptx_arithmetic.h. */
#include "compat/cuda/nvcc/ptx.h"

#include <stdlib.h>
#include <string.h>

#define INTEGERS " u16 s16 u32 s32 u64 s64 "
#define BITS     " b16 b32 b64 "
#define REALS    " f32 f64 "

/* The operands, result first: T the instruction's type, W twice as wide, S its second type, u 32 bits, p a predicate; c at the end: the
 * carry, which the function changes. Words that are ignored have no effect on the value, or none beyond its last bit. */
static const struct row {
    const char *name, *ignored, *types, *function, *operands;
} rows[] = {
    {"add.cc", "", " u32 s32 u64 s64 ", "add_carry", "TTTc"},
    {"addc.cc", "", " u32 s32 u64 s64 ", "add_with_carry", "TTTc"},
    {"addc", "", " u32 s32 u64 s64 ", "add_with_carry_only", "TTTc"},
    {"sub.cc", "", " u32 s32 u64 s64 ", "subtract_carry", "TTTc"},
    {"subc.cc", "", " u32 s32 u64 s64 ", "subtract_with_carry", "TTTc"},
    {"subc", "", " u32 s32 u64 s64 ", "subtract_with_carry_only", "TTTc"},
    {"mad.lo.cc", "", " u32 s32 u64 s64 ", "multiply_low_add_carry", "TTTTc"},
    {"mad.hi.cc", "", " u32 s32 u64 s64 ", "multiply_high_add_carry", "TTTTc"},
    {"madc.lo.cc", "", " u32 s32 u64 s64 ", "multiply_low_add_with_carry", "TTTTc"},
    {"madc.hi.cc", "", " u32 s32 u64 s64 ", "multiply_high_add_with_carry", "TTTTc"},
    {"madc.lo", "", " u32 s32 u64 s64 ", "multiply_low_add_with_carry_only", "TTTTc"},
    {"madc.hi", "", " u32 s32 u64 s64 ", "multiply_high_add_with_carry_only", "TTTTc"},
    {"add.sat", " rn ", " s32 f32 ", "add_saturated", "TTT"},
    {"sub.sat", " rn ", " s32 f32 ", "subtract_saturated", "TTT"},
    {"mul.sat", " rn ", " f32 ", "multiply_saturated", "TTT"},
    {"add", " rn ", INTEGERS REALS, "add", "TTT"},
    {"sub", " rn ", INTEGERS REALS, "subtract", "TTT"},
    {"mul.lo", "", INTEGERS, "multiply_low", "TTT"},
    {"mul.hi", "", INTEGERS, "multiply_high", "TTT"},
    {"mul.wide", "", " u16 s16 u32 s32 ", "multiply_wide", "WTT"},
    {"mul", " rn ", REALS, "multiply_low", "TTT"},
    {"mad.lo", "", INTEGERS, "multiply_low_add", "TTTT"},
    {"mad.hi", "", INTEGERS, "multiply_high_add", "TTTT"},
    {"mad.wide", "", " u16 s16 u32 s32 ", "multiply_wide_add", "WTTW"},
    {"mad", " rn ", REALS, "fused", "TTTT"},
    {"fma", " rn ", REALS, "fused", "TTTT"},
    {"mul24.lo", "", " u32 s32 ", "multiply24_low", "TTT"},
    {"mad24.lo", "", " u32 s32 ", "multiply24_low_add", "TTTT"},
    {"div", " rn full approx ", INTEGERS REALS, "divide", "TTT"},
    {"rem", "", INTEGERS, "remainder", "TTT"},
    {"abs", "", INTEGERS REALS, "absolute", "TT"},
    {"neg", "", INTEGERS REALS, "negative", "TT"},
    {"min", "", INTEGERS REALS, "minimum", "TTT"},
    {"max", "", INTEGERS REALS, "maximum", "TTT"},
    {"sad", "", INTEGERS, "sum_of_difference", "TTTT"},
    {"rcp", " rn approx ", REALS, "reciprocal", "TT"},
    {"sqrt", " rn approx ", REALS, "square_root", "TT"},
    {"rsqrt", " approx ", REALS, "reciprocal_root", "TT"},
    {"sin", " approx ", " f32 ", "sine", "TT"},
    {"cos", " approx ", " f32 ", "cosine", "TT"},
    {"lg2", " approx ", " f32 ", "logarithm", "TT"},
    {"ex2", " approx ", " f32 ", "exponential", "TT"},
    {"tanh", " approx ", " f32 ", "hyperbolic_tangent", "TT"},
    {"copysign", "", REALS, "copy_sign", "TTT"},
    {"popc", "", " b32 b64 ", "population", "uT"},
    {"clz", "", " b32 b64 ", "leading_zeros", "uT"},
    {"bfind.shiftamt", "", " u32 s32 u64 s64 ", "find_shift", "uT"},
    {"bfind", "", " u32 s32 u64 s64 ", "find_bit", "uT"},
    {"brev", "", " b32 b64 ", "reverse_bits", "TT"},
    {"bfe", "", " u32 s32 u64 s64 ", "extract_field", "TTuu"},
    {"bfi", "", " b32 b64 ", "insert_field", "TTTuu"},
    {"bmsk.clamp", "", " b32 ", "mask_clamped", "Tuu"},
    {"bmsk.wrap", "", " b32 ", "mask_wrapped", "Tuu"},
    {"szext.clamp", "", " u32 s32 ", "extend_clamped", "TTu"},
    {"and", "", BITS " pred ", "bits_and", "TTT"},
    {"or", "", BITS " pred ", "bits_or", "TTT"},
    {"xor", "", BITS " pred ", "bits_xor", "TTT"},
    {"not", "", BITS " pred ", "bits_not", "TT"},
    {"cnot", "", BITS, "logical_not", "TT"},
    {"shl", "", BITS, "shift_left", "TTu"},
    {"shr", "", BITS INTEGERS, "shift_right", "TTu"},
    {"shf.l.wrap", "", " b32 ", "funnel_left_wrap", "TTTu"},
    {"shf.r.wrap", "", " b32 ", "funnel_right_wrap", "TTTu"},
    {"shf.l.clamp", "", " b32 ", "funnel_left_clamp", "TTTu"},
    {"shf.r.clamp", "", " b32 ", "funnel_right_clamp", "TTTu"},
    {"lop3", "", " b32 ", "logic3", "TTTTu"},
    {"prmt", "", " b32 ", "permute", "TTTu"},
    {"selp", "", BITS INTEGERS REALS, "select", "TTTp"},
    {"slct", "", BITS INTEGERS REALS, "select_by_sign", "TTTS"},
};

/* How many of the row's words has the instruction, which has no others than those and the ignored ones and types? 0: it does not fit. */
static bool fits(const struct row *row, const struct ptx_instruction *i)
{
    char *copy = must_copy(row->name, strlen(row->name)), *place = NULL, *word = strtok_r(copy, ".", &place), *known;
    bool good = ptx_is(i, word);
    struct text words = {0};

    text_print(&words, " %s ftz ", row->ignored);
    while (good && (word = strtok_r(NULL, ".", &place))) {
        good = ptx_has(i, word);
        text_print(&words, " %s ", word);
    }
    known = words.at;
    good = good && ptx_only(i, known);
    text_drop(&words);
    free(copy);
    return good;
}

/* The first type among the instruction's words must be one of the row's. */
static bool type_fits(const struct row *row, const struct ptx_instruction *i)
{
    for (unsigned w = 1; w < i->words; w++)
        if (ptx_type_of_word(i->word[w])) {
            char *spaced = must_print(" %s ", i->word[w]);
            bool good = strstr(row->types, spaced);

            free(spaced);
            return good;
        }
    return false;
}

static const char *wide(const char *type)
{
    bool is_signed = *type == 'i';

    if (ptx_bits(type) == 16) return is_signed ? "int32_t" : "uint32_t";
    return is_signed ? "int64_t" : "uint64_t";
}

static const char *operand_type(const struct ptx_instruction *i, char letter)
{
    const char *type = ptx_type(i, 0);

    switch (letter) {
    case 'W':
        return wide(type);
    case 'S':
        return ptx_type(i, 1) ? ptx_type(i, 1) : type;
    case 'u':
        return "uint32_t";
    case 'p':
        return "bool";
    default:
        return type;
    }
}

/* The call with its arguments; NULL if one is none. */
static char *call(struct ptx_block *b, const struct row *row, const struct ptx_instruction *i)
{
    const char *type = ptx_type(i, 0);
    bool flush = ptx_has(i, "ftz"), good = true;
    struct text out = {0};

    text_print(&out, "%s__kolo::ptx::%s<%s>(", flush ? "__kolo::ptx::flushed(" : "", row->function, type);
    for (unsigned n = 1; row->operands[n] && good; n++) {
        bool carry = row->operands[n] == 'c';
        char *value =
            carry ? must_copy("__kolo_carry", 12) : ptx_value(b, &i->operand[n], operand_type(i, row->operands[n]));

        good = value != NULL;
        if (good) text_print(&out, flush ? "%s__kolo::ptx::flushed(%s)" : "%s%s", n > 1 ? ", " : "", value);
        free(value);
    }
    text_put(&out, flush ? "))" : ")");
    if (good) return out.at;
    text_drop(&out);
    return NULL;
}

bool ptx_compute(struct ptx_block *b, const struct ptx_instruction *i)
{
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const struct row *row = &rows[r];
        size_t operands = strcspn(row->operands, "c");

        if (!fits(row, i) || !type_fits(row, i)) continue;
        if (i->operands != operands || i->operand[0].count != 1 || i->operand[0].second || i->operand[0].address ||
            i->operand[0].vector)
            return false;
        return ptx_put(b, ptx_target(b, i->operand[0].element[0]), call(b, row, i));
    }
    return false;
}

/* ---- comparisons ---- */

static const char comparisons[] = " eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan ";

static const char *comparison(const struct ptx_instruction *i)
{
    char *spaced = i->words > 1 ? must_print(" %s ", i->word[1]) : must_copy("?", 1);
    bool known = strstr(comparisons, spaced);

    free(spaced);
    return known ? i->word[1] : NULL;
}

static const char *combination(const struct ptx_instruction *i)
{
    return ptx_has(i, "and") ? "&" : ptx_has(i, "or") ? "|" : ptx_has(i, "xor") ? "^" : NULL;
}

/* The comparison of the second and third operands, combined with the fourth. */
static char *compared(struct ptx_block *b, const struct ptx_instruction *i, const char *type, bool negated)
{
    const char *how = comparison(i), *combine = combination(i);
    char *left = ptx_value(b, &i->operand[1], type), *right = ptx_value(b, &i->operand[2], type),
         *third = combine ? ptx_value(b, &i->operand[3], "bool") : must_copy("false", 5), *result = NULL;

    if (how && left && right && third)
        result = must_print("bool(%s__kolo::ptx::compare_%s(%s, %s) %s %s)", negated ? "!" : "", how, left, right,
                            combine ? combine : "|", third);
    free(left);
    free(right);
    free(third);
    return result;
}

/* setp.ge.and.s32 p|q, a, b, c */
static bool set_predicate(struct ptx_block *b, const struct ptx_instruction *i)
{
    const struct ptx_operand *to = &i->operand[0];
    const char *type = ptx_type(i, 0);

    if (to->count != 1 || to->vector || to->address) return false;
    if (!to->second) return ptx_put(b, ptx_target(b, to->element[0]), compared(b, i, type, false));
    text_put(&b->out, "bool __kolo_p, __kolo_q; ");
    return ptx_put(b, must_copy("__kolo_p", 8), compared(b, i, type, false)) &&
           ptx_put(b, must_copy("__kolo_q", 8), compared(b, i, type, true)) &&
           ptx_put(b, ptx_target(b, to->element[0]), must_copy("__kolo_p", 8)) &&
           ptx_put(b, ptx_target(b, to->second), must_copy("__kolo_q", 8));
}

/* set.lt.u32.f32 d, a, b: all bits, or 1.0 */
static bool set_value(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *to = ptx_type(i, 0), *from = ptx_type(i, 1);
    char *value = from && i->operand[0].count == 1 ? compared(b, i, from, false) : NULL, *result;

    if (!value) return false;
    result = must_print(!strcmp(to, "float") ? "(%s ? 1.0f : 0.0f)" : "(%s ? 0xffffffffU : 0U)", value);
    free(value);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), result);
}

bool ptx_compare(struct ptx_block *b, const struct ptx_instruction *i)
{
    bool predicate = ptx_is(i, "setp");

    if (!(predicate || ptx_is(i, "set")) || !ptx_type(i, 0) || !comparison(i)) return false;
    if (i->operands != (combination(i) ? 4U : 3U) ||
        !ptx_only(i, " eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan and or xor ftz "))
        return false;
    return predicate ? set_predicate(b, i) : set_value(b, i);
}
