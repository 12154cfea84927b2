# SPDX-License-Identifier: Apache-2.0
"""Bus bandwidths that others measured and published (nccl-tests, out of place), and the calculation that predicts each of them: facts only.

A row is a machine as Kolo knows it, the run, and {size: GB/s}. `ran` is the release of NCCL that the source names (None: it names
none). CAUSES says why predictions are off by more than 15 %: letters that docs/validation.md explains.
"""
from dataclasses import dataclass, field


@dataclass
class Row:
    number: str  # as in the page
    ran_on: str
    options: tuple  # of kolo explain, for the same case
    measured: dict
    ran: str | None = None
    collective: str = "all_reduce"
    settings: dict = field(default_factory=dict)
    source: str = ""


def machine(name, hosts=1, gpus=None):
    return ("--machine", name, "--hosts", str(hosts), *(["--gpus", ",".join(map(str, range(gpus)))] if gpus else []))


RING, TREE, NVLS = ({"NCCL_ALGO": a} for a in ("Ring", "Tree", "NVLS"))
NO_NVLS = {"NCCL_NVLS_ENABLE": "0"}
CTAS = {"NCCL_MIN_CTAS": "24"}
P5, P5EN, P6 = "aws-p5.48xlarge", "aws-p5en.48xlarge", "aws-p6-b200.48xlarge"
STAS = "stas00/ml-engineering"
SWEEP = "waynehacking8/nccl-collectives-bench"
CLUSTER = "xxrjun/nccl-tests-cluster"
AWSOME = "awsome-distributed-training"

