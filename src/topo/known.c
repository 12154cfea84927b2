/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/known.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Families and models as dumps of NCCL write them, shifted for AMD. Cloud files written by hand say 23/49, 25/17. */
static const struct kl_known_cpu broadwell = {"x86_64", "GenuineIntel", 6, 79},
                                 skylake = {"x86_64", "GenuineIntel", 6, 85},
                                 icelake = {"x86_64", "GenuineIntel", 6, 106},
                                 sapphire = {"x86_64", "GenuineIntel", 6, 143},
                                 emerald = {"x86_64", "GenuineIntel", 6, 207},
                                 granite = {"x86_64", "GenuineIntel", 6, 173},
                                 rome = {"x86_64", "AuthenticAMD", 143, 49}, milan = {"x86_64", "AuthenticAMD", 175, 1},
                                 genoa = {"x86_64", "AuthenticAMD", 175, 17},
                                 turin = {"x86_64", "AuthenticAMD", 191, 2},
                                 rome_by_hand = {"x86_64", "AuthenticAMD", 23, 49},
                                 genoa_by_hand = {"x86_64", "AuthenticAMD", 25, 17}, grace = {"arm64", NULL, 0, 0};

#define IB(gbps)          KL_NIC_INFINIBAND, gbps, 1
#define ROCE(gbps, ports) KL_NIC_ROCE, gbps, ports
#define EFA(gbps)         KL_NIC_EFA, gbps, 1
#define SOCKETS(gbps)     KL_NIC_SOCKETS, gbps, 1
#define TCPX(gbps)        KL_NIC_TCPX, gbps, 1
#define ALONE             1, false, 0, 0
#define PLACED            1, true, 0, 0

#define AZURE  "Azure/azhpc-images, topology; Azure's pages of its sizes"
#define AWS    "aws/aws-ofi-nccl; AWS' pages of its instances"
#define GCP    "GoogleCloudPlatform/cluster-toolkit; cloud.google.com on the bandwidth of GPU networks"
#define OCI    "oracle-quickstart/oci-hpc and oci-hpc-oke"
#define NVIDIA "docs.nvidia.com, user guides of DGX and DGX BasePOD"

