/* SPDX-License-Identifier: Apache-2.0 */
/* Machines that a release of NCCL has no room for. */
#include "topo/warn.h"

#include "tests/kolo_test.h"
#include "topo/release.h"

#include <stdlib.h>
#include <string.h>

static struct kl_xml *machine_of_nets(int n)
{
    char *text;
    size_t bytes;
    FILE *to = open_memstream(&text, &bytes);
    struct kl_xml *xml;

    fputs("<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">", to);
    for (int i = 0; i < n; i++)
        fprintf(to,
                "<pci busid=\"0000:%02x:%02x.0\" class=\"0x02\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic>"
                "<net name=\"n%d\" dev=\"%d\" speed=\"400000\"/></nic></pci>",
                (unsigned)i / 32, (unsigned)i % 32, i, i);
    fputs("</cpu></system>", to);
    fclose(to);
    assert_int_equal(kl_xml_parse("m.xml", text, bytes, kl_xml_topo_schema, &xml), ncclSuccess);
    free(text);
    return xml;
}

static void count_room(void *ctx, const char *text)
{
    *(int *)ctx += strstr(text, " has room for ") != NULL;
}

static void releases_have_room_for_so_many_nodes(void **state)
{
    static const struct {
        int nccl, room;
    } rows[] = {{22606, 256}, {22703, 576}, {23102, 576}, {23203, 640}};

    (void)state;
    FOR_EACH_CASE(row, rows)
    for (int more = 0; more < 2; more++) {
        struct kl_xml *xml = machine_of_nets(row->room + more);
        int said = 0;

        kl_topo_warn(xml, row->nccl, NULL, count_room, &said);
        assert_int_equal(said, more);
        kl_xml_free(xml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(releases_have_room_for_so_many_nodes)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