ONE_HOST = [
    Row("1.1", "8 A100 SXM", machine("dgx-a100"),
        {"1M": 18.0, "16M": 106, "128M": 177, "1G": 229, "8G": 234.6, "16G": 234.9}, source=STAS),
    Row("1.2", "p4d", machine("aws-p4d.24xlarge"), {"1G": 230.8}, "2.9.9", source="NVIDIA/nccl #527"),
    Row("1.3", "8 A100 80 GB, Apollo 6500", machine("dgx-a100"), {"1G": 200}, "2.18.1", source="nccl-tests #149"),
    Row("1.4", "p5", machine(P5), {"1M": 64.2, "16M": 236.8, "128M": 396.2, "1G": 441.8, "8G": 480.4, "16G": 483.0},
        "2.20", source=AWSOME),
    Row("1.5", "8 H100", machine("hgx-h100"), {"1G": 469.7, "16G": 482.3}, "2.29.2", source=CLUSTER),
    Row("1.5", "8 H100", machine("hgx-h100"), {"1G": 345.5, "16G": 361.9}, "2.29.2", "all_gather", source=CLUSTER),
    Row("1.5", "8 H100", machine("hgx-h100"), {"1G": 342.7, "16G": 364.8}, "2.29.2", "reduce_scatter", source=CLUSTER),
    Row("1.6", "8 H100", machine("hgx-h100"), {"16G": 482.1}, "2.26.2", source="nccl-tests #309"),
    Row("1.6", "8 H100", machine("hgx-h100"), {"16G": 368.8}, "2.26.2", settings=NO_NVLS, source="nccl-tests #309"),
    Row("1.7", "8 H100", machine("hgx-h100"), {"128M": 383, "1G": 465, "4G": 473.6}, source="nccl-tests #290"),
    Row("1.8", "4 of 8 H100", machine("hgx-h100", gpus=4), {"256M": 339, "8G": 366.3}, "2.29.2", settings=RING, source=SWEEP),
    Row("1.8", "4 of 8 H100", machine("hgx-h100", gpus=4), {"256M": 236, "8G": 259.4}, "2.29.2", settings=TREE, source=SWEEP),
    Row("1.8", "4 of 8 H100", machine("hgx-h100", gpus=4), {"256M": 359, "8G": 376.5}, "2.29.2", settings=NVLS, source=SWEEP),
    *(Row("1.9", "4 of 8 H100", machine("hgx-h100", gpus=4), {"256M": bw}, "2.29.2", settings={**RING, "NCCL_PROTO": proto},
          source=SWEEP) for proto, bw in (("Simple", 340.8), ("LL128", 312.5), ("LL", 146.9))),
    Row("1.10", "4 of 8 H100", machine("hgx-h100", gpus=4), {"1M": 35.0, "8G": 343.9}, "2.29.2", "all_gather", source=SWEEP),
    Row("1.10", "4 of 8 H100", machine("hgx-h100", gpus=4), {"1M": 30.3, "8G": 350.3}, "2.29.2", "reduce_scatter", source=SWEEP),
    *(Row("1.11", f"{n} of 8 H100", machine("hgx-h100", gpus=n), {"8G": bw}, "2.29.2", source=SWEEP)
      for n, bw in ((2, 346.9), (4, 364.6), (6, 443.0))),
    Row("1.12", "p5en", machine(P5EN), {"16G": 480.0}, "2.27.7", source=STAS),
    Row("1.12", "p5en", machine(P5EN), {"16G": 367.2}, "2.27.7", settings=NO_NVLS, source=STAS),
    Row("1.12", "p5en", machine(P5EN), {"16G": 361.4}, "2.27.7", "all_gather", source=STAS),
    Row("1.12", "p5en", machine(P5EN), {"16G": 362.9}, "2.27.7", "reduce_scatter", source=STAS),
    *(Row("1.13", f"{n} of 8 H200", machine(P5EN, gpus=n), {"8G": bw}, "2.27.7", source=STAS)
      for n, bw in ((4, 363.3), (5, 414.2), (6, 435.6), (7, 460.0), (8, 473.1))),
    *(Row("1.14", f"{n} of 8 B200", machine(P6, gpus=n), {"8G": bw}, "2.27.7", source=STAS)
      for n, bw in ((4, 673.2), (5, 677.8), (6, 778.2), (7, 811.2), (8, 838.0))),
    Row("1.15", "8 B300", machine("dgx-b300"),
        {"1M": 49.5, "16M": 277.5, "128M": 595.3, "256M": 655.8, "1G": 732.4, "2G": 821.6, "8G": 836.1}, "2.29.7",
        source="eunomia-bpf/nccl-eBPF"),
    Row("1.15", "8 B300", machine("dgx-b300"), {"64M": 470.5, "128M": 627.7}, "2.29.7", settings={**RING, "NCCL_PROTO": "Simple"},
        source="eunomia-bpf/nccl-eBPF"),
    Row("1.16", "Alps, 4 GH200", machine("gh200-4"), {"1M": 85.1, "16M": 247, "128M": 316.8, "1G": 337.9, "4G": 339.0}, "2.23.4",
        source="boeschf/nccl-benchmark-on-alps-2025"),
    Row("1.18", "2 H100 PCIe, bridge", machine("azure-nc80adis-h100-v5"), {"1G": 115.4}, source="nccl-tests #194"),
    Row("1.19", "2 A100 PCIe, no bridge, AMD", (*machine("azure-nc48ads-v4"), "--without-link", "GPU/0-GPU/1"), {"1G": 14.4}, "2.16.5",
        source="thomaslie210/NCCL_Test_Results"),
]

