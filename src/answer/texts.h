/* SPDX-License-Identifier: Apache-2.0 */
/** texts.h - logs and tables to read: files, or texts in memory. */
#ifndef KL_ANSWER_TEXTS_H
#define KL_ANSWER_TEXTS_H

#include <stddef.h>

struct kl_named_text {
    const char *name; /* of the file ("-": standard input), or of the text, for messages */
    const char *text; /* NULL: read the file */
    size_t bytes;
};

#endif
