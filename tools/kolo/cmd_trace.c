/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "tools/kolo/options.h"
#include "answer/output.h"
#include "tools/kolo/trace_merge.h"

#include <stdio.h>
#include <string.h>

struct asked {
    const char *out;
    int json, help;
};

static const struct kl_opt table[] = {
    {'o', "out", KL_OPT_TEXT, offsetof(struct asked, out), 0, 0, "FILE", "file for the merged trace"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "print the findings as JSON"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: kolo trace merge FILE... -o OUT\n\n"
                "Merge the traces of several ranks (KOLO_TRACE) on the time axis of rank 0, for "
                "https://ui.perfetto.dev, and say\n"
                "which rank the others wait for.\n\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

static int refuse(const char *why)
{
    fprintf(stderr, "kolo trace: %s\n", why);
    return EXIT_USAGE;
}

static int merge(const struct asked *a, char **files, int n)
{
    struct kl_trace_findings findings;
    ncclResult_t rc = kl_trace_merge(files, n, a->out, &findings);

    if (!rc) rc = a->json ? kl_output_json(kl_trace_findings_json(&findings), stdout) : ncclSuccess;
    if (!rc && !a->json) kl_trace_findings_text(&findings, a->out, stdout);
    kl_trace_findings_fini(&findings);
    if (!rc) return EXIT_OK;
    fprintf(stderr, "kolo trace: %s\n", kl_error_text());
    return EXIT_PROBLEM;
}

/* Options may stand before, between and behind the files, which are moved to the front. */
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
    if (n < 1 || strcmp(argv[1], "merge")) return usage(stderr);
    if (n < 2) return refuse("nothing to merge: name the files of the ranks");
    if (!a.out) return refuse("where to? -o FILE");
    return merge(&a, argv + 2, n - 1);
}

static const char *operand(int i)
{
    return i ? NULL : "merge";
}

const struct kl_command kl_command_trace = {
    "trace", command, "merge the traces of several ranks, and say which is late", print_help, table, operand};
