/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/ptx.h"

#include <stdlib.h>
#include <string.h>

static const char access_words[] =
    " global shared shared::cta shared::cluster local const volatile relaxed acquire release weak mmio cta cluster gpu "
    "sys "
    "ca cg cs cv lu wb wt nc v2 v4 v8 add min max and or xor inc dec exch cas acq_rel noftz sc ";

static bool is_shared(const struct ptx_instruction *i)
{
    return ptx_has(i, "shared") || ptx_has(i, "shared::cta") || ptx_has(i, "shared::cluster");
}

static bool put_address(struct ptx_block *b, const struct ptx_instruction *i, const struct ptx_operand *o,
                        const char *type)
{
    char *value = o->address ? ptx_word_value(b, o->element[0], "uint64_t") : NULL;

    if (value)
        text_print(&b->out, "%s *__kolo_at = __kolo::ptx::%s<%s>(%s, %ld); ", type, is_shared(i) ? "shared" : "global",
                   type, value, o->offset);
    free(value);
    return value != NULL;
}

static const char *order_of(const struct ptx_instruction *i)
{
    if (ptx_has(i, "acq_rel")) return "__kolo::ptx::acq_rel";
    if (ptx_has(i, "acquire")) return "__kolo::ptx::acquire";
    if (ptx_has(i, "release")) return "__kolo::ptx::release";
    return "__kolo::ptx::relaxed";
}

static bool is_ordered(const struct ptx_instruction *i)
{
    return ptx_has(i, "relaxed") || ptx_has(i, "acquire") || ptx_has(i, "release") || ptx_has(i, "volatile") ||
           ptx_has(i, "mmio");
}

static unsigned width_of(const struct ptx_instruction *i)
{
    return ptx_has(i, "v2") ? 2 : ptx_has(i, "v4") ? 4 : ptx_has(i, "v8") ? 8 : 1;
}

/* Vectors of small elements are accessed by words of up to 8 bytes, so that none of these is torn: bytes of a word; 0: element by element. */
static unsigned word_bytes(const struct ptx_instruction *i, const char *type)
{
    unsigned element = ptx_bits(type) / 8, all = element * width_of(i);

    return width_of(i) == 1 || element >= 8 ? 0 : all < 8 ? all : 8;
}

static bool load_words(struct ptx_block *b, const struct ptx_instruction *i, const char *type, unsigned bytes)
{
    const struct ptx_operand *to = &i->operand[0];
    unsigned each = bytes * 8 / ptx_bits(type);

    for (unsigned n = 0; n < to->count; n++) {
        if (n % each == 0)
            text_print(&b->out, "const auto __kolo_word%u = __kolo::ptx::load_word<%s, %u>(__kolo_at + %u); ", n / each,
                       is_ordered(i) ? order_of(i) : "__kolo::ptx::weak", bytes, n);
        if (!ptx_put(b, ptx_target(b, to->element[n]),
                     must_print("__kolo::ptx::element<%s>(__kolo_word%u, %u)", type, n / each, n % each)))
            return false;
    }
    return true;
}

static bool store_words(struct ptx_block *b, const struct ptx_instruction *i, const char *type, unsigned bytes)
{
    const struct ptx_operand *from = &i->operand[1];
    unsigned each = bytes * 8 / ptx_bits(type);

    for (unsigned n = 0; n < from->count; n++) {
        char *value = ptx_word_value(b, from->element[n], type);

        if (!value) return false;
        if (n % each == 0) text_print(&b->out, "__kolo::ptx::store_word<%s>(__kolo_at + %u", order_of(i), n);
        text_print(&b->out, ", %s", value);
        if (n % each == each - 1) text_print(&b->out, "); ");
        free(value);
    }
    return true;
}

static bool do_load(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *type = ptx_type(i, 0);
    const struct ptx_operand *to = &i->operand[0];

    if (!type || i->operands != 2 || to->address || to->second || to->count != width_of(i) ||
        !ptx_only(i, access_words) || !put_address(b, i, &i->operand[1], type))
        return false;
    if (word_bytes(i, type)) return load_words(b, i, type, word_bytes(i, type));
    for (unsigned n = 0; n < to->count; n++) {
        char *from = is_ordered(i) ? must_print("__kolo::ptx::load<%s>(__kolo_at + %u)", order_of(i), n)
                                   : must_print("__kolo_at[%u]", n);

        if (!ptx_put(b, ptx_target(b, to->element[n]), from)) return false;
    }
    return true;
}

