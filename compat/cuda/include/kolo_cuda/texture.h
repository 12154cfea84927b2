/* SPDX-License-Identifier: Apache-2.0 */
/**
 * texture.h - textures and surfaces: the object is the address of a description, and a sample is computed from it.
 *
 * Linear filtering has fractions of 8 bits, as GPUs do. Surfaces take x in bytes, and a place outside traps, is clamped or reads 0.
 */
#ifndef KOLO_CUDA_TEXTURE_H
#define KOLO_CUDA_TEXTURE_H

#include <stddef.h>

/** Also the runtime's: kept in memory that kernels read. */
struct koloCudaTexture {
    char *base;
    size_t pitch, slice; /* bytes */
    int size[3];         /* texels; layers are the last, behind 1D a height of 1 */
    int bits, channels;  /* of one texel: bits of each channel */
    int kind;            /* enum cudaChannelFormatKind */
    int address[3], filter, read_normalized, normalized;
    float border[4];
};

#if defined(__KOLO_NVCC__) && defined(__cplusplus)

#pragma GCC system_header

#include "abi.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace __kolo
{

template <class T, class = void> struct texel {
    using type = T;
};
template <class T> struct texel<T, std::void_t<decltype(T::x)>> {
    using type = std::remove_cv_t<decltype(T::x)>;
};

/** The index of a texel by the address mode; -1: the border. */
inline int texture_index(const koloCudaTexture *t, int axis, long i)
{
    long n = t->size[axis];
    int mode = t->address[axis];

    if (i >= 0 && i < n) return (int)i;
    if (mode == 3) return -1;
    if (mode == 0 && t->normalized) return (int)((i % n + n) % n);
    if (mode == 2 && t->normalized) {
        i = (i % (2 * n) + 2 * n) % (2 * n);
        return (int)(i < n ? i : 2 * n - 1 - i);
    }
    return i < 0 ? 0 : (int)(n - 1);
}

inline float half_bits(unsigned h)
{
    int exponent = (int)(h >> 10 & 31), fraction = (int)(h & 0x3ff);
    float value = exponent == 31
                      ? (fraction ? NAN : INFINITY)
                      : std::ldexp((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);

    return h & 0x8000 ? -value : value;
}

/** One channel of a texel, as type C: converted to a number of 0 to 1 (signed: -1) if the texture says so. */
template <class C> inline C texture_channel(const koloCudaTexture *t, const int *at, int channel)
{
    if (channel >= t->channels) return C(0);
    if (at[0] < 0 || at[1] < 0 || at[2] < 0) return (C)t->border[channel];
    const char *p = t->base + (size_t)at[2] * t->slice + (size_t)at[1] * t->pitch +
                    (size_t)at[0] * (size_t)(t->bits / 8 * t->channels) + (size_t)(t->bits / 8 * channel);

    if (t->kind == 2) {
        float value;

        if (t->bits == 16) {
            unsigned short h;
            memcpy(&h, p, 2);
            value = half_bits(h);
        } else {
            memcpy(&value, p, 4);
        }
        return (C)value;
    }
    unsigned raw = 0;
    memcpy(&raw, p, (size_t)t->bits / 8);
    int number = t->kind == 0 && t->bits < 32 ? (int)(raw << (32 - t->bits)) >> (32 - t->bits) : (int)raw;
    if (t->read_normalized && t->bits < 32) {
        float most = (float)((1u << (t->bits - (t->kind == 0))) - 1), value = (float)number / most;
        return (C)(value < -1 ? -1 : value);
    }
    return t->kind == 0 ? (C)number : (C)raw;
}

/** A sample at `x`, of which `axes` are coordinates; `layer` is the last index if it is not negative. */
template <class T> inline T sample(unsigned long long object, int axes, const float *x, int layer)
{
    using C = typename texel<T>::type;
    const koloCudaTexture *t = (const koloCudaTexture *)object;
    const bool linear = t->filter == 1;
    long first[3] = {0, 0, 0};
    float part[3] = {0, 0, 0};
    C result[4] = {};
    int last = layer < 0 ? 0 : layer >= t->size[2] ? t->size[2] - 1 : layer;

    for (int a = 0; a < axes; a++) {
        float place = (t->normalized ? x[a] * (float)t->size[a] : x[a]) - (linear ? 0.5f : 0.0f),
              whole = std::floor(place);

        first[a] = (long)whole;
        part[a] = linear ? std::round((place - whole) * 256.0f) / 256.0f : 0.0f;
    }
    for (unsigned c = 0; c < sizeof(T) / sizeof(C); c++) {
        float sum = 0;

        for (int corner = 0; corner < (linear ? 1 << axes : 1); corner++) {
            int at[3] = {0, 0, last};
            float weight = 1;

            for (int a = 0; a < axes; a++) {
                at[a] = texture_index(t, a, first[a] + (corner >> a & 1));
                weight *= corner >> a & 1 ? part[a] : 1 - part[a];
            }
            if (!linear)
                result[c] = texture_channel<C>(t, at, (int)c);
            else if (weight != 0)
                sum += weight * (float)texture_channel<C>(t, at, (int)c);
        }
        if (linear) result[c] = (C)sum;
    }
    T value;
    memcpy((void *)&value, result, sizeof value);
    return value;
}

/** The bytes of a surface at `x` (bytes), or NULL outside where the mode is zero. */
inline char *surface_place(unsigned long long object, int x, int y, int z, size_t bytes, int mode)
{
    const koloCudaTexture *t = (const koloCudaTexture *)object;
    int at[3] = {x, y, z}, row = t->size[0] * t->channels * t->bits / 8,
        most[3] = {row - (int)bytes, t->size[1] - 1, t->size[2] - 1};

    for (int a = 0; a < 3; a++) {
        if (at[a] >= 0 && at[a] <= most[a]) continue;
        if (mode == 0) return nullptr;
        if (mode == 2) __koloTrap("a surface is accessed outside of its array");
        at[a] = at[a] < 0 ? 0 : most[a];
    }
    return t->base + (size_t)at[2] * t->slice + (size_t)at[1] * t->pitch + (size_t)at[0];
}

template <class T> inline T surface_read(unsigned long long object, int x, int y, int z, int mode)
{
    T value{};
    const char *p = surface_place(object, x, y, z, sizeof(T), mode);

    if (p) memcpy((void *)&value, p, sizeof value);
    return value;
}

template <class T> inline void surface_write(unsigned long long object, T value, int x, int y, int z, int mode)
{
    char *p = surface_place(object, x, y, z, sizeof(T), mode);

    if (p) memcpy(p, (const void *)&value, sizeof value);
}

} // namespace __kolo

template <class T> static inline T tex1Dfetch(cudaTextureObject_t object, int i)
{
    const koloCudaTexture *t = (const koloCudaTexture *)object;
    int at[3] = {i < 0 || i >= t->size[0] ? -1 : i, 0, 0};
    typename __kolo::texel<T>::type channels[4] = {};
    T value;

    for (int c = 0; c < t->channels; c++)
        if (at[0] >= 0) channels[c] = __kolo::texture_channel<typename __kolo::texel<T>::type>(t, at, c);
    memcpy((void *)&value, channels, sizeof value);
    return value;
}

#define KOLO_CUDA_TEXTURE(name, parameters, axes, layer, ...)                                                          \
    template <class T> static inline T name parameters                                                                 \
    {                                                                                                                  \
        const float place[] = {__VA_ARGS__};                                                                           \
                                                                                                                       \
        return __kolo::sample<T>(object, axes, place, layer);                                                          \
    }
KOLO_CUDA_TEXTURE(tex1D, (cudaTextureObject_t object, float x), 1, -1, x)
KOLO_CUDA_TEXTURE(tex2D, (cudaTextureObject_t object, float x, float y), 2, -1, x, y)
KOLO_CUDA_TEXTURE(tex3D, (cudaTextureObject_t object, float x, float y, float z), 3, -1, x, y, z)
KOLO_CUDA_TEXTURE(tex1DLayered, (cudaTextureObject_t object, float x, int layer), 1, layer, x)
KOLO_CUDA_TEXTURE(tex2DLayered, (cudaTextureObject_t object, float x, float y, int layer), 2, layer, x, y)
KOLO_CUDA_TEXTURE(tex1DLod, (cudaTextureObject_t object, float x, float), 1, -1, x)
KOLO_CUDA_TEXTURE(tex2DLod, (cudaTextureObject_t object, float x, float y, float), 2, -1, x, y)
KOLO_CUDA_TEXTURE(tex3DLod, (cudaTextureObject_t object, float x, float y, float z, float), 3, -1, x, y, z)
#undef KOLO_CUDA_TEXTURE

#define KOLO_CUDA_SURFACE(name, parameters, x, y, z)                                                                   \
    template <class T>                                                                                                 \
    static inline T name##read(cudaSurfaceObject_t object, KOLO_CUDA_UNWRAP parameters,                                \
                               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                                    \
    {                                                                                                                  \
        return __kolo::surface_read<T>(object, x, y, z, mode);                                                         \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    static inline void name##read(T *value, cudaSurfaceObject_t object, KOLO_CUDA_UNWRAP parameters,                   \
                                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                                 \
    {                                                                                                                  \
        *value = __kolo::surface_read<T>(object, x, y, z, mode);                                                       \
    }                                                                                                                  \
    template <class T>                                                                                                 \
    static inline void name##write(T value, cudaSurfaceObject_t object, KOLO_CUDA_UNWRAP parameters,                   \
                                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap)                                \
    {                                                                                                                  \
        __kolo::surface_write<T>(object, value, x, y, z, mode);                                                        \
    }
#define KOLO_CUDA_UNWRAP(...) __VA_ARGS__
KOLO_CUDA_SURFACE(surf1D, (int x), x, 0, 0)
KOLO_CUDA_SURFACE(surf2D, (int x, int y), x, y, 0)
KOLO_CUDA_SURFACE(surf3D, (int x, int y, int z), x, y, z)
KOLO_CUDA_SURFACE(surf1DLayered, (int x, int layer), x, 0, layer)
KOLO_CUDA_SURFACE(surf2DLayered, (int x, int y, int layer), x, y, layer)
#undef KOLO_CUDA_SURFACE
#undef KOLO_CUDA_UNWRAP

#endif

#endif
