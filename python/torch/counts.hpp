// SPDX-License-Identifier: Apache-2.0
/**
 * counts.hpp - counts and displacements of unequal parts: of lists of tensors, and of splits of dimension 0.
 */
#pragma once

#include "tensors.hpp"

namespace kolo
{

struct Counts {
    std::vector<size_t> of, at; // elements, and the sum of those before
    bool equal = true;

    void add(size_t n)
    {
        equal = equal && (of.empty() || of.front() == n);
        at.push_back(of.empty() ? 0 : at.back() + of.back());
        of.push_back(n);
    }
};

inline Counts counts_of(const Tensors &list, size_t units)
{
    Counts c;
    for (auto &t : list) c.add((size_t)t.numel() * units);
    return c;
}

/** Rows of dimension 0 for each rank, as counts of units. */
inline Counts counts_of_splits(const char *op, const at::Tensor &t, const std::vector<int64_t> &splits, int size,
                               size_t units)
{
    const int64_t rows = t.dim() ? t.size(0) : 0;
    const int64_t row = rows ? t.numel() / rows : 0;
    Counts c;
    int64_t sum = 0;

    if (splits.size() != (size_t)size) bad_value(op, "Number of tensor splits not equal to group size");
    for (auto n : splits) {
        if (n < 0) bad_value(op, "split sizes cannot be negative");
        c.add((size_t)(n * row) * units);
        sum += n;
    }
    if (sum != rows) bad_value(op, "Split sizes doesn't match total dim 0 size");
    return c;
}

inline std::vector<int64_t> equal_splits(const char *op, const at::Tensor &t, int size)
{
    const int64_t rows = t.dim() ? t.size(0) : 0;

    if (rows % size) bad_value(op, "Tensor's dim 0 does not divide equally across group size");
    return std::vector<int64_t>((size_t)size, rows / size);
}

} // namespace kolo