SEVERAL_HOSTS = [
    Row("2.1", "HGX H100, 8x 400G", machine("hgx-h100", 2),
        {"1M": 27.3, "16M": 169.7, "128M": 336.3, "1G": 448.9, "8G": 468.5, "16G": 469.2}, "2.26.2", source="nccl-tests #309"),
    Row("2.2", "the same, as VMs", machine("azure-nd96isr-h100-v5", 4), {"16G": 365.8}, "2.26.2", source="nccl-tests #309"),
    Row("2.3", "HGX H100, 8x 400G", machine("hgx-h100", 2), {"1M": 12.5, "16M": 157.8, "128M": 316.2, "1G": 384.5, "8G": 392.7},
        settings={**RING, **CTAS}, source="nccl-tests #309"),
    Row("2.4", "HGX H100, 8x 400G", machine("hgx-h100", 8), {"1M": 16.3, "16M": 64.7, "128M": 189.4, "1G": 374.8, "8G": 391.4},
        settings=CTAS, source="nccl-tests #309"),
    Row("2.5", "HGX H100, 8x 400G RoCE", machine("hgx-h100", 2), {"1G": 456}, "2.31.2", source="NVIDIA/nccl #2409"),
    Row("2.6", "OCI BM.GPU.H100.8", machine("oci-bm.gpu.h100.8", 2), {"1G": 449.5, "8G": 469.8, "16G": 471.2}, "2.23.4",
        source="oci-hpc"),
    Row("2.7", "CoreWeave H100, SHARP", machine("hgx-h100", 8), {"512M": 356.0, "1G": 365.9, "8G": 386.6}, source="coreweave/nccl-tests"),
    Row("2.8", "H100, 8x 400G", machine("hgx-h100", 10), {"128M": 212, "1G": 344.9, "8G": 316.3}, "2.29.2", source=CLUSTER),
    Row("2.8", "H100, 8x 400G", machine("hgx-h100", 10), {"16G": 324.3}, "2.29.2", "all_gather", source=CLUSTER),
    Row("2.8", "H100, 8x 400G", machine("hgx-h100", 10), {"16G": 323.4}, "2.29.2", "reduce_scatter", source=CLUSTER),
    *(Row("2.9", f"{n} of 8 H100", machine("hgx-h100", 10, n), {"16G": bw}, "2.29.2", source=CLUSTER)
      for n, bw in ((1, 48.9), (2, 98.3), (4, 196.4))),
    Row("2.11", "H200, 8x 400G", machine("hgx-h200", 2), {"1G": 458.7, "3G": 483.8, "9G": 488.8}, source="nccl-tests #256"),
    Row("2.12", "H200, 4x 400G", ("--topo", "tests/data/topologies/synthetic/h100-nvsw-4nic-400g.xml", "--hosts", "2"),
        {"1G": 301.9, "9G": 320.4}, source="nccl-tests #380"),
    Row("2.13", "p5en", machine(P5EN, 4), {"4G": 364.9}, "2.27.7", settings=RING, source=STAS),
    Row("2.13", "p5en", machine(P5EN, 4), {"4G": 310.1}, "2.27.7", settings={"NCCL_ALGO": "NVLSTree"}, source=STAS),
    Row("2.14", "p5en", machine(P5EN, 16), {"16G": 369.9}, source=AWSOME),
    Row("2.15", "p5", machine(P5, 2), {"1M": 16.0, "16M": 105.5, "128M": 289.2, "1G": 437.0, "8G": 479.3, "16G": 487.1}, source=AWSOME),
    Row("2.16", "p5, older software", machine(P5, 2), {"128M": 129.0, "256M": 167.2, "1G": 313.3, "2G": 437.8}, "2.18.5", source=AWSOME),
    Row("2.17", "p6-b200", machine(P6, 4), {"1M": 5.4, "16M": 64.4, "128M": 197.9, "1G": 362.0, "16G": 381.8}, "2.27.7", source=STAS),
    Row("2.18", "p4d", machine("aws-p4d.24xlarge", 2), {"1M": 4.1, "16M": 16.8, "128M": 28.8, "1G": 42.5, "4G": 43.8}, "2.9.9",
        source="aws-efa-eks"),
    *(Row("2.19", "p4d", machine("aws-p4d.24xlarge", n), {"1G": bw}, "2.9.9", source="NVIDIA/nccl #527")
      for n, bw in ((2, 57.2), (3, 31.8), (4, 29.6))),
    Row("2.20", "p4de", machine("aws-p4de.24xlarge", 2), {"1M": 6.4, "128M": 64.3, "1G": 76.8, "2G": 78.3}, source=AWSOME),
    Row("2.21", "OCI BM.GPU.B4.8", machine("oci-bm.gpu.b4.8", 2), {"1G": 184.9, "2G": 187.2, "8G": 189.6}, "2.29.3", source="oci-hpc-oke"),
    Row("2.22", "a3-mega, TCPXO", machine("gcp-a3-megagpu-8g", 2),
        {"1M": 9.7, "16M": 32.2, "128M": 152.3, "1G": 297.9, "8G": 338.8}, source="cluster-toolkit"),
    Row("2.22", "a3-mega, TCPXO", machine("gcp-a3-megagpu-8g", 2), {"1G": 182.0, "8G": 188.7}, collective="all_gather",
        source="cluster-toolkit"),
    Row("2.23", "a3-high, TCPX", machine("gcp-a3-highgpu-8g", 2), {"1M": 1.0, "16M": 14.8, "128M": 64.8, "512M": 70.9},
        collective="all_gather", source="cluster-toolkit"),
    Row("2.24", "GB200 NVL72", machine("gb200-nvl72:18", 18), {"512M": 586, "1G": 681, "2G": 758, "4G": 839, "8G": 835}, "2.26.2",
        source="coreweave/nccl-tests"),
    Row("2.25", "GB200, 2 racks", machine("gb200-nvl72:18", 36), {"1G": 596, "8G": 793, "16G": 810}, "2.26.2",
        source="coreweave/nccl-tests"),
    Row("2.25", "GB200, 20 racks", machine("gb200-nvl72:18", 360), {"1G": 219, "8G": 381, "16G": 406}, "2.26.2",
        source="coreweave/nccl-tests"),
    *(Row("2.26", "Alps, 4 GH200", machine("gh200-4", n), m, "2.23.4", settings={"NCCL_CROSS_NIC": "0"},
          source="boeschf/nccl-benchmark-on-alps-2025")
      for n, m in ((2, {"1G": 154.6, "4G": 158.2}), (4, {"1G": 91.7, "4G": 92.5}), (8, {"4G": 92.1}), (32, {"4G": 92.5}),
                   (128, {"1G": 66.6, "4G": 89.5}))),
]

