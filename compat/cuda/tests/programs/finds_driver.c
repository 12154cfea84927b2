/* SPDX-License-Identifier: Apache-2.0 */
/* The driver and the runtime found by dlopen: nothing of CUDA is linked. */
#include <dlfcn.h>
#include <stdio.h>

static int count_by(const char *library, const char *start, const char *count)
{
    void *handle = dlopen(library, RTLD_NOW);
    int (*init)(unsigned) = handle && start ? (int (*)(unsigned))dlsym(handle, start) : NULL;
    int (*number)(int *) = handle ? (int (*)(int *))dlsym(handle, count) : NULL;
    int n = -1;

    if (!handle) printf("%s\n", dlerror());
    if (init && init(0)) return -1;
    return number && !number(&n) ? n : -1;
}

int main(void)
{
    int devices = count_by("libcuda.so.1", "cuInit", "cuDeviceGetCount");

    printf("devices %d\n", devices);
    return devices < 1 || count_by("libcudart.so.13", NULL, "cudaGetDeviceCount") != devices;
}
