/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/nvcc/ptx.h"

#include <stdlib.h>
#include <string.h>

/* The mode of shfl or vote, and the operation of redux, if there is exactly a known one. */
static const char *one_of(const struct ptx_instruction *i, const char *const *words)
{
    for (; *words; words++)
        if (ptx_has(i, *words)) return *words;
    return NULL;
}

static bool is_plain(const struct ptx_operand *o)
{
    return o->count == 1 && !o->vector && !o->address;
}

/* d|p of a shuffle, d|p of match.all: write the second from __kolo_p. */
static bool put_pair(struct ptx_block *b, const struct ptx_operand *to, char *value)
{
    bool good = is_plain(to) && value;

    if (good) text_print(&b->out, "bool __kolo_p = false; uint32_t __kolo_d = %s; ", value);
    free(value);
    if (good && to->second) good = ptx_put(b, ptx_target(b, to->second), must_copy("__kolo_p", 8));
    return good && ptx_put(b, ptx_target(b, to->element[0]), must_copy("__kolo_d", 8));
}

/* shfl.sync.up.b32 d|p, a, b, c, mask */
static bool shuffle(struct ptx_block *b, const struct ptx_instruction *i)
{
    static const char *const modes[] = {"up", "down", "bfly", "idx", NULL};
    const char *mode = one_of(i, modes);
    char *value[4] = {NULL}, *call = NULL;
    bool good = mode && ptx_has(i, "sync") && i->operands == 5 && ptx_only(i, " sync up down bfly idx ");

    for (unsigned n = 0; n < 4 && good; n++) good = (value[n] = ptx_value(b, &i->operand[1 + n], "uint32_t")) != NULL;
    if (good)
        call = must_print("__kolo::ptx::shuffle_%s(%s, %s, %s, %s, __kolo_p)", mode, value[0], value[1], value[2],
                          value[3]);
    for (unsigned n = 0; n < 4; n++) free(value[n]);
    return good ? put_pair(b, &i->operand[0], call) : false;
}

/* vote.sync.ballot.b32 d, p, mask */
static bool vote(struct ptx_block *b, const struct ptx_instruction *i)
{
    static const char *const modes[] = {"ballot", "all", "any", "uni", NULL};
    const char *mode = one_of(i, modes);
    char *predicate, *mask, *call = NULL;

    if (!mode || !ptx_has(i, "sync") || i->operands != 3 || !is_plain(&i->operand[0]) ||
        !ptx_only(i, " sync ballot all any uni "))
        return false;
    predicate = ptx_value(b, &i->operand[1], "bool");
    mask = ptx_value(b, &i->operand[2], "uint32_t");
    if (predicate && mask) call = must_print("__%s_sync(%s, %s)", mode, mask, predicate);
    free(predicate);
    free(mask);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), call);
}

/* match.any.sync.b32 d, a, mask; match.all.sync.b64 d|p, a, mask */
static bool match(struct ptx_block *b, const struct ptx_instruction *i)
{
    static const char *const modes[] = {"any", "all", NULL};
    const char *mode = one_of(i, modes), *type = ptx_type(i, 0);
    char *value, *mask, *call = NULL;

    if (!mode || !type || i->operands != 3 || !ptx_only(i, " sync any all ")) return false;
    value = ptx_value(b, &i->operand[1], type);
    mask = ptx_value(b, &i->operand[2], "uint32_t");
    if (value && mask) call = must_print("__kolo::ptx::match_%s(%s, %s, __kolo_p)", mode, value, mask);
    free(value);
    free(mask);
    return put_pair(b, &i->operand[0], call);
}

/* redux.sync.add.s32 d, a, mask */
static bool reduce(struct ptx_block *b, const struct ptx_instruction *i)
{
    static const char *const modes[] = {"add", "min", "max", "and", "or", "xor", NULL};
    const char *mode = one_of(i, modes), *type = ptx_type(i, 0);
    char *value, *mask, *call = NULL;

    if (!mode || !type || ptx_bits(type) != 32 || !strcmp(type, "float") || i->operands != 3 ||
        !is_plain(&i->operand[0]) || !ptx_only(i, " sync add min max and or xor "))
        return false;
    if (*mode == 'a' && mode[1] == 'n') type = "uint32_t";
    if (*mode == 'o' || *mode == 'x') type = "uint32_t";
    value = ptx_value(b, &i->operand[1], !strcmp(type, "int32_t") ? "int" : "unsigned");
    mask = ptx_value(b, &i->operand[2], "uint32_t");
    if (value && mask) call = must_print("__reduce_%s_sync(%s, %s)", mode, mask, value);
    free(value);
    free(mask);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), call);
}

