/* SPDX-License-Identifier: Apache-2.0 */
/* Further algorithms of Thrust and CUB, in streams as well. */
#include "check.h"

#include <cub/cub.cuh>

#include <thrust/adjacent_difference.h>
#include <thrust/binary_search.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/extrema.h>
#include <thrust/for_each.h>
#include <thrust/gather.h>
#include <thrust/host_vector.h>
#include <thrust/inner_product.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/merge.h>
#include <thrust/partition.h>
#include <thrust/reduce.h>
#include <thrust/remove.h>
#include <thrust/scan.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/tuple.h>

#include <algorithm>
#include <numeric>
#include <vector>

struct below {
    __host__ __device__ bool operator()(double a, double b) const
    {
        return a < b;
    }
};

struct is_small {
    __host__ __device__ bool operator()(int x) const
    {
        return x < 300;
    }
};

struct half_of {
    __host__ __device__ double operator()(int x) const
    {
        return 0.5 * x;
    }
};

struct add_into_third {
    template <class T> __host__ __device__ void operator()(T t) const
    {
        thrust::get<2>(t) = thrust::get<0>(t) + thrust::get<1>(t);
    }
};

static std::vector<int> numbers(int n)
{
    std::vector<int> v(n);

    for (int i = 0; i < n; i++) v[i] = (int)((unsigned)i * 2654435761u >> 16) % 1000;
    return v;
}

template <class A, class B> static bool same(const A &a, const B &b)
{
    thrust::host_vector<typename A::value_type> h = a;

    return h.size() == b.size() && std::equal(b.begin(), b.end(), h.begin());
}

static void with_keys()
{
    std::vector<int> v = numbers(3000), keys, sums;
    thrust::device_vector<int> k(v.begin(), v.end()), k_out(v.size()), s_out(v.size());

    std::sort(v.begin(), v.end());
    for (int x : v) {
        if (keys.empty() || keys.back() != x) keys.push_back(x), sums.push_back(0);
        sums.back() += 2;
    }
    thrust::sort(k.begin(), k.end());
    auto end =
        thrust::reduce_by_key(k.begin(), k.end(), thrust::constant_iterator<int>(2), k_out.begin(), s_out.begin());
    k_out.resize(end.first - k_out.begin());
    s_out.resize(end.second - s_out.begin());
    EXPECT(same(k_out, keys) && same(s_out, sums));

    thrust::exclusive_scan_by_key(k.begin(), k.end(), thrust::constant_iterator<int>(1), k.begin());
    thrust::host_vector<int> at = k;
    for (size_t i = 0; i < v.size(); i++) EXPECT(at[i] == (i && v[i] == v[i - 1] ? at[i - 1] + 1 : 0));
}

static void sets_and_searches()
{
    std::vector<int> a = numbers(1000), b = numbers(700), expected(1700);
    thrust::device_vector<int> found(3);

    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    thrust::device_vector<int> da = a, db = b, out(1700);
    thrust::merge(da.begin(), da.end(), db.begin(), db.end(), out.begin());
    std::merge(a.begin(), a.end(), b.begin(), b.end(), expected.begin());
    EXPECT(same(out, expected));
    out.resize(thrust::set_intersection(da.begin(), da.end(), db.begin(), db.end(), out.begin()) - out.begin());
    expected.resize(std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), expected.begin()) - expected.begin());
    EXPECT(same(out, expected));
    thrust::device_vector<int> wanted = std::vector<int>{0, 500, 5000};
    thrust::lower_bound(da.begin(), da.end(), wanted.begin(), wanted.end(), found.begin());
    for (int i = 0; i < 3; i++) EXPECT(found[i] == std::lower_bound(a.begin(), a.end(), (int)wanted[i]) - a.begin());
}

static void comparisons()
{
    std::vector<int> v = numbers(2500);
    std::vector<double> d(v.begin(), v.end());
    thrust::device_vector<double> dd = d;

    for (double &x : d) x *= 1.25;
    dd = d;
    EXPECT(thrust::max_element(dd.begin(), dd.end()) - dd.begin() == std::max_element(d.begin(), d.end()) - d.begin());
    auto both = thrust::minmax_element(dd.begin(), dd.end());
    EXPECT(*both.first == *std::min_element(d.begin(), d.end()) &&
           *both.second == *std::max_element(d.begin(), d.end()));
    thrust::stable_sort(dd.begin(), dd.end(), below());
    std::stable_sort(d.begin(), d.end());
    EXPECT(same(dd, d));
}

