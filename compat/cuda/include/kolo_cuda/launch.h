/* SPDX-License-Identifier: Apache-2.0 */
/** launch.h - calls of translated launches, kernels and variables into the engine. For kolo-nvcc's output only. */
#ifndef KOLO_CUDA_LAUNCH_H
#define KOLO_CUDA_LAUNCH_H

#pragma GCC system_header

#include "abi.h"

#include <type_traits>
#include <utility>

/* The structures of the engine (compat/cuda/engine/engine.h), which is not installed. */
extern "C" {
struct kl_engine_parameter {
    uint32_t offset, bytes;
};
struct kl_engine_kernel {
    const char *name;
    void (*entry)(const void *arguments);
    const struct kl_engine_parameter *parameters;
    uint32_t parameter_count;
    uint32_t max_threads;
    size_t argument_bytes;
    const size_t *shared_bytes;
    uint32_t cluster[3];
};
struct kl_engine_dim {
    uint32_t x, y, z;
};
struct kl_engine_variable {
    void *shadow;
    const char *name;
    size_t bytes;
    int space;
    struct kl_engine_variable *next;
    void *image[1 + 128];
};

KOLO_CUDA_API void __koloRegisterKernel(const void *host_function, const struct kl_engine_kernel *kernel);
KOLO_CUDA_API void __koloUnregisterKernel(const void *host_function, const struct kl_engine_kernel *kernel);
KOLO_CUDA_API void __koloRegisterVariable(struct kl_engine_variable *variable);
KOLO_CUDA_API void __koloUnregisterVariable(struct kl_engine_variable *variable);
KOLO_CUDA_API void *__koloFindImage(struct kl_engine_variable *variable);
KOLO_CUDA_API int __koloPushLaunch(struct kl_engine_dim grid, struct kl_engine_dim block, size_t shared_bytes,
                                   void *stream);
KOLO_CUDA_API void __koloLaunch(const void *host_function, void **arguments);
}

namespace __kolo
{

/** `<<<grid, block, shared, stream>>>`: keep it for the kernel that is called next. 0: call it. */
inline int push(dim3 grid, dim3 block, size_t shared_bytes = 0, cudaStream_t stream = 0)
{
#if defined(CUDA_API_PER_THREAD_DEFAULT_STREAM)
    if (!stream) stream = (cudaStream_t)2;
#endif
    return __koloPushLaunch(kl_engine_dim{grid.x, grid.y, grid.z}, kl_engine_dim{block.x, block.y, block.z},
                            shared_bytes, (void *)stream);
}

template <class T> inline void *address(T &parameter)
{
    return (void *)__builtin_addressof(parameter);
}

/** A parameter's type as in the function's type: a compiler may keep __restrict__ in types that depend on template arguments. */
template <class T> struct parameter_type {
    using type = T;
};
template <class T> struct parameter_type<T *__restrict__> {
    using type = T *;
};
template <class T> struct parameter_type<T *const __restrict__> {
    using type = T *;
};
template <class T> struct parameter_type<T &__restrict__> {
    using type = T &;
};
template <class T> using parameter = typename parameter_type<T>::type;

/** Where the arguments of a function lie in one block, as a structure would have them. */
template <class... P> struct layout {
    static constexpr uint32_t count = sizeof...(P);

    struct table {
        kl_engine_parameter at[count ? count : 1];
        size_t bytes;
    };

    static constexpr table make()
    {
        constexpr size_t sizes[] = {sizeof(P)..., 1}, alignments[] = {alignof(P)..., 1};
        table t{};

        for (uint32_t i = 0; i < count; i++) {
            t.bytes = (t.bytes + alignments[i] - 1) / alignments[i] * alignments[i];
            t.at[i].offset = (uint32_t)t.bytes;
            t.at[i].bytes = (uint32_t)sizes[i];
            t.bytes += sizes[i];
        }
        return t;
    }

    static constexpr table parameters = make();
};

template <auto F> inline const char *kernel_name()
{
    return __PRETTY_FUNCTION__; /* the engine takes the name out of it */
}

/** Bytes of the __shared__ variables in a kernel's own body. */
template <auto F> inline size_t shared_bytes = 0;

/** One of them, the `Which`th: it is counted while the object is loaded. */
template <auto F, size_t Bytes, size_t Alignment, unsigned Which> struct shared_variable {
    struct registration {
        registration()
        {
            shared_bytes<F> = (shared_bytes<F> + Alignment - 1) / Alignment * Alignment + Bytes;
        }
    };

    static inline registration registered;
};

/** The extents of __cluster_dims__, as one number. */
constexpr unsigned cluster(unsigned x, unsigned y = 1, unsigned z = 1)
{
    return x | y << 8 | z << 16;
}

template <auto F, unsigned Bound, unsigned Cluster, class T = decltype(F)> struct kernel;

template <auto F, unsigned Bound, unsigned Cluster, class... P> struct kernel<F, Bound, Cluster, void (*)(P...)> {
    template <size_t... I> static inline void call(const char *block, std::index_sequence<I...>)
    {
        F(*reinterpret_cast<const std::remove_reference_t<P> *>(block + layout<P...>::parameters.at[I].offset)...);
    }

    static void entry(const void *arguments)
    {
        call(static_cast<const char *>(arguments), std::index_sequence_for<P...>{});
    }

    struct registration {
        kl_engine_kernel kernel;

        registration()
            : kernel{kernel_name<F>(),
                     entry,
                     layout<P...>::parameters.at,
                     sizeof...(P),
                     Bound,
                     layout<P...>::parameters.bytes,
                     &shared_bytes<F>,
                     {Cluster & 255, Cluster >> 8 & 255, Cluster >> 16}}
        {
            __koloRegisterKernel((const void *)F, &kernel);
        }
        ~registration()
        {
            __koloUnregisterKernel((const void *)F, &kernel);
        }
    };

    static inline registration registered;
};

/** Called by the kernel's own function: launch it with the configuration that was kept. */
template <auto F, unsigned Bound, unsigned Cluster = 0> inline void launch(void **arguments)
{
    (void)&kernel<F, Bound, Cluster>::registered;
    __koloLaunch((const void *)F, arguments);
}

enum kind { device, constant, managed };

/** The copies of a variable, by device. */
template <class T> struct variable : kl_engine_variable {
    template <class U> static constexpr size_t size_of(U *)
    {
        return sizeof(U);
    }
    template <class U> static constexpr size_t size_of(U (*)[])
    {
        return 0;
    }

    variable(T *host, const char *host_name, kind where) : kl_engine_variable{}
    {
        shadow = const_cast<void *>(static_cast<const volatile void *>(host));
        name = host_name;
        bytes = size_of(host);
        space = where;
        image[0] = shadow;
        __koloRegisterVariable(this);
    }
    ~variable()
    {
        __koloUnregisterVariable(this);
    }

    T &here() const
    {
        return *static_cast<T *>(image[__koloImage]);
    }

    /** For one that may have come since the grid was begun: a static variable of a function. */
    T &found()
    {
        void *at = __atomic_load_n(&image[__koloImage], __ATOMIC_ACQUIRE);

        return *static_cast<T *>(at ? at : __koloFindImage(this));
    }
};

} // namespace __kolo

#endif
