/* SPDX-License-Identifier: Apache-2.0 */
/* Parameters of the socket net: speeds by interface, and the resulting numbers of sockets and threads. */
#include "net/socket/config.h"

#include "base/error.h"
#include "tests/kolo_test.h"

static const struct {
    const char *speeds, *name;
    int mbps;
} speed_cases[] = {
    {"", "eth0", 0},
    {"eth0:25000", "eth0", 25000},
    {"eth0:25000", "eth1", 0},
    {"eth0:25000", "eth01", 0},
    {"eth0:25000,eth1:100000", "eth1", 100000},
    {"40000", "anything", 40000},
    {"40000,eth1:1000", "eth1", 1000},
    {"eth1:1000,40000", "eth2", 40000},
    {"eth0:1,eth0:2", "eth0", 1},
    {"eth0:25000,", "eth0", 25000},
    {"0x100", "eth0", 256},
    {"eth0", "eth0", 0},            /* no speed */
    {"eth0:", "eth0", 0},           /* none either */
    {"eth0:fast", "eth0", 0},       /* none either */
    {"eth0:0", "eth0", 0},          /* zero */
    {"eth0:-5", "eth0", 0},         /* negative */
    {"eth0:3000000000", "eth0", 0}, /* too large */
    {":100", "eth0", 0},            /* without a name */
    {"eth0:100,oops", "eth0", 0},   /* not a list */
    {"a-much-too-long-name:1", "eth0", 0},
};

static void speeds_are_understood(void **state)
{
    (void)state;
    kl_error_quiet(1);
    FOR_EACH_CASE(c, speed_cases)
    {
        expect_case(c->speeds, kl_socket_speed_told(c->speeds, c->name) == c->mbps);
    }
}

enum { AWS = 0x1d0f, GCP = 0x1ae0, OTHER = 0x15b3 };

static const struct {
    const char *what;
    int threads, sockets;
    unsigned vendor;
    int mbps, want_threads, want_lanes;
} shape_cases[] = {
    {"10 Gb/s", -2, -2, OTHER, 10000, 0, 0},      {"1 Gb/s", -2, -2, 0, 1000, 0, 0},
    {"25 Gb/s", -2, -2, OTHER, 25000, 0, 3},      {"40 Gb/s", -2, -2, OTHER, 40000, 0, 4},
    {"800 Gb/s", -2, -2, OTHER, 800000, 0, 8},    {"AWS", -2, -2, AWS, 100000, 2, 16},
    {"GCP", -2, -2, GCP, 100000, 4, 4},           {"one socket", 0, 1, OTHER, 100000, 0, 0},
    {"sockets only", -2, 4, OTHER, 100000, 0, 4}, {"sockets only, AWS", -2, 4, AWS, 100000, 2, 8},
    {"threads only", 3, -2, OTHER, 10000, 3, 3},  {"no threads", 0, -2, AWS, 100000, 0, 0},
    {"one thread", 1, 1, OTHER, 10000, 1, 1},     {"64 at most", 16, 64, OTHER, 10000, 16, 64},
    {"64 of one", 0, 64, OTHER, 10000, 0, 64},    {"not more than 64", 3, 64, OTHER, 10000, 3, 63},
};

static void shapes_follow(void **state)
{
    (void)state;
    FOR_EACH_CASE(c, shape_cases)
    {
        const struct kl_socket_params params = {.threads = c->threads, .sockets_per_thread = c->sockets};
        struct kl_socket_shape shape = kl_socket_shape(&params, c->vendor, c->mbps);

        expect_case(c->what, shape.threads == c->want_threads);
        expect_case(c->what, shape.lanes == c->want_lanes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speeds_are_understood),
        cmocka_unit_test(shapes_follow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
