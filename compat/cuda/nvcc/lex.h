/* SPDX-License-Identifier: Apache-2.0 */
/**
 * lex.h - preprocessed C++ as tokens, with brackets paired.
 *
 * The text between tokens (spaces, line markers, pragmas, comments that -C kept) belongs to none of them. `<` and `>` are
 * always tokens of one character, so that three in a row are seen as they are; compare offsets to see whether they touch.
 */
#ifndef KL_NVCC_LEX_H
#define KL_NVCC_LEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_CHARACTER, TOKEN_SIGN };

/** No token: the partner of a bracket that has none, the end of a search without result. */
#define NO_TOKEN UINT32_MAX

struct token {
    uint32_t start, end; /* bytes in the text */
    uint32_t partner;    /* of a bracket ( ) [ ] { }, else NO_TOKEN */
    uint32_t around;     /* the bracket around it that is open; NO_TOKEN: none */
    uint8_t kind;
};

struct tokens {
    const char *text;
    size_t bytes;
    struct token *at;
    uint32_t count;
};

/** Any text has tokens: characters outside of C++ become signs of one character. Up to 2 GiB. Drop them with tokens_drop. */
struct tokens tokens_of(const char *text, size_t bytes);
void tokens_drop(struct tokens *t);

/** Is token `i` this word or sign? False as well past the end. */
bool token_is(const struct tokens *t, uint32_t i, const char *word);
bool token_is_name(const struct tokens *t, uint32_t i);

/** Is token `i` one of `words`, which are separated and enclosed by single spaces? */
bool token_among(const struct tokens *t, uint32_t i, const char *words);

/** Have two tokens the same text? */
bool token_same(const struct tokens *t, uint32_t a, uint32_t b);

/** Do tokens i and i + 1 touch? */
bool token_touches(const struct tokens *t, uint32_t i);

/** The `>` that closes the `<` at `i`, with brackets and further angles between them in pairs; NO_TOKEN: it is a comparison or a shift. */
uint32_t angle_end(const struct tokens *t, uint32_t i);

/** The `<` that is closed by the `>` at `i`; NO_TOKEN: it is a comparison. */
uint32_t angle_begin(const struct tokens *t, uint32_t i);

#endif
