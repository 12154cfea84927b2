/* SPDX-License-Identifier: Apache-2.0 */
/**
 * text.h - texts in SVG and HTML, whatever stands in them: names come from files, and a picture of a file is opened
 * in a browser.
 */
#ifndef KOLO_TOOL_PICTURE_TEXT_H
#define KOLO_TOOL_PICTURE_TEXT_H

#include "tools/kolo/picture/scene.h"

#include <stdio.h>

/** Element content, or the value of an attribute in double quotes. What is no text becomes '?'. */
void kl_text_escaped(const char *text, FILE *to);

/** Replace what is no UTF-8, or a control character other than a line's end, by '?'. Returns `text`. */
char *kl_text_clean(char *text);

/** A text element of at most `max` characters, the last one an ellipsis if some are missing. */
void kl_svg_text(float x, float y, const char *class, const char *text, int max, FILE *to);

void kl_svg_rect(const struct kl_rect *r, float radius, const char *class, FILE *to);

#endif
