/* SPDX-License-Identifier: Apache-2.0 */
/* Logs: lines of any rank with anything in front, torn and mixed; their meaning; and the plan for the machine in them. */
#include "logs/log.h"

#include "api/param_sets.h"
#include "base/error.h"
#include "logs/compare.h"
#include "logs/findings.h"
#include "logs/log_make.h"
#include "logs/patterns.h"
#include "logs/remedy.h"
#include "tests/kolo_test.h"
#include "topo/release.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kl_log read_text(const char *text)
{
    struct kl_log log;

    kl_log_init(&log);
    assert_int_equal(kl_log_add_text(&log, "a.log", text, strlen(text)), ncclSuccess);
    assert_int_equal(kl_log_finish(&log), ncclSuccess);
    return log;
}

/* ---- prefixes ---- */

static const struct {
    const char *text, *host, *where, *rest;
    enum kl_log_level level;
    long pid;
    int dev;
} line_cases[] = {
    {"nodeA:12:34 [5] NCCL INFO hello", "nodeA", "", "hello", KL_LOG_INFO, 12, 5},
    {"[2025-01-02 03:04:05] nodeA:12:34 [5] misc/x.cc:7 NCCL WARN bad", "nodeA", "misc/x.cc:7", "bad", KL_LOG_WARN, 12,
     5},
    {"[1,3]<stdout>:node-b.c:9:9 [0] NCCL INFO t", "node-b.c", "", "t", KL_LOG_INFO, 9, 0},
    {"17: n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"(Worker pid=4) n1:1:2 [3] NCCL TRACE t", "n1", "", "t", KL_LOG_TRACE, 1, 3},
    {"n7[2] Using network IB", "n7", "", "Using network IB", KL_LOG_INFO, -1, 2},
    {"[2025-06-01 10:00:00.123456] n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"[10:00:00]n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"1717230000 n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"2025-06-01T10:00:00.123Z stdout F n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"[pod/train-0/main] n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"train-0  | n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"[rank3]: n1:1:2 [3] NCCL INFO t", "n1", "", "t", KL_LOG_INFO, 1, 3},
    {"[1,3]<stderr>: n1:1:2 [3] proxy.cc:1533 NCCL WARN t", "n1", "proxy.cc:1533", "t", KL_LOG_WARN, 1, 3},
    {"NCCL INFO naked", "", "", "naked", KL_LOG_INFO, -1, -1},
    {"net.cc:5 NCCL WARN naked", "", "net.cc:5", "naked", KL_LOG_WARN, -1, -1},
    {"no prefix [0] at all", "", "", "no prefix [0] at all", KL_LOG_PLAIN, -1, -1},
    {"", "", "", "", KL_LOG_PLAIN, -1, -1},
};

static void prefixes_are_taken_off(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, line_cases)
    {
        char text[128];
        struct kl_log_line line = {.at = {0, 1}};

        snprintf(text, sizeof text, "%s", c->text);
        kl_log_line_read(text, &line);
        expect_case(c->text,
                    !strcmp(line.host, c->host) && !strcmp(line.where, c->where) && !strcmp(line.text, c->rest));
        expect_case(c->text, line.level == c->level && line.pid == c->pid && line.dev == c->dev && !line.more);
    }
}

static void what_is_put_around_lines_is_taken_off(void **state)
{
    static const struct {
        const char *text, *clean, *rest;
    } cases[] = {
        {"\033[1;31mred\033[0m\r", "red", "red"},
        {"a\tb", "a b", "a b"},
        {"{\"log\":\"a \\\"b\\\" \\u003c1\\u003e\\n\",\"stream\":\"stdout\",\"time\":\"2025\"}", "a \"b\" <1> ",
         "a \"b\" <1> "},
        {"{\"log\":\"cut \\", "cut ", "cut "},
        {"{\"log\":\"cut \\u00", "cut u00", "cut u00"},
        {"[1,3]<stdout>: 1024 256", "[1,3]<stdout>: 1024 256", "1024 256"},
        {" 3:   1024 256", " 3:   1024 256", "1024 256"},
        {"2025-06-01T10:00:00.1+02:00 stdout F # size", "2025-06-01T10:00:00.1+02:00 stdout F # size", "# size"},
        {"[2025-06-01 10:00:00] 1024", "[2025-06-01 10:00:00] 1024", "1024"},
        {"worker-1  | 1: 1024", "worker-1  | 1: 1024", "1024"},
        {"1024 256", "1024 256", "1024 256"},
        {"[never closed 1024", "[never closed 1024", "[never closed 1024"},
    };

    (void)state;
    FOR_EACH_CASE(c, cases)
    {
        char text[128];

        snprintf(text, sizeof text, "%s", c->text);
        assert_int_equal(kl_log_clean(text, strlen(text)), strlen(c->clean));
        assert_string_equal(text, c->clean);
        assert_string_equal(kl_log_skip_prefix(text), c->rest);
    }
}

