/* SPDX-License-Identifier: Apache-2.0 */
/**
 * plain.h - code that a loop over the threads of a block can call: it neither waits for other threads nor asks which one it runs in.
 *
 * It is proved from the tokens: each function that is called is one of CUDA's or of C's that is known, or has its body in this source,
 * which is plain as well. A function that is named otherwise, a method or a pointer to a function is not plain.
 */
#ifndef KL_NVCC_PLAIN_H
#define KL_NVCC_PLAIN_H

#include "compat/cuda/nvcc/translation.h"

/** A function with a body, for devices. */
struct function {
    uint32_t statement, header,
        from; /* its declaration; the `<` of its template header, NO_TOKEN if it has none; behind that */
    uint32_t name, open, body;         /* its name, the parenthesis of its parameters, its brace */
    uint32_t space, class;             /* the brace of the namespace, the name of the class around it; NO_TOKEN: none */
    uint32_t class_open, class_header; /* the brace of the class, the `<` of its template header; NO_TOKEN: none */
    bool kernel;
    size_t same;   /* the next one of this name, NO_NAME if there is none */
    bool implicit; /* an operator, a constructor, a destructor: called without its name */
    bool refers;   /* it has parameters that are references */
    uint8_t state; /* of its check */
    uint8_t waits; /* of the check whether it waits */
    bool polls;    /* it calls functions that let others run */
};

struct functions {
    struct names names;
    size_t *first; /* of each name */
    struct function *at;
    size_t count;
    struct names constants; /* of namespaces: numbers that never change */
    struct names classes;
    bool unclear;     /* some function that is called without its name waits */
    uint8_t functors; /* of the check whether a function that a variable stands for may wait */
};

struct functions *functions_find(const struct translation *t);
void functions_drop(struct functions *f);

/** The first token of [from, to) that is not plain, NO_TOKEN if all are; *why is the reason then. Names in `types` are of types. */
uint32_t find_not_plain(struct functions *f, const struct tokens *k, uint32_t from, uint32_t to, const char *types,
                        const char **why);

/** May the function that is called at `i` change an argument by reference? */
bool call_refers(const struct functions *f, const struct tokens *k, uint32_t i);

/** Does the name call a function that lets other threads run, as atomics do from time to time? */
bool call_polls(const struct functions *f, const struct tokens *k, uint32_t i);

/** The first function of the name at token `i`; the next ones are its `same`. NO_NAME: there is none. */
size_t functions_first(const struct functions *f, const struct tokens *k, uint32_t i);

/** Does a function of this name in the source wait for other threads, or ask which one it runs in? Its number in functions, or NO_NAME. */
size_t call_waits(struct functions *f, const struct tokens *k, uint32_t i);

/** The same for methods, which are called of an object or a class. */
size_t method_waits(struct functions *f, const struct tokens *k, uint32_t i);

/** Are all functions of this name in the source const, and are there some? */
bool methods_are_constant(const struct functions *f, const struct tokens *k, uint32_t i);

/** An operation of the lanes of a warp, with its parenthesis; all but __syncwarp have a result. */
bool is_warp_operation(const struct tokens *k, uint32_t i);

/** A function without effects that gives the same result for the same arguments. */
bool is_pure_function(const struct tokens *k, uint32_t i);

/** A word of a type that is built in. */
bool is_type_word(const struct tokens *k, uint32_t i);

/** Past the statement that begins at `i`. */
uint32_t statement_end(const struct tokens *k, uint32_t i, uint32_t end);

/** Is the token an operator that changes the name before it, `=`, `+=`, `>>=`? */
bool is_assignment(const struct tokens *k, uint32_t i);

/** Past the name at `i` and the members that it is followed by, `p.a.b`. */
uint32_t member_end(const struct tokens *k, uint32_t i);

/** Is the name at `i`, or a member of it, assigned to, counted, is a method called of it, or its address taken? */
bool is_changed(const struct tokens *k, uint32_t i);

#endif