/* elect.sync d|p, mask: the lowest lane */
static bool elect(struct ptx_block *b, const struct ptx_instruction *i)
{
    char *mask = i->operands == 2 && ptx_only(i, " sync ") ? ptx_value(b, &i->operand[1], "uint32_t") : NULL, *call;

    if (!mask) return false;
    call = must_print("__kolo::ptx::elect(%s, __kolo_p)", mask);
    free(mask);
    return put_pair(b, &i->operand[0], call);
}

/* ---- barriers of blocks ---- */

static const char barrier_words[] = " cta sync arrive aligned warp red popc and or ";

/* bar.red.popc.u32 d, a{, b}, p */
static bool barrier_reduce(struct ptx_block *b, const struct ptx_instruction *i)
{
    const char *kind = ptx_has(i, "popc") ? "COUNT" : ptx_has(i, "and") ? "AND" : ptx_has(i, "or") ? "OR" : NULL;
    char *id, *count, *predicate, *call = NULL;

    if (!kind || i->operands < 3 || i->operands > 4 || !is_plain(&i->operand[0])) return false;
    id = ptx_value(b, &i->operand[1], "uint32_t");
    count = i->operands == 4 ? ptx_value(b, &i->operand[2], "uint32_t") : must_copy("0", 1);
    predicate = ptx_value(b, &i->operand[i->operands - 1], "bool");
    if (id && count && predicate)
        call = must_print("__koloBarrier(%s, %s, KOLO_BARRIER_%s, %s, __builtin_FILE(), __builtin_LINE())", id, count,
                          kind, predicate);
    free(id);
    free(count);
    free(predicate);
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), call);
}

static bool barrier(struct ptx_block *b, const struct ptx_instruction *i)
{
    char *id, *count;
    bool good;

    if (!ptx_only(i, barrier_words)) return false;
    if (ptx_has(i, "red")) return barrier_reduce(b, i);
    id = i->operands ? ptx_value(b, &i->operand[0], "uint32_t") : NULL;
    count = i->operands > 1 ? ptx_value(b, &i->operand[1], "uint32_t") : must_copy("0", 1);
    good = id && count && i->operands <= 2;
    if (good && ptx_has(i, "warp"))
        text_print(&b->out, "__syncwarp(%s); ", id);
    else if (good && ptx_has(i, "arrive"))
        text_print(&b->out, "__koloBarrierArrive(%s, %s); ", id, count);
    else if (good && ptx_has(i, "sync"))
        text_print(&b->out, "(void)__koloBarrier(%s, %s, KOLO_BARRIER_PLAIN, 0, __builtin_FILE(), __builtin_LINE()); ",
                   id, count);
    else
        good = false;
    free(id);
    free(count);
    return good;
}

static bool active(struct ptx_block *b, const struct ptx_instruction *i)
{
    if (i->operands != 1 || !is_plain(&i->operand[0])) return false;
    return ptx_put(b, ptx_target(b, i->operand[0].element[0]), must_print("__activemask()"));
}

bool ptx_warp(struct ptx_block *b, const struct ptx_instruction *i)
{
    if (ptx_is(i, "shfl")) return shuffle(b, i);
    if (ptx_is(i, "vote")) return vote(b, i);
    if (ptx_is(i, "match")) return match(b, i);
    if (ptx_is(i, "redux")) return reduce(b, i);
    if (ptx_is(i, "elect")) return elect(b, i);
    if (ptx_is(i, "bar") || ptx_is(i, "barrier")) return barrier(b, i);
    if (ptx_is(i, "activemask")) return active(b, i);
    if (ptx_is(i, "fence") || ptx_is(i, "membar"))
        text_put(&b->out, "__threadfence_system(); ");
    else if (ptx_is(i, "trap"))
        text_put(&b->out, "__koloTrap(\"trap\"); ");
    else if (ptx_is(i, "exit"))
        text_put(&b->out, "__koloExit(); ");
    else if (ptx_is(i, "nanosleep"))
        text_put(&b->out, "__nanosleep(0); ");
    else
        return ptx_is(i, "brkpt") || ptx_is(i, "pmevent") || ptx_is(i, "griddepcontrol");
    return true;
}
