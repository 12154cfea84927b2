/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/rdma_text.h"

#include "topo/rdma_ports.h"

#include <inttypes.h>
#include <stdlib.h>

static void print_port(const struct kl_rdma_port *p, FILE *to)
{
    fprintf(to, "  %s:%d  %s, %s, %s", p->name, p->port, p->active ? "active" : "not active", p->layer, p->rate);
    if (p->mtu) fprintf(to, ", MTU %d (%s: %d)", p->mtu, p->netdev, p->netdev_mtu);
    if (p->pci_gbps > 0)
        fprintf(to, ", PCI %.0f Gb/s%s", p->pci_gbps, p->pci_gbps < p->link_gbps ? ": slower than the link" : "");
    fprintf(to, "\n");
    for (int i = 0; i < p->ngids; i++)
        fprintf(to, "    GID [%d] %s%s%s\n", p->gid[i].index, p->gid[i].text, *p->gid[i].type ? "  " : "",
                p->gid[i].type);
}

void kl_rdma_text(const char *sysfs, FILE *to)
{
    struct kl_rdma_port *ports = calloc(KL_RDMA_PORTS, sizeof *ports);
    int n = ports ? kl_rdma_ports_read(sysfs, ports) : 0;
    uint64_t kib = kl_rdma_memlock_kib();

    if (n) fprintf(to, "\nRDMA ports\n");
    for (int i = 0; i < n; i++) print_port(&ports[i], to);
    if (n && !sysfs && kib != UINT64_MAX)
        fprintf(to, "  locked memory: at most %" PRIu64 " KiB; RDMA needs more: `ulimit -l unlimited`\n", kib);
    free(ports);
}