static void rest()
{
    std::vector<int> v = numbers(2000), small, expected(v.size());
    thrust::device_vector<int> d = v, out(v.size());
    cudaStream_t stream;

    CUDA(cudaStreamCreate(&stream));
    std::copy_if(v.begin(), v.end(), std::back_inserter(small), is_small());
    EXPECT(thrust::count_if(thrust::cuda::par.on(stream), d.begin(), d.end(), is_small()) == (int)small.size());
    thrust::adjacent_difference(thrust::cuda::par.on(stream), d.begin(), d.end(), out.begin());
    std::adjacent_difference(v.begin(), v.end(), expected.begin());
    EXPECT(same(out, expected));
    EXPECT(thrust::inner_product(d.begin(), d.end(), d.begin(), 0LL) ==
           std::inner_product(v.begin(), v.end(), v.begin(), 0LL));
    EXPECT(thrust::reduce(thrust::make_transform_iterator(d.begin(), half_of()),
                          thrust::make_transform_iterator(d.end(), half_of())) ==
           0.5 * std::accumulate(v.begin(), v.end(), 0));
    thrust::for_each(thrust::make_zip_iterator(thrust::make_tuple(d.begin(), d.begin(), out.begin())),
                     thrust::make_zip_iterator(thrust::make_tuple(d.end(), d.end(), out.end())), add_into_third());
    for (size_t i = 0; i < v.size(); i++) expected[i] = 2 * v[i];
    EXPECT(same(out, expected));
    EXPECT(thrust::stable_partition(d.begin(), d.end(), is_small()) - d.begin() == (int)small.size());
    d.erase(thrust::remove_if(d.begin(), d.end(), is_small()), d.end());
    EXPECT(d.size() == v.size() - small.size());
    CUDA(cudaStreamDestroy(stream));
}

/* ---- CUB ---- */

template <class F> static void with_room(cudaStream_t stream, F call)
{
    size_t bytes = 0;
    void *room = nullptr;

    CUDA(call(room, bytes));
    CUDA(cudaMallocAsync(&room, bytes, stream));
    CUDA(call(room, bytes));
    CUDA(cudaFreeAsync(room, stream));
    CUDA(cudaStreamSynchronize(stream));
}

struct largest {
    template <class T> __host__ __device__ T operator()(T a, T b) const
    {
        return a < b ? b : a;
    }
};

static void devices()
{
    const int n = 4000, segments = 10;
    int *in = managed<int>(n), *out = managed<int>(n), *lengths = managed<int>(n), *count = managed<int>(1),
        *offsets = managed<int>(segments + 1);
    double *real = managed<double>(n), *real_out = managed<double>(n);
    cudaStream_t s;
    int most = 0;

    CUDA(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    for (int i = 0; i < n; i++) {
        in[i] = i / 7 % 5;
        real[i] = (double)((unsigned)i * 2654435761u >> 16) / 3;
    }
    for (int i = 0; i <= segments; i++) offsets[i] = n / segments * i;
    with_room(
        s, [&](void *r, size_t &b) { return cub::DeviceRunLengthEncode::Encode(r, b, in, out, lengths, count, n, s); });
    EXPECT(*count == (n + 6) / 7);
    for (int i = 0; i < *count; i++) EXPECT(out[i] == i % 5 && lengths[i] == (i < n / 7 ? 7 : n % 7));
    with_room(s, [&](void *r, size_t &b) {
        return cub::DeviceSegmentedReduce::Sum(r, b, in, out, segments, offsets, offsets + 1, s);
    });
    for (int g = 0; g < segments; g++) EXPECT(out[g] == std::accumulate(in + offsets[g], in + offsets[g + 1], 0));
    with_room(s, [&](void *r, size_t &b) { return cub::DeviceScan::InclusiveScan(r, b, in, out, largest(), n, s); });
    for (int i = 0; i < n; i++) EXPECT(out[i] == (most = std::max(most, in[i])));
    with_room(s, [&](void *r, size_t &b) { return cub::DeviceSelect::Unique(r, b, in, out, count, n, s); });
    EXPECT(*count == (n + 6) / 7);
    with_room(s, [&](void *r, size_t &b) {
        return cub::DeviceRadixSort::SortKeysDescending(r, b, real, real_out, n, 0, 64, s);
    });
    EXPECT(std::is_sorted(real_out, real_out + n, [](double a, double b) { return a > b; }));
    with_room(s, [&](void *r, size_t &b) { return cub::DeviceMergeSort::SortKeys(r, b, real, n, below(), s); });
    EXPECT(std::is_sorted(real, real + n) && real[0] == real_out[n - 1]);

    CUDA(cudaStreamDestroy(s));
    for (void *p :
         {(void *)in, (void *)out, (void *)lengths, (void *)count, (void *)offsets, (void *)real, (void *)real_out})
        CUDA(cudaFree(p));
}

int main()
{
    return on_all_devices([](int) {
        with_keys();
        sets_and_searches();
        comparisons();
        rest();
        devices();
    });
}
