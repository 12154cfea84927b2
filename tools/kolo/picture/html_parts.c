/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/html_parts.h"

#include "tools/kolo/picture/files.h"
#include "tools/kolo/picture/text.h"

void kl_html_text(const char *before, const char *text, const char *after, FILE *to)
{
    fputs(before, to);
    kl_text_escaped(text, to);
    fputs(after, to);
}

void kl_html_head(const char *title, const char *command, const char *css, FILE *to)
{
    kl_html_text("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                 "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                 "<meta name=\"color-scheme\" content=\"light dark\">\n<title>",
                 title, "", to);
    fprintf(to, " - %s</title>\n<style>\n%s%s%s</style>\n</head>\n", command, kl_picture_drawing_css,
            kl_picture_page_css, css);
}

void kl_html_end(const char *script, FILE *to)
{
    fprintf(to, "</main>\n<script>\n%s</script>\n<script>\n%s</script>\n</body>\n</html>\n", kl_picture_theme_js,
            script);
}