/* How releases write the same facts. */
static const struct {
    const char *release, *lines;
} releases[] = {
    {"2.8.4", "a:1:2 [0] NCCL INFO NCCL version 2.8.4+cuda11.1\n"
              "a:1:2 [0] NCCL INFO Channel 00/02 :    0   1   3   2\n"
              "a:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1|-1->0->1/-1/-1 [1] -1/-1/-1->0->1|1->0->-1/-1/-1\n"
              "a:1:2 [0] NCCL INFO Channel 00 : 2[b000] -> 0[7000] [receive] via NET/IB/0/GDRDMA\n"
              "a:1:2 [0] NCCL INFO 2 coll channels, 2 p2p channels, 1 p2p channels per peer\n"
              "a:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE\n"},
    {"2.12.12", "a:1:2 [0] NCCL INFO NCCL version 2.12.12+cuda11.7\n"
                "a:1:2 [0] NCCL INFO Channel 00/02 :    0   1   3   2\n"
                "a:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
                "a:1:2 [0] NCCL INFO Channel 00/0 : 2[b000] -> 0[7000] [receive] via NET/AWS Libfabric/0/GDRDMA\n"
                "a:1:2 [0] NCCL INFO 2 coll channels, 2 p2p channels, 1 p2p channels per peer\n"
                "a:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 4 cudaDev 0 busId 7000 - Init COMPLETE\n"},
    {"2.18.5",
     "a:1:2 [0] NCCL INFO NCCL version 2.18.5+cuda12.2\n"
     "a:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 7000 commId 0x5a - Init START\n"
     "a:1:2 [0] NCCL INFO Channel 00/02 :    0   1   3   2\n"
     "a:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
     "a:1:2 [0] NCCL INFO 2 coll channels, 0 nvls channels, 2 p2p channels, 1 p2p channels per peer\n"
     "a:1:2 [0] NCCL INFO comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 7000 commId 0x5a - Init COMPLETE\n"
     "a:1:3 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [receive] via NET/Libfabric/0/GDRDMA\n"},
    {"2.22.3", "a:1:2 [0] NCCL INFO NCCL version 2.22.3+cuda12.5\n"
               "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 7000 commId "
               "0x5a - Init START\n"
               "a:1:2 [0] NCCL INFO comm 0x7f rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
               "a:1:2 [0] NCCL INFO Channel 00/02 : 0 1 3 2\n"
               "a:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
               "a:1:2 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, 1 p2p "
               "channels per peer\n"
               "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 busId 7000 commId "
               "0x5a - Init COMPLETE\n"
               "a:1:3 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [receive] via NET/IB/0(1)/GDRDMA\n"},
    {"2.29.7",
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO NCCL version 2.29.7+cuda13.0\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO ncclCommInitRankConfig comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
     "busId 7000 commId 0x5a - Init START\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO comm 0x7f rank 0 nRanks 4 nNodes 2 localRanks 2 localRank 0 MNNVL 0\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO Channel 00/02 : 0 1 3 2\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 2 p2p channels, "
     "1 p2p channels per peer\n"
     "[2026-02-01 10:00:00] a:1:2 [0] NCCL INFO ncclCommInitRankConfig comm 0x7f rank 0 nranks 4 cudaDev 0 nvmlDev 0 "
     "busId 7000 commId 0x5a - Init COMPLETE\n"
     "[2026-02-01 10:00:00] a:1:3 [0] NCCL INFO Channel 00/0 : 2[0] -> 0[0] [receive] via NET/IB/0/GDRDMA/Shared\n"},
};

static void releases_write_the_same_facts(void **state)
{
    static const int ring[] = {0, 1, 3, 2};

    (void)state;
    FOR_EACH_CASE(c, releases)
    {
        struct kl_log log = read_text(c->lines);
        const struct kl_log_member *m = &log.member[0];

        expect_case(c->release, log.nversion == 1 && !strcmp(log.version[0].text, c->release));
        expect_case(c->release, log.nmember == 1 && log.ncomm == 1 && log.understood == log.lines);
        expect_case(c->release, m->rank == 0 && m->nranks == 4 && m->completed);
        expect_case(c->release, m->coll == 2 && m->p2p == 2 && m->per_peer == 1);
        expect_case(c->release, log.nring == 1 && log.ring[0].n == 4);
        expect_case(c->release, !memcmp(&log.rank[log.ring[0].first], ring, sizeof ring));
        expect_case(c->release,
                    log.ntree == 2 && log.tree[0].down[0] == 1 && log.tree[0].up == -1 && log.tree[1].up == 1);
        expect_case(c->release, log.nlink == 1 && log.link[0].way == KL_LOG_NET && log.link[0].net == 0);
        expect_case(c->release, log.link[0].gdr && log.link[0].receives && log.link[0].from == 2);
        kl_log_fini(&log);
    }
}

static void colours_of_a_split_are_communicators(void **state)
{
    struct kl_log log = read_text("a:1:1 [0] NCCL INFO ncclCommSplit comm 0x1 rank 0 nranks 2 cudaDev 0 nvmlDev 0 "
                                  "busId 7000 parent 0x9 color 0 key 0 - Init COMPLETE\n"
                                  "a:2:2 [1] NCCL INFO ncclCommSplit comm 0x1 rank 0 nranks 2 cudaDev 1 nvmlDev 1 "
                                  "busId 8000 parent 0x9 color 1 key 0 - Init COMPLETE\n"
                                  "b:1:1 [0] NCCL INFO ncclCommSplit comm 0x1 rank 1 nranks 2 cudaDev 0 nvmlDev 0 "
                                  "busId 7000 parent 0x9 color 0 key 1 - Init COMPLETE\n"
                                  "b:2:2 [1] NCCL INFO ncclCommSplit comm 0x1 rank 1 nranks 2 cudaDev 1 nvmlDev 1 "
                                  "busId 8000 parent 0x9 color 1 key 1 - Init COMPLETE\n");

    (void)state;
    assert_int_equal(log.ncomm, 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(log.comm[i].seen, 2);
        assert_int_equal(log.comm[i].nnodes, 2);
    }
    assert_int_equal(log.member[0].comm, log.member[2].comm);
    kl_log_fini(&log);
}

