/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS against loops of the host: all forms and types, batches, modes of pointers, streams, graphs, errors. */
#include "check.h"

#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <complex>
#include <cstring>

#define BLAS(call) EXPECT((call) == CUBLAS_STATUS_SUCCESS)

/* Small integers: all sums are exact, in every type. */
template <class T> static T number(unsigned i)
{
    return T((int)(i * 2654435761u >> 28) - 7);
}

template <> std::complex<float> number(unsigned i)
{
    return {number<float>(i), number<float>(i + 100)};
}

template <> std::complex<double> number(unsigned i)
{
    return {number<double>(i), number<double>(i + 100)};
}

template <class T> static T *numbers(size_t count, unsigned from)
{
    T *p = managed<T>(count);

    for (size_t i = 0; i < count; i++) p[i] = number<T>(from + (unsigned)i);
    return p;
}

static float conjugate(float x)
{
    return x;
}
static double conjugate(double x)
{
    return x;
}
template <class T> static std::complex<T> conjugate(std::complex<T> x)
{
    return std::conj(x);
}

template <class T> static T at(const T *a, int ld, cublasOperation_t op, int i, int j)
{
    T value = op == CUBLAS_OP_N ? a[i + (size_t)j * ld] : a[j + (size_t)i * ld];

    return op == CUBLAS_OP_C ? conjugate(value) : value;
}

template <class T> struct product {
    cublasOperation_t ta, tb;
    int m, n, k, lda, ldb, ldc;

    product(cublasOperation_t a, cublasOperation_t b, int rows, int columns, int inner)
        : ta(a), tb(b), m(rows), n(columns), k(inner), lda((a ? inner : rows) + 1), ldb((b ? columns : inner) + 2),
          ldc(rows + 3)
    {
    }
    size_t bytes_a() const
    {
        return (size_t)lda * (ta ? m : k);
    }
    size_t bytes_b() const
    {
        return (size_t)ldb * (tb ? k : n);
    }
    size_t bytes_c() const
    {
        return (size_t)ldc * n;
    }
    bool right(const T *a, const T *b, const T *before, const T *c, T alpha, T beta) const
    {
        for (int j = 0; j < n; j++)
            for (int i = 0; i < ldc; i++) {
                T sum = 0, expected = before[i + (size_t)j * ldc];

                for (int l = 0; i < m && l < k; l++) sum += at(a, lda, ta, i, l) * at(b, ldb, tb, l, j);
                if (i < m) expected = alpha * sum + beta * expected;
                if (c[i + (size_t)j * ldc] != expected) return false;
            }
        return true;
    }
};

/* The functions of the four types under one name, as programs have them. */
#define FORMS(name, suffix)                                                                                            \
    template <class... A> static cublasStatus_t name(float, A... a)                                                    \
    {                                                                                                                  \
        return cublasS##suffix(a...);                                                                                  \
    }                                                                                                                  \
    template <class... A> static cublasStatus_t name(double, A... a)                                                   \
    {                                                                                                                  \
        return cublasD##suffix(a...);                                                                                  \
    }                                                                                                                  \
    template <class... A> static cublasStatus_t name(cuComplex, A... a)                                                \
    {                                                                                                                  \
        return cublasC##suffix(a...);                                                                                  \
    }                                                                                                                  \
    template <class... A> static cublasStatus_t name(cuDoubleComplex, A... a)                                          \
    {                                                                                                                  \
        return cublasZ##suffix(a...);                                                                                  \
    }
FORMS(gemm, gemm)
FORMS(gemm_batched, gemmBatched)
FORMS(gemm_strided, gemmStridedBatched)
FORMS(gemv, gemv)
FORMS(axpy, axpy)
FORMS(scal, scal)
FORMS(copy, copy)
FORMS(swap, swap)