static bool do_store(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *type = ptx_type(i, 0);
    const struct ptx_operand *from = &i->operand[1];

    if (!type || i->operands != 2 || from->address || from->second || from->count != width_of(i) ||
        !ptx_only(i, access_words) || !put_address(b, i, &i->operand[0], type))
        return false;
    if (word_bytes(i, type)) return store_words(b, i, type, word_bytes(i, type));
    for (unsigned n = 0; n < from->count; n++) {
        char *value = ptx_word_value(b, from->element[n], type);

        if (!value) return false;
        if (is_ordered(i))
            text_print(&b->out, "__kolo::ptx::store<%s>(__kolo_at + %u, %s); ", order_of(i), n, value);
        else
            text_print(&b->out, "__kolo_at[%u] = %s; ", n, value);
        free(value);
    }
    return true;
}

static const char *atomic_operation(const struct ptx_instruction *i)
{
    static const char *const operations[] = {"add", "min", "max", "and", "or", "xor", "inc", "dec", "exch", "cas"};

    for (size_t n = 0; n < sizeof operations / sizeof operations[0]; n++)
        if (ptx_has(i, operations[n])) return operations[n];
    return NULL;
}

/* red has no result, atom has one before its address. */
static bool do_atomic(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *type = ptx_type(i, 0), *operation = atomic_operation(i);
    unsigned address = ptx_is(i, "atom"), values = operation && !strcmp(operation, "cas") ? 2 : 1;
    bool fenced = ptx_has(i, "acquire") || ptx_has(i, "release") || ptx_has(i, "acq_rel");
    struct text call = {0};
    bool good;

    if (!type || !operation || width_of(i) != 1 || i->operands != address + 1 + values || !ptx_only(i, access_words) ||
        !put_address(b, i, &i->operand[address], type))
        return false;
    text_print(&call, "%s__kolo::ptx::atomic_%s(__kolo_at", fenced ? "__kolo::ptx::fenced(" : "", operation);
    good = true;
    for (unsigned n = 0; n < values; n++) {
        char *value = ptx_value(b, &i->operand[address + 1 + n], type);

        good = good && value;
        if (value) text_print(&call, ", %s", value);
        free(value);
    }
    text_put(&call, fenced ? "))" : ")");
    if (good && address)
        return ptx_put(b, i->operand[0].count == 1 ? ptx_target(b, i->operand[0].element[0]) : NULL, call.at);
    if (good) text_print(&b->out, "(void)%s; ", call.at);
    text_drop(&call);
    return good;
}

/* cp.async.cg.shared.global [to], [from], 16{, bytes} */
static bool copy_async(struct ptx_block *b, const struct ptx_instruction *i)
{
    char *to, *from, *size, *valid;
    bool good;

    if (ptx_has(i, "commit_group") || ptx_has(i, "wait_all")) return ptx_only(i, " async commit_group wait_all ");
    if (ptx_has(i, "wait_group")) return ptx_only(i, " async wait_group ");
    if (!ptx_only(i, " async ca cg shared shared::cta global ") || i->operands < 3 || i->operands > 4 ||
        !i->operand[0].address || !i->operand[1].address)
        return false;
    to = ptx_word_value(b, i->operand[0].element[0], "uint64_t");
    from = ptx_word_value(b, i->operand[1].element[0], "uint64_t");
    size = ptx_value(b, &i->operand[2], "uint32_t");
    valid = ptx_value(b, &i->operand[i->operands - 1], "uint32_t");
    good = to && from && size && valid;
    if (good)
        text_print(
            &b->out,
            "__kolo::ptx::copy(__kolo::ptx::shared<char>(%s, %ld), __kolo::ptx::global<char>(%s, %ld), %s, %s); ", to,
            i->operand[0].offset, from, i->operand[1].offset, size, valid);
    free(to);
    free(from);
    free(size);
    free(valid);
    return good;
}

/* ---- moves ---- */

static const char *part_type(unsigned bits)
{
    return bits == 8 ? "uint8_t" : bits == 16 ? "uint16_t" : bits == 32 ? "uint32_t" : NULL;
}

/* mov.b64 %0, {lo, hi} */
static bool pack(struct ptx_block *b, const struct ptx_instruction *i, const char *type)
{
    const struct ptx_operand *from = &i->operand[1];
    const char *part = part_type(ptx_bits(type) / from->count);
    struct text value = {0};
    bool good = part && i->operand[0].count == 1;

    text_print(&value, "__kolo::ptx::pack<%s>(", type);
    for (unsigned n = 0; n < from->count && good; n++) {
        char *word = ptx_word_value(b, from->element[n], part);

        good = word != NULL;
        if (good) text_print(&value, "%s%s", n ? ", " : "", word);
        free(word);
    }
    text_put(&value, ")");
    if (good) return ptx_put(b, ptx_target(b, i->operand[0].element[0]), value.at);
    text_drop(&value);
    return false;
}

