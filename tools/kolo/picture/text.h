/* SPDX-License-Identifier: Apache-2.0 */
/**
 * text.h - untrusted texts in SVG and HTML: names come from files, and a picture of a file is opened in a browser.
 */
#ifndef KOLO_TOOL_PICTURE_TEXT_H
#define KOLO_TOOL_PICTURE_TEXT_H

#include "tools/kolo/picture/scene.h"

#include <stdio.h>

#define KL_LEAST_LETTERS 8.5f

/** Element content, or the value of an attribute in double quotes. Invalid characters become '?'. */
void kl_text_escaped(const char *text, FILE *to);

/** Replace invalid UTF-8, and control characters other than a line's end, by '?'. Returns `text`. */
char *kl_text_clean(char *text);

/** A text element of at most `max` characters, the last one an ellipsis if some are missing. */
void kl_svg_text(float x, float y, const char *class, const char *text, int max, FILE *to);

/** About how wide a text is in pixels, with letters of `size`: rather too wide than too narrow. */
float kl_text_width(const char *text, float size, bool bold);

/**
 * A text element no wider than `width`: in smaller letters than `size` if needed, but not below KL_LEAST_LETTERS; a text that
 * is still too long ends in an ellipsis. `class` must not set another size.
 */
void kl_svg_text_fit(float x, float y, const char *class, const char *text, float size, float width, FILE *to);

void kl_svg_rect(const struct kl_rect *r, float radius, const char *class, FILE *to);

#endif
