/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/clock.h"
#include "base/error.h"
#include "tools/kolo/graph_json.h"
#include "tools/kolo/offline.h"
#include "tools/kolo/options.h"

#include <stddef.h>
#include <string.h>

struct args {
    struct offline_args offline;
    const char *format, *graph;
    int json, help;
};

#define FIELD(name) offsetof(struct args, name)

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_TEXT, FIELD(offline.topo), 0, 0, "FILE", "topology of one host (XML); default: this machine"},
    {0, "hosts", KL_OPT_INT, FIELD(offline.hosts), 1, 1 << 20, "N", "identical hosts, joined by the network (1)"},
    {0, "mnnvl", KL_OPT_FLAG, FIELD(offline.mnnvl), 0, 0, NULL, "the hosts form one NVLink domain"},
    {0, "gpus", KL_OPT_TEXT, FIELD(offline.gpus), 0, 0, "LIST", "use only these GPUs of a host, as in 0,2,4"},
    {0, "graph", KL_OPT_TEXT, FIELD(graph), 0, 0, "NAME", "show one graph: ring, tree, collnet or nvls"},
    {0, "format", KL_OPT_TEXT, FIELD(format), 0, 0, "NAME", "text, json, or xml (NCCL_GRAPH_FILE)"},
    {0, "json", KL_OPT_FLAG, FIELD(json), 0, 0, NULL, "the same as --format json"},
    {'h', "help", KL_OPT_FLAG, FIELD(help), 0, 0, NULL, "this text"},
    KL_OPT_END,
};

int cmd_graph(int argc, char **argv)
{
    struct args a = {.offline = {.hosts = 1}, .format = "text"};
    char why[256];
    struct offline o;
    int rc = EXIT_OK;
    int end = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (end < 0 || end < argc) {
        fprintf(stderr, "kolo graph: %s\n", end < 0 ? why : "operands are not taken");
        return EXIT_USAGE;
    }
    uint64_t start = kl_now_ns();
    if (offline_plan(&a.offline, &o)) {
        fprintf(stderr, "%s\n", kl_error_text());
        rc = EXIT_PROBLEM;
    } else {
        struct graph_json_head head = {a.offline.topo ? a.offline.topo : "this machine", a.offline.hosts,
                                       o.machine.ndevices, (double)(kl_now_ns() - start) / 1e6};

        if (graph_json_write(&head, o.plan, stdout)) rc = EXIT_PROBLEM;
    }
    offline_fini(&o);
    return rc;
}
