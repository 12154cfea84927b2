/* SPDX-License-Identifier: Apache-2.0 */
/**
 * env.c - an environment plugin: variables of the file EXAMPLE_ENV_FILE ("NAME=TEXT" lines) count, the environment for all others.
 *
 *     cc -shared -fPIC -o libnccl-env-file.so env.c            (-DENV_VERSION=1 for the older ABI; 2 by default)
 *     NCCL_ENV_PLUGIN=./libnccl-env-file.so EXAMPLE_ENV_FILE=settings ...
 *
 * A returned text stays valid until the same name is asked for again. Functions return 0, or another value of ncclResult_t.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef ENV_VERSION
#define ENV_VERSION 2
#endif

enum { LINES = 64, LINE = 512, SYSTEM_ERROR = 2 };

typedef void env_logger(int level, unsigned long subsys, const char *file, int line, const char *fmt, ...);

static char lines[LINES][LINE];
static int nlines;

static int read_file(const char *name)
{
    FILE *from = name ? fopen(name, "r") : NULL;

    if (!from) return SYSTEM_ERROR;
    while (nlines < LINES && fgets(lines[nlines], LINE, from)) {
        lines[nlines][strcspn(lines[nlines], "\n")] = 0;
        nlines += strchr(lines[nlines], '=') != NULL;
    }
    fclose(from);
    return 0;
}

#if ENV_VERSION == 1
static int init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix)
{
    (void)major, (void)minor, (void)patch, (void)suffix;
    return read_file(getenv("EXAMPLE_ENV_FILE"));
}
#else
static int init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix, env_logger *log)
{
    const int rc = read_file(getenv("EXAMPLE_ENV_FILE"));

    log(3, 0x80, __FILE__, __LINE__, "%d variables for version %d.%d.%d%s", nlines, major, minor, patch, suffix);
    return rc;
}
#endif

static int finalize(void)
{
    nlines = 0;
    return 0;
}

static const char *get(const char *name)
{
    const size_t n = strlen(name);

    for (int i = 0; i < nlines; i++)
        if (!strncmp(lines[i], name, n) && lines[i][n] == '=') return lines[i] + n + 1;
    return getenv(name);
}

struct env_plugin {
    const char *name;
    int (*init)(
#if ENV_VERSION == 1
        uint8_t, uint8_t, uint8_t, const char *
#else
        uint8_t, uint8_t, uint8_t, const char *, env_logger *
#endif
    );
    int (*finalize)(void);
    const char *(*get)(const char *name);
};

#define ENV_SYMBOL_OF(version) ncclEnvPlugin_v##version
#define ENV_SYMBOL(version)    ENV_SYMBOL_OF(version)
extern const struct env_plugin ENV_SYMBOL(ENV_VERSION);
__attribute__((visibility("default")))
const struct env_plugin ENV_SYMBOL(ENV_VERSION) = {"ExampleFile", init, finalize, get};
