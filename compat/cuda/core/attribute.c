/* SPDX-License-Identifier: Apache-2.0 */
/**
 * attribute.c - attributes of devices, by number. Numbers outside the table are error 1.
 */
#include "compat/cuda/core/device.h"
#include "compat/cuda/core/multicast_setting.h"

enum source {
    CONSTANT,
    SHARED,
    OPTIN,
    L2,
    CLOCK,
    MEMORY_CLOCK,
    BUS_WIDTH,
    THREADS,
    BLOCKS,
    PROCESSORS,
    BUS,
    DEVICE,
    DOMAIN,
    MAJOR,
    MINOR,
    NUMA,
    PCI_ID,
    SUBSYSTEM,
    MULTICAST
};

struct row {
    short number;
    enum source source;
    int value;
};

#define GRID 65535

static const struct row rows[] = {
    {1, CONSTANT, 1024},
    {2, CONSTANT, 1024},
    {3, CONSTANT, 1024},
    {4, CONSTANT, 64},
    {5, CONSTANT, 0x7fffffff},
    {6, CONSTANT, GRID},
    {7, CONSTANT, GRID},
    {8, CONSTANT, 48 << 10},
    {9, CONSTANT, 64 << 10},
    {10, CONSTANT, 32},
    {11, CONSTANT, 0x7fffffff},
    {12, CONSTANT, 65536},
    {13, CLOCK, 0},
    {14, CONSTANT, 512},
    {15, CONSTANT, 1},
    {16, PROCESSORS, 0},
    {17, CONSTANT, 0},
    {18, CONSTANT, 0},
    {19, CONSTANT, 1},
    {20, CONSTANT, 0},
    {21, CONSTANT, 0},
    {22, CONSTANT, 0},
    {23, CONSTANT, 0},
    {24, CONSTANT, 0},
    {25, CONSTANT, 0},
    {26, CONSTANT, 0},
    {27, CONSTANT, 0},
    {28, CONSTANT, 0},
    {29, CONSTANT, 0},
    {30, CONSTANT, 512},
    {31, CONSTANT, 1},
    {32, CONSTANT, 1},
    {33, BUS, 0},
    {34, DEVICE, 0},
    {35, CONSTANT, 0},
    {36, MEMORY_CLOCK, 0},
    {37, BUS_WIDTH, 0},
    {38, L2, 0},
    {39, THREADS, 0},
    {40, CONSTANT, 3},
    {41, CONSTANT, 1},
    {42, CONSTANT, 0},
    {43, CONSTANT, 0},
    {45, CONSTANT, 0},
    {46, CONSTANT, 0},
    {47, CONSTANT, 0},
    {48, CONSTANT, 0},
    {49, CONSTANT, 0},
    {50, DOMAIN, 0},
    {51, CONSTANT, 32},
    {75, MAJOR, 0},
    {76, MINOR, 0},
    {78, CONSTANT, 1},
    {79, CONSTANT, 1},
    {80, CONSTANT, 1},
    {81, SHARED, 0},
    {82, CONSTANT, 65536},
    {83, CONSTANT, 1},
    {84, CONSTANT, 0},
    {85, CONSTANT, 0},
    {86, CONSTANT, 0},
    {87, CONSTANT, 2},
    {88, CONSTANT, 0},
    {89, CONSTANT, 1},
    {90, CONSTANT, 1},
    {91, CONSTANT, 1},
    {92, CONSTANT, 0},
    {93, CONSTANT, 0},
    {94, CONSTANT, 0},
    {95, CONSTANT, 1},
    {96, CONSTANT, 0},
    {97, OPTIN, 0},
    {98, CONSTANT, 0},
    {99, CONSTANT, 1},
    {100, CONSTANT, 0},
    {101, CONSTANT, 0},
    {102, CONSTANT, 1},
    {103, CONSTANT, 1},
    {104, CONSTANT, 0},
    {105, CONSTANT, 0},
    {106, BLOCKS, 0},
    {107, CONSTANT, 0},
    {108, CONSTANT, 0},
    {109, CONSTANT, 0},
    {110, CONSTANT, 0},
    {111, CONSTANT, 1024},
    {112, CONSTANT, 0},
    {113, CONSTANT, 1},
    {114, CONSTANT, 0},
    {115, CONSTANT, 1},
    {116, CONSTANT, 0},
    {117, CONSTANT, 0},
    {118, CONSTANT, 0},
    {119, CONSTANT, cudaMemHandleTypePosixFileDescriptor},
    {120, CONSTANT, 0},
    {121, CONSTANT, 0},
    {122, CONSTANT, 1},
    {123, CONSTANT, 0},
    {124, CONSTANT, 1},
    {125, CONSTANT, 1},
    {126, CONSTANT, 1},
    {127, CONSTANT, 0},
    {128, CONSTANT, 0},
    {129, CONSTANT, 0},
    {130, CONSTANT, 0},
    {131, CONSTANT, -1},
    {132, MULTICAST, 0},
    {133, CONSTANT, 0},
    {134, NUMA, 0},
    {135, CONSTANT, 0},
    {138, CONSTANT, 0},
    {139, PCI_ID, 0},
    {140, SUBSYSTEM, 0},
    {141, CONSTANT, 0},
    {142, CONSTANT, 0},
    {143, CONSTANT, 0},
    {144, CONSTANT, 0},
    {145, CONSTANT, 0},
    {147, CONSTANT, 0},
};

static int value_of(const struct kl_cuda_device *d, const struct row *row)
{
    const struct kl_cuda_model *m = d->model;

    switch (row->source) {
    case SHARED:
        return (int)m->shared_kib << 10;
    case OPTIN:
        return (int)m->optin_kib << 10;
    case L2:
        return (int)m->l2_mib << 20;
    case CLOCK:
        return (int)m->clock_mhz * 1000;
    case MEMORY_CLOCK:
        return (int)m->memory_mhz * 1000;
    case BUS_WIDTH:
        return (int)m->bus_bits;
    case THREADS:
        return (int)m->threads;
    case BLOCKS:
        return (int)m->blocks;
    case PROCESSORS:
        return (int)m->processors;
    case BUS:
        return (int)d->at.bus;
    case DEVICE:
        return (int)d->at.device;
    case DOMAIN:
        return (int)d->at.domain;
    case MAJOR:
        return d->sm / 10;
    case MINOR:
        return d->sm % 10;
    case NUMA:
        return d->numa;
    case PCI_ID:
        return (int)(d->pci_device << 16 | 0x10de);
    case SUBSYSTEM:
        return (int)d->pci_subsystem;
    case MULTICAST:
        return kl_cuda_multicast_supported(d);
    default:
        return row->value;
    }
}

cudaError_t kl_cuda_attribute(const struct kl_cuda_device *device, int attribute, int *value)
{
    if (!value) return cudaErrorInvalidValue;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].number != attribute) continue;
        *value = value_of(device, &rows[i]);
        return cudaSuccess;
    }
    return cudaErrorInvalidValue;
}
