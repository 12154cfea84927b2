/* SPDX-License-Identifier: Apache-2.0 */
#include "topo/pcie.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const struct kl_pcie generations[KL_PCIE_GENERATIONS] = {
    {"2.5 GT/s PCIe", 2.5, 1, 15},  {"5.0 GT/s PCIe", 5, 2, 30},    {"8.0 GT/s PCIe", 8, 3, 60},
    {"16.0 GT/s PCIe", 16, 4, 120}, {"32.0 GT/s PCIe", 32, 5, 240}, {"64.0 GT/s PCIe", 64, 6, 480},
};

const struct kl_pcie *kl_pcie_generation(int generation)
{
    return generation >= 1 && generation <= KL_PCIE_GENERATIONS ? &generations[generation - 1] : NULL;
}

const struct kl_pcie *kl_pcie_of_speed(const char *speed)
{
    char *end;
    double rate = strtod(speed, &end);

    for (int i = 0; end != speed && !strncmp(end, " GT/s", 5) && i < KL_PCIE_GENERATIONS; i++)
        if (rate == generations[i].rate) return &generations[i];
    return NULL;
}
