/* SPDX-License-Identifier: Apache-2.0 */
/**
 * engine.h - runs CUDA kernels on CPUs: the blocks of a grid are divided among cores, the threads of a block are a loop, and
 * fibres from the first barrier on.
 *
 * Objects of kolo-nvcc register their kernels and variables here while they are loaded, before main and before the runtime is
 * initialised. The runtime finds them by the address of the host function or variable, packs the arguments, and runs the grid
 * when its stream gets there.
 *
 * Errors: codes of cudaError_t. Errors in a kernel are written to stderr, once for a grid, with kernel, block and thread.
 * Threads: all functions may be called from any thread at any time.
 */
#ifndef KL_CUDA_ENGINE_H
#define KL_CUDA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Devices that may have variables of their own. */
#define KL_ENGINE_DEVICES 128

/** Where an argument lies in the block of arguments, in bytes. */
struct kl_engine_parameter {
    uint32_t offset, bytes;
};

/** A kernel as its translation unit registers it. Constant; lives as long as the code. */
struct kl_engine_kernel {
    const char *name;                     /**< its source name, for messages */
    void (*entry)(const void *arguments); /**< one thread of it, with the block of arguments */
    const struct kl_engine_parameter *parameters;
    uint32_t parameter_count;
    uint32_t max_threads;       /**< of a block, by __launch_bounds__; 0: unset */
    size_t argument_bytes;      /**< of the block of arguments, which is aligned to 16 or more */
    const size_t *shared_bytes; /**< bytes of its __shared__ variables; NULL: not known */
    uint32_t cluster[3];        /**< by __cluster_dims__; 0: unset */
};

/** Extents of a grid or a block, as dim3. */
struct kl_engine_dim {
    uint32_t x, y, z;
};

/** The description of a grid. */
struct kl_engine_launch {
    const struct kl_engine_kernel *kernel;
    struct kl_engine_dim grid, block;
    struct kl_engine_dim cluster; /**< blocks of it that run together; 0: no clusters. It divides the grid */
    size_t shared_bytes;          /**< dynamic shared memory of a block */
    const void *arguments;        /**< packed by kl_engine_pack; read until the grid is done */
    int device;                   /**< it uses this device's variables; below KL_ENGINE_DEVICES */
    bool cooperative;             /**< all blocks live at once, and may wait for each other */

    /** Called before and after each block, by the thread that runs it; NULL: nothing is. */
    void (*enter)(const struct kl_engine_launch *launch), (*leave)(const struct kl_engine_launch *launch);

    /** Why an access to an address was a fault, until the thread's next call; NULL: no memory is there. NULL: nothing knows. */
    const char *(*explain)(const void *address);
};

/**
 * Run a whole grid and return when it is done. May block, and calls the kernel in this thread and in others.
 * Errors: 0; 2 no memory for stacks; 9 extents or shared memory that no device has; 700 an access to memory that is not there; 710 an
 * assertion; 715 an illegal instruction; 719 a trap, or a deadlock of a block's threads.
 */
int kl_engine_run(const struct kl_engine_launch *launch);

/**
 * Called in a kernel: run this grid, on the kernel's device, when the block of the calling thread has ended; with `tail` when its grid has,
 * and all that it launched. The grid of the caller is done when these are. Arguments are copied.
 * Errors, of which the first of a block is written to stderr: 0; 1; 2; 9; 65 launches nest deeper than 24; 701.
 */
int kl_engine_launch_child(const struct kl_engine_launch *launch, void *const *arguments, bool tail);

/** The last error of functions that the running block called, which they keep here; NULL outside of kernels. */
int *kl_engine_last_error(void);

/** The kernel behind the address of a host function, NULL if there is none. */
const struct kl_engine_kernel *kl_engine_find_kernel(const void *host_function);

/** Copy arguments, given by their addresses as in cudaLaunchKernel, into a block of kernel->argument_bytes bytes. */
void kl_engine_pack(const struct kl_engine_kernel *kernel, void *const *arguments, void *block);

enum kl_engine_space { KL_ENGINE_DEVICE = 0, KL_ENGINE_CONSTANT = 1, KL_ENGINE_MANAGED = 2 };

/**
 * A variable of the device: host code names its shadow, which holds the initial value. image[0] is the shadow, image[1 + d] the
 * copy of device d, NULL until d needs it. Each translation unit that names the variable has one of these.
 */
struct kl_engine_variable {
    void *shadow;
    const char *name;
    size_t bytes; /**< 0: declared here with no size, defined elsewhere */
    enum kl_engine_space space;
    struct kl_engine_variable *next; /**< the registry's */
    void *image[1 + KL_ENGINE_DEVICES];
};

/** The copy of a variable that belongs to a device, made if it is not there yet. Errors: 13 no such variable, 2 no memory, 101. */
int kl_engine_find_variable(const void *shadow, int device, void **address, size_t *bytes, enum kl_engine_space *space);

/** The variables of a device have their initial values again (cudaDeviceReset). No grid may run on the device. */
void kl_engine_reset_variables(int device);

/**
 * Called in a kernel for an access that cannot be: end its grid with an error, and a sentence with the address. Outside of kernels
 * it ends the process.
 */
void kl_engine_refuse_access(const void *address, int error, const char *why) __attribute__((noreturn));

/** Is the calling thread running a kernel? Functions of the runtime that are for the host only refuse then. */
bool kl_engine_inside(void);

/** Bytes of stack that a thread of a kernel has, 256 KiB unless set (cudaDeviceSetLimit); rounded up to pages, at least 64 KiB. */
size_t kl_engine_stack_bytes(void);
void kl_engine_set_stack_bytes(size_t bytes);

/* Called by kolo-nvcc's objects: exported by the runtime's library under these names. */

#define KL_ENGINE_EXPORT __attribute__((visibility("default")))

KL_ENGINE_EXPORT void __koloRegisterKernel(const void *host_function, const struct kl_engine_kernel *kernel);
KL_ENGINE_EXPORT void __koloRegisterVariable(struct kl_engine_variable *variable);

/** The object that holds them is unloaded. */
KL_ENGINE_EXPORT void __koloUnregisterKernel(const void *host_function, const struct kl_engine_kernel *kernel);
KL_ENGINE_EXPORT void __koloUnregisterVariable(struct kl_engine_variable *variable);

/** The copy of a variable that the running kernel sees, of one that was registered since its grid was begun. A trap if there is no memory. */
KL_ENGINE_EXPORT void *__koloFindImage(struct kl_engine_variable *variable);

/** Keep the configuration of a launch for the kernel that is called next in this thread. Returns 0: call it. */
/** Take the configuration that was pushed last. 0: there is none. */
int kl_engine_pop_launch(struct kl_engine_dim *grid, struct kl_engine_dim *block, size_t *shared_bytes, void **stream);
KL_ENGINE_EXPORT int __koloPushLaunch(struct kl_engine_dim grid, struct kl_engine_dim block, size_t shared_bytes,
                                      void *stream);

/** The kernel was called: take the configuration and hand the addresses of the arguments to cudaLaunchKernel. */
KL_ENGINE_EXPORT void __koloLaunch(const void *host_function, void **arguments);

#ifdef __cplusplus
}
#endif

#endif
