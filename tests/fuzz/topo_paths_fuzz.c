/* SPDX-License-Identifier: Apache-2.0 */
/* From a topology file to a rank's paths: whatever the file contains, an answer or an error, soon. */
#include "topo/machine.h"
#include "topo/paths.h"
#include "topo/test_print.h"
#include "topo/warn.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void ignore_warning(void *ctx, const char *text)
{
    (void)ctx, (void)text;
}

static void ask(const struct kl_topo *t)
{
    struct kl_net_usage usage;
    struct kl_p2p_net p2p;
    struct kl_gdr gdr;
    int net, relay;
    enum kl_flush flush;

    for (int g = 0; g < t->count[KL_NODE_GPU]; g++) {
        int rank = t->node[g].gpu.rank;

        if (!kl_topo_local_net(t, g, 3, &net)) {
            kl_topo_gdr(t, rank, net, true, &gdr);
            kl_topo_need_flush(t, rank, net, &flush);
            kl_topo_pxn_rank(t, rank, net, &relay);
            kl_topo_p2p_net(t, rank, 1, 0, &p2p);
            kl_topo_net_usage(t, net, &usage);
        }
    }
    kl_topo_all_nvlink(t);
    kl_topo_split_nvlink(t);
}

static void run(const struct kl_machine *m, const struct kl_topo_options *options, FILE *nowhere)
{
    struct kl_topo *t;
    struct kl_xml *document;

    if (kl_machine_topo(m, options, 0, m->ndevices + 1, &t, &document)) return;
    ask(t);
    print_topo(t, nowhere);
    kl_topo_warn(document, KL_NCCL_DEFAULT, NULL, ignore_warning, NULL);
    kl_topo_free(t);
    kl_xml_free(document);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static FILE *nowhere;
    struct kl_host_device device[64];
    struct kl_topo_options options = KL_TOPO_OPTIONS;
    struct kl_xml *file;

    if (!nowhere) nowhere = fopen("/dev/null", "w");
    if (kl_xml_parse("fuzz", (const char *)data, bytes, kl_xml_topo_schema, &file)) return 0;
    int n = kl_machine_file_gpus(file);
    if (n > 64) n = 64;
    for (int i = 0; i < n; i++) device[i] = (struct kl_host_device){.rank = i, .ordinal = i};
    struct kl_machine m = {.file = file, .device = device, .ndevices = n};
    run(&m, &options, nowhere);
    options.mnnvl = true;
    options.p2p_level = KL_PATH_LOC;
    options.gdr_level = KL_PATH_LOC;
    m.hosts = 2;
    run(&m, &options, nowhere);
    kl_xml_free(file);
    return 0;
}
