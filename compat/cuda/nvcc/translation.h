/* SPDX-License-Identifier: Apache-2.0 */
/**
 * translation.h - the translation of a source that is under way (translate.h).
 *
 * One walk over the tokens that knows which braces belong to namespaces, classes and code, and which code is for the device. Each of the
 * files behind this header changes one thing:
 *
 *     launch.c    k<<<grid, block>>>(x)             (push(grid, block) ? (void)0 : k(x))
 *     kernel.c    __global__ void k(int n) { ...    the body begins with: called with a configuration? Then launch me, and return
 *     shared.c    __shared__ float x[32];           one for each OS thread, which runs one block at a time
 *     variable.c  __device__ int n;                 n stays for the host, device code calls a function for the device's own
 *     ptx.c       asm("red.global.add.u64 ...")     the instruction in C++
 *     cast.c      (int)x, int(x), int i = x;        saturates, as on devices
 *     refused.c   tex2D<float>(t, x, y)             an error, with the reason
 *     words.c     __device__, __align__(8), ...     nothing, or GNU's name for it
 */
#ifndef KL_NVCC_TRANSLATION_H
#define KL_NVCC_TRANSLATION_H

#include "compat/cuda/nvcc/names.h"
#include "compat/cuda/nvcc/source.h"

struct translate_options; /* translate.h */

enum scope_kind { SCOPE_NAMESPACE, SCOPE_CLASS, SCOPE_CODE, SCOPE_DATA };

struct scope {
    enum scope_kind kind;
    bool device;   /* its code runs in kernels */
    bool host;     /* and, or only, on the host */
    uint32_t name; /* of a namespace, NO_TOKEN if it has none */
};

/** In the scope at `depth` and those in it the alias is an ordinary name. */
struct shadow {
    size_t alias;
    uint32_t depth;
};

/** A type parameter of a template, in the scope at `depth` and those in it. */
struct type_parameter {
    uint32_t name, depth;
};

struct functions;
struct refusals;

struct translation {
    struct source source;
    struct translate_options *options;
    struct scope *scopes;
    uint32_t depth, scope_room;
    uint32_t statement;              /* where the declaration began that is being walked over */
    bool lambda_device, lambda_host; /* the target of the code in the next brace */
    char *kernel;                    /* the template argument that names the current kernel, NULL: none */
    uint32_t kernel_depth;
    uint32_t kernel_body;        /* its brace */
    unsigned kernel_shared;      /* variables of its own so far */
    struct refusals *refusals;   /* of kernels that were, or are not to be expanded; NULL: none are */
    struct functions *functions; /* of the source, found when a kernel needs them; NULL: not yet */
    struct type_parameter *type_parameters;
    size_t type_parameter_count;
    struct names aliases;  /* names of device code for names here */
    uint32_t *hidden;      /* by so many shadows, each of the aliases */
    struct names declared; /* variables of devices, with their namespaces */
    struct shadow *shadows;
    size_t shadow_count;
};

/** The scope that a brace opens, outside of code, in a declaration that began at t->statement. */
struct scope scope_opened_by(const struct translation *t, uint32_t brace);

/** Is the walk in code, is it for the device, and for nothing else? */
bool in_code(const struct translation *t);
bool in_device_code(const struct translation *t);
bool in_device_code_only(const struct translation *t);

/** Translate the launch with its first `<` at token `i`; returns the token to continue with. */
uint32_t translate_launch(struct translation *t, uint32_t i);

/** Translate the kernel with its declaration at t->statement and its body at the brace `body`. */
void translate_kernel(struct translation *t, uint32_t body);

/** The kernel that ends, with its other changes made: perhaps it becomes loops. */
void translate_barriers(struct translation *t);

/** The word __shared__ at `i`. */
void translate_shared(struct translation *t, uint32_t i);

/** The declaration from t->statement to the semicolon `end`, if it declares variables of the device. */
void translate_variables(struct translation *t, uint32_t end);

/** The word `static` at `i` in device code: of a variable, which each device has its own of. */
void translate_local_static(struct translation *t, uint32_t i);

/** The declaration from t->statement to the semicolon `end` is of a member: none is in a memory of its own. */
void refuse_member_variable(struct translation *t, uint32_t end);

/** From now on device code that says `name` means name__kolo(). */
void add_alias(struct translation *t, const char *name);

/** A name in device code: another one, if it has an alias. */
void translate_name(struct translation *t, uint32_t i);

/** Names that are declared between [from, to), parameters of code that begins at `depth`, hide aliases. */
void hide_parameters(struct translation *t, uint32_t from, uint32_t to, uint32_t depth);
/** The same for the members of the class that the brace opens. */
void hide_members(struct translation *t, uint32_t brace, uint32_t depth);
void forget_shadows(struct translation *t);

/** The asm statement at `i`; returns the token to go on with. */
uint32_t translate_asm(struct translation *t, uint32_t i);

/** The parenthesis at `open`, or the word static_cast at `i`, in device code: perhaps a cast to an integer. */
void translate_cast(struct translation *t, uint32_t open);
void translate_static_cast(struct translation *t, uint32_t i);

/** A name in device code: perhaps a cast int(x), perhaps of a declaration int i = x. True: it was one. */
bool translate_type(struct translation *t, uint32_t i);

/** The template headers in [from, to) name types, until the scope at `depth` ends. */
void note_type_parameters(struct translation *t, uint32_t from, uint32_t to, uint32_t depth);
void forget_type_parameters(struct translation *t);

/** Report an error if the name at `i` is a feature of GPUs only. */
void refuse_name(struct translation *t, uint32_t i);

/** A word of CUDA's, or of the host's that kernels need otherwise. */
void translate_word(struct translation *t, uint32_t i);

/* ---- declarations ---- */

/** Tokens [from, to). */
struct piece {
    uint32_t from, to;
};

/** The `>` of the template arguments that begin with the `<` at `i`, before `end`; NO_TOKEN: these are comparisons or shifts. */
uint32_t arguments_end(const struct tokens *t, uint32_t i, uint32_t end);

/** Is the name at `i` declared by words of a type in front of it, as `int i`, `float *p`? */
bool is_declared_by_type(const struct tokens *t, uint32_t i);

/** The next of the pieces of [*at, end) that commas separate; moves *at behind it. False: there is none. */
bool next_piece(const struct tokens *t, uint32_t *at, uint32_t end, struct piece *piece);

/** The first token in [from, to), outside of brackets, that is one of `words`; NO_TOKEN if none is. */
uint32_t find_outside(const struct tokens *t, uint32_t from, uint32_t to, const char *words);

/** The first token of [from, to) behind template headers; *header is the `<` of the last one, NO_TOKEN if there is none. */
uint32_t skip_template_headers(const struct tokens *t, uint32_t from, uint32_t to, uint32_t *header);

/** The name that a declarator gives, `x` in `x[4]`, `(*x)(int)` or `x = 5`; NO_TOKEN: it has none. */
uint32_t declared_name(const struct tokens *t, struct piece p);

/** The parenthesis that opens the parameters of the function declared in [from, to), NO_TOKEN if it is none. */
uint32_t parameters_of(const struct tokens *t, uint32_t from, uint32_t to);

#endif
