/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/output.h"
#include "tools/kolo/options.h"
#include "tools/kolo/plugin/check.h"
#include "tools/kolo/plugin/record.h"
#include "tools/kolo/plugin/replay.h"
#include "tools/kolo/plugin/rules.h"

#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SECONDS = 60 };

struct asked {
    struct kl_opt_list checks;
    int seconds, json, help;
    const char *output, *net, *to;
};

static const struct kl_opt table[] = {
    {0, "check", KL_OPT_LIST, offsetof(struct asked, checks), 0, 0, "N",
     "only the check of this number or name; repeatable"},
    {0, "seconds", KL_OPT_INT, offsetof(struct asked, seconds), 1, 3600, "S",
     "time that a check may take, or a replay may be without progress, before it fails (default: 60)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "check: print JSON"},
    {'o', "output", KL_OPT_TEXT, offsetof(struct asked, output), 0, 0, "PATH",
     "record: calls go to PATH.PID, for each process (default: calls)"},
    {0, "net", KL_OPT_TEXT, offsetof(struct asked, net), 0, 0, "FILE",
     "replay: make the calls again, with this plugin"},
    {0, "to", KL_OPT_TEXT, offsetof(struct asked, to), 0, 0, "csv|json", "rules: print them in this form"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static const char *const words[] = {"ok", "fails", "not applicable"};

static void print_help(FILE *to)
{
    fprintf(
        to,
        "usage: kolo plugin check FILE [options]\n"
        "       kolo plugin record FILE [-o PATH] [-- COMMAND...]\n"
        "       kolo plugin replay CALLS... [--net FILE]\n"
        "       kolo plugin rules FILE [--to csv|json]\n\n"
        "check:  a plugin of NCCL's ABI against its contract, without GPUs: net, tuner, profiler and env plugins.\n"
        "        Each check runs in a process of its own. Exit code 1: a check fails.\n"
        "record: run a command with each call of a net plugin recorded: its time, thread and result. Without a\n"
        "        command, print the variables that do so, also in NCCL.\n"
        "replay: sum recorded calls up; with --net, make them again, all files together in this process. Exit code 1:\n"
        "        a call has failed, or has not returned.\n"
        "rules:  a tuner's rules (NCCL_TUNER_CONFIG_FILE): mistakes, rules that are never used, overlaps. Exit code "
        "1:\n"
        "        there is a mistake.\n\n");
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

static int find_check(const char *word)
{
    char number[16];

    for (int i = 0; i < KL_CHECKS; i++) {
        snprintf(number, sizeof number, "%d", kl_checks[i].number);
        if (!strcmp(word, number) || !strcmp(word, kl_checks[i].name)) return i;
    }
    return -1;
}

/* True in `wanted` for those asked for, or for all. False: one is unknown, and `why` says so. */
static bool read_checks(const struct kl_opt_list *asked, bool wanted[KL_CHECKS], char *why, size_t size)
{
    for (int i = 0; i < KL_CHECKS; i++) wanted[i] = !asked->n;
    for (int i = 0; i < asked->n; i++) {
        const int found = find_check(asked->text[i]);
        if (found < 0) {
            snprintf(why, size, "--check %.100s: there are checks 1 to %d, which `kolo plugin check FILE` names",
                     asked->text[i], KL_CHECKS);
            return false;
        }
        wanted[found] = true;
    }
    return true;
}

static int check(const struct asked *a, const char *file)
{
    bool wanted[KL_CHECKS];
    char why[256];

    if (!read_checks(&a->checks, wanted, why, sizeof why)) return refuse(why);
    json_t *list = json_array();
    int failures = 0;

    for (int i = 0; i < KL_CHECKS; i++) {
        const struct kl_check *c = &kl_checks[i];
        struct kl_check_result r;
        if (!wanted[i]) continue;
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

static int replay(const struct asked *a, char **files, int n)
{
    struct kl_recorded *recorded = calloc((size_t)n, sizeof *recorded);
    char why[PATH_MAX + 64] = "out of memory", here[PATH_MAX];
    int code = EXIT_PROBLEM, nread = 0;

    while (recorded && nread < n && kl_recorded_read(files[nread], &recorded[nread], why, sizeof why)) nread++;
    if (nread < n)
        fprintf(stderr, "kolo plugin: %s\n", why);
    else if (a->net)
        code = kl_plugin_replay(recorded, n, in_folder(a->net, here), a->seconds ? a->seconds : SECONDS);
    else
        code = kl_plugin_summary(recorded, n);
    for (int i = 0; i < nread; i++) kl_recorded_free(&recorded[i]);
    free(recorded);
    return code;
}

static int run(const struct asked *a, int n, char **word, char **behind)
{
    char here[PATH_MAX];

    if (n > 1 && !strcmp(word[0], "replay")) return replay(a, word + 1, n - 1);
    if (n != 2 || !*word[1]) return refuse("name one file");
    if (!strcmp(word[0], "check")) return check(a, in_folder(word[1], here));
    if (!strcmp(word[0], "record"))
        return kl_plugin_record(in_folder(word[1], here), a->output ? a->output : "calls", behind);
    if (a->to && strcmp(a->to, "csv") != 0 && strcmp(a->to, "json") != 0) return refuse("--to is csv or json");
    return kl_plugin_rules(word[1], a->to);
}

static bool is_word(const char *word)
{
    return !strcmp(word, "check") || !strcmp(word, "record") || !strcmp(word, "replay") || !strcmp(word, "rules");
}

/* The command to be recorded stands behind "--". */
static int find_command(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--")) return i;
    return argc;
}

/* Options may stand before, between and behind the words, which are moved to the front. */
static int command(int argc, char **argv)
{
    struct asked a = {0};
    char why[256], *none = NULL;
    const int end = find_command(argc, argv);
    int n = 0, at = 1;

    for (;;) {
        at = kl_opts_parse(table, end, argv, at, &a, why, sizeof why);
        if (at < 0) return refuse(why);
        if (at >= end) break;
        argv[1 + n++] = argv[at++];
    }
    if (a.help) return usage(stdout);
    if (n < 1 || !is_word(argv[1])) return usage(stderr);
    return run(&a, n, argv + 1, end < argc ? argv + end + 1 : &none);
}

static const char *operand(int i)
{
    static const char *const actions[] = {"check", "record", "replay", "rules"};

    return i < 4 ? actions[i] : NULL;
}

const struct kl_command kl_command_plugin = {"plugin",   command, "check, record and replay plugins of NCCL's ABI",
                                             print_help, table,   operand};
