/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_replay NAME CORPUS RUNS [DICT] - a fuzz target without libFuzzer: the inputs of CORPUS, then RUNS inputs made of them by a generator with a fixed
 * seed, the same on every machine. An input that fails is kept in the working directory, and belongs, with its fix, into CORPUS.
 * `./dev fuzz` looks for new inputs with libFuzzer.
 */
#include "tests/hang.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "targets.inc" /* target, targets: tests/fuzz/CMakeLists.txt */

enum { MOST = 65536, FILES = 1024, TOKENS = 256, CHANGES = 8, PIECE = 64 };

struct input {
    size_t size;
    uint8_t *data;
};

static struct input file[FILES], token[TOKENS];
static int nfiles, ntokens;
static uint8_t current[MOST];
static size_t current_size;
static char kept[256];
static uint64_t state = 88172645463325252u;

static size_t below(size_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return n ? (size_t)(state % n) : 0;
}

/* ---- an input that fails ---- */

void __sanitizer_set_death_callback(void (*callback)(void));

static void keep(void)
{
    static const char said[] = "fuzz_replay: the input is in ";
    const int fd = open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0 || write(fd, current, current_size) < 0) return;
    close(fd);
    if (write(STDERR_FILENO, said, sizeof said - 1) < 0 || write(STDERR_FILENO, kept, strlen(kept)) < 0 ||
        write(STDERR_FILENO, "\n", 1) < 0)
        return;
}

static void on_signal(int signal)
{
    keep();
    raise(signal);
}

static void keep_failing_input(const char *name)
{
    static const int signals[] = {SIGABRT, SIGALRM};
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};

    snprintf(kept, sizeof kept, "fuzz-%s.input", name);
    __sanitizer_set_death_callback(keep);
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) sigaction(signals[i], &action, NULL);
}

/* ---- inputs ---- */

static int is_file(const struct dirent *e)
{
    return *e->d_name != '.';
}

static bool read_corpus(const char *folder)
{
    struct dirent **entry;
    const int n = scandir(folder, &entry, is_file, alphasort);

    for (int i = 0; i < n && nfiles < FILES; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entry[i]->d_name);
        FILE *f = fopen(path, "rb");
        if (!f) return false;
        file[nfiles].size = fread(current, 1, sizeof current, f);
        file[nfiles].data = malloc(file[nfiles].size + 1);
        if (!file[nfiles].data) return false;
        memcpy(file[nfiles].data, current, file[nfiles].size);
        nfiles++;
        fclose(f);
        free(entry[i]);
    }
    if (n >= 0) free(entry);
    return nfiles > 0;
}

/* The words between quotes of libFuzzer's dictionaries; \xHH, \\ and \" are bytes. */
static void read_tokens(const char *path)
{
    char line[512];
    FILE *f = fopen(path, "r");

    while (f && fgets(line, sizeof line, f) && ntokens < TOKENS) {
        char *at = *line == '#' ? NULL : strchr(line, '"');
        if (!at) continue;
        uint8_t *out = token[ntokens].data = malloc(sizeof line);
        if (!out) abort();
        for (at++; *at && *at != '"'; at++) {
            unsigned byte;
            if (at[0] == '\\' && at[1] == 'x' && sscanf(at + 2, "%2x", &byte) == 1) {
                *out++ = (uint8_t)byte;
                at += 3;
            } else {
                if (*at == '\\' && at[1]) at++;
                *out++ = (uint8_t)*at;
            }
        }
        token[ntokens].size = (size_t)(out - token[ntokens].data);
        ntokens++;
    }
    if (f) fclose(f);
}

/* ---- changes ---- */

static void insert(size_t at, const uint8_t *data, size_t n)
{
    if (n > MOST - current_size) n = MOST - current_size;
    memmove(current + at + n, current + at, current_size - at);
    memcpy(current + at, data, n);
    current_size += n;
}

static void change(void)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', '-', '"', '\n'};
    const size_t at = below(current_size + 1), rest = current_size - at;
    const struct input *other = &file[below((size_t)nfiles)];
    const size_t from = below(other->size), n = 1 + below(PIECE);
    uint8_t piece[PIECE];

    switch (below(ntokens ? 7 : 6)) {
    case 0:
        if (rest) current[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        if (rest) current[at] = edges[below(sizeof edges)];
        break;
    case 2: /* remove */
        memmove(current + at, current + at + (n < rest ? n : rest), rest - (n < rest ? n : rest));
        current_size -= n < rest ? n : rest;
        break;
    case 3: /* repeat */
        memcpy(piece, current + at, n < rest ? n : rest);
        insert(at, piece, n < rest ? n : rest);
        break;
    case 4: /* of another input */
        insert(at, other->data + from, n < other->size - from ? n : other->size - from);
        break;
    case 5: /* the end */
        current_size = at;
        break;
    default: {
        const struct input *t = &token[below((size_t)ntokens)];
        insert(at, t->data, t->size);
    }
    }
}

static void make_input(void)
{
    const struct input *base = &file[below((size_t)nfiles)];

    memcpy(current, base->data, base->size);
    current_size = base->size;
    for (size_t i = 1 + below(CHANGES); i; i--) change();
}

/* In memory of its exact size, so that a read behind it is seen. */
static void run(target *t)
{
    uint8_t *exact = malloc(current_size ? current_size : 1);

    if (!exact) abort();
    memcpy(exact, current, current_size);
    alarm(kolo_test_hang_s());
    t(exact, current_size);
    free(exact);
}

int main(int argc, char **argv)
{
    if (argc < 4) return fprintf(stderr, "usage: fuzz_replay NAME CORPUS RUNS [DICT]\n"), 2;
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(targets[i].name, argv[1]) != 0) continue;
        if (!read_corpus(argv[2])) return fprintf(stderr, "fuzz_replay: no input in %s\n", argv[2]), 2;
        if (argc > 4) read_tokens(argv[4]);
        keep_failing_input(argv[1]);
        for (int k = 0; k < nfiles; k++) {
            current_size = file[k].size;
            memcpy(current, file[k].data, current_size);
            run(targets[i].run);
        }
        const long runs = strtol(argv[3], NULL, 10);
        for (long k = 0; k < runs; k++) {
            make_input();
            run(targets[i].run);
        }
        printf("%s: %d inputs, and %ld made of them\n", argv[1], nfiles, runs);
        return 0;
    }
    return fprintf(stderr, "fuzz_replay: no target %s\n", argv[1]), 2;
}