static const struct kl_known machines[] = {
    {"dgx-1p", "NVIDIA DGX-1 with P100", NULL, "P100 SXM2", KL_WIRING_CUBE, &broadwell, "2(2GN)|2(2GN)", IB(100), ALONE,
     KL_KNOWN_RECALLED, "NVIDIA's data sheet"},
    {"dgx-1v", "NVIDIA DGX-1 with V100", NULL, "V100 SXM2 32 GB", KL_WIRING_CUBE_V100, &broadwell, "2(2GN)|2(2GN)",
     IB(100), ALONE, KL_KNOWN_READ, "wiring and CPUs: a dump; the four cards: NVIDIA's data sheet"},
    {"dgx-2", "NVIDIA DGX-2", NULL, "V100 SXM3 32 GB", KL_WIRING_SWITCH, &skylake, "4(2GN)|4(2GN)", IB(100), ALONE,
     KL_KNOWN_READ, "a record of hwloc, NVIDIA/nccl #507; its PCI tree is simplified here"},
    {"dgx-a100", "NVIDIA DGX A100", NULL, "A100 SXM4 80 GB", KL_WIRING_SWITCH, &rome,
     "3:(2G2N)|1:(2G2N)|7:(2G2N)|5:(2G2N)", IB(200), ALONE, KL_KNOWN_PUBLISHED, NVIDIA},
    {"dgx-h100", "NVIDIA DGX H100", NULL, "H100 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)", IB(400), ALONE,
     KL_KNOWN_PUBLISHED, NVIDIA},
    {"dgx-h200", "NVIDIA DGX H200", NULL, "H200 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)", IB(400), ALONE,
     KL_KNOWN_PUBLISHED, NVIDIA},
    {"dgx-b200", "NVIDIA DGX B200", NULL, "B200", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)", IB(400), ALONE,
     KL_KNOWN_PUBLISHED, NVIDIA},
    {"dgx-b300", "NVIDIA DGX B300", NULL, "B300 SXM6", KL_WIRING_SWITCH, &granite, "4(GN)|4(GN)", IB(800), ALONE,
     KL_KNOWN_RECALLED, "NVIDIA's data sheet"},
    {"hgx-h100", "HGX H100 with 8 GPUs and 8 NICs", NULL, "H100 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     IB(400), ALONE, KL_KNOWN_READ,
     "dumps in threads of NVIDIA/nccl and nccl-tests; CoreWeave and Lambda rent such machines"},
    {"hgx-h200", "HGX H200 with 8 GPUs and 8 NICs", NULL, "H200 SXM5", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)",
     IB(400), ALONE, KL_KNOWN_PUBLISHED, "NVIDIA/nccl-tests #256"},
    {"hgx-h800", "HGX H800 with 8 GPUs and 8 NICs", NULL, "H800 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     ROCE(400, 1), ALONE, KL_KNOWN_READ, "a dump"},
    {"hgx-h20", "HGX H20 with 8 GPUs and 8 NICs", NULL, "H20 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     ROCE(400, 1), ALONE, KL_KNOWN_PUBLISHED, "threads of NVIDIA/nccl"},
    {"hgx-b200", "HGX B200 with 8 GPUs and 8 NICs", NULL, "B200", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)", IB(400),
     ALONE, KL_KNOWN_PUBLISHED, NVIDIA},
    {"gb200-nvl72", "GB200 NVL72, 18 trays of 4 GPUs", NULL, "GB200", KL_WIRING_SWITCH, &grace, "2(G)2N|2(G)2N",
     IB(400), 18, false, 0, 0, KL_KNOWN_PUBLISHED, "docs.nvidia.com on GB200 NVL72, and providers' pages"},
    {"gb300-nvl72", "GB300 NVL72, 18 trays of 4 GPUs", NULL, "GB300", KL_WIRING_SWITCH, &grace, "2(GN)|2(GN)", IB(800),
     18, false, 0, 0, KL_KNOWN_READ, "a dump of two trays; its NICs: NVIDIA's data sheet"},
    {"gh200", "GH200, one superchip", NULL, "GH200", KL_WIRING_NONE, &grace, "GN", IB(400), ALONE, KL_KNOWN_RECALLED,
     "NVIDIA's data sheet"},
    {"gh200-4", "four GH200 in a node, as in Alps", NULL, "GH200", KL_WIRING_ALL, &grace, "GN|GN|GN|GN",
     KL_NIC_SLINGSHOT, 200, 1, ALONE, KL_KNOWN_PUBLISHED, "pages of the centre that runs Alps"},
    {"leonardo", "Leonardo's node with four A100", NULL, "A100 SXM 64 GB", KL_WIRING_ALL, &icelake, "4(GN)", IB(100),
     ALONE, KL_KNOWN_PUBLISHED, "pages of the centre that runs Leonardo"},
    {"dgx-spark", "NVIDIA DGX Spark (GB10)", NULL, "GB10", KL_WIRING_NONE, &grace, "GN", ROCE(100, 2), ALONE,
     KL_KNOWN_READ, "a dump; its ConnectX-7: NVIDIA's data sheet"},
    {"workstation-2x3090", "workstation, two RTX 3090 with a bridge", NULL, "RTX 3090", KL_WIRING_PAIRS, &skylake,
     "2GN", SOCKETS(10), ALONE, KL_KNOWN_RECALLED, "data sheets of the cards"},
    {"workstation-4xa6000", "workstation, four RTX A6000 with bridges", NULL, "RTX A6000", KL_WIRING_PAIRS, &rome,
     "4GN", SOCKETS(10), ALONE, KL_KNOWN_RECALLED, "data sheets of the cards"},
    {"workstation-4x4090", "workstation, four RTX 4090", NULL, "RTX 4090", KL_WIRING_NONE, &rome, "4GN", SOCKETS(10),
     ALONE, KL_KNOWN_READ, "a dump"},
    {"workstation-4x-rtx6000-ada", "workstation, four RTX 6000 Ada", NULL, "RTX 6000 Ada", KL_WIRING_NONE, &milan,
     "4GN", SOCKETS(10), ALONE, KL_KNOWN_RECALLED, "data sheets of the cards"},
    {"workstation-4x-rtx-pro-6000", "workstation, four RTX PRO 6000 Blackwell", NULL, "RTX PRO 6000 Blackwell",
     KL_WIRING_NONE, &genoa, "4GN", SOCKETS(10), ALONE, KL_KNOWN_RECALLED, "data sheets of the cards"},
    {"server-8x-l40s", "server, eight L40S on two sockets", NULL, "L40S", KL_WIRING_NONE, &sapphire, "2(2GN)|2(2GN)",
     ROCE(200, 1), ALONE, KL_KNOWN_RECALLED, "data sheets of such servers"},
    {"azure-nd40rs-v2", "Azure ND40rs v2", "ndv2 nd40", "V100 SXM2 32 GB", KL_WIRING_CUBE_V100, &skylake, "4GN|4G",
     IB(100), PLACED, KL_KNOWN_READ, AZURE},
    {"azure-nd96asr-v4", "Azure ND96asr A100 v4", "ndv4 nd96asr", "A100 SXM4 40 GB", KL_WIRING_SWITCH, &rome_by_hand,
     "(2G2N)|(2G2N)|(2G2N)|(2G2N)", IB(200), PLACED, KL_KNOWN_READ, AZURE},
    {"azure-nd96amsr-v4", "Azure ND96amsr A100 v4", "ndmv4 nd96amsr", "A100 SXM4 80 GB", KL_WIRING_SWITCH,
     &rome_by_hand, "(2G2N)|(2G2N)|(2G2N)|(2G2N)", IB(200), PLACED, KL_KNOWN_READ, AZURE},
    {"azure-nc24ads-v4", "Azure NC24ads A100 v4", NULL, "A100 PCIe 80 GB", KL_WIRING_NONE, &milan, "GN", SOCKETS(20),
     ALONE, KL_KNOWN_READ, AZURE},
    {"azure-nc48ads-v4", "Azure NC48ads A100 v4", NULL, "A100 PCIe 80 GB", KL_WIRING_PAIRS, &milan, "GN|G", SOCKETS(40),
     ALONE, KL_KNOWN_READ, AZURE},
    {"azure-nc96ads-v4", "Azure NC96ads A100 v4", NULL, "A100 PCIe 80 GB", KL_WIRING_PAIRS, &milan, "GN|G|G|G",
     SOCKETS(80), ALONE, KL_KNOWN_READ, AZURE},
    {"azure-nc80adis-h100-v5", "Azure NC80adis H100 v5", NULL, "H100 NVL", KL_WIRING_PAIRS, &genoa, "GN|G", SOCKETS(80),
     ALONE, KL_KNOWN_PUBLISHED, AZURE},
    {"azure-nd96isr-h100-v5", "Azure ND96isr H100 v5", "ndv5", "H100 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     IB(400), PLACED, KL_KNOWN_READ, AZURE},
    {"azure-nd96isr-h200-v5", "Azure ND96isr H200 v5", "h200", "H200 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     IB(400), PLACED, KL_KNOWN_READ, AZURE},
    {"aws-p3.16xlarge", "AWS p3.16xlarge", NULL, "V100 SXM2 16 GB", KL_WIRING_CUBE_V100, &broadwell, "4G|4GN",
     SOCKETS(25), ALONE, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p3dn.24xlarge", "AWS p3dn.24xlarge", NULL, "V100 SXM2 32 GB", KL_WIRING_CUBE_V100, &skylake, "4G|4GN",
     EFA(100), ALONE, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p4d.24xlarge", "AWS p4d.24xlarge", "p4d", "A100 SXM4 40 GB", KL_WIRING_SWITCH, &skylake, "2(2GN)|2(2GN)",
     EFA(100), PLACED, KL_KNOWN_READ, AWS},
    {"aws-p4de.24xlarge", "AWS p4de.24xlarge", "p4de", "A100 SXM4 80 GB", KL_WIRING_SWITCH, &skylake, "2(2GN)|2(2GN)",
     EFA(100), PLACED, KL_KNOWN_READ, AWS},
    {"aws-p5.48xlarge", "AWS p5.48xlarge", "p5.", "H100 SXM5", KL_WIRING_SWITCH, &genoa_by_hand, "4(G4N)|4(G4N)",
     EFA(100), PLACED, KL_KNOWN_READ, AWS},
    {"aws-p5e.48xlarge", "AWS p5e.48xlarge", "p5e.", "H200 SXM5", KL_WIRING_SWITCH, &genoa_by_hand, "4(G4N)|4(G4N)",
     EFA(100), PLACED, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p5en.48xlarge", "AWS p5en.48xlarge", NULL, "H200 SXM5", KL_WIRING_SWITCH, &sapphire, "4(G2N)|4(G2N)",
     EFA(200), ALONE, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p6-b200.48xlarge", "AWS p6-b200.48xlarge", NULL, "B200", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)", EFA(400),
     ALONE, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p6-b300.48xlarge", "AWS p6-b300.48xlarge", NULL, "B300 SXM6", KL_WIRING_SWITCH, &granite, "4(G2N)|4(G2N)",
     EFA(400), ALONE, KL_KNOWN_PUBLISHED, AWS},
    {"aws-p6e-gb200", "AWS p6e-gb200, trays of 4 GPUs", NULL, "GB200", KL_WIRING_SWITCH, &grace, "2(G)2N|2(G)2N",
     EFA(400), 18, false, 0, 0, KL_KNOWN_PUBLISHED, AWS},
    {"aws-g5.12xlarge", "AWS g5.12xlarge", "g5.12", "A10G", KL_WIRING_NONE, &rome_by_hand, "4GN", SOCKETS(40), 1, true,
     0x1b, 0, KL_KNOWN_READ, AWS},
    {"aws-g5.48xlarge", "AWS g5.48xlarge", "g5.48", "A10G", KL_WIRING_NONE, &rome_by_hand, "4G|4GN", EFA(100), 1, true,
     0x16, 0x15, KL_KNOWN_READ, AWS},
    {"aws-g6.48xlarge", "AWS g6.48xlarge", NULL, "L4", KL_WIRING_NONE, &milan, "4G|4GN", EFA(100), ALONE,
     KL_KNOWN_PUBLISHED, AWS},
    {"aws-g6e.48xlarge", "AWS g6e.48xlarge", NULL, "L40S", KL_WIRING_NONE, &milan, "4G2N|4G2N", EFA(100), ALONE,
     KL_KNOWN_PUBLISHED, AWS},
    {"aws-g7e.48xlarge", "AWS g7e.48xlarge", NULL, "RTX PRO 6000 Blackwell", KL_WIRING_NONE, &emerald, "4G2N|4G2N",
     EFA(400), ALONE, KL_KNOWN_RECALLED, AWS},
    {"gcp-a2-highgpu-8g", "Google Cloud a2-highgpu-8g", NULL, "A100 SXM4 40 GB", KL_WIRING_SWITCH, &skylake, "4GN|4G",
     SOCKETS(100), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a2-megagpu-16g", "Google Cloud a2-megagpu-16g", NULL, "A100 SXM4 40 GB", KL_WIRING_SWITCH, &skylake, "8GN|8G",
     SOCKETS(100), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a2-ultragpu-8g", "Google Cloud a2-ultragpu-8g", NULL, "A100 SXM4 80 GB", KL_WIRING_SWITCH, &skylake, "4GN|4G",
     SOCKETS(100), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a3-highgpu-8g", "Google Cloud a3-highgpu-8g", NULL, "H100 SXM5", KL_WIRING_SWITCH, &sapphire, "2(2GN)|2(2GN)",
     TCPX(200), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a3-megagpu-8g", "Google Cloud a3-megagpu-8g", NULL, "H100 SXM5", KL_WIRING_SWITCH, &sapphire,
     "2(2G2N)|2(2G2N)", TCPX(200), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a3-ultragpu-8g", "Google Cloud a3-ultragpu-8g", NULL, "H200 SXM5", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)",
     ROCE(400, 1), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a4-highgpu-8g", "Google Cloud a4-highgpu-8g", NULL, "B200", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)",
     ROCE(400, 1), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-a4x-highgpu-4g", "Google Cloud a4x-highgpu-4g, trays of 4 GPUs", NULL, "GB200", KL_WIRING_SWITCH, &grace,
     "2(G)2N|2(G)2N", ROCE(400, 1), 18, false, 0, 0, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-g2-standard-96", "Google Cloud g2-standard-96", NULL, "L4", KL_WIRING_NONE, &skylake, "4GN|4G", SOCKETS(100),
     ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"gcp-g4-standard-384", "Google Cloud g4-standard-384", NULL, "RTX PRO 6000 Blackwell", KL_WIRING_NONE, &turin,
     "4GN|4G", SOCKETS(400), ALONE, KL_KNOWN_PUBLISHED, GCP},
    {"oci-bm.gpu4.8", "Oracle BM.GPU4.8", NULL, "A100 SXM4 40 GB", KL_WIRING_SWITCH, &rome,
     "3:(2G2N)|1:(2G2N)|7:(2G2N)|5:(2G2N)", ROCE(100, 2), PLACED, KL_KNOWN_READ, OCI},
    {"oci-bm.gpu.b4.8", "Oracle BM.GPU.B4.8", "b4", "A100 SXM4 40 GB", KL_WIRING_SWITCH, &milan,
     "3:(2G2N)|1:(2G2N)|7:(2G2N)|5:(2G2N)", ROCE(100, 2), PLACED, KL_KNOWN_READ, OCI},
    {"oci-bm.gpu.a100-v2.8", "Oracle BM.GPU.A100-v2.8", "a100-v2", "A100 SXM4 80 GB", KL_WIRING_SWITCH, &milan,
     "3:(2G2N)|1:(2G2N)|7:(2G2N)|5:(2G2N)", ROCE(100, 2), PLACED, KL_KNOWN_READ, OCI},
    {"oci-bm.gpu.h100.8", "Oracle BM.GPU.H100.8", NULL, "H100 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     ROCE(200, 2), ALONE, KL_KNOWN_READ, OCI},
    {"oci-bm.gpu.h200.8", "Oracle BM.GPU.H200.8", NULL, "H200 SXM5", KL_WIRING_SWITCH, &sapphire, "4(GN)|4(GN)",
     ROCE(400, 1), ALONE, KL_KNOWN_PUBLISHED, OCI},
    {"oci-bm.gpu.b200.8", "Oracle BM.GPU.B200.8", NULL, "B200", KL_WIRING_SWITCH, &emerald, "4(GN)|4(GN)", ROCE(400, 1),
     ALONE, KL_KNOWN_PUBLISHED, OCI},
    {"oci-bm.gpu.gb200.4", "Oracle BM.GPU.GB200.4, trays of 4 GPUs", NULL, "GB200", KL_WIRING_SWITCH, &grace,
     "2(G)2N|2(G)2N", ROCE(400, 1), 18, false, 0, 0, KL_KNOWN_PUBLISHED, OCI},
    {.name = NULL},
};

const struct kl_known *kl_known_at(int i)
{
    return machines[i].name ? &machines[i] : NULL;
}

const struct kl_known *kl_known_named(const char *name, int *trays)
{
    const char *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);

    for (const struct kl_known *m = machines; m->name; m++) {
        char *end;

        if (strlen(m->name) != length || strncasecmp(m->name, name, length) != 0) continue;
        *trays = m->trays;
        if (!colon) return m;
        long n = isdigit((unsigned char)colon[1]) ? strtol(colon + 1, &end, 10) : 0;
        if (n < 1 || n > m->trays || *end) return NULL;
        *trays = (int)n;
        return m;
    }
    return NULL;
}

static struct kl_known_parts count_group(const char **at, char end)
{
    struct kl_known_parts sum = {0};
    int times = 1;

    for (; **at && **at != end; (*at)++) {
        struct kl_known_parts one = {0};

        if (isdigit((unsigned char)**at)) {
            times = **at - '0';
            continue;
        }
        if (**at == 'G') one.gpus = 1;
        if (**at == 'N') one.nics = 1;
        if (**at == '|') one.nodes = 1;
        if (**at == '(') {
            (*at)++;
            one = count_group(at, ')');
            one.switches = 1;
        }
        sum.gpus += times * one.gpus;
        sum.nics += times * one.nics;
        sum.switches += times * one.switches;
        sum.nodes += one.nodes;
        times = 1;
    }
    return sum;
}

struct kl_known_parts kl_known_count(const struct kl_known *machine)
{
    const char *at = machine->layout;
    struct kl_known_parts parts = count_group(&at, 0);

    parts.nodes++;
    return parts;
}

const struct kl_gpu_product *kl_known_product(const struct kl_known *machine)
{
    return kl_gpu_product_named(machine->gpu);
}

const char *kl_known_certainty(const struct kl_known *machine)
{
    static const char *const words[] = {[KL_KNOWN_READ] = "read in a file of such a machine",
                                        [KL_KNOWN_PUBLISHED] = "published, but no file of one was at hand",
                                        [KL_KNOWN_RECALLED] = "from data sheets, not checked against a machine"};

    return words[machine->certainty];
}
