/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "answer/graph.h"
#include "answer/graph_name.h"
#include "answer/output.h"
#include "base/error.h"
#include "graph/graph_xml.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/graph_text.h"
#include "tools/kolo/graph_tuner.h"
#include "tools/kolo/picture/picture.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct kl_cluster_options cluster;
    const char *format, *graph, *tuner;
    int json, help, channel;
};

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_TEXT, offsetof(struct asked, cluster.topo), 0, 0, "FILE",
     "topology of one host, - for standard input (default: this machine)"},
    KL_MACHINE_OPTION(struct asked, cluster),
    KL_RELEASE_OPTION(struct asked, cluster),
    KL_CLUSTER_OPTIONS(struct asked, cluster,
                       "number of identical hosts (default: 1, or as many as the file describes)"),
    KL_CONSTANTS_OPTION(struct asked, cluster),
    {0, "graph", KL_OPT_TEXT, offsetof(struct asked, graph), 0, 0, "ring|tree|collnet|nvls",
     "show only this kind of graph"},
    {0, "format", KL_OPT_TEXT, offsetof(struct asked, format), 0, 0, "NAME",
     "text, json, xml (a graph file), svg (a picture) or html (one to explore in a browser) (default: text)"},
    {0, "tuner", KL_OPT_TEXT, offsetof(struct asked, tuner), 0, 0, "FILE",
     "text and json: the choices of a tuner plugin, or of a file of rules (CSV, JSON), beside the model's"},
    {0, "channel", KL_OPT_INT, offsetof(struct asked, channel), 0, KL_MAX_CHANNELS - 1, "N",
     "channel: svg shows its route through the machine, html shows it first (default: 0)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "the same as --format json"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static void print_help(FILE *to)
{
    fprintf(to,
            "usage: kolo graph [options]\n\nShow the search's results for a machine or a cluster: rings, trees, "
            "channels, tuning, and where each search ended.\n\nA picture instead of text:\n"
            "  kolo graph --machine dgx-h100 --hosts 2 --format html > picture.html\n"
            "Boxes contain each other as the parts do; links are as wide as their bandwidth, and coloured by the share "
            "of\nit that the graph's channels reserve. svg shows the first graph, or the one of --graph.\n\n");
    kl_opts_help(table, to);
}

static int usage(FILE *to)
{
    print_help(to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

/* ---- formats ---- */

static ncclResult_t print_warnings(const struct kl_plan_view *v)
{
    json_t *warnings = kl_graph_warnings(v), *text;
    size_t i;

    if (!warnings) return ncclSystemError;
    json_array_foreach(warnings, i, text) fprintf(stderr, "warning: %s\n", json_string_value(text));
    json_decref(warnings);
    return ncclSuccess;
}

static ncclResult_t print_xml(const struct kl_plan_view *v)
{
    const struct kl_plan_domain *d = &v->plan->domain[v->plan->domain_of[0]];
    struct kl_graphs shown = {.has_nets = d->graphs.has_nets};
    struct kl_xml *xml;
    ncclResult_t rc;

    for (int i = 0; i < KL_GRAPHS; i++)
        if (v->graphs >> i & 1) shown.graph[i] = d->graphs.graph[i];
    KL_TRY(kl_graphs_to_xml(&shown, d->topo, &xml));
    rc = kl_output_xml(xml, stdout);
    kl_xml_free(xml);
    return rc;
}

static ncclResult_t print(const char *format, int channel, const struct kl_plan_view *v)
{
    if (!strcmp(format, "json")) return kl_graph_json(v, stdout);
    KL_TRY(print_warnings(v));
    if (strcmp(format, "text") != 0) kl_finding_warn(v->cluster);
    if (!strcmp(format, "xml")) return print_xml(v);
    if (!strcmp(format, "svg")) return kl_picture_svg(v, channel, stdout);
    if (!strcmp(format, "html")) return kl_picture_html(v, channel, stdout);
    return kl_plan_text(v, stdout);
}

/* ---- the command ---- */

static bool is_picture(const char *format)
{
    return !strcmp(format, "svg") || !strcmp(format, "html");
}

static bool is_format(const char *name)
{
    return !strcmp(name, "text") || !strcmp(name, "json") || !strcmp(name, "xml") || is_picture(name);
}

static ncclResult_t print_with_tuner(const struct asked *a, struct kl_plan_view *v)
{
    const char *format = a->json ? "json" : a->format;
    struct kl_graph_tuner tuner = {.tuner = NULL};
    ncclResult_t rc = a->tuner ? kl_graph_tuner_ask(v, a->tuner, &tuner) : ncclSuccess;

    if (!rc && a->tuner) v->tuner = kl_graph_tuner_json(&tuner);
    if (!rc) rc = print(format, a->channel < 0 ? 0 : a->channel, v);
    if (!rc && a->tuner && !strcmp(format, "text")) kl_graph_tuner_text(&tuner, stdout);
    json_decref(v->tuner);
    kl_graph_tuner_fini(&tuner);
    return rc;
}

static ncclResult_t run(const struct asked *a, unsigned graphs)
{
    struct kl_cluster_request request;
    struct kl_opened opened;
    struct kl_plan_view view;
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_read(&a->cluster, &request));
    KL_TRY(kl_cluster_options_open(&request, &opened));
    rc = kl_graph_answer_make(&opened, graphs, &view);
    if (!rc) rc = print_with_tuner(a, &view);
    kl_opened_fini(&opened);
    return rc;
}

static int command(int argc, char **argv)
{
    struct asked a = {.format = "text", .channel = -1};
    char why[256] = "";
    int next = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);
    unsigned graphs = 0;

    if (next >= 0 && a.help) return usage(stdout);
    if (next >= 0 && next < argc) kl_opts_refuse_word(table, argv[next], why, sizeof why);
    if (next == argc && kl_graphs_read(a.graph, &graphs)) snprintf(why, sizeof why, "%s", kl_error_text());
    if (next == argc && !is_format(a.format))
        snprintf(why, sizeof why, "no format \"%s\": text, json, xml, svg or html", a.format);
    if (next == argc && a.channel >= 0 && (a.json || !is_picture(a.format)))
        snprintf(why, sizeof why, "--channel is for --format svg and html");
    if (next == argc && a.tuner && !a.json && strcmp(a.format, "text") && strcmp(a.format, "json"))
        snprintf(why, sizeof why, "--tuner is for --format text and json");
    if (why[0]) {
        fprintf(stderr, "kolo graph: %s; see kolo graph --help\n", why);
        return EXIT_USAGE;
    }

    ncclResult_t rc = run(&a, graphs);

    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return !rc ? EXIT_OK : rc == ncclInvalidArgument ? EXIT_USAGE : EXIT_PROBLEM;
}

const struct kl_command kl_command_graph = {
    "graph", command, "show the search's results for a topology: rings, trees, tuning", print_help, table, NULL};
