/* SPDX-License-Identifier: Apache-2.0 */
/**
 * loops.h - a kernel that was proved to be loops (body.h), written as loops. For the files of that name only.
 *
 *     loops.c             the frame                      loops_variables.c   variables, in regions and between them
 *     loops_region.c      loops over threads or lanes    loops_threads.c     which of the threads, as bounds
 *     loops_warp.c        loops over warps
 *
 * All texts are made before any is put into the source, where it would be part of other texts.
 */
#ifndef KL_NVCC_LOOPS_H
#define KL_NVCC_LOOPS_H

#include "compat/cuda/nvcc/body.h"

/** Text before a region and behind it; and in place of the declarators of its first statement, if some of them belong to the frame. */
struct around {
    struct text before, after, declarators;
};

struct loops {
    struct body *b;
    struct source *s;
    bool gone;      /* threads that return early are noted */
    size_t segment; /* that is being written, NO_GROUP: none */
};

/** Atomics on shared memory, which become ordinary statements. */
extern const char loops_in_block[];

/* ---- variables ---- */

void loops_range(struct loops *w, struct piece p, struct text *out);
void loops_name(const struct loops *w, uint32_t i, struct text *out);

bool loops_is_used(const struct body *b, size_t l, struct piece p);
bool loops_is_changed_in(const struct body *b, size_t l, struct piece p);

/** Does the region declare the variable? */
bool loops_is_home(const struct region *r, const struct local *v);

/** Is the variable needed within one segment only? Then its array has room for one warp. */
bool loops_is_narrow(const struct body *b, const struct local *v);

/** An array without initial values lies among those that are kept, from the beginning. */
bool loops_lies_apart(const struct loops *w, const struct local *v);

/** The array of a variable; its element at the beginning of a region, and at the end. */
void loops_array(struct loops *w, const struct local *v, struct text *out);
void loops_kept(struct loops *w, const struct local *v, struct text *out);
void loops_put_back(const struct loops *w, const struct local *v, struct text *out);

/** Is the variable a sum of the thread's x and numbers that are the same for all? Then a region adds it up once for its first thread
 * (loops_rows, before its loop), and the counter of the loop to that; also in the source itself (loops_put_rows, when all texts are made). */
bool loops_is_row(const struct body *b, const struct local *v);
void loops_rows(struct loops *w, struct piece all, const struct region *r, struct text *out);
void loops_put_rows(struct loops *w);

/** The declaration of a computed variable; `in_row`: in the loop behind loops_rows. */
void loops_computed(struct loops *w, size_t l, bool in_row, struct text *out);

/** Which computed variables the tokens need that were declared elsewhere; to be freed. */
bool *loops_needed(const struct body *b, struct piece all, const struct region *r, size_t segment);

/** The declarators of a leaf that belong to the frame, or the others, as a list; their type. */
void loops_declarators(struct loops *w, size_t leaf, bool frame, struct text *out);
struct piece loops_type_of(const struct body *b, size_t leaf);

/* ---- regions ---- */

struct piece loops_tokens_of(const struct body *b, const struct region *r);

/** Does the region have nothing but declarations of computed variables? */
bool loops_is_idle(const struct body *b, const struct region *r);

/** The stride whose body the region is, NULL: none. */
const struct stride *loops_stride_of(const struct body *b, const struct region *r);

/** Before the word for of a stride: the counter of thread 0. */
void loops_counter(struct loops *w, size_t number, struct text *out);

/** The variables that the tokens need, of the region if they are one. */
void loops_variables(struct loops *w, struct piece all, const struct region *r, struct text *out);
struct around loops_region(struct loops *w, size_t number);

/** A region that is `if (tid < n) ...` alone: the range of these threads. */
bool loops_narrow(struct loops *w, const struct region *r, struct text *out);

/* ---- warps ---- */

/** The texts of exchanges, for each leaf; putting them into the source frees them. */
char **loops_exchanges(struct loops *w);
void loops_put_exchanges(struct loops *w, char **text);

struct around loops_segment(struct loops *w, size_t s);
void loops_put_segments(struct loops *w, struct around *around);

/** The number of the lane, so that compilers see neighbours. */
void loops_translate_lanes(struct loops *w);

/** In a kernel that is one segment a warp that returns goes to its end. */
void loops_translate_exits(struct loops *w);

/** Blocks of whole warps only; others have the function with fibres. */
void loops_choice(struct loops *w);

#endif
