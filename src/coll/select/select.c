/* SPDX-License-Identifier: Apache-2.0 */
#include "coll/select/select.h"

#include <math.h>

const char *const kl_select_reason_text[KL_SELECT_REASONS] = {
    [KL_SELECTED_SMALL] = "small operations are staged",
    [KL_SELECTED_FASTER] = "faster, as the model estimates it",
    [KL_SELECTED_EXPORTED] = "all ranks can map the buffers",
    [KL_SELECTED_PROCESS] = "all ranks live in one process",
    [KL_SELECTED_NO_KERNEL] = "the kernel may not copy between the ranks",
    [KL_SELECTED_FORCED] = "forced by KOLO_SELECT or KOLO_KERNEL_COPIES",
};

const char *const kl_select_reason_name[KL_SELECT_REASONS] = {
    [KL_SELECTED_SMALL] = "small",         [KL_SELECTED_FASTER] = "faster",       [KL_SELECTED_EXPORTED] = "exported",
    [KL_SELECTED_PROCESS] = "one_process", [KL_SELECTED_NO_KERNEL] = "no_kernel", [KL_SELECTED_FORCED] = "forced",
};

const char *kl_select_way_text(uint8_t way)
{
    static const char *const texts[] = {
        [1] = "staged",
        [2] = "kernel",
        [3] = "direct",
        [5] = "staged, hierarchical",
        [9] = "staged, nt stores",
        [10] = "kernel, nt stores",
        [11] = "direct, nt stores",
        [13] = "staged, hierarchical, nt stores",
    };

    way &= ~KL_SELECT_BY_TUNER;
    return way < sizeof texts / sizeof texts[0] ? texts[way] : NULL;
}

static bool is_small(int func, size_t bytes)
{
    return bytes < (func < KL_SELECT_FEW ? KL_SELECT_COLLECTIVE : KL_SELECT_LEAST);
}

void kl_select_row_text(const struct kl_select_row *row, struct kl_text *text)
{
    const enum kl_copy copy = (enum kl_copy)row->copy;
    const bool hierarchical = row->hierarchical && copy == KL_COPY_STAGED;

    kl_text_add(text, "%s: %s", kl_select_way_text(kl_select_way(copy, hierarchical, row->nt)),
                kl_select_reason_text[row->reason]);
    if (row->reason != KL_SELECTED_FASTER) return;
    kl_text_add(text, " (%.0f us; %s %.0f us)", (double)row->us,
                kl_copy_name[copy == KL_COPY_STAGED ? KL_COPY_KERNEL : KL_COPY_STAGED], (double)row->other_us);
}

static bool is_forced(const struct kl_select_facts *f, enum kl_copy *copy)
{
    if (kl_select_says(f, KL_SELECT_STAGED))
        *copy = KL_COPY_STAGED;
    else if (kl_select_says(f, KL_SELECT_KERNEL) || f->kernel_always)
        *copy = KL_COPY_KERNEL;
    else
        return false;
    return true;
}

static enum kl_select_reason copy_ordinary(const struct kl_select_facts *f, int func, size_t bytes, enum kl_copy *copy)
{
    *copy = KL_COPY_STAGED;
    if (is_small(func, bytes)) return KL_SELECTED_SMALL;
    if (!f->processes) return KL_SELECTED_PROCESS;
    if (!f->kernel) return KL_SELECTED_NO_KERNEL;
    if (is_forced(f, copy)) return KL_SELECTED_FORCED;
    if (kl_select_cost(f, func, bytes, KL_COPY_KERNEL) < kl_select_cost(f, func, bytes, KL_COPY_STAGED))
        *copy = KL_COPY_KERNEL;
    return KL_SELECTED_FASTER;
}

static enum kl_select_reason copy_of(const struct kl_select_facts *f, int func, size_t bytes, enum kl_buffers buffers,
                                     enum kl_copy *copy)
{
    const bool exported = buffers == KL_BUFFERS_EXPORTED && f->direct && !kl_select_says(f, KL_SELECT_STAGED);

    if (!exported || is_small(func, bytes)) return copy_ordinary(f, func, bytes, copy);
    *copy = KL_COPY_DIRECT;
    return f->processes ? KL_SELECTED_EXPORTED : KL_SELECTED_PROCESS;
}

static bool is_hierarchical(const struct kl_select_facts *f, int func, size_t bytes)
{
    if (!f->cores || kl_select_says(f, KL_SELECT_FLAT)) return false;
    if (func != KL_FUNC_ALL_REDUCE && func != KL_FUNC_REDUCE_SCATTER) return false;
    if (kl_select_says(f, KL_SELECT_HIERARCHICAL)) return true;
    return bytes >= KL_SELECT_COLLECTIVE && kl_select_hierarchical_saves(f, func, bytes) > 0;
}

/* Staged collectives follow the meter of lines, post by post (device/host/copy_out.h). */
static bool stores_nt(const struct kl_select_facts *f, int func, size_t bytes, enum kl_copy copy)
{
    if (copy == KL_COPY_STAGED && func < KL_SELECT_FEW) return false;
    if (kl_select_says(f, KL_SELECT_TEMPORAL)) return false;
    if (kl_select_says(f, KL_SELECT_NT)) return true;
    return kl_select_touched(func, bytes, f->nranks) > kl_select_nt_from(f);
}

static float estimated(const struct kl_select_facts *f, int func, size_t bytes, enum kl_copy copy)
{
    const float us = kl_select_cost(f, func, bytes, copy);

    return isinf(us) ? 0 : us;
}

struct kl_select_row kl_select_decide(const struct kl_select_facts *f, int func, size_t bytes, enum kl_buffers buffers)
{
    enum kl_copy copy;
    const enum kl_select_reason reason = copy_of(f, func, bytes, buffers, &copy);
    const enum kl_copy other = copy == KL_COPY_STAGED ? KL_COPY_KERNEL : KL_COPY_STAGED;

    return (struct kl_select_row){.copy = (uint8_t)copy,
                                  .hierarchical = is_hierarchical(f, func, bytes),
                                  .nt = stores_nt(f, func, bytes, copy),
                                  .reason = (uint8_t)reason,
                                  .us = estimated(f, func, bytes, copy),
                                  .other_us = estimated(f, func, bytes, other)};
}

static void make_rows(struct kl_select *s, bool messages, uint32_t line_ns)
{
    const int end = messages ? KL_SELECT_FUNCS : KL_SELECT_FEW;
    struct kl_select_facts facts = s->facts;

    facts.profile.line_ns = s->line_ns[messages] = line_ns;
    for (int func = messages ? KL_SELECT_FEW : 0; func < end; func++)
        for (int size = 0; size < KL_SELECT_SIZES; size++)
            for (int buffers = 0; buffers < KL_BUFFER_CLASSES; buffers++)
                s->row[func][size][buffers] =
                    kl_select_decide(&facts, func, (size_t)KL_SELECT_LEAST << size, (enum kl_buffers)buffers);
}

void kl_select_make(struct kl_select *s, const struct kl_select_facts *facts)
{
    s->facts = *facts;
    make_rows(s, false, facts->profile.line_ns);
    make_rows(s, true, facts->profile.line_ns);
}

void kl_select_remake(struct kl_select *s, uint32_t line_ns, bool messages)
{
    make_rows(s, messages, line_ns);
}
