/* SPDX-License-Identifier: Apache-2.0 */
#include "logs/log_make.h"

#include <stdlib.h>
#include <string.h>

/* ---- "Using network IB" ---- */

static bool read_network(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "Using network ");

    if (!at || !*at) return false;
    int m = kl_log_planning(log, origin, line->at);

    if (m >= 0) log->member[m].network = kl_log_keep(log, at, strlen(at));
    return true;
}

/* ---- "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>" ---- */

static void add_nic(struct kl_log *log, int origin, const struct kl_log_line *line, int dev, const char *at, bool ib)
{
    size_t n = strcspn(at, ": []");
    struct kl_log_nic *nic = n ? KL_LOG_NEW(log, nic) : NULL;

    if (!nic) return;
    *nic = (struct kl_log_nic){.at = line->at, .origin = origin, .dev = dev, .fabric = KL_LOG_ETHERNET};
    nic->name = kl_log_keep(log, at, n);
    if (!ib) return;
    const char *port = at + n + (at[n] == ':');
    int number;

    nic->fabric = KL_LOG_IB;
    kl_log_int(&port, &number);
    if (!strncmp(port, "/RoCE", 5)) nic->fabric = KL_LOG_ROCE;
}

static bool read_nics(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *ib = kl_log_after(line->text, "NET/IB : Using "),
               *socket = kl_log_after(line->text, "NET/Socket : Using ");
    const char *at = ib ? ib : socket, *end = at ? strstr(at, "OOB") : NULL;
    int dev;

    if (!at) return false;
    for (at = strchr(at, '['); at && (!end || at < end); at = strchr(at, '[')) {
        at++;
        if (!kl_log_int(&at, &dev) || *at != ']') continue;
        add_nic(log, origin, line, dev, ++at, ib != NULL);
    }
    return true;
}

/* ---- GPUDirect ---- */

/* "GPU Direct RDMA Disabled for HCA 0 'mlx5_0'" */
static bool read_driver(const char *at, struct kl_log_gdr *g, struct kl_log *log)
{
    const char *name = kl_log_after(at, " for HCA ");

    if (!name) return false;
    kl_log_int(&name, &g->nic);
    name += strcspn(name, "'");
    if (*name == '\'') g->name = kl_log_keep(log, name + 1, strcspn(name + 1, "'"));
    return true;
}

/* "... for GPU 81000 / HCA 0 (distance 6 > 4)", "... for GPU/0-806000 (rank 2) - NET/0-0 (distance 6 <= 6, ...)" */
static bool read_distance(const char *at, struct kl_log_gdr *g, struct kl_log *log)
{
    const char *gpu = kl_log_after(at, " for GPU"), *distance = kl_log_after(at, "distance "), *nic;

    if (!gpu || !distance) return false;
    gpu += strspn(gpu, " /");
    g->gpu = kl_log_keep(log, gpu, strcspn(gpu, " "));
    g->by_gpu = true;
    nic = kl_log_after(gpu, "HCA ");
    if (!nic) nic = kl_log_after(gpu, "NET/");
    if (nic) {
        const char *id = nic + strcspn(nic, " -");

        if (*id == '-') nic = id + 1;
        kl_log_int(&nic, &g->nic);
    }
    kl_log_int(&distance, &g->distance);
    distance += strcspn(distance, "0123456789,)");
    kl_log_int(&distance, &g->level);
    return true;
}

static bool read_gdr(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    const char *at = kl_log_after(line->text, "GPU Direct RDMA ");
    struct kl_log_gdr g = {
        .at = line->at, .origin = origin, .nic = -1, .distance = -1, .level = -1, .name = "", .gpu = ""};

    if (!at || (strncmp(at, "Enabled", 7) && strncmp(at, "Disabled", 8))) return false;
    g.enabled = *at == 'E';
    if (!read_driver(at, &g, log) && !read_distance(at, &g, log)) return false;
    struct kl_log_gdr *kept = KL_LOG_NEW(log, gdr);

    if (kept) *kept = g;
    return true;
}

bool kl_log_read_net(struct kl_log *log, int origin, const struct kl_log_line *line)
{
    return read_network(log, origin, line) || read_nics(log, origin, line) || read_gdr(log, origin, line);
}