static void torn_lines_are_two(void **state)
{
    struct kl_log log =
        read_text("n:1:1 [0] NCCL INFO NCCL version 2.27.7+cuda12.8 n:2:2 [1] NCCL INFO Using network IB\n");

    (void)state;
    assert_int_equal(log.nversion, 1);
    assert_string_equal(log.version[0].text, "2.27.7");
    assert_int_equal(log.version[0].number, 22707);
    assert_string_equal(log.member[0].network, "IB");
    kl_log_fini(&log);

    log = read_text("n:2:2 [1] NCCL INFO a\nn:1:1 [0] NCCL INFO Connected all rings, use ring PXN 0 GDR 1n:2:2 [1] "
                    "NCCL INFO Using network IB\n");
    assert_int_equal(log.norigin, 2); /* the host is the one that this process has elsewhere */
    assert_int_equal(log.nmember, 1);
    assert_string_equal(log.member[0].network, "IB");
    kl_log_fini(&log);
}

/* ---- facts ---- */

static const char two_ranks[] =
    "a:1:1 [0] NCCL INFO NCCL version 2.28.9+cuda12.8\n"
    "a:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_3:2/RoCE [RO]; OOB eth0:10.0.0.1<0>\n"
    "b:7:7 [3] NCCL INFO NCCL_PXN_DISABLE set by environment to 1.\n"
    "a:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 nvmlDev 4 busId 1a000 commId 0xab - Init "
    "START\n"
    "b:7:7 [3] NCCL INFO ncclCommInitRank comm 0x6 rank 1 nranks 2 cudaDev 3 nvmlDev 3 busId 1a000 commId 0xab - Init "
    "START\n"
    "a:1:1 [0] NCCL INFO comm 0x5 rank 0 nRanks 2 nNodes 2 localRanks 1 localRank 0 MNNVL 0\n"
    "a:1:1 [0] NCCL INFO Channel 00/02 : 0 1\n"
    "a:1:1 [0] NCCL INFO Channel 01/02 :    0   1\n"
    "a:1:1 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1 [1] -1/-1/-1->0->1\n"
    "b:7:7 [3] NCCL INFO 2 coll channels, 2 collnet channels, 0 nvls channels, 4 p2p channels, 1 p2p channels per "
    "peer\n"
    "b:7:7 [3] NCCL INFO Channel 01/0 : 0[0] -> 1[3] [receive] via NET/IB/1(0)/GDRDMA\n"
    "a:1:1 [0] NCCL INFO ncclCommInitRank comm 0x5 rank 0 nranks 2 cudaDev 0 busId 1a000 commId 0xab - Init COMPLETE\n"
    "a:1:1 [0] NCCL INFO AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..1}\n";

static void facts_belong_to_ranks(void **state)
{
    struct kl_log log = read_text(two_ranks);
    const struct kl_log_comm *c = kl_log_main(&log);

    (void)state;
    assert_int_equal(log.ncomm, 1);
    assert_int_equal(c->nranks, 2);
    assert_int_equal(c->nnodes, 2);
    assert_int_equal(c->seen, 2);
    const struct kl_log_member *m = &log.member[0], *other = &log.member[1];

    assert_int_equal(m->rank, 0);
    assert_true(m->completed && m->started && !other->completed);
    assert_int_equal(other->p2p, 4);
    assert_int_equal(other->per_peer, 1);
    assert_int_equal(other->nvls, 0);
    assert_int_equal(log.nring, 2);
    assert_int_equal(log.ring[1].n, 2);
    assert_int_equal(log.ntree, 2);
    assert_int_equal(log.tree[1].up, 1);
    assert_int_equal(log.nnic, 2);
    assert_int_equal(log.nic[1].fabric, KL_LOG_ROCE);
    assert_int_equal(log.nlink, 1);
    assert_int_equal(log.link[0].net, 1);
    assert_true(log.link[0].gdr && log.link[0].receives && log.link[0].way == KL_LOG_NET);
    assert_string_equal(log.setting[0].value, "1");
    kl_log_fini(&log);
}

/* ---- findings ---- */

/* All findings in their order: "no_kernel socket". */
static void list_findings(const char *text, char *list, size_t size)
{
    struct kl_log log = read_text(text);
    struct kl_log_findings f;
    struct kl_text t = kl_text_in(list, size);

    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    for (int i = 0; i < f.n; i++) {
        char sentence[1024];
        struct kl_text s = kl_text_in(sentence, sizeof sentence);

        kl_log_finding_text(&f.finding[i], &s);
        assert_true(s.length > 0);
        assert_true(f.finding[i].at.line > 0);
        kl_text_add(&t, "%s%s", i ? " " : "", kl_log_finding_name(&f.finding[i]));
    }
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
}