/* std::complex has the layout of cuBLAS's types. */
template <class T> struct cuda_type {
    using type = T;
};
template <> struct cuda_type<std::complex<float>> {
    using type = cuComplex;
};
template <> struct cuda_type<std::complex<double>> {
    using type = cuDoubleComplex;
};
template <class T> static auto of(T *p)
{
    return reinterpret_cast<typename cuda_type<std::remove_const_t<T>>::type *>(
        const_cast<std::remove_const_t<T> *>(p));
}

template <class T> static void products(cublasHandle_t handle)
{
    using U = typename cuda_type<T>::type;
    const cublasOperation_t ops[] = {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C};
    const int sizes[][3] = {{1, 1, 1}, {7, 5, 3}, {33, 130, 20}, {100, 130, 90}};
    T alpha = number<T>(3), beta = number<T>(8);

    for (auto &size : sizes)
        for (cublasOperation_t ta : ops)
            for (cublasOperation_t tb : ops) {
                product<T> p(ta, tb, size[0], size[1], size[2]);
                T *a = numbers<T>(p.bytes_a(), 1), *b = numbers<T>(p.bytes_b(), 500), *c = numbers<T>(p.bytes_c(), 900),
                  *before = numbers<T>(p.bytes_c(), 900);

                BLAS(gemm(U(), handle, ta, tb, p.m, p.n, p.k, of(&alpha), of(a), p.lda, of(b), p.ldb, of(&beta), of(c),
                          p.ldc));
                CUDA(cudaDeviceSynchronize());
                EXPECT(p.right(a, b, before, c, alpha, beta));
                CUDA(cudaFree(a));
                CUDA(cudaFree(b));
                CUDA(cudaFree(c));
                CUDA(cudaFree(before));
            }
}

template <class T> static void batches(cublasHandle_t handle)
{
    enum { BATCH = 9 };
    using U = typename cuda_type<T>::type;
    product<T> p(CUBLAS_OP_N, CUBLAS_OP_T, 20, 70, 11);
    T *a = numbers<T>(BATCH * p.bytes_a(), 1), *b = numbers<T>(BATCH * p.bytes_b(), 500),
      *c = numbers<T>(BATCH * p.bytes_c(), 900), *before = numbers<T>(BATCH * p.bytes_c(), 900), alpha = 2, beta = -1;
    U **as = managed<U *>(BATCH), **bs = managed<U *>(BATCH), **cs = managed<U *>(BATCH);

    for (int i = 0; i < BATCH; i++) {
        as[i] = of(a + i * p.bytes_a());
        bs[i] = of(b + (BATCH - 1 - i) * p.bytes_b());
        cs[i] = of(c + i * p.bytes_c());
    }
    BLAS(gemm_batched(U(), handle, p.ta, p.tb, p.m, p.n, p.k, of(&alpha), as, p.lda, bs, p.ldb, of(&beta), cs, p.ldc,
                      (int)BATCH));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < BATCH; i++)
        EXPECT(p.right(a + i * p.bytes_a(), b + (BATCH - 1 - i) * p.bytes_b(), before + i * p.bytes_c(),
                       c + i * p.bytes_c(), alpha, beta));
    memcpy((void *)c, before, BATCH * p.bytes_c() * sizeof *c);
    BLAS(gemm_strided(U(), handle, p.ta, p.tb, p.m, p.n, p.k, of(&alpha), of(a), p.lda, (long long)p.bytes_a(), of(b),
                      p.ldb, 0LL, of(&beta), of(c), p.ldc, (long long)p.bytes_c(), (int)BATCH));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < BATCH; i++)
        EXPECT(p.right(a + i * p.bytes_a(), b, before + i * p.bytes_c(), c + i * p.bytes_c(), alpha, beta));
    for (void *memory : {(void *)a, (void *)b, (void *)c, (void *)before, (void *)as, (void *)bs, (void *)cs})
        CUDA(cudaFree(memory));
}