static bool unpack(struct ptx_block *b, const struct ptx_instruction *i, const char *type)
{
    const struct ptx_operand *to = &i->operand[0];
    const char *part = part_type(ptx_bits(type) / to->count);
    char *from = part ? ptx_value(b, &i->operand[1], type) : NULL;

    if (!from) return false;
    text_print(&b->out, "%s __kolo_whole = %s; ", type, from);
    free(from);
    for (unsigned n = 0; n < to->count; n++)
        if (!ptx_put(b, ptx_target(b, to->element[n]), must_print("__kolo::ptx::part<%s>(__kolo_whole, %u)", part, n)))
            return false;
    return true;
}

static bool do_move(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *type = ptx_type(i, 0);

    if (!type || i->operands != 2 || !ptx_only(i, " ") || i->operand[0].address) return false;
    if (i->operand[1].vector) return pack(b, i, type);
    if (i->operand[0].vector) return unpack(b, i, type);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), ptx_value(b, &i->operand[1], type));
}

/* cvta.to.shared.u64 %0, %1 */
static bool do_address(struct ptx_block *b, const struct ptx_instruction *i)
{
    char *from;

    if (i->operands != 2 || i->operand[0].count != 1 ||
        !ptx_only(i, " to global shared shared::cta shared::cluster local const param "))
        return false;
    from = ptx_value(b, &i->operand[1], "uint64_t");
    if (!from) return false;
    if (is_shared(i)) {
        char *plain = from;

        from = must_print("__kolo::ptx::%s(%s)", ptx_has(i, "to") ? "to_shared" : "of_shared", plain);
        free(plain);
    }
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), from);
}

/* ---- conversions ---- */

static const char *type_word(const struct ptx_instruction *i, unsigned n)
{
    for (unsigned w = 1; w < i->words; w++)
        if (ptx_type_of_word(i->word[w]) && !n--) return i->word[w];
    return "";
}

static bool is_real(const char *word)
{
    return !strcmp(word, "f32") || !strcmp(word, "f64");
}

/* No halves: they are numbers of 16 bits here. */
static bool is_number(const char *word)
{
    return is_real(word) || *word == 's' || *word == 'u';
}

/* The rounding to an integer, or "" for the nearest number. */
static const char *rounding(const struct ptx_instruction *i)
{
    return ptx_has(i, "rni")   ? "nearest"
           : ptx_has(i, "rzi") ? "zero"
           : ptx_has(i, "rmi") ? "minus"
           : ptx_has(i, "rpi") ? "plus"
                               : "";
}

static bool do_convert(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *to = type_word(i, 0), *from = type_word(i, 1), *round = rounding(i);
    char *value, *converted;

    if (i->operands != 2 || i->operand[0].count != 1 || !*from || !ptx_only(i, " rn rni rzi rmi rpi sat ftz "))
        return false;
    if (!is_number(from) || !is_number(to) || (is_real(from) && !is_real(to) && !*round)) return false;
    value = ptx_value(b, &i->operand[1], ptx_type_of_word(from));
    if (!value) return false;
    converted = must_print("__kolo::ptx::convert%s<%s>(%s%s(%s))", ptx_has(i, "sat") ? "_saturated" : "",
                           ptx_type_of_word(to), *round ? "__kolo::ptx::round_" : "", round, value);
    free(value);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), converted);
}

bool ptx_memory(struct ptx_block *b, const struct ptx_instruction *i)
{
    if (ptx_is(i, "ld") || ptx_is(i, "ldu")) return do_load(b, i);
    if (ptx_is(i, "st")) return do_store(b, i);
    if (ptx_is(i, "red") || ptx_is(i, "atom")) return do_atomic(b, i);
    if (ptx_is(i, "mov")) return do_move(b, i);
    if (ptx_is(i, "cvta")) return do_address(b, i);
    if (ptx_is(i, "cvt")) return do_convert(b, i);
    if (ptx_is(i, "cp") && ptx_has(i, "async")) return copy_async(b, i);
    return ptx_is(i, "prefetch") || ptx_is(i, "prefetchu") || ptx_is(i, "discard") || ptx_is(i, "applypriority");
}
