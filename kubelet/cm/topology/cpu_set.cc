#include "kubelet/cm/topology/cpu_set.h"

#include <algorithm>
#include <charconv>
#include <iterator>

namespace keelson::kubelet {

namespace {

constexpr int kMaxCpu = 65536;

bool ParseNumber(std::string_view text, int& out) {
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), out);
  return problem == std::errc() && end == text.data() + text.size() && out >= 0 && out < kMaxCpu;
}

}  // namespace

Result<CpuSet> CpuSet::Parse(const std::string& text) {
  CpuSet out;
  std::string_view rest = text;
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == ' ')) rest.remove_suffix(1);
  while (!rest.empty()) {
    size_t comma = rest.find(',');
    std::string_view range = rest.substr(0, comma);
    size_t dash = range.find('-');
    int first = 0, last = 0;
    bool good = ParseNumber(range.substr(0, dash), first);
    good = good && (dash == std::string_view::npos ? (last = first, true)
                                                   : ParseNumber(range.substr(dash + 1), last));
    if (!good || last < first || comma == rest.size() - 1) {
      return Error(Code::kInvalid, "invalid list of CPUs \"" + text + "\"");
    }
    for (int cpu = first; cpu <= last; ++cpu) out.cpus_.insert(out.cpus_.end(), cpu);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  return out;
}

std::string CpuSet::Format() const {
  std::string out;
  for (auto it = cpus_.begin(); it != cpus_.end();) {
    int first = *it, last = first;
    while (++it != cpus_.end() && *it == last + 1) last = *it;
    if (!out.empty()) out += ',';
    out += std::to_string(first);
    if (last > first) out += '-' + std::to_string(last);
  }
  return out;
}

bool CpuSet::ContainsAll(const CpuSet& other) const {
  return std::includes(cpus_.begin(), cpus_.end(), other.cpus_.begin(), other.cpus_.end());
}

CpuSet CpuSet::Union(const CpuSet& other) const {
  CpuSet out = *this;
  out.Add(other);
  return out;
}

CpuSet CpuSet::Minus(const CpuSet& other) const {
  CpuSet out;
  std::set_difference(begin(), end(), other.begin(), other.end(), std::inserter(out.cpus_, out.cpus_.end()));
  return out;
}

CpuSet CpuSet::Intersection(const CpuSet& other) const {
  CpuSet out;
  std::set_intersection(begin(), end(), other.begin(), other.end(),
                        std::inserter(out.cpus_, out.cpus_.end()));
  return out;
}

}  // namespace keelson::kubelet