template <class T> static void vectors(cublasHandle_t handle)
{
    enum { N = 37 };
    using U = typename cuda_type<T>::type;
    T *x = numbers<T>(2 * N, 1), *y = numbers<T>(3 * N, 70), *old_x = numbers<T>(2 * N, 1),
      *old_y = numbers<T>(3 * N, 70), alpha = 3, beta = 2;

    BLAS(axpy(U(), handle, (int)N, of(&alpha), of(x), 2, of(y), 3));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < 3 * N; i++) EXPECT(y[i] == (i % 3 ? old_y[i] : old_y[i] + alpha * x[i / 3 * 2]));
    BLAS(copy(U(), handle, (int)N, of(old_y), 3, of(y), 3));
    BLAS(swap(U(), handle, (int)N, of(x), 2, of(y), 3));
    BLAS(scal(U(), handle, (int)N, of(&alpha), of(x), 2));
    CUDA(cudaDeviceSynchronize());
    for (int i = 0; i < N; i++) EXPECT(x[2 * i] == alpha * old_y[3 * i] && y[3 * i] == old_x[2 * i]);
    for (cublasOperation_t op : {CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C}) {
        int m = 6, n = 9, rows = op ? n : m, columns = op ? m : n;
        T *a = numbers<T>(8 * 9, 7);

        memcpy((void *)y, old_y, 3 * N * sizeof *y);
        BLAS(gemv(U(), handle, op, m, n, of(&alpha), of(a), 8, of(x), 2, of(&beta), of(y), 3));
        CUDA(cudaDeviceSynchronize());
        for (int i = 0; i < rows; i++) {
            T sum = 0;

            for (int j = 0; j < columns; j++) sum += at(a, 8, op, i, j) * x[2 * j];
            EXPECT(y[3 * i] == alpha * sum + beta * old_y[3 * i]);
        }
        CUDA(cudaFree(a));
    }
    for (T *memory : {x, y, old_x, old_y}) CUDA(cudaFree(memory));
}

/* Results in the host's memory, which the call waits for, and in the device's. */
static void results(cublasHandle_t handle)
{
    enum { N = 50 };
    float *x = numbers<float>(N, 1), *y = numbers<float>(N, 90), dot = 0, sum = 0, squares = 0, got,
          *there = managed<float>(3);
    cuComplex *z = managed<cuComplex>(2), dots;
    int largest = 1, smallest = 1, which, *index = managed<int>(1);

    for (int i = 0; i < N; i++) {
        dot += x[i] * y[i];
        sum += std::fabs(x[i]);
        squares += x[i] * x[i];
        if (std::fabs(x[i]) > std::fabs(x[largest - 1])) largest = i + 1;
        if (std::fabs(x[i]) < std::fabs(x[smallest - 1])) smallest = i + 1;
    }
    BLAS(cublasSdot(handle, N, x, 1, y, 1, &got));
    EXPECT(got == dot);
    BLAS(cublasSasum(handle, N, x, 1, &got));
    EXPECT(got == sum);
    BLAS(cublasSnrm2(handle, N, x, 1, &got));
    EXPECT(std::fabs(got - std::sqrt(squares)) < 1e-4f);
    BLAS(cublasIsamax(handle, N, x, 1, &which));
    EXPECT(which == largest);
    BLAS(cublasIsamin(handle, N, x, 1, &which));
    EXPECT(which == smallest);
    BLAS(cublasIsamax(handle, 0, x, 1, &which));
    EXPECT(which == 0);
    z[0] = make_cuComplex(1, 2);
    z[1] = make_cuComplex(3, -4);
    BLAS(cublasCdotc(handle, 2, z, 1, z, 1, &dots));
    EXPECT(cuCrealf(dots) == 30 && cuCimagf(dots) == 0);
    BLAS(cublasCdotu(handle, 2, z, 1, z, 1, &dots));
    EXPECT(cuCrealf(dots) == -10 && cuCimagf(dots) == -20);

    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
    BLAS(cublasSdot(handle, N, x, 1, y, 1, &there[0]));
    BLAS(cublasIsamax(handle, N, x, 1, index));
    BLAS(cublasSscal(handle, 1, &there[0], &there[0], 1)); /* squared: read when the stream comes to it */
    CUDA(cudaDeviceSynchronize());
    EXPECT(there[0] == dot * dot && *index == largest);
    BLAS(cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST));
    for (void *memory : {(void *)x, (void *)y, (void *)z, (void *)there, (void *)index}) CUDA(cudaFree(memory));
}

