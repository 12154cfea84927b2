/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the output of nvidia-smi: reading it must be safe, and the result must make a document. */
#include "topo/smi.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct kl_smi *smi = malloc(sizeof *smi);
    struct kl_assumed assumed = {.n = 0};
    struct kl_xml *xml = NULL;
    char *text = malloc(size + 1);

    if (!smi || !text) abort();
    if (size) memcpy(text, data, size);
    text[size] = 0;
    kl_smi_init(smi);
    if (!kl_smi_parse(smi, "fuzz", text) && smi->ngpus && kl_smi_document(smi, "fuzz", &assumed, &xml)) abort();
    kl_xml_free(xml);
    free(text);
    free(smi);
    return 0;
}
