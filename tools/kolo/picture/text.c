/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/picture/text.h"

#include <limits.h>
#include <string.h>

/* Bytes of the UTF-8 character at `text`; 0 if it is none. Surrogates and overlong forms don't count. */
static int character(const unsigned char *text)
{
    int n = *text < 0x80 ? 1 : *text < 0xc2 ? 0 : *text < 0xe0 ? 2 : *text < 0xf0 ? 3 : *text < 0xf5 ? 4 : 0;

    for (int i = 1; i < n; i++)
        if ((text[i] & 0xc0) != 0x80) return 0;
    if (n == 3 && ((*text == 0xe0 && text[1] < 0xa0) || (*text == 0xed && text[1] > 0x9f))) return 0;
    if (n == 3 && *text == 0xef && text[1] == 0xbf && text[2] > 0xbd) return 0; /* no characters of XML */
    if (n == 4 && ((*text == 0xf0 && text[1] < 0x90) || (*text == 0xf4 && text[1] > 0x8f))) return 0;
    return n == 1 && *text < 0x20 && *text != '\n' ? 0 : n;
}

char *kl_text_clean(char *text)
{
    for (unsigned char *at = (unsigned char *)text; *at;) {
        int n = character(at);

        if (!n) *at = '?';
        at += n ? n : 1;
    }
    return text;
}

static void put_escaped(char c, FILE *to)
{
    switch (c) {
    case '<':
        fputs("&lt;", to);
        break;
    case '>':
        fputs("&gt;", to);
        break;
    case '&':
        fputs("&amp;", to);
        break;
    case '"':
        fputs("&quot;", to);
        break;
    case '\'':
        fputs("&#39;", to);
        break;
    default:
        putc(c, to);
    }
}

/* Write the first character, escaped; returns the rest. */
static const char *put_character(const char *text, FILE *to)
{
    int n = character((const unsigned char *)text);

    if (!n) {
        putc('?', to);
        return text + 1;
    }
    for (; n > 0; n--) put_escaped(*text++, to);
    return text;
}

void kl_text_escaped(const char *text, FILE *to)
{
    while (*text) text = put_character(text, to);
}

static int count_characters(const char *text)
{
    int n = 0;

    for (; *text; n++) {
        int size = character((const unsigned char *)text);

        text += size ? size : 1;
    }
    return n;
}

static void put_cut(const char *text, int max, FILE *to)
{
    bool cut = count_characters(text) > max;

    for (int i = 0; i < max - cut && *text; i++) text = put_character(text, to);
    if (cut) fputs("…", to);
}

void kl_svg_text(float x, float y, const char *class, const char *text, int max, FILE *to)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">", (double)x, (double)y, class);
    put_cut(text, max, to);
    fputs("</text>", to);
}

/* As in DejaVu Sans, the widest of the fonts that are common. */
static float advance(const char *c, bool bold)
{
    float narrow = strchr("ijl|'", *c) ? 0.3f : strchr(" .,:;!()[]ftr/-", *c) ? 0.42f : 0;
    float w = narrow > 0 ? narrow : strchr("mwMW%@", *c) ? 0.98f : 0.64f;

    return bold ? 1.09f * w : w;
}

float kl_text_width(const char *text, float size, bool bold)
{
    float w = 0;

    while (*text) {
        int n = character((const unsigned char *)text);

        w += advance(text, bold);
        text += n ? n : 1;
    }
    return w * size;
}

/* How many characters of a text have room. */
static int characters_within(const char *text, float size, float width)
{
    float w = 0;
    int n = 0;

    while (*text) {
        int bytes = character((const unsigned char *)text);

        w += advance(text, true) * size;
        if (w > width) break;
        n++;
        text += bytes ? bytes : 1;
    }
    return n;
}

void kl_svg_text_fit(float x, float y, const char *class, const char *text, float size, float width, FILE *to)
{
    float natural = kl_text_width(text, size, true), fitting = size;

    if (natural > width) fitting = size * width / natural;
    if (fitting < KL_LEAST_LETTERS) fitting = KL_LEAST_LETTERS;
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\"", (double)x, (double)y, class);
    if (fitting < size) fprintf(to, " style=\"font-size:%.1fpx\"", (double)fitting);
    fputc('>', to);
    put_cut(text, natural * fitting / size > width + 0.5f ? characters_within(text, fitting, width) : INT_MAX, to);
    fputs("</text>", to);
}

void kl_svg_rect(const struct kl_rect *r, float radius, const char *class, FILE *to)
{
    fprintf(to, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"%g\" class=\"%s\"/>", (double)r->x,
            (double)r->y, (double)r->w, (double)r->h, (double)radius, class);
}
