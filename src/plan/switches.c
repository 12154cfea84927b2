/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/switches.h"

#include "base/error.h"
#include "plan/switches_make.h"

#include <stdlib.h>
#include <string.h>

static bool has_line(const char *text, const char *word)
{
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        const char *line = at;

        while (line > text && line[-1] != '\n') line--;
        if (!memchr(line, '#', (size_t)(at - line))) return true;
    }
    return false;
}

static ncclResult_t read_text(struct kl_switches_made *m, char *text, size_t bytes)
{
    const char *first = text + strspn(text, " \t\r\n");

    if (*first == '{' || *first == '[') return kl_switches_read_json(m, text, bytes);
    if (has_line(text, "/leaf") || has_line(text, "/accelerator") || has_line(text, "/block"))
        return kl_switches_read_labels(m, text);
    if (has_line(text, "SwitchName=") || has_line(text, "BlockName=") || !has_line(text, ": "))
        return kl_switches_read_conf(m, text);
    return kl_switches_read_yaml(m, text);
}

ncclResult_t kl_switches_read(const char *file, const char *text, size_t bytes, struct kl_switches *s)
{
    char *copy = malloc(bytes + 1);

    *s = (struct kl_switches){.kind = kl_input_of(text, bytes).kind, .made = calloc(1, sizeof *s->made)};
    ncclResult_t rc = copy && s->made ? ncclSuccess : KL_NOMEM("switches");

    if (!rc) {
        s->made->file = kl_switches_keep(s->made, file);
        for (size_t i = 0; i < bytes; i++) copy[i] = text[i] ? text[i] : ' ';
        copy[bytes] = 0;
        rc = s->made->file ? read_text(s->made, copy, bytes) : KL_NOMEM("switches");
    }
    if (!rc) rc = kl_switches_link(s);
    free(copy);
    return rc;
}

void kl_switches_fini(struct kl_switches *s)
{
    for (int i = 0; s->made && i < s->made->ntext; i++) free(s->made->text[i]);
    if (s->made) {
        free(s->made->text);
        free(s->made->said);
    }
    free(s->made);
    free(s->sw);
    free(s->host);
    free(s->by_place);
    *s = (struct kl_switches){.kind = s->kind};
}

int kl_switches_crossings(const struct kl_switches *s, const int *order)
{
    int n = 0;

    for (int i = 0; s->nhosts > 1 && i < s->nhosts; i++) {
        const int next = (i + 1) % s->nhosts;

        n += s->host[order ? order[i] : i].pod != s->host[order ? order[next] : next].pod;
    }
    return n;
}
