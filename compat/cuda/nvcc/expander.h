/* SPDX-License-Identifier: Apache-2.0 */
/**
 * expander.h - the expansion of a kernel that is under way (expand.h). For the files of that name only.
 *
 *     expand.c            kernels                        expand_function.c   functions and methods, where they are called
 *     expand_statement.c  statements                     expand_return.c     functions that return from within
 *     expand_warp.c       operations of warps, tiles     expand_words.c      names and types
 *     expand_class.c      objects, and calls of methods  expand_member.c     names of members
 *
 * Functions that return bool return false with the reason kept, and the kernel stays as it is.
 */
#ifndef KL_NVCC_EXPANDER_H
#define KL_NVCC_EXPANDER_H

#include "compat/cuda/nvcc/body.h"
#include "compat/cuda/nvcc/text.h"

/** A name of a function that stands for something else where it is expanded. */
struct rename {
    uint32_t name;
    char *by;
};

/** A function that is being written; the kernel has no caller. */
struct frame {
    const struct function *f;
    struct frame *caller;
    struct rename *renames;
    size_t count;
    unsigned number, depth;
    bool returns;    /* its result goes into __kolo_r<number> */
    bool notes;      /* it notes in __kolo_d<number> that it has returned */
    unsigned inside; /* of so many loops and switches of the function */
    char *object;    /* of a method; NULL: none */
    char *class;     /* its type */
};

struct expander;

/** expand_statement.c, for the files that it uses itself. */
struct expand_statements {
    bool (*expression)(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, bool flat, struct text *before,
                       struct text *out);
    bool (*sequence)(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out);
    bool (*statement)(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out);
    bool (*inner)(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out);
    bool (*if_head)(struct expander *x, struct frame *fr, uint32_t i, struct text *out, uint32_t *then);
};

struct expander {
    const struct expand_statements *statements;
    struct source source;
    const struct tokens *k;
    struct functions *functions;
    char *tiles; /* names of tiles of a warp */
    unsigned numbers;
    uint32_t words; /* written for this kernel: it must not grow without end */
    bool methods;   /* members are used outside of their classes */
    const char *why;
    uint32_t wrong;
};

bool expand_refuse(struct expander *x, uint32_t token, const char *why);

/* ---- words ---- */

void expand_word(const struct expander *x, uint32_t i, struct text *out);

/** The text behind token `i`: the kernel's own lines stay, functions come on one line. */
void expand_gap(const struct expander *x, const struct frame *fr, uint32_t i, bool flat, struct text *out);

/** The line ends within tokens [from, to), which are written elsewhere. */
void expand_lines(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to, struct text *out);

/** The text that the name stands for; NULL: itself. */
const char *expand_renamed(const struct expander *x, const struct frame *fr, uint32_t i);
void expand_rename(struct frame *fr, uint32_t name, char *by);

bool expand_is_tile(const struct expander *x, uint32_t i);
void expand_add_tile(struct expander *x, uint32_t i);

/** May the function at `at` declare the word of token `i` anywhere, also as a parameter? */
bool expand_may_declare(const struct tokens *k, const struct function *at, uint32_t i);

/** Names of the function that are neither its own nor a member's must mean the same where it is expanded. */
bool expand_check_names(struct expander *x, const struct frame *fr);

/** Past the name at `i` and its template arguments. */
uint32_t expand_behind_name(const struct tokens *k, uint32_t i);

void expand_type_words(const struct expander *x, const struct frame *fr, uint32_t from, uint32_t to, struct text *out);

/** The tokens of the type of a variable, and of the signs of its declarator. False: it is not found. */
bool expand_find_type(const struct expander *x, const struct frame *fr, uint32_t name, struct piece *type,
                      struct piece *signs);

/** The type of an argument: of a variable, of an object that is made there, or of a number with a point. */
bool expand_type_of_argument(const struct expander *x, const struct frame *fr, struct piece p, struct text *out);

/* ---- calls ---- */

bool expand_is_call(struct expander *x, uint32_t i);
bool expand_has_calls(struct expander *x, uint32_t from, uint32_t to);
bool expand_is_tile_call(const struct expander *x, uint32_t i);
bool expand_is_tile_reduction(const struct expander *x, uint32_t i);

/** Each writes statements to `before`, and an expression to `out`. */
bool expand_arguments(struct expander *x, struct frame *fr, uint32_t open, struct text *before, struct text *out);
bool expand_operation(struct expander *x, struct frame *fr, const char *name, const char *mask, uint32_t open,
                      struct text *before, struct text *out);
bool expand_tile_call(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out);
bool expand_tile_reduction(struct expander *x, struct frame *fr, uint32_t i, struct text *before, struct text *out);
bool expand_function_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t open, struct text *before,
                          struct text *out);

/** The parameters or arguments in a parenthesis. `needed`: only parameters without a default. */
unsigned expand_pieces(const struct tokens *k, uint32_t open, bool needed);

/** The word static of a variable that is not the block's. */
bool expand_is_lasting(const struct tokens *k, uint32_t i);

/** The parameters of the template of `header` stand for the arguments `given`, or else for the types of the arguments in the parenthesis
 * `open`, if any, or for their defaults. False: they are not clear. */
bool expand_bind(struct expander *x, struct frame *fr, uint32_t header, struct piece given, uint32_t open);

/** Write the call at `i` of the frame's function, whose object and class are known. The frame is dropped. */
bool expand_call_of(struct expander *x, struct frame *inner, uint32_t i, uint32_t open, struct text *before,
                    struct text *out);

/* ---- methods ---- */

/** The method that waits, if an object or a class begins at `i` of which one is called; NO_TOKEN: none. */
uint32_t expand_method(const struct expander *x, uint32_t i);

/** Write the call that begins at `i`; *close becomes its last token. */
bool expand_method_call(struct expander *x, struct frame *fr, uint32_t i, uint32_t *close, struct text *before,
                        struct text *out);

/** Names of members mean the members of the frame's object. */
bool expand_members(struct expander *x, struct frame *fr);

/** A method has the object of the method that calls it. False: they are of two classes. */
bool expand_inherit(const struct expander *x, const struct frame *fr, struct frame *inner);

/* ---- statements ---- */

extern const struct expand_statements expand_statements;

static inline bool expand_expression(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, bool flat,
                                     struct text *before, struct text *out)
{
    return x->statements->expression(x, fr, from, to, flat, before, out);
}

static inline bool expand_sequence(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    return x->statements->sequence(x, fr, from, to, out);
}

/** A statement that is no return, with the statements inside of it. */
static inline bool expand_statement(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, struct text *out)
{
    return x->statements->statement(x, fr, i, end, out);
}

/** A statement inside of braces, also where the source has none. */
static inline bool expand_inner(struct expander *x, struct frame *fr, uint32_t from, uint32_t to, struct text *out)
{
    return x->statements->inner(x, fr, from, to, out);
}

/** The head of an if, up to its parenthesis; *then becomes the first token behind it. */
static inline bool expand_if_head(struct expander *x, struct frame *fr, uint32_t i, struct text *out, uint32_t *then)
{
    return x->statements->if_head(x, fr, i, out, then);
}

/* ---- returns ---- */

/** Does a function return elsewhere than at its end? Then the frame notes it if it must. */
void expand_find_returns(const struct expander *x, struct frame *fr);
bool expand_returns(const struct tokens *k, uint32_t from, uint32_t to);

/** The statement [i, end), which returns or may return, and those behind it up to `to`. */
bool expand_returning(struct expander *x, struct frame *fr, uint32_t i, uint32_t end, uint32_t to, struct text *out);

#endif
