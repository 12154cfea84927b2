/* SPDX-License-Identifier: Apache-2.0 */
/** html_parts.h - the parts that pages of pictures have in common: head, end, texts, and the button that changes the theme. */
#ifndef KOLO_TOOL_PICTURE_HTML_PARTS_H
#define KOLO_TOOL_PICTURE_HTML_PARTS_H

#include <stdio.h>

/** Its script is part of every page. */
#define KL_HTML_THEME_BUTTON "<button type=\"button\" id=\"theme\">theme: automatic</button>"

/** `text`, escaped, between two pieces of HTML. */
void kl_html_text(const char *before, const char *text, const char *after, FILE *to);

/** From the beginning up to the body. The title is untrusted; `css` follows the style sheets of all pages. */
void kl_html_head(const char *title, const char *command, const char *css, FILE *to);

/** From the end of <main> on, with the page's script. */
void kl_html_end(const char *script, FILE *to);

#endif
