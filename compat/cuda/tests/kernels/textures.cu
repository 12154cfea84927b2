/* SPDX-License-Identifier: Apache-2.0 */
/* Textures of memory and of arrays, nearest and linear, with every address mode; surfaces that are read and written. */
#include "check.h"

__global__ void sample_1d(cudaTextureObject_t t, const float *x, float *out) { out[threadIdx.x] = tex1D<float>(t, x[threadIdx.x]); }

__global__ void fetch(cudaTextureObject_t t, int4 *out) { out[threadIdx.x] = tex1Dfetch<int4>(t, threadIdx.x); }

__global__ void transform(cudaTextureObject_t t, float *out, int w, int h)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;

    if (x < w && y < h) out[y * w + x] = tex2D<float>(t, (x + 1.0f) / w, (y + 0.5f) / h);
}

__global__ void layers(cudaTextureObject_t t, cudaSurfaceObject_t s, int w)
{
    uchar4 v = tex2DLayered<uchar4>(t, threadIdx.x + 0.5f, threadIdx.y + 0.5f, blockIdx.x);

    v.w = v.x + 1;
    surf2DLayeredwrite(v, s, (int)(threadIdx.x * sizeof(uchar4)), (int)threadIdx.y, (int)blockIdx.x);
}

__global__ void volume(cudaTextureObject_t t, float *out) { out[threadIdx.x] = tex3D<float>(t, threadIdx.x + 1.0f, 1.0f, 1.0f); }

__global__ void outside(cudaSurfaceObject_t s, float *out)
{
    out[0] = surf2Dread<float>(s, -4, 0, cudaBoundaryModeZero);
    surf2Dread(&out[1], s, 1000, 1, cudaBoundaryModeClamp);
}

static cudaTextureObject_t texture_of(const cudaResourceDesc &resource, cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalized,
                                      cudaTextureReadMode read = cudaReadModeElementType)
{
    cudaTextureDesc how = {};
    cudaTextureObject_t t;

    how.addressMode[0] = how.addressMode[1] = how.addressMode[2] = mode;
    how.filterMode = filter;
    how.readMode = read;
    how.normalizedCoords = normalized;
    how.borderColor[0] = 9;
    CUDA(cudaCreateTextureObject(&t, &resource, &how, nullptr));
    return t;
}

static cudaResourceDesc of_array(cudaArray_t array)
{
    cudaResourceDesc r = {};

    r.resType = cudaResourceTypeArray;
    r.res.array.array = array;
    return r;
}

static void expect_1d(cudaTextureObject_t t, float *x, float *out, float a, float b, float c, float d)
{
    sample_1d<<<1, 4>>>(t, x, out);
    DONE();
    EXPECT(out[0] == a && out[1] == b && out[2] == c && out[3] == d);
    CUDA(cudaDestroyTextureObject(t));
}

static void test_1d()
{
    const float values[] = {0, 10, 20, 30};
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    float *x = managed<float>(4), *out = managed<float>(4);
    cudaArray_t array;

    CUDA(cudaMallocArray(&array, &format, 4));
    CUDA(cudaMemcpy2DToArray(array, 0, 0, values, sizeof values, sizeof values, 1, cudaMemcpyHostToDevice));
    cudaResourceDesc r = of_array(array);
    x[0] = -1.5f, x[1] = 0.75f, x[2] = 2.0f, x[3] = 5.5f;
    expect_1d(texture_of(r, cudaAddressModeClamp, cudaFilterModePoint, false), x, out, 0, 0, 20, 30);
    expect_1d(texture_of(r, cudaAddressModeBorder, cudaFilterModePoint, false), x, out, 9, 0, 20, 9);
    expect_1d(texture_of(r, cudaAddressModeClamp, cudaFilterModeLinear, false), x, out, 0, 2.5f, 15, 30);
    for (int i = 0; i < 4; i++) x[i] /= 4;
    expect_1d(texture_of(r, cudaAddressModeWrap, cudaFilterModePoint, true), x, out, 20, 0, 20, 10);
    expect_1d(texture_of(r, cudaAddressModeMirror, cudaFilterModePoint, true), x, out, 10, 0, 20, 20);
    CUDA(cudaFreeArray(array));
    CUDA(cudaFree(x));
    CUDA(cudaFree(out));
}

