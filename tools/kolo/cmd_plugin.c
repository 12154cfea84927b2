/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/output.h"
#include "tools/kolo/options.h"
#include "tools/kolo/plugin/check.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS = 60 };

struct asked {
    int check, seconds, json, help;
};

static const struct kl_opt table[] = {
    {0, "check", KL_OPT_INT, offsetof(struct asked, check), 1, KL_CHECKS, "N", "only the check of this number"},
    {0, "seconds", KL_OPT_INT, offsetof(struct asked, seconds), 1, 3600, "S",
     "time that a check may take, before it fails (default: 60)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "print JSON"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static const char *const words[] = {"ok", "fails", "not applicable"};

static void print_help(FILE *to)
{
    fprintf(to,
            "usage: kolo plugin check FILE [options]\n\n"
            "Check a plugin of NCCL's ABI against its contract, without GPUs: net, tuner, profiler and env plugins.\n"
            "Each check runs in a process of its own. Exit code 1: a check fails.\n\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int refuse(const char *why)
{
    fprintf(stderr, "kolo plugin: %s; see kolo plugin --help\n", why);
    return EXIT_USAGE;
}

/* ---- results ---- */

static void print(const struct kl_check *c, const struct kl_check_result *r)
{
    printf("%2d %-12s %-15s %s\n", c->number, c->name, words[r->verdict], r->figure);
    if (r->verdict == KL_CHECK_FAILS) printf("   contract: %s\n", c->contract);
    fflush(stdout);
}

static json_t *check_json(const struct kl_check *c, const struct kl_check_result *r)
{
    return json_pack("{s:i,s:s,s:s,s:s,s:s}", "number", c->number, "name", c->name, "verdict", words[r->verdict],
                     "figure", r->figure, "contract", c->contract);
}

static int check(const struct asked *a, const char *file)
{
    json_t *list = json_array();
    int failures = 0;

    for (int i = 0; i < KL_CHECKS; i++) {
        const struct kl_check *c = &kl_checks[i];
        struct kl_check_result r;
        if (a->check && a->check != c->number) continue;
        kl_check_run(c, file, a->seconds ? a->seconds : SECONDS, &r);
        failures += r.verdict == KL_CHECK_FAILS;
        if (a->json)
            json_array_append_new(list, check_json(c, &r));
        else
            print(c, &r);
    }
    if (a->json &&
        kl_output_json(json_pack("{s:s,s:O,s:i}", "file", file, "checks", list, "failures", failures), stdout))
        return EXIT_PROBLEM;
    json_decref(list);
    return failures ? EXIT_PROBLEM : EXIT_OK;
}

/* The dynamic linker looks for a name without a slash in its own folders only. */
static const char *in_folder(const char *file, char here[PATH_MAX])
{
    if (strchr(file, '/') || access(file, F_OK) || snprintf(here, PATH_MAX, "./%s", file) >= PATH_MAX) return file;
    return here;
}

/* Options may stand before, between and behind the words, which are moved to the front. */
static int command(int argc, char **argv)
{
    struct asked a = {0};
    char why[256];
    int n = 0, at = 1;

    for (;;) {
        at = kl_opts_parse(table, argc, argv, at, &a, why, sizeof why);
        if (at < 0) return refuse(why);
        if (at >= argc) break;
        argv[1 + n++] = argv[at++];
    }
    if (a.help) return usage(stdout);
    if (n < 1 || strcmp(argv[1], "check") != 0) return usage(stderr);
    if (n != 2 || !*argv[2]) return refuse("name one file");
    char here[PATH_MAX];

    return check(&a, in_folder(argv[2], here));
}

static const char *operand(int i)
{
    return i ? NULL : "check";
}

const struct kl_command kl_command_plugin = {"plugin",   command, "check a plugin of NCCL's ABI against its contract",
                                             print_help, table,   operand};
