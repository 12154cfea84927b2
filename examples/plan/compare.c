/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - is an all-reduce faster on one machine or on another? Asked of libkoloplan, without either of them.
 *
 *     compare MACHINE MACHINE HOSTS BYTES        compare dgx-a100 dgx-h100 16 268435456
 *
 * An answer is JSON; programs read it with a JSON library. This one only shows the answers of two machines, and their differences.
 */
#include <koloplan.h>

#include <stdio.h>
#include <stdlib.h>

/* Every call that fails leaves one sentence. */
#define PLANCHECK(call)                                                                                                \
    do {                                                                                                               \
        if ((call) != ncclSuccess) {                                                                                   \
            fprintf(stderr, "%s\n", koloplanGetLastError());                                                           \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static koloplanCluster_t open_cluster(const char *machine, int hosts)
{
    koloplanRequest_t request = KOLOPLAN_REQUEST_INITIALIZER;
    koloplanCluster_t cluster;

    request.machine = machine;
    request.hosts = hosts;
    PLANCHECK(koloplanOpen(&request, &cluster));
    return cluster;
}

static void show_estimate(koloplanCluster_t cluster, int64_t bytes)
{
    char *json;

    PLANCHECK(koloplanEstimate(cluster, "all_reduce", "bf16", "sum", &bytes, 1, &json));
    fputs(json, stdout);
    koloplanFree(json);
}

int main(int argc, char **argv)
{
    koloplanCluster_t a, b;
    char *json;

    if (argc != 5) {
        fprintf(stderr, "usage: compare MACHINE MACHINE HOSTS BYTES\n");
        return 2;
    }
    a = open_cluster(argv[1], atoi(argv[3]));
    b = open_cluster(argv[2], atoi(argv[3]));
    show_estimate(a, atoll(argv[4]));
    show_estimate(b, atoll(argv[4]));
    PLANCHECK(koloplanDiff(a, b, &json));
    fputs(json, stdout);
    koloplanFree(json);
    koloplanClose(a);
    koloplanClose(b);
    return 0;
}