static void test_linear_memory()
{
    int4 *in = managed<int4>(32), *out = managed<int4>(32);
    cudaResourceDesc r = {};

    for (int i = 0; i < 32; i++) in[i] = make_int4(i, -i, 16777217 + i, 3);
    r.resType = cudaResourceTypeLinear;
    r.res.linear.devPtr = in;
    r.res.linear.desc = cudaCreateChannelDesc<int4>();
    r.res.linear.sizeInBytes = 32 * sizeof *in;
    cudaTextureObject_t t = texture_of(r, cudaAddressModeClamp, cudaFilterModePoint, false);
    fetch<<<1, 32>>>(t, out);
    DONE();
    for (int i = 0; i < 32; i++) EXPECT(out[i].x == i && out[i].y == -i && out[i].z == 16777217 + i && out[i].w == 3);
    CUDA(cudaDestroyTextureObject(t));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

/* Bytes of an image in rows, read as numbers of 0 to 1, between two pixels. */
static void test_pitch()
{
    unsigned char *image;
    size_t pitch;
    float *out = managed<float>(16 * 8);

    CUDA(cudaMallocPitch((void **)&image, &pitch, 16, 8));
    for (int y = 0; y < 8; y++) CUDA(cudaMemset(image + y * pitch, 51 * (y % 5), 16));
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypePitch2D;
    r.res.pitch2D.devPtr = image;
    r.res.pitch2D.desc = cudaCreateChannelDesc<unsigned char>();
    r.res.pitch2D.width = 16;
    r.res.pitch2D.height = 8;
    r.res.pitch2D.pitchInBytes = pitch;
    cudaTextureObject_t t = texture_of(r, cudaAddressModeWrap, cudaFilterModeLinear, true, cudaReadModeNormalizedFloat);
    transform<<<dim3(2, 2), dim3(8, 4)>>>(t, out, 16, 8);
    DONE();
    for (int i = 0; i < 16 * 8; i++) EXPECT(out[i] == 51 * (i / 16 % 5) / 255.0f);
    CUDA(cudaDestroyTextureObject(t));
    CUDA(cudaFree(image));
    CUDA(cudaFree(out));
}

static void test_layers_and_volume()
{
    static uchar4 in[3][4][8], out[3][4][8];
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>(), real = cudaCreateChannelDesc<float>();
    cudaArray_t from, to, box;
    cudaMemcpy3DParms p = {}, q = {}, v = {};
    cudaSurfaceObject_t s, plane;
    float *sums = managed<float>(2), cells[2][2][3];

    for (int i = 0; i < 96; i++) (&in[0][0][0])[i] = make_uchar4(i, 2 * i, 1, 0);
    CUDA(cudaMalloc3DArray(&from, &format, make_cudaExtent(8, 4, 3), cudaArrayLayered));
    CUDA(cudaMalloc3DArray(&to, &format, make_cudaExtent(8, 4, 3), cudaArrayLayered | cudaArraySurfaceLoadStore));
    p.srcPtr = make_cudaPitchedPtr(in, sizeof in[0][0], 8, 4);
    p.dstArray = from;
    p.extent = make_cudaExtent(8, 4, 3);
    p.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&p));
    cudaTextureObject_t t = texture_of(of_array(from), cudaAddressModeClamp, cudaFilterModePoint, false);
    cudaResourceDesc target = of_array(to);
    CUDA(cudaCreateSurfaceObject(&s, &target));
    layers<<<3, dim3(8, 4)>>>(t, s, 8);
    DONE();
    q.srcArray = to;
    q.dstPtr = make_cudaPitchedPtr(out, sizeof out[0][0], 8, 4);
    q.extent = p.extent;
    q.kind = cudaMemcpyDeviceToHost;
    CUDA(cudaMemcpy3D(&q));
    for (int i = 0; i < 96; i++) EXPECT((&out[0][0][0])[i].x == i && (&out[0][0][0])[i].w == i + 1);
    CUDA(cudaDestroyTextureObject(t));
    CUDA(cudaDestroySurfaceObject(s));

    for (int i = 0; i < 12; i++) (&cells[0][0][0])[i] = i;
    CUDA(cudaMalloc3DArray(&box, &real, make_cudaExtent(3, 2, 2), cudaArraySurfaceLoadStore));
    v.srcPtr = make_cudaPitchedPtr(cells, sizeof cells[0][0], 3, 2);
    v.dstArray = box;
    v.extent = make_cudaExtent(3, 2, 2);
    v.kind = cudaMemcpyHostToDevice;
    CUDA(cudaMemcpy3D(&v));
    t = texture_of(of_array(box), cudaAddressModeClamp, cudaFilterModeLinear, false);
    volume<<<1, 2>>>(t, sums);
    DONE();
    EXPECT(sums[0] == 5 && sums[1] == 6); /* the mean of eight cells */
    CUDA(cudaDestroyTextureObject(t));
    target = of_array(box);
    CUDA(cudaCreateSurfaceObject(&plane, &target));
    outside<<<1, 1>>>(plane, sums);
    DONE();
    EXPECT(sums[0] == 0 && sums[1] == 5);
    CUDA(cudaDestroySurfaceObject(plane));
    for (cudaArray_t a : {from, to, box}) CUDA(cudaFreeArray(a));
    CUDA(cudaFree(sums));
}

static void test(int)
{
    test_1d();
    test_linear_memory();
    test_pitch();
    test_layers_and_volume();
}

int main()
{
    return on_all_devices(test);
}
