/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/clock.h"
#include "base/error.h"
#include "graph/graph_xml.h"
#include "plan/planned.h"
#include "tools/kolo/assumed.h"
#include "tools/kolo/cluster_options.h"
#include "tools/kolo/graph_name.h"
#include "tools/kolo/graph_text.h"
#include "tools/kolo/output.h"
#include "tools/kolo/picture/picture.h"
#include "tools/kolo/plan_json.h"
#include "topo/warn.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct asked {
    struct kl_cluster_options cluster;
    const char *format, *graph;
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
    {0, "channel", KL_OPT_INT, offsetof(struct asked, channel), 0, KL_MAX_CHANNELS - 1, "N",
     "channel: svg shows its route through the machine, html shows it first (default: 0)"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "the same as --format json"},
    KL_OPT_HELP(struct asked, help),
    KL_OPT_END,
};

static int usage(FILE *to)
{
    fprintf(to,
            "usage: kolo graph [options]\n\nShow the search's results for a machine or a cluster: rings, trees, "
            "channels, tuning, and where each search ended.\n\nA picture instead of text:\n"
            "  kolo graph --machine dgx-h100 --hosts 2 --format html > picture.html\n"
            "Boxes contain each other as the parts do; links are as wide as their bandwidth, and coloured by the share "
            "of\nit that the graph's channels reserve. svg shows the first graph, or the one of --graph.\n\n");
    kl_opts_help(table, to);
    return to == stdout ? EXIT_OK : EXIT_USAGE;
}

/* ---- warnings ---- */

static void collect(void *ctx, const char *text)
{
    json_array_append_new(ctx, json_string(text));
}

static void warn_of_fallback(const struct kl_plan_domain *d, json_t *warnings)
{
    for (int i = 0; i < KL_GRAPHS; i++) {
        char text[256];

        if (!d->graphs.why[i] || d->graphs.why[i]->end != KL_END_FALLBACK) continue;
        snprintf(text, sizeof text,
                 "no %s could be found for the GPUs with rank %d: they are taken in their order at 0.1 GB/s; see `kolo "
                 "topo` for the paths between them",
                 kl_graph_name(i), d->rank);
        collect(warnings, text);
    }
}

/* Warnings about the machine, and about its plan. NULL when memory is short. */
static json_t *warnings_of(const struct kl_cluster *cluster, const struct kl_plan *plan)
{
    json_t *warnings = json_array();
    struct kl_topo *topo = NULL;
    struct kl_xml *document = NULL;

    if (!warnings || kl_cluster_whole(cluster, &topo, &document)) {
        json_decref(warnings);
        return NULL;
    }
    kl_topo_warn(document, cluster->options.nccl, cluster->file ? NULL : &cluster->facts.cpu, collect, warnings);
    for (int i = 0; i < plan->ndomains; i++) warn_of_fallback(&plan->domain[i], warnings);
    kl_topo_free(topo);
    kl_xml_free(document);
    return warnings;
}

static void print_warnings(json_t *warnings)
{
    size_t i;
    json_t *text;

    json_array_foreach(warnings, i, text) fprintf(stderr, "warning: %s\n", json_string_value(text));
    json_decref(warnings);
}

/* ---- formats ---- */

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
    json_t *warnings = warnings_of(v->cluster, v->plan);

    if (!warnings) return ncclSystemError;
    if (!strcmp(format, "json")) return kl_plan_json(v, warnings, stdout);
    print_warnings(warnings);
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

static ncclResult_t run(const struct asked *a, unsigned graphs)
{
    struct kl_cluster_request request;
    struct kl_cluster cluster;
    struct kl_planned planned = {.plan = NULL};
    ncclResult_t rc;

    KL_TRY(kl_cluster_options_read(&a->cluster, &request));
    KL_TRY(kl_cluster_options_open(&request, &cluster));
    uint64_t start = kl_now_ns();
    KL_TRY_OR(rc, out, kl_planned_init(&cluster, &planned));
    struct kl_plan_view view = {&cluster, planned.plan, graphs, (double)(kl_now_ns() - start) / 1e6};
    kl_uncertain_tuning(&planned, NULL, &cluster);
    rc = print(a->json ? "json" : a->format, a->channel < 0 ? 0 : a->channel, &view);
out:
    kl_planned_fini(&planned);
    kl_cluster_close(&cluster);
    return rc;
}

int cmd_graph(int argc, char **argv)
{
    struct asked a = {.format = "text", .channel = -1};
    char why[256] = "";
    int next = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);
    unsigned graphs = kl_graphs_named(a.graph);

    if (next >= 0 && a.help) return usage(stdout);
    if (next >= 0 && next < argc) kl_opts_refuse_word(table, argv[next], why, sizeof why);
    if (next == argc && !graphs) snprintf(why, sizeof why, "no graph \"%s\": " KL_GRAPHS_NAMES, a.graph);
    if (next == argc && !is_format(a.format))
        snprintf(why, sizeof why, "no format \"%s\": text, json, xml, svg or html", a.format);
    if (next == argc && a.channel >= 0 && (a.json || !is_picture(a.format)))
        snprintf(why, sizeof why, "--channel is for --format svg and html");
    if (why[0]) {
        fprintf(stderr, "kolo graph: %s; see kolo graph --help\n", why);
        return EXIT_USAGE;
    }

    ncclResult_t rc = run(&a, graphs);

    if (rc) fprintf(stderr, "%s\n", kl_error_text());
    return !rc ? EXIT_OK : rc == ncclInvalidArgument ? EXIT_USAGE : EXIT_PROBLEM;
}
