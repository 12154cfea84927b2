/* SPDX-License-Identifier: Apache-2.0 */
/** faulty_net.c - a net plugin (v12) with one fault, which FAULTY_NET names. Without a fault it would be the example. */
#define NET_SYMBOL_OF(version) example
#include "examples/plugins/net/tcp.c"

#include <stdio.h>

#undef NET_SYMBOL
struct net_plugin ncclNetPlugin_v12;
static const char *fault = "";

static int faulty_init(NET_INIT_ARGS)
{
    return strcmp(fault, "init") != 0 ? init(context, comm, config, log, profile) : NET_SYSTEM;
}

static int faulty_devices(int *n)
{
    *n = strcmp(fault, "devices") != 0;
    return NET_OK;
}

static int faulty_properties(int device, struct net_properties *p)
{
    properties(device, p);
    if (!strcmp(fault, "device")) p->name = NULL;
    if (!strcmp(fault, "limit")) p->max_p2p_bytes = 0;
    if (!strcmp(fault, "memory")) p->memory = 2;
    if (!strcmp(fault, "overrun")) ((char *)p)[sizeof *p] = 1;
    return NET_OK;
}

__attribute__((constructor)) static void choose_fault(void)
{
    fault = getenv("FAULTY_NET") ? getenv("FAULTY_NET") : "";
    ncclNetPlugin_v12 = example;
    ncclNetPlugin_v12.name = strcmp(fault, "name") != 0 ? "Faulty" : (const char *)8;
    ncclNetPlugin_v12.init = faulty_init;
    ncclNetPlugin_v12.devices = faulty_devices;
    ncclNetPlugin_v12.properties = faulty_properties;
    if (!strcmp(fault, "isend")) ncclNetPlugin_v12.isend = NULL;
}
