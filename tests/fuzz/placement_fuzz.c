/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of topology files: any file that is read is completed or refused, and one that was completed needs no more. */
#include "base/log.h"
#include "topo/machine.h"
#include "topo/placement.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void complete(const uint8_t *data, size_t bytes, const struct kl_known_machine *machine)
{
    struct kl_assumed assumed = {.n = 0}, again = {.n = 0};
    char text[KL_ASSUMED_TEXT];
    struct kl_xml *xml;

    if (kl_xml_parse("fuzz", (const char *)data, bytes, kl_xml_topo_schema, &xml)) return;
    if (!kl_placement_complete(xml, machine, &assumed) && assumed.n) {
        for (int i = 0; i < assumed.n; i++) kl_assumed_text(&assumed.at[i], text);
        if (!kl_xml_check_system(xml) && !kl_machine_check_file(xml) && kl_placement_complete(xml, machine, &again))
            abort();
        for (int i = 0; i < again.n; i++)
            if (again.at[i].code == KL_ASSUMED_GPUS) abort();
    }
    kl_xml_free(xml);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static int n;
    const struct kl_known_machine *machine;

    complete(data, bytes, NULL);
    if (bytes) {
        while (kl_known_at(n)) n++;
        machine = kl_known_at(data[bytes - 1] % n);
        complete(data, bytes, machine);
    }
    return 0;
}