# Rows of the sources that nothing here predicts, and why.
NOT_PREDICTED = [
    ("1.5, 2.5, 2.8 to 2.10, 2.28", "alltoall, send and receive", "NCCL has no model of their time"),
    ("1.17", "Leonardo, sendrecv", "NCCL has no model of its time"),
    ("1.20, 2.29", "MI300X", "RCCL's plans for AMD GPUs are not followed"),
    ("2.27", "A100 PCIe, one HDR port", "the machine has no file here; its log is read"),
    ("2.30", "A100, 8x 100G", "the source names no size"),
]

# Operators' minimum requirements.
THRESHOLDS = [
    ("azure-nc48ads-v4", "16G", 193), ("azure-nc96ads-v4", "8G", 25), ("azure-nc80adis-h100-v5", "16G", 208),
    ("azure-nd40rs-v2", "8G", 110), ("azure-nd96asr-v4", "8G", 228), ("azure-nd96amsr-v4", "16G", 228),
    ("azure-nd96isr-h100-v5", "16G", 460), ("azure-nd96isr-h200-v5", "16G", 431),
]

# By row, hosts and size, of which the last two may be left out: why the prediction is off by more than 15 %.
CAUSES = {
    "1.1": "P", "1.3": "M", "1.4 16M": "P", "1.7 128M": "P", "1.8": "V", "1.10 1M": "P", "1.11": "V", "1.15": "P", "1.18": "M",
    "2.1": "P", "2.3": "P", "2.4": "P", "2.6": "N", "2.8 128M": "P", "2.8 8G": "F", "2.8 16G": "F", "2.13": "N", "2.15": "N",
    "2.15 1M": "L", "2.16": "S", "2.16 2G": "N", "2.18": "S", "2.19": "S", "2.20 1M": "P", "2.22": "S", "2.23": "S", "2.24": "BP", "2.24 4G": "B", "2.24 8G": "B", "2.25 36": "B", "2.25 36 1G": "BP", "2.25 360": "BF", "2.25 360 1G": "BFP",
    "2.26": "C",
}
