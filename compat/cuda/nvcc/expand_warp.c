/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are taken out of expressions, and calls of warps. */
#include "compat/cuda/nvcc/expander.h"

#include <stdlib.h>
#include <string.h>

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
bool expand_is_tile_call(const struct expander *x, uint32_t i)
{
    return expand_is_tile(x, i) && token_is(x->k, i + 1, ".") && token_is_name(x->k, i + 2) &&
           token_is(x->k, i + 3, "(") && x->k->at[i + 3].partner != NO_TOKEN;
}

/* `cg::reduce(warp, v, cg::plus<float>())` */
bool expand_is_tile_reduction(const struct expander *x, uint32_t i)
{
    return token_among(x->k, i, " reduce sync ") && token_is(x->k, i + 1, "(") && expand_is_tile(x, i + 2) &&
           token_among(x->k, i + 3, " , ) ");
}

bool expand_is_call(struct expander *x, uint32_t i)
{
    if (!token_is_name(x->k, i) || (i && token_among(x->k, i - 1, " . -> "))) return false;
    return is_warp_operation(x->k, i) || expand_is_tile_call(x, i) || expand_is_tile_reduction(x, i) ||
           is_function_call(x, i) || expand_method(x, i) != NO_TOKEN;
}

bool expand_has_calls(struct expander *x, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        if (token_is(x->k, i, "tiled_partition") || expand_is_call(x, i)) return true;
    return false;
}

bool expand_arguments(struct expander *x, struct frame *fr, uint32_t open, struct text *before, struct text *out)
{
    return expand_expression(x, fr, open + 1, x->k->at[open].partner, true, before, out);
}

bool expand_operation(struct expander *x, struct frame *fr, const char *name, const char *mask, uint32_t open,
                      struct text *before, struct text *out)
{
    struct text arguments = {0};
    unsigned number = ++x->numbers;
    bool good = expand_arguments(x, fr, open, before, &arguments);

    text_print(before, "auto __kolo_w%u = %s(%s%s%s); ", number, name, mask,
               *mask && open + 1 < x->k->at[open].partner ? ", " : "", arguments.at ? arguments.at : "");
    text_print(out, "__kolo_w%u", number);
    text_drop(&arguments);
    return good;
}

/* Methods of a tile that is a warp of a block of whole warps. */
bool expand_tile_call(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out)
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
        if (methods[m].operation) return expand_operation(x, fr, methods[m].instead, all, i + 3, before, out);
        text_put(out, methods[m].instead);
        return true;
    }
    return expand_refuse(x, i + 2, "a method of a tile that is not known");
}

/* ---- reductions of tiles ---- */

bool expand_tile_reduction(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out)
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
        return expand_refuse(x, i, "a reduction of a shape that is not known");
    for (operation = of.from; token_is(k, operation + 1, "::");) operation += 2;
    for (; kind < sizeof kinds / sizeof kinds[0]; kind++)
        if (token_is(k, operation, kinds[kind])) break;
    if (kind == sizeof kinds / sizeof kinds[0])
        return expand_refuse(x, operation, "a reduction of a shape that is not known");
    if (!expand_type_of_argument(x, fr, p, &type)) {
        uint32_t end = token_is(k, operation + 1, "<") ? angle_end(k, operation + 1) : NO_TOKEN;

        type.bytes = 0;
        if (end == NO_TOKEN || end == operation + 2) {
            text_drop(&type);
            return expand_refuse(x, operation, "a reduction of a type that is not known");
        }
        expand_type_words(x, fr, operation + 2, end, &type);
    }
    good = expand_expression(x, fr, p.from, p.to, true, before, &value);
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
