/* SPDX-License-Identifier: Apache-2.0 */
#include "os/netdev.h"

#include "os/sysfs.h"

#include <dirent.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEPTH = 8 }; /* a VLAN on a bond on ... : the kernel nests no deeper */

/* Directory of an interface; false: its name is too long to be one. */
static bool dir_of(const char *sysfs, const char *name, char dir[PATH_MAX])
{
    return snprintf(dir, PATH_MAX, "%s/class/net/%s", sysfs, name) < PATH_MAX;
}

static bool has(const char *dir, const char *file)
{
    char path[PATH_MAX], real[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", dir, file) < (int)sizeof path && realpath(path, real);
}

static int number(const char *dir, const char *file)
{
    char text[32];

    return kl_sysfs_text(dir, file, text, sizeof text) ? (int)strtol(text, NULL, 10) : -1;
}

/* ---- speed ---- */

static int speed_of(const char *sysfs, const char *name, int depth);

/* Slaves that carry traffic: the active one of active-backup, else all that are up. */
static int speed_of_bond(const char *sysfs, const char *dir, int depth)
{
    char slaves[4096], active[IF_NAMESIZE], *rest = slaves;
    int sum = 0;

    if (kl_sysfs_text(dir, "bonding/active_slave", active, sizeof active)) return speed_of(sysfs, active, depth - 1);
    if (!kl_sysfs_text(dir, "bonding/slaves", slaves, sizeof slaves)) return 0;
    for (const char *slave; (slave = strsep(&rest, " "));) {
        char below[PATH_MAX], state[32];

        if (!*slave || !dir_of(sysfs, slave, below)) continue;
        if (kl_sysfs_text(below, "operstate", state, sizeof state) && strcmp(state, "down") != 0)
            sum += speed_of(sysfs, slave, depth - 1);
    }
    return sum;
}

/* Devices below are links lower_<name>. */
static int speed_below(const char *sysfs, const char *dir, int depth)
{
    DIR *entries = opendir(dir);
    int fastest = 0;

    if (!entries) return 0;
    for (const struct dirent *e; (e = readdir(entries));) {
        if (strncmp(e->d_name, "lower_", 6) != 0) continue;
        int speed = speed_of(sysfs, e->d_name + 6, depth - 1);
        if (speed > fastest) fastest = speed;
    }
    closedir(entries);
    return fastest;
}

static int speed_of(const char *sysfs, const char *name, int depth)
{
    char dir[PATH_MAX];

    if (!depth || !dir_of(sysfs, name, dir)) return 0;
    int told = number(dir, "speed");
    if (told > 0) return told;
    return has(dir, "bonding") ? speed_of_bond(sysfs, dir, depth) : speed_below(sysfs, dir, depth);
}

int kl_netdev_speed(const char *sysfs, const char *name)
{
    return speed_of(sysfs, name, DEPTH);
}

/* ---- position ---- */

bool kl_netdev_device(const char *sysfs, const char *name, char path[PATH_MAX])
{
    char dir[PATH_MAX], device[PATH_MAX];

    if (!dir_of(sysfs, name, dir)) return false;
    return snprintf(device, sizeof device, "%s/device", dir) < (int)sizeof device && realpath(device, path);
}

/* ---- role ---- */

/* Names that container engines and tools use. */
static enum kl_netdev_role role_by_name(const char *name)
{
    static const struct {
        const char *prefix;
        enum kl_netdev_role role;
    } names[] = {{"docker", KL_NETDEV_CONTAINER}, {"veth", KL_NETDEV_CONTAINER},  {"cni", KL_NETDEV_CONTAINER},
                 {"cali", KL_NETDEV_CONTAINER},   {"lxcbr", KL_NETDEV_CONTAINER}, {"lxd", KL_NETDEV_CONTAINER},
                 {"podman", KL_NETDEV_CONTAINER}, {"kube", KL_NETDEV_CONTAINER},  {"vnet", KL_NETDEV_CONTAINER},
                 {"br-", KL_NETDEV_BRIDGE},       {"virbr", KL_NETDEV_BRIDGE},    {"flannel", KL_NETDEV_TUNNEL},
                 {"vxlan", KL_NETDEV_TUNNEL},     {"tun", KL_NETDEV_TUNNEL},      {"tap", KL_NETDEV_TUNNEL},
                 {"wg", KL_NETDEV_TUNNEL}};

    if (!strcmp(name, "lo")) return KL_NETDEV_LOOPBACK;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (!strncmp(name, names[i].prefix, strlen(names[i].prefix))) return names[i].role;
    return KL_NETDEV_NIC;
}

static bool is_tunnel(const char *dir)
{
    static const int types[] = {ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, ARPHRD_NONE, ARPHRD_PPP};
    static const char *const kinds[] = {"DEVTYPE=vxlan", "DEVTYPE=geneve", "DEVTYPE=gretap", "DEVTYPE=wireguard",
                                        "DEVTYPE=ip6gretap"};
    char text[1024];
    int type = number(dir, "type");

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (type == types[i]) return true;
    (void)kl_sysfs_text(dir, "uevent", text, sizeof text);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strstr(text, kinds[i])) return true;
    return has(dir, "tun_flags");
}

enum kl_netdev_role kl_netdev_role(const char *sysfs, const char *name, char master[KL_NETDEV_TEXT])
{
    enum kl_netdev_role named = role_by_name(name);
    char dir[PATH_MAX], above[KL_NETDEV_TEXT] = "";

    if (dir_of(sysfs, name, dir)) kl_sysfs_link_name(dir, "master", above, sizeof above);
    if (master) memcpy(master, above, sizeof above);
    if (named != KL_NETDEV_NIC || !dir_of(sysfs, name, dir)) return named;
    if (number(dir, "type") == ARPHRD_LOOPBACK) return KL_NETDEV_LOOPBACK;
    if (has(dir, "bridge")) return KL_NETDEV_BRIDGE;
    if (*above) return KL_NETDEV_PORT;
    return is_tunnel(dir) ? KL_NETDEV_TUNNEL : KL_NETDEV_NIC;
}
