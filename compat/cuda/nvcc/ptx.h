/* SPDX-License-Identifier: Apache-2.0 */
/**
 * ptx.h - the text of an asm statement, PTX, to C++.
 *
 *     ptx_read.c     text to one instruction: its words, operands and guard
 *     ptx_names.c    registers, variables of the statement and special registers, as expressions
 *     ptx_rows.c     instructions that compute: a table
 *     ptx_memory.c   loads, stores, atomics, copies, moves, conversions
 *     ptx_multimem.c instructions on multicast objects
 *     ptx_warp.c     shuffles, votes, barriers
 *     ptx_text.c     the statement: scopes, declarations, labels, guards
 *     ptx.c          the tokens of the asm statement
 *
 * Functions that translate return false for an instruction that they do not know; the caller drops the text that they wrote.
 */
#ifndef KL_NVCC_PTX_H
#define KL_NVCC_PTX_H

#include "compat/cuda/nvcc/text.h"

#include <stdbool.h>
#include <stdint.h>

enum { PTX_WORDS = 16, PTX_OPERANDS = 10, PTX_ELEMENTS = 8 };

/** `%1`, `p|q`, `!p`, `{a, b}` or `[a+8]`. */
struct ptx_operand {
    char *element[PTX_ELEMENTS]; /* one if it is no vector */
    char *second;                /* q in p|q, else NULL */
    long offset;
    uint8_t count;
    bool vector, address, negated;
};

/** `@p red.global.add.u64 [%0+8], %1` in parts. */
struct ptx_instruction {
    char *copy;
    const char *word[PTX_WORDS]; /* separated by dots */
    unsigned words;
    struct ptx_operand operand[PTX_OPERANDS];
    unsigned operands;
    char *guard; /* the predicate, NULL: none */
    bool guard_negated;
};

struct ptx_register {
    char *name;
    const char *type; /* in C++ */
    unsigned number, scope;
};

/** A statement that is being translated. */
struct ptx_block {
    struct text out;
    unsigned variables; /* %0, %1, ... are __kolo_v0, __kolo_v1, ... */
    unsigned id;        /* makes its labels differ from other statements' labels */
    struct ptx_register *registers;
    size_t register_count;
    unsigned register_number, scope;
    char **labels;
    size_t label_count;
};

/** Translate `text`, with variables from %0; true if each instruction has a translation. One that has none becomes a call of a function
 * that the compiler reports with the instruction's text, if the call is in code that it needs. */
bool ptx_translate(const char *text, unsigned variables, unsigned id, struct text *out);

/** Read one instruction, without its semicolon. False: it is none. Drop it in both cases. */
bool ptx_read(const char *text, size_t bytes, struct ptx_instruction *i);
void ptx_drop(struct ptx_instruction *i);

/** Is it `word`, and has it `word` behind that? */
bool ptx_is(const struct ptx_instruction *i, const char *word);
bool ptx_has(const struct ptx_instruction *i, const char *word);

/** Are all its words but the first among `words` (separated and enclosed by spaces), types, or of the kinds L1:: and L2::? */
bool ptx_only(const struct ptx_instruction *i, const char *words);

/** The C++ type of the `n`th type among its words, NULL if there are not so many; and bits of a type. */
const char *ptx_type(const struct ptx_instruction *i, unsigned n);
const char *ptx_type_of_word(const char *word);
unsigned ptx_bits(const char *type);

/** The operand as a value of a type, and as something that is assigned; to be freed. NULL: it is neither. */
char *ptx_value(const struct ptx_block *b, const struct ptx_operand *o, const char *type);
char *ptx_word_value(const struct ptx_block *b, const char *word, const char *type);
char *ptx_target(const struct ptx_block *b, const char *word);

/** Add the registers of `.reg` with its rest; false: they have no type here. */
bool ptx_declare(struct ptx_block *b, const char *rest);
void ptx_leave_scope(struct ptx_block *b);

/** The register with this name, NULL: there is none. */
const struct ptx_register *ptx_find(const struct ptx_block *b, const char *name);

/** Write `target = value`, with the bits kept. Frees both; false if one is NULL. */
bool ptx_put(struct ptx_block *b, char *target, char *value);

/** The kinds of instructions: rows of the table, and others. */
bool ptx_compute(struct ptx_block *b, const struct ptx_instruction *i);
bool ptx_compare(struct ptx_block *b, const struct ptx_instruction *i);
bool ptx_memory(struct ptx_block *b, const struct ptx_instruction *i);
bool ptx_multimem(struct ptx_block *b, const struct ptx_instruction *i);
bool ptx_warp(struct ptx_block *b, const struct ptx_instruction *i);

#endif
