/* SPDX-License-Identifier: Apache-2.0 */
#include "comm/watch/protocol.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static enum kl_ras_turn say(char *reply, enum kl_ras_turn turn, const char *text)
{
    snprintf(reply, KL_RAS_REPLY, "%s\n", text);
    return turn;
}

/* The rest of the line after the words, or NULL if the line does not begin with them. */
static const char *after(const char *line, const char *words)
{
    size_t n = strlen(words);

    return strncasecmp(line, words, n) ? NULL : line + n;
}

/* A whole number up to `most`; -1: it is none. */
static int number(const char *text, int most)
{
    int value = 0;

    if (!*text) return -1;
    for (; *text; text++) {
        if (*text < '0' || *text > '9') return -1;
        value = 10 * value + (*text - '0');
        if (value > most) return -1;
    }
    return value;
}

static enum kl_ras_turn set_timeout(struct kl_ras_session *s, const char *text, char *reply)
{
    int seconds = number(text, KL_RAS_TIMEOUT_MAX);

    if (seconds < 0) return say(reply, KL_RAS_ANSWER, "ERROR: Invalid timeout value, 0 to 3600 seconds");
    s->timeout_s = seconds;
    return say(reply, KL_RAS_ANSWER, "OK");
}

static enum kl_ras_turn set_format(struct kl_ras_session *s, const char *text, char *reply)
{
    bool json = !strcasecmp(text, "json");

    if (!json && strcasecmp(text, "text")) return say(reply, KL_RAS_ANSWER, "ERROR: Unknown format, text or json");
    s->json = json;
    return say(reply, KL_RAS_ANSWER, "OK");
}

static enum kl_ras_turn obey(struct kl_ras_session *s, char *reply)
{
    const char *rest;

    if ((rest = after(s->line, "CLIENT PROTOCOL ")) && number(rest, 1 << 20) > 0) {
        snprintf(reply, KL_RAS_REPLY, "SERVER PROTOCOL %d\n", KL_RAS_VERSION);
        return KL_RAS_ANSWER;
    }
    if ((rest = after(s->line, "TIMEOUT "))) return set_timeout(s, rest, reply);
    if ((rest = after(s->line, "SET FORMAT "))) return set_format(s, rest, reply);
    s->verbose = !strcasecmp(s->line, "VERBOSE STATUS");
    s->local = !strcasecmp(s->line, "LOCAL STATUS");
    if (s->verbose || s->local || !strcasecmp(s->line, "STATUS")) return KL_RAS_REPORT;
    return say(reply, KL_RAS_ANSWER, "ERROR: Unknown command");
}

enum kl_ras_turn kl_ras_hear(struct kl_ras_session *s, const char *bytes, size_t n, size_t *taken,
                             char reply[KL_RAS_REPLY])
{
    *reply = 0;
    for (*taken = 0; *taken < n;) {
        char c = bytes[(*taken)++];
        if (c == '\n') {
            if (s->have && s->line[s->have - 1] == '\r') s->have--;
            s->line[s->have] = 0;
            s->have = 0;
            return obey(s, reply);
        }
        if (s->have == sizeof s->line - 1) return say(reply, KL_RAS_LEAVE, "ERROR: Line too long");
        s->line[s->have++] = c ? c : '?';
    }
    return KL_RAS_MORE;
}