/* fp16 and bf16 with sums of fp32: exact here, as all numbers are small. */
template <class In, class Out> static void small_types(cublasHandle_t handle, cudaDataType in, cudaDataType out)
{
    product<float> p(CUBLAS_OP_T, CUBLAS_OP_N, 19, 70, 8);
    float *a = numbers<float>(p.bytes_a(), 1), *b = numbers<float>(p.bytes_b(), 500),
          *before = numbers<float>(p.bytes_c(), 900), *c = managed<float>(p.bytes_c()), alpha = 0.5f, beta = 2;
    In *as = managed<In>(p.bytes_a()), *bs = managed<In>(p.bytes_b());
    Out *cs = managed<Out>(p.bytes_c());

    for (size_t i = 0; i < p.bytes_a(); i++) as[i] = In(a[i] / 8);
    for (size_t i = 0; i < p.bytes_b(); i++) bs[i] = In(b[i]);
    for (size_t i = 0; i < p.bytes_c(); i++) cs[i] = Out(before[i]);
    BLAS(cublasGemmEx(handle, p.ta, p.tb, p.m, p.n, p.k, &alpha, as, in, p.lda, bs, in, p.ldb, &beta, cs, out, p.ldc,
                      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
    CUDA(cudaDeviceSynchronize());
    for (int j = 0; j < p.n; j++)
        for (int i = 0; i < p.m; i++) {
            float sum = 0;

            for (int l = 0; l < p.k; l++) sum += a[l + i * p.lda] / 8 * b[l + j * p.ldb];
            EXPECT((float)cs[i + j * p.ldc] == (float)Out(alpha * sum + beta * before[i + j * p.ldc]));
        }
    for (void *memory : {(void *)a, (void *)b, (void *)c, (void *)before, (void *)as, (void *)bs, (void *)cs})
        CUDA(cudaFree(memory));
}

static void halves(cublasHandle_t handle)
{
    __half *x = managed<__half>(3), alpha = __float2half(2), beta = __float2half(0);

    for (int i = 0; i < 2; i++) x[i] = __float2half(i + 3.0f);
    BLAS(cublasHgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &alpha, x, 1, x + 1, 1, &beta, x + 2, 1));
    CUDA(cudaDeviceSynchronize());
    EXPECT(__half2float(x[2]) == 24);
    CUDA(cudaFree(x));
}

__global__ void fill(float *x, int n, float value)
{
    for (int i = 0; i < n; i++) x[i] = value;
}

/* Behind a kernel and before another, in a stream, and in a graph. */
static void ordered(cublasHandle_t handle)
{
    enum { N = 64 };
    float *a = managed<float>(N * N), *c = managed<float>(N * N), alpha = 1, beta = 0, dot;
    cudaGraphExec_t executable;
    cudaGraph_t graph;
    cudaStream_t stream, got;

    CUDA(cudaStreamCreate(&stream));
    BLAS(cublasSetStream(handle, stream));
    BLAS(cublasGetStream(handle, &got));
    EXPECT(got == stream);
    CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    fill<<<1, 1, 0, stream>>>(a, N * N, 2);
    BLAS(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, N, N, N, &alpha, a, N, a, N, &beta, c, N));
    fill<<<1, 1, 0, stream>>>(a, N * N, 5);
    CUDA(cudaStreamEndCapture(stream, &graph));
    alpha = 100; /* was read by the call */
    CUDA(cudaGraphInstantiate(&executable, graph, 0));
    EXPECT(c[0] == 0);
    for (int round = 0; round < 2; round++) {
        c[0] = c[N * N - 1] = 0;
        CUDA(cudaGraphLaunch(executable, stream));
        CUDA(cudaStreamSynchronize(stream));
        EXPECT(c[0] == 4 * N && c[N * N - 1] == 4 * N && a[0] == 5);
    }
    fill<<<1, 1, 0, stream>>>(a, N * N, 3);
    BLAS(cublasSdot(handle, N, a, 1, a, 1, &dot));
    EXPECT(dot == 9 * N);
    BLAS(cublasSetStream(handle, nullptr));
    CUDA(cudaGraphExecDestroy(executable));
    CUDA(cudaGraphDestroy(graph));
    CUDA(cudaStreamDestroy(stream));
    CUDA(cudaFree(a));
    CUDA(cudaFree(c));
}

