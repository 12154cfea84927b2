/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel whose barriers stand where all threads of a block come alike runs once for a block, not once for each thread: the code between two
 * barriers is a loop over the threads. Variables that are needed behind a barrier are computed again or kept in arrays. */
#include "compat/cuda/nvcc/loops.h"

#include "compat/cuda/nvcc/expand.h"
#include "compat/cuda/nvcc/translate.h"

#include <stdlib.h>
#include <string.h>

/* Shared memory belongs to the threads of a block, which one core runs one after the other. */
static void translate_atomics(struct loops *w)
{
    const struct body *b = w->b;
    const struct tokens *k = b->k;

    for (uint32_t i = b->open; i < b->close; i++) {
        uint32_t name = i + 3, close;
        char *word;

        if (!token_among(k, i, loops_in_block) || !token_is(k, i + 1, "(") || !token_is(k, i + 2, "&") || !b->shared ||
            !token_among(k, name, b->shared))
            continue;
        close = k->at[i + 1].partner;
        for (uint32_t n = i + 1; n < close && close != NO_TOKEN; n++)
            if (token_is(k, n, "->")) close = NO_TOKEN;
        if (close == NO_TOKEN || token_is(k, i - 1, "::") || body_local(b, name) != NO_LOCAL) continue;
        word = must_print("__kolo::in_block::%.*s", (int)(k->at[i].end - k->at[i].start), k->text + k->at[i].start);
        source_replace(w->s, i, word);
        free(word);
    }
}

/* Without barriers a handle of the block has no use. */
static void mark_used(struct loops *w, struct leaf handle)
{
    struct text text = {0};

    text_put(&text, " (void)");
    loops_name(w, find_outside(w->b->k, handle.from, handle.to, " = ") - 1, &text);
    text_put(&text, ";");
    source_after(w->s, handle.to - 1, text.at);
    text_drop(&text);
}

/* A launch takes the addresses of parameters, after which compilers expect any write to memory to change them: copies do not. */
static void copy_parameters(struct loops *w)
{
    const struct body *b = w->b;
    struct text first = {0}, second = {0};

    for (size_t l = 0; l < b->local_count; l++) {
        const struct local *v = &b->locals[l];

        if (!v->parameter || find_outside(b->k, v->declarator.from, v->declarator.to, " ... ") != NO_TOKEN) continue;
        text_put(&first, " auto __kolo_copy_of_");
        loops_name(w, v->name, &first);
        text_put(&first, " = ");
        loops_name(w, v->name, &first);
        text_put(&first, ";");
        text_put(&second, " __attribute__((unused)) auto ");
        loops_name(w, v->name, &second);
        text_put(&second, " = __kolo_copy_of_");
        loops_name(w, v->name, &second);
        text_put(&second, ";");
    }
    if (first.at) {
        source_after(w->s, b->open, first.at);
        source_after(w->s, b->open, " {");
        source_after(w->s, b->open, second.at);
        source_before(w->s, b->close, " }");
    }
    text_drop(&first);
    text_drop(&second);
}

/* Elements of an array would be parts of the parameter, which all threads share here. */
static void check_pointers(struct loops *w)
{
    const struct body *b = w->b;
    struct text text = {0};

    for (size_t i = 0; i < b->pointer_count; i++) {
        text_put(&text, " static_assert(__kolo::points<decltype(");
        for (uint32_t n = b->pointers[i].from; n < b->pointers[i].to; n++) loops_name(w, n, &text);
        text_put(&text, ")>, \"a parameter that threads change\");");
    }
    if (text.at) source_after(w->s, b->open, text.at);
    text_drop(&text);
}

/* Inside of a segment, or around it: the braces nest. */
static void enclose_bare(struct loops *w, struct piece bare, bool inside)
{
    size_t segment = body_segment(w->b, bare.from);
    bool within = segment != NO_GROUP &&
                  (w->b->segments[segment].from < bare.from || bare.to < w->b->segments[segment].to) &&
                  bare.to <= w->b->segments[segment].to;

    if (within == inside) source_enclose(w->s, bare.from, "{ ", bare.to - 1, " }");
}