#define INFO(who, text) who " NCCL INFO " text "\n"
#define START(who, rank, n)                                                                                            \
    INFO(who, "c comm 0x1 rank " rank " nranks " n " cudaDev 0 busId 10 commId 0x9 - Init START")
#define DONE(who, rank, n)                                                                                             \
    INFO(who, "c comm 0x1 rank " rank " nranks " n " cudaDev 0 busId 10 commId 0x9 - Init COMPLETE")
#define NODES(who, rank, n, nodes)                                                                                     \
    INFO(who, "comm 0x1 rank " rank " nRanks " n " nNodes " nodes " localRanks 1 localRank 0")

static const struct {
    const char *text, *findings;
} finding_cases[] = {
    {"", ""},
    {two_ranks, "unfinished mixed_fabric setting"},
    {"a:1:1 [0] enqueue.cc:7 NCCL WARN Cuda failure 'no kernel image is available for execution on the device'\n"
     "b:1:1 [0] NCCL INFO misc/socket.cc:1 NCCL WARN Net : Connection closed by remote peer a<1>\n",
     "no_kernel peer_gone"},
    {"x.cc:1 NCCL WARN never seen before\n", "unknown"},
    {"# a comment about out of memory\n", ""},
    {"a:1:1 [0] a.cc:1 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9637892 bytes\n", "shm_small"},
    {"a:1:1 [0] NCCL WARN NET/IB : Got completion from peer 10.0.0.1<5> with status=12 opcode=0 len=0 vendor err 129\n",
     "ib_retry"},
    {"a:1:1 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 8000\n", "duplicate_gpu"},
    {"a:1:1 [0] NCCL WARN Bootstrap : no socket interface found\n", "no_interface"},
    {INFO("a:1:1 [0]", "NCCL version 2.26.2+cuda12.2") INFO("b:1:1 [0]", "NCCL version 2.27.7+cuda12.2"),
     "versions_differ"},
    {INFO("a:1:1 [0]", "NCCL_ALGO set by environment to Ring")
         INFO("b:1:1 [0]", "NCCL_ALGO set by environment to Tree"),
     "settings_differ setting setting"},
    {INFO("a:1:1 [0]", "NCCL_SOCKET_IFNAME set by environment to a")
         INFO("b:1:1 [0]", "NCCL_SOCKET_IFNAME set by environment to b"),
     ""},
    {START("a:1:1 [0]", "0", "4") START("a:2:2 [1]", "1", "4"), "unfinished"},
    {"#  Rank  0 Group  0 Pid    5 on a device  0 [0x1] T\n#  Rank  0 Group  0 Pid    6 on a device  0 [0x1] T\n",
     "alone"},
    {"#  Rank  0 Group  0 Pid    5 on a device  0 [0x1] T\n#  Rank  1 Group  0 Pid    6 on a device  0 [0x1] T\n", ""},
    {START("a:1:1 [0]", "0", "2") INFO("a:1:1 [0]", "Using network Socket") NODES("a:1:1 [0]", "0", "2", "2") INFO(
         "a:1:1 [0]", "2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer")
         DONE("a:1:1 [0]", "0", "2"),
     "socket"},
    {START("a:1:1 [0]", "0", "2") INFO("a:1:1 [0]", "Using network Socket") NODES("a:1:1 [0]", "0", "2", "1") INFO(
         "a:1:1 [0]", "2 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p channels per peer")
         DONE("a:1:1 [0]", "0", "2"),
     ""},
    {INFO("a:1:1 [0]", "GPU Direct RDMA Disabled for GPU 81000 / HCA 0 (distance 6 > 4)")
         INFO("a:1:1 [0]", "Channel 00/0 : 0[81000] -> 1[81000] [send] via NET/IB/0"),
     "gdr_far"},
    {INFO("a:1:1 [0]", "GPU Direct RDMA Disabled for HCA 0 'mlx5_2'")
         INFO("a:1:1 [0]", "Channel 00 : 0[81000] -> 1[81000] [send] via NET/IB/0"),
     "gdr_driver"},
    {INFO("a:1:1 [0]", "GPU Direct RDMA Disabled for HCA 0 'mlx5_2'")
         INFO("a:1:1 [0]", "Channel 00 : 0[81000] -> 1[91000] via P2P/IPC"),
     ""},
    {INFO("a:1:1 [0]", "Channel 00/0 : 0[0] -> 1[1] [send] via NET/X/0"), "gdr_off"},
    {INFO("a:1:1 [0]", "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"), "shm"},
    {INFO("a:1:1 [0]", "Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type SYS/SYS, sameChannels 1"),
     "fallback"},
    {INFO("a:1:1 [0]", "NCCL_MAX_NCHANNELS set by environment to 2"), "setting"},
    {INFO("a:1:1 [0]", "Init timings - x: rank 0 nranks 8 total 40.5 (kernels 38.1, alloc 0.1)"), "slow_init"},
    {INFO("a:1:1 [0]", "Init timings - x: rank 0 nranks 8 total 1.5 (kernels 1.1, alloc 0.1)"), ""},
    {INFO("a:1:1 [0]", "NET/IB : Using [0]m0:1/IB [1]m1:1/IB ; OOB e:1<0>")
         INFO("b:1:1 [0]", "NET/IB : Using [0]m0:1/IB ; OOB e:1<0>"),
     "nics_differ"},
    {INFO("a:1:1 [0]", "NET/IB : Using [0]m0:1/IB [1]m1:1/RoCE ; OOB e:1<0>"), "mixed_fabric"},
    {INFO("a:1:1 [0]", "P2P from the GPU of rank 0 to the GPU of rank 1 is broken: reads are wrong")
         INFO("a:1:1 [0]", "P2P from the GPU of rank 0 to the GPU of rank 2 is not there: the driver gives no access")
             INFO("a:2:2 [1]", "P2P from the GPU of rank 1 to the GPU of rank 0 is broken: reads are wrong"),
     "gpu_path gpu_path"},
    {INFO("a:1:1 [0]", "P2P from the GPU of rank 0 to the GPU") INFO("a:1:1 [0]", "P2P from the GPU of rank x")
         INFO("a:1:1 [0]", "the GPUs of ranks 0 and 1 are warm"),
     ""},
};

