/* SPDX-License-Identifier: Apache-2.0 */
/* Thrust as programs use it: vectors of the device and the algorithms on them. */
#include "check.h"

#include <thrust/copy.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>
#include <thrust/unique.h>

#include <algorithm>
#include <numeric>
#include <vector>

struct squared {
    __host__ __device__ long long operator()(int x) const
    {
        return (long long)x * x;
    }
};

struct is_even {
    __host__ __device__ bool operator()(int x) const
    {
        return x % 2 == 0;
    }
};

static std::vector<int> numbers(int n)
{
    std::vector<int> v(n);

    for (int i = 0; i < n; i++) v[i] = (int)((unsigned)i * 2654435761u >> 16) % 5000;
    return v;
}

static void sums()
{
    const std::vector<int> v = numbers(5000);
    thrust::device_vector<int> d(v.begin(), v.end()), out(v.size());
    long long squares = 0;
    int sum = 0;

    for (int x : v) squares += (long long)x * x;
    EXPECT(thrust::reduce(d.begin(), d.end(), 0) == std::accumulate(v.begin(), v.end(), 0));
    EXPECT(thrust::transform_reduce(d.begin(), d.end(), squared(), 0LL, thrust::plus<long long>()) == squares);

    thrust::inclusive_scan(d.begin(), d.end(), out.begin());
    thrust::host_vector<int> h = out;
    for (size_t i = 0; i < v.size(); i++) EXPECT(h[i] == (sum += v[i]));
    thrust::exclusive_scan(thrust::device, d.begin(), d.end(), out.begin());
    h = out;
    sum = 0;
    for (size_t i = 0; i < v.size(); sum += v[i++]) EXPECT(h[i] == sum);
}

static void orders()
{
    std::vector<int> v = numbers(5000), sorted = v;
    thrust::device_vector<int> keys(v.begin(), v.end()), places(v.size());

    std::sort(sorted.begin(), sorted.end());
    thrust::sequence(places.begin(), places.end());
    thrust::sort_by_key(keys.begin(), keys.end(), places.begin());
    thrust::host_vector<int> k = keys, p = places;
    for (size_t i = 0; i < v.size(); i++) EXPECT(k[i] == sorted[i] && v[p[i]] == k[i]);

    thrust::sort(keys.begin(), keys.end(), thrust::greater<int>());
    k = keys;
    for (size_t i = 0; i < v.size(); i++) EXPECT(k[i] == sorted[v.size() - 1 - i]);
}

static void choices()
{
    std::vector<int> v = numbers(3000), even, sorted = v;
    thrust::device_vector<int> d(v.begin(), v.end()), out(v.size());

    std::copy_if(v.begin(), v.end(), std::back_inserter(even), is_even());
    out.resize(thrust::copy_if(d.begin(), d.end(), out.begin(), is_even()) - out.begin());
    thrust::host_vector<int> h = out;
    EXPECT(h.size() == even.size() && std::equal(even.begin(), even.end(), h.begin()));

    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    thrust::sort(d.begin(), d.end());
    d.erase(thrust::unique(d.begin(), d.end()), d.end());
    h = d;
    EXPECT(h.size() == sorted.size() && std::equal(sorted.begin(), sorted.end(), h.begin()));
}

static void transforms()
{
    const int n = 4000;
    thrust::device_vector<long long> out(n);
    thrust::device_vector<float> x(n, 1.5f), y(n, 2.0f);

    thrust::transform(thrust::counting_iterator<int>(0), thrust::counting_iterator<int>(n), out.begin(), squared());
    thrust::host_vector<long long> h = out;
    for (int i = 0; i < n; i++) EXPECT(h[i] == (long long)i * i);
    thrust::transform(x.begin(), x.end(), y.begin(), y.begin(), thrust::multiplies<float>());
    EXPECT(thrust::reduce(y.begin(), y.end()) == 3.0f * n);
    y[7] = 9.0f;
    EXPECT(y[7] == 9.0f && y.size() == (size_t)n);
}

int main()
{
    return on_all_devices([](int) {
        sums();
        orders();
        choices();
        transforms();
    });
}