static void translate_frame(struct loops *w)
{
    const struct body *b = w->b;
    struct around *around = must_have((b->region_count + 1) * sizeof *around);
    struct text *counters = must_have((b->stride_count + 1) * sizeof *counters);
    struct around *segments = must_have((b->segment_count + 1) * sizeof *segments);
    char **exchanges;

    if (b->segment_count) loops_translate_lanes(w);
    loops_translate_exits(w);
    for (size_t g = 0; g < b->segment_count; g++) segments[g] = loops_segment(w, g);
    exchanges = loops_exchanges(w);
    for (size_t i = 0; i < b->leaf_count; i++) {
        if (b->leaves[i].kind == LEAF_BARRIER) source_drop_range(w->s, b->leaves[i].from, b->leaves[i].to - 1);
        if (b->leaves[i].kind == LEAF_HANDLE) mark_used(w, b->leaves[i]);
    }
    for (size_t r = 0; r < b->region_count; r++)
        if (!loops_is_idle(b, &b->regions[r]) || b->leaves[b->regions[r].first].mixed) around[r] = loops_region(w, r);
    for (size_t s = 0; s < b->stride_count; s++) loops_counter(w, s, &counters[s]);
    loops_put_rows(w);
    for (size_t r = 0; r < b->region_count; r++) {
        struct piece all = loops_tokens_of(b, &b->regions[r]);

        if (around[r].declarators.at) {
            const struct leaf *l = &b->leaves[b->regions[r].first];

            source_drop_range(w->s, loops_type_of(b, b->regions[r].first).to, l->to - 1);
            source_before(w->s, l->to - 1, around[r].declarators.at);
        }
        if (around[r].before.at)
            source_enclose(w->s, all.from, around[r].before.at, all.to - 1, around[r].after.at);
        else
            source_drop_range(w->s, all.from, all.to);
        text_drop(&around[r].before);
        text_drop(&around[r].after);
        text_drop(&around[r].declarators);
    }
    free(around);
    for (size_t s = 0; s < b->stride_count; s++) { /* the header is another one; behind the region its brace closes */
        uint32_t from = b->strides[s].from, close = b->k->at[from + 1].partner;

        source_drop_range(w->s, from, close + 1);
        source_enclose(w->s, from, counters[s].at, b->leaves[b->strides[s].leaf].to - 1, " }");
        text_drop(&counters[s]);
    }
    free(counters);
    loops_put_exchanges(w, exchanges);
    for (size_t i = 0; i < b->bare_count; i++) enclose_bare(w, b->bare[i], true);
    loops_put_segments(w, segments);
    for (size_t i = 0; i < b->bare_count; i++) enclose_bare(w, b->bare[i], false);
    if (b->choice != NO_LOCAL) loops_choice(w);
    source_after(w->s, b->open,
                 " __koloWholeBlock(); __attribute__((unused)) const ::dim3 blockDim = ::blockDim, gridDim = ::gridDim;"
                 " __attribute__((unused)) const ::uint3 blockIdx = ::blockIdx;"
                 " __attribute__((unused)) const unsigned __kolo_threads = blockDim.x * blockDim.y * blockDim.z;");
    if (w->gone) source_after(w->s, b->open, " __kolo::gone_threads __kolo_gone(__kolo_threads);");
    check_pointers(w);
    copy_parameters(w);
}

static bool notes_gone(const struct body *b)
{
    for (size_t r = 0; r < b->region_count; r++)
        if (b->regions[r].returns && (r + 1 < b->region_count || b->leaves[b->regions[r].last].sequence)) return true;
    return false;
}

static void report(struct translation *t, const struct body *b, uint32_t name, bool loops)
{
    const struct tokens *k = b->k;
    const char *why;
    char *place;

    if (!t->options->report || (!loops && !b->barriers && b->why && !strcmp(b->why, "no barrier"))) return;
    place = source_named_place(&t->source, name);
    why = t->refusals ? refusal_of(t->refusals, place) : NULL;
    free(place);
    place = source_place(&t->source, loops || why ? name : b->wrong);
    fprintf(t->options->report, "%s: note: kernel %.*s: ", place, (int)(k->at[name].end - k->at[name].start),
            k->text + k->at[name].start);
    if (loops)
        fprintf(t->options->report, "loops over threads between barriers\n");
    else if (why)
        fprintf(t->options->report, "a fibre for each thread: %s\n", why);
    else
        fprintf(t->options->report, "a fibre for each thread: %s (\"%.*s\")\n", b->why,
                (int)(k->at[b->wrong].end - k->at[b->wrong].start), k->text + k->at[b->wrong].start);
    free(place);
}

/* The kernel was expanded in vain: it is to stay as it is. */
static void note_refusal(struct translation *t, const struct body *b, uint32_t name)
{
    char *place = source_named_place(&t->source, name),
         *why = must_print("%s (\"%.*s\")", b->why, (int)(b->k->at[b->wrong].end - b->k->at[b->wrong].start),
                           b->k->text + b->k->at[b->wrong].start);

    refuse_kernel(t->refusals, place, why);
    free(place);
    free(why);
}

/* Read the kernel, with more of it as statements like others. */
static bool try_loops(struct translation *t, struct body *b, uint32_t header, uint32_t open, struct body how)
{
    body_drop(b);
    *b = how;
    b->t = t;
    b->k = &t->source.tokens;
    b->functions = t->functions;
    b->open = t->kernel_body;
    return body_read(b, header, open) && body_classify(b);
}

void translate_barriers(struct translation *t)
{
    struct body b = {.k = &t->source.tokens, .open = t->kernel_body};
    struct loops w = {.b = &b, .s = &t->source, .segment = NO_GROUP};
    uint32_t header, from = skip_template_headers(b.k, t->statement, b.open, &header),
                     open = parameters_of(b.k, from, b.open);
    bool loops;

    if (t->options->fibres || open == NO_TOKEN || t->source.failed) return;
    if (!t->functions) t->functions = functions_find(t);
    loops = try_loops(t, &b, header, open, (struct body){.keeps_notes = false});
    if (!loops && b.choice != NO_LOCAL) loops = try_loops(t, &b, header, open, (struct body){.keeps_notes = true});
    if (!loops && b.stride_count)
        loops = try_loops(t, &b, header, open, (struct body){.keeps_notes = true, .keeps_strides = true});
    report(t, &b, open - 1, loops);
    if (!loops && b.choice != NO_LOCAL && t->refusals) note_refusal(t, &b, open - 1);
    if (loops) {
        w.gone = notes_gone(&b);
        translate_atomics(&w);
        translate_frame(&w);
        t->options->loops++;
    }
    body_drop(&b);
}