/* The worst finding, its weight, and words of its remedy. */
static const struct {
    const char *text, *name, *weight, *remedy;
} weight_cases[] = {
    {"[1.5] NVRM: Xid (PCI:0000:1b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n",
     "gpu_broken", "stops", "ECC"},
    {"NVRM: Xid (PCI:0000:1b:00): 48, pid=1, DBE\n", "gpu_broken", "stops", "ECC"},
    {"NVRM: Xid (PCI:0000:1b:00): 13, pid=1, Graphics Exception\n", "program_fault", "stops", "sanitizer"},
    {"NVRM: Xid (PCI:0000:1b:00): 31, pid=1, Ch 00000008, MMU Fault\n", "program_fault", "stops", "sanitizer"},
    {"NVRM: Xid (PCI:0000:1b:00): 43, pid=1, Ch 00000008\n", "program_fault", "stops", "sanitizer"},
    {"NVRM: Xid (PCI:0000:1b:00): 45, pid=1, Ch 00000008\n", "xid_cleanup", "follows", "another Xid"},
    {"NVRM: Xid (PCI:0000:1b:00): 999, what\n", "xid", "stops", "list of Xid"},
    {"NVRM: Xid (PCI:00", "xid", "stops", "list of Xid"},
    {"a:1:1 [0] x.cc:1 NCCL WARN Cuda failure 714 'hardware stack error'\n", "program_fault", "stops", "sanitizer"},
    {"a:1:1 [0] graph/xml.cc:1 NCCL WARN Could not open XML topology file /t.xml : No such file\n", "topo_file_gone",
     "costs", "NCCL_TOPO_FILE"},
    {"a:1:1 [0] graph/xml.cc:1 NCCL WARN XML Parse error : expecting >\n", "topo_file", "stops", "NCCL_TOPO_FILE"},
    {INFO("a:1:1 [0]", "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"), "shm", "remark", "kolo explain pair"},
    {INFO("a:1:1 [0]", "Check P2P Type intraNodeP2pSupport 0 directMode 0")
         INFO("a:1:1 [0]", "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct"),
     "shm", "costs", "kolo explain pair"},
    {INFO("a:1:1 [0]", "NCCL version 2.26.2+cuda12.2") INFO("b:1:1 [0]", "NCCL version 2.27.7+cuda12.2"),
     "versions_differ", "stops", "libnccl.so.2"},
    {INFO("a:1:1 [0]", "NCCL version 2.26.2+cuda12.2") START("a:1:1 [0]", "0", "2") START("b:1:1 [0]", "1", "2")
         INFO("b:1:1 [0]", "NCCL version 2.27.7+cuda12.2"),
     "versions_differ", "stops", "libnccl.so.2"},
    {INFO("a:1:1 [0]", "NCCL version 2.26.2+cuda12.2") NODES("a:1:1 [0]", "0", "1", "1")
         INFO("a:2:2 [0]", "NCCL version 2.27.7+cuda12.2") NODES("a:2:2 [0]", "0", "3", "1"),
     "versions_differ", "remark", "--nccl"},
    {INFO("a:1:1 [0]", "NCCL version 2.29.2+cuda13") "unhandled cuda error, NCCL version 2.27.7\n", "versions_differ",
     "remark", "--nccl"},
    {"a:1:1 [0] misc/socket.cc:1 NCCL WARN socketPollConnect: Connect to 10.0.0.2<5> returned 111(Connection refused) "
     "errno 115(Operation now in progress)\n",
     "unreachable", "stops", "firewall"},
    {"a:1:1 [0] NCCL INFO socketPollConnect: connect to 10.0.0.2<5> returned Connection refused, retrying (1/34) after "
     "sleep for 100 msec\n" INFO("a:1:1 [1]", "Affinity for GPU 1 is  (x)"),
     "retry", "remark", ""},
    {"a:1:1 [0] transport/net_ib.cc:99 NCCL WARN NET/IB : mlx5_0:1 Got async event : GID table change\n", "ib_event",
     "remark", "show_gids"},
    {"[rank1]:[E ProcessGroupNCCL.cpp:475] [Rank 1] Watchdog caught collective operation timeout: "
     "WorkNCCL(SeqNum=12)\n",
     "timeout", "follows", "rank"},
    {"slurmstepd: error: Detected 1 oom_kill event in StepId=1.0. Some of the step tasks have been OOM Killed.\n",
     "killed", "follows", "out-of-memory"},
    {INFO("a:1:1 [0]", "NCCL version 2.29.2+cuda13") INFO("a:1:1 [0]", "Affinity for GPU 0 is 0-7. (x)")
         INFO("a:1:1 [1]", "Affinity for GPU 1 is 0-15. (x)"),
     "affinity", "remark", "2.29.2"},
    {INFO("a:1:1 [0]", "NCCL version 2.28.9+cuda13") INFO("a:1:1 [0]", "Affinity for GPU 0 is 0-7. (x)")
         INFO("a:1:1 [1]", "Affinity for GPU 1 is 0-15. (x)"),
     "affinity", "remark", "taskset"},
    {INFO("a:1:1 [0]", "P2P from the GPU of rank 0 to the GPU of rank 1 is broken: writes get lost, as by an IOMMU"),
     "gpu_path", "costs", "iommu=pt"},
    {INFO("a:1:1 [0]", "P2P from the GPU of rank 0 to the GPU of rank 1 is not there: the driver gives no access"),
     "gpu_path", "costs", "nvidia-smi topo"},
    {INFO("a:1:1 [0]", "the GPUs of ranks 0 and 1, and all others, use no P2P: NCCL_P2P_DISABLE is set"), "gpu_p2p_off",
     "costs", "unset NCCL_P2P_DISABLE"},
};

