/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a tree of lspci: reading it must be safe, and a machine can be completed or is refused. */
#include "base/error.h"
#include "topo/lspci.h"
#include "topo/placement.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_assumed assumed = {.n = 0};
    struct kl_xml *xml = NULL;

    kl_error_quiet(1);
    if (!kl_lspci_read("fuzz", (const char *)data, bytes, &assumed, &xml)) kl_placement_complete(xml, NULL, &assumed);
    kl_xml_free(xml);
    return 0;
}
