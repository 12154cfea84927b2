/* SPDX-License-Identifier: Apache-2.0 */
/**
 * escaped.h - a stream that shows control characters instead of passing them on: texts of inputs must not steer the terminal.
 *
 * Bytes below blank, but newline and tab, and 0x7f become "\x1b"; so do U+0080 to U+009F. Everything else passes.
 *
 * Memory:  the stream lives as long as the process.
 * Errors:  of the stream below, by ferror and fflush.
 */
#ifndef KOLO_TOOL_ESCAPED_H
#define KOLO_TOOL_ESCAPED_H

#include <stdio.h>

/** A stream over `below`, which is used through it from now on; `below` itself when memory is short, or 16 streams were made. */
FILE *kl_escaped(FILE *below);

#endif
