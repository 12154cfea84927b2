/* SPDX-License-Identifier: Apache-2.0 */
/** faults.cuh - errors of kernels, each in a process of its own: the code, and the words on stderr. */
#ifndef KERNELS_FAULTS_CUH
#define KERNELS_FAULTS_CUH

#include "check.h"

#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

/** The work before fails for good. */
static inline int fails_with(cudaError_t code)
{
    int *p = nullptr;
    cudaError_t error = cudaDeviceSynchronize();

    EXPECT(error == code);
    EXPECT(cudaDeviceSynchronize() == code && cudaGetLastError() == code); /* it stays */
    EXPECT(cudaMalloc((void **)&p, 4) == code);
    return 0;
}

/** Run `act` in a child; its exit status must be 0, and its stderr must contain all of `words`, which | separates. */
static inline void child(const char *name, const std::function<int()> &act, const char *words)
{
    int ends[2], status = -1;
    std::string said;
    char chunk[512];
    ssize_t n;
    pid_t pid;

    std::fflush(stdout);
    EXPECT(pipe(ends) == 0);
    pid = fork();
    if (pid == 0) {
        dup2(ends[1], 2);
        dup2(ends[1], 1);
        int rc = act();
        std::fflush(stdout);
        _exit(rc);
    }
    close(ends[1]);
    while ((n = read(ends[0], chunk, sizeof chunk)) > 0) said.append(chunk, (size_t)n);
    close(ends[0]);
    EXPECT(waitpid(pid, &status, 0) == pid);
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (std::string rest = words; good && !rest.empty();) {
        size_t bar = rest.find('|');

        good = said.find(rest.substr(0, bar)) != std::string::npos;
        rest = bar == std::string::npos ? "" : rest.substr(bar + 1);
    }
    if (good) return;
    std::fprintf(stderr, "%s: status %x, expected \"%s\", said:\n%s\n", name, status, words, said.c_str());
    std::exit(1);
}

#endif
