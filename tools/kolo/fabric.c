/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/fabric.h"

#include "base/error.h"
#include "comm/config.h"
#include "topo/config.h"
#include "topo/machine.h"

#include <stdio.h>

static int hosts_of_file(const char *path, const char *machine)
{
    struct kl_xml *file = NULL;
    int quiet = kl_error_quiet(1), hosts = 1;

    if (!kl_machine_load(path, machine, NULL, &file)) hosts = kl_machine_file_hosts(file);
    kl_error_quiet(quiet);
    kl_xml_free(file);
    return hosts;
}

int kl_fabric_find(const char *topo_file, int nhosts, bool netns, int *hosts, char *why, size_t why_size)
{
    struct kl_comm_config comm;
    struct kl_topo_config topo;
    struct kl_topo_options options;

    *hosts = 1;
    if (nhosts == 1) return 0;
    kl_comm_config_load(&comm);
    kl_topo_config_load(&topo, &options);
    const char *path = topo_file ? topo_file : topo.topo_file;
    bool decided = comm.mnnvl != 0;
    if (*path || *topo.machine) *hosts = hosts_of_file(path, topo.machine);
    if (nhosts % *hosts) {
        snprintf(why, why_size, "%s holds %d hosts, so there can be 1, %d, or a multiple of them, but not %d", path,
                 *hosts, *hosts, nhosts);
        return -1;
    }
    if (netns && (decided || *hosts > 1)) {
        snprintf(why, why_size,
                 "hosts of one NVLink domain (%s) share memory, which ends with a network namespace; leave out --netns",
                 decided ? "KOLO_MNNVL" : path);
        return -1;
    }
    if (decided) *hosts = 1;
    return 0;
}