static void findings_weigh_what_they_cost(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, weight_cases)
    {
        struct kl_log log = read_text(c->text);
        struct kl_log_findings f;

        assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
        expect_case(c->text, f.n > 0);
        expect_case(c->text, !strcmp(kl_log_finding_name(&f.finding[0]), c->name));
        expect_case(c->text, !strcmp(kl_log_weight_name(f.finding[0].weight), c->weight));
        char remedy[1024];
        struct kl_text r = kl_text_in(remedy, sizeof remedy);

        kl_log_finding_remedy(&log, &f.finding[0], &r);
        expect_case(c->text, strstr(remedy, c->remedy) != NULL);
        kl_log_findings_fini(&f);
        kl_log_fini(&log);
    }
}

/* ---- many of everything ---- */

static char *repeat(int n, void (*line)(int i, struct kl_text *t))
{
    size_t size = 256 * (size_t)n + 1;
    char *text = malloc(size);

    assert_non_null(text);
    struct kl_text t = kl_text_in(text, size);

    for (int i = 0; i < n; i++) line(i, &t);
    assert_false(t.cut);
    return text;
}

/* The ranks of 1500 hosts, in an order that mixes them. */
enum { MANY = 12000 };

static void rank_line(int i, struct kl_text *t)
{
    int rank = i * 7 % MANY;

    kl_text_add(t,
                "host%d:%d:1 [%d] NCCL INFO comm 0x1 rank %d nRanks %d nNodes %d localRanks 8 localRank %d MNNVL 0\n"
                "host%d:%d:1 [%d] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB ; OOB eth0:1<0>\n",
                rank / 8, 100 + rank % 8, rank % 8, rank, MANY, MANY / 8, rank % 8, rank / 8, 100 + rank % 8, rank % 8);
}

static void ranks_by_the_thousands_are_one_communicator(void **state)
{
    char *text = repeat(MANY, rank_line);
    struct kl_log log = read_text(text);
    struct kl_log_findings f;

    (void)state;
    assert_int_equal(log.norigin, MANY);
    assert_int_equal(log.ncomm, 1);
    assert_int_equal(log.comm[0].seen, MANY);
    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    assert_int_equal(f.n, 0);
    assert_false(log.full);
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
    free(text);
}

static void setting_lines(int i, struct kl_text *t)
{
    kl_text_add(t, "a:1:1 [0] NCCL INFO NCCL_SET_%c%c set by environment to 1\n", 'A' + i / 26, 'A' + i % 26);
    kl_text_add(t, "b:1:1 [0] NCCL INFO NCCL_SET_%c%c set by environment to 2\n", 'A' + i / 26, 'A' + i % 26);
}

static void every_difference_has_its_text(void **state)
{
    char *text = repeat(200, setting_lines);
    struct kl_log log = read_text(text);
    struct kl_log_findings f;

    (void)state;
    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    assert_int_equal(f.n, 200);
    for (int i = 0; i < f.n; i++) assert_string_equal(f.finding[i].other, "1 on a:1 [0], 2 on b:1 [0]");
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
    free(text);
}

static void word_lines(int i, struct kl_text *t)
{
    kl_text_add(t, "a:1:1 [0] x.cc:1 NCCL WARN never seen %c%c%c\n", 'a' + i / 676, 'a' + i / 26 % 26, 'a' + i % 26);
}

static void what_is_too_much_is_told(void **state)
{
    char *text = repeat(5000, word_lines);
    struct kl_log log = read_text(text);
    struct kl_log_findings f;

    (void)state;
    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    assert_int_equal(f.n + f.dropped, 5000);
    assert_true(f.dropped > 0);
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
    free(text);
}

