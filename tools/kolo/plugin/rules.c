/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/rules.h"

#include "graph/tuner_rules.h"
#include "tools/kolo/cmd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static void tell(void *ctx, bool mistake, const char *text)
{
    int *mistakes = ctx;

    fprintf(stderr, "%s: %s\n", mistake ? "mistake" : "note", text);
    *mistakes += mistake;
}

/* A pipe may never end. */
static FILE *open_rules(const char *file)
{
    struct stat s;

    if (stat(file, &s)) return NULL;
    errno = EINVAL;
    return S_ISREG(s.st_mode) ? fopen(file, "re") : NULL;
}

int kl_plugin_rules(const char *file, const char *form)
{
    struct kl_tuner_rules rules;
    int mistakes = 0;
    FILE *from = open_rules(file);

    if (!from) {
        fprintf(stderr, "kolo plugin: %s: %s\n", file, strerror(errno));
        return EXIT_PROBLEM;
    }
    const bool good = kl_tuner_rules_read(from, file, tell, &mistakes, &rules);
    fclose(from);
    if (!good) {
        fprintf(stderr, "kolo plugin: out of memory\n");
        return EXIT_PROBLEM;
    }
    if (!form)
        printf("%s: %d rule%s, %d mistake%s\n", file, rules.n, rules.n == 1 ? "" : "s", mistakes,
               mistakes == 1 ? "" : "s");
    else
        (strcmp(form, "json") ? kl_tuner_rules_csv : kl_tuner_rules_json)(&rules, stdout);
    kl_tuner_rules_free(&rules);
    return mistakes ? EXIT_PROBLEM : EXIT_OK;
}
