/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/clock.h"
#include "base/error.h"
#include "comm/config.h"
#include "graph/plan.h"
#include "tools/kolo/graph_json.h"
#include "tools/kolo/offline.h"
#include "tools/kolo/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked {
    struct kl_offline_args cluster;
    const char *format, *graph;
    int json, help;
};

#define FIELD(name) offsetof(struct asked, name)

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_TEXT, FIELD(cluster.topo), 0, 0, "FILE", "topology to plan for (default: this machine)"},
    {0, "sysfs", KL_OPT_TEXT, FIELD(cluster.sysfs), 0, 0, "DIR", "recorded machine to plan for"},
    {0, "hosts", KL_OPT_INT, FIELD(cluster.hosts), 1, 65536, "N", "number of identical hosts (1)"},
    {0, "ranks", KL_OPT_INT, FIELD(cluster.ranks), 1, 4096, "N", "host devices, when there is no FILE"},
    {0, "gpus", KL_OPT_TEXT, FIELD(cluster.gpus), 0, 0, "LIST", "ordinals of the GPUs to use, as in 0,2,4"},
    {0, "mnnvl", KL_OPT_FLAG, FIELD(cluster.mnnvl), 0, 0, NULL, "all hosts form one NVLink domain"},
    {0, "graph", KL_OPT_TEXT, FIELD(graph), 0, 0, "NAME", "show one graph: ring, tree, collnet or nvls"},
    {0, "format", KL_OPT_TEXT, FIELD(format), 0, 0, "NAME", "text, json, or xml (NCCL_GRAPH_FILE)"},
    {0, "json", KL_OPT_FLAG, FIELD(json), 0, 0, NULL, "the same as --format json"},
    {'h', "help", KL_OPT_FLAG, FIELD(help), 0, 0, NULL, "print this"},
    KL_OPT_END,
};

/* Everything a plan is made of; the plan points into it. */
struct planning {
    struct kl_offline cluster;
    struct kl_comm_config comm;
    struct kl_graph_config graph;
    struct kl_xml *graph_file;
    struct kl_plan *plan;
    double ms;
};

static ncclResult_t make_plan(struct planning *p)
{
    struct kl_plan_request request = {
        .machine = &p->cluster.machine,
        .options = &p->cluster.options,
        .config = &p->graph,
        .algo = p->comm.algo,
        .proto = p->comm.proto,
        .hosts = p->cluster.machine.hosts > 1 ? 1 : p->cluster.hosts,
    };
    uint64_t start = kl_now_ns();

    kl_comm_config_load(&p->comm);
    kl_graph_config_load(&p->graph);
    if (*p->comm.graph_file) KL_TRY(kl_xml_load(p->comm.graph_file, kl_xml_graph_schema, &p->graph_file));
    request.file = p->graph_file;
    KL_TRY(kl_plan_create(&request, &p->plan));
    p->ms = (double)(kl_now_ns() - start) / 1e6;
    return ncclSuccess;
}

static void free_planning(struct planning *p)
{
    kl_plan_free(p->plan);
    kl_xml_free(p->graph_file);
    kl_offline_close(&p->cluster);
}

static ncclResult_t print(const struct asked *a, const struct planning *p)
{
    if (a->json || !strcmp(a->format, "json")) return graph_json_write(&p->cluster, p->plan, p->ms, stdout);
    if (!strcmp(a->format, "xml")) return graph_xml_print(p->plan, a->graph, stdout);
    return graph_text_print(&p->cluster, p->plan, a->graph, stdout);
}

static ncclResult_t run(const struct asked *a)
{
    struct planning p = {.plan = NULL};

    KL_TRY(kl_offline_open(&a->cluster, &p.cluster));
    ncclResult_t rc = make_plan(&p);
    if (!rc) rc = print(a, &p);
    free_planning(&p);
    return rc;
}

static const char *wrong_choice(const struct asked *a)
{
    static const char *const formats[] = {"text", "json", "xml", NULL}, *const graphs[] = {"ring", "tree", "collnet",
                                                                                           "nvls", NULL};
    size_t f = 0, g = 0;

    while (formats[f] && strcmp(a->format, formats[f])) f++;
    while (a->graph && graphs[g] && strcmp(a->graph, graphs[g])) g++;
    if (!formats[f]) return "--format is text, json or xml";
    return a->graph && !graphs[g] ? "--graph is ring, tree, collnet or nvls" : NULL;
}

int cmd_graph(int argc, char **argv)
{
    struct asked a = {.format = "text"};
    char why[256];
    int next = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (a.help) {
        printf("usage: kolo graph [options]\n\n"
               "What the search makes of a machine, and of a cluster of such hosts: rings, trees, tuning.\n\n");
        kl_opts_help(table, stdout);
        return EXIT_OK;
    }
    const char *wrong = next < 0 ? why : next != argc ? argv[next] : wrong_choice(&a);
    if (wrong) {
        fprintf(stderr, "kolo graph: %s\n", wrong);
        return EXIT_USAGE;
    }
    if (!run(&a)) return EXIT_OK;
    fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}