static void the_same_warning_is_one_finding(void **state)
{
    struct kl_log log = read_text("a:1:1 [0] x.cc:1 NCCL WARN peer 10.0.0.1<4711> said 12\n"
                                  "b:1:1 [0] x.cc:1 NCCL WARN something else\n"
                                  "c:1:1 [0] x.cc:1 NCCL WARN peer 10.0.0.22<5> said 130\n");
    struct kl_log_findings f;

    (void)state;
    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    assert_int_equal(f.n, 2);
    assert_int_equal(f.finding[0].times, 2);
    assert_int_equal(f.finding[0].at.line, 1);
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
}

static void a_warning_without_text_is_shown(void **state)
{
    char text[256];
    struct kl_text t = kl_text_in(text, sizeof text);
    struct kl_log log = read_text("a:1:1 [0] x.cc:1 NCCL WARN \n");
    struct kl_log_findings f;

    (void)state;
    assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
    assert_int_equal(f.n, 1);
    kl_log_finding_text(&f.finding[0], &t);
    assert_non_null(strstr(text, "a warning without text"));
    kl_log_findings_fini(&f);
    kl_log_fini(&log);
}

static void findings_follow_from_lines(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, finding_cases)
    {
        char list[512];

        list_findings(c->text, list, sizeof list);
        if (strcmp(list, c->findings)) fail_msg("\"%s\": found \"%s\" instead of \"%s\"", c->text, list, c->findings);
    }
}

/* ---- the machine, and its plan ---- */

#define LINK_TO "               + NVL[80.0] - GPU/0-"

static const char mesh[] = "h:1:1 [0] NCCL INFO === System : maxBw 80.0 totalBw 80.0 ===\n"
                           "h:2:2 [1] NCCL INFO === System : maxBw 80.0 totalBw 80.0 ===\n"
                           "h:1:1 [0] NCCL INFO CPU/0-0 (1/2/-1)\n"
                           "h:2:2 [1] NCCL INFO CPU/0-0 (1/2/-1)\n"
                           "h:1:1 [0] NCCL INFO + PCI[24.0] - GPU/0-1000 (0)\n"
                           "h:2:2 [1] NCCL INFO + PCI[24.0] - GPU/0-1000 (0)\n"
                           "h:1:1 [0] NCCL INFO " LINK_TO "2000\n"
                           "h:1:1 [0] NCCL INFO + PCI[24.0] - GPU/0-2000 (1)\n"
                           "h:1:1 [0] NCCL INFO " LINK_TO "1000\n"
                           "h:1:1 [0] NCCL INFO ==========================================\n";

static void trees_of_ranks_may_alternate(void **state)
{
    struct kl_log log = read_text(mesh);
    struct kl_log_assumed assumed;
    struct kl_xml *xml;
    int gpus = 0, links = 0;

    (void)state;
    assert_int_equal(log.nsystem, 2);
    assert_true(log.system[0].complete && !log.system[1].complete);
    assert_int_equal(kl_log_system_of(&log, NULL), 0);
    assert_int_equal(kl_log_machine(&log, 0, KL_NCCL_DEFAULT, &xml, &assumed), ncclSuccess);
    for (int e = KL_XML_ROOT; e != KL_XML_NONE; e = kl_xml_walk(xml, KL_XML_ROOT, e)) {
        gpus += !strcmp(kl_xml_tag(xml, e), "gpu");
        if (!strcmp(kl_xml_tag(xml, e), "nvlink")) links += kl_xml_int(xml, e, "count", 0);
    }
    assert_int_equal(gpus, 2);
    assert_int_equal(links, 8);
    kl_xml_free(xml);
    kl_log_fini(&log);
}

static void a_rank_is_no_vendor(void **state)
{
    static const char rank[] = "h:1:1 [0] NCCL INFO === System : maxBw 80.0 totalBw 80.0 ===\n"
                               "h:1:1 [0] NCCL INFO CPU/0-0 (1/2/-1)\n"
                               "h:1:1 [0] NCCL INFO + PCI[24.0] - GPU/0-1000 (1002)\n",
                      vendor[] = "h:1:1 [0] NCCL INFO === System : maxBw 80.0 totalBw 80.0 ===\n"
                                 "h:1:1 [0] NCCL INFO CPU/0-0 (1/2/-1)\n"
                                 "h:1:1 [0] NCCL INFO + PCI[24.0] - PCI/0-1000 (1002147800000000)\n";
    struct kl_log log = read_text(rank);

    (void)state;
    assert_false(log.amd);
    kl_log_fini(&log);
    log = read_text(vendor);
    assert_true(log.amd);
    kl_log_fini(&log);
}

static struct kl_log_compare compared(const char *more, struct kl_log *log)
{
    const struct kl_cluster_request none = {.edits = {.params = &kl_param_registry}};
    struct kl_log_compare c;
    char text[4096];

    snprintf(text, sizeof text, "%sh:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0\n%s",
             mesh, more);
    *log = read_text(text);
    if (kl_log_compare_make(log, &none, &c)) fail_msg("%s", kl_error_text());
    assert_true(c.made && c.from_log);
    return c;
}

