/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/cmd.h"

#include "base/error.h"
#include "tools/kolo/topo_json.h"
#include "tools/kolo/offline.h"
#include "tools/kolo/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct asked {
    struct kl_offline_args cluster;
    int json, help;
};

static const struct kl_opt table[] = {
    {0, "topo", KL_OPT_TEXT, offsetof(struct asked, cluster.topo), 0, 0, "FILE",
     "topology to plan for (default: this machine)"},
    {0, "sysfs", KL_OPT_TEXT, offsetof(struct asked, cluster.sysfs), 0, 0, "DIR", "recorded machine to plan for"},
    {0, "hosts", KL_OPT_INT, offsetof(struct asked, cluster.hosts), 1, 65536, "N", "number of identical hosts (1)"},
    {0, "ranks", KL_OPT_INT, offsetof(struct asked, cluster.ranks), 1, 4096, "N",
     "host devices, when there is no FILE"},
    {0, "gpus", KL_OPT_TEXT, offsetof(struct asked, cluster.gpus), 0, 0, "LIST",
     "ordinals of the GPUs to use, as in 0,2,4"},
    {0, "mnnvl", KL_OPT_FLAG, offsetof(struct asked, cluster.mnnvl), 0, 0, NULL, "all hosts form one NVLink domain"},
    {0, "json", KL_OPT_FLAG, offsetof(struct asked, json), 0, 0, NULL, "print JSON"},
    {'h', "help", KL_OPT_FLAG, offsetof(struct asked, help), 0, 0, NULL, "print this"},
    KL_OPT_END,
};

static int set_topology(json_t *o, const struct kl_offline *cluster, const struct kl_topo *t)
{
    return kl_json_nodes(o, cluster) || json_object_set_new(o, "system", kl_json_system(t)) ||
           json_object_set_new(o, "max_bw", kl_json_float(t->max_bw)) ||
           json_object_set_new(o, "total_bw", kl_json_float(t->total_bw)) ||
           json_object_set_new(o, "paths", kl_json_paths(t)) ||
           json_object_set_new(o, "queries", kl_json_queries(t, cluster));
}

static ncclResult_t print_json(const struct kl_offline *cluster, const struct kl_topo *t)
{
    json_t *o = json_object();
    ncclResult_t rc = ncclSuccess;

    if (set_topology(o, cluster, t) || json_dumpf(o, stdout, KL_JSON_FLAGS)) rc = ncclInternalError;
    putchar('\n');
    json_decref(o);
    return rc;
}

static ncclResult_t run(const struct asked *a)
{
    struct kl_offline cluster;
    struct kl_topo *t = NULL;
    ncclResult_t rc;

    KL_TRY(kl_offline_open(&a->cluster, &cluster));
    rc = kl_offline_topo(&cluster, 0, &t);
    if (!rc) rc = print_json(&cluster, t);
    kl_topo_free(t);
    kl_offline_close(&cluster);
    return rc;
}

int cmd_graph(int argc, char **argv)
{
    struct asked a = {0};
    char why[256];
    int next = kl_opts_parse(table, argc, argv, 1, &a, why, sizeof why);

    if (a.help) {
        printf("usage: kolo graph [options]\n\n");
        kl_opts_help(table, stdout);
        return EXIT_OK;
    }
    if (next != argc) {
        fprintf(stderr, "kolo graph: %s\n", next < 0 ? why : argv[next]);
        return EXIT_USAGE;
    }
    if (!run(&a)) return EXIT_OK;
    fprintf(stderr, "%s\n", kl_error_text());
    return EXIT_PROBLEM;
}
