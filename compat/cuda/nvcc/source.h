/* SPDX-License-Identifier: Apache-2.0 */
/**
 * source.h - a preprocessed translation unit, its changes, and the result.
 *
 * Changes are notes on tokens; the text between tokens stays as it is, so that every line keeps its number. A range of tokens can be
 * moved before an earlier one; its line ends stay where they were.
 */
#ifndef KL_NVCC_SOURCE_H
#define KL_NVCC_SOURCE_H

#include "compat/cuda/nvcc/lex.h"
#include "compat/cuda/nvcc/text.h"

#include <stdio.h>

/** The output for a token: before, the range that was moved here, between, the token or its replacement, after. */
struct edit {
    char *before, *between, *instead, *after;
    uint32_t moved_from, moved_to; /* [from, to), empty if equal */
    bool dropped;                  /* the token itself is not written */
    bool moved;                    /* it is written elsewhere */
};

/** The text from `from` on begins with this line of a file, up to the next marker. */
struct marker {
    size_t from;
    unsigned long line;
    const char *file;
    size_t file_bytes;
};

struct source {
    struct tokens tokens;
    struct edit *edits;
    struct marker *markers; /* in their order; the first is the text's own beginning */
    size_t marker_count;
    FILE *errors; /* errors are written there */
    bool failed;  /* there was an error */
};

void source_open(struct source *s, const char *text, size_t bytes, FILE *errors);
void source_close(struct source *s);

/** The text changed. */
void source_render(const struct source *s, struct text *out);

/** Tokens [from, to), changed, on one line. */
void source_render_range(const struct source *s, uint32_t from, uint32_t to, struct text *out);

/** Write nothing for a token, nor its notes. */
void source_drop(struct source *s, uint32_t token);
void source_drop_range(struct source *s, uint32_t from, uint32_t to);
void source_replace(struct source *s, uint32_t token, const char *by);

/** Add text before or after a token: in both cases behind the text that was added earlier. */
void source_before(struct source *s, uint32_t token, const char *what);
void source_after(struct source *s, uint32_t token, const char *what);

/** Are there tokens that were moved to `token`? */
bool source_has_moved(const struct source *s, uint32_t token);

/** Write tokens [from, to) before `token`, with `before` before them and `behind` behind them. None were moved there. */
void source_move(struct source *s, uint32_t token, const char *before, uint32_t from, uint32_t to, const char *behind);

/** Put text before `first` and behind `last`, outside of all that was added there. */
void source_enclose(struct source *s, uint32_t first, const char *before, uint32_t last, const char *behind);

/** The place of a token as `file:line`, and as the directive that says so; to be freed. */
char *source_place(const struct source *s, uint32_t token);
char *source_marker(const struct source *s, uint32_t token);

/** The place and the text of a token, to be freed. */
char *source_named_place(const struct source *s, uint32_t token);

/** An error at the place of a token, in the form of a compiler's. */
void source_error(struct source *s, uint32_t token, const char *what, ...) __attribute__((format(printf, 3, 4)));

/** The text of a token, to be freed. */
char *source_word(const struct source *s, uint32_t token);

#endif
