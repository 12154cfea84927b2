/* SPDX-License-Identifier: Apache-2.0 */
#include "base/conf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void add_problem(struct kl_conf *conf, int line, const char *what)
{
    if (conf->nproblems < KL_CONF_PROBLEMS)
        conf->problems[conf->nproblems++] = (struct kl_conf_problem){.line = line, .what = what};
}

/* `text` is one zero-terminated line of `length` bytes; cut it in two at the '='. */
static void parse_line(struct kl_conf *conf, char *text, size_t length, int line)
{
    if (length > KL_CONF_LINE) {
        add_problem(conf, line, "is longer than 1023 bytes");
        return;
    }
    if (length && text[length - 1] == '\r') text[--length] = 0; /* files that came from another system */
    if (!length || text[0] == '#') return;
    if (strlen(text) != length) {
        add_problem(conf, line, "contains a zero byte");
        return;
    }
    char *equals = strchr(text, '=');
    if (!equals || equals == text) {
        add_problem(conf, line, "is not NAME=VALUE");
        return;
    }
    *equals = 0;
    conf->entries[conf->nentries++] = (struct kl_conf_entry){.name = text, .value = equals + 1, .line = line};
}

static size_t count_lines(const char *bytes, size_t nbytes)
{
    size_t lines = 1;

    for (size_t i = 0; i < nbytes; i++) lines += bytes[i] == '\n';
    return lines;
}

/* Memory for a text of `nbytes` in at most `nlines` lines, and for the name. */
static bool allocate(struct kl_conf *conf, const char *file, size_t nbytes, size_t nlines)
{
    size_t name_bytes = strlen(file) + 1;

    conf->entries = calloc(nlines, sizeof *conf->entries);
    conf->bytes = malloc(nbytes + 1 + name_bytes);
    if (!conf->entries || !conf->bytes) {
        kl_conf_free(conf);
        return false;
    }
    conf->file = memcpy(conf->bytes + nbytes + 1, file, name_bytes);
    return true;
}

void kl_conf_parse(struct kl_conf *conf, const char *file, const char *bytes, size_t nbytes)
{
    bool too_long = nbytes > KL_CONF_BYTES;
    int line = 1;

    *conf = KL_CONF_NONE;
    if (too_long) nbytes = KL_CONF_BYTES;
    if (!allocate(conf, file, nbytes, count_lines(bytes, nbytes))) {
        add_problem(conf, 0, "does not fit in memory");
        return;
    }
    if (nbytes) memcpy(conf->bytes, bytes, nbytes);
    for (char *at = conf->bytes, *end = at + nbytes; at < end; line++) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        char *stop = newline ? newline : end;

        if (!newline && too_long) break; /* half a line */
        *stop = 0;
        parse_line(conf, at, (size_t)(stop - at), line);
        at = stop + 1;
    }
    if (too_long) add_problem(conf, line, "is beyond the first MiB, which is all that is read");
}

/* All of a file, at most one byte more than is used; returns its length or -1. */
static ssize_t read_all(int fd, char *bytes)
{
    size_t done = 0;

    while (done < KL_CONF_BYTES + 1) {
        ssize_t n = read(fd, bytes + done, KL_CONF_BYTES + 1 - done);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (!n) break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

void kl_conf_read(struct kl_conf *conf, const char *file, bool must_exist)
{
    char *bytes = malloc(KL_CONF_BYTES + 1);
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* do not block on a FIFO of that name */
    bool absent = fd < 0 && (errno == ENOENT || errno == ENOTDIR);
    ssize_t n = fd >= 0 && bytes ? read_all(fd, bytes) : -1;

    kl_conf_parse(conf, file, bytes, n > 0 ? (size_t)n : 0);
    if (n < 0 && (must_exist || !absent)) add_problem(conf, 0, "cannot be read");
    if (fd >= 0) close(fd);
    free(bytes);
}

const struct kl_conf_entry *kl_conf_find(const struct kl_conf *conf, const char *name)
{
    for (size_t i = 0; i < conf->nentries; i++)
        if (!strcmp(conf->entries[i].name, name)) return &conf->entries[i];
    return NULL;
}

void kl_conf_free(struct kl_conf *conf)
{
    free(conf->entries);
    free(conf->bytes);
    *conf = KL_CONF_NONE;
}
