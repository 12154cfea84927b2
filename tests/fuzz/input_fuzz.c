/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes: their kind is told, and whatever is a machine becomes a document or is refused. */
#include "base/error.h"
#include "topo/input.h"
#include "topo/lspci.h"
#include "topo/smi.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kl_assumed assumed = {.n = 0};
    struct kl_xml *xml = NULL;
    char *text = malloc(bytes ? bytes : 1); /* no more: nothing behind it may be read */

    kl_error_quiet(1);
    if (!text) abort();
    if (bytes) memcpy(text, data, bytes);
    const struct kl_input in = kl_input_of(text, bytes);

    if (in.kind >= KL_INPUT_KINDS || !kl_input_name(in.kind)) abort();
    if (in.table && in.kind != KL_INPUT_LOG) abort();
    if (in.kind == KL_INPUT_SMI && !kl_smi_read("fuzz", text, bytes, &assumed, &xml)) kl_xml_free(xml);
    if (in.kind == KL_INPUT_LSPCI && !kl_lspci_read("fuzz", text, bytes, &assumed, &xml)) kl_xml_free(xml);
    free(text);
    return 0;
}
