/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/kolo/plugin/record.h"

#include "net/plugin/library.h"
#include "tools/kolo/cmd.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef KOLO_LIBDIR
#define KOLO_LIBDIR "lib" /* where libraries are installed, from the prefix */
#endif

/* The recorder of a version. In a build tree it is below the tool, in an installed one beside its folder. */
static bool find_recorder(int version, char path[PATH_MAX])
{
    static const char *const places[] = {"plugins", "../" KOLO_LIBDIR "/kolo/plugins"};
    char folder[PATH_MAX], name[PATH_MAX];
    const ssize_t n = readlink("/proc/self/exe", folder, sizeof folder - 1);

    folder[n > 0 ? n : 0] = 0;
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++)
        if (snprintf(name, sizeof name, "%s/%s/libnccl-net-record%d.so", folder, places[i], version) <
                (int)sizeof name &&
            realpath(name, path))
            return true;
    return false;
}

/* The version of the plugin that is taken, without a call of it; 0: it is not usable. */
static int version_of(const char *file)
{
    struct kl_net_library l;

    if (!kl_net_library_open(&l, file)) return 0;
    const int version = l.adapter->version;
    kl_net_library_close(&l);
    return version;
}

static int refuse(const char *about, const char *why)
{
    fprintf(stderr, "kolo plugin: %s: %s\n", about, why);
    return EXIT_PROBLEM;
}

int kl_plugin_record(const char *file, const char *to, char **command)
{
    char recorder[PATH_MAX], path[PATH_MAX], calls[PATH_MAX], here[PATH_MAX];
    const int version = version_of(file);

    if (!version) return refuse(file, "no net plugin that can be used; `kolo plugin check` says why");
    if (!realpath(file, path)) snprintf(path, sizeof path, "%s", file);
    if (!find_recorder(version, recorder))
        return refuse("libnccl-net-record.so", "it is not installed beside this tool");
    if (!getcwd(here, sizeof here)) return refuse("the current folder", strerror(errno));
    if (snprintf(calls, sizeof calls, "%s%s%s", *to == '/' ? "" : here, *to == '/' ? "" : "/", to) >= (int)sizeof calls)
        return refuse(to, strerror(ENAMETOOLONG));
    if (!command[0]) {
        printf("export NCCL_NET_PLUGIN=%s\nexport NET_RECORD_PLUGIN=%s\nexport NET_RECORD_FILE=%s\n", recorder, path,
               calls);
        return EXIT_OK;
    }
    if (setenv("NCCL_NET_PLUGIN", recorder, 1) || setenv("NET_RECORD_PLUGIN", path, 1) ||
        setenv("NET_RECORD_FILE", calls, 1))
        return refuse("the environment", strerror(errno));
    execvp(command[0], command);
    return refuse(command[0], strerror(errno));
}
