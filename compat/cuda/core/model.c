/* SPDX-License-Identifier: Apache-2.0 */
#include "compat/cuda/core/model.h"

#include <stddef.h>

/* clang-format off */
static const struct kl_cuda_model models[] = {
    /* sm, PCI, name, GiB, SMs, threads, blocks, shared, opt-in, L2, clock, memory clock, bus */
    {70,  0,      "Tesla V100-SXM2-32GB",       32,  80,  2048, 32, 96,  96,  6,   1530, 877,   4096, "Tesla"},
    {70,  0x1db1, "Tesla V100-SXM2-16GB",       16,  80,  2048, 32, 96,  96,  6,   1530, 877,   4096, "Tesla"},
    {75,  0,      "Tesla T4",                   16,  40,  1024, 16, 64,  64,  4,   1590, 5001,  256,  "Tesla"},
    {80,  0,      "NVIDIA A100-SXM4-80GB",      80,  108, 2048, 32, 164, 163, 40,  1410, 1593,  5120, "NVIDIA"},
    {80,  0x20b0, "NVIDIA A100-SXM4-40GB",      40,  108, 2048, 32, 164, 163, 40,  1410, 1215,  5120, "NVIDIA"},
    {80,  0x20b5, "NVIDIA A100 80GB PCIe",      80,  108, 2048, 32, 164, 163, 40,  1410, 1512,  5120, "NVIDIA"},
    {80,  0x20f3, "NVIDIA A800-SXM4-80GB",      80,  108, 2048, 32, 164, 163, 40,  1410, 1593,  5120, "NVIDIA"},
    {86,  0,      "NVIDIA A10",                 24,  72,  1536, 16, 100, 99,  6,   1695, 6251,  384,  "NVIDIA"},
    {86,  0x2204, "NVIDIA GeForce RTX 3090",    24,  82,  1536, 16, 100, 99,  6,   1695, 9751,  384,  "GeForce"},
    {86,  0x2230, "NVIDIA RTX A6000",           48,  84,  1536, 16, 100, 99,  6,   1800, 8001,  384,  "NvidiaRTX"},
    {86,  0x2237, "NVIDIA A10G",                24,  80,  1536, 16, 100, 99,  6,   1710, 6251,  384,  "NVIDIA"},
    {89,  0,      "NVIDIA L40S",                48,  142, 1536, 24, 100, 99,  96,  2520, 9001,  384,  "NVIDIA"},
    {89,  0x2684, "NVIDIA GeForce RTX 4090",    24,  128, 1536, 24, 100, 99,  72,  2520, 10501, 384,  "GeForce"},
    {89,  0x26ba, "NVIDIA L20",                 48,  92,  1536, 24, 100, 99,  96,  2520, 9001,  384,  "NVIDIA"},
    {90,  0,      "NVIDIA H100 80GB HBM3",      80,  132, 2048, 32, 228, 227, 50,  1980, 2619,  5120, "NVIDIA"},
    {90,  0x2324, "NVIDIA H800",                80,  132, 2048, 32, 228, 227, 50,  1980, 2619,  5120, "NVIDIA"},
    {90,  0x2335, "NVIDIA H200",                141, 132, 2048, 32, 228, 227, 50,  1980, 3201,  6144, "NVIDIA"},
    {100, 0,      "NVIDIA B200",                180, 148, 2048, 32, 228, 227, 126, 1965, 3996,  8192, "NVIDIA"},
};
/* clang-format on */

const struct kl_cuda_model *kl_cuda_model(int sm, unsigned pci_device)
{
    const struct kl_cuda_model *best = &models[0];

    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        if (pci_device && models[i].pci_device == pci_device) return &models[i];
        if (!models[i].pci_device && models[i].sm <= sm) best = &models[i];
    }
    return best;
}