static void copies()
{
    float host[12], back[12] = {}, *device;

    for (int i = 0; i < 12; i++) host[i] = (float)i;
    CUDA(cudaMalloc((void **)&device, sizeof host));
    BLAS(cublasSetMatrix(2, 3, sizeof(float), host, 4, device, 2));
    BLAS(cublasGetVector(3, sizeof(float), device, 2, back, 1));
    EXPECT(back[0] == 0 && back[1] == 4 && back[2] == 8);
    EXPECT(cublasSetMatrix(4, 3, sizeof(float), host, 2, device, 4) == CUBLAS_STATUS_INVALID_VALUE);
    CUDA(cudaFree(device));
}

static void errors(cublasHandle_t handle)
{
    float x[4] = {}, one = 1;
    cublasMath_t mode;
    int version;

    EXPECT(cublasSgemm(nullptr, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, 1, x, 1, &one, x, 1) ==
           CUBLAS_STATUS_NOT_INITIALIZED);
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, 2, 1, 1, &one, x, 1, x, 1, &one, x, 2) ==
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, -1, 1, 1, &one, x, 1, x, 1, &one, x, 2) ==
           CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasSgemv(handle, CUBLAS_OP_N, 1, 1, &one, x, 1, x, 0, &one, x, 1) == CUBLAS_STATUS_INVALID_VALUE);
    EXPECT(cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one, x, CUDA_R_8I, 1, x, CUDA_R_8I, 1, &one, x,
                        CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_NOT_SUPPORTED);
    BLAS(cublasSetMathMode(handle, CUBLAS_TF32_TENSOR_OP_MATH));
    BLAS(cublasGetMathMode(handle, &mode));
    EXPECT(mode == CUBLAS_TF32_TENSOR_OP_MATH);
    BLAS(cublasGetVersion(handle, &version));
    EXPECT(version > 0 && !strcmp(cublasGetStatusName(CUBLAS_STATUS_NOT_SUPPORTED), "CUBLAS_STATUS_NOT_SUPPORTED"));
}

int main()
{
    return on_all_devices([](int device) {
        cublasHandle_t handle;

        BLAS(cublasCreate(&handle));
        ordered(handle);
        results(handle);
        if (!device) { /* the others compute alike */
            products<float>(handle);
            products<double>(handle);
            products<std::complex<float>>(handle);
            products<std::complex<double>>(handle);
            batches<float>(handle);
            batches<std::complex<double>>(handle);
            vectors<float>(handle);
            vectors<double>(handle);
            vectors<std::complex<float>>(handle);
            vectors<std::complex<double>>(handle);
            small_types<__half, __half>(handle, CUDA_R_16F, CUDA_R_16F);
            small_types<__half, float>(handle, CUDA_R_16F, CUDA_R_32F);
            small_types<__nv_bfloat16, __nv_bfloat16>(handle, CUDA_R_16BF, CUDA_R_16BF);
            halves(handle);
            copies();
        }
        errors(handle);
        BLAS(cublasDestroy(handle));
    });
}
