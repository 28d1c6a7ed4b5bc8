// Sets of CPUs in the kernel's list form: "0-3,7" (cpuset(7), "List format").
#pragma once

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "lib/base/error.h"

namespace keelson::kubelet {

class CpuSet {  // a value
 public:
  CpuSet() = default;
  CpuSet(std::initializer_list<int> cpus) : cpus_(cpus) {}
  explicit CpuSet(std::set<int> cpus) : cpus_(std::move(cpus)) {}
  // kInvalid for anything that is not a list of numbers and ascending ranges below 65 536.
  static Result<CpuSet> Parse(const std::string& text);
  std::string Format() const;

  bool empty() const { return cpus_.empty(); }
  int size() const { return static_cast<int>(cpus_.size()); }
  bool Contains(int cpu) const { return cpus_.count(cpu) > 0; }
  bool ContainsAll(const CpuSet& other) const;
  CpuSet Union(const CpuSet& other) const;
  CpuSet Minus(const CpuSet& other) const;
  CpuSet Intersection(const CpuSet& other) const;
  void Add(const CpuSet& other) { cpus_.insert(other.cpus_.begin(), other.cpus_.end()); }
  void Add(int cpu) { cpus_.insert(cpu); }

  auto begin() const { return cpus_.begin(); }  // ascending
  auto end() const { return cpus_.end(); }
  bool operator==(const CpuSet&) const = default;

 private:
  std::set<int> cpus_;
};

}  // namespace keelson::kubelet
