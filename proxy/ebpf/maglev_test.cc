#include "proxy/ebpf/maglev.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace keelson::proxy::ebpf {
namespace {

std::vector<Backend> Endpoints(int count, uint16_t port = 8080) {
  std::vector<Backend> out;
  for (int i = 0; i < count; ++i) out.push_back({IpAddress::Parse("10.1.0.1")->Plus(i), port});
  return out;
}

TEST(Maglev, SharesDifferByOneAtMost) {
  for (int count : {1, 2, 3, 7, 16, 17, 100, 1000, 5000}) {
    const std::vector<uint16_t> table = MaglevTable(Endpoints(count));
    ASSERT_EQ(table.size(), MaglevSize(static_cast<size_t>(count)));
    std::map<uint16_t, size_t> shares;
    for (uint16_t index : table) ++shares[index];
    ASSERT_EQ(shares.size(), static_cast<size_t>(count));
    auto [least, most] = std::minmax_element(
        shares.begin(), shares.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    EXPECT_LE(most->second - least->second, 1u) << count;
  }
}

TEST(Maglev, SizesArePowersOfTwo) {
  EXPECT_EQ(MaglevSize(0), 512u);
  EXPECT_EQ(MaglevSize(16), 512u);
  EXPECT_EQ(MaglevSize(17), 1024u);
  EXPECT_EQ(MaglevSize(5000), 262144u);
  EXPECT_EQ(MaglevSize(1 << 20), size_t{65536} * 32);
}

// Nodes have the same endpoints in other slots.
TEST(Maglev, TheOrderOfEndpointsDoesNotMatter) {
  const std::vector<Backend> endpoints = Endpoints(20);
  std::vector<Backend> other = endpoints;
  std::reverse(other.begin(), other.end());
  std::swap(other[3], other[11]);
  const std::vector<uint16_t> a = MaglevTable(endpoints), b = MaglevTable(other);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) ASSERT_EQ(endpoints[a[i]], other[b[i]]) << i;
}

// How many hashes of endpoints that stay have got another one.
double Moved(const std::vector<Backend>& before, const std::vector<Backend>& after) {
  const std::vector<uint16_t> a = MaglevTable(before), b = MaglevTable(after);
  EXPECT_EQ(a.size(), b.size());
  size_t moved = 0, stay = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::find(after.begin(), after.end(), before[a[i]]) == after.end()) continue;
    if (std::find(before.begin(), before.end(), after[b[i]]) == before.end()) continue;
    ++stay;
    moved += before[a[i]] != after[b[i]];
  }
  return static_cast<double>(moved) / static_cast<double>(stay);
}

TEST(Maglev, FewMoveWhenOneGoes) {
  for (int count : {3, 10, 16, 60, 120}) {
    const std::vector<Backend> all = Endpoints(count);
    for (size_t gone : {size_t{0}, all.size() / 2, all.size() - 1}) {
      std::vector<Backend> rest = all;
      rest.erase(rest.begin() + static_cast<long>(gone));
      if (MaglevSize(rest.size()) != MaglevSize(all.size())) continue;
      EXPECT_LT(Moved(all, rest), 0.2) << count << " without " << gone;
      EXPECT_LT(Moved(rest, all), 0.2) << count << " with " << gone;
    }
  }
}

TEST(Maglev, PortsTellEndpointsApart) {
  std::vector<Backend> same = Endpoints(1, 80);
  same.push_back(Endpoints(1, 81)[0]);
  const std::vector<uint16_t> table = MaglevTable(same);
  EXPECT_EQ(std::count(table.begin(), table.end(), 0), 256);
}

}  // namespace
}  // namespace keelson::proxy::ebpf
