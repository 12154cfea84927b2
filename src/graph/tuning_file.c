/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/tuning_file.h"

#include "base/error.h"
#include "base/filelimit.h"
#include "base/hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* ---- which machine, which file ---- */

/* The model name of the first CPU in /proc/cpuinfo, without its line end. */
static bool cpu_model(char *model, size_t room)
{
    FILE *file = fopen("/proc/cpuinfo", "re");
    char line[256];
    bool found = false;

    if (!file) return false;
    while (!found && fgets(line, sizeof line, file)) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) || !colon) continue;
        colon += 1 + strspn(colon + 1, " \t");
        colon[strcspn(colon, "\n")] = 0;
        snprintf(model, room, "%s", colon);
        found = true;
    }
    fclose(file);
    return found;
}

static void machine_key(char machine[KL_MEASURED_MACHINE])
{
    char model[KL_MEASURED_MACHINE - 32];
    struct utsname system;

    if (!cpu_model(model, sizeof model))
        snprintf(model, sizeof model, "%s", uname(&system) ? "unknown" : system.machine);
    snprintf(machine, KL_MEASURED_MACHINE, "%s, %ld CPUs", model, sysconf(_SC_NPROCESSORS_ONLN));
}

static bool cache_folder(char folder[KL_TUNING_PATH])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache && cache[0] == '/')
        snprintf(folder, KL_TUNING_PATH, "%s/kolo", cache);
    else if (home && home[0] == '/')
        snprintf(folder, KL_TUNING_PATH, "%s/.cache/kolo", home);
    else
        return false;
    return true;
}

ncclResult_t kl_tuning_file_path(const char *setting, char path[KL_TUNING_PATH])
{
    char folder[KL_TUNING_PATH], machine[KL_MEASURED_MACHINE];

    if (!strcmp(setting, "none")) return KL_FAIL(ncclInvalidUsage, "KOLO_TUNING=none: no measured times are kept");
    if (strlen(setting) >= KL_TUNING_PATH) return KL_FAIL(ncclInvalidUsage, "KOLO_TUNING is too long for a path");
    if (*setting) return strcpy(path, setting), ncclSuccess;
    if (!cache_folder(folder))
        return KL_FAIL(ncclInvalidUsage,
                       "there is no folder for measured times: set XDG_CACHE_HOME, HOME or KOLO_TUNING");
    machine_key(machine);
    uint64_t hash = kl_hash_add(KL_HASH_START, machine, strlen(machine));
    if (snprintf(path, KL_TUNING_PATH, "%s/tuning-%016llx", folder, (unsigned long long)hash) >= KL_TUNING_PATH)
        return KL_FAIL(ncclInvalidUsage, "%s is too long for a folder of measured times", folder);
    return ncclSuccess;
}

/* ---- reading ---- */

ncclResult_t kl_tuning_file_read(const char *path, struct kl_tuning_measured *m)
{
    char text[KL_MEASURED_TEXT], machine[KL_MEASURED_MACHINE];
    const char *why;
    FILE *file = fopen(path, "re");

    if (!file) return KL_FAIL_ERRNO("%s", path);
    size_t bytes = fread(text, 1, sizeof text, file);
    ncclResult_t rc = ferror(file) ? KL_FAIL_ERRNO("%s", path) : ncclSuccess;
    fclose(file);
    KL_TRY(rc);
    machine_key(machine);
    if (!kl_tuning_measured_parse(text, bytes, machine, m, &why)) return ncclSuccess;
    return KL_FAIL(ncclInvalidUsage, "%s is not used: %s; `kolo tune` measures anew", path, why);
}

static bool read_quietly(const char *setting, struct kl_tuning_measured *m)
{
    char path[KL_TUNING_PATH], folder[KL_TUNING_PATH];
    struct stat st;

    /* Most machines have no such folder: skip identifying the machine. */
    if (!strcmp(setting, "none") || (!*setting && (!cache_folder(folder) || stat(folder, &st)))) return false;
    int quiet = kl_error_quiet(1);
    bool there = !kl_tuning_file_path(setting, path) && !stat(path, &st) && S_ISREG(st.st_mode);
    bool good = there && !kl_tuning_file_read(path, m);
    kl_error_quiet(quiet);
    return good;
}

const struct kl_tuning_measured *kl_tuning_file_known(const char *setting)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct kl_tuning_measured measured;
    static bool asked, known;

    pthread_mutex_lock(&lock);
    if (!asked) known = read_quietly(setting, &measured);
    asked = true;
    bool there = known;
    pthread_mutex_unlock(&lock);
    return there ? &measured : NULL;
}

/* ---- writing ---- */

/* The folders of `path` that are missing; only the owner may look into them. */
static ncclResult_t make_folders(const char *path)
{
    char folder[KL_TUNING_PATH];

    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(folder, 0700) && errno != EEXIST) return KL_FAIL_ERRNO("the folder %s", folder);
        *slash = '/';
    }
    return ncclSuccess;
}

/* No sync to the disk: a file that a crash cuts short has no valid checksum. */
static ncclResult_t write_text(const char *path, const char *text, size_t bytes)
{
    FILE *file = fopen(path, "we");

    if (!file) return KL_FAIL_ERRNO("%s", path);
    bool good = fwrite(text, 1, bytes, file) == bytes && !fflush(file);
    ncclResult_t rc = good ? ncclSuccess : KL_FAIL_ERRNO("%s", path);
    if (fclose(file) && !rc) rc = KL_FAIL_ERRNO("%s", path);
    return rc;
}

static void name_beside(const char *path, char beside[KL_TUNING_PATH + 32])
{
    snprintf(beside, KL_TUNING_PATH + 32, "%s.%d", path, getpid());
}

ncclResult_t kl_tuning_file_check(const char *path)
{
    char beside[KL_TUNING_PATH + 32];
    struct stat st;

    if (!stat(path, &st) && S_ISDIR(st.st_mode)) {
        errno = EISDIR;
        return KL_FAIL_ERRNO("%s", path);
    }
    name_beside(path, beside);
    KL_TRY(make_folders(path));
    ncclResult_t rc = write_text(beside, "", 0);
    if (!rc) unlink(beside);
    return rc;
}

ncclResult_t kl_tuning_file_write(const char *path, const struct kl_tuning_measured *m)
{
    char text[KL_MEASURED_TEXT], machine[KL_MEASURED_MACHINE], beside[KL_TUNING_PATH + 32];
    struct kl_filelimit_guard guard;
    ncclResult_t rc;

    machine_key(machine);
    size_t bytes = kl_tuning_measured_print(m, machine, text, sizeof text);
    if (!bytes) return KL_FAIL(ncclInternalError, "the measured times do not fit into %d bytes", KL_MEASURED_TEXT);
    name_beside(path, beside);
    KL_TRY(make_folders(path));
    kl_filelimit_begin(&guard);
    rc = write_text(beside, text, bytes);
    kl_filelimit_end(&guard);
    if (!rc && rename(beside, path)) rc = KL_FAIL_ERRNO("%s", path);
    if (rc) unlink(beside);
    return rc;
}
