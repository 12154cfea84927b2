/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of texts, by their content. */
#include "topo/input.h"

#include "tests/kolo_test.h"

#include <string.h>

static const struct {
    const char *text;
    enum kl_input_kind kind;
    bool table;
} cases[] = {
    {"", KL_INPUT_EMPTY, false},
    {" \n\t\n", KL_INPUT_EMPTY, false},
    {"hello\nworld\n", KL_INPUT_UNKNOWN, false},
    {"\x1f\x8b\x08", KL_INPUT_COMPRESSED, false},
    {"<system version=\"1\"/>", KL_INPUT_TOPOLOGY, false},
    {"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<!-- a --><system/>", KL_INPUT_TOPOLOGY, false},
    {"\n  <graphs version=\"1\">", KL_INPUT_GRAPH, false},
    {"<html>", KL_INPUT_XML, false},
    {"\tGPU0\tGPU1\nGPU0\tX\tNV4\nGPU1\tNV4\tX\n", KL_INPUT_SMI, false},
    {"| | GPU0 | GPU1 |\n| GPU0 | X | SYS |\n", KL_INPUT_SMI, false},
    {"prompt$ nvidia-smi topo -m\n        GPU0 GPU1\nGPU0 X PIX\n", KL_INPUT_SMI, false},
    {"GPU 0: NVIDIA H100 (UUID: GPU-1)\n", KL_INPUT_SMI_NAMES, false},
    {"index, name\n0, NVIDIA H200\n", KL_INPUT_SMI_NAMES, false},
    {"a:1:1 [0] NCCL INFO x\n", KL_INPUT_LOG, false},
    {"{\"log\":\"a:1:1 [0] NCCL INFO x\\n\",\"stream\":\"stdout\"}\n", KL_INPUT_LOG, false},
    {"[0] a:1:1 [0] NCCL INFO x\n", KL_INPUT_LOG, false},
    {"libfabric:1:2::efa:cq:f():7<warn> err: 5\n", KL_INPUT_LOG, false},
    {"vLLM is using nccl==2.20.5\n", KL_INPUT_LOG, false},
    {"[4.2] NVRM: Xid (PCI:0000:1b:00): 79, x\n", KL_INPUT_LOG, false},
    {"# nThread 1 nGpus 2\n  8  2  float  sum  -1  14.2  0.0  0.0  0\n", KL_INPUT_TABLE, false},
    {"a:1:1 [0] NCCL INFO x\n  8  2  float  sum  -1  14.2  0.0  0.0  0\n", KL_INPUT_LOG, true},
    {"{\"results\": [{\"size\": 8, \"busbw\": 1.5}]}", KL_INPUT_TABLE_JSON, false},
    {"[ {\"size\": 8, \"bus_bw\": 1.5} ]", KL_INPUT_TABLE_JSON, false},
    {"{\"traceEvents\": []}", KL_INPUT_TRACE, false},
    {"{\"traceEvents\": [{\"name\": \"record_param_comms\"}], \"nodes\": 1}", KL_INPUT_TRACE, false},
    {"{\"schema\": \"1.1.0-chakra.0.0.4\", \"nodes\": []}", KL_INPUT_EXECUTION, false},
    {"{\"schema\": \"1.0.1\", \"nodes\": [{\"name\": \"record_param_comms\"}]}", KL_INPUT_EXECUTION, false},
    {"{\"version\": \"0.0.4\"}{\"id\": \"1\", \"type\": \"COMM_COLL_NODE\"}", KL_INPUT_CHAKRA, false},
    {"[{\"id\": 1, \"type\": \"COMM_SEND_NODE\"}]", KL_INPUT_CHAKRA, false},
    {"\x07\n\x05"
     "0.0.4\x20",
     KL_INPUT_CHAKRA_BINARY, false},
    {"\x07\n\x05hello", KL_INPUT_UNKNOWN, false},
    {"{\"entries\": [{\"collective_seq_id\": 1}]}", KL_INPUT_FLIGHT, false},
    {"\x80\x04\x95", KL_INPUT_FLIGHT, false},
    {"{\"communicators\": [{\"collective_counts\": {}}]}", KL_INPUT_RAS, false},
    {"{\"pg_config\": {}, \"entries\": []}", KL_INPUT_FLIGHT, false},
    {"(dp0\nVentries\n", KL_INPUT_FLIGHT, false},
    {"{\"kolo_flight_record\": 1}", KL_INPUT_KOLO_FLIGHT, false},
    {"SERVER PROTOCOL 2\nOK\n{\n  \"communicators\": [\n", KL_INPUT_RAS, false},
    {"Job summary\n===========\nCommunicators... (0.00s)\n", KL_INPUT_RAS_TEXT, false},
    {"{\"header\": {}, \"coll_perf\": {}}\n", KL_INPUT_INSPECTOR, false},
    {"{\"resourceMetrics\": []}", KL_INPUT_OTLP, false},
    {"{\"a\": 1}", KL_INPUT_JSON, false},
    {"SwitchName=leaf1 Nodes=n[1-4]\nSwitchName=top Switches=leaf1\n", KL_INPUT_SLURM, false},
    {"BlockName=b1 Nodes=n[1-18]\n", KL_INPUT_SLURM, false},
    {"network.topology.nvidia.com/leaf: s1\n", KL_INPUT_TOPOGRAPH, false},
    {"-[0000:17]-+-00.0  Intel Corporation X\n", KL_INPUT_LSPCI, false},
    {"-+-[0000:c0]-+-00.0\n |           \\-01.1-[c1]----00.0\n", KL_INPUT_LSPCI, false},
};

static void content_tells_the_kind(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        struct kl_input in = kl_input_of(c->text, strlen(c->text));

        if (in.kind != c->kind || in.table != c->table) fail_msg("\"%s\" is %s", c->text, kl_input_name(in.kind));
    }
}

static void every_kind_has_a_name(void **state)
{
    (void)state;
    for (int k = 0; k < KL_INPUT_KINDS; k++) assert_non_null(kl_input_name((enum kl_input_kind)k));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(content_tells_the_kind),
        cmocka_unit_test(every_kind_has_a_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