static void a_plan_agrees_or_says_where_not(void **state)
{
    struct kl_log log;
    struct kl_log_compare c =
        compared("h:1:1 [0] NCCL INFO NCCL version 2.26.3\nh:1:1 [0] NCCL INFO Channel 00/08 : 0 1\n", &log);

    (void)state;
    assert_string_equal(c.nccl, "2.26.3");
    assert_false(c.other_release);
    assert_int_equal(c.checked[KL_PART_RING], 1);
    assert_int_equal(c.n, 0);
    kl_log_compare_fini(&c);
    kl_log_fini(&log);

    c = compared("h:1:1 [0] NCCL INFO 3 coll channels, 0 collnet channels, 0 nvls channels, 2 p2p channels, 2 p2p "
                 "channels per peer\n"
                 "h:1:1 [0] NCCL INFO NCCL version 2.9.9\n",
                 &log);
    assert_true(c.other_release);
    assert_true(c.n > 0);
    assert_int_equal(c.difference[0].part, KL_PART_CHANNELS);
    assert_int_equal(c.difference[0].have, 3);
    assert_true(c.difference[0].at.line > 0);
    kl_log_compare_fini(&c);
    kl_log_fini(&log);
}

static void settings_of_the_log_count(void **state)
{
    struct kl_log log;
    struct kl_log_compare c = compared("h:1:1 [0] NCCL INFO NCCL_MAX_NCHANNELS set by environment to 2\n"
                                       "h:1:1 [0] NCCL INFO 2 coll channels, 0 collnet channels, 0 nvls channels\n",
                                       &log);

    (void)state;
    assert_int_equal(c.settings, 1);
    assert_int_equal(c.same[KL_PART_CHANNELS], 1);
    kl_log_compare_fini(&c);
    kl_log_fini(&log);
}

static void what_is_asked_for_must_be_a_release(void **state)
{
    struct kl_log log = read_text(two_ranks);
    const struct kl_cluster_request unknown = {.nccl = "new", .edits = {.params = &kl_param_registry}};
    struct kl_log_compare c;

    (void)state;
    assert_int_equal(kl_log_compare_make(&log, &unknown, &c), ncclInvalidArgument);
    assert_non_null(strstr(kl_error_text(), "--nccl new"));
    kl_log_compare_fini(&c);
    kl_log_fini(&log);
}

/* The log names none: then it is the one that the environment asks for. */
static void a_log_without_a_release_follows_that_of_the_process(void **state)
{
    struct kl_log log = read_text("h:1:1 [0] NCCL INFO Channel 00/08 : 0 1\n");

    (void)state;
    assert_int_equal(kl_log_release(&log, kl_log_main(&log)), KL_NCCL_DEFAULT);
    setenv("KOLO_NCCL_VERSION", "2.27.7", 1);
    assert_int_equal(kl_log_release(&log, kl_log_main(&log)), 22707);
    unsetenv("KOLO_NCCL_VERSION");
    kl_log_fini(&log);
}

static void too_few_ranks_are_not_compared(void **state)
{
    struct kl_log log = read_text(two_ranks);
    const struct kl_cluster_request none = {.edits = {.params = &kl_param_registry}};
    struct kl_log_compare c;

    (void)state;
    assert_int_equal(kl_log_compare_make(&log, &none, &c), ncclSuccess);
    assert_false(c.made);
    assert_true(c.why[0] != 0);
    kl_log_compare_fini(&c);
    kl_log_fini(&log);
}

/* Every prefix of a log is a log: it was cut there. */
static void cut_logs_are_read(void **state)
{
    (void)state;
    for (size_t n = 0; n < sizeof two_ranks; n++) {
        struct kl_log log;
        struct kl_log_findings f;

        kl_log_init(&log);
        assert_int_equal(kl_log_add_text(&log, "a.log", two_ranks, n), ncclSuccess);
        assert_int_equal(kl_log_finish(&log), ncclSuccess);
        assert_int_equal(kl_log_findings_make(&log, &f), ncclSuccess);
        kl_log_findings_fini(&f);
        kl_log_fini(&log);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefixes_are_taken_off),
        cmocka_unit_test(torn_lines_are_two),
        cmocka_unit_test(what_is_put_around_lines_is_taken_off),
        cmocka_unit_test(releases_write_the_same_facts),
        cmocka_unit_test(colours_of_a_split_are_communicators),
        cmocka_unit_test(facts_belong_to_ranks),
        cmocka_unit_test(findings_follow_from_lines),
        cmocka_unit_test(findings_weigh_what_they_cost),
        cmocka_unit_test(ranks_by_the_thousands_are_one_communicator),
        cmocka_unit_test(every_difference_has_its_text),
        cmocka_unit_test(what_is_too_much_is_told),
        cmocka_unit_test(the_same_warning_is_one_finding),
        cmocka_unit_test(a_warning_without_text_is_shown),
        cmocka_unit_test(trees_of_ranks_may_alternate),
        cmocka_unit_test(a_rank_is_no_vendor),
        cmocka_unit_test(a_plan_agrees_or_says_where_not),
        cmocka_unit_test(settings_of_the_log_count),
        cmocka_unit_test(what_is_asked_for_must_be_a_release),
        cmocka_unit_test(a_log_without_a_release_follows_that_of_the_process),
        cmocka_unit_test(too_few_ranks_are_not_compared),
        cmocka_unit_test(cut_logs_are_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
